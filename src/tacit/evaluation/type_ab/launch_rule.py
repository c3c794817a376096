"""Whether B may replace A: the launch rule of an A/B test of typing.

The papers launch what is "improved or neutral" (arXiv:2408.08868, section 5), by the measures of their tables: picked
rate and accuracy of next words, words modified ratio, words a minute (arXiv:2305.18465, Tables 1 and 2). Inline phrases
are shown beside them and decide nothing: their threshold is set apart from the model.

    worse      one of the measures is worse, whatever the others are
    unknown    none is known to be worse, and of one nothing is known: nobody could be measured, or noise drowned them
    improved   none is worse, and at least one is better
    neutral    none is either

A measure is better or worse where the whole interval of its change is. With K measures each interval is at
1 - 0.05 / K (Bonferroni), so that of models that do not differ at most 5 in 100 are called improved or worse. Neutral
means that no change was shown, not that there is none: the intervals say which changes are ruled out.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tacit.evaluation.intervals import Estimate
from tacit.evaluation.type_ab.measures import Measure
from tacit.evaluation.type_ab.paired_bootstrap import Change

DECIDING = ("picked rate", "accuracy", "words modified ratio", "words a minute")
ERRORS = 0.05  # of the decision, among models that do not differ
CAUTIOUS = 1 - ERRORS / len(DECIDING)  # the confidence of each measure's interval

Judgement: TypeAlias = Literal["improved", "neutral", "worse", "unknown"]
RULE = (
    f"worse: one of {len(DECIDING)} measures is worse; unknown: of one nothing is known; improved: at least one is "
    f"better; else neutral. A measure is better or worse where its whole interval at {CAUTIOUS:.2%} is "
    f"({ERRORS:.0%} in all, shared out over {len(DECIDING)} measures)"
)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the rule says, and by which measures."""

    judgement: Judgement
    better: tuple[str, ...]
    worse: tuple[str, ...]
    unknown: tuple[str, ...]  # measures of which nothing is known: B may be worse by them


def gain_of(measure: Measure, change: Estimate) -> Estimate:
    """The change with its sign turned where less is better."""
    value, low, high = change
    return change if measure.better == "more" else Estimate(-value, -high, -low)


def gains_of(changes: Mapping[str, Change]) -> dict[str, Estimate]:
    """What the rule looks at, of changes whose `cautious` intervals are at CAUTIOUS."""
    return {name: gain_of(changes[name].measure, changes[name].cautious) for name in DECIDING}


def decide(gains: Mapping[str, Estimate]) -> Decision:
    """The rule applied to each deciding measure's gain, with its interval at CAUTIOUS."""
    better = tuple(name for name in DECIDING if gains[name].low > 0)
    worse = tuple(name for name in DECIDING if gains[name].high < 0)
    unknown = tuple(name for name in DECIDING if not any(math.isfinite(end) for end in gains[name][1:]))
    judgement: Judgement = "worse" if worse else "unknown" if unknown else "improved" if better else "neutral"
    return Decision(judgement=judgement, better=better, worse=worse, unknown=unknown)
