"""The figures of both papers with our mechanisms on them, as PNG, SVG and CSV (panel, curve, x, y).

What a configuration buys at equal utility: arXiv:2305.18465, Figure 4, and arXiv:2408.08868, Figures 8 and 9. What a
mechanism costs where it is used otherwise than it was designed for: arXiv:2408.08868, Figures 2 to 6. All of it is
accounting under the signal-to-noise hypothesis (docs/planning.md); nothing is trained. What the text of the papers
leaves open (which participations, which designs) is chosen here and written on the axes.

    python benchmarks/papers/paper_figures.py --out FOLDER                         all, in about a minute
    python benchmarks/papers/paper_figures.py --out FOLDER --only blt-figure-9     some
    python benchmarks/papers/paper_figures.py --out FOLDER --bandmf                with a BandMF: some minutes more
    python benchmarks/papers/paper_figures.py --smoke                              seconds: the quickest one

Prints one JSON line per figure.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from design_time_figure import blt_figure_1
from equal_privacy_figures import (
    bandmf,
    blt_figure_2,
    blt_figure_3,
    blt_figure_4,
    blt_figure_5,
    blt_figure_6,
    blt_figure_10,
    blt_figure_12,
)
from equal_utility_figures import blt_figure_8, blt_figure_9, gboard_figure_4
from paper_panels import Builder
from production_figures import blt_figure_7, blt_figures_13_to_15

from tacit.privacy.strategy import Banded
from tacit.reports.figure_files import write_figure


def builders(banded: Banded | None = None) -> dict[str, tuple[Builder, int]]:
    """Each family of figures by name, and how many curves it computes."""
    more = int(banded is not None)
    return {
        "gboard-figure-4": (gboard_figure_4, 24),
        "blt-figure-1": (blt_figure_1, 3),
        "blt-figure-2": (lambda tell: blt_figure_2(tell, banded), 2 * (7 + more)),
        "blt-figure-3": (lambda tell: blt_figure_3(tell, banded), 6 + more),
        "blt-figure-4": (lambda tell: blt_figure_4(tell, banded), 7 + more),
        "blt-figure-5": (lambda tell: blt_figure_5(tell, banded), 7 + more),
        "blt-figure-6": (blt_figure_6, 8),
        "blt-figure-7": (blt_figure_7, 3),
        "blt-figure-8": (blt_figure_8, 8),
        "blt-figure-9": (blt_figure_9, 2),
        "blt-figure-10": (blt_figure_10, 3),
        "blt-figure-12": (lambda tell: blt_figure_12(tell, banded), 2 * (7 + more)),
        "blt-figures-13-to-15": (blt_figures_13_to_15, 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder for the figures; made if it is not there")
    parser.add_argument("--only", action="append", choices=list(builders()), help="may be given several times")
    parser.add_argument("--bandmf", action="store_true", help="design a BandMF for Figures 2 to 5 as well")
    parser.add_argument("--smoke", action="store_true", help="the quickest figure, into a folder that goes away")
    options = parser.parse_args()
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), ["blt-figure-9"], None)
        return
    if options.out is None:
        parser.error("give --out FOLDER")
    write(options.out, options.only, bandmf() if options.bandmf else None)


def write(out: Path, only: Sequence[str] | None, banded: Banded | None) -> None:
    """The files of each figure, one after another."""
    out.mkdir(parents=True, exist_ok=True)
    for name, (build, _) in builders(banded).items():
        if only is None or name in only:
            for figure in build(lambda curve: None):
                print(json.dumps({"figure": figure.name, "shows": figure.alt, "files": write_figure(figure, out)}))


if __name__ == "__main__":
    main()
