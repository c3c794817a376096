"""`tacit.discover`: words found and counted, a run that goes on wherever it was stopped, refusals before it begins."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import REPOSITORY
from tests.support.discovery.typed_words import KNOWN, SETTINGS, asked, typed
from tests.support.journals import rewrite_each
from tests.support.made_runs import write_run

from tacit.data import TextsOf, VocabularyChoice
from tacit.discovery.collect import AtOnce, UsersOneByOne
from tacit.discovery.settings import LocalReportSettings
from tacit.errors import InputError, ParticipationError, RunError, SourceError, UnknownRelease
from tacit.jobs.discover.job import discover, discovery_warnings, resume, settings_of
from tacit.jobs.discover.result import DiscoveryResult
from tacit.jobs.import_data import import_data
from tacit.jobs.report import report
from tacit.jobs.resume import resume as resume_any
from tacit.jobs.statement import verify
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.progress import Advanced, Event, Warned
from tacit.runs import Run
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.statements import DiscoveryFacts
from tacit.statements.run_facts import facts_of
from tacit.text.vocabulary import Provenance, Vocabulary

ANONYMOUS = replace(SETTINGS, anonymity=Anonymity(k=20, delta=1e-3))


def content(folder: Path) -> dict[str, bytes]:
    """Every file that does not name the folder or hold the time."""
    kept = [path for path in folder.rglob("*") if path.suffix in {".csv", ".toml"} or path.parent.name == "steps"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(kept)}


@pytest.fixture(scope="module")
def whole(clients: Path, tmp_path_factory: pytest.TempPathFactory) -> DiscoveryResult:
    vocabulary = clients / "vocabulary.json"
    return asked(clients, tmp_path_factory.mktemp("runs") / "whole", ANONYMOUS, vocabulary=vocabulary)


def test_words_are_found_and_counted(whole: DiscoveryResult) -> None:
    words = {word.word: word for word in whole.words}
    assert set(words) == {"covid", "selfie"}
    share = np.mean([client % 2 for client in range(300)])
    count = words["covid"].count
    assert count is not None and count.low < 3000 * share * 1.1 and count.high > 3000 * share * 0.7
    assert whole.simulation.words_nobody_typed == 0
    assert whole.simulation.words_left_out == {
        "outside the alphabet": 1,
        "too long for the depth": 1,
        "not spelt in the cache": 0,
    }
    assert whole.coverage is not None
    assert whole.coverage.value == pytest.approx(whole.simulation.coverage, abs=0.03)


def test_the_guarantee_is_that_of_the_ledger(whole: DiscoveryResult) -> None:
    record = whole.to_record()
    realised = whole.account.realised
    assert isinstance(realised, LocalGuarantee) and realised.to_record() == record["guarantee"]
    assert realised.item_epsilon == realised.user_epsilon == record["guarantee"]["local_epsilon_item"] == 6.0
    assert record["guarantee"]["central_epsilon_item"] < 6.0
    assert record["guarantee"]["randomness"] == "fixed seed 1" and record["guarantee"]["resampled"]
    assert record["anonymity"]["delta_of_thresholds"] <= record["anonymity"]["delta"] == 1e-3
    facts = facts_of(whole.run)
    assert isinstance(facts, DiscoveryFacts)
    assert facts == whole.statement.facts and facts.anonymity == ANONYMOUS.anonymity
    sizes = [release.users for release in facts.releases]
    assert [group.users for group in facts.guarantee.groups] == sizes == [3000] * len(whole.run.steps())
    with pytest.raises(InputError, match="between 0 and 1"):
        facts_of(whole.run, delta=2.0)


def test_its_report_is_written_again_from_the_folder_alone(whole: DiscoveryResult, tmp_path: Path) -> None:
    again = report(whole.run, out=tmp_path)
    assert whole.report is not None and again.to_record()["words"] == 2
    for part in ("report", "simulation"):
        names = {each.name for each in (whole.run.path / part).iterdir()}
        assert names == {each.name for each in (tmp_path / part).iterdir()} and "report.html" in names
        for name in names:
            assert (tmp_path / part / name).read_bytes() == (whole.run.path / part / name).read_bytes(), name


def test_the_folder_is_a_run_like_every_other(whole: DiscoveryResult, tmp_path: Path) -> None:
    folder = whole.run.path
    assert (whole.run.kind, whole.run.finished, settings_of(whole.run)) == ("discover", True, ANONYMOUS)
    assert not (folder / "noise.key").exists()
    steps = {path.name for path in (folder / "steps").iterdir()}
    assert steps == {step.file for step in whole.run.steps()} and "counting.json" in steps
    assert (folder / "report" / "statement.md").read_text().startswith("**FIXED SEED")
    assert verify(folder / "report" / "statement.json").holds
    record = json.loads((folder / "report" / "statement.json").read_text())
    record["guarantee"]["central_epsilon_item"] /= 2
    (tmp_path / "changed.json").write_text(json.dumps(record))
    assert "guarantee.central_epsilon_item" in [line.name for line in verify(tmp_path / "changed.json").failed]
    result = json.loads((folder / "result.json").read_text())
    assert result == {**whole.to_record(), "found": whole.rows()}
    released = (folder / "report" / "report.md").read_text()
    assert "selfie" in released and "SIMULATION ONLY" not in released
    assert whole.report is not None and "selfie" in whole.report.html.read_text()


def test_a_result_is_shown_and_is_columns(whole: DiscoveryResult) -> None:
    json.dumps(whole.to_record())
    table = whole.to_arrow()
    with (whole.run.path / "words.csv").open(newline="", encoding="utf-8") as file:
        assert [row["word"] for row in csv.DictReader(file)] == table["word"].to_pylist() == ["covid", "selfie"]
    assert table.column_names == ["word", "pass", "layer", "votes", "count", "low", "high", "of_reports"]
    assert table["count"][0].as_py() == whole.words[0].count[0]  # type: ignore[index]
    assert "FIXED SEED" in whole._repr_html_() and "<script" not in whole._repr_html_()


def test_nobody_need_count(clients: Path, tmp_path: Path) -> None:
    found = asked(clients, tmp_path / "run", replace(SETTINGS, counting_users=0))
    assert found.coverage is None and found.words[0].count is None
    assert found.to_arrow()["count"].to_pylist()[:1] == [None]
    assert "of_reports" not in found.rows()[0]


def test_a_wider_alphabet_finds_other_words(clients: Path, tmp_path: Path) -> None:
    wider = replace(SETTINGS, alphabet=SETTINGS.alphabet.with_characters("ñé"))
    assert asked(clients, tmp_path / "run", wider).simulation.words_left_out["outside the alphabet"] == 0


def test_a_vocabulary_that_the_alphabet_cannot_spell_is_warned_of_with_the_way_out() -> None:
    spanish = Vocabulary(words=("el", "año", "también"), provenance=Provenance(kind="public", description="three"))
    (warned,) = discovery_warnings(replace(SETTINGS, seed=None, resample_users=False), 300, spanish)
    assert warned.code == "narrow-alphabet" and "67%" in warned.message and "--more-characters éÉñÑ" in warned.message
    wider = SETTINGS.alphabet.with_characters("éÉñÑ")
    assert [each.code for each in discovery_warnings(replace(SETTINGS, alphabet=wider), 300, spanish)] == [
        each.code for each in discovery_warnings(SETTINGS, 300, KNOWN)
    ]
    cyrillic = replace(spanish, words=tuple(chr(0x430 + at) * 2 for at in range(32)))
    assert "--alphabet" in discovery_warnings(SETTINGS, 300, cyrillic)[-1].message


def test_a_cache_gives_what_its_vocabulary_spells(clients: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("the\ncovid\n", encoding="utf-8")
    choice = VocabularyChoice(word_list=tmp_path / "words.txt")
    cache = import_data(str(clients / "typed.parquet"), tmp_path / "cache", vocabulary=choice)
    found = asked(clients, tmp_path / "run", ANONYMOUS, data=cache)
    assert [word.word for word in found.words] == ["covid"]
    assert found.simulation.words_left_out["not spelt in the cache"] > 40
    again = asked(clients, tmp_path / "run", ANONYMOUS, data=str(cache.path))
    assert again.words == found.words


def test_without_a_seed_the_clients_themselves_are_asked_once(clients: Path, tmp_path: Path) -> None:
    small = replace(SETTINGS, users_per_layer=30, counting_users=20, resample_users=False, seed=None)
    seen: list[Event] = []
    first = asked(clients, tmp_path / "run", small, progress=seen.append)
    assert not [event for event in seen if isinstance(event, Warned)]
    assert asked(clients, tmp_path / "run", small).words == first.words
    assert first.run.metadata.key_source == "operating system"


def test_devices_asked_one_by_one_find_the_same_words(clients: Path, tmp_path: Path) -> None:
    """Without noise and with room for all, the sums are the same bit for bit where nothing is drawn."""
    settings = replace(
        SETTINGS,
        reports=LocalReportSettings(local_epsilon=30.0, contributions=3, sampler="greedy"),
        users_per_layer=200,
        counting_users=0,
    )
    slow, fast = (
        asked(clients, tmp_path / each.__name__, settings, collector=each) for each in (UsersOneByOne, AtOnce)
    )
    assert slow.words == fast.words and len(slow.words) >= 2
    assert content(slow.run.path) == content(fast.run.path)


def test_votes_summed_securely_are_the_same_and_the_statement_says_how(clients: Path, tmp_path: Path) -> None:
    settings = replace(
        SETTINGS,
        reports=LocalReportSettings(local_epsilon=30.0, contributions=3, sampler="greedy"),
        users_per_layer=200,
        counting_users=0,
    )
    plain = asked(clients, tmp_path / "plain", settings)
    secure = asked(clients, tmp_path / "secure", replace(settings, secure_sum=SimulatedProtocol(devices=6)))
    steps = {name: file for name, file in content(plain.run.path).items() if name.startswith("steps/")}
    assert steps == {name: file for name, file in content(secure.run.path).items() if name.startswith("steps/")}
    assert (
        settings_of(secure.run).secure_sum == SimulatedProtocol(devices=6) and settings_of(plain.run).secure_sum is None
    )
    assert secure.statement.figures == plain.statement.figures
    hidden, clear = (folder / "report" / "statement.md" for folder in (secure.run.path, plain.run.path))
    assert "secure aggregation by pairwise masks: of each group 6 devices" in hidden.read_text()
    assert "simulated in the clear" in clear.read_text()
    assert verify(secure.run.path / "report" / "statement.json").holds
    with pytest.raises(RunError, match="secure_sum"):
        asked(clients, tmp_path / "plain", replace(settings, secure_sum=SimulatedProtocol()))


class TestGoingOn:
    def test_stopped_after_any_layer_it_ends_with_the_same_bytes(
        self, clients: Path, whole: DiscoveryResult, tmp_path: Path
    ) -> None:
        """Whoever listens stops the job after each layer in turn; `tacit.resume` takes it from there."""

        def stop(event: Event) -> None:
            if isinstance(event, Advanced) and event.stage == "asking layers" and event.done == stops:
                raise KeyboardInterrupt

        vocabulary = clients / "vocabulary.json"
        for stops in (1, 3, 7):
            with pytest.raises(KeyboardInterrupt):
                asked(clients, tmp_path / "run", ANONYMOUS, vocabulary=vocabulary, progress=stop)
            with Run.open(tmp_path / "run") as run:
                assert run.steps_done >= stops and not run.finished
        resumed = resume_any(tmp_path / "run")
        assert isinstance(resumed, DiscoveryResult)
        assert content(tmp_path / "run") == content(whole.run.path)
        assert resumed.words == whole.words
        assert [step.releases for step in resumed.run.steps()] == [step.releases for step in whole.run.steps()]
        assert resumed.to_record() | {"run": ""} == whole.to_record() | {"run": ""}

    def test_a_finished_run_asks_nobody(self, clients: Path, whole: DiscoveryResult) -> None:
        before = content(whole.run.path)
        seen: list[Event] = []
        again = asked(clients, whole.run.path, ANONYMOUS, delta=1e-6, progress=seen.append)
        assert {event.code for event in seen if isinstance(event, Warned)} == {"simulated-population", "fixed-seed"}
        assert content(whole.run.path) == before
        assert again.account.delta == again.to_record()["guarantee"]["central_delta"] == 1e-6
        asked(clients, whole.run.path, ANONYMOUS)

    def test_clients_in_memory_cannot_be_found_again(self, tmp_path: Path) -> None:
        source = TextsOf(typed())
        found = discover(source, KNOWN, tmp_path / "run", SETTINGS)
        assert {word.word for word in found.words} >= {"covid", "selfie"}
        with pytest.raises(InputError, match="stood in memory"):
            resume(found.run)
        assert discover(source, KNOWN, tmp_path / "run", SETTINGS).words == found.words

    def test_damaged_steps_are_never_skipped(self, clients: Path, whole: DiscoveryResult, tmp_path: Path) -> None:
        shutil.copytree(whole.run.path, tmp_path / "run")
        step = tmp_path / "run" / "steps" / "pass-1-layer-02.json"
        step.write_text("{}")
        with pytest.raises(RunError, match="SHA-256 differs"):
            asked(clients, tmp_path / "run", ANONYMOUS)
        step.unlink()
        with pytest.raises(RunError, match="cannot be read"):
            asked(clients, tmp_path / "run", ANONYMOUS)
        rewrite_each(tmp_path / "run", "step", lambda record: {**record, "step": {**record["step"], "releases": [{}]}})
        with Run.open(tmp_path / "run") as run, pytest.raises(UnknownRelease):
            facts_of(run)

    def test_half_written_files_are_swept(self, clients: Path, whole: DiscoveryResult, tmp_path: Path) -> None:
        shutil.copytree(whole.run.path, tmp_path / "run")
        (tmp_path / "run" / "steps" / ".pass-1-layer-02.json.99.draft").write_text("half")
        asked(clients, tmp_path / "run", ANONYMOUS)
        assert not list((tmp_path / "run" / "steps").glob(".*"))

    @pytest.mark.long
    def test_killed_between_layers_it_ends_with_the_same_files(self, clients: Path, tmp_path: Path) -> None:
        """A child process is killed by SIGKILL as soon as some layers are on disk, twice; then it is let finish."""
        settings = replace(SETTINGS, seed=3, passes=2)
        straight = asked(clients, tmp_path / "straight", settings)
        code = (
            "import sys, time; from dataclasses import replace; from pathlib import Path\n"
            "from tests.support.discovery.typed_words import SETTINGS, asked\n"
            "slow = lambda event: time.sleep(0.15 if getattr(event, 'stage', '') == 'asking layers' else 0)\n"
            "asked(Path(sys.argv[1]), Path(sys.argv[2]), replace(SETTINGS, seed=3, passes=2), progress=slow)\n"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])}
        for reached in ("pass-1-layer-03", "pass-2-layer-02"):
            child = subprocess.Popen(
                [sys.executable, "-c", code, str(clients), str(tmp_path / "killed")],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            while not (tmp_path / "killed" / "steps" / f"{reached}.json").exists() and child.poll() is None:
                time.sleep(0.01)
            child.send_signal(signal.SIGKILL)
            _, complaints = child.communicate()
            assert child.returncode == -signal.SIGKILL, complaints.decode()
        assert not (tmp_path / "killed" / "result.json").exists()
        finished = asked(clients, tmp_path / "killed", settings)
        assert content(tmp_path / "killed") == content(tmp_path / "straight")
        assert finished.words == straight.words


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "kind", "says"),
        [
            ({"delta": 0.0}, InputError, "between 0 and 1"),
            ({"data": "nowhere.parquet"}, SourceError, "check the path"),
            ({"vocabulary": "nowhere.json"}, InputError, "no vocabulary at"),
            ({"settings": replace(SETTINGS, resample_users=False)}, ParticipationError, "asks 24,000 users"),
        ],
    )
    def test_what_cannot_be_is_refused_before_anything_is_written(
        self, clients: Path, tmp_path: Path, changes: dict[str, Any], kind: type[Exception], says: str
    ) -> None:
        with pytest.raises(kind, match=says):
            asked(clients, tmp_path / "run", **changes)
        assert not (tmp_path / "run").exists()

    def test_other_settings_do_not_continue_a_run(self, clients: Path, whole: DiscoveryResult) -> None:
        """They are compared before all clients are read, so that the refusal does not wait for those."""
        other = replace(ANONYMOUS, reports=LocalReportSettings(local_epsilon=5.0))
        unread = {"data": "nowhere.parquet"}
        with pytest.raises(RunError, match=r"local_epsilon was 6\.0 and is now 5\.0"):
            asked(clients, whole.run.path, other, **unread)
        with pytest.raises(RunError, match="seed was 1 and is now None"):
            asked(clients, whole.run.path, replace(ANONYMOUS, seed=None), **unread)
        longer = Vocabulary(words=("the", "of", "and"), provenance=KNOWN.provenance)
        with pytest.raises(RunError, match="vocabulary_sha256 was"):
            asked(clients, whole.run.path, ANONYMOUS, vocabulary=longer, **unread)

    def test_other_clients_do_not_continue_a_run(self, clients: Path, whole: DiscoveryResult) -> None:
        fewer = dict(list(typed().items())[:200])
        with pytest.raises(RunError, match="population_sha256 was"):
            asked(clients, whole.run.path, ANONYMOUS, data=TextsOf(fewer))

    def test_another_folder_is_left_alone(self, clients: Path, tmp_path: Path) -> None:
        (tmp_path / "notes").write_text("mine")
        with pytest.raises(RunError, match="left alone"):
            asked(clients, tmp_path, data="nowhere.parquet")

    def test_a_run_of_another_kind_is_left_alone(self, clients: Path, tmp_path: Path) -> None:
        write_run(tmp_path / "run", strategy=None, rounds=2)
        with pytest.raises(RunError, match="is a run of `tacit train`, so it is left alone"):
            asked(clients, tmp_path / "run", data="nowhere.parquet")

    def test_one_process_at_a_time(self, clients: Path, whole: DiscoveryResult) -> None:
        with whole.run.locked(), pytest.raises(RunError, match="one process at a time"):
            asked(clients, whole.run.path, ANONYMOUS)
