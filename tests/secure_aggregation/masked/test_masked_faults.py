"""Whatever happens to messages and devices: the exact sum of the agreed set, or an end that names its cause."""

import math
import random

import numpy as np
import pytest

from tacit.secure_aggregation.masked.messages import Advertise, Consent, MaskedVector, Shares, Unmask
from tacit.secure_aggregation.secrets import Words
from tacit.secure_aggregation.simulate import MaskedRound, MessageFaults, run_masked_round

STEPS = [Advertise, Shares, MaskedVector, Consent, Unmask]
QUICK = range(20)

pytestmark = pytest.mark.usefixtures("computed_once")


def one_round(seed: int, most: int) -> tuple[list[Words], MaskedRound]:
    """A random round: 2 to `most` clients, small cohorts as often as large ones, and faults of random chances."""
    chance = random.Random(seed)
    clients = round(2 * math.exp(chance.random() * math.log(most / 2)))
    bits = chance.randint(max(8, clients.bit_length()), 32)
    numbers = np.random.default_rng(seed)
    given = [numbers.integers(0, 1 << bits, chance.randint(30, 31), dtype=np.uint32) for _ in range(clients)]
    given = [each[:30] for each in given]
    worst = chance.choice([0.0, 0.01, 0.03, 0.1])

    def often() -> float:
        return worst * chance.random()

    faults = MessageFaults(
        vanishes=often() / 2,
        lost=often() / 2,
        twice=10 * often(),
        delayed=often() / 2,
        corrupted=often() / 2,
        replayed=10 * often(),
        forged=10 * often(),
    )
    return given, run_masked_round(given, bits=bits, seed=seed, faults=faults)


def must_be_exact_or_say_why(given: list[Words], done: MaskedRound) -> bool:
    """Whether there is a sum."""
    if done.aborted:
        assert any(word in str(done.aborted) for word in ("clients", "neighbours", "rebuild"))
        return False
    included = done.server.included
    assert len(included) >= max(done.settings.fewest, done.settings.plan().quorum)
    exact = [sum(int(given[client][place]) for client in included) % (1 << done.settings.bits) for place in range(30)]
    assert done.total is not None and done.total.tolist() == exact
    return True


def test_random_rounds_are_exact_or_say_why_not() -> None:
    ends = [must_be_exact_or_say_why(*one_round(seed, most=30)) for seed in QUICK]
    assert {True, False} == set(ends)  # both are seen


@pytest.mark.nightly  # two minutes a hundred
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_random_rounds_are_exact_or_say_why_not(hundred: int) -> None:
    ends = [must_be_exact_or_say_why(*one_round(1000 + 100 * hundred + seed, most=200)) for seed in range(100)]
    assert 10 <= sum(ends) <= 90


@pytest.mark.parametrize(
    ("fault", "often", "said"),
    [
        ("corrupted", 0.03, ("no message", "ends within", "signature", "tag", "bytes", "round", "kind", "version")),
        ("forged", 0.05, ("ends within", "signature", "tag", "bit", "has answered", "another", "is due", "of round")),
        ("replayed", 0.2, ("is due", "has answered", "all that it tells", "boxed a share")),
        ("delayed", 0.02, ("is due", "all that it tells")),
        ("twice", 0.2, ("has answered",)),
    ],
)
def test_each_fault_alone_is_refused_by_its_name(fault: str, often: float, said: tuple[str, ...]) -> None:
    given = [np.full(5, client, np.uint32) for client in range(20)]
    done = run_masked_round(given, bits=20, seed=3, faults=MessageFaults(**{fault: often}))
    assert done.refused and all(any(each in why for each in said) for why in done.refused), done.refused
    assert done.total is not None and done.total.tolist() == [sum(done.server.included)] * 5
    if fault in ("replayed", "twice"):  # they change nothing; the others cost somebody a step
        assert done.server.included == tuple(range(20))


def test_a_round_can_be_run_again() -> None:
    first, second = (one_round(7, most=20)[1] for _ in range(2))
    assert first.heard == second.heard and first.refused == second.refused and str(first.aborted) == str(second.aborted)
