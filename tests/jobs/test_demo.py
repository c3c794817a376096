"""`tacit.demo` and its command, with few people and models that learned little: all baselines, and it goes on."""

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.support.jobs.few_shipped import small_demo
from tests.support.jobs.jobs_with_runs import Stop, content
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.errors import RunError
from tacit.evaluation.comparison_models import CLIENTS, FREE, PUBLIC_NETWORK, PUBLIC_NGRAM
from tacit.jobs.demo import PROMPTS, DemoResult
from tacit.population.cohorts import check_population
from tacit.progress import Event, StageBegan
from tacit.recipe import Recipe
from tacit.recipe.mixture import MixtureRecipe
from tacit.reports import demo as pages
from tacit.reports.blocks import Paragraph
from tacit.text.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        small_demo(patch, tmp_path_factory.mktemp("shipped"))
        yield tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def shown(world: Path) -> DemoResult:
    return tacit.demo(world / "demo", quick=True)


def test_all_models_are_measured_on_the_same_people(shown: DemoResult) -> None:
    record = shown.to_record()
    assert json.loads(json.dumps(record)) == record and record["schema"] == "tacit.demo"
    models = [str(shown.counts.folder), str(shown.private.run.path), str(shown.without_noise.run.path)]
    rungs = shown.ladder.ladder.rungs
    assert {PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, CLIENTS, *models} <= set(rungs)
    words = [shown.ladder.ladder.sums(name)["words"].tolist() for name in rungs]
    assert all(each == words[0] for each in words)


def test_each_private_model_promises_epsilon_one_and_both_together_more(shown: DemoResult) -> None:
    assert 0.99 <= shown.counts.epsilon <= 1 and shown.counts.promise.delta == 1e-5
    private = shown.private.to_record()["privacy"]
    assert private["realised"]["epsilon"] <= 1 and private["delta"] == 1e-5
    assert not shown.without_noise.summary().private and shown.private.summary().private
    together = shown.together
    assert set(together.statements) == {"counts", "rounds"}
    assert together.composition.zcdp == pytest.approx(sum(together.costs().values()))
    assert 1.3 < together.epsilon < 2


def test_the_rounds_differ_in_their_noise_alone(shown: DemoResult) -> None:
    private, plain = (Recipe.from_toml(each.run.settings) for each in (shown.private, shown.without_noise))
    other = {difference.partition(" ")[0] for difference in private.differences(plain)}
    assert {name for name in other if not name.startswith("privacy.")} == {"name", "evaluation.baselines"}
    assert private.privacy.clip_norm == plain.privacy.clip_norm
    assert private.rounds.report_goal == len(tacit.open_data(private.data.cache).clients("train")) // 8


def test_the_last_screen_says_what_was_forecast_and_what_was_measured(shown: DemoResult) -> None:
    """In one line, of both private models; and that the two mixtures of what is free have weights of their own."""
    told = [each.text for each in shown.blocks() if isinstance(each, Paragraph)]
    (line,) = [each for each in told if each.startswith("In points of top-1 over the best free model: ")]
    recorded = shown.to_record()["forecast"]
    for name, run in (("counts", shown.counts.folder), ("rounds", shown.private.run.path)):
        gain = 100 * shown.ladder.ladder.gain(str(run), what="top1", of="predicted").value
        judgement = shown.forecast[name]
        assert f"{name} were forecast {judgement.in_brief()} and measured {gain:+.2f}" in line
        assert recorded[name]["judgement"] == judgement.verdict
    assert shown.forecast["rounds"].says().startswith(shown.private.run.metadata.foreseen.partition(" The noise")[0])
    assert any(
        f"{shown.ladder.ladder.said(FREE)}, weights that validation people's text chose, in its favour. The forecast's "
        "weights were fitted on held-out public text." in each
        for each in told
    )


def test_suggested_are_words_of_the_novels(shown: DemoResult) -> None:
    vocabulary = set(Vocabulary.load(shown.counts.folder.with_name("demo-novels") / "vocabulary.json").words)
    for suggestions in shown.suggestions().values():
        assert [prompt for prompt, _ in suggestions.after] == list(PROMPTS)
        assert {each.word for _, words in suggestions.after for each in words} <= vocabulary


def test_the_command_says_it_in_words_and_goes_on_from_what_is_there(shown: DemoResult) -> None:
    out = shown.private.run.path
    runs = [out, *(out.with_name(f"demo-{end}") for end in ("without-noise", "start"))]
    runs.append(out.with_name("demo-counts") / "counts")
    before = {run: content(run) for run in runs}
    said = CliRunner().invoke(app, ["demo", "--quick", "--out", str(out)])
    assert said.exit_code == 0, said.output
    told = " ".join(said.output.split())
    gain = shown.ladder.ladder.gain(str(shown.counts.folder), what="top1", of="predicted")
    for words in (
        f"{100 * gain.value:+.2f} points of top-1 ({100 * gain.low:+.2f} to {100 * gain.high:+.2f})",
        "free: both mixed",
        "the odds of any guess about their text change at most e^1 = 2.72 times",
        f"{shown.ladder.clients:,} people",
        f"tacit verify {out}-counts; tacit verify {out}",
        f"{out}/report/report.html",
        "a Parquet file with columns client_id (who typed) and text (what)",
    ):
        assert words in told
    assert {run: content(run) for run in before} == before
    assert tacit.verify(out).holds


@pytest.mark.parametrize(
    ("gain", "says"),
    [((0.02, 0.01, 0.03), "Yes: "), ((-0.02, -0.03, -0.01), "No: "), ((0.01, -0.01, 0.03), "cannot tell")],
)
def test_the_answer_follows_from_the_interval(
    gain: tuple[float, float, float], says: str, shown: DemoResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(shown.ladder.ladder), "gain", lambda *_, **__: gain)
    said = pages.answer(shown.ladder.ladder, str(shown.counts.folder), clients=300, epsilon=1.0)
    assert says in said and "300 people at epsilon 1" in said


@pytest.mark.long
@pytest.mark.parametrize("stage", [pytest.param("pre-training", marks=pytest.mark.nightly), "training"])
def test_stopped_and_called_again_it_goes_on(stage: str, shown: DemoResult, tmp_path: Path) -> None:
    begun: list[str] = []

    def stop(event: Event) -> None:
        if isinstance(event, StageBegan):
            begun.append(event.stage)
        elif begun and begun[-1] == stage:
            raise Stop

    with pytest.raises(Stop):
        tacit.demo(tmp_path / "demo", quick=True, progress=stop)
    cached = (tmp_path / "demo-data").stat().st_ino
    again = tacit.demo(tmp_path / "demo", quick=True)
    assert again.private.run.finished and again.without_noise.run.finished
    sums, before = (each.ladder.ladder.sums(FREE) for each in (again, shown))
    assert sums["top1"].tolist() == before["top1"].tolist() and (tmp_path / "demo-data").stat().st_ino == cached


def another(out: Path) -> None:
    """A run of something else, where the demo's public model would be missing."""
    (out / "run.db").parent.mkdir()
    (out / "run.db").write_bytes(b"")


def full(out: Path) -> None:
    """A folder of something else, where the run without noise would be."""
    (out.with_name("demo-without-noise") / "kept").mkdir(parents=True)


def counted(out: Path) -> None:
    """A folder of something else, where the counts would be."""
    (out.with_name("demo-counts") / "kept").mkdir(parents=True)


@pytest.mark.parametrize("there", [another, full, counted])
def test_what_stands_in_the_way_is_refused_first(there: Callable[[Path], Any], world: Path, tmp_path: Path) -> None:
    there(tmp_path / "demo")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunError, match="another --out"):
        tacit.demo(tmp_path / "demo", quick=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="another --out"):
        tacit.demo(".")


def test_the_shipped_recipes_promise_epsilon_one_to_all_who_are_shipped() -> None:
    counts = MixtureRecipe.from_toml((files("tacit") / "demo-counts.toml").read_text(encoding="utf-8"))
    rounds = Recipe.from_toml((files("tacit") / "demo.toml").read_text(encoding="utf-8"))
    train = 13_427  # of 16,827 people
    assert counts.privacy.epsilon == rounds.privacy.epsilon == 1
    assert counts.privacy.delta == rounds.privacy.delta == 1e-5 < 1 / train
    participation = rounds.rounds.participation()
    for goal in (rounds.rounds.report_goal, train // rounds.rounds.min_separation):
        check_population(participation, clients=train, report_goal=goal)
