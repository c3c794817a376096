"""An evaluation: one model, two side by side, a release with its ledger and its statement; and its command."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.support.evaluation.typists import typists_and_model
from tests.support.networks.gru import Gru
from tests.support.training.tiny import SETTINGS, WORDS, tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.errors import InputError, RunError
from tacit.evaluation.accuracy import evaluate as count
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import evaluate_reader
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import EvaluationSettings
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.evaluation.trigram_reader import TrigramReader
from tacit.jobs import analytics_run
from tacit.jobs.account.run import account_run
from tacit.jobs.evaluate import run as evaluation_run
from tacit.jobs.evaluate.job import EvaluationResult, resume_evaluation
from tacit.jobs.evaluate.run import COUNTS
from tacit.keyboard.model_folder import load_model, write_model
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.participation import Participation
from tacit.progress import Advanced, Event, silent
from tacit.runs import Run
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.statements.ledger import Ledger, release_from

ONE = Hardware(workers=1)
COST = ReleaseCost(epsilon=9.0, delta=1e-5)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("world")
    cache, model = typists_and_model(folder, 90)
    other = folder / "other"
    other.mkdir()
    words = Cache.open(cache).vocabulary_path.read_bytes()
    write_model(other, SETTINGS, SETTINGS.init(jax.random.key(8)), words)
    return cache, model, other


def found_by(*models: Path, data: Path, **options: Any) -> EvaluationResult:
    """The settings of an evaluation are named like any other option."""
    own = {name: options.pop(name) for name in ("clients", "sentences", "words") if name in options}
    return tacit.evaluate(models, data, settings=EvaluationSettings(**own), hardware=ONE, **options)


def test_two_models_on_the_same_clients(world: tuple[Path, Path, Path]) -> None:
    cache, model, other = world
    result = found_by(model, other, data=cache)
    assert result.found["asked"] == 90 and result.released is result.run is result.account is None
    opened = Cache.open(cache)
    held_out = HeldOut.read(opened, opened.clients("test"), sentences=64, words=20)
    slow = count(SETTINGS, load_model(model).parameters, held_out, cores=Cores(ONE))
    row = result.exact["models"][str(model)]
    assert row["pooled"] == pytest.approx(slow.total.value("top1_accuracy"))
    assert row["mean"].value == pytest.approx(np.mean([each.value("top1_accuracy") for each in slow.clients]))
    assert row["worst_decile"].value <= row["quantiles"][0.1].value
    against = result.exact["against_the_first"][str(other)]
    mean = result.exact["models"][str(other)]["mean"].value - row["mean"].value
    assert against["mean"].value == pytest.approx(mean)
    assert "SIMULATION ONLY" in result._repr_html_() and "NOTHING WAS RELEASED" in result._repr_html_()


@pytest.fixture(scope="module")
def released(world: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> EvaluationResult:
    cache, model, other = world
    out = tmp_path_factory.mktemp("runs") / "r"
    return found_by(model, other, data=cache, release=COST, seed=4, out=out)


def test_a_release_has_its_ledger_row(released: EvaluationResult) -> None:
    assert released.run is not None and released.account is not None
    ledger = Ledger(tuple(release_from(row.releases[0]) for row in released.run.steps()))
    assert released.run.finished and not (released.run.path / "noise.key").exists()
    once = Participation(rounds=1, min_separation=1, max_participations=1)
    promise = released.found["promise"]
    assert ledger.composition(once).zcdp == promise["zcdp"] and promise["epsilon"] == pytest.approx(9.0)
    assert promise["histograms"] == [3], "two accuracies, one change"
    assert promise["stddev_of_a_count"] == [pytest.approx(np.sqrt(3 / (2 * promise["zcdp"])))]
    assert released.released is not None
    assert all(row["histogram"]["asked"] == 90 for row in released.released["models"].values())
    assert released.account.to_record()["promise"] == promise
    assert account_run(released.run, delta=1e-9).to_record()["promise"]["epsilon"] > 9


def test_its_report_is_written_again_when_asked_for(released: EvaluationResult, tmp_path: Path) -> None:
    assert released.run is not None and released.report is not None
    folders = [files.html.parent for files in (released.report, released.report.everything)]
    assert [folder.name for folder in folders] == ["report", "simulation"]
    before = {path: path.read_bytes() for folder in folders for path in folder.iterdir()}
    for folder in folders:
        (folder / "report.html").unlink()
    assert tacit.report(released.run).to_record() == released.report.to_record()
    assert {path: path.read_bytes() for folder in folders for path in folder.iterdir()} == before
    tacit.report(released.run.path, out=tmp_path)
    for folder in folders:
        pages = {name.name: content for name, content in before.items() if name.parent == folder}
        assert all(
            (tmp_path / folder.name / name).read_bytes() == pages[name] for name in pages if name != "counts.jsonl"
        )


def test_what_is_exact_changes_no_byte_of_what_may_be_published(
    released: EvaluationResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert released.run is not None
    path = released.run.path

    def written() -> tuple[dict[str, bytes], bytes]:
        files = tacit.resume(path, hardware=ONE).report  # from what is kept of each client
        return {
            path.name: path.read_bytes() for path in files.html.parent.iterdir()
        }, files.everything.json.read_bytes()

    published, whole = written()
    real = evaluation_run._exact
    with monkeypatch.context() as patch:
        patch.setattr(evaluation_run, "_exact", lambda of: real({name: each[:40] for name, each in of.items()}))
        assert written()[0] == published and written()[1] != whole
    assert written() == (published, whole)


def test_its_statement_holds(released: EvaluationResult) -> None:
    assert released.run is not None
    checked = tacit.verify(released.run.path / "report" / "statement.json")
    assert checked.holds, checked.failed


def test_what_is_released_is_near_what_is_exact_and_no_more(released: EvaluationResult) -> None:
    assert released.run is not None and released.released is not None
    for name, told in released.released["models"].items():
        exact = released.exact["models"][name]
        for what in ("mean", "worst_decile"):
            assert told[what].low - 0.005 <= exact[what].value <= told[what].high + 0.005
            wider = (told[what].high - told[what].low) - (exact[what].high - exact[what].low)
            assert wider > 0, "the noise is in the bars"
    folder, apart = released.run.path / "report", released.run.path / "simulation"
    page, record = (folder / "report.md").read_text(), json.loads((folder / "report.json").read_text())
    private = ("run", "simulation_only", "schema", "version")
    assert record == {name: value for name, value in released.to_record().items() if name not in private}
    assert "FIXED SEED" in page and "zCDP" in page and "SIMULATION" not in page and "simulation" not in page
    whole = (apart / "report.md").read_text()
    assert whole.startswith(page.rstrip()) and "## SIMULATION ONLY" in whole
    for name in ("accuracy", "change"):
        for source in ("released", "simulation"):
            assert (apart / f"{name}-{source}.png").exists() and f"{name}-{source}.png" in whole
            assert (folder / f"{name}-{source}.png").exists() == (source == "released")


def what_was_found(out: Path) -> tuple[str, str, list[Any]]:
    with Run.open(out) as opened:
        report = (out / "simulation" / "report.json").read_text().replace(str(out), "RUN")
        return report, opened.settings, [(row.digest, dict(row.releases[0])) for row in opened.steps()]


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
    "killed",
    [
        pytest.param("in the second group", marks=pytest.mark.nightly),
        *["in a line", "at the release", "at the report"],
    ],
)
def test_a_killed_evaluation_goes_on_to_the_same_result(
    released: EvaluationResult,
    world: tuple[Path, Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed: str,
) -> None:
    cache, model, other = world
    out = tmp_path / "cut"
    asked: dict[str, Any] = {"data": cache, "release": COST, "seed": 4, "out": out}

    def after_a_group(event: Event) -> None:
        if isinstance(event, Advanced):
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        if killed == "at the release":
            patch.setattr(Run, "commit", killed_at(out, Run.commit, lambda run: run.path))
        elif killed == "at the report":
            patch.setattr(analytics_run, "write_run", killed_at(out, analytics_run.write_run, lambda folder: folder))
        found_by(model, other, **asked, progress=after_a_group if "in " in killed else silent)
    lines = out / COUNTS
    assert lines.read_bytes().count(b"\n") == (64 if "in " in killed else 90)
    if killed == "in a line":
        lines.write_bytes(lines.read_bytes()[:-30])
    assert (out / "noise.key").exists()
    if killed == "in a line":
        found_by(model, other, **asked)
    else:
        resume_evaluation(out, hardware=ONE)
    assert released.run is not None and what_was_found(out) == what_was_found(released.run.path)
    counted = [json.loads(line)["client"] for line in lines.read_text().splitlines()]
    assert len(counted) == len(set(counted)) == 90


def test_the_same_call_shows_a_finished_run_and_another_is_refused(
    released: EvaluationResult, world: tuple[Path, Path, Path]
) -> None:
    assert released.run is not None
    cache, model, other = world
    out = released.run.path
    asked: dict[str, Any] = {"data": cache, "release": COST, "out": out}
    before = what_was_found(out)
    again = found_by(model, other, **asked, seed=4)
    assert again.to_record() == released.to_record() and what_was_found(out) == before
    assert resume_evaluation(out, hardware=ONE).to_record() == released.to_record()
    with pytest.raises(RunError, match="sentences was 64 and is now 8"):
        found_by(model, other, **asked, seed=4, sentences=8)
    recipe = (out / "settings.toml").read_text()
    for name in ("sha256", "split", "clients", "sentences", "words", "epsilon", "delta"):
        assert f"{name} = " in recipe, "what a release means can be read from its folder"


def test_without_a_cost_a_folder_keeps_the_counts_and_releases_nothing(
    world: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    cache, model, _ = world
    found = found_by(model, data=cache, clients=12, out=tmp_path / "r")
    assert found.found["promise"] == {"kind": "nothing"} and found.released is None
    assert found.account is not None and found.account.realised is None
    assert {file.name for file in (tmp_path / "r" / "report").iterdir()} == {
        "report.html",
        "report.md",
        "report.json",
        "record.json",
    }
    assert "NOTHING WAS RELEASED" in (tmp_path / "r" / "report" / "report.md").read_text()
    assert (tmp_path / "r" / "simulation" / "accuracy-simulation.png").exists()


def test_devices_may_randomise_their_own_reports(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    cache, model, other = world
    found = found_by(model, other, data=cache, release=ReleaseCost(local_epsilon=8.0), out=tmp_path / "r")
    assert found.found["promise"]["kind"] == "local" and found.found["promise"]["epsilon"] == 8.0
    assert found.run is not None and found.released is not None and found.account is not None
    parts = (found.released["models"], found.released["against_the_first"])
    assert [row["histogram"]["asked"] for part in parts for row in part.values()] == [30, 30, 30], "one query a device"
    (step,) = found.run.steps()
    assert [release_from(row).reports for row in step.releases] == [30, 30, 30], "each sum stands in the ledger"
    assert isinstance(found.account.realised, LocalGuarantee) and found.account.realised.user_epsilon == 8.0
    checked = tacit.verify(tmp_path / "r" / "report" / "statement.json")
    assert checked.holds, checked.failed


@pytest.mark.parametrize("cost", [COST, ReleaseCost(local_epsilon=8.0)], ids=["central", "local"])
def test_reports_summed_securely_are_the_same_and_the_statement_says_how(
    world: tuple[Path, Path, Path], cost: ReleaseCost, tmp_path: Path
) -> None:
    cache, model, other = world
    given: dict[str, Any] = {"data": cache, "seed": 3, "clients": 40}
    plain = found_by(model, other, release=cost, out=tmp_path / "plain", **given)
    hidden = replace(cost, secure_sum=SimulatedProtocol(devices=5))
    secure = found_by(model, other, release=hidden, out=tmp_path / "secure", **given)
    told, of_plain = dict(secure.found["promise"]), dict(plain.found["promise"])
    assert of_plain.pop("aggregation") == "simulated in the clear"
    assert told.pop("aggregation").startswith("simulated secure aggregation")
    assert told == of_plain
    page = (tmp_path / "secure" / "report" / "report.md").read_text()
    assert "of each group 5 devices" in page and "hides nothing from whoever runs it" in page
    if cost.local_epsilon is None:  # randomised reports are drawn in another order
        assert secure.released == plain.released
    text = (tmp_path / "secure" / "report" / "statement.json").read_text()
    assert "secure aggregation by pairwise masks: of each group 5 devices" in text
    assert "u0060" not in text, "quotation marks that no statement may have"
    assert tacit.verify(tmp_path / "secure" / "report" / "statement.json").holds
    again = found_by(model, other, release=hidden, out=tmp_path / "secure", **given)
    assert again.released == secure.released


def test_any_network_is_evaluated_as_a_job(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    cache, model, _ = world
    words = Cache.open(cache).vocabulary_path.read_bytes()
    write_model(tmp_path / "gru", Gru(), Gru().init(jax.random.key(1)), words)
    found = found_by(model, tmp_path / "gru", data=cache, clients=12)
    assert set(found.exact["models"]) == {str(model), str(tmp_path / "gru")}


def test_bad_input_is_refused_before_anything_is_written(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    cache, model, _ = world
    with pytest.raises(InputError, match="name one with --out"):
        found_by(model, data=cache, release=COST)
    with pytest.raises(InputError, match="named twice"):
        found_by(model, model, data=cache)
    with pytest.raises(InputError, match="say nothing about many"):
        found_by(model, data=cache, clients=1, out=tmp_path / "r")
    for cost, complaint in (({"zcdp": 0.0}, "above 0"), ({"zcdp": 1.0, "delta": 5.0}, "not a probability")):
        with pytest.raises(InputError, match=complaint):
            ReleaseCost(**cost)
    for changed in ({"clients": -1}, {"sentences": 0}, {"words": 0}):
        with pytest.raises(InputError, match="must be 0 or more"):
            EvaluationSettings(**changed)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seed=-1"):
        found_by(model, data=cache, out=tmp_path / "r", seed=-1)
    assert not (tmp_path / "r").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").touch()
    with pytest.raises(RunError, match="exists already"):
        found_by(model, data=cache, release=COST, out=tmp_path / "full", progress=_nobody_is_counted)
    with pytest.raises(InputError, match="holds no model"):
        found_by(tmp_path, data=cache)
    _, stranger = typists_and_model(tmp_path, 4, [*WORDS[:-1], "elsewhere"])
    with pytest.raises(InputError, match="different words"):
        found_by(model, stranger, data=cache)


def _nobody_is_counted(event: Event) -> None:
    raise AssertionError(event)


def test_the_command(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """From its options to what it prints, and the account of the run by its own command."""
    cache, model, other = map(str, world)
    out = str(tmp_path / "r")
    asked = ["evaluate", model, other, "--data", cache, "--clients", "12", "--seed", "4", "--workers", "1"]

    def said(*command: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == code, result.output
        return result.output.replace("\n", " ")

    for words in ("SIMULATION ONLY", "decile", "better for", "NOTHING WAS RELEASED"):
        assert words in said(*asked)
    released = [*asked, "--epsilon", "9", "--out", out]
    assert "RELEASED (central): epsilon 9" in said(*released) and "publish (what was" in said(*released)
    printed = CliRunner().invoke(app, [*released, "--json"]).stdout
    record = json.loads(printed)
    assert (record["schema"], record["version"], record["asked"], record["run"]) == ("tacit.evaluation", 1, 12, out)
    assert json.loads(CliRunner().invoke(app, ["account", "run", out, "--json"]).stdout)["promise"] == record["promise"]
    assert "3 histograms" in said("account", "run", out)
    assert "each say the whole price" in said(*released, "--zcdp", "1", code=2)
    assert "nothing is; give --zcdp" in said(*asked, "--secure-sum", "masks", code=2)


# -- a trigram of a cache's text ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def typists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whose training clients can be counted."""
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache").path


def test_a_trigram_of_a_cache_is_a_model_too(typists: Path) -> None:
    """Word by word it is `BackedOffTrigram`, whose probabilities another test compares with a slow one."""
    name = f"trigram:{typists}"
    result = found_by(Path(name), data=typists)
    opened = Cache.open(typists)
    trigram = BackedOffTrigram.train(opened, opened.clients("train"), vocabulary=opened.manifest.vocabulary.size)
    held_out = HeldOut.read(opened, opened.clients("test"), sentences=64, words=20)
    slow = evaluate_reader(TrigramReader(trigram), held_out)
    assert result.exact["models"][name]["pooled"] == pytest.approx(slow.total.value("top1_accuracy"))
    done = CliRunner().invoke(app, ["evaluate", name, "--data", str(typists), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["models"] == [name]


def test_a_release_about_clients_text_that_was_counted_is_refused(typists: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"counts clients' text, to whom it promises nothing.*leave the price out"):
        found_by(Path(f"trigram:{typists}"), data=typists, release=COST, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_about_public_text_is_released_and_gone_on_with(
    typists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = TextsOf({f"text {n}": ["waa wab wac", "wad waa"] for n in range(60)}, description="public text of a test")
    same = VocabularyChoice(file=Cache.open(typists).vocabulary_path)
    assert tacit.import_data(texts, tmp_path / "public", vocabulary=same).manifest.public
    monkeypatch.chdir(tmp_path)  # its path is relative, and the run goes on from elsewhere
    first = found_by(Path("trigram:public"), data=typists, release=COST, out=tmp_path / "run")
    assert first.released is not None and tacit.verify(tmp_path / "run").holds
    monkeypatch.chdir("/")
    again = resume_evaluation(tmp_path / "run", hardware=ONE)
    assert again.released is not None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bigram:{cache}", "'bigram' is no kind of model that is counted here; give trigram:CACHE"),
        ("trigram:", "trigram: names no cache; give trigram:CACHE"),
        ("trigram:nowhere", "no cache"),
        ("Trigram:{cache}", "'Trigram' is no kind"),
        ("[/red]:x", "model"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "suggest"])
def test_a_kind_that_is_none_is_one_line(typists: Path, command: str, name: str, message: str) -> None:
    more = ["--data", str(typists)] if command == "evaluate" else ["x"]
    done = CliRunner().invoke(app, [command, name.format(cache=typists), *more])
    assert done.exit_code == 2 and done.stderr.count("\n") == 1 and done.stderr.startswith("error: "), done.output
    assert message in done.stderr
