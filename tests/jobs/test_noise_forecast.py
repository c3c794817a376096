"""What the noise will do is told before training, what is too noisy refused; what drowns is said and can be stopped."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.training.tiny import tiny_cache, tiny_recipe

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import CacheError, InputError, ParticipationError
from tacit.jobs.resume import resume
from tacit.jobs.train.job import train
from tacit.jobs.train.noise_forecast import CODE, NoiseForecastResult, forecast_for_record, noise_forecast, tell
from tacit.planning import noise_forecast as curve
from tacit.planning.judgement import FreeModel
from tacit.progress import Event, Noted, Warned
from tacit.recipe import Recipe
from tacit.reports.blocks import Labels, Paragraph
from tacit.reports.figure import Line
from tacit.runs.diagnostics import MARGIN, worse_than_start

ONE = Hardware(workers=1)
LOUD = 300.0


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def recipe(cache: Cache, noise: float | None, **sections: Any) -> Recipe:
    name = {"mechanism": {"name": "none"}} if noise is None else {"mechanism": {"name": "tree"}}
    much = {} if noise is None else {"noise_multiplier": noise}
    return tiny_recipe(cache.path, privacy={**name, **much}, **sections)


def told(cache: Cache, noise: float | None, out: Path, **sections: Any) -> list[Event]:
    heard: list[Event] = []
    train(recipe(cache, noise, **sections), out, hardware=ONE, until=1, progress=heard.append)
    return [each for each in heard if isinstance(each, Noted | Warned) and each.code == CODE]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if runs of nine rounds had been measured."""
    for name in ("FEWEST_ROUNDS", "FEWEST_ROUNDS_OF_PUBLIC"):
        monkeypatch.setattr(curve, name, 9)


def noise_at(cache: Cache, ratio: float) -> float:
    """The noise multiplier at which the tiny recipe has this ratio."""
    found = noise_forecast(recipe(cache, 1.0)).noise_forecast
    assert found is not None
    return ratio / found.ratio


@pytest.mark.usefixtures("measured")
def test_what_works_is_noted_what_costs_warned_and_without_noise_nothing_is_said(cache: Cache, tmp_path: Path) -> None:
    (quiet,) = told(cache, noise_at(cache, 0.1), tmp_path / "quiet")
    assert isinstance(quiet, Noted) and "of the accuracy without noise will be kept" in quiet.message
    (noisy,) = told(cache, noise_at(cache, 0.9), tmp_path / "noisy")
    assert isinstance(noisy, Warned) and "Ways out: " in noisy.message and "epsilon" in noisy.message
    assert noisy.message.startswith("NOT COMPARED. ") and quiet.message.startswith("NOT COMPARED. ")
    assert told(cache, None, tmp_path / "none") == []


def test_what_is_too_noisy_is_refused_before_anything_is_written(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"TOO NOISY\. .* The noise is .* Ways out: .*epsilon.*--anyway"):
        train(recipe(cache, LOUD), tmp_path / "run", hardware=ONE)
    assert not (tmp_path / "run").exists()


def test_anyway_it_is_trained_said_to_drown_and_stopped_where_that_was_asked(cache: Cache, tmp_path: Path) -> None:
    heard: list[Event] = []
    loud = recipe(cache, LOUD, evaluation={"every": 2})
    stopped = train(loud, tmp_path / "run", hardware=ONE, anyway=True, stop_if_diverged=True, progress=heard.append)
    warned = {each.code: each.message for each in heard if isinstance(each, Warned)}
    assert CODE in warned and "knows nothing" in warned["noise dominates"]
    assert 2 <= stopped.rounds < 9 and stopped.report is None
    first, failed = stopped.blocks()[:2]
    assert isinstance(first, Paragraph) and f"stopped after {stopped.rounds} of 9 rounds" in first.text
    assert isinstance(failed, Labels) and [label.name for label in failed.labels] == ["NOISE DOMINATES"]
    whole = resume(stopped.run.path, hardware=ONE)
    assert whole.rounds == 9  # type: ignore[attr-defined]
    assert "NOISE DOMINATES" in (stopped.run.path / "simulation" / "report.html").read_text(encoding="utf-8")
    assert "NOISE DOMINATES" not in (stopped.run.path / "report" / "report.html").read_text(encoding="utf-8")


def test_stopping_changes_nothing_where_nothing_drowns(cache: Cache, tmp_path: Path) -> None:
    assert train(recipe(cache, 0.05), tmp_path / "run", hardware=ONE, stop_if_diverged=True).rounds == 9


@pytest.mark.usefixtures("measured")
def test_a_delta_that_allows_publishing_a_clients_text_is_warned_of_before_training(
    cache: Cache, tmp_path: Path
) -> None:
    noise, heard = noise_at(cache, 0.1), list[Event]()
    named = {"mechanism": {"name": "tree"}, "noise_multiplier": noise}
    careless = tiny_recipe(cache.path, privacy={**named, "delta": 0.05})  # of 40 clients
    train(careless, tmp_path / "run", hardware=ONE, until=1, progress=heard.append)
    assert [each.code for each in heard if isinstance(each, Warned)] == ["delta"]
    assert "DELTA TOO LARGE: delta 0.05 is 1/40 or more" in noise_forecast(careless)._repr_html_()
    assert noise_forecast(tiny_recipe(cache.path, privacy={**named, "delta": 0.02})).warnings == ()


def test_the_job_says_the_same_and_opens_the_cache_alone(cache: Cache, tmp_path: Path) -> None:
    found = noise_forecast(recipe(cache, LOUD))
    assert isinstance(found, NoiseForecastResult) and found.judgement == "too noisy" and len(found.ways) == 4
    assert "use a model of public text as it is, at epsilon 0" in found.ways[0]
    assert "a report goal of 40 at a separation of 1, which keeps 90% from epsilon" in found.ways[1]  # all, every round
    record = found.to_record()
    assert record["kept"] == 0.0 and record["working_zcdp"] > record["zcdp"] and record["clients"] == 40
    assert found.figure().panels and "TOO NOISY" in found._repr_html_()
    found.save_figure(tmp_path / "outlook.svg")
    with pytest.raises(CacheError):
        noise_forecast(recipe(cache, LOUD), data=tmp_path / "none")


def test_its_page_draws_what_is_known(cache: Cache, tmp_path: Path) -> None:
    """The judgement once, the price of each round up to the planned one; of what is not known no figure."""
    found = noise_forecast(recipe(cache, LOUD))
    files = found.write_report(tmp_path / "page")
    page = files.html.read_text()
    assert page.count("TOO NOISY") == 1 and page.index("TOO NOISY") < page.index("<svg") < page.index("way out")
    assert {path.name for path in files.figures} == {"noise_forecast.png", "price.png"}
    (price,) = [each for each in found.figures() if each.name == "price"]
    spent = price.panels[0].marks[0]
    assert isinstance(spent, Line) and found.noise_forecast is not None
    assert spent.y[-1] == found.to_record()["zcdp"] and list(spent.y) == sorted(spent.y) and spent.y[0] == 0
    assert [each.name for each in replace(found, extrapolated=True).figures()] == ["noise_forecast"], "nobody's price"
    unknown = replace(found, noise_forecast=None, unknown="it was never measured")
    assert unknown.figures() == () and "it was never measured" in unknown.answer()


@pytest.mark.usefixtures("measured")
def test_a_public_model_bears_less_noise_and_is_to_be_compared_with(cache: Cache) -> None:
    made = recipe(cache, noise_at(cache, 0.1))
    network, plan = made.model.settings(cache.manifest.vocabulary.size), made.plan(made.matrix())
    random, public = (forecast_for_record(made, plan, network, clients=40, public=first) for first in (False, True))
    assert random.noise_forecast and public.noise_forecast and public.noise_forecast.ratio == pytest.approx(0.15)
    assert random.noise_forecast.noisiness == "quiet" and public.noise_forecast.noisiness == "noisy"
    assert random.judgement == public.judgement == "not compared", "no text was measured"
    assert "name the text of its first model" in public.ways[0] and "--init" in random.ways[0]
    free = FreeModel(weights={"public n-gram": 1.0}, text="manuals", top1=0.2, network=0.2, sentences=9)
    for ratio, kept, word in ((0.4, 0.78, "may not pay off"), (0.5, 0.63, "no gain expected"), (0.01, 1.0, "worth it")):
        loud = recipe(cache, noise_at(cache, ratio))
        plan = loud.plan(loud.matrix())
        noised = forecast_for_record(loud, plan, network, clients=40, public=True, free=free)
        assert noised.noise_forecast and noised.noise_forecast.share_kept == pytest.approx(kept, abs=0.01)
        assert noised.judgement == word, "with 33% more to learn, 0.78 is still better"
        assert "public n-gram. It is made of manuals. Its top-1 is 20.0%" in noised.says
    heard: list[Event] = []
    quiet = recipe(cache, noise_at(cache, 0.01))
    better = replace(free, top1=0.4)
    told = forecast_for_record(quiet, quiet.plan(quiet.matrix()), network, clients=40, public=True, free=better)
    tell(told, heard.append, anyway=False)
    assert isinstance(heard[-1], Warned) and heard[-1].message.startswith("NO GAIN EXPECTED. Expected top-1: ")
    assert told.ways == (told.judged.way_out,), "less noise would not help"
    assert "Way out: use the best free model as it is" in heard[-1].message


def test_of_a_cohort_that_extrapolate_to_more_no_epsilon_of_its_own_is_told(cache: Cache) -> None:
    noise = {"mechanism": {"name": "tree"}, "noise_multiplier": LOUD, "extrapolate_to": 600}
    _, way = noise_forecast(tiny_recipe(cache.path, privacy=noise)).ways
    assert "times less noise" in way and "delta" not in way


@pytest.mark.parametrize(("public", "fewest"), [(False, 40), (True, 16)])
def test_of_fewer_rounds_than_were_measured_only_the_worst_is_told(cache: Cache, public: bool, fewest: int) -> None:
    """Short runs kept 35% and 70% where 90% was foretold."""

    def of(rounds: int, noise: float) -> NoiseForecastResult:
        made = recipe(cache, noise, rounds={"rounds": rounds})
        network = made.model.settings(cache.manifest.vocabulary.size)
        return forecast_for_record(made, made.plan(made.matrix()), network, clients=40, public=public)

    quiet = 1e-4
    short, long = of(fewest - 1, quiet), of(fewest, quiet)
    assert (short.judgement, long.judgement) == ("not forecast", "not compared")
    assert long.noise_forecast and long.noise_forecast.noisiness == "quiet"
    assert f"not measured below {fewest} rounds, and this recipe has {fewest - 1}" in short.says
    assert short.to_record()["judgement"] == "not forecast" and "kept" not in short.to_record()
    assert of(fewest - 1, LOUD * 10).judgement == "too noisy"


@pytest.mark.parametrize(
    "rounds",
    [
        {"report_goal": 41},
        {"report_goal": 5000, "min_separation": 1},
        {"report_goal": 40, "rounds": 9, "min_separation": 3},
        {"report_goal": 40, "rounds": 9, "min_separation": 1, "max_participations": 2},
    ],
)
def test_a_report_goal_that_the_clients_cannot_give_is_refused_as_training_refuses_it(
    cache: Cache, tmp_path: Path, rounds: dict[str, int]
) -> None:
    asked, said = recipe(cache, 1.0, rounds=rounds), []
    for refusing in (lambda: noise_forecast(asked), lambda: train(asked, tmp_path / "run", hardware=ONE, until=1)):
        with pytest.raises(ParticipationError) as error:
            refusing()
        said.append(str(error.value))
    assert said[0] == said[1] and f"report_goal={rounds['report_goal']}" in said[0]
    assert not (tmp_path / "run").exists()


def test_what_was_never_measured_is_not_judged(cache: Cache) -> None:
    found = noise_forecast(recipe(cache, LOUD, server={"method": "adam"}))
    assert found.judgement == "not forecast" and "divides by what it saw" in found.says and not found.ways
    with pytest.raises(InputError, match="nothing to draw"):
        found.figure()


@pytest.mark.parametrize(
    ("losses", "name"),
    [
        ({0: 4.0}, None),
        ({5: 9.0}, None),
        ({0: 4.0, 5: 4.0 * (1 + MARGIN)}, None),
        ({0: 4.0, 5: 9.0, 10: 3.0}, None),
        ({0: 3.0, 5: 3.5}, "worse than its start"),
        ({0: 3.0, 5: 5.0}, "noise dominates"),
        ({0: 8.0, 5: 8.1}, None),
        ({0: 8.0, 5: 85.0}, "noise dominates"),
    ],
)
def test_a_model_is_worse_than_its_start_or_diverged(losses: dict[int, float], name: str | None) -> None:
    found = worse_than_start(losses, 60)
    assert (None if found is None else found.name) == name


def test_a_batch_for_which_no_machine_has_the_memory_is_refused_before_anything_is_written(
    cache: Cache, tmp_path: Path
) -> None:
    """Every key was within its bounds, and JAX asked for 112 GB."""
    large = recipe(cache, None, client={"batch_size": 100_000, "sentences": 100_000, "words": 1_000})
    for asked in (lambda: noise_forecast(large), lambda: train(large, tmp_path / "run", hardware=ONE, until=1)):
        with pytest.raises(InputError, match=r"GB of memory, above 32; lower one of them"):
            asked()
    assert not (tmp_path / "run").exists()
