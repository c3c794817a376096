"""Facts that statements are derived from."""

from dataclasses import replace
from typing import Any

from tests.support.statements.releases import LAYERS, counted, noised

from tacit.privacy import Blt, Guarantee, Participation, Tree
from tacit.privacy.local_anonymity import Anonymity
from tacit.statements import DiscoveryFacts, EvaluationFacts, TrainingFacts

TWO_STEPS = Participation(rounds=2, min_separation=2, max_participations=1)
CENTRAL = EvaluationFacts(
    of="personalization",
    subjects=("runs/novels/model", "5 epochs at 0.1"),
    source="novels",
    split="test",
    asked=40,
    delta=1e-6,
    looked_at=("the exact figures of the simulation",),
    verify_command="tacit verify runs/gains/report/statement.json",
    participation=TWO_STEPS,
    releases=(noised(0, 11, 20), noised(1, 9, 20)),
)

LOCAL = replace(
    CENTRAL,
    of="models",
    delta=0.0,
    participation=Participation(rounds=1, min_separation=1, max_participations=1),
    releases=(counted(1, 21, 0), counted(2, 19, 21)),
)


SERVED = Participation(rounds=2000, min_separation=324, max_participations=6)
SEEN = Participation(rounds=2000, min_separation=326, max_participations=5)


def planned_facts(strategy: Tree | Blt, **changed: Any) -> TrainingFacts:
    values: dict[str, Any] = {
        "planned": Guarantee(participation=SERVED, strategy=strategy, clip_norm=0.5, noise_multiplier=7.0),
        "delta": 1e-10,
        "population": 4_210_000,
        "report_goal": 6500,
        "cohort_rule": "every device keeps a timer of 48 hours",
        "vocabulary_kind": "public",
        "vocabulary_description": "counted in public text",
        "released": "the model after every round",
        "looked_at": (),
        "verify_command": "tacit verify plan/statement.json",
        "simulated": SEEN,
        "simulation": "All devices, one seed.",
        **changed,
    }
    return TrainingFacts(**values)


PLAN = Participation.from_rounds_between(rounds=2000, rounds_between=313, max_participations=6)
PROMISE = Guarantee(participation=PLAN, strategy=Tree(), clip_norm=5.0, noise_multiplier=7.0)
HAPPENED = PROMISE.with_participation(Participation(rounds=2000, min_separation=400, max_participations=5))
TRAINING = TrainingFacts(
    planned=PROMISE,
    realised=HAPPENED,
    delta=1e-10,
    population=4_210_000,
    report_goal=6500,
    participations=13_000_000,
    cohort_rule="exactly the report goal, drawn from clients whose separation allows it",
    vocabulary_kind="public",
    vocabulary_description="the 10,000 most frequent words of public novels",
    released="the final model and the model of every round",
    looked_at=("evaluation on validation clients", "tuning of the server learning rate"),
    public_data=("public novels",),
    verify_command="tacit account run runs/novels",
)


DISCOVERY = DiscoveryFacts(
    releases=LAYERS,
    central_delta=1e-8,
    population=9000,
    resampled=False,
    key_source="operating system",
    sampler="random",
    anonymity=Anonymity(k=5, delta=2e-3),
    vocabulary_kind="public",
    vocabulary_description="a public list",
    looked_at=("made-up truth",),
    verify_command="tacit verify statement.json",
)
