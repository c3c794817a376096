"""What did a production run promise after each round? arXiv:2408.08868, Figures 7 and 13 to 15, without accuracy.

Their mechanisms, noise multipliers and participations are those of Table 4 (tests/golden/papers_tables.json). The
accuracies beside them are of devices that nobody else has.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from paper_panels import Tell, drawn, panel
from reproduce_papers_tables import TRANSCRIPT, guarantee

from tacit.reports.figure import Figure, Line, Mark, Panel, Points

TABLE: dict[str, Any] = next(table for table in TRANSCRIPT["tables"] if table["id"] == "paper4-table4")
ROWS: dict[str, dict[str, str]] = {row["row"]: row for row in TABLE["rows"]}
UNKNOWN = "es-ES BandMF-1.411"  # neither matrix nor scale is printed: its end alone, as the paper prints it
HUES = {"tree": 1, "column-normalised": 5, "bandmf-400": 5}  # BLTs are blue
FITTED = 4.03  # the noise multiplier at which pt-PT's tree costs what is printed (docs/results/papers-tables.md)
LARGER = ("pt-BR BLT-16.1", "pt-PT BLT-5.5")  # at about twice the report goal


def zcdp(row: dict[str, str], rounds: int, noise_multiplier: float | None = None) -> float:
    """What the first `rounds` rounds of a run promise, clients keeping its MinS and MaxP."""
    return guarantee({**row, "rounds": rounds}, noise_multiplier=noise_multiplier).zcdp


def over_rounds(name: str, *, noise_multiplier: float | None = None) -> Line:
    """zCDP after each of about 200 rounds of a run; the last is the run's end."""
    row = ROWS[name]
    rounds = np.unique(np.linspace(1, int(row["rounds"]), 200).astype(int))
    return Line(
        label=name.split()[1] if noise_multiplier is None else f"the same with z = {noise_multiplier:g}, fitted",
        x=rounds,
        y=[zcdp(row, int(at), noise_multiplier) for at in rounds],
        hue=HUES.get(row["strategy"], 0),
        stroke=2 if noise_multiplier else int(name in LARGER),
        dots=False,
    )


def _language(language: str, tell: Tell, name: str) -> Panel:
    """The runs of a language, and hollow where the paper's table says that they end."""
    curves: list[Mark] = []
    for run, row in ROWS.items():
        if not run.startswith(language):
            continue
        if run != UNKNOWN:
            curves.append(over_rounds(run))
            tell(f"{name}: {run}")
        if run == "pt-PT TreeAgg-7":
            curves.append(over_rounds(run, noise_multiplier=FITTED))
        label = f"{run.split()[1]}, end as printed" if run == UNKNOWN else ""
        hue = HUES.get(row["strategy"], 0)
        curves.append(Points(label=label, x=[int(row["rounds"])], y=[float(row["zcdp"])], hue=hue, hollow=True))
    return panel(title=language, x_label="rounds", y_label="zCDP so far", curves=tuple(curves), log_y=True)


def blt_figure_7(tell: Tell) -> Iterator[Figure]:
    """Portuguese in Portugal."""
    yield drawn(
        name="blt-figure-7",
        title="What a production run promised, round by round",
        source="arXiv:2408.08868, Figure 7, the privacy alone",
        says="With the printed noise multiplier the tree would promise more than the BLTs, with the fitted one less. "
        "Hollow: as printed.",
        panels=(_language("pt-PT", tell, "blt-figure-7"),),
    )


def blt_figures_13_to_15(tell: Tell) -> Iterator[Figure]:
    """The other three languages."""
    yield drawn(
        name="blt-figures-13-to-15",
        title="What production runs promised, round by round",
        source="arXiv:2408.08868, Figures 13 to 15, the privacy alone",
        says="BLTs promise more than tree and BandMF after every round. A step is one participation more; hollow: as "
        "printed.",
        panels=tuple(_language(each, tell, "blt-figures-13-to-15") for each in ("es-ES", "id-ID", "pt-BR")),
    )
