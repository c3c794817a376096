"""Whatever happens to messages, clients and decryptors: the exact sum of the agreed set, or an end that says why
not.
"""

import dataclasses
import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tacit.secure_aggregation.one_message.decryptor_messages import KeySum, Vote, set_digest, signed_sum
from tacit.secure_aggregation.one_message.simulation import (
    DecryptorLie,
    OneMessageOutcome,
    OneMessageParties,
    run_one_message_round,
)
from tacit.secure_aggregation.secrets import Identity, Words
from tacit.secure_aggregation.shares import PRIME, elements
from tacit.secure_aggregation.simulate import MessageFaults

DIMENSION = 40
CAUSES = {
    "reports came": "too few reports",
    "lacks the contributor": "noise is missing",
    "signed the set": "too few decryptors signed",
    "decryptors gave their sums": "too few decryptors answered",
    "contradict": "a decryptor lied",
    "is no sum of clients' keys": "a decryptor lied",
    "does not open": "somebody lied",
}

DAMAGED = ("no message", "ends within", "signature", "tag", "bytes", "round", "kind", "version", "box", "fields")
OUT_OF_STEP = ("was not opened", "before a quorum", "no set of this round", "has been added")  # sent again, or too soon


def vectors(seed: int, count: int, largest: int, contributors: int = 0, margin: int = 0) -> list[Words]:
    """Those of clients, and behind them contributors' noise + margin."""
    draw = np.random.default_rng(seed)
    each = [*[largest] * count, *[2 * margin] * contributors]
    return [draw.integers(0, most, DIMENSION, np.uint32, endpoint=True) for most in each]


def liars(folder: Path, lying: list[int], chance: random.Random) -> DecryptorLie:
    """Decryptors that sign another set, or give another sum, properly signed; an honest one says what it is to say."""

    def lie(index: int, answer: Vote | KeySum) -> Vote | KeySum | None:
        if index not in lying or chance.random() < 0.3:
            return answer
        identity = Identity((folder / f"decryptor-{index}" / "identity").read_bytes())
        if isinstance(answer, Vote):
            digest = set_digest(answer.round, (identity.public,))
            return dataclasses.replace(answer, clients=digest, signature=identity.sign("set", digest))
        shares = elements(answer.shares, len(answer.shares) // 4)
        at = chance.randrange(shares.size)
        shares[at] = (int(shares[at]) + chance.choice([1, PRIME - 1, chance.randrange(PRIME)])) % PRIME
        data = shares.astype("<u4").tobytes()
        signature = identity.sign("key sum", signed_sum(answer.round, answer.clients, data))
        return dataclasses.replace(answer, shares=data, signature=signature)

    return lie


def one_round(seed: int, most: int, folder: Path) -> tuple[list[Words], OneMessageParties, OneMessageOutcome]:
    """A random round: 2 to `most` clients, small cohorts as often as large ones, and faults of random chances."""
    chance = random.Random(seed)
    count = round(2 * math.exp(chance.random() * math.log(most / 2)))
    largest = 2 ** chance.randint(0, 24) - chance.choice([0, 0, 1]) or 1
    decryptors = chance.randint(2, 7)
    contributors = chance.choice([0, 0, 1, 3])
    margin = chance.choice([1, largest, chance.randint(1, 2**25)]) if contributors else 0
    parties = OneMessageParties.from_settings(
        count,
        folder,
        dimension=DIMENSION,
        largest=largest,
        seed=seed,
        report_goal=max(2, round(count * chance.choice([0.3, 0.6, 0.9]))),
        decryptors=decryptors,
        corrupt=chance.randint(1, decryptors - 1),
        contributors=contributors,
        margin=margin,
    )
    worst = chance.choice([0.0, 0.01, 0.03, 0.1])

    def often() -> float:
        return worst * chance.random()

    faults = MessageFaults(
        vanishes=5 * often(),
        lost=often(),
        twice=3 * often(),
        delayed=often(),
        corrupted=often(),
        replayed=3 * often(),
        forged=3 * often(),
    )
    spare = decryptors - parties.settings.quorum
    unwell = chance.sample(range(decryptors), k=min(decryptors, chance.choice([0, spare, spare + 1])))
    dead, lying = unwell[: len(unwell) // 2], unwell[len(unwell) // 2 :]
    given = vectors(seed, count, largest, contributors, margin)
    killed = chance.choice([0.0, 0.0, 0.3 / count])
    lie = liars(folder, lying, chance)
    return given, parties, run_one_message_round(parties, given, faults=faults, dead=dead, killed=killed, lie=lie)


def must_be_exact_or_say_why(given: list[Words], parties: OneMessageParties, done: OneMessageOutcome) -> str:
    """How the round ended."""
    if done.aborted is not None:
        assert done.total is None
        (cause,) = [cause for said, cause in CAUSES.items() if said in str(done.aborted)]
        return cause
    many = len(parties.settings.contributors)
    assert len(done.included) >= parties.settings.report_goal + many
    assert set(range(len(given) - many, len(given))) <= set(done.included), "no sum without all the noise"
    exact = [sum(int(given[party][place]) for party in done.included) for place in range(DIMENSION)]
    assert done.total is not None
    assert done.total.tolist() == [(each - many * parties.settings.margin) % 2**32 for each in exact]
    return "sum"


def test_random_rounds_are_exact_or_say_why_not(tmp_path: Path) -> None:
    ends = Counter(must_be_exact_or_say_why(*one_round(seed, 16, tmp_path / str(seed))) for seed in range(40))
    assert ends["sum"] >= 10 and len(ends) >= 4, ends


@pytest.mark.parametrize(
    "part", [pytest.param(n, marks=pytest.mark.long if n < 1 else pytest.mark.nightly) for n in range(20)]
)
def test_a_thousand_random_rounds_are_exact_or_say_why_not(part: int, tmp_path: Path) -> None:
    seeds = range(1000 + 50 * part, 1050 + 50 * part)
    ends = Counter(must_be_exact_or_say_why(*one_round(seed, 200, tmp_path / str(seed))) for seed in seeds)
    assert ends["sum"] >= 10 and len(ends) >= 3, ends


@pytest.mark.parametrize(
    ("fault", "often", "said"),
    [
        ("corrupted", 0.05, (*DAMAGED, *OUT_OF_STEP)),
        ("forged", 0.1, ("signature", "tag", "reported already", "signed", "has been added", "ends within")),
        ("replayed", 0.2, ("reported already", "is due", "came where", "late", "has been added", "before a quorum")),
        ("twice", 0.2, ("reported already", "has been added", "before a quorum")),
        ("delayed", 0.05, OUT_OF_STEP),
        ("lost", 0.05, OUT_OF_STEP),
    ],
)
def test_each_fault_alone_is_refused_by_its_name(
    fault: str, often: float, said: tuple[str, ...], tmp_path: Path
) -> None:
    parties = OneMessageParties.from_settings(12, tmp_path, dimension=DIMENSION, largest=9, seed=3)
    given = vectors(3, 12, 9)
    done = run_one_message_round(parties, given, faults=MessageFaults(**{fault: often}))
    assert done.refused and not [why for why in done.refused if not any(each in why for each in said)]
    assert must_be_exact_or_say_why(given, parties, done) == "sum"
    if fault in ("replayed", "twice", "forged", "delayed"):  # they change nothing
        assert done.included == list(range(12))


def test_as_many_decryptors_as_are_spare_may_die(tmp_path: Path) -> None:
    given = vectors(1, 5, 9)
    for dead, end in (((0,), "sum"), ((3,), "sum"), ((1, 2), "too few decryptors signed")):
        folder = tmp_path / str(dead)
        parties = OneMessageParties.from_settings(5, folder, dimension=DIMENSION, largest=9, seed=1)
        assert must_be_exact_or_say_why(given, parties, run_one_message_round(parties, given, dead=dead)) == end


def test_a_round_can_be_run_again(tmp_path: Path) -> None:
    first, second = (one_round(7, 16, tmp_path / str(each))[2] for each in range(2))
    assert first.heard == second.heard and first.refused == second.refused and str(first.aborted) == str(second.aborted)
