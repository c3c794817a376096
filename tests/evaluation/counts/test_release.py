"""The noise of released histograms is what the ledger says, no more and no less, and the guarantee follows from it."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from scipy.stats import kstest

from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Buckets, Histogram, HistogramCells, HistogramQuery
from tacit.evaluation.counts.release import AddNoise, exactly, guarantee_for, release, release_locally, summed, votes_of
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.participation import Participation
from tacit.randomizers import KaryRandomizedResponse
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.statements import Ledger, LocalReports, NoisedSum

CELLS = HistogramCells(slices=Buckets((10.0,)), bins=Buckets.steps(-5, 5, 100))


def queries(count: int, clients: int, seed: int = 0) -> list[HistogramQuery]:
    draw = np.random.default_rng(seed)
    return [
        HistogramQuery(name=f"q{number}", cells=CELLS, chosen=draw.integers(0, CELLS.size, clients))
        for number in range(count)
    ]


def without(query: HistogramQuery, client: int) -> np.ndarray:
    """The counts if this client's contribution were zero."""
    return query.counts - np.bincount([query.chosen[client]], minlength=query.cells.size)


@pytest.mark.parametrize("count", [1, 2, 7, 46])
def test_one_client_moves_everything_released_by_exactly_the_clip_norm(count: int) -> None:
    asked = queries(count, 30)
    for client in range(30):
        moved = sum(float(np.sum((each.counts - without(each, client)) ** 2)) for each in asked)
        assert math.sqrt(moved) == guarantee_for(count, zcdp=0.3).clip_norm


def noise(seed: int) -> AddNoise:
    return lambda counts, stddev: counts + stddev * np.random.default_rng(seed).standard_normal(counts.size)


def released_of(
    asked: Sequence[HistogramQuery],
    guarantee: Guarantee,
    *,
    step: int,
    add_noise: AddNoise,
    secure: SimulatedProtocol | None = None,
) -> tuple[dict[str, Histogram], NoisedSum]:
    histograms = {each.name: each.cells for each in asked}
    counts = summed(asked, secure)
    return release(histograms, counts, guarantee, step=step, reports=asked[0].chosen.size, add_noise=add_noise)


def noise_of(zcdp: float, count: int = 60) -> np.ndarray:
    asked = queries(count, 500)
    released, _ = released_of(asked, guarantee_for(count, zcdp=zcdp), step=0, add_noise=noise(11))
    exact = exactly(asked)
    return np.concatenate([(released[name].counts - exact[name].counts).ravel() for name in released])


def test_noise_scale_is_accepted_and_a_wrong_one_rejected() -> None:
    zcdp = 0.01
    spread = math.sqrt(60) / math.sqrt(2 * zcdp)  # sensitivity sqrt(H) over sqrt(2 rho)
    noise = noise_of(zcdp)
    assert kstest(noise / spread, "norm").pvalue > 0.01
    for wrong in (1.25, 0.8, 1 / math.sqrt(60)):  # the last: the sensitivity of one histogram alone
        assert kstest(noise / (spread * wrong), "norm").pvalue < 1e-3
    assert np.array_equal(noise, np.rint(noise))


def test_the_declared_error_bars_are_those_of_the_noise() -> None:
    asked = queries(20, 500)
    guarantee = guarantee_for(20, zcdp=0.01)
    released, row = released_of(asked, guarantee, step=0, add_noise=noise(3))
    declared = np.sqrt(released["q0"].variance)
    assert declared == pytest.approx(guarantee.seed_stddev, rel=1e-3)
    assert (row.clip_norm, row.reports, row.dropped) == (math.sqrt(20), 500, 0)
    assert not released["q0"].exact and exactly(asked)["q0"].exact


def test_the_ledger_gives_the_promise_again() -> None:
    """Two groups asked in two steps with different numbers of histograms: each client pays once."""
    zcdp, rows = 0.07, []
    for step, count in enumerate((46, 31)):
        guarantee = guarantee_for(count, zcdp=zcdp, steps=2)
        assert guarantee.zcdp == pytest.approx(zcdp)
        asked = queries(count, 50)
        _, row = released_of(asked, guarantee, step=step, add_noise=noise(step))
        rows.append(row)
    once = Participation(rounds=2, min_separation=2, max_participations=1)
    assert Ledger(tuple(rows)).composition(once).zcdp == pytest.approx(zcdp)
    twice = Participation(rounds=2, min_separation=1, max_participations=2)
    assert Ledger(tuple(rows)).composition(twice).zcdp == pytest.approx(2 * zcdp)


def test_a_guarantee_for_fewer_histograms_is_refused() -> None:
    with pytest.raises(InputError, match="3 histograms need a guarantee with clip norm 1"):
        released_of(queries(3, 10), guarantee_for(2, zcdp=1.0), step=0, add_noise=noise(0))
    with pytest.raises(InputError, match="at least one"):
        guarantee_for(0, zcdp=1.0)


def test_queries_of_one_step_go_to_the_same_clients() -> None:
    with pytest.raises(InputError, match=r"\[10, 11\] clients"):
        exactly([*queries(1, 10), *queries(1, 11)])
    with pytest.raises(InputError, match="in none of them"):
        HistogramQuery(name="beyond", cells=CELLS, chosen=np.array([CELLS.size]))


@pytest.mark.parametrize("clients", [3, 5, 200])
def test_counts_through_a_secure_sum_are_the_counts(clients: int) -> None:
    asked, secure = queries(3, clients), SimulatedProtocol(devices=5)
    assert np.array_equal(summed(asked, secure), summed(asked))
    plain, hidden = (
        released_of(asked, guarantee_for(3, zcdp=1.0), step=0, add_noise=noise(2), secure=how) for how in (None, secure)
    )
    assert plain[1] == hidden[1]
    assert all(np.array_equal(plain[0][name].counts, hidden[0][name].counts) for name in plain[0])


def test_local_reports_through_a_secure_sum_are_of_the_same_law() -> None:
    """Votes of devices that make their reports and of those that answer as one add up: unbiased, as spread as said."""
    skewed = np.minimum(np.random.default_rng(0).geometric(0.3, 400) - 1, CELLS.size - 1)
    asked = [HistogramQuery(name="a", cells=CELLS, chosen=skewed)]
    found = [local(asked, seed, SimulatedProtocol(devices=5))[0]["a"] for seed in range(60)]
    estimates, declared = np.array([each.counts for each in found]), np.sqrt(found[0].variance)
    error = (estimates.mean(axis=0) - exactly(asked)["a"].counts) / (declared / math.sqrt(len(found)))
    assert np.abs(error).max() < 4
    spread = estimates.std(axis=0, ddof=1) / declared
    assert 0.8 < np.median(spread) < 1.25


def local(
    asked: Sequence[HistogramQuery],
    seed: int,
    secure: SimulatedProtocol | None = None,
    *,
    step: int = 0,
    first_user: int = 0,
) -> tuple[dict[str, Histogram], tuple[LocalReports, ...]]:
    randomizer = partial(KaryRandomizedResponse, epsilon=3.0)
    votes, answered = votes_of(asked, randomizer, generator=np.random.default_rng(seed), secure=secure)
    histograms = {each.name: each.cells for each in asked}
    return release_locally(histograms, votes, answered, randomizer, step=step, first_user=first_user)


def test_local_reports_are_unbiased_and_each_device_answers_once() -> None:
    skewed = np.minimum(np.random.default_rng(0).geometric(0.3, 3000) - 1, CELLS.size - 1)
    asked = [HistogramQuery(name=name, cells=CELLS, chosen=skewed) for name in ("a", "b", "c")]
    found = [local(asked, seed)[0] for seed in range(150)]
    assert sum(each.devices for each in found[0].values()) == 3000
    truth = exactly(asked)["a"].counts / 3
    estimates = np.array([each["a"].counts for each in found])
    declared = np.sqrt(found[0]["a"].variance)
    error = (estimates.mean(axis=0) - truth) / (declared / math.sqrt(len(found)))
    assert np.abs(error).max() < 4
    spread = estimates.std(axis=0, ddof=1) / declared
    # who answers which question is drawn, too: that adds to large cells, and is sampling, not noise
    assert 0.8 < np.median(spread) < 1.25


def test_local_reports_stand_in_the_ledger_with_one_report_a_client() -> None:
    """Two steps, other clients in each: whoever sees every report learns epsilon of each client, once."""
    _, first = local(queries(3, 100), 1)
    _, second = local(queries(2, 50), 2, step=1, first_user=100)
    assert [row.users for row in first] == [34, 33, 33] and [row.first_user for row in second] == [100, 125]
    once = Participation(rounds=2, min_separation=2, max_participations=1)
    guarantee = Ledger((*first, *second)).account(once)
    assert isinstance(guarantee, LocalGuarantee) and guarantee.user_epsilon == 3.0
