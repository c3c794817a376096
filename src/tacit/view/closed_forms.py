"""A plan by closed forms alone, fast enough for a slider: noise for a budget, and what it leaves of a model.

No mechanism is designed and nothing is simulated here, as `tacit plan` does: the tree, the published BLT and
independent noise stand for what can be had. Public numbers go in, so nothing that is shown costs privacy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from tacit.design.losses import prefix_errors
from tacit.errors import InputError
from tacit.planning.noise_forecast import FACTOR, PARAMETERS, STEP, ratio_of_sums, share_kept
from tacit.privacy import gaussian
from tacit.privacy.delta import default_delta
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.privacy.sensitivity import sensitivity_bound_squared
from tacit.privacy.strategy import PUBLISHED_BLT, Independent, Strategy, Tree
from tacit.reports.figure import BLUE, GREEN, ORANGE, Axis, Figure, Line, Panel, Rule

EPSILONS = tuple(0.1 * 10 ** (step / 8) for step in range(25))  # 0.1 to 100
BLTS = {"b100": 100, "b400": 400, "b1000": 1000}  # for which separation each was published


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A number that is asked for: its range, its step, and what it is called."""

    name: str
    label: str
    low: float
    high: float
    value: float
    whole: bool = True

    def read(self, text: str | None) -> float:
        """What was given, or the default. Raises: InputError where it is no number in the range."""
        if text is None or not text.strip():
            return self.value
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not self.low <= number <= self.high or (self.whole and number != int(number)):
            whole = "a whole number" if self.whole else "a number"
            raise InputError(f"{self.label} is {text[:40]!r}; give {whole} from {self.low:,.10g} to {self.high:,.10g}.")
        return number


SLIDERS = (
    Slider(name="population", label="clients", low=10, high=100_000_000, value=10_000),
    Slider(name="rounds", label="rounds", low=1, high=10_000, value=200),
    Slider(name="report_goal", label="reports a round", low=1, high=100_000, value=200),
    Slider(name="min_separation", label="rounds from one visit of a client to its next", low=1, high=10_000, value=50),
    Slider(name="epsilon", label="epsilon", low=0.01, high=1_000, value=8, whole=False),
    Slider(name="parameters", label="weights of the model", low=1_000, high=100_000_000, value=PARAMETERS),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one mechanism gives for the plan."""

    mechanism: str
    noise_multiplier: float
    sensitivity: float  # in clip norms
    share: float  # of the accuracy without noise, expected to be kept
    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The numbers of a plan."""

    population: int
    rounds: int
    report_goal: int
    min_separation: int
    epsilon: float
    parameters: int

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "Asked":
        """Raises: InputError for what is out of range."""
        found = {each.name: each.read(query.get(each.name)) for each in SLIDERS}
        whole = {each.name for each in SLIDERS if each.whole}
        return cls(**{name: int(value) if name in whole else value for name, value in found.items()})  # type: ignore[arg-type]

    @property
    def delta(self) -> float:
        """By how many clients there are."""
        return default_delta(self.population)

    @property
    def participation(self) -> Participation:
        """The most that the separation allows."""
        return Participation.worst_case(self.rounds, self.min_separation)

    @property
    def busy(self) -> int:
        """Clients that no round may ask, and those it asks: so many must there be."""
        return self.report_goal * self.min_separation

    def complaint(self) -> str:
        """Why it cannot be had; empty where it can."""
        if self.busy <= self.population:
            return ""
        most = max(1, self.population // self.report_goal)
        return (
            f"{self.report_goal:,} reports a round, {self.min_separation:,} rounds apart, need {self.busy:,} clients, "
            f"and there are {self.population:,}: take a separation of at most {most:,}, or fewer reports."
        )

    def to_record(self) -> dict[str, Any]:
        """Plain values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def mechanisms(separation: int) -> dict[str, Strategy]:
    """Those with closed forms; of the published BLTs the one for the nearest separation."""
    nearest = min(BLTS, key=lambda name: abs(math.log(BLTS[name] / separation)))
    return {"tree": Tree(), f"BLT ({nearest})": PUBLISHED_BLT[nearest], "independent": Independent()}


@lru_cache(maxsize=512)
def _unit(strategy: Strategy, participation: Participation) -> tuple[float, float]:
    """(sensitivity, root mean square error of prefix sums for seeds of deviation 1)."""
    squared, _ = sensitivity_bound_squared(strategy, participation)
    return math.sqrt(squared), prefix_errors(strategy, participation.rounds)[1]


@lru_cache(maxsize=4096)
def _root(epsilon: float, delta: float) -> float:
    """1 / sqrt(2 zCDP): the noise multiplier of a sensitivity of 1."""
    return 1 / math.sqrt(2 * gaussian.zcdp_for_epsilon(epsilon, delta))


def outcomes(asked: Asked) -> list[Outcome]:
    """Of each mechanism at the asked epsilon, the one that keeps most first."""
    found = []
    for name, strategy in mechanisms(asked.min_separation).items():
        sensitivity, error = _unit(strategy, asked.participation)
        multiplier = sensitivity * _root(asked.epsilon, asked.delta)
        ratio = _ratio(asked, error, multiplier)
        found.append(
            Outcome(
                mechanism=name,
                noise_multiplier=multiplier,
                sensitivity=sensitivity,
                share=share_kept(ratio),
                least=share_kept(ratio * FACTOR),
                most=share_kept(ratio / FACTOR),
            )
        )
    return sorted(found, key=lambda each: -each.share)


def _ratio(asked: Asked, error: float, multiplier: float) -> float:
    return ratio_of_sums(STEP * error * multiplier / asked.report_goal, parameters=asked.parameters)


def over_epsilon(asked: Asked) -> Figure:
    """What each mechanism keeps, over epsilon."""
    marks = []
    for (name, strategy), hue in zip(mechanisms(asked.min_separation).items(), (ORANGE, BLUE, GREEN), strict=True):
        sensitivity, error = _unit(strategy, asked.participation)
        kept = [share_kept(_ratio(asked, error, sensitivity * _root(each, asked.delta))) for each in EPSILONS]
        marks.append(Line(x=EPSILONS, y=kept, label=name, hue=hue, dots=False))
    best = outcomes(asked)[0]
    return Figure(
        name="forecast",
        title="What noise leaves of the model, over epsilon",
        alt=f"At epsilon {asked.epsilon:g} the {best.mechanism} keeps {best.share:.0%} of the accuracy without noise, "
        "as far as small runs tell.",
        panels=(
            Panel(
                marks=(*marks, Rule(at=asked.epsilon, along="x", label="asked for", stroke=1)),
                x=Axis("epsilon", log=True),
                y=Axis("accuracy kept, of that without noise", percent=True, low=0, high=1),
            ),
        ),
    )


def sentence(asked: Asked) -> str:
    """The answer first."""
    if complaint := asked.complaint():
        return complaint
    best, times = outcomes(asked)[0], asked.participation.effective.max_participations
    return (
        f"At epsilon {asked.epsilon:g} (delta {asked.delta:g}) the {best.mechanism} needs a noise multiplier of "
        f"{rounded_up(best.noise_multiplier)} and keeps about {best.share:.0%} of the accuracy without noise "
        f"({best.least:.0%} to {best.most:.0%}); a client takes part {times:,} times at most."
    )
