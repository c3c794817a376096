"""A sweep is its runs, each as if trained alone; nothing is computed before all of them are known to be possible."""

import json
from pathlib import Path

import pytest
from tests.support.jobs.mixture_runs import parts_at, recipe_of, with_rounds
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_recipe, what_happened

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import BudgetError, InputError, RecipeError, RunError, TrainingError
from tacit.jobs.train.sweep import SweepResult, folder_name, train_with
from tacit.privacy import gaussian
from tacit.progress import Event, Noted, Warned
from tacit.recipe import Recipe
from tacit.runs import Run

ONE = Hardware(workers=1)
GRID = {"rounds.rounds": [2, 3], "server.learning_rate": [0.5, 1.0]}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def recipe(cache: Cache) -> Recipe:
    return tiny_recipe(cache.path, privacy=MECHANISMS["blt"])


@pytest.fixture(scope="module")
def swept(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    return tacit.sweep(recipe(cache), tmp_path_factory.mktemp("sweep") / "out", GRID, anyway=True, hardware=ONE)


def test_each_run_is_the_one_that_is_trained_alone(cache: Cache, swept: SweepResult, tmp_path: Path) -> None:
    names = [f"rounds.rounds={rounds},server.learning_rate={rate}" for rounds in (2, 3) for rate in (0.5, 1.0)]
    assert list(swept.runs) == names
    changes = {"rounds.rounds": 3, "server.learning_rate": 0.5, "name": f"tiny, {names[2]}"}
    alone = tacit.train(recipe(cache).changed(changes), tmp_path / "run", anyway=True, hardware=ONE)
    assert what_happened(alone.run.path) == what_happened(swept.runs[names[2]])
    assert tacit.verify(swept.runs[names[0]]).holds


def test_the_page_says_what_all_of_them_cost(swept: SweepResult) -> None:
    costs, deltas = [], []
    for path in swept.runs.values():
        with Run.open(path) as run:
            account = tacit.account_run(run).realised
            assert account is not None
            costs.append(account.zcdp)
            deltas.append(run.metadata.delta)  # type: ignore[attr-defined]
    together = swept.record["together"]
    assert together["zcdp"] == pytest.approx(sum(costs))
    assert together["epsilon"] == pytest.approx(gaussian.epsilon(sum(costs), min(deltas)))
    page = swept.report.html.read_text(encoding="utf-8")
    assert "The 4 runs are 4 releases on the clients" in page and "SIMULATION ONLY" in page
    assert "Accuracy on test clients" in page and "server.learning_rate" in page
    assert not (swept.folder / "report").exists(), "nothing of it may be published"
    record = swept.to_record()
    assert json.loads(json.dumps(record)) == record and record["schema"] == "tacit.sweep"
    assert "4 releases" in str(swept)


def test_called_again_it_computes_nothing_and_more_values_add_runs(cache: Cache, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    out, heard = tmp_path / "out", list[Event]()

    def stopping(event: Event) -> None:
        heard.append(event)
        if isinstance(event, Noted) and event.message.startswith("run rounds.rounds=3"):
            raise Stop

    with pytest.raises(Stop):
        tacit.sweep(recipe(cache), out, {"rounds.rounds": [2, 3]}, anyway=True, hardware=ONE, progress=stopping)
    first = next(each for each in heard if isinstance(each, Noted))
    assert heard[0] is first and first.message.startswith("2 runs, one after another: rounds.rounds = 2, 3.")
    done = what_happened(out / "rounds.rounds=2")
    when = (out / "rounds.rounds=2" / "report" / "report.html").stat().st_mtime_ns
    found = tacit.sweep(recipe(cache), out, {"rounds.rounds": [2, 3, 4]}, anyway=True, hardware=ONE)
    assert len(found.runs) == 3 and what_happened(out / "rounds.rounds=2") == done
    assert (out / "rounds.rounds=2" / "report" / "report.html").stat().st_mtime_ns == when


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"rounds.rounds": [2]}, "1 make 1 runs, and a sweep has 2 to 26"),
        ({}, "no values make 1 runs"),
        ({"rounds.rounds": []}, "rounds.rounds has no value to try"),
        ({"rounds.rounds": list(range(1, 40))}, "39 make 39 runs, and a sweep has 2 to 26"),
        ({"rounds.rounds": [2, 2]}, "has rounds.rounds=2 twice"),
        ({"rounds.rounds": 5}, "grid.*rounds.rounds"),
        ({"rounds.rounds": [2, 0]}, r"^the recipe 'tiny' with rounds\.rounds=0: rounds\.rounds = 0"),
        ({"rounds.round": [2, 3]}, "did you mean rounds.rounds"),
    ],
)
def test_a_run_that_cannot_be_is_refused_before_any(
    cache: Cache, tmp_path: Path, grid: dict[str, list[int]], message: str
) -> None:
    with pytest.raises((InputError, RecipeError), match=message):
        tacit.sweep(recipe(cache), tmp_path / "out", grid, hardware=ONE)
    assert not (tmp_path / "out").exists()


def test_another_thing_at_out_is_left_alone(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    with pytest.raises(RunError, match=r"no folder of a sweep .it has 'letter.txt'"):
        tacit.sweep(recipe(cache), tmp_path / "out", GRID, hardware=ONE)
    with pytest.raises(RunError, match="is a file"):
        tacit.sweep(recipe(cache), tmp_path / "out" / "letter.txt", GRID, hardware=ONE)
    assert (tmp_path / "out" / "letter.txt").read_text() == "mine"


def test_runs_of_another_recipe_are_refused_before_any(cache: Cache, swept: SweepResult) -> None:
    with pytest.raises(RunError, match=r"begun with another recipe .*run.seed"):
        tacit.sweep(recipe(cache).changed({"run.seed": 9}), swept.folder, GRID, anyway=True, hardware=ONE)


def test_a_budget_that_pays_for_some_pays_for_none(cache: Cache, tmp_path: Path) -> None:
    tacit.begin_population(tmp_path / "phones", clients="phones of a test", zcdp=3.0, delta=1e-6)
    priced = recipe(cache).changed({"privacy.noise_multiplier": None, "privacy.zcdp": 2.0})
    grid = {"rounds.rounds": [2, 3]}
    with pytest.raises(BudgetError, match="phones"):
        tacit.sweep(priced, tmp_path / "out", grid, population=tmp_path / "phones", anyway=True, hardware=ONE)
    assert not (tmp_path / "out").exists()


def test_a_run_that_diverges_does_not_end_the_others(cache: Cache, tmp_path: Path) -> None:
    heard = list[Event]()
    grid = {"server.learning_rate": [1e30, 0.5]}
    bare = tiny_recipe(cache.path, privacy=MECHANISMS["none"], rounds={"rounds": 4})
    try:
        found = tacit.sweep(bare, tmp_path / "out", grid, anyway=True, hardware=ONE, progress=heard.append)
    except TrainingError as error:
        pytest.fail(f"{error}")
    warned = [each for each in heard if isinstance(each, Warned) and each.code == "run failed"]
    assert len(warned) == 1 and "1e+30 failed" in warned[0].message
    assert found.record["runs"][0]["top1"] is None and found.record["runs"][1]["top1"] is not None
    assert "no figure bounds" in str(found)


def test_mixtures_are_swept_too(tmp_path: Path) -> None:
    parts = parts_at(tmp_path / "parts")
    base = recipe_of(with_rounds(parts))
    found = tacit.sweep(base, tmp_path / "out", {"privacy.epsilon": [4.0, 8.0]}, anyway=True, hardware=ONE)
    first, second = found.record["runs"]
    assert first["epsilon"] == pytest.approx(4.0, rel=1e-6) and second["epsilon"] == pytest.approx(8.0, rel=1e-6)
    assert 0 <= first["top1"] <= 1
    assert found.record["together"]["zcdp"] == pytest.approx(first["zcdp"] + second["zcdp"])


def test_runs_that_stopped_are_named_with_the_command_that_ends_each(cache: Cache, tmp_path: Path) -> None:
    grid = {"rounds.rounds": [2, 3]}
    out = tmp_path / "my sweep"
    found = tacit.sweep(recipe(cache), out, grid, until=2, anyway=True, hardware=ONE)
    assert found.record["unfinished"] == ["rounds.rounds=3"], "the other did its two rounds"
    command = f"tacit finish '{out}/rounds.rounds=3'"
    page = (out / "simulation" / "report.md").read_text(encoding="utf-8")
    said = " ".join(str(found).split())  # a terminal's lines are broken between words
    assert command in said and command in page and "1 run stopped before the last round" in said
    tacit.finish(out / "rounds.rounds=3", hardware=ONE)
    again = tacit.sweep(recipe(cache), out, grid, until=2, anyway=True, hardware=ONE)
    assert again.record["unfinished"] == [] and "tacit finish" not in str(again)


def test_mixtures_that_stopped_are_named_too(tmp_path: Path) -> None:
    base = recipe_of(with_rounds(parts_at(tmp_path / "parts")))
    grid = {"privacy.epsilon": [4.0, 8.0]}
    found = tacit.sweep(base, tmp_path / "out", grid, until=1, anyway=True, hardware=ONE)
    assert found.record["unfinished"] == list(found.runs)
    assert " ".join(str(found).split()).count("tacit finish /") == 2
    assert all(each["top1"] is None and each["zcdp"] > 0 for each in found.record["runs"])
    assert "B: counts" in found.report.markdown.read_text(encoding="utf-8"), "laid side by side, with their parts"


def test_one_value_is_a_run_and_no_sweep(cache: Cache, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(recipe(cache).to_toml(), encoding="utf-8")
    found = train_with(path, tmp_path / "run", ["rounds.rounds=2"], anyway=True, hardware=ONE)
    assert not isinstance(found, SweepResult)
    with Run.open(tmp_path / "run") as run:
        assert run.finished and run.settings_table["rounds"]["rounds"] == 2


def test_the_name_of_a_folder_is_one() -> None:
    assert folder_name({"rounds.rounds": 2, "privacy.epsilon": 0.5}) == "rounds.rounds=2,privacy.epsilon=0.5"
    names = [folder_name({"data.cache": each}) for each in ("a/b", "a_b", "a:b", "../../etc", "x" * 300, "é")]
    assert len(set(names)) == len(names)
    assert all("/" not in each and len(each) < 120 and each.startswith("data.cache=") for each in names)
