"""The statement of a run that trains: its items, title, labels and figures.

What they follow from is in `train_facts.py`, and how a run folder has it in `train_run_facts.py`. The sentences of the
items are in `train_sentences.py`, those of what is assumed in `train_assumptions.py`. Figures in sentences are rounded
up, never down.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar

from tacit.privacy.composition import Composition
from tacit.privacy.guarantee import OPERATING_SYSTEM, Guarantee
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.statements.statement import (
    PLANNED,
    PROTECTIVE_EPSILON,
    WEAKER,
    Item,
    Label,
    budget_label,
    delta_label,
    numbered,
)
from tacit.statements.train_assumptions import assumptions
from tacit.statements.train_facts import ADJACENCIES, EXACT, RELEASED, UNITS, TrainingFacts
from tacit.statements.train_run_facts import facts as facts
from tacit.statements.train_sentences import (
    accesses,
    accounting,
    extrapolated,
    formal,
    output,
    setting,
    verifiability,
)

FACTS = TrainingFacts
P = TypeVar("P")


def items(facts: TrainingFacts) -> list[Item]:
    """What is said, item by item."""
    texts = (
        setting(facts),
        accesses(facts),
        output(facts),
        UNITS[facts.unit],
        ADJACENCIES[facts.adjacency],
        accounting(facts),
        assumptions(facts),
        formal(facts),
        verifiability(facts),
    )
    if facts.extrapolation is None:
        return list(numbered(texts))
    return [*numbered(texts), Item("", "EXTRAPOLATED: not a guarantee of this run", extrapolated(facts))]


def title(facts: TrainingFacts) -> str:
    """Of the statement."""
    return "Privacy statement" if facts.realised else "Privacy statement, planned"


def figures(facts: TrainingFacts) -> Record:
    """What is promised as plain values, as planned and as it happened."""
    found: Record = {
        "delta": facts.delta,
        "unit": facts.unit,
        "adjacency": facts.adjacency,
        "key_source": facts.key_source,
        "private": facts.planned_in_all.private,
        **_planned_and_realised(facts),
    }
    if facts.extrapolation:
        found["extrapolated"] = {
            "report_goal": facts.extrapolation.report_goal,
            **_planned_and_realised(facts.at_larger_cohort()),
        }
    if facts.ended in (RELEASED, EXACT):
        found["holds"] = "planned"  # the number of rounds followed from what was released
    if facts.simulated:
        found["simulated"] = asdict(facts.simulated)
    return found


def labels(facts: TrainingFacts) -> tuple[Label, ...]:
    """What weakens the guarantee."""
    found = [] if facts.realised else [PLANNED]
    if facts.audited is not None:
        who = f"{facts.audited.canaries + facts.audited.users:,} of the clients were canaries of an audit"
        found.append(Label("CANARIES", f"{who}, so that nobody should use this run's model."))
    planned, holds = facts.planned_in_all, facts.realised_in_all or facts.planned_in_all
    if not facts.planned.private:
        found.append(Label("NON-PRIVATE", "no noise was added, so this run promises nothing to anybody."))
    elif not planned.private:
        bare = ", ".join(each.what for each in planned.sequences if not each.guarantee.private)
        found.append(Label("NON-PRIVATE", f"released without noise: {bare}; so nothing is promised to anybody."))
    if facts.vocabulary_kind == "private":
        meaning = "the list of words was counted in clients' own text; there is no guarantee for the vocabulary."
        found.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    if facts.key_source != OPERATING_SYSTEM:
        meaning = f"randomness came from {facts.key_source}; whoever knows the seed can take the noise away."
        found.append(Label("FIXED SEED", meaning))
    if holds.zcdp > planned.zcdp * (1 + 1e-9):
        found.append(WEAKER)
    if holds.private:
        found.extend(delta_label(facts.delta, facts.population))
    epsilon = holds.epsilon(facts.delta)
    if holds.private and epsilon > PROTECTIVE_EPSILON:
        figure = rounded_up(epsilon, 6)
        meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; this run's is {figure}."
        found.append(Label("VERY LARGE EPSILON", meaning))
    found.extend(budget_label(facts.budget))
    if facts.extrapolation:
        goal = facts.extrapolation.report_goal
        meaning = f"the last section speaks of {goal:,} reports a round, a run that was not made."
        found.append(Label("EXTRAPOLATED", meaning))
    return tuple(found)


def _planned_and_realised(facts: TrainingFacts) -> Record:
    """The figures of the model updates; where other sequences were released, theirs, and those of all together."""
    delta = facts.delta
    figures: Record = _both(facts.planned, facts.realised, lambda each: _figures(each, delta))
    if facts.also_released:
        figures["also_released"] = [
            {"what": each.what, **_both(each.planned, each.realised, lambda each: _figures(each, delta))}
            for each in facts.also_released
        ]
        figures["in_all"] = _both(
            facts.planned_in_all, facts.realised_in_all, lambda each: _promise_figures(each, delta)
        )
    return figures


def _both(planned: P, realised: P | None, figures: Callable[[P], Record]) -> Record:
    """As planned, and as realised where anything is."""
    return {"planned": figures(planned), **({"realised": figures(realised)} if realised else {})}


def _figures(guarantee: Guarantee, delta: float) -> Record:
    limits = guarantee.participation
    return {
        "strategy": guarantee.strategy.kind if guarantee.strategy else None,
        "rounds": limits.rounds,
        "min_separation": limits.min_separation,
        "rounds_between": limits.rounds_between,
        "max_participations": limits.max_participations,
        "sensitivity_squared": guarantee.sensitivity_squared,
        "exact": guarantee.exact,
        "noise_multiplier": guarantee.noise_multiplier,
        "clip_norm": _finite(guarantee.clip_norm),
        "clip_inflation": guarantee.clip_inflation,
        **_promise_figures(guarantee, delta),
    }


def _promise_figures(guarantee: Guarantee | Composition, delta: float) -> Record:
    figures = {"zcdp": guarantee.zcdp, "mu": guarantee.mu, "epsilon": guarantee.epsilon(delta)}
    return {**{name: _finite(value) for name, value in figures.items()}, "delta": delta}


def _finite(value: float) -> float | str:
    return "inf" if math.isinf(value) else value
