"""A personalization end to end on a tiny population: what it writes, that it resumes, what it refuses; its command."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest
from tests.support.evaluation.typists import typists_and_model
from tests.support.networks.gru import Gru
from tests.support.training.tiny import WORDS, tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.splits import TemporalSplit
from tacit.errors import InputError, RunError
from tacit.evaluation.counts.histograms import Buckets
from tacit.evaluation.personalize.fine_tuning import FineTuning
from tacit.evaluation.personalize.gate import LEVELS
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import PersonalizationSettings
from tacit.jobs import analytics_run
from tacit.jobs.personalize import run as personalization_run
from tacit.jobs.personalize.job import PersonalizationResult, resume_personalization
from tacit.jobs.personalize.run import OUTCOMES
from tacit.keyboard.model_folder import write_model
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.measured_participation import realised_participation
from tacit.progress import Advanced, Event
from tacit.runs import Run
from tacit.statements.ledger import Ledger, release_from

ONE = Hardware(workers=1)
GRID = (FineTuning(learning_rate=0.1), FineTuning(learning_rate=1.0))
PLAIN = PersonalizationSettings(strategies=GRID)
GATED = PersonalizationSettings(
    strategies=GRID, split=TemporalSplit(gate=0.125), levels=LEVELS, tokens=Buckets((100.0,))
)
COST = ReleaseCost(epsilon=20.0)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return typists_and_model(tmp_path_factory.mktemp("world"))


def run(
    world: tuple[Path, Path], out: Path, settings: PersonalizationSettings = PLAIN, **options: Any
) -> PersonalizationResult:
    cache, model = world
    return tacit.personalize(model, cache, out, **{"settings": settings, "seed": 3, "hardware": ONE, **options})


@pytest.fixture(scope="module")
def gated(world: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> PersonalizationResult:
    return run(world, tmp_path_factory.mktemp("runs") / "gated", GATED, release=COST)


def test_clients_with_habits_gain_and_are_counted(gated: PersonalizationResult) -> None:
    exact = gated.exact
    assert (gated.record["asked"], exact["evaluated"], sum(exact["skipped"].values())) == (40, 36, 4)
    assert exact["strategies"]["B=5, L=1"]["top1_accuracy"]["mean"].value > 0.05
    assert [each["name"] for each in gated.policies] == [
        "one strategy",
        "one strategy, gate",
        "strategy by tokens",
        "strategy by tokens, gate",
    ]
    assert 16 <= gated.policies[0]["users"] <= 20
    known = gated.found.exact
    assert known is not None and len(known.deltas) == 36 and len(known.fresh) == gated.policies[0]["users"]


def test_the_ledger_holds_the_release_and_nothing_else_pays(gated: PersonalizationResult) -> None:
    rounds, clients = gated.run.participations()
    assert gated.run.finished and not (gated.run.path / "noise.key").exists()
    ledger = Ledger(tuple(release_from(row.releases[0]) for row in gated.run.steps()))
    once = realised_participation(2, rounds, clients)
    assert (once.max_participations, once.min_separation) == (1, 2)
    promise = gated.record["promise"]
    assert ledger.composition(once).zcdp == promise["zcdp"]
    assert promise["epsilon"] == pytest.approx(20.0) and promise["delta"] == 1e-5
    # two strategies: 1 + 2 x 2 slices, and 2 x 3 gates for the designers; 1 + 4 and 4 policies for the others
    assert promise["histograms"] == [11, 9]
    assert {row.reports for row in ledger.noised_sums} == {20}
    assert gated.account.to_record()["promise"] == promise


def test_its_statement_holds(gated: PersonalizationResult) -> None:
    checked = tacit.verify(gated.run.path / "report" / "statement.json")
    assert checked.holds, checked.failed


def test_the_page_tells_released_from_simulated(gated: PersonalizationResult) -> None:
    folder = gated.run.path / "simulation"
    released, simulated = (folder / "report.md").read_text().split("## SIMULATION ONLY")
    assert "FIXED SEED" in released and "zCDP" in released and "simulation.png" not in released
    assert "released.png" not in simulated and "exact numbers of simulated users" in simulated
    assert "left out: 4: " in simulated
    for name in ("figure-2", "figure-3a", "figure-3b"):
        assert (folder / f"{name}-released.png").exists() and f"{name}-simulation.png" in simulated
    assert "SIMULATION ONLY" in gated._repr_html_() and "<table" in gated._repr_html_()


def numbers_in(page: str) -> set[str]:
    return set(re.findall(r"\d\.\d{3,}", page))


def test_what_may_be_published_holds_nothing_exact(gated: PersonalizationResult) -> None:
    folder, apart = gated.run.path / "report", gated.run.path / "simulation"
    page, record = ((folder / f"report.{end}").read_text() for end in ("md", "json"))
    released, simulated = (apart / "report.md").read_text().split("## SIMULATION ONLY")
    assert not list(folder.glob("*simulation*"))
    assert page.strip() == released.strip() and "SIMULATION" not in page and "evaluated" not in page + record
    assert numbers_in(simulated) - numbers_in(released), "there are exact numbers to keep out"
    private = ("run", "report", "simulation", "simulation_only", "schema", "version")
    assert json.loads(record) == {name: value for name, value in gated.to_record().items() if name not in private}
    assert not {"evaluated", "skipped"} & json.loads(record).keys()


def test_what_is_exact_changes_no_byte_of_what_may_be_published(
    gated: PersonalizationResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> tuple[dict[str, bytes], bytes]:
        files = tacit.resume(gated.run.path, hardware=ONE).report  # from what is kept of each client
        return {
            path.name: path.read_bytes() for path in files.html.parent.iterdir()
        }, files.everything.json.read_bytes()

    published, whole = written()
    real = personalization_run.exact_record
    with monkeypatch.context() as patch:
        changed = {"evaluated": 3, "skipped": {"tired": 1}}
        patch.setattr(personalization_run, "exact_record", lambda *given: {**real(*given), **changed})
        assert written()[0] == published and b"tired" in written()[1]
    assert written() == (published, whole)


COSTS = {"central": ReleaseCost(epsilon=8.0), "local": ReleaseCost(local_epsilon=8.0)}


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_a_release_that_was_changed_is_not_reported(
    world: tuple[Path, Path], tmp_path: Path, cost: ReleaseCost
) -> None:
    settings = replace(PLAIN, clients=12)
    run(world, tmp_path / "r", settings, release=cost)
    file = tmp_path / "r" / "steps" / "release-000000.json"
    rows = json.loads(file.read_text())
    next(iter(rows.values()))["counts"][0] = 9999
    file.write_text(json.dumps(rows))
    with pytest.raises(RunError, match="is not the file that step 0 names"):
        run(world, tmp_path / "r", settings, release=cost)
    file.unlink()
    with pytest.raises(RunError, match="does not hold what the ledger says"):
        run(world, tmp_path / "r", settings, release=cost)


def test_fine_tuning_that_diverges_everywhere_is_a_loss_and_no_crash(world: tuple[Path, Path], tmp_path: Path) -> None:
    settings = PersonalizationSettings(
        strategies=(FineTuning(learning_rate=1.0), FineTuning(learning_rate=1e30)),
        metrics=("top1_accuracy", "cross_entropy"),
    )
    found = run(world, tmp_path / "r", settings, release=ReleaseCost(epsilon=50.0), seed=1)
    lost = found.to_record()["simulation_only"]["strategies"]["B=5, L=1e+30"]
    assert lost["cross_entropy"]["mean"] == [None, "-inf", "inf"] and lost["cross_entropy"]["diverged"] == 36
    assert lost["cross_entropy"]["losing"]["0.0"][0] == 1.0 and lost["top1_accuracy"]["mean"][0] < 0
    assert found.released is not None
    won, told = (part["strategies"]["B=5, L=1"]["cross_entropy"]["mean"] for part in (found.exact, found.released))
    assert won.low > 0.05 and told.low < won.value < told.high and told.value > 0, "gains are positive in both"
    assert not (tmp_path / "r" / "noise.key").exists()
    run(world, tmp_path / "s", replace(settings, strategies=settings.strategies[1:]))


def what_was_found(out: Path) -> tuple[str, str, list[dict[str, Any]]]:
    report = (out / "simulation" / "report.json").read_text().replace(str(out), "RUN")
    with Run.open(out) as opened:
        return report, opened.settings, [dict(row.releases[0]) for row in opened.steps()]


class Killed(BaseException):
    pass


def killed_at(out: Path, real: Callable[..., Any], place: Callable[[Any], Path]) -> Callable[..., Any]:
    """In that folder, and not where it is rehearsed."""

    def die(what: Any, *rest: Any, **named: Any) -> Any:
        if place(what) == out:
            raise Killed
        return real(what, *rest, **named)

    return die


# Stopped between lines: tests/contracts/test_jobs.py, of every job.
@pytest.mark.parametrize(
    "killed_after",
    [
        pytest.param("clients", marks=pytest.mark.nightly),
        *["torn line", "file of the release", "first ledger row"],
    ],
)
def test_a_killed_run_goes_on_to_the_same_result(
    world: tuple[Path, Path],
    gated: PersonalizationResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed_after: str,
) -> None:
    out = tmp_path / "cut"

    def after_seven(event: Event) -> None:
        if isinstance(event, Advanced) and event.done == 7 and killed_after in ("clients", "torn line"):
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        if killed_after == "file of the release":
            patch.setattr(Run, "commit", killed_at(out, Run.commit, lambda run: run.path))
        elif killed_after == "first ledger row":
            patch.setattr(analytics_run, "write_run", killed_at(out, analytics_run.write_run, lambda folder: folder))
        run(world, out, GATED, release=COST, progress=after_seven)
    if killed_after == "torn line":
        (out / OUTCOMES).write_bytes((out / OUTCOMES).read_bytes()[:-20])
        run(world, out, GATED, release=COST)
    else:
        resume_personalization(out, hardware=ONE)
    assert what_was_found(out) == what_was_found(gated.run.path)


def test_a_finished_run_releases_nothing_again(world: tuple[Path, Path], gated: PersonalizationResult) -> None:
    out = gated.run.path
    before = what_was_found(out)
    assert run(world, out, GATED, release=COST).to_record() == gated.to_record()
    assert resume_personalization(gated.run, hardware=ONE).to_record() == gated.to_record()
    assert what_was_found(out) == before


def test_other_settings_are_named_and_refused(world: tuple[Path, Path], gated: PersonalizationResult) -> None:
    for changed, named in (
        (replace(GATED, strategies=(GRID[0], FineTuning(learning_rate=2.0))), r"strategies\.B=5, L=1 was"),
        (replace(GATED, strategies=(FineTuning(learning_rate=0.1000001), GRID[1])), r"strategies\.B=5, L=0\.1 was"),
        (replace(GATED, split=TemporalSplit(gate=0.3)), r"split\.gate was 0\.125 and is now 0\.3"),
    ):
        with pytest.raises(RunError, match=rf"other settings \({named}"):
            run(world, gated.run.path, changed, release=COST)


def test_without_a_cost_nothing_is_released(world: tuple[Path, Path], tmp_path: Path) -> None:
    found = run(world, tmp_path / "r", replace(PLAIN, clients=12))
    page = (tmp_path / "r" / "report" / "report.md").read_text()
    assert "NOTHING WAS RELEASED" in page and not list((tmp_path / "r" / "report").glob("*.png"))
    assert found.run.steps_done == 0 and found.released is None and found.account.realised is None


@pytest.mark.nightly
def test_all_tokens_are_released_and_told_beside_words(world: tuple[Path, Path], tmp_path: Path) -> None:
    """One metric is released, at the price of one; the exact tables have both; a cache is a strategy like any other."""
    how = (FineTuning(learning_rate=1.0), FineTuning(epochs=0, bigram=0.3))
    settings = replace(PLAIN, strategies=how, metrics=("all_token_accuracy",))
    found = run(world, tmp_path / "r", settings, release=ReleaseCost(epsilon=50.0))
    assert found.record["promise"]["histograms"] == [1 + 2 * 2]
    assert found.released is not None and [*found.released["strategies"]["bigram cache 0.3"]] == ["all_token_accuracy"]
    exact = found.exact["strategies"]["bigram cache 0.3"]
    assert exact["top1_accuracy"]["mean"].low > 0.05, "they repeat themselves"
    told = found.released["strategies"]["bigram cache 0.3"]["all_token_accuracy"]["mean"]
    assert exact["all_token_accuracy"]["mean"].value > 0.5 and told.low > 0.1, "all in the last bin, above 0.2"
    assert [*found.exact["baseline"]] == ["top1_accuracy", "all_token_accuracy"]
    page = (tmp_path / "r" / "simulation" / "report.md").read_text()
    assert "Mean change of all-token accuracy by tokens" in page and "Mean change of top-1 accuracy by tokens" in page


def test_clients_that_were_counted_by_fewer_metrics_are_refused(world: tuple[Path, Path], tmp_path: Path) -> None:
    out, settings = tmp_path / "r", replace(PLAIN, clients=12, strategies=GRID[:1])

    def after_seven(event: Event) -> None:
        if isinstance(event, Advanced) and event.done == 7:
            raise Killed

    with pytest.raises(Killed):
        run(world, out, settings, progress=after_seven)
    lines = (out / OUTCOMES).read_text()
    (out / OUTCOMES).write_text(lines.replace('"all_token_accuracy"', '"another_accuracy"'))
    with pytest.raises(RunError, match="counted without all_token_accuracy, by an earlier version"):
        run(world, out, settings)


def test_devices_may_randomise_their_own_reports(world: tuple[Path, Path], tmp_path: Path) -> None:
    found = run(world, tmp_path / "r", replace(PLAIN, slices=()), release=ReleaseCost(local_epsilon=6.0))
    promise = found.record["promise"]
    assert (promise["kind"], promise["epsilon"], promise["delta"]) == ("local", 6.0, 0.0)
    assert promise["key_source"] == "fixed seed 3"
    assert found.released is not None
    counts = [each["asked"] for each in found.released["joint_counts"].values()]
    assert sum(counts) < 40, "each device answers one query"
    assert isinstance(found.account.realised, LocalGuarantee) and found.account.realised.user_epsilon == 6.0
    (step,) = found.run.steps()
    assert sum(release_from(row).reports for row in step.releases) == 40, "each sum stands in the ledger"
    checked = tacit.verify(tmp_path / "r" / "report" / "statement.json")
    assert checked.holds, checked.failed


def test_two_groups_randomise_in_two_steps(world: tuple[Path, Path], tmp_path: Path) -> None:
    found = run(world, tmp_path / "s", GATED, release=ReleaseCost(local_epsilon=20.0))
    assert found.run.steps_done == 2 and isinstance(found.account.realised, LocalGuarantee)
    assert found.account.realised.user_epsilon == 20.0, "each client is in one group"
    assert found.released is not None
    parts = found.released["by_slice"]["tokens"]["strategies"]["B=5, L=1"]
    assert 10 < sum(part["users"] for part in parts) < 90, "users of all that were asked"


def test_any_network_is_personalised_as_a_job(world: tuple[Path, Path], tmp_path: Path) -> None:
    words = Cache.open(world[0]).vocabulary_path.read_bytes()
    write_model(tmp_path / "gru", Gru(), Gru().init(jax.random.key(1)), words)
    settings = replace(PLAIN, clients=12, strategies=(FineTuning(learning_rate=1.0, layers="output"),))
    found = run((world[0], tmp_path / "gru"), tmp_path / "r", settings, release=COST)
    assert found.exact["evaluated"] > 8
    with pytest.raises(InputError, match="layers='biases' is unknown; it is one of all, output"):
        run((world[0], tmp_path / "gru"), tmp_path / "s", replace(PLAIN, strategies=(FineTuning(layers="biases"),)))
    assert not (tmp_path / "s").exists()


def test_a_model_of_other_words_is_refused(world: tuple[Path, Path], tmp_path: Path) -> None:
    _, other = typists_and_model(tmp_path, 4, [*WORDS[:-1], "elsewhere"])
    with pytest.raises(InputError, match="the same ids would stand for different words"):
        run((world[0], other), tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_text_without_times_is_left_out_and_said_so(world: tuple[Path, Path], tmp_path: Path) -> None:
    cache, model = tiny_cache(tmp_path / "untimed", {"train": 1, "validation": 1, "test": 40}).path, world[1]
    with pytest.raises(InputError, match=r"40: no sentence has a time.*--undated"):
        run((cache, model), tmp_path / "r")
    found = run((cache, model), tmp_path / "s", replace(PLAIN, split=TemporalSplit(undated="order")))
    assert found.exact["evaluated"] > 20 and found.exact["undated_sentences"] == 0


# -- the command -------------------------------------------------------------------------------------------------------

OPTIONS = ("--batch-size", "5", "--learning-rate", "0.1,1.0", "--workers", "1", "--seed", "3")
GATE = (*OPTIONS, "--gate", "auto", "--token-buckets", "100", "--epsilon", "20")


def said(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output.replace("\n", " ")


def test_the_command_is_the_job(world: tuple[Path, Path], gated: PersonalizationResult) -> None:
    """The options of the fixture's settings: the finished run is shown, in words and as JSON."""
    asked = ("personalize", world[1], "--data", world[0], "--out", gated.run.path, *GATE)
    words = said(*asked)
    assert "SIMULATION ONLY: best" in words and "clients evaluated" in words and "RELEASED (central)" in words
    assert "FIXED SEED: randomness came from fixed seed 3; who knows it can take the noise away" in words
    printed = CliRunner().invoke(app, [*map(str, asked), "--json"]).stdout
    assert json.loads(printed) == json.loads(json.dumps(gated.to_record()))


def test_commands_for_runs_that_train_name_the_right_one(gated: PersonalizationResult) -> None:
    out = gated.run.path
    other = out.parent / "a run of another kind"
    shutil.copytree(out, other)
    account = json.loads(CliRunner().invoke(app, ["account", "run", str(out), "--json"]).stdout)
    assert account["promise"] == gated.to_record()["promise"] and account["of"] == "personalize"
    assert "step 2: 9 histograms" in said("account", "run", out)
    assert "is a run of `tacit personalize` and not of `tacit train`" in said("compare", out, other, code=2)


@pytest.mark.long
def test_kill_nine_at_any_instant_changes_nothing(world: tuple[Path, Path], tmp_path: Path) -> None:
    cache, model = world
    options = [str(model), "--data", str(cache), *GATE, "--max-tokens", "200", "--json"]

    def begin(out: Path) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tacit", "personalize", *options, "--out", str(out)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    assert begin(tmp_path / "whole").wait() == 0
    out, kills = tmp_path / "cut", 0
    lines = out / OUTCOMES
    for least in (1, 14, 33):
        process = begin(out)
        while process.poll() is None and not (lines.exists() and lines.read_bytes().count(b"\n") >= least):
            time.sleep(0.002)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert begin(out).wait() == 0
    assert kills and what_was_found(out) == what_was_found(tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--token-buckets", "2000,1000"), "do not increase"),
        (("--delta-buckets", "0.1"), "cannot be read"),
        (("--delta-buckets", "0.1:0.0:0.01"), "no cuts"),
        (("--delta-buckets", "-0.1:0.2:0.03"), "no cut at 0"),
        (("--batch-size", "5,x"), "'x' is no whole number"),
        (("--learning-rate", "-1"), "must be a positive number"),
        (("--gate", "2"), "must be in"),
        (("--gate", "auto", "--gate-share", "0"), "no share above 0 and below 1"),
        (("--gate", "auto", "--slices", "baseline"), "goes by train tokens"),
        (("--slices", "country"), "'country' is unknown"),
        (("--zcdp", "1", "--epsilon", "1"), "each say the whole price"),
        (("--epsilon", "1", "--delta", "5"), "--delta 5 is not between 0 and 1"),
        (("--epsilon", "0"), "releases nothing or promises nothing"),
        (("--clients", "1"), "are the fewest that say"),
        (("--clients", "-1"), "must be 0"),
        (("--seed", "-1"), "must be 0 or more"),
        (("--split", "weekday:3"), "is unknown"),
        (("--undated", "guess"), "choose drop or order"),
        (("--harm-weight", "-1"), "must be 0 or more"),
        (("--layers", "most"), "one of all, output, biases, recurrent, embeddings"),
        (("--batch-size", "5,5"), "names a strategy twice"),
        (("--epochs", "0"), "epochs=0 must be at least 1"),
        (("--epochs", "1,x"), "'x' is no whole number"),
        (("--bigram", "0.1,1.5"), "together less than 1"),
        (("--metrics", "cross_entropy,top1_accuracy"), "begin with top1_accuracy or all_token_accuracy"),
        (("--metrics", "all_token_accuracy", "--gate", "auto"), "leave the gate out"),
    ],
)
def test_bad_input_is_one_line(
    world: tuple[Path, Path], tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    out = tmp_path / "r"
    complained = said("personalize", world[1], "--data", world[0], "--out", out, "--workers", "1", *options, code=2)
    assert complaint in complained and "Traceback" not in complained
    assert not out.exists()
