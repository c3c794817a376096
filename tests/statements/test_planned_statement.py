"""The statement of a run that was not made: loudly planned, nothing realised in it, and recomputable."""

import json
from dataclasses import replace

import pytest
from tests.support.statements.facts import SEEN, SERVED, planned_facts

from tacit.errors import InputError
from tacit.privacy import Blt, Guarantee, Participation, Tree
from tacit.privacy.strategy import PUBLISHED_BLT
from tacit.statements import TrainingFacts
from tacit.statements.statement import statement
from tacit.statements.train_facts import Extrapolation, SideRelease
from tacit.statements.verify import verify


@pytest.mark.parametrize("strategy", [Tree(), PUBLISHED_BLT["b400"]], ids=["tree", "blt"])
def test_it_is_loudly_planned_and_claims_nothing_that_happened(strategy: Tree | Blt) -> None:
    facts = planned_facts(strategy)
    made = statement(facts)
    assert made.markdown().startswith("**PLANNED: nothing has been trained.")
    record = made.to_record()
    assert "realised" not in record and record["planned"]["zcdp"] == facts.planned.zcdp
    assert record["simulated"] == {"rounds": 2000, "min_separation": 326, "max_participations": 5}
    text = made.markdown()
    assert "measured from the log" not in text and "As realised" not in text
    assert "at least 324 rounds apart" in text and "at least 326 rounds apart" in text
    assert "tacit account" in text and "tacit verify plan/statement.json" in text
    assert [item.number for item in made.items] == ["1", "2a", "2b", "2c", "2d", "3a", "3b", "3c", "3d"]


def test_the_other_labels_come_after_it() -> None:
    labels = [label.name for label in statement(planned_facts(Tree(), vocabulary_kind="private")).labels]
    assert labels == ["PLANNED", "VOCABULARY FROM PRIVATE TEXT"]


@pytest.mark.parametrize("seen", [True, False])
def test_it_is_computed_again_from_its_record(seen: bool) -> None:
    facts = planned_facts(PUBLISHED_BLT["b400"], **({} if seen else {"simulated": None, "simulation": ""}))
    record = json.loads(statement(facts).to_json())
    assert TrainingFacts.from_record(record["facts"]) == facts
    assert all(line.holds for line in verify(record))
    record["planned"]["zcdp"] *= 0.99
    record["facts"]["mechanism"]["noise_multiplier"] = 7.5
    failed = {line.name for line in verify(record) if not line.holds}
    assert {"facts.mechanism.noise_multiplier", "planned.zcdp"} <= failed


def test_sequences_beside_the_updates_and_a_larger_cohort_are_planned_too() -> None:
    bits = Guarantee(participation=SERVED, strategy=Tree(), clip_norm=0.5, noise_multiplier=50.0)
    larger = Extrapolation(report_goal=13_000, noise_multiplier=14.0)
    facts = planned_facts(
        Tree(), also_released=(SideRelease(what="clip estimate", planned=bits),), extrapolation=larger
    )
    made = statement(facts)
    assert list(made.figures["in_all"]) == ["planned"]
    assert made.figures["in_all"]["planned"]["zcdp"] == pytest.approx(facts.planned.zcdp + bits.zcdp)
    assert "realised" not in made.figures["extrapolated"] and "as realised" not in made.items[-1].text
    record = json.loads(made.to_json())
    assert TrainingFacts.from_record(record["facts"]) == facts
    assert all(line.holds for line in verify(record))


def test_facts_that_are_none_are_refused() -> None:
    facts = planned_facts(Tree())
    with pytest.raises(InputError, match="of a run that was not made"):
        replace(facts, realised=facts.planned.with_participation(SEEN), participations=13_000_000)
    with pytest.raises(InputError, match="counted in the log of a run that was made"):
        replace(facts, participations=13_000_000)
    with pytest.raises(InputError, match="some are realised and some only planned"):
        replace(facts, also_released=(SideRelease(what="losses", planned=facts.planned, realised=facts.planned),))
    with pytest.raises(InputError, match="simulate the plan"):
        replace(facts, simulated=Participation.worst_case(100, 10))
    record = json.loads(json.dumps(facts.to_record()))
    for name, wrong in (("planned", 3), ("simulated", {"rounds": 3}), ("simulation", None), ("realised", "soon")):
        with pytest.raises(InputError, match=name):
            TrainingFacts.from_record({**record, name: wrong})
    with pytest.raises(InputError, match="realised"):
        TrainingFacts.from_record({name: value for name, value in record.items() if name != "realised"})
