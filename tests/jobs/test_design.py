"""tacit.design: what is designed, what is given, what is refused, and all mechanisms side by side."""

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.design.blt import design_blt
from tacit.design.catalogue import MECHANISMS
from tacit.design.losses import losses
from tacit.design.workload import Workload
from tacit.errors import InputError
from tacit.jobs.design import compare_mechanisms, design_mechanism, design_robust_mechanism, limits_of, several_limits
from tacit.privacy import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, Tree, strategy_from_record
from tacit.progress import Advanced, Event, StageBegan, StageEnded

SERVED = Participation(rounds=24, min_separation=6, max_participations=4)


def test_a_design_is_the_strategy_and_its_cost(tmp_path: Path) -> None:
    found = design_mechanism("blt", SERVED, buffers=2, objective="rms")
    strategy, cost = found.strategy_and_losses()
    assert strategy == design_blt(SERVED, buffers=2, objective="rms") and cost == losses(strategy, SERVED)
    assert (found.title, found.memory, found.refused) == ("blt, 2 buffers", 2, None)
    record = found.to_record()
    assert record["loss"] == record["rms_loss"] and record["theta"] == list(strategy.numbers()["theta"])
    found.save(tmp_path / "blt.json")
    assert strategy_from_record(json.loads((tmp_path / "blt.json").read_text())) == strategy
    assert "rms loss" in found._repr_html_()


def test_numbers_that_are_given_are_taken_as_they_are() -> None:
    assert design_mechanism("tree", SERVED, restarts=[8]).strategy == Tree(restarts=(8,))
    assert design_mechanism("blt-b100", SERVED).strategy == PUBLISHED_BLT["b100"]
    assert design_mechanism("tacit.design.catalogue.tree:TREE", SERVED).strategy == Tree()


def test_a_mechanism_is_designed_for_its_own_loss_unless_asked() -> None:
    assert (design_mechanism("banded", SERVED).objective, design_mechanism("blt", SERVED).objective) == ("rms", "max")


def test_a_slow_design_tells_its_steps() -> None:
    events: list[Event] = []
    design_mechanism("banded", SERVED, progress=events.append)
    assert isinstance(events[0], StageBegan) and isinstance(events[-1], StageEnded)
    assert all(isinstance(each, Advanced) and each.figures["loss"] > 0 for each in events[1:-1])


@pytest.mark.parametrize(
    ("mechanism", "parameters", "complaint"),
    [
        ("forest", {}, "mechanism 'forest' is none of independent, tree"),
        ("tree", {"bands": 3}, "parameter bands does not belong to mechanism 'tree', which takes restarts"),
        ("blt", {"buffers": "4"}, "buffers is '4', and a whole number was expected"),
        ("blt", {"objective": "median"}, "neither max nor rms"),
        ("dense", {}, "come once"),
    ],
)
def test_what_cannot_be_designed_is_refused(mechanism: str, parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        design_mechanism(mechanism, SERVED, **parameters)


MOMENTUM = Workload(momentum=0.9, cooldown=0.3)


def test_for_a_server_both_errors_are_told_and_its_models_lowered() -> None:
    made, plain = (design_mechanism("lambda-cgd", SERVED, server=MOMENTUM, workload=each) for each in (None, "prefix"))
    assert made.strategy == MECHANISMS["lambda-cgd"].strategy(SERVED, workload=MOMENTUM)
    assert plain.strategy == design_mechanism("lambda-cgd", SERVED).strategy
    for found in (made, plain):
        strategy, sums = found.strategy_and_losses()
        assert sums == losses(strategy, SERVED) and found.models == losses(strategy, SERVED, MOMENTUM)
        record = found.to_record()
        assert (record["momentum"], record["cooldown"], record["max_loss"]) == (0.9, 0.3, sums.max_loss)
        assert record["models_max_loss"] == found.models.max_loss and "models max loss" in str(found)
    assert made.models and plain.models and made.loss == made.models.max_loss < plain.models.max_loss
    assert (
        plain.loss
        == plain.to_record()["loss"]
        == plain.strategy_and_losses()[1].max_loss
        < made.strategy_and_losses()[1].max_loss
    )
    without = design_mechanism("lambda-cgd", SERVED)
    assert without.models is None and "momentum" not in without.to_record()


@pytest.mark.parametrize(
    ("job", "wrong", "complaint"),
    [
        (design_mechanism, {"mechanism": "tree", "server": MOMENTUM}, "'tree' has no design for what a server makes"),
        (design_mechanism, {"mechanism": "blt", "workload": "server"}, "without either they are prefix sums"),
        (design_mechanism, {"mechanism": "blt", "workload": "both"}, "neither prefix nor server"),
        (design_mechanism, {"mechanism": "blt", "server": 0.9}, "server=0.9"),
        (compare_mechanisms, {"workload": "server"}, "without either they are prefix sums"),
    ],
)
def test_a_server_that_means_nothing_is_refused(job: Any, wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        job(participation=SERVED, **wrong)
    with pytest.raises(InputError, match="prefix sums alone"):
        design_robust_mechanism("blt", [SERVED], server=MOMENTUM)


def test_one_design_for_several_participations() -> None:
    cases = several_limits(range(500, 1001), [100, 300], 4)
    assert [(each.rounds, each.min_separation, each.max_participations) for each in cases] == [
        (500, 100, 4),
        (500, 300, 2),
        (707, 100, 4),
        (707, 300, 3),
        (1000, 100, 4),
        (1000, 300, 4),
    ]
    found = design_robust_mechanism("blt", cases, buffers=2)
    assert all(row["ratio"] >= 1 - 1e-9 for row in found.rows())
    assert found.to_record()["worst_ratio"] == max(row["ratio"] for row in found.rows()) < 1.1
    with pytest.raises(InputError, match="one participation at a time; for several, take blt"):
        design_robust_mechanism("tree", cases)


def test_a_comparison_has_the_least_loss_first_and_refusals_last() -> None:
    rare = limits_of(24, 24)
    found = compare_mechanisms(rare, objective="rms", slow=True)
    assert [each.losses.rms_loss for each in found if each.losses is not None] == sorted(
        each.losses.rms_loss for each in found if each.losses is not None
    )
    names = {each.mechanism for each in found}
    assert {"dense", "banded", "tree-full", "inverse-square-root"} <= names and "blt-b400" not in names
    assert "dense" not in {each.mechanism for each in compare_mechanisms(SERVED, slow=True)}
    assert json.loads(json.dumps(found.to_record()))["mechanisms"][0]["name"] == next(iter(found)).title
    assert "memory (models)" in found._repr_html_()


def test_a_comparison_tells_how_far_it_is() -> None:
    events: list[Event] = []
    found = compare_mechanisms(SERVED, progress=events.append)
    assert sum(isinstance(each, Advanced) for each in events) == len(found)


def test_limits_that_contradict_each_other_are_refused() -> None:
    assert limits_of(1000, 100) == Participation.worst_case(1000, 100)
    with pytest.raises(InputError, match="give at most 10 or a separation of at most 99"):
        limits_of(1000, 100, 11)
    with pytest.raises(InputError, match="exceeds the 10 rounds"):
        limits_of(10, 11)
    with pytest.raises(InputError, match="no range"):
        several_limits(range(20, 11), [2])
