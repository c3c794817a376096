"""A run ends before its last round, by hand or by a rule: the model of the last round, accounted as it happened."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from tests.conftest import REPOSITORY
from tests.support.jobs.mixture_runs import parts_at, recipe_of, values, with_rounds
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_recipe, what_happened

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.jobs.train.job import TrainingResult
from tacit.jobs.train.mixture import MixtureResult
from tacit.jobs.train.stopping import RunState
from tacit.privacy.rounding import rounded_up
from tacit.progress import Event
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.run_facts import ENDED
from tacit.training.checkpoint import read_checkpoint

ONE = Hardware(workers=1)
DONE = 4


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def recipe(cache: Cache, **sections: Any) -> Recipe:
    return tiny_recipe(cache.path, privacy=MECHANISMS["blt"], **sections)


@pytest.fixture(scope="module")
def stopped(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with DONE of its 9 rounds; to be copied."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    tacit.train(recipe(cache), out, until=DONE, hardware=ONE, anyway=True).run.close()
    return out


def model_of(result: TrainingResult) -> np.ndarray[Any, Any]:
    return np.asarray(ravel_pytree(result.model().parameters)[0])


def said(result: TrainingResult) -> str:
    stated = result.summary().statement
    assert stated is not None
    return " ".join(stated.markdown().split())


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_a_stopped_run_becomes_a_released_model_of_its_last_round(stopped: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(stopped, tmp_path / "run"))
    with Run.open(out) as run:
        row = run.steps()[-1]
    last = read_checkpoint(out / "steps" / row.file, row.digest)[".model"]
    before = tacit.account_run(out).realised
    result = tacit.finish(out, hardware=ONE)
    assert isinstance(result, TrainingResult) and result.run.finished and result.rounds == DONE
    assert np.array_equal(model_of(result), last)
    assert result.account.realised == before and before is not None, "the rounds that happened, and no more"
    assert result.report is not None and result.report.html.is_file() and result.test
    assert tacit.verify(out).holds
    assert "ENDED EARLY" in [each.name for each in result.summary().labels]
    assert f"The run ended after {DONE} of 9 planned rounds, by the decision of whoever ran it" in said(result)
    assert {each.step for each in result.run.metrics() if each.split == "test"} == {DONE}


def test_a_run_that_would_go_on_goes_on_to_the_same_bits(cache: Cache, stopped: Path, tmp_path: Path) -> None:
    """What `--until` leaves is no other run."""
    out = Path(shutil.copytree(stopped, tmp_path / "run"))
    tacit.resume(out, hardware=ONE)
    whole = tacit.train(recipe(cache), tmp_path / "whole", hardware=ONE, anyway=True)
    assert what_happened(out) == what_happened(whole.run.path)
    assert "ended after" not in said(whole)


def test_a_finished_run_is_finished_already_and_stays_what_it_is(stopped: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(stopped, tmp_path / "run"))
    tacit.finish(out, hardware=ONE)
    before = what_happened(out)
    with pytest.raises(InputError, match=f"is finished already, after {DONE} rounds; `tacit report"):
        tacit.finish(out, hardware=ONE)
    assert what_happened(out) == before


def test_what_has_no_rounds_to_leave_out_is_refused(cache: Cache, tmp_path: Path) -> None:
    tacit.train(recipe(cache), tmp_path / "none", until=0, hardware=ONE, anyway=True).run.close()
    with pytest.raises(RunError, match="has no round that is done"):
        tacit.finish(tmp_path / "none", hardware=ONE)
    with Run.open(tmp_path / "none") as run:
        assert ENDED not in run.notes and not run.finished
    with pytest.raises(RunError):
        tacit.finish(tmp_path / "nowhere", hardware=ONE)
    with pytest.raises(InputError, match="no path"):
        tacit.finish(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["ledger", "checkpoint", "settings"])
def test_a_damaged_run_is_refused_and_not_ended(stopped: Path, tmp_path: Path, damage: str) -> None:
    out = Path(shutil.copytree(stopped, tmp_path / "run"))
    if damage == "ledger":
        content = (out / "run.db").read_bytes()
        (out / "run.db").write_bytes(content[:3000])
    elif damage == "settings":
        (out / "settings.toml").write_text('kind = "train"\nname = "another"\n', encoding="utf-8")
    else:
        for file in (out / "steps").iterdir():
            file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RunError) as refused:
        tacit.finish(out, hardware=ONE)
    assert "\n" not in str(refused.value)
    assert not list((out / "model").glob("*")) and not list((out / "report").glob("*"))
    if damage == "checkpoint":
        with Run.open(out) as run:
            assert ENDED not in run.notes and not run.finished


def killed(at: int, out: Path) -> "subprocess.CompletedProcess[str]":
    asked = [sys.executable, "-m", "tests.jobs.killed_at", str(at), "finish", str(out), "--workers", "1"]
    return subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "share",
    [
        *(0.1, 0.6),
        pytest.param(0.9, marks=pytest.mark.long),
        *(pytest.param(each / 20, marks=pytest.mark.nightly) for each in range(1, 20) if each not in (2, 12, 18)),
    ],
)
def test_killed_anywhere_it_is_as_before_or_ending(
    share: float, stopped: Path, tmp_path: Path, changes: Callable[[], int]
) -> None:
    out = Path(shutil.copytree(stopped, tmp_path / "run"))
    done = killed(max(1, int(share * changes())), out)
    assert done.returncode == -9, done.stderr
    with Run.open(out) as run:
        ending, finished = ENDED in run.notes, run.finished
        assert run.steps_done == DONE
    if not ending:
        assert not finished
    elif not finished:
        result: Any = tacit.resume(out, hardware=ONE)
        assert result.rounds == DONE, "decided is decided: no further round is released"
    if not (out / "report" / "statement.json").is_file():
        tacit.finish(out, hardware=ONE)
    with Run.open(out) as run:
        assert run.finished and run.steps_done == DONE
    tacit.report(out)
    assert tacit.verify(out).holds, tacit.verify(out).failed


@pytest.fixture(scope="module")
def changes(stopped: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], int]:
    counted: list[int] = []

    def count() -> int:
        if not counted:
            out = Path(shutil.copytree(stopped, tmp_path_factory.mktemp("count") / "run"))
            done = killed(0, out)
            found = re.search(r"changes: (\d+)", done.stderr)
            assert found is not None, done.stderr
            counted.append(int(found[1]))
        return counted[0]

    return count


def test_a_mixture_ends_its_rounds_and_is_made(tmp_path: Path) -> None:
    parts = parts_at(tmp_path / "parts")

    class Stop(Exception):
        pass

    def stopping(event: Event) -> None:
        if getattr(event, "stage", "") == "training" and getattr(event, "done", 0) >= 2:
            raise Stop

    with pytest.raises(Stop):
        tacit.train_mixture(recipe_of(with_rounds(parts)), tmp_path / "run", anyway=True, progress=stopping)
    with Run.open(tmp_path / "run" / "training") as run:
        done = run.steps_done
    assert 0 < done < 3
    result = tacit.finish(tmp_path / "run", hardware=ONE)
    assert isinstance(result, MixtureResult) and result.arms and result.epsilon <= 8.0 * (1 + 1e-9)
    with Run.open(tmp_path / "run" / "training") as run:
        assert run.finished and run.steps_done == done
    assert tacit.verify(tmp_path / "run").holds
    with pytest.raises(InputError, match="is finished already"):
        tacit.finish(tmp_path / "run", hardware=ONE)


# -- by a rule ---------------------------------------------------------------------------------------------------------


class Asked:
    """A rule that remembers what it was given, and says yes after so many rounds."""

    def __init__(self, at: int) -> None:
        self.at, self.states = at, list[RunState]()

    def __call__(self, state: RunState) -> bool:
        self.states.append(state)
        return state.rounds >= self.at


def test_a_rule_sees_released_models_and_nothing_else(cache: Cache, tmp_path: Path) -> None:
    rule = Asked(DONE)
    result = tacit.train(recipe(cache), tmp_path / "run", stop=rule, hardware=ONE, anyway=True)
    assert [(each.rounds, each.planned_rounds) for each in rule.states] == [(n, 9) for n in range(1, DONE + 1)]
    assert all(each.metrics == {} for each in rule.states)
    assert result.run.finished and result.rounds == DONE
    row = result.run.steps()[-1]
    assert row.step == DONE - 1
    assert np.array_equal(ravel_pytree(rule.states[-1].model.parameters)[0], model_of(result))
    assert rule.states[-1].model.next_words("waa")
    fixed = tacit.train(recipe(cache), tmp_path / "fixed", until=DONE, hardware=ONE, anyway=True)
    assert result.account.realised == fixed.account.realised, "how it ends changes no round"


def test_the_statement_says_which_figures_hold(cache: Cache, tmp_path: Path) -> None:
    released = tacit.train(recipe(cache), tmp_path / "released", stop=Asked(DONE), hardware=ONE, anyway=True)
    looking = Asked(DONE + 1)
    exact = tacit.train(
        recipe(cache), tmp_path / "exact", stop=looking, stop_looks_at="exact", hardware=ONE, anyway=True
    )
    for result, words in ((released, "was given the released models and no exact number"), (exact, "exact accuracies")):
        text = said(result)
        assert words in text and "had the number of rounds been fixed beforehand" in text
        assert "It was not, so the planned figures are those that hold." in text
        assert tacit.verify(result.run.path).holds
        account = result.account
        assert f"the price is epsilon {rounded_up(account.planned.epsilon(account.delta))} " in result._repr_html_()
    assert [each.metrics != {} for each in looking.states] == [True] * (DONE + 1)
    assert looking.states[-1].metrics["top1_accuracy"] == next(
        each.value
        for each in exact.run.metrics()
        if (each.step, each.split, each.name) == (4, "validation", "top1_accuracy")
    )


def test_a_rule_that_never_says_so_changes_nothing(cache: Cache, tmp_path: Path) -> None:
    ruled = tacit.train(recipe(cache), tmp_path / "ruled", stop=lambda state: False, hardware=ONE, anyway=True)
    plain = tacit.train(recipe(cache), tmp_path / "plain", hardware=ONE, anyway=True)
    assert what_happened(ruled.run.path) == what_happened(plain.run.path)
    assert ENDED not in ruled.run.notes and "ended after" not in said(ruled)


def test_a_rule_is_asked_again_where_a_killed_run_goes_on(cache: Cache, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def fails(state: RunState) -> bool:
        if state.rounds == 3:
            raise Stop
        return False

    with pytest.raises(Stop):
        tacit.train(recipe(cache), tmp_path / "run", stop=fails, hardware=ONE, anyway=True)
    rule = Asked(3)
    result = tacit.train(recipe(cache), tmp_path / "run", stop=rule, hardware=ONE, anyway=True)
    assert [each.rounds for each in rule.states] == [3] and result.rounds == 3 and result.run.finished


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stop": 3}, "stop=3 cannot be asked"),
        ({"stop_looks_at": "exact"}, "is of a rule, and there is none"),
        ({"stop": bool, "stop_looks_at": "all"}, "'all' is none of released, exact"),
        ({"until": 10}, "until=10 is not between 0 and the 9 rounds"),
        ({"until": -1}, "until=-1 is not between 0 and the 9 rounds"),
    ],
)
def test_what_cannot_be_asked_is_refused_first(cache: Cache, tmp_path: Path, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tacit.train(recipe(cache), tmp_path / "run", hardware=ONE, anyway=True, **given)
    assert not (tmp_path / "run").exists()


def test_an_answer_that_is_none_stops_after_a_whole_round(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="stop= answered 'yes' after 1 rounds; answer True or False"):
        tacit.train(recipe(cache), tmp_path / "run", stop=lambda state: "yes", hardware=ONE, anyway=True)  # type: ignore[arg-type,return-value]
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == 1 and not run.finished


def test_statements_of_before_read_as_they_did(stopped: Path, tmp_path: Path) -> None:
    """A run that nobody ended has no word of it in its record."""
    out = Path(shutil.copytree(stopped, tmp_path / "run"))
    assert "ended" not in json.loads(tacit.statement(out).to_json())["facts"]
    tacit.finish(out, hardware=ONE)
    assert json.loads(tacit.statement(out).to_json())["facts"]["ended"] == "by hand"


def test_a_mixture_without_rounds_has_none_to_leave_out(tmp_path: Path) -> None:
    parts = parts_at(tmp_path / "parts")

    class Stop(Exception):
        pass

    def stopping(event: Event) -> None:
        if getattr(event, "stage", "") == "measuring what each part adds":
            raise Stop

    with pytest.raises(Stop):
        tacit.train_mixture(recipe_of(values(parts)), tmp_path / "run", progress=stopping)
    with pytest.raises(InputError, match="has no rounds to leave out; `tacit resume"):
        tacit.finish(tmp_path / "run", hardware=ONE)
