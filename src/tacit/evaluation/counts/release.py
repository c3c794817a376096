"""Histograms over clients as they may leave the aggregator: with noise, and with a row for the ledger.

One client adds one unit to one cell of each of H histograms that are released together, so its part of all cells has
norm sqrt(H), exactly, and that is the clip norm of the release: `Guarantee` makes the noise of it. Where clients are
asked in two steps (one group designs, another judges), each is in one step only: one participation in two rounds.

Released counts are rounded to whole numbers, which costs a variance of 1/12.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Histogram, HistogramCells, HistogramQuery
from tacit.parsing import parsed_json
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Independent
from tacit.randomizers import Randomizer, sample_votes
from tacit.secure_aggregation.counts import secure_total
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.statements import LocalReports, NoisedSum
from tacit.statements.local_releases import EVALUATION_HISTOGRAM

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.floating]
AddNoise = Callable[[IntArray, float], FloatArray]  # counts (cells,) and a standard deviation -> the counts with noise
ROUNDING = 1 / 12  # variance of rounding to a whole number, for noise much wider than one


@dataclass(frozen=True, kw_only=True)
class NoiseBy:
    """Who adds the noise of a release: so many decryptors to the sum before it is opened, of whom `honest` together add
    what is accounted; or with none of them the aggregator.
    """

    decryptors: int = 0
    honest: int = 1

    def noised(self, counts: IntArray, stddev: float, add_noise: AddNoise) -> NDArray[np.float64]:
        """The counts with noise, whole numbers. stddev: what is accounted."""
        return np.rint(counts if self.decryptors else add_noise(counts, stddev)).astype(np.float64)

    def deviation(self, stddev: float) -> float:
        """Of the noise in a cell, rounding aside. stddev: what is accounted."""
        return stddev * math.sqrt(max(1, self.decryptors) / self.honest)


THE_AGGREGATOR = NoiseBy()


def exactly(queries: Sequence[HistogramQuery]) -> dict[str, Histogram]:
    """The histograms without noise: simulation only, nothing is promised for them."""
    _same_clients(queries)
    return {each.name: Histogram.from_cells(each.cells, each.counts, 0.0, each.chosen.size) for each in queries}


def guarantee_for(histograms: int, *, zcdp: float, steps: int = 1) -> Guarantee:
    """The guarantee of one step in which `histograms` are released together, each client taking part in one of `steps`.

    `zcdp` is what all steps together cost a client: being in one only, it pays once.
    """
    if histograms < 1:
        raise InputError(f"{histograms} histograms release nothing; ask for at least one.")
    return guarantee_within(math.sqrt(histograms), zcdp=zcdp, steps=steps)


def guarantee_within(clip_norm: float, *, zcdp: float, steps: int = 1) -> Guarantee:
    """The guarantee of one step in which a client adds a vector of L2 norm `clip_norm` at most; else as
    `guarantee_for`.
    """
    return Guarantee.for_zcdp(
        zcdp,
        participation=Participation(rounds=steps, min_separation=steps, max_participations=1),
        strategy=Independent(),
        clip_norm=clip_norm,
    )


def release(
    histograms: Mapping[str, HistogramCells],
    counts: IntArray,
    guarantee: Guarantee,
    *,
    step: int,
    reports: int,
    dropped: int = 0,
    add_noise: AddNoise,
    noise: NoiseBy = THE_AGGREGATOR,
) -> tuple[dict[str, Histogram], NoisedSum]:
    """The histograms with Gaussian noise of `guarantee.seed_stddev` in every cell, and what the ledger must hold.

    counts: (cells of all histograms,), one after another, of `reports` devices, each of which is in one cell of each
    (`summed`). dropped: devices that took part besides and are in no count. add_noise: adds normal noise that nobody
    knows to all counts of the step at once, unless others did: noise says who. Raises: InputError where the guarantee
    was made for another number of histograms.
    """
    norm = math.sqrt(len(histograms))
    if guarantee.clip_norm != norm or not guarantee.private:
        raise InputError(
            f"{len(histograms)} histograms need a guarantee with clip norm {norm:g} and noise, and this one has "
            f"{guarantee.clip_norm:g}; make it with guarantee_for({len(histograms)}, ...)."
        )
    noised = noise.noised(counts, guarantee.seed_stddev, add_noise)
    variance = noise.deviation(guarantee.seed_stddev) ** 2 + max(1, noise.decryptors) * ROUNDING
    released = {
        name: Histogram.from_cells(cells, own, variance, reports)
        for (name, cells), own in zip(histograms.items(), _apart(histograms, noised), strict=True)
    }
    return released, NoisedSum(
        round=step,
        what=EVALUATION_HISTOGRAM,
        strategy_record=Independent().to_record(),
        clip_norm=guarantee.clip_norm,
        noise_multiplier=guarantee.noise_multiplier,
        reports=reports,
        dropped=dropped,
        decryptors=noise.decryptors,
        honest_decryptors=noise.honest,
    )


def to_file(histograms: Mapping[str, Histogram]) -> bytes:
    """The content of a step's file in the run folder; `from_file` is its inverse."""
    rows = {
        name: {
            "counts": [*each.counts.ravel().tolist(), each.silent],
            "variance": [*each.variance.ravel().tolist(), each.silent_variance],
            "asked": each.devices,
        }
        for name, each in histograms.items()
    }
    return json.dumps(rows).encode()


def from_file(histograms: Mapping[str, HistogramCells], content: bytes) -> dict[str, Histogram]:
    """The histograms of these cells that `to_file` wrote. Raises: ValueError, KeyError for another content."""
    rows = parsed_json(content)
    return {
        name: Histogram.from_cells(cells, rows[name]["counts"], rows[name]["variance"], rows[name]["asked"])
        for name, cells in histograms.items()
    }


def summed(queries: Sequence[HistogramQuery], secure: SimulatedProtocol | None = None) -> IntArray:
    """The counts of all queries, one histogram after another: the sum of what each client adds, bit by bit."""
    _same_clients(queries)
    if secure is None:
        return np.concatenate([each.counts for each in queries])
    starts = np.cumsum([0, *(each.cells.size for each in queries)])
    cells = np.stack([each.chosen for each in queries], axis=1) + starts[:-1]  # (asked, queries)
    devices = [np.bincount(mine, minlength=starts[-1]) for mine in cells[: secure.devices]]
    others = np.bincount(cells[secure.devices :].ravel(), minlength=starts[-1])
    return secure_total(secure, devices, others, most=len(cells))


def release_locally(
    histograms: Mapping[str, HistogramCells],
    votes: IntArray,
    answered: IntArray,
    randomizer: Callable[[int], Randomizer],
    *,
    step: int,
    first_user: int,
) -> tuple[dict[str, Histogram], tuple[LocalReports, ...]]:
    """The histograms from reports that every device randomised itself, so that nobody need be trusted, and what the
    ledger must hold.

    votes: (cells of all histograms,), one after another, of `answered` (H,) devices each. A device answers ONE query,
    drawn for it without looking at its answer, with all of its epsilon: of H queries each then has 1/H of the clients,
    where answering all would leave each 1/H of epsilon. `randomizer` makes one for a number of cells; `first_user`
    users were asked in earlier steps. Every device's report is epsilon-locally private, whoever sees it. Variances are
    the randomizer's at the estimated count; the small correlation between cells is left out. Raises: InputError where
    nobody answered a histogram.
    """
    found: dict[str, Histogram] = {}
    rows: list[LocalReports] = []
    for number, ((name, cells), own) in enumerate(zip(histograms.items(), _apart(histograms, votes), strict=True)):
        users, device = int(answered[number]), randomizer(cells.size)
        estimates = device.estimate(own, users)
        variances = [device.variance(users, float(np.clip(count, 0, users))) for count in estimates]
        found[name] = Histogram.from_cells(cells, estimates, variances, users)
        rows.append(
            LocalReports(
                what=EVALUATION_HISTOGRAM,
                turn=step + 1,
                layer=number + 1,
                first_user=first_user + sum(row.users for row in rows),
                users=users,
                contributions=1,
                domain=cells.size,
                local_epsilon=device.epsilon,
                randomizer=device.name,
                own_support=device.p,
                other_support=device.q,
                least_votes=0,
                prefixes=0,
                words=0,
            )
        )
    return found, tuple(rows)


def votes_of(
    queries: Sequence[HistogramQuery],
    randomizer: Callable[[int], Randomizer],
    *,
    generator: np.random.Generator,
    secure: SimulatedProtocol | None = None,
) -> tuple[IntArray, IntArray]:
    """What simulated devices report: (votes of all queries, one after another; how many devices answered each).

    secure: how each group's votes are added up; None: in the clear.
    """
    clients = _same_clients(queries)
    assigned = generator.permutation(clients) % len(queries)
    votes, answered = [], []
    for number, each in enumerate(queries):
        mine = each.chosen[assigned == number]
        votes.append(_votes(mine, randomizer(each.cells.size), generator, secure))
        answered.append(mine.size)
    return np.concatenate(votes), np.array(answered)


def _votes(
    answers: IntArray, randomizer: Randomizer, generator: np.random.Generator, secure: SimulatedProtocol | None
) -> IntArray:
    """The votes of the devices with these answers; with `secure` the first of them make reports and add them so."""
    playing = 0 if secure is None else secure.devices
    devices = [randomizer.votes(randomizer.encode(own, generator)) for own in answers[:playing, np.newaxis]]
    holders = np.bincount(answers[playing:], minlength=randomizer.domain)
    others = sample_votes(randomizer, holders, generator)
    return others if secure is None else secure_total(secure, devices, others, most=max(1, answers.size))


def _apart(histograms: Mapping[str, HistogramCells], counts: NDArray[Any]) -> list[NDArray[Any]]:
    """The counts of each histogram."""
    return np.split(counts, np.cumsum([each.size for each in histograms.values()])[:-1])


def _same_clients(queries: Sequence[HistogramQuery]) -> int:
    sizes = {each.chosen.size for each in queries}
    if len(sizes) != 1:
        raise InputError(f"queries were put to {sorted(sizes)} clients; all of one step go to the same clients.")
    return sizes.pop()
