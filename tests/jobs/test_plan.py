"""Plans and simulations as results: records that are JSON, columns of one length, pages, figures; devices simulated."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.errors import InputError, ParticipationError
from tacit.jobs.plan.job import affordable_rounds, backwards, forwards, plan
from tacit.jobs.plan.timers import plan_timers
from tacit.planning import Clients, Goal, Scenario, Utility
from tacit.population.devices import Population, RoundRules
from tacit.population.settings import SimulationSettings
from tacit.progress import Advanced, Event, StageBegan, StageEnded

SCENARIO = Scenario(
    clients=Clients(devices=8_000, rounds_per_day=40),
    rounds=200,
    utility=Utility(noise_multiplier=1, report_goal=20),
)
GOAL = Goal.from_target(epsilon=14, delta=1e-10, most=120)
FAST = ("tree-variance-reduced", "blt-b400")
DEVICES = SimulationSettings(
    population=Population(devices=8_000), rules=RoundRules(report_goal=20, timer_hours=24, most_days=12), rounds=200
)


def results() -> dict[str, Any]:
    return {
        "plan": plan(SCENARIO, "blt-b400", GOAL),
        "run": forwards(SCENARIO, 40, FAST),
        "target": backwards(SCENARIO, GOAL, FAST),
        "rounds": affordable_rounds(SCENARIO, 40, GOAL.zcdp, FAST),
        "timer": plan_timers(SCENARIO, "blt-b400", 40, zcdp=GOAL.zcdp),
    }


@pytest.mark.parametrize("name", ["plan", "run", "target", "rounds", "timer"])
def test_every_result_has_a_record_a_page_and_a_figure(name: str, tmp_path: Path) -> None:
    result = results()[name]
    record = result.to_record()
    assert json.loads(json.dumps(record)) == record and record["version"] == 1
    assert record["schema"].startswith("tacit.plan")
    if name != "plan":
        assert len({len(column) for column in result.columns.values()}) == 1
    assert "<" in result._repr_html_()
    result.save_figure(tmp_path / "new" / "figure.svg")
    assert (tmp_path / "new" / "figure.svg").read_bytes().startswith(b"<?xml")


def test_a_plan_with_simulated_devices_counts_on_all_of_them() -> None:
    heard: list[Event] = []
    found = plan(SCENARIO, "blt-b400", GOAL, simulate=DEVICES, progress=heard.append)
    assert found.production is not None and found.plan.guarantee.epsilon(1e-10) <= 14
    seen = found.production.simulated
    assert found.plan.guarantee.participation == seen.promised and seen.days <= 12
    assert seen.simulation is not None and seen.simulation.population.devices == 8_000
    assert seen.realised.min_separation >= seen.promised.min_separation
    assert [step.number for step in found.steps] == [1, 2, 3, 4, 5, 6, 7]
    assert "in a simulation of all 8,000 devices" in found.steps[3].sentences[0]
    began = [event.stage for event in heard if isinstance(event, StageBegan)]
    ended = [event.stage for event in heard if isinstance(event, StageEnded)]
    assert sorted(began) == sorted(ended) and any("all 8,000 devices" in stage for stage in began)
    assert any(isinstance(event, Advanced) and "day" in event.figures for event in heard)


def test_a_simulation_of_something_else_is_refused() -> None:
    other = replace(DEVICES, population=Population(devices=9_000))
    with pytest.raises(InputError, match="9000 devices and the plan has 8000"):
        plan(SCENARIO, "blt-b400", GOAL, simulate=other)
    with pytest.raises(InputError, match="100 rounds and the plan has 200"):
        plan_timers(SCENARIO, "blt-b400", 40, simulate=replace(DEVICES, rounds=100))
    with pytest.raises(ParticipationError):
        plan(SCENARIO, "blt-b400", GOAL, simulate=DEVICES.within(0.01))


def test_an_exception_of_the_listener_stops_a_simulation() -> None:
    def stops(event: Event) -> None:
        if isinstance(event, Advanced) and event.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tacit.simulate(DEVICES, progress=stops)


def test_a_simulation_by_value_and_by_file_is_the_same(tmp_path: Path) -> None:
    found = tacit.simulate(DEVICES, out=tmp_path / "out")
    again = tacit.simulate(tmp_path / "out" / "settings.toml")
    assert again.record == found.record and "files" not in again.to_record()
    assert found.to_record()["files"] == list(found.files) and (tmp_path / "out" / "rounds.csv").is_file()
    assert {len(column) for column in found.columns.values()} == {200}
    assert "Realised: MinS" in found._repr_html_()
    assert [figure.name for figure in found.figures()] == ["days", "hours", "participation"]
