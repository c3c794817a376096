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
from tests.support.secure_aggregation.lying_clients import LIES, report_of, shares_of_another_key

from tacit.secure_aggregation.one_message.decryptor_messages import (
    Finding,
    Vote,
    set_digest,
    signed_finding,
    signed_sum,
)
from tacit.secure_aggregation.one_message.messages import OneMessageReport
from tacit.secure_aggregation.one_message.simulation import (
    DecryptorAnswer,
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
OUT_OF_STEP = ("was not opened", "no set of this round", "has been added")  # sent again, or too soon


def vectors(seed: int, count: int, largest: int, contributors: int = 0, margin: int = 0) -> list[Words]:
    """Those of clients, and behind them contributors' noise + margin."""
    draw = np.random.default_rng(seed)
    each = [*[largest] * count, *[2 * margin] * contributors]
    return [draw.integers(0, most, DIMENSION, np.uint32, endpoint=True) for most in each]


def liars(folder: Path, lying: list[int], chance: random.Random) -> DecryptorLie:
    """Decryptors that sign another set, or give another sum, properly signed; an honest one says what it is to say.

    Of reports they say the truth here: what else they may say is below.
    """

    def lie(index: int, answer: DecryptorAnswer) -> DecryptorAnswer | None:
        if index not in lying or chance.random() < 0.3:
            return answer
        identity = Identity((folder / f"decryptor-{index}" / "identity").read_bytes())
        if isinstance(answer, Finding):
            return answer
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
    done = run_one_message_round(parties, given, faults=faults, dead=dead, killed=killed, lie=lie)
    assert not done.named, "nobody is left out whose report fits"
    return given, parties, done


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
    ends = Counter(must_be_exact_or_say_why(*one_round(seed, 16, tmp_path / str(seed))) for seed in range(20))
    assert ends["sum"] >= 5 and len(ends) >= 4, ends


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_a_thousand_random_rounds_are_exact_or_say_why_not(part: int, tmp_path: Path) -> None:
    seeds = range(1000 + 50 * part, 1050 + 50 * part)
    ends = Counter(must_be_exact_or_say_why(*one_round(seed, 200, tmp_path / str(seed))) for seed in seeds)
    assert ends["sum"] >= 10 and len(ends) >= 3, ends


@pytest.mark.parametrize(
    ("fault", "often", "said"),
    [
        ("corrupted", 0.05, (*DAMAGED, *OUT_OF_STEP)),
        (
            "forged",
            0.1,
            ("signature", "tag", "reported already", "signed", "has been added", "ends within", "ascending"),
        ),
        ("replayed", 0.2, ("reported already", "is due", "came where", "late", "has been added", "client signed")),
        ("twice", 0.2, ("reported already", "has been added")),
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


@pytest.mark.parametrize("seed", [pytest.param(n, marks=() if n < 6 else pytest.mark.nightly) for n in range(60)])
def test_whoever_lies_is_named_and_nobody_else(tmp_path: Path, seed: int) -> None:
    """Clients with lies of all kinds, over a network that loses, repeats and damages messages."""
    chance = random.Random(seed)
    count, decryptors = chance.randint(4, 12), chance.randint(2, 5)
    parties = OneMessageParties.from_settings(
        count, tmp_path, dimension=DIMENSION, largest=9, seed=seed, decryptors=decryptors
    )
    lies = {party: chance.choice(LIES) for party in chance.sample(range(count), k=chance.randint(1, count - 2))}

    def spoil(party: int, report: OneMessageReport) -> OneMessageReport:
        if party not in lies:
            return report
        lie = lies[party](parties.settings, given[party])
        return report_of(parties.settings, parties.identities[party], lie, passes_server=chance.random() < 0.8)

    given = vectors(seed, count, 9)
    often = chance.choice([0.0, 0.02])
    faults = MessageFaults(lost=often, twice=3 * often, delayed=often, corrupted=often, replayed=often, forged=often)
    done = run_one_message_round(parties, given, faults=faults, killed=chance.choice([0.0, 0.02]), spoil=spoil)
    assert set(done.named) <= lies.keys() and not set(done.included) & lies.keys()
    if often == 0.0:
        assert set(done.included) == set(range(count)) - lies.keys()
    assert must_be_exact_or_say_why(given, parties, done) == "sum"


def test_a_contributor_whose_report_does_not_fit_ends_the_round_and_is_named(tmp_path: Path) -> None:
    parties = OneMessageParties.from_settings(
        4, tmp_path, dimension=DIMENSION, largest=9, seed=1, contributors=1, margin=50
    )

    def spoil(party: int, report: OneMessageReport) -> OneMessageReport:
        if party != 4:
            return report
        lie = shares_of_another_key(parties.settings, given[party])
        return report_of(parties.settings, parties.identities[party], lie, passes_server=True)

    given = vectors(1, 4, 9, 1, 50)
    done = run_one_message_round(parties, given, spoil=spoil)
    assert list(done.named) == [4] and "its share is not one of the key" in done.named[4]
    assert must_be_exact_or_say_why(given, parties, done) == "noise is missing"


def test_a_decryptor_that_lies_of_reports_costs_those_and_no_more(tmp_path: Path) -> None:
    """It names two of eight. That it lies nobody can tell; the sum is of the others, and of no fewer than the goal."""
    for goal, end in ((6, "sum"), (7, "too few reports")):
        folder = tmp_path / str(goal)
        parties = OneMessageParties.from_settings(
            8, folder, dimension=DIMENSION, largest=9, seed=1, decryptors=3, report_goal=goal
        )
        hated = {parties.identities[party].public for party in (2, 5)}
        liar = Identity((folder / "decryptor-1" / "identity").read_bytes())

        def lie(
            index: int, answer: DecryptorAnswer, hated: set[bytes] = hated, liar: Identity = liar
        ) -> DecryptorAnswer:
            if index != 1 or not isinstance(answer, Finding) or answer.client not in hated:
                return answer
            signed = signed_finding(answer.round, answer.client, b"no")
            return dataclasses.replace(answer, wrong=b"no", signature=liar.sign("finding", signed))

        given = vectors(1, 8, 9)
        done = run_one_message_round(parties, given, lie=lie)
        assert done.named == {2: "decryptor 1: no", 5: "decryptor 1: no"}
        assert must_be_exact_or_say_why(given, parties, done) == end


def test_a_round_can_be_run_again(tmp_path: Path) -> None:
    first, second = (one_round(7, 16, tmp_path / str(each))[2] for each in range(2))
    assert first.heard == second.heard and first.refused == second.refused and str(first.aborted) == str(second.aborted)
