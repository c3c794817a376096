"""Whether private learning is worth its price: the gain that is expected over the best free model of the same public
text, network and n-grams mixed. One function, which `plan epsilon`, `plan recipe`, `recipe new` and the first lines of
`train` all say.

A free model is measured on public text that no part of it read (`jobs/plan/free_model.py`). Where none is, nothing is
known to be gained, and WORKS is not said.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tacit.planning.noise_forecast import ALIKE, FARTHEST, UNLIKE

Word = Literal["works", "costly", "gains nothing", "cannot work", "over nothing"]
# A model of public text had 91% to 94% of what private training from it ended with (docs/results/pretraining.md).
OF_PUBLIC = 0.95
# Clients times epsilon from which on counts gained over the best free model (docs/results/people.md): 500 people of
# epsilon 1 where public text is far from theirs; on blogs, which it fits, 6,131 did and 500 did not.
COUNTED_FAR, COUNTED_NEAR = 500, 6_131


@dataclass(frozen=True, kw_only=True)
class FreeModel:
    """The best model of a public text that costs no privacy, on passages of that text which no part of it read."""

    made_of: str  # its parts, with their weights
    text: str  # the public text
    top1: float
    network: float | None  # top-1 of the network alone, on the same; None: there is none
    passages: int

    @property
    def over_network(self) -> float:
        """Its accuracy over that of the network alone; 1 where there is none."""
        return self.top1 / self.network if self.network else 1.0

    def says(self) -> str:
        """What it is, and how good."""
        return (
            f"{self.made_of}, of {self.text} (top-1 {self.top1:.2%} on {self.passages:,} passages of it that it never "
            "read; less on clients' text)"
        )


class Gains(NamedTuple):
    """Shares of an accuracy, gained: by how far public text is from what the clients write."""

    alike: float  # of one kind
    unlike: float  # of another
    farthest: float  # as commit messages and old novels: at most

    def over(self, free: FreeModel) -> "Gains":
        """Of the free model's accuracy, where these are of its network's."""
        return Gains(*((1 + each) / free.over_network - 1 for each in self))


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Whether it is worth it, and over what."""

    word: Word
    gains: Gains | None  # over the free model; None: none is measured, or they are not foreseen in shares
    free: FreeModel | None
    expected: str  # one clause

    def says(self) -> str:
        """As every command says it."""
        return f"{self.word.upper()}: {self.expected}"


def judged(over_start: Gains | None, free: FreeModel | None, *, hopeless: bool = False) -> Judgement:
    """Of rounds. over_start: what they are expected to gain over the public network that they begin from, or over a
    usual one (`from_random`). hopeless: the noise leaves nothing of the model.
    """
    gains = None if over_start is None or free is None else over_start.over(free)
    if hopeless:
        instead = "take what is free" if free is None else f"take what is free as it is, at epsilon 0: {free.says()}"
        return Judgement(word="cannot work", gains=gains, free=free, expected=f"the noise leaves nothing; {instead}")
    if free is None:
        return Judgement(word="over nothing", gains=None, free=None, expected=_over_nothing(over_start))
    if gains is None:
        expected = f"what is gained over the best free model is not foreseen: {free.says()}"
        return Judgement(word="over nothing", gains=None, free=free, expected=expected)
    if gains.farthest <= 0:
        expected = f"no gain is expected over the best free model, which costs epsilon 0, so take that: {free.says()}"
        return Judgement(word="gains nothing", gains=gains, free=free, expected=expected)
    expected = f"{_spread(gains)} of the accuracy of the best free model is expected, which is {free.says()}"
    if gains.alike >= 0:
        return Judgement(word="works", gains=gains, free=free, expected=expected)
    return Judgement(word="costly", gains=gains, free=free, expected=f"{expected}; compare, and keep the better one")


def judged_counts(clients: int, epsilon: float, free: FreeModel | None) -> Judgement:
    """Of private counts that bend a free model, for so many clients at this epsilon."""
    if free is None:
        return Judgement(word="over nothing", gains=None, free=None, expected=_over_nothing(None))
    many = clients * epsilon
    if many < COUNTED_FAR:
        word: Word = "gains nothing"
        said = f"fewer than {COUNTED_FAR} people at epsilon 1 were never seen to gain over the best free model"
    elif many < COUNTED_NEAR:
        word = "costly"
        said = "so many gained over the best free model where public text is far from theirs, and not where it fits"
    else:
        word, said = (
            "works",
            "so many gained over the best free model wherever it was tried, 0.2 to 4.8 points of top-3",
        )
    return Judgement(
        word=word, gains=None, free=free, expected=f"{said} (docs/results/people.md); here it is {free.says()}"
    )


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


def _spread(gains: Gains) -> str:
    """From the least to the most, and by what it goes."""
    if gains.alike == gains.farthest:
        return f"{gains.alike:+.1%}"
    return (
        f"{gains.alike:+.1%} (where clients write as that text does) to {gains.unlike:+.1%} (otherwise), at most "
        f"{gains.farthest:+.0%},"
    )


def _over_nothing(over_start: Gains | None) -> str:
    if over_start is not None and over_start.alike != over_start.farthest:
        return (
            f"{_spread(over_start)} of the accuracy of the public model that it begins from is expected; how good its "
            "text's n-grams are, alone and mixed with it, was not measured (name that text: --public CACHE)"
        )
    return (
        "no public text is named, so this is judged over nothing: a model of public text may do as well at epsilon 0 "
        "(name one: --public CACHE, or begin from one: --init)"
    )
