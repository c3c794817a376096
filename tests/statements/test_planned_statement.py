"""The statement of a run that was not made: loudly planned, nothing realised in it, and recomputable."""

import json
from dataclasses import replace

import pytest

from tacit.errors import InputError
from tacit.privacy import Blt, Guarantee, Participation, Tree
from tacit.privacy.strategy import PUBLISHED_BLT
from tacit.statements import StatementFacts
from tacit.statements.planned_statement import PlannedFacts, planned_statement
from tacit.statements.verify import verify

SERVED = Participation(rounds=2000, min_separation=324, max_participations=6)
SEEN = Participation(rounds=2000, min_separation=326, max_participations=5)


def facts_of(strategy: Tree | Blt, **changed: object) -> PlannedFacts:
    guarantee = Guarantee(participation=SERVED, strategy=strategy, clip_norm=0.5, noise_multiplier=7.0)
    values = {
        "planned": guarantee,
        "realised": guarantee,
        "delta": 1e-10,
        "population": 4_210_000,
        "report_goal": 6500,
        "cohort_rule": "every device keeps a timer of 48 hours",
        "vocabulary_kind": "public",
        "vocabulary_description": "counted in public text",
        "released": "the model after every round",
        "looked_at": (),
        "verify_command": "tacit verify plan/statement.json",
        **changed,
    }
    return PlannedFacts(run=StatementFacts(**values), simulated=SEEN, simulation="All devices, one seed.")  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", [Tree(), PUBLISHED_BLT["b400"]], ids=["tree", "blt"])
def test_it_is_loudly_planned_and_claims_nothing_that_happened(strategy: Tree | Blt) -> None:
    facts = facts_of(strategy)
    made = planned_statement(facts)
    assert made.markdown().startswith("**PLANNED: nothing has been trained.")
    record = made.to_record()
    assert "realised" not in record and record["planned"]["zcdp"] == facts.run.planned.zcdp
    assert record["simulated"] == {"rounds": 2000, "min_separation": 326, "max_participations": 5}
    text = made.markdown()
    assert "measured from the log" not in text and "As realised" not in text
    assert "at least 324 rounds apart" in text and "at least 326 rounds apart" in text
    assert "tacit account" in text and "tacit verify plan/statement.json" in text
    assert [item.number for item in made.items] == ["1", "2a", "2b", "2c", "2d", "3a", "3b", "3c", "3d"]


def test_the_other_labels_come_after_it() -> None:
    labels = [label.name for label in planned_statement(facts_of(Tree(), vocabulary_kind="private")).labels]
    assert labels == ["PLANNED", "VOCABULARY FROM PRIVATE TEXT"]


def test_it_is_computed_again_from_its_record() -> None:
    facts = facts_of(PUBLISHED_BLT["b400"])
    record = json.loads(planned_statement(facts).to_json())
    assert PlannedFacts.from_record(record["facts"]) == facts
    assert all(line.holds for line in verify(record))
    record["planned"]["zcdp"] *= 0.99
    record["facts"]["run"]["mechanism"]["noise_multiplier"] = 7.5
    failed = {line.name for line in verify(record) if not line.holds}
    assert {"facts.run.mechanism.noise_multiplier", "planned.zcdp"} <= failed


def test_facts_that_are_none_are_refused() -> None:
    facts = facts_of(Tree())
    happened = replace(facts.run, realised=facts.run.planned.with_participation(SEEN))
    with pytest.raises(InputError, match="nothing was realised"):
        PlannedFacts(run=happened)
    with pytest.raises(InputError, match="simulate the plan"):
        PlannedFacts(run=facts.run, simulated=Participation.worst_case(100, 10))
    record = json.loads(json.dumps(facts.to_record()))
    for wrong in (
        {"run": record["run"]},
        {**record, "run": 3},
        {**record, "simulated": {"rounds": 3}},
        {**record, "simulation": None},
    ):
        with pytest.raises(InputError):
            PlannedFacts.from_record(wrong)
    assert planned_statement(PlannedFacts(run=facts.run)).figures.keys().isdisjoint({"simulated", "realised"})
