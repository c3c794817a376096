"""The ladder of a run and of a cache: rounds beside counts at their prices, what is refused, and the command."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
import typer
from tests.support.jobs.mixture_runs import TRAINING, Parts, parts_at, recipe_of, values
from tests.support.made_runs import write_run
from tests.support.training.tiny import tiny_recipe
from typer.testing import CliRunner

import tacit
from tacit.cli.ladder import ladder as command
from tacit.errors import InputError
from tacit.evaluation.comparison_models import (
    BOTH,
    BOTH_AND_NETWORK,
    CLIENTS,
    FREE,
    PUBLIC_NETWORK,
    PUBLIC_NGRAM,
    WITH_NGRAM,
)
from tacit.jobs.ladder import LadderResult, LadderSettings, Price, price_of
from tacit.jobs.train.job import TrainingResult
from tacit.jobs.train.mixture import MixtureResult
from tacit.networks.models import PROMISE
from tacit.privacy import Tree
from tacit.privacy.composition import Composition
from tacit.progress import Event, StageBegan, StageEnded
from tacit.runs.metadata import DeploymentUsed

HOW = LadderSettings(sentences=8, words=6, judged=8, orders=(2, 3))
app = typer.Typer()
app.command()(command)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return parts_at(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def rounds(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    sections = {name: each for name, each in TRAINING.items() if name != "privacy"}
    recipe = tiny_recipe(parts.typed, **sections)
    return tacit.train(recipe, tmp_path_factory.mktemp("rounds") / "run", init=parts.network)


@pytest.fixture(scope="module")
def counts(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> MixtureResult:
    recipe = recipe_of(values(parts, mixture={"network": None}))
    return tacit.train_mixture(recipe, tmp_path_factory.mktemp("counts") / "run")


@pytest.fixture(scope="module")
def side_by_side(rounds: TrainingResult, counts: MixtureResult) -> LadderResult:
    return tacit.ladder(rounds.run, models=[counts.folder])


def test_rounds_and_counts_stand_side_by_side_with_their_prices(
    rounds: TrainingResult, counts: MixtureResult, side_by_side: LadderResult
) -> None:
    account = tacit.account_run(rounds.run)
    assert isinstance(account.realised, Composition)
    run, counted = str(rounds.run.path), str(counts.folder)
    spent = Price(epsilon=account.realised.epsilon(account.delta), delta=account.delta)
    bought = Price(epsilon=counts.epsilon, delta=1e-5)
    expected = {run: spent, counted: bought, CLIENTS: Price(epsilon=math.inf), PUBLIC_NGRAM: Price(epsilon=0.0)}
    for name, price in {**expected, run + WITH_NGRAM: spent, counted + WITH_NGRAM: bought}.items():
        assert side_by_side.price(name) == price, name
        assert str(price) in str(side_by_side)
    rungs = side_by_side.to_record()["rungs"]
    assert {PUBLIC_NETWORK, FREE, *expected} <= rungs.keys()
    assert (rungs[run]["private"], rungs[CLIENTS]["private"]) == (True, False)
    assert (rungs[run]["epsilon"], rungs[CLIENTS]["epsilon"], rungs[FREE]["epsilon"]) == (spent.epsilon, "inf", 0.0)
    rows = [PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, CLIENTS, BOTH, BOTH_AND_NETWORK]
    assert list(rungs) == [*rows, run, run + WITH_NGRAM, counted, counted + WITH_NGRAM]
    assert len({len(side_by_side.ladder.sums(name)["words"]) for name in (run, counted, CLIENTS)}) == 1


def test_what_is_free_and_what_nobody_knows(parts: Parts, rounds: TrainingResult, tmp_path: Path) -> None:
    assert price_of(parts.ngram) == price_of(parts.network) == Price(epsilon=0.0)
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in (rounds.run.path / "model").iterdir():
        if file.name != PROMISE:
            (bare / file.name).write_bytes(file.read_bytes())
    assert price_of(bare) is None
    found = tacit.ladder(parts.typed, public=parts.public, models=[bare], settings=HOW)
    assert found.to_record()["rungs"][str(bare)]["epsilon"] is None and "unknown" in str(found)


def test_rounds_without_noise_are_without_privacy(parts: Parts, tmp_path: Path) -> None:
    sections = {name: each for name, each in TRAINING.items() if name != "privacy"}
    recipe = tiny_recipe(parts.typed, **sections, privacy={"mechanism": {"name": "none"}})
    run = tacit.train(recipe, tmp_path / "run").run
    assert price_of(run.path) == Price(epsilon=math.inf, delta=tacit.account_run(run).delta)
    found = tacit.ladder(run)
    assert found.to_record()["rungs"][str(run.path)]["private"] is False
    assert f"{run.path}, without privacy" in str(found)


def test_a_promise_that_does_not_hold_is_refused(counts: MixtureResult, tmp_path: Path) -> None:
    for file in (counts.folder / "model").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    promise = json.loads((tmp_path / PROMISE).read_text())
    (tmp_path / PROMISE).write_text(json.dumps({**promise, "epsilon": 0.1}))
    with pytest.raises(InputError, match=r"promise.* does not hold \(epsilon.*mix the model again"):
        price_of(tmp_path)


def test_stages_are_told(parts: Parts) -> None:
    told: list[Event] = []
    tacit.ladder(parts.typed, public=[parts.public], settings=HOW, progress=told.append)
    stages = [(each.stage, each.total) for each in told if isinstance(each, StageBegan)][-2:]
    assert stages == [("counting n-grams", 2), ("measuring every rung", None)]
    assert told[-1] == StageEnded("measuring every rung")


def test_what_is_not_free_is_no_free_rung(parts: Parts, rounds: TrainingResult) -> None:
    with pytest.raises(InputError, match=r"nothing says that the model in .* so it is not free"):
        tacit.ladder(parts.typed, public=parts.public, network=rounds.run.path, settings=HOW)
    with pytest.raises(InputError, match="is clients'"):  # a run vouches for its own public text alone
        tacit.ladder(rounds.run, public=parts.typed)


def test_a_model_is_named_once(parts: Parts, rounds: TrainingResult) -> None:
    with pytest.raises(InputError, match="was named twice; name each once"):
        tacit.ladder(parts.typed, models=[parts.ngram, parts.ngram], settings=HOW)
    with pytest.raises(InputError, match="a run's own is always there"):
        tacit.ladder(rounds.run, models=[rounds.run.path])
    with pytest.raises(InputError, match=r"settings= \(--sentences to --orders\) are of a cache"):
        tacit.ladder(rounds.run, settings=HOW)


def test_nobody_has_the_text_of_real_devices(tmp_path: Path) -> None:
    used = asdict(DeploymentUsed(population="typing", devices=100, rounds=None, timer_seconds=3600.0))
    run = write_run(tmp_path / "run", strategy=Tree(), deployment=used)
    with pytest.raises(InputError, match="real devices, whose text nobody has"):
        tacit.ladder(run)


def test_the_command_prints_what_the_job_finds(
    rounds: TrainingResult, counts: MixtureResult, side_by_side: LadderResult
) -> None:
    asked = [str(rounds.run.path), "--model", str(counts.folder)]
    shown = CliRunner().invoke(app, asked)
    for words in (
        "epsilon",
        "top-1 of all words, %",
        "top-3 of all words, %",
        "The best free model",
        "SIMULATION ONLY: exact numbers",
    ):
        assert words in shown.stdout, shown.output
    assert "counting n-grams: 2 of 2" in shown.stderr
    plain = CliRunner().invoke(app, [*asked, "--json"])
    assert json.loads(plain.stdout) == json.loads(json.dumps(side_by_side.to_record())) and not plain.stderr


def test_the_command_measures_a_cache(parts: Parts) -> None:
    given = ["--public", parts.public, "--network", parts.network, "--model", parts.ngram, "--orders", "2,3"]
    found = CliRunner().invoke(app, [str(each) for each in (parts.typed, *given, "--words", 6, "--json")])
    record = json.loads(found.stdout)
    assert {PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, CLIENTS, str(parts.ngram)} <= record["rungs"].keys()
    assert record["what"].startswith("SIMULATION ONLY")
    refused = CliRunner().invoke(app, [str(parts.typed), "--sentences", "0"])
    assert refused.exit_code == 2 and "sentences=0 must be 1 or more" in refused.stderr
