"""Whether private learning is worth its price: the top-1 that is expected over the best free model of the same public
text, network and n-grams mixed. One function, which `plan epsilon`, `plan recipe`, `recipe new` and the first lines of
`train` all say: a verdict, what is expected, what the free model is, and a way out.

A free model is measured on public text that no part of it read (`jobs/plan/free_model.py`). Where none is, nothing is
known to be gained, and WORTH IT is not said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tacit.evaluation.comparison_models import said_mixture
from tacit.planning.noise_forecast import ALIKE, FARTHEST, UNLIKE
from tacit.records import to_plain

Verdict = Literal["worth it", "may not pay off", "no gain expected", "too noisy", "not compared", "not forecast"]
# A model of public text had 91% to 94% of what private training from it ended with (docs/results/pretraining.md).
OF_PUBLIC = 0.95
# Clients times epsilon from which on counts gained over the best free model (docs/results/people.md): 500 people of
# epsilon 1 where public text is far from theirs; on blogs, which it fits, 6,131 did and 500 did not.
COUNTED_FAR, COUNTED_NEAR = 500, 6_131


class Gains(NamedTuple):
    """Shares of an accuracy, gained: by how far public text is from what the clients write."""

    alike: float  # of one kind
    unlike: float  # of another
    farthest: float  # as commit messages and old novels: at most


class Top1Over(NamedTuple):
    """Top-1 less that of the best free model, as shares: 0.01 is a point."""

    low: float  # where clients write as its public text does
    high: float  # where they write otherwise
    best: float  # where they write least like it


# Of all measured counts, the least and the most (docs/results/people.md): with more clients times epsilon than
# COUNTED_FAR, and than COUNTED_NEAR.
SEEN_FAR, SEEN_NEAR = Top1Over(-0.0004, 0.0349, 0.0349), Top1Over(0.0009, 0.0372, 0.0372)

AS_IT_IS = "use the best free model as it is, at epsilon 0 (`tacit ngram`, `tacit mix`)"
ANY_PUBLIC = "use a model of public text as it is, at epsilon 0 (`tacit pretrain`, `tacit ngram`)"
TRY = "try it, compare both on test clients, and keep the better one"
COMPARE = "name a public text (as `tacit plan recipe --public CACHE`), or begin from a model of one (`--init`)"
COMPARE_START = "name the text of its first model (as `tacit plan recipe --public CACHE`)"


@dataclass(frozen=True, kw_only=True)
class FreeModel:
    """The best model of a public text that costs no privacy, on sentences of that text which no part of it read."""

    weights: Mapping[str, float]  # of its parts, which other held-out sentences of that text chose
    text: str  # the public text
    top1: float
    network: float | None  # top-1 of the network alone, on the same; None: there is none
    sentences: int  # that it was measured on

    @property
    def over_network(self) -> float:
        """Its accuracy over that of the network alone; 1 where there is none."""
        return self.top1 / self.network if self.network else 1.0

    def says(self) -> str:
        """What it is, and how good: three short sentences."""
        chosen = " (weights fitted on held-out public text)" if len(self.weights) > 1 else ""
        return (
            f"The best free model: {said_mixture(self.weights)}{chosen}. It is made of "
            f"{self.text.removeprefix('public text: ')}. Its top-1 is {self.top1:.1%} on {self.sentences:,} held-out "
            "public sentences, and lower on clients' text."
        )


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Whether it is worth it, over what, and what else one can do."""

    verdict: Verdict
    over_free: Top1Over | None  # None: no free model is measured, or nothing is foreseen
    free: FreeModel | None
    expected: str  # in a sentence or two
    way_out: str = ""  # one clause; empty where none is needed

    def reasons(self) -> str:
        """What is expected, and over what."""
        return self.expected if self.free is None else f"{self.expected} {self.free.says()}"

    def says(self) -> str:
        """As every command says it."""
        way_out = f" Way out: {self.way_out}." if self.way_out else ""
        return f"{self.verdict.upper()}. {self.reasons()}{way_out}"

    def in_brief(self) -> str:
        """`WORTH IT (0.3 to 1.4 points above)`: the verdict, and the range where there is one."""
        if self.over_free is None:
            return self.verdict.upper()
        best = "" if self.over_free.best == self.over_free.high else f", at best {_side(self.over_free.best)}"
        return f"{self.verdict.upper()} ({said_points(self.over_free)}{best})"

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON, which every command gives."""
        return {
            "judgement": self.verdict,
            "expected": self.expected,
            "way_out": self.way_out,
            "top1_over_free": None if self.over_free is None else self.over_free._asdict(),
            "free": None if self.free is None else to_plain(self.free),
        }


def judged(over_start: Gains | None, free: FreeModel | None, *, hopeless: bool = False) -> Judgement:
    """Of rounds. over_start: what they are expected to gain over the public network that they begin from, or over a
    usual one (`from_random`); None: that is not foreseen. hopeless: the noise leaves nothing of the model.
    """
    if hopeless:
        over = None if over_start is None or free is None else over_free(over_start, free)
        way_out = ANY_PUBLIC if free is None else AS_IT_IS
        said = "The noise leaves nothing of the model."
        return Judgement(verdict="too noisy", over_free=over, free=free, expected=said, way_out=way_out)
    if free is None:
        return _not_compared(over_start)
    if over_start is None:
        return not_forecast("nothing like it was measured", free)
    over = over_free(over_start, free)
    return _judged(over, free, _expected(over, free))


def judged_counts(clients: int, epsilon: float, free: FreeModel | None) -> Judgement:
    """Of private counts that bend a free model, for so many clients at this epsilon."""
    if free is None:
        return _not_compared(None)
    many = clients * epsilon
    if many < COUNTED_FAR:
        said = f"So few people were never seen to gain: {COUNTED_FAR} at epsilon 1 are the fewest that did."
        return Judgement(verdict="no gain expected", over_free=None, free=free, expected=said, way_out=AS_IT_IS)
    over = SEEN_FAR if many < COUNTED_NEAR else SEEN_NEAR
    said = f"{_expected(over, free)} So it was with as many people elsewhere (docs/results/people.md)."
    return _judged(over, free, said)


def not_forecast(why: str, free: FreeModel | None) -> Judgement:
    """Of what nothing is known. why: a clause."""
    said = f"What the noise will do to the model cannot be told: {why}."
    return Judgement(verdict="not forecast", over_free=None, free=free, expected=said)


def over_free(over_start: Gains, free: FreeModel) -> Top1Over:
    """Over the free model, where these are shares of its network's accuracy."""
    return Top1Over(*(free.top1 * ((1 + each) / free.over_network - 1) for each in over_start))


def from_public(kept: float) -> Gains:
    """What rounds gain over the public network that they begin from, where noise leaves this share of the accuracy."""
    return Gains(*((1 + each) * kept - 1 for each in (ALIKE, UNLIKE, FARTHEST)))


def from_random(learnt: float) -> Gains:
    """What a network from random weights has over a usual one of public text, by the share that it learns of all that
    the clients could teach it.
    """
    gain = learnt / OF_PUBLIC - 1
    return Gains(gain, gain, gain)


def share_to_gain(free: FreeModel | None) -> float:
    """The share of the accuracy without noise from which on rounds from random weights gain over what is free; 1 and
    more: none does.
    """
    return OF_PUBLIC * (1.0 if free is None else free.over_network)


def _judged(over: Top1Over, free: FreeModel, expected: str) -> Judgement:
    if over.best <= 0:
        return Judgement(verdict="no gain expected", over_free=over, free=free, expected=expected, way_out=AS_IT_IS)
    if over.low >= 0:
        return Judgement(verdict="worth it", over_free=over, free=free, expected=expected)
    return Judgement(verdict="may not pay off", over_free=over, free=free, expected=expected, way_out=TRY)


def _expected(over: Top1Over, free: FreeModel) -> str:
    """How much more or less than the free model has, and what that goes by."""
    said = f"Expected top-1: {said_points(over)} the best free model ({free.top1:.1%})."
    if over.low == over.best:
        return said
    best = "" if over.best == over.high else f" Where they do least, at best {_side(over.best)}."
    return f"{said} The lower end holds where clients write like its text.{best}"


def said_points(over: Top1Over) -> str:
    """`0.3 points below to 1.4 points above`: from the least on, without the best."""
    low, high = over.low, over.high
    ends = _points(low), _points(high)
    if _side(low) == _side(high):
        return _side(low)
    if low < 0 <= high:
        return f"{_side(low)} to {_side(high)}"
    return f"{ends[0]} to {ends[1]} points {'below' if high < 0 else 'above'}"


def _side(share: float) -> str:
    points = _points(share)
    return "level with" if points == "0" else f"{points} points {'below' if share < 0 else 'above'}"


def _points(share: float) -> str:
    """As many digits as a forecast has."""
    points = abs(100 * share)
    return "0" if points < 0.005 else f"{points:.1g}" if points < 0.095 else f"{points:.1f}"


def _not_compared(over_start: Gains | None) -> Judgement:
    said = "No public text is at hand, so no free model was measured; one may do as well at epsilon 0."
    if over_start is None or over_start.alike == over_start.farthest:
        return Judgement(verdict="not compared", over_free=None, free=None, expected=said, way_out=COMPARE)
    alike, unlike, farthest = (f"{each:+.1%}" for each in over_start)
    said = (
        f"Expected top-1: {alike} to {unlike} of that of the model which it begins from, and at best {farthest}. The "
        "lower end holds where clients write like its text. That text is not at hand, and its n-grams may do as well "
        "at epsilon 0."
    )
    return Judgement(verdict="not compared", over_free=None, free=None, expected=said, way_out=COMPARE_START)
