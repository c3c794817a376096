"""What a page says of counts that devices released: the promise in words, numbers with their intervals, no more."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tacit.plurals import quantity
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Heading, Labels, Paragraph
from tacit.statements.statement import Label

MODELS_APART = (
    ", the settings, and a model itself, whose training has a guarantee of its own (a client that trained it, too, "
    "adds the two zCDP figures)"
)


class Interval(NamedTuple):
    """A number with the ends of its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def from_plain(cls, found: Sequence[Any]) -> "Interval":
        """As a record has it: null is not a number, and an infinite end is text."""
        return cls(*map(number_from, found))


def promise_blocks(promise: Mapping[str, Any], *, about_models: bool = True) -> list[Block]:
    """The section RELEASED: what everything in it promises to each asked client. about_models: else of text alone."""
    blocks: list[Block] = [Heading("RELEASED")]
    if promise["kind"] == "nothing":
        advice = "NOTHING WAS RELEASED. Ask for a release with `--zcdp`, `--epsilon` or `--local-epsilon`."
        return [*blocks, Paragraph(advice)]
    if promise["key_source"] != OPERATING_SYSTEM:
        meaning = f"randomness came from {promise['key_source']}; who knows it can take the noise away."
        blocks.append(Labels((Label("FIXED SEED", meaning),)))
    if promise["kind"] == "local":
        return [
            *blocks,
            Paragraph(
                f"Local differential privacy: every device randomised its one report itself, epsilon "
                f"{rounded_up(promise['epsilon'])} (delta 0), whoever sees it. Which of the questions it answered was "
                f"drawn without looking at its text.{_aggregation(promise)}"
            ),
        ]
    counted = f"{quantity(promise['steps'], 'step')} of"
    noisier, whose = _noise_by(promise)
    spreads = " and ".join(f"{noisier * spread:.4g}" for spread in promise["stddev_of_a_count"])
    return [
        *blocks,
        Paragraph(
            f"Central differential privacy by Gaussian noise: zCDP {rounded_up(promise['zcdp'])}, epsilon "
            f"{rounded_up(promise['epsilon'])} at delta {promise['delta']:g}, for everything one client holds "
            f"(zero-out: its reports are replaced by zeros), by the run's ledger. {counted} "
            f"{_released(promise)}; the noise of a count has standard deviation {spreads}."
        ),
        Paragraph(
            "Covered: every number of this part, and whatever was chosen by them. Not covered: how many clients were "
            f"asked{MODELS_APART if about_models else ' and the settings'}. {whose}{_aggregation(promise)}"
        ),
    ]


def _noise_by(promise: Mapping[str, Any]) -> tuple[float, str]:
    """(deviation of the noise in a count, in what is accounted; who is trusted with it)."""
    if "decryptors" not in promise:
        return 1.0, "The aggregator is trusted to add the noise to the sum."
    many, honest = promise["decryptors"], promise["honest_decryptors"]
    who = "one of them is" if honest == 1 else f"{honest} of them are"
    return math.sqrt(many / honest), f"{many} decryptors add the noise, and at least {who} trusted to."


def _released(promise: Mapping[str, Any]) -> str:
    """What a step releases, and what a client adds to it."""
    if "clip_norm" in promise:
        norms = " and ".join(f"{norm:.6g}" for norm in promise["clip_norm"])
        return f"sums; a client adds whole numbers of L2 norm {norms} at most"
    sizes = " and ".join(f"{count}" for count in promise["histograms"])
    many = f"{sizes} histogram{'s' * (max(promise['histograms']) > 1)}"
    return f"{many}; a client is in one step and one cell of each histogram there"


def _aggregation(promise: Mapping[str, Any]) -> str:
    """Who adds up the reports, as the statement says it; nothing for a result of a version that did not record it."""
    return f" Aggregation of devices' reports: {promise['aggregation']}." if "aggregation" in promise else ""


def participants_text(record: Mapping[str, Any]) -> str:
    """How many clients of a cache, or real devices of a population, were asked."""
    if "population" in record:
        return f"{record['asked']:,} devices of the population {record['population']}"
    return f"{record['asked']:,} clients of the {record['split_name']} split"


def simulation_blocks(what: str) -> list[Block]:
    """The heading of numbers that no server would have; `what` is "SIMULATION ONLY: ..."."""
    name, _, meaning = what.partition(": ")
    return [Heading("SIMULATION ONLY"), Labels((Label(name, meaning),))]


def number_from(found: Any) -> float:
    """A number as a record has it: null is not a number, and an infinite one is text."""
    return math.nan if found is None else float(found)


def said(found: Sequence[Any] | None, *, form: str = ".4f") -> str:
    """A number and its interval; a dash where nothing is known."""
    if found is None:
        return "–"
    value, low, high = Interval.from_plain(found)
    if math.isnan(value):
        return "–"
    if math.isinf(low) or math.isinf(high):  # too few clients for one end, or for both
        ends = [f"from {low:{form}}"] if math.isfinite(low) else []
        ends += [f"up to {high:{form}}"] if math.isfinite(high) else []
        return f"{value:{form}} ({' '.join(ends) or 'any'})"
    return f"{value:{form}} ({low:{form}} to {high:{form}})"
