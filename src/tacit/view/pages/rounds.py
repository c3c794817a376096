"""What a live page of training shows beside its report: noise against updates, and who took part."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph
from tacit.reports.figure import BLUE, GREEN, ORANGE, Axis, Bars, Figure, Line, Panel
from tacit.reports.release import number_from
from tacit.runs import Run


def blocks(run: Run | None, record: Mapping[str, Any], *, simulation: bool) -> list[Block]:
    """Of a training run, finished or not; nothing before its first round."""
    found: list[Block] = []
    drawn = noise_and_updates(record)
    if drawn is not None:
        found += [
            Heading("Noise against updates"),
            FigureOf(drawn),
            Paragraph(
                "No client's update is longer than the clip norm, and so is no mean of them. The noise is that of one "
                "round by itself; a mechanism with correlated noise takes most of it back in later rounds.",
                soft=True,
            ),
        ]
    if simulation and run is not None and run.steps_done and record["metadata"]["deployment"] is None:
        found += [Heading("Who took part"), FigureOf(participation(run))]
    return found


def noise_and_updates(record: Mapping[str, Any]) -> Figure | None:
    """The L2 norm of the noise in each round's mean update, beside the clip norm; None where there is no noise yet.

    Both follow from the plan and from noised sums, so both may be published.
    """
    metadata = record["metadata"]
    clip = np.array([number_from(each) for each in record["rounds"]["clip_norm"]], np.float64)
    multiplier = metadata["guarantee"]["noise_multiplier"]
    if not clip.size or not multiplier or metadata["guarantee"]["strategy"] is None:
        return None
    noise = multiplier * clip * math.sqrt(metadata["parameters"]) / metadata["report_goal"]
    at = np.arange(1, clip.size + 1)
    return Figure(
        name="noise_updates",
        title="Noise against the longest possible update",
        alt=f"The noise in the mean of the last round has norm {noise[-1]:.3g}; no update is longer than "
        f"{clip[-1]:.3g}.",
        panels=(
            Panel(
                marks=(
                    Line(x=at, y=clip, label="clip norm: no update is longer", hue=BLUE),
                    Line(x=at, y=noise, label="noise in the mean of a round", hue=ORANGE),
                ),
                x=Axis("round", whole=True),
                y=Axis("L2 norm, of all weights", log=True),
            ),
        ),
    )


def participation(run: Run) -> Figure:
    """How many clients took part so often; exact, for it counts who was there."""
    _, clients = run.participations()
    _, times = np.unique(clients, return_counts=True)
    often, many = np.unique(times, return_counts=True)
    return Figure(
        name="participation",
        title="How often clients took part",
        alt=f"{len(times):,} clients took part, {int(often.max()):,} times at most.",
        panels=(
            Panel(
                marks=(Bars(x=often, y=many, width=0.8, label="clients", hue=GREEN),),
                x=Axis("times", whole=True),
                y=Axis("clients", low=0, whole=True),
            ),
        ),
    )
