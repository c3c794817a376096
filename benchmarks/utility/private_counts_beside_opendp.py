r"""Private counts of words and pairs beside OpenDP's: the same clients, the same zCDP; error per cell, and CPU seconds.

    python -m venv opendp && opendp/bin/pip install opendp numpy
    python benchmarks/utility/private_counts_beside_opendp.py --cache caches/chat5k --opendp opendp/bin/python

Four ways release both histograms, in turn, once for each draw of noise:

- tacit: each client is scaled down to its L2 norm, in units; Gaussian noise by `add_independent_noise`, rounded.
- tacit with the best norm of a grid IN HINDSIGHT, by the largest cells.
- OpenDP's noise on the same sums: `then_gaussian` over integers (its discrete Gaussian), at the same scale.
- OpenDP with the bound of its data frames: of each client at most G cells, drawn at random, each counted M times at
  most, which has the L2 norm M sqrt(G). G and M are the best of a grid in hindsight, too.

The zCDP of each histogram is the same in all ways. The error is the root of the mean squared difference to what was
really typed, over all cells and over the LARGEST. `--opendp` is a Python that has it; a child process there adds noise.
CPU seconds are of adding noise to all cells alone, in the process that does it.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGEST = 1000
MOST_TIMES = (1, 2, 4, 8, 16, 32)
MOST_CELLS = (10, 30, 100, 300, 1000, 3000)
NORMS = (5, 10, 20, 40, 80, 160, 320, 640, 1280)
SUMS = ("word_counts:5000 norm 18.5 unit 16", "word_pairs:1000 norm 9.1 unit 16")
Counts = NDArray[np.int64]


class Way(NamedTuple):
    """What is summed, and the noise of each cell."""

    name: str
    sums: tuple[Counts, ...]  # in units
    units: tuple[int, ...]
    scales: tuple[float, ...]  # of the noise, in units
    bound: str


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="clients' text")
    parser.add_argument("--opendp", type=Path, required=True, help="a Python that has opendp and numpy")
    parser.add_argument("--sums", nargs=2, default=SUMS, help="words, then pairs")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--clients", type=int, default=0, help="of the train split; 0 is all")
    asked = parser.parse_args()
    print("\n".join(measured(asked)))


def measured(asked: argparse.Namespace) -> list[str]:
    from tacit.data import Cache
    from tacit.evaluation.counts.device_part import StatisticSum
    from tacit.evaluation.counts.statistics import TypedText
    from tacit.evaluation.release_cost import ReleaseCost

    cache = Cache.open(asked.cache)
    clients = cache.clients("train")[: asked.clients or None]
    sums = tuple(map(StatisticSum.from_text, asked.sums))
    rho = ReleaseCost(epsilon=asked.epsilon, delta=asked.delta).rho
    typed = [[each.counted(TypedText.from_cache(cache, int(client))) for client in clients] for each in sums]
    exact = [_total(each.cells, rows) / each.unit for each, rows in zip(sums, typed, strict=True)]
    ways = [*_of_tacit(sums, typed, rho)]
    ways += [_in_hindsight(sums, typed, exact, rho), _of_data_frames(sums, typed, exact, rho)]
    found: dict[tuple[str, int, str], list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for draw in range(asked.draws):
        for way in ways:  # in turn, so that a busy minute meets all
            noised, took = _noised(way, draw, None if way.name.startswith("tacit") else asked.opendp)
            seconds.setdefault(way.name, []).append(took)
            for at, (values, unit) in enumerate(zip(noised, way.units, strict=True)):
                wrong = values / unit - exact[at]
                largest = np.argsort(-exact[at], kind="stable")[:LARGEST]
                found.setdefault((way.name, at, "all"), []).append(_rms(wrong))
                found.setdefault((way.name, at, "largest"), []).append(_rms(wrong[largest]))
    cells = sum(each.cells for each in sums)
    version = subprocess.run(
        [asked.opendp, "-c", "import importlib.metadata as m; print(m.version('opendp'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    lines = [
        f"{len(clients):,} clients, {cells:,} cells, epsilon {asked.epsilon:g} at delta {asked.delta:g} "
        f"(zCDP {rho:.4f}); opendp {version}; {asked.draws} draws: mean, and from least to most",
        "",
        f"| way | bound of a client | words: RMSE, all | largest {LARGEST:,} | pairs: RMSE, all | largest {LARGEST:,} "
        "| noise, CPU-s |",
        "|---|---|---|---|---|---|---|",
    ]
    for way in ways:
        errors = [_span(found[way.name, at, which]) for at in range(2) for which in ("all", "largest")]
        lines.append(f"| {way.name} | {way.bound} | {' | '.join(errors)} | {_span(seconds[way.name])} |")
    return lines


def _of_tacit(sums: Any, typed: Any, rho: float) -> list[Way]:
    """tacit's, and OpenDP's noise on the same sums."""
    from tacit.evaluation.counts.release import guarantee_within
    from tacit.federation.report_layout import clipped

    norm = float(np.sqrt(sum(each.layout.clip_norm**2 for each in sums)))
    scale = guarantee_within(norm, zcdp=rho).seed_stddev
    totals = tuple(
        _total(each.cells, [(cells, clipped(counts, each.layout.clip_norm)) for cells, counts in rows])
        for each, rows in zip(sums, typed, strict=True)
    )
    bound = "L2 norm " + " and ".join(f"{each.norm:g}" for each in sums)
    units = tuple(each.unit for each in sums)
    return [Way(name, totals, units, (scale, scale), bound) for name in ("tacit", "OpenDP, the same sums")]


def _in_hindsight(sums: Any, typed: Any, exact: Any, rho: float) -> Way:
    """tacit's with the norm of each histogram that is best for the largest cells, with the zCDP that it has."""
    from tacit.federation.report_layout import clipped

    norms = np.array([each.layout.clip_norm for each in sums])
    totals, scales, bounds = [], [], []
    for each, rows, true, part in zip(sums, typed, exact, norms**2 / (norms**2).sum(), strict=True):
        largest = np.argsort(-true, kind="stable")[:LARGEST]
        best: tuple[float, Any] = (np.inf, None)
        for norm in NORMS:
            within = float(norm * each.unit)
            total = _total(each.cells, [(cells, clipped(counts, within)) for cells, counts in rows])
            scale = within / float(np.sqrt(2 * rho * part))
            bias = _rms((total[largest] / each.unit) - true[largest])
            error = float(np.hypot(bias, scale / each.unit))
            if error < best[0]:
                best = error, (total, scale, str(norm))
        total, scale, bound = best[1]
        totals.append(total)
        scales.append(scale)
        bounds.append(bound)
    units = tuple(each.unit for each in sums)
    return Way("tacit, norm in hindsight", tuple(totals), units, tuple(scales), f"L2 norm {' and '.join(bounds)}")


def _of_data_frames(sums: Any, typed: Any, exact: Any, rho: float) -> Way:
    """The best of the grid for each histogram, with the zCDP that it has in tacit's way."""
    norms = np.array([each.layout.clip_norm for each in sums])
    totals, scales, bounds = [], [], []
    for each, rows, true, part in zip(sums, typed, exact, norms**2 / (norms**2).sum(), strict=True):
        largest = np.argsort(-true, kind="stable")[:LARGEST]
        best: tuple[float, Any] = (np.inf, None)
        for cells in MOST_CELLS:
            draw = np.random.default_rng(cells)
            kept = [_few(row, cells, each.unit, draw) for row in rows]
            for times in MOST_TIMES:
                total = _total(each.cells, [(where, np.minimum(counts, times)) for where, counts in kept])
                scale = times * float(np.sqrt(cells)) / float(np.sqrt(2 * rho * part))
                error = float(np.sqrt(_rms(total[largest] - true[largest]) ** 2 + scale**2))
                if error < best[0]:
                    best = error, (total, scale, f"{cells:,} cells, {times} times")
        total, scale, bound = best[1]
        totals.append(total)
        scales.append(scale)
        bounds.append(bound)
    return Way("OpenDP, bound of data frames", tuple(totals), (1, 1), tuple(scales), "; ".join(bounds))


def _few(row: tuple[Counts, Counts], most: int, unit: int, draw: np.random.Generator) -> tuple[Counts, Counts]:
    """At most so many cells of a client, at random, in occurrences."""
    cells, counts = row
    which = draw.permutation(len(cells))[:most]
    return cells[which], counts[which] // unit


def _total(cells: int, rows: list[tuple[Counts, Counts]]) -> Counts:
    total = np.zeros(cells, np.int64)
    for where, counts in rows:
        total[where] += counts
    return total


def _noised(way: Way, draw: int, python: Path | None) -> tuple[list[Counts], float]:
    """Each sum with its noise, and the CPU seconds of adding it. python: of OpenDP; None: tacit's own."""
    if python is not None:
        with tempfile.TemporaryDirectory() as folder:
            sent, back = Path(folder) / "sent.npz", Path(folder) / "back.npz"
            named: dict[str, Any] = {f"sum{at}": each for at, each in enumerate(way.sums)}
            np.savez(sent, scales=way.scales, **named)
            subprocess.run([python, __file__, "--child", sent, back], check=True)
            with np.load(back) as file:
                return [file[f"sum{at}"] for at in range(len(way.sums))], float(file["seconds"])
    from tacit.mechanisms import add_independent_noise, fresh_key

    begun, key = time.process_time(), fresh_key()
    noised = [
        np.rint(add_independent_noise(each, stddev=scale, key=key, purpose="evaluation histogram", round=draw))
        for each, scale in zip(way.sums, way.scales, strict=True)
    ]
    return [each.astype(np.int64) for each in noised], time.process_time() - begun


def child(sent: Path, back: Path) -> None:
    """OpenDP's part, in a Python that need not have tacit."""
    import opendp.prelude as dp  # type: ignore[import-not-found,unused-ignore]

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    found: dict[str, Any] = {}
    with np.load(sent) as file:
        given: Mapping[str, Any] = {name: file[name] for name in file.files}
    begun = time.process_time()
    for at, scale in enumerate(given["scales"]):
        noise = space >> dp.m.then_gaussian(scale=float(scale))
        found[f"sum{at}"] = np.array(noise(given[f"sum{at}"].astype(np.int32)), np.int64)
    np.savez(back, seconds=time.process_time() - begun, **found)


def _rms(wrong: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.square(wrong, dtype=np.float64))))


def _span(values: list[float]) -> str:
    return f"{np.mean(values):,.5g} ({min(values):,.5g} to {max(values):,.5g})"


if __name__ == "__main__":
    main()
