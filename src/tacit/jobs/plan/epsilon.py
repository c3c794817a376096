"""Which epsilon populations of several sizes afford, with and without a model of public text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.plan.free_model import free_model_for
from tacit.jobs.plan.job import DrawnResult, columns_of
from tacit.planning import Clients, mechanism_named
from tacit.planning.affordable import HALF, Affordable, PlannedTraining, affordable, forecast_at
from tacit.planning.judgement import FreeModel, Judgement, from_random, judged, share_to_gain
from tacit.planning.noise_forecast import FEWEST_ROUNDS, GOOD
from tacit.privacy.rounding import rounded_up
from tacit.progress import Progress, counted, silent
from tacit.records import json_ready
from tacit.reports.blocks import Block, Paragraph, Table
from tacit.reports.figure import HUES, RED, Axis, Figure, Line, Mark, Panel, Points, Rule
from tacit.reports.release import number_from

SHARES = {"half": HALF, "works": GOOD}
LOUDEST = 1000.0  # epsilon above which nobody speaks of privacy
LEAST, CURVE = 0.01, 60  # the least epsilon of a figure, and how many points a curve has
EPSILONS = tuple(LEAST * (LOUDEST / LEAST) ** (at / CURVE) for at in range(CURVE + 1))
DOTTED = 10  # points of a curve that are worth a dot each
TIMES = (0.25, 0.5, 2.0, 4.0)  # the rounds asked for, of a curve over rounds
MOST_REPORTS = 10_000  # a round; arXiv:2305.18465 ran 6,500


@dataclass(frozen=True, kw_only=True)
class EpsilonResult(DrawnResult):
    """What each population affords."""

    training: PlannedTraining
    mechanism: str
    answers: tuple[Affordable, ...]
    free: FreeModel | None = None  # measured; None: no public text is named

    TITLE = "Which epsilon a population affords"

    def answer(self) -> str:
        """From which epsilon on each population keeps most of the accuracy, and gains over what is free."""
        kept = "; ".join(f"{_named(each)} {_from(each.works)}" for each in self.answers)
        said = f"{GOOD:.0%} of the accuracy without noise is kept by {kept}."
        needed, free = (
            self.shares["public"],
            "a usual public model (none was measured)" if self.free is None else "the best free model",
        )
        if needed >= 1:
            return f"{said} Without any noise such a run gains nothing over {free}, which costs epsilon 0."
        gain = "; ".join(f"{_named(each)} {_from(self.epsilon_for(each, needed))}" for each in self.answers)
        return f"{said} Over {free}, which costs epsilon 0, they gain: {gain}."

    @property
    def shares(self) -> dict[str, float]:
        """What is to be kept, by the names of the columns; `public` may be 1 and more, which no epsilon does."""
        return {**SHARES, "public": share_to_gain(self.free)}

    @property
    def judged(self) -> Judgement:
        """Of the best case: all that is learnt without noise, from random weights."""
        return judged(from_random(1.0), self.free)

    def epsilon_for(self, answer: Affordable, share: float) -> float:
        """From which on a population keeps the share; infinite where none does."""
        return answer.epsilon_for(share) if share < 1 else math.inf

    def to_record(self) -> dict[str, Any]:
        """The answers as plain values for JSON."""
        rows = []
        for each in self.answers:
            participation = each.noise_forecast.guarantee.participation
            rows.append(
                {
                    "population": each.clients.devices,
                    "delta": each.delta,
                    "report_goal": each.report_goal,
                    "min_separation": participation.min_separation,
                    "max_participations": participation.max_participations,
                    **{f"epsilon_{name}": self.epsilon_for(each, share) for name, share in self.shares.items()},
                }
            )
        return {
            "schema": "tacit.plan.epsilon",
            "version": 1,
            "rounds": self.training.rounds,
            "parameters": self.training.parameters,
            "step": self.training.step,
            "mechanism": self.mechanism,
            "shares": self.shares,
            **self.judged.to_record(),
            "answers": json_ready(rows),
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the answers, for a data frame."""
        return columns_of(self.to_record()["answers"])

    def blocks(self) -> list[Block]:
        """The table as people read it."""
        rows = [
            (
                f"{row['population']:,}",
                f"{row['delta']:.1e}",
                f"{row['report_goal']:,}",
                str(row["max_participations"]),
                *(_told(number_from(row[f"epsilon_{name}"])) for name in self.shares),
            )
            for row in self.to_record()["answers"]
        ]
        gains = self.shares["public"]
        head = ("population", "delta", "reports", "MaxP", f"{HALF:.0%} kept", f"{GOOD:.0%} kept", "beats public")
        training = self.training
        return [
            Paragraph(
                f"The least epsilon for {training.rounds:,} rounds of a network of {training.parameters:,} parameters "
                f"with {self.mechanism}, by the accuracy without noise that is kept."
            ),
            Table(tuple(rows), head),
            Paragraph(
                f"beats public: from there on ({gains:.0%} kept) private rounds can make a good model of public text "
                "better; below, use that model as it is, at no epsilon at all."
            ),
            Paragraph(f"At best, without any noise: {self.judged.says()}"),
            Paragraph("Estimates, for clients that come in turn: docs/which-epsilon.md.", soft=True),
        ]

    def figure(self) -> Figure:
        """The share that is kept over epsilon, a curve for each population."""
        lines = tuple(
            _curve(number, each, EPSILONS, [each.at_epsilon(epsilon).share_kept for epsilon in EPSILONS])
            for number, each in enumerate(self.answers)
        )
        chosen = tuple(
            Points(label=f"{GOOD:.0%} is kept", x=[each.works], y=[GOOD], size=9, hollow=True, hue=number % HUES)
            for number, each in enumerate(self.answers)
            if each.works <= LOUDEST
        )
        rule = Rule(at=min(1.0, share_to_gain(self.free)), label="what a public model has", stroke=1, hue=RED)
        told = "; ".join(f"{each.clients.devices:,} at epsilon {_told(each.works)}" for each in self.answers)
        return Figure(
            name="plan",
            title="Which epsilon a population affords",
            alt=f"The share of accuracy that is kept rises with epsilon; 90% are kept by {told}.",
            panels=(
                Panel(
                    marks=(*lines, *chosen, rule),
                    x=Axis("epsilon", log=True),
                    y=Axis("share of the accuracy without noise", percent=True, low=0),
                ),
            ),
            headed=True,
            legend="below",
        )

    def figures(self) -> tuple[Figure, ...]:
        """What is kept over epsilon, the epsilon that more or fewer rounds take, the noise that an epsilon takes."""
        return (self.figure(), self._over_rounds(), self._noise())

    def _over_rounds(self) -> Figure:
        """At the same reports a round; rounds fewer than were ever measured are left out."""
        mechanism, asked = mechanism_named(self.mechanism), self.training.rounds
        rounds = sorted({asked, *(each for each in (round(asked * by) for by in TIMES) if each >= FEWEST_ROUNDS)})
        lines: list[Mark] = []
        chosen: list[Mark] = []
        for number, each in enumerate(self.answers):
            found = [
                replace(each, noise_forecast=forecast_at(each.clients, training, mechanism, each.report_goal)).works
                for training in (replace(self.training, rounds=many) for many in rounds)
            ]
            lines.append(_curve(number, each, rounds, found))
            chosen.append(Points(label="as asked", x=[asked], y=[each.works], size=9, hollow=True, hue=number % HUES))
        return Figure(
            name="rounds",
            title=f"The epsilon of more or fewer rounds that keeps {GOOD:.0%}",
            alt=f"The epsilon at which {GOOD:.0%} of the accuracy without noise is kept, over the rounds of a run, "
            f"at the same reports a round; {asked:,} rounds were asked for.",
            panels=(Panel(marks=(*lines, *chosen), x=Axis("rounds", log=True), y=Axis("epsilon", log=True)),),
            legend="below",
        )

    def _noise(self) -> Figure:
        """The noise multiplier over epsilon."""
        lines: list[Mark] = []
        chosen: list[Mark] = []
        for number, each in enumerate(self.answers):
            noise = [each.at_epsilon(at).guarantee.noise_multiplier for at in EPSILONS]
            lines.append(_curve(number, each, EPSILONS, noise))
            if LEAST <= each.works <= LOUDEST:
                at = each.at_epsilon(each.works).guarantee.noise_multiplier
                label = f"where {GOOD:.0%} is kept"
                chosen.append(Points(label=label, x=[each.works], y=[at], size=9, hollow=True, hue=number % HUES))
        return Figure(
            name="noise",
            title="The noise that an epsilon takes",
            alt="The noise multiplier of each population, at its reports a round, falls with epsilon.",
            panels=(Panel(marks=(*lines, *chosen), x=Axis("epsilon", log=True), y=Axis("noise multiplier", log=True)),),
            legend="below",
        )


def plan_epsilon(
    populations: Sequence[int],
    *,
    training: PlannedTraining = PlannedTraining(),  # noqa: B008  (frozen)
    mechanism: str = "blt",
    availability: float = 1.0,
    most_reports: int = MOST_REPORTS,
    delta: float | None = None,
    public: PathLike | None = None,
    init: PathLike | None = None,
    progress: Progress = silent,
) -> EpsilonResult:
    """The least epsilon at which each population keeps half, 90% and 95% of the accuracy without noise.

    populations: numbers of clients. training: the rounds, and what the model is. mechanism: its name in the catalogue.
    availability, most_reports: the share of the clients within reach, and the most reports a round; the report goal is
    the best up to that. delta: left out, that of each population. public, init: a cache of public text and a model of
    `tacit.pretrain` of it, whose best free model is measured and has to be beaten. Raises: InputError.
    """
    of_type("populations", populations, list, tuple)
    of_type("training", training, PlannedTraining)
    if not populations:
        raise InputError("no population is given; give one at least, as 3000.")
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"delta={delta} is not a probability between 0 and 1; give for example 1e-10.")
    from tacit.networks.model_files import read_files

    chosen = mechanism_named(mechanism)
    network = None if init is None else as_path("init", init)
    if network is not None:
        read_files(network)  # refuses what is no model, which a text that is not at hand would hide
    free = free_model_for(network, public, progress=progress)
    answers = tuple(
        affordable(
            Clients(devices=devices, availability=availability), training, chosen, most=most_reports, delta=delta
        )
        for devices in counted(populations, "weighing report goals", progress, total=len(populations))
    )
    return EpsilonResult(training=training, mechanism=chosen.name, answers=answers, free=free)


def _from(epsilon: float) -> str:
    return f"from epsilon {_told(epsilon)} on" if epsilon <= LOUDEST else f"at no epsilon up to {LOUDEST:,.0f}"


def _named(answer: Affordable) -> str:
    return f"{answer.clients.devices:,} clients"


def _curve(number: int, answer: Affordable, x: Sequence[float], y: Sequence[float]) -> Line:
    """Of the population with this number, which tells it from the others'."""
    return Line(label=_named(answer), x=x, y=y, hue=number % HUES, stroke=number // HUES % 4, dots=len(x) <= DOTTED)


def _told(epsilon: float) -> str:
    return f">{LOUDEST:,.0f}" if epsilon > LOUDEST else rounded_up(epsilon, 3)
