"""Which epsilon populations of several sizes afford, with and without a model of public text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.plan.free_model import free_model_for
from tacit.jobs.plan.job import DrawnResult, columns_of
from tacit.planning import Clients, mechanism_named
from tacit.planning.affordable import HALF, Affordable, PlannedTraining, affordable
from tacit.planning.judgement import FreeModel, Judgement, from_random, judged, share_to_gain
from tacit.planning.noise_forecast import GOOD
from tacit.privacy.rounding import rounded_up
from tacit.progress import Progress, counted, silent
from tacit.records import json_ready
from tacit.reports.blocks import Block, Paragraph, Table
from tacit.reports.figure import HUES, RED, Axis, Figure, Line, Panel, Rule
from tacit.reports.release import number_from

SHARES = {"half": HALF, "works": GOOD}
LOUDEST = 1000.0  # epsilon above which nobody speaks of privacy
LEAST, CURVE = 0.01, 60  # the least epsilon of a figure, and how many points a curve has
MOST_REPORTS = 10_000  # a round; arXiv:2305.18465 ran 6,500


@dataclass(frozen=True, kw_only=True)
class EpsilonResult(DrawnResult):
    """What each population affords."""

    training: PlannedTraining
    mechanism: str
    answers: tuple[Affordable, ...]
    free: FreeModel | None = None  # measured; None: no public text is named

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
        epsilons = [LEAST * (LOUDEST / LEAST) ** (at / CURVE) for at in range(CURVE + 1)]
        lines = tuple(
            Line(
                label=f"{each.clients.devices:,} clients",
                x=epsilons,
                y=[each.at_epsilon(epsilon).share_kept for epsilon in epsilons],
                hue=number % HUES,
                stroke=number // HUES % 4,
                dots=False,
            )
            for number, each in enumerate(self.answers)
        )
        rule = Rule(at=min(1.0, share_to_gain(self.free)), label="what a public model has", stroke=1, hue=RED)
        told = "; ".join(f"{each.clients.devices:,} at epsilon {_told(each.works)}" for each in self.answers)
        return Figure(
            name="plan",
            title="Which epsilon a population affords",
            alt=f"The share of accuracy that is kept rises with epsilon; 90% are kept by {told}.",
            panels=(
                Panel(
                    marks=(*lines, rule),
                    x=Axis("epsilon", log=True),
                    y=Axis("share of the accuracy without noise", percent=True, low=0),
                ),
            ),
            headed=True,
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


def _told(epsilon: float) -> str:
    return f">{LOUDEST:,.0f}" if epsilon > LOUDEST else rounded_up(epsilon, 3)
