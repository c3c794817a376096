"""The budget of a population: what all runs take adds up, nothing is entered beyond it, and what was written stays."""

import json
import math
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BudgetError, InputError, RunError
from tacit.runs import budget as runs_budget
from tacit.runs.budget import ENTRIES, HEAD, PopulationBudget
from tacit.runs.budget_book import Book, Committed, Cost, Reserved, Window, Withdrawn
from tacit.runs.budget_book import RunBegun as BegunLine

SEAL = "ab" * 32


@pytest.fixture
def budget(tmp_path: Path) -> PopulationBudget:
    return PopulationBudget.create(tmp_path / "budgets" / "phones", clients="all phones", zcdp=4.0, local_epsilon=2.0)


def entered(budget: PopulationBudget, place: str, **cost: float) -> str:
    """A run whose folder is at `place` beside the budget."""
    run = budget.path.parent / place
    with budget.reserving(kind="train", run=run, clients=100, planned=Cost(**cost)) as (name, _):
        run.mkdir()
        (run / "run.db").touch()
    return name


def files(budget: PopulationBudget) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in budget.path.iterdir() if each.name != "lock"}


def test_costs_add_and_settling_gives_back_what_was_not_taken(budget: PopulationBudget) -> None:
    first, second = entered(budget, "a", zcdp=3.0), entered(budget, "b", local_epsilon=1.5)
    assert budget.read().total == Cost(zcdp=3.0, local_epsilon=1.5)
    with pytest.raises(BudgetError, match=r"zCDP 1 of 4 left after 2 runs, and this run would take 1\.5"):
        entered(budget, "c", zcdp=1.5)
    budget.commit(first, Cost(zcdp=1.25), run=budget.path.parent / "a", seal=SEAL)
    budget.commit(first, Cost(zcdp=0.0), run=budget.path.parent / "a", seal=SEAL)  # settled once
    assert budget.read().total.zcdp == 1.25
    entered(budget, "c", zcdp=2.75)
    assert budget.read().total == Cost(zcdp=4.0, local_epsilon=1.5)
    assert [each.state for each in budget.read().counted] == ["settled", "begun", "begun"]
    budget.recheck(second, budget.path.parent / "b")
    with pytest.raises(RunError, match="is not entered in the budget"):
        budget.recheck("nobody", budget.path.parent / "b")
    with pytest.raises(RunError, match="a copy would be counted once and asked for twice"):
        budget.recheck(second, budget.path.parent / "copy")


def test_a_refused_run_writes_nothing(budget: PopulationBudget) -> None:
    before = files(budget)
    for cost, says in (({"zcdp": 4.1}, "would take 4.1"), ({"local_epsilon": 2.1}, "local epsilon 2 of 2 left")):
        with pytest.raises(BudgetError, match=says):
            entered(budget, "a", **cost)
    central = PopulationBudget.create(budget.path.parent / "central", clients="all", zcdp=1.0)
    with pytest.raises(BudgetError, match="has no budget of local epsilon"):
        entered(central, "a", local_epsilon=0.1)
    assert files(budget) == before and not (budget.path.parent / "a").exists()
    with pytest.raises(InputError, match="promises nothing, which no budget affords"):
        Cost(zcdp=math.inf)


def test_what_fails_before_a_run_is_begun_is_withdrawn(budget: PopulationBudget) -> None:
    run = budget.path.parent / "a"
    entering = budget.reserving(kind="train", run=run, clients=9, planned=Cost(zcdp=4.0))
    with pytest.raises(OSError, match="full"), entering as (name, _):
        raise OSError("full")
    assert budget.read().total == Cost() and budget.read().runs[name].state == "withdrawn"
    entered(budget, "b", zcdp=4.0)
    with pytest.raises(RunError, match="is not entered"):
        budget.commit(name, Cost(), run=run, seal=SEAL)


def test_a_deleted_run_gives_nothing_back(budget: PopulationBudget) -> None:
    entered(budget, "a", zcdp=3.0)
    (budget.path.parent / "a" / "run.db").unlink()
    (budget.path.parent / "a").rmdir()
    with pytest.raises(BudgetError, match="zCDP 1 of 4 left"):
        entered(budget, "a", zcdp=3.0)
    assert budget.read().total.zcdp == 3.0


@pytest.mark.parametrize("folder", [True, False], ids=["after its folder", "before its folder"])
def test_a_kill_while_a_run_is_entered(budget: PopulationBudget, folder: bool) -> None:
    """Nothing was released: without a folder the next to come withdraws it; with one the run goes on with its entry."""
    run = budget.path.parent / "killed"
    code = f"""
import os, signal
from pathlib import Path
from tacit.runs.budget import PopulationBudget
from tacit.runs.budget_book import Cost
run = Path({str(run)!r})
budget = PopulationBudget.open(Path({str(budget.path)!r}))
with budget.reserving(kind="train", run=run, clients=9, planned=Cost(zcdp=3.0)) as (name, _):
    print(name, flush=True)
    if {folder}:
        run.mkdir()
        (run / "run.db").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert made.returncode == -9, made.stderr
    name = made.stdout.strip()
    assert budget.read().total.zcdp == 3.0  # kept until it is known
    if folder:
        with pytest.raises(BudgetError):
            entered(budget, "other", zcdp=1.5)
        budget.recheck(name, run)
        assert budget.read().runs[name].state == "begun"
    else:
        entered(budget, "killed", zcdp=3.0)
        assert [each.state for each in budget.read().runs.values()] == ["withdrawn", "begun"]
        with pytest.raises(RunError, match="is not entered"):
            budget.recheck(name, run)


@pytest.mark.parametrize("whole", [0, 1, 40])
def test_a_line_that_a_killed_process_left_is_written_over(budget: PopulationBudget, whole: int) -> None:
    entered(budget, "a", zcdp=1.0)
    path, head = budget.path / ENTRIES, (budget.path / HEAD).read_bytes()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + lines[1][:whole])
    assert budget.read().total.zcdp == 1.0
    entered(budget, "b", zcdp=2.0)
    assert budget.read().total.zcdp == 3.0
    (budget.path / HEAD).write_bytes(head)  # killed between an entry and the head: behind, never ahead
    assert budget.read().total.zcdp == 3.0


def test_of_many_at_once_as_many_are_entered_as_the_budget_allows(tmp_path: Path) -> None:
    """Processes and threads alike: each opens the lock for itself."""
    budget = PopulationBudget.create(tmp_path / "b", clients="all", zcdp=1.0)
    refused: list[str] = []

    def enter(number: int) -> None:
        try:
            entered(PopulationBudget.open(budget.path), f"run{number}", zcdp=0.2)
        except BudgetError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 4 and budget.read().total.zcdp == pytest.approx(1.0)
    assert sum((tmp_path / f"run{number}").exists() for number in range(9)) == 5


def test_whatever_is_changed_removed_moved_or_cut_is_found(budget: PopulationBudget) -> None:
    first = entered(budget, "a", zcdp=1.0)
    entered(budget, "b", zcdp=2.0)
    budget.commit(first, Cost(zcdp=0.5), run=budget.path.parent / "a", seal=SEAL)
    path, content = budget.path / ENTRIES, (budget.path / ENTRIES).read_bytes()
    lines = content.splitlines(keepends=True)
    attacks = [
        content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
        for at in range(0, len(content), 7)
        for bit in (1, 4)
    ]
    attacks += [b"".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]
    attacks += [b"".join(lines[:at]) for at in range(len(lines))]
    attacks += [b"".join([*lines[:at], lines[at], *lines[at:]]) for at in range(len(lines))]
    attacks += [b"".join([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]) for at in range(len(lines) - 1)]
    attacks += [content.replace(b'"zcdp": 4.0', b'"zcdp": 4.0, "zcdp": 9.0'), content[:-1], b"", content + lines[-1]]
    # What means the same is not what was written either: a digit beyond a double's precision, another order of keys.
    attacks += [
        re.sub(rb'("(?:time|created)": [0-9.]+)', rb"\g<1>0", content, count=1),
        content.replace(b": 4.0", b": 4.00"),
    ]
    attacks += [
        content.replace(line, json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n") for line in lines
    ]
    assert content not in attacks
    assert len(attacks) > 200
    for attack in attacks:
        path.write_bytes(attack)
        with pytest.raises(RunError):
            PopulationBudget.open(budget.path)
    path.write_bytes(content)
    head = (budget.path / HEAD).read_bytes()
    for attack in (b"", head[:-20], head.replace(b"6", b"5", 1), head.replace(b"6 ", b"7 ", 1), b"x" * len(head)):
        (budget.path / HEAD).write_bytes(attack)
        with pytest.raises(RunError, match="does not fit"):
            PopulationBudget.open(budget.path)
    (budget.path / HEAD).unlink()
    with pytest.raises(RunError, match="cannot be read"):
        PopulationBudget.open(budget.path)


def test_a_run_is_raised_before_it_costs_more_and_only_to_what_is_free(budget: PopulationBudget) -> None:
    first, second = entered(budget, "a", zcdp=1.0), entered(budget, "b", zcdp=2.0)
    run = budget.path.parent / "a"
    assert budget.recheck(first, run) == Cost(zcdp=1.0)
    assert budget.reserve_more(first, Cost(zcdp=0.5), run=run) == Cost(zcdp=1.0)  # never less, and nothing is written
    before = files(budget)
    with pytest.raises(BudgetError, match=r"zCDP 2 of 4 left after 1 other run, and this run would take 2\.25"):
        budget.reserve_more(first, Cost(zcdp=2.25), run=run)
    assert files(budget) == before
    assert budget.reserve_more(first, Cost(zcdp=1.75), run=run) == Cost(zcdp=1.75)
    assert budget.recheck(first, run) == Cost(zcdp=1.75) and budget.read().total.zcdp == 3.75
    with pytest.raises(BudgetError, match=r"zCDP 0\.25 of 4 left after 2 runs"):
        entered(budget, "c", zcdp=1.0)
    with pytest.raises(RunError, match="a copy would be counted once"):
        budget.reserve_more(first, Cost(zcdp=1.8), run=budget.path.parent / "b")
    budget.commit(first, Cost(zcdp=1.5), run=run, seal=SEAL)
    with pytest.raises(RunError, match="is settled in"):
        budget.reserve_more(first, Cost(zcdp=1.6), run=run)
    assert budget.reserve_more(second, Cost(zcdp=2.5), run=budget.path.parent / "b").zcdp == 2.5


def test_it_is_for_its_owner_alone(budget: PopulationBudget) -> None:
    entered(budget, "a", zcdp=1.0)
    assert stat.S_IMODE(budget.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in budget.path.iterdir()} == {0o600}
    assert {each.name for each in budget.path.parent.iterdir()} == {"phones", "a"}  # no draft is left


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "a budget allows something"),
        ({"zcdp": 0.0}, "zcdp=0.0 is no budget"),
        ({"zcdp": math.inf}, "is no budget"),
        ({"zcdp": math.nan}, "is no budget"),
        ({"local_epsilon": -1.0}, "is no budget"),
        ({"zcdp": 1.0, "delta": 1.0}, "not a probability"),
        ({"zcdp": 1.0, "clients": " "}, "does not say whose"),
    ],
)
def test_what_is_no_budget_is_refused(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        PopulationBudget.create(tmp_path / "b", **{"clients": "all", **given})
    assert not list(tmp_path.iterdir())


def test_a_budget_never_takes_the_place_of_something(budget: PopulationBudget, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="exists already, and what is allowed never changes"):
        PopulationBudget.create(budget.path, clients="others", zcdp=100.0)
    with pytest.raises(RunError, match="is no population's budget"):
        PopulationBudget.open(tmp_path / "none")


WEEK = 7 * 86400.0


def weekly(path: Path, patch: pytest.MonkeyPatch) -> tuple[PopulationBudget, list[float]]:
    """A budget of 1 a week and 10 in all, and the clock that it goes by."""
    clock = [1_000_000.0]
    patch.setattr(
        runs_budget, "time", SimpleNamespace(time=lambda: clock[0], monotonic=time.monotonic, sleep=time.sleep)
    )
    window = Window(days=7.0, zcdp=1.0)
    return PopulationBudget.create(path, clients="all", zcdp=10.0, local_epsilon=1.0, window=window), clock


def test_what_a_week_allows_comes_back_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget, clock = weekly(tmp_path / "weekly", monkeypatch)
    first = entered(budget, "a", zcdp=0.7)
    with pytest.raises(
        BudgetError, match=r"zCDP 0\.3 of 1 left in these 7 days.*0\.5; ask for less, or after 1970-01-19"
    ):
        entered(budget, "b", zcdp=0.5)
    entered(budget, "local", local_epsilon=1.0)  # of which no week has a limit
    clock[0] += WEEK  # the first is still open, and may release still
    with pytest.raises(BudgetError, match=r"zCDP 0\.3 of 1 left in these 7 days"):
        entered(budget, "b", zcdp=0.5)
    with pytest.raises(BudgetError, match="in these 7 days"):
        budget.reserve_more(first, Cost(zcdp=1.1), run=tmp_path / "a")
    budget.commit(first, Cost(zcdp=0.6), run=tmp_path / "a", seal=SEAL)
    entered(budget, "b", zcdp=0.4)
    clock[0] -= 3 * WEEK  # a clock that is set back opens no week anew
    with pytest.raises(BudgetError, match="zCDP 0 of 1 left"):
        entered(budget, "c", zcdp=0.1)
    clock[0] += 4 * WEEK
    assert budget.read().in_window(clock[0]).zcdp == 0.4  # b is open, a is not
    entered(budget, "c", zcdp=0.6)


@given(
    st.lists(
        st.tuples(st.floats(0, 1.5 * WEEK), st.floats(0.01, 0.9), st.floats(0, 2 * WEEK), st.floats(0, 1)), max_size=9
    )
)
def test_no_week_costs_more_than_its_limit_and_k_of_them_k_times_that(
    runs: list[tuple[float, float, float, float]],
) -> None:
    """Held against every release that any run can have made between its entry and its end."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        budget, clock = weekly(Path(folder) / "weekly", patch)
        created, open_runs, lived = clock[0], list[tuple[float, str, str, float]](), list[tuple[float, float, float]]()
        for number, (wait, planned, lasts, share) in enumerate(runs):
            begins = clock[0] + wait
            for ends, name, place, spent in sorted(each for each in open_runs if each[0] <= begins):
                clock[0] = ends
                budget.commit(name, Cost(zcdp=spent), run=Path(folder) / place, seal=SEAL)
            open_runs = [each for each in open_runs if each[0] > begins]
            clock[0] = begins
            try:
                name = entered(budget, str(number), zcdp=planned)
            except BudgetError:
                continue
            open_runs.append((begins + lasts, name, str(number), planned * share))
            lived.append((begins, begins + lasts, planned * share))
        last = max((end for _, end, _ in lived), default=created)
        weeks = int((last - created) // WEEK) + 1
        for week in range(weeks):
            opens, closes = created + week * WEEK, created + (week + 1) * WEEK
            assert math.fsum(cost for begin, end, cost in lived if begin < closes and end >= opens) <= 1 + 1e-9
        assert math.fsum(cost for _, _, cost in lived) <= min(10.0, weeks * 1.0) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("window", "says"),
    [
        ({"days": 0.0, "zcdp": 1.0}, "a window of 0.0 days is none"),
        ({"days": math.inf, "zcdp": 1.0}, "days is none"),
        ({"days": 7.0}, "a window limits something"),
        ({"days": 7.0, "zcdp": -1.0}, "of a window is no budget"),
        ({"days": 7.0, "local_epsilon": 1.0}, "none is allowed in all"),
    ],
)
def test_what_is_no_window_is_refused(tmp_path: Path, window: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        PopulationBudget.create(tmp_path / "b", clients="all", zcdp=4.0, window=Window(**window))
    assert not list(tmp_path.iterdir())


costs = st.builds(Cost, zcdp=st.floats(0, 5), local_epsilon=st.floats(0, 5))


@given(st.lists(st.tuples(costs, st.sampled_from(["entered", "begun", "withdrawn", "settled"]), costs), max_size=12))
def test_the_total_is_what_brute_force_adds_up(runs: list[tuple[Cost, str, Cost]]) -> None:
    book, zcdp, local = Book(), 0.0, 0.0
    from tacit.runs.budget_book import Allowed

    book.take(Allowed(clients="all", zcdp=99.0, local_epsilon=99.0, delta=None, created=0.0), SEAL, "")
    for number, (planned, state, spent) in enumerate(runs):
        name = str(number)
        book.take(Reserved(name=name, kind="train", run=name, clients=1, planned=planned, time=0.0), SEAL, "")
        if state in ("begun", "settled"):
            book.take(BegunLine(name=name), SEAL, "")
        if state == "settled":
            book.take(Committed(name=name, spent=spent, of=SEAL), SEAL, "")
        if state == "withdrawn":
            book.take(Withdrawn(name=name), SEAL, "")
        counts = {"entered": planned, "begun": planned, "settled": spent, "withdrawn": Cost()}[state]
        zcdp, local = zcdp + counts.zcdp, local + counts.local_epsilon
    assert book.total.zcdp == pytest.approx(zcdp) and book.total.local_epsilon == pytest.approx(local)
    assert len(book.counted) == sum(state != "withdrawn" for _, state, _ in runs)
    if book.counted:
        with pytest.raises(RunError, match="cannot follow"):
            book.take(Reserved(name="0", kind="t", run="0", clients=1, planned=Cost(), time=0.0), SEAL, "entry")
            book.take(Committed(name="0", spent=Cost(), of=SEAL), SEAL, "entry")
            book.take(Committed(name="0", spent=Cost(), of=SEAL), SEAL, "entry")
