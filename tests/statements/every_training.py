"""The facts of a training of every kind, and how to change one value of a statement."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.privacy.separation import DeviceSeparation
from tacit.statements import TrainingFacts
from tacit.statements.audited import Audited
from tacit.statements.train_facts import Extrapolation, SideRelease

PLAN = Participation.from_rounds_between(rounds=200, rounds_between=30, max_participations=6)
HAPPENED = Participation(rounds=180, min_separation=40, max_participations=5)
PROMISE = Guarantee(participation=PLAN, strategy=Tree(restarts=(128,)), clip_norm=5.0, noise_multiplier=7.0)
FACTS = TrainingFacts(
    planned=PROMISE,
    realised=PROMISE.with_participation(HAPPENED),
    delta=1e-10,
    population=100_000,
    report_goal=500,
    participations=90_000,
    cohort_rule="exactly the report goal",
    vocabulary_kind="public",
    vocabulary_description="the 10,000 most frequent words of public novels",
    released="the final model",
    looked_at=("evaluation on validation clients",),
    public_data=("public novels",),
    verify_command="tacit account run runs/novels",
)

AUDITED = Audited(
    canaries=500,
    users=126,
    sees="all",
    confidence=0.95,
    tacit="0.1.0",
    command="tacit audit RECIPE --canaries 500",
    mu_shown=0.25,
)
LITTLE = replace(PROMISE, noise_multiplier=0.05, strategy=Blt(theta=(0.9, 0.5), omega=(0.3, 0.1)), clip_inflation=1.01)
BITS = Guarantee(participation=PLAN, strategy=Tree(), clip_norm=0.5, noise_multiplier=50.0)
COUNTS = Guarantee(participation=replace(PLAN, rounds=20), strategy=Independent(), clip_norm=1.0, noise_multiplier=9.0)
BARE = Guarantee(participation=PLAN, strategy=None, clip_norm=math.inf, noise_multiplier=0.0)
STATEMENTS = {
    "usual": FACTS,
    "every label": replace(
        FACTS,
        planned=LITTLE.with_participation(replace(HAPPENED, rounds=200)),
        realised=LITTLE,
        participations=100_000,
        vocabulary_kind="private",
        key_source="fixed seed 7",
        unit="client",
        extrapolation=Extrapolation(report_goal=6500, noise_multiplier=0.65),
    ),
    "several sequences": replace(
        FACTS,
        also_released=(
            SideRelease(what="clip estimate", planned=BITS, realised=BITS.with_participation(HAPPENED)),
            SideRelease(what="evaluation histogram", planned=COUNTS, realised=COUNTS),
        ),
    ),
    "devices": replace(
        FACTS,
        planned=PROMISE.with_participation(Participation.worst_case(rounds=200, min_separation=31)),
        realised=PROMISE.with_participation(Participation.worst_case(rounds=180, min_separation=31)),
        separation=DeviceSeparation(rounds=31),
    ),
    "devices that count": replace(
        FACTS,
        planned=PROMISE.with_participation(Participation(rounds=200, min_separation=31, max_participations=4)),
        realised=PROMISE.with_participation(Participation(rounds=180, min_separation=31, max_participations=4)),
        separation=DeviceSeparation(rounds=31, most=4),
    ),
    "devices with timers": replace(FACTS, separation=DeviceSeparation(timer_seconds=48 * 3600.0), population=12_000),
    "ended by a rule": replace(FACTS, ended="released"),
    "ended by a rule that looks": replace(FACTS, ended="exact"),
    "ended by hand": replace(FACTS, ended="by hand"),
    "audited": replace(FACTS, audited=AUDITED),
    "without noise": replace(FACTS, planned=BARE, realised=BARE.with_participation(HAPPENED)),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every plain value, those inside lists too."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield path
        return
    for key, each in inner:
        yield from places(each, (*path, key))


def otherwise(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * 1.001 or 1.0
        case str():
            return value.replace("8", "9") if "8" in value else value + "x"
        case _:
            return "something"
