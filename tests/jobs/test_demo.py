"""`tacit.demo` and its command, in a world of sixty tiny modules: three models, two sentences, and it goes on."""

import json
import random
import sysconfig
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.support.jobs.jobs_with_runs import Stop, content
from typer.testing import CliRunner

import tacit
import tacit.data.formats.manuals
import tacit.jobs.demo
import tacit.jobs.import_data
from tacit.cli.commands import app
from tacit.errors import RunError
from tacit.jobs.demo import PROMPTS, DemoResult
from tacit.population.cohorts import check_population
from tacit.progress import Event, StageBegan
from tacit.recipe import Recipe

WORDS = [f"{first}{second}" for first in ("ba", "do", "ki", "lu", "me", "no") for second in ("na", "re", "si", "to")]
MODULES = 120
OTHERS = ("manuals", "data", "start", "without-noise")


def sentences(of: random.Random, many: int) -> str:
    return "\n\n".join(" ".join(of.choices(WORDS, k=of.randint(3, 8))) + "." for _ in range(many))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Python of a few modules with public text of as few words."""
    of, library = random.Random(1), tmp_path_factory.mktemp("library")
    for number in range(MODULES):
        (library / f"module{number}.py").write_text(f'"""{sentences(of, 4)}"""\n')
    public = tuple(sentences(of, 3) for _ in range(3_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysconfig, "get_path", lambda name: str(library))
        for module in (tacit.data.formats.manuals, tacit.jobs.import_data):
            patch.setattr(module, "manuals", lambda: public)
        patch.setattr(tacit.jobs.demo, "VOCABULARY", len(WORDS) + 4)
        patch.setattr(tacit.jobs.demo, "PUBLIC_SENTENCES", 6_400)
        yield tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def shown(world: Path) -> DemoResult:
    return tacit.demo(world / "demo", quick=True)


def test_three_models_are_measured_on_the_same_clients(shown: DemoResult) -> None:
    record = shown.to_record()
    assert json.loads(json.dumps(record)) == record and record["schema"] == "tacit.demo"
    tested = (shown.public, shown.private.test, shown.without_noise.test)
    assert {(of["clients"], of["words"]) for of in tested} == {(shown.public["clients"], shown.public["words"])}
    assert record["kept"] == shown.private.test["top1_accuracy"] / shown.without_noise.test["top1_accuracy"]
    assert record["private"]["privacy"]["realised"]["epsilon"] <= 1 and record["private"]["privacy"]["delta"] == 1e-5
    assert not shown.without_noise.summary().private and shown.private.summary().private


def test_the_runs_differ_in_their_noise_alone(shown: DemoResult) -> None:
    private, plain = (Recipe.from_toml(each.run.settings) for each in (shown.private, shown.without_noise))
    other = {difference.partition(" ")[0] for difference in private.differences(plain)}
    assert {name for name in other if not name.startswith("privacy.")} == {"name", "evaluation.baselines"}
    assert private.privacy.clip_norm == plain.privacy.clip_norm
    assert private.rounds.report_goal == len(tacit.open_data(private.data.cache).clients("train")) // 8


def test_suggested_are_words_of_the_public_vocabulary(shown: DemoResult) -> None:
    after = shown.suggestions().after
    assert [prompt for prompt, _ in after] == list(PROMPTS)
    assert {each.word for _, words in after for each in words} <= set(WORDS)


def test_the_command_says_it_in_words_and_goes_on_from_what_is_there(shown: DemoResult) -> None:
    out = shown.private.run.path
    before = {place: content(place) for place in (out, out.with_name("demo-without-noise"))}
    said = CliRunner().invoke(app, ["demo", "--quick", "--out", str(out)])
    assert said.exit_code == 0, said.output
    told = " ".join(said.output.split())
    for words in (
        f"{shown.kept:.1%} of the accuracy without noise is kept",
        f"{shown.private.test['top1_accuracy']:.2%}",
        "1 at delta 1e-05",
        "the odds of any guess about its docstrings change at most e^1 = 2.72 times",
        f"tacit verify {out}/report/statement.json",
        f"{out}/report/report.html",
        "Private training adds little to the public model here, with noise or without",
        "a Parquet file with columns client_id (who typed) and text (what)",
    ):
        assert words in told
    assert {place: content(place) for place in before} == before
    assert tacit.verify(out).holds


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
    assert again.public == pytest.approx(dict(shown.public)) and (tmp_path / "demo-data").stat().st_ino == cached


def another(out: Path) -> None:
    """A run of something else, where the demo's public model would be missing."""
    (out / "run.db").parent.mkdir()
    (out / "run.db").write_bytes(b"")


def full(out: Path) -> None:
    """A folder of something else, where the run without noise would be."""
    (out.with_name("demo-without-noise") / "kept").mkdir(parents=True)


@pytest.mark.parametrize("there", [another, full])
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


@pytest.mark.parametrize("modules", [4_000, 7_000])
def test_the_shipped_recipe_promises_epsilon_one_to_whoever_installs_it(modules: int) -> None:
    recipe = Recipe.from_toml((files("tacit") / "demo.toml").read_text(encoding="utf-8"))
    train = modules * 8 // 10
    assert recipe.privacy.epsilon == 1 and recipe.privacy.delta == 1e-5 < 1 / train
    participation = recipe.rounds.participation()
    for goal in (recipe.rounds.report_goal, train // recipe.rounds.min_separation):
        check_population(participation, clients=train, report_goal=goal)
