"""Reports whose ciphertexts, shares and masks do not belong together are named, and the sum of the others is exact."""

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from tests.support.secure_aggregation.lying_clients import (
    LIES,
    Lie,
    another_mask,
    honest,
    random_ciphertexts,
    report_of,
    shares_of_another_key,
)
from tests.support.secure_aggregation.one_message_parts import CLIENTS, DRAW, Small, small_round, summed, vectors

from tacit.errors import ProtocolError, RoundAborted
from tacit.protocol.one_message_shape import most_sealed_bytes
from tacit.secure_aggregation.discrete_gaussian import sample
from tacit.secure_aggregation.one_message import client
from tacit.secure_aggregation.one_message.decryptor_messages import Deposit, Finding, Refusal, signed_finding
from tacit.secure_aggregation.one_message.lattice import PUBLISHED, LatticeParameters, public_polynomial
from tacit.secure_aggregation.one_message.messages import OneMessageRound
from tacit.secure_aggregation.one_message.report_check import (
    PICKS,
    TESTS,
    Challenge,
    as_row,
    check_masks,
    check_range,
    check_values,
    key_parts,
    opened_parts,
    switched,
    within,
)
from tacit.secure_aggregation.one_message.ring_inverse import inverted
from tacit.secure_aggregation.residue_sums import add_packed
from tacit.secure_aggregation.residues import pack
from tacit.secure_aggregation.secrets import Identity, Words, derived, public_key, seeded, unsealed
from tacit.secure_aggregation.shares import PRIME, Elements, combined, lagrange, rebuilt, split

MANY = 30_000  # coordinates: two polynomials of the smallest set
LIAR = Identity(bytes(31) + b"7")
SMALL_RING = LatticeParameters("eight", 8, (65537, 114689), 12)  # both 1 modulo 16


# -- whole rounds ------------------------------------------------------------------------------------------------------


def found_by(small: Small, index: int, deposits: list[tuple[Deposit, ...]]) -> list[Finding]:
    small.decryptors[index].receive(small.server.opening().to_bytes())
    found = [small.decryptors[index].receive(each[index].to_bytes()) for each in deposits]
    assert all(isinstance(each, Finding) for each in found)
    return [each for each in found if isinstance(each, Finding)]


@pytest.mark.parametrize("decryptors", [3, 4])
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_report_that_does_not_fit_is_named_and_the_sum_is_that_of_the_rest(
    tmp_path: Path, lie: Callable[[OneMessageRound, Words], Lie], decryptors: int
) -> None:
    small = small_round(tmp_path, decryptors=decryptors, dimension=MANY)
    assert small.settings.slots.polynomials > 1
    bodies = [small.report(each, words).to_bytes() for each, words in enumerate(vectors(3, dimension=MANY))]
    deposits = [small.server.receive(each) for each in bodies]
    wrong = lie(small.settings, vectors(1, dimension=MANY)[0])
    if lie.__name__ in SERVER_SEES:
        with pytest.raises(ProtocolError, match=f"{LIAR.public.hex()[:16]} are not under the key that it speaks of"):
            small.server.receive(report_of(small.settings, LIAR, wrong, passes_server=False).to_bytes())
    liars = report_of(small.settings, LIAR, wrong, passes_server=True).to_bytes()
    deposits.append(small.server.receive(liars))
    for index in range(decryptors):
        for finding in found_by(small, index, deposits):
            small.server.answer(finding.to_bytes())
    assert small.server.checked == set(range(decryptors))
    assert list(small.server.wrong) == [LIAR.public], small.server.wrong
    with pytest.raises(RoundAborted, match=f"the report of {LIAR.public.hex()[:16]} does not fit, and is in the sum"):
        small.server.propose()
    small.server.leave_out(liars)
    with pytest.raises(ProtocolError, match="has reported already"):
        small.server.receive(liars)
    small.agree()
    for index in range(small.settings.quorum):
        small.server.answer(small.summed_by(index, deposits[:3]).to_bytes())
    assert small.server.opened().tolist() == summed(vectors(3, dimension=MANY))


def test_a_quorum_that_checked_a_report_is_enough_whoever_is_away(tmp_path: Path) -> None:
    """What the first decryptor finds is made up, as by a client that knows it is away, or works with it."""
    small = small_round(tmp_path, dimension=MANY)
    deposits = small.received_of(vectors(2, dimension=MANY))
    wrong = shares_of_another_key(small.settings, vectors(1, dimension=MANY)[0])
    deposits.append(small.server.receive(report_of(small.settings, LIAR, wrong, passes_server=True).to_bytes()))
    for index in (1, 2, 3):
        for finding in found_by(small, index, deposits):
            small.server.answer(finding.to_bytes())
    assert len(small.server.checked) == small.settings.quorum
    assert list(small.server.wrong) == [LIAR.public]


SERVER_SEES = ("random_ciphertexts", "one_random_ciphertext", "shares_of_another_key", "shares_of_almost_the_key")


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie is not another_mask], ids=lambda lie: lie.__name__)
def test_each_of_these_lies_would_void_the_sum(tmp_path: Path, lie: Callable[[OneMessageRound, Words], Lie]) -> None:
    """Left in, the sum is none, or a decryptor cannot add. But a wrong mask spoils its report's check alone."""
    small = small_round(tmp_path, dimension=MANY)
    deposits = small.received_of(vectors(2, dimension=MANY))
    wrong = lie(small.settings, vectors(1, dimension=MANY)[0])
    deposits.append(small.server.receive(report_of(small.settings, LIAR, wrong, passes_server=True).to_bytes()))
    small.agree()
    with pytest.raises(Exception, match=r"spoilt the round|does not open|no sum of clients|contradict"):
        for index in range(4):
            small.server.answer(small.summed_by(index, deposits).to_bytes())
        small.server.opened()


@pytest.mark.parametrize("parameters", list(PUBLISHED))
def test_honest_reports_always_fit(tmp_path: Path, parameters: str) -> None:
    """Noise that reaches as far as it may, too."""
    small = small_round(tmp_path, parameters=parameters.encode(), contributors=1, margin=2**20)
    reports = [small.report(each, words) for each, words in enumerate(vectors(4))]
    reports.append(small.report(5, np.full(300, 2**21, np.uint32)))
    deposits = [small.server.receive(each.to_bytes()) for each in reports]
    for index in range(4):
        assert not any(finding.wrong for finding in found_by(small, index, deposits))


def test_a_decryptor_answers_the_same_again_and_after_a_restart(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    deposits = small.received(2)
    first = found_by(small, 0, deposits)
    assert found_by(small, 0, deposits) == first
    small.decryptors[0] = small.decryptors[0].restarted()
    assert found_by(small, 0, deposits) == first


def test_what_a_server_changes_in_a_report_asks_a_decryptor_nothing(tmp_path: Path) -> None:
    """A challenge of its own would ask for another part of the key; all that a challenge follows from is signed."""
    small = small_round(tmp_path)
    ((deposit, *_),) = small.received(1)
    small.decryptors[0].receive(small.server.opening().to_bytes())
    body = (*deposit.digests[:-1], bytes(32))
    for change in ({"digests": body}, {"parts": bytes(len(deposit.parts))}, {"parts": b""}):
        with pytest.raises(ProtocolError, match=r"a signature \(report\)"):
            small.decryptors[0].receive(dataclasses.replace(deposit, **change).to_bytes())  # type: ignore[arg-type]


def test_findings_are_signed_and_of_reports_in_the_sum(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    deposits = small.received(2)
    finding = found_by(small, 0, deposits)[0]
    with pytest.raises(ProtocolError, match=r"a signature \(finding\)"):
        small.server.answer(dataclasses.replace(finding, wrong=b"I say so").to_bytes())
    with pytest.raises(ProtocolError, match="no decryptor 9"):
        small.server.answer(dataclasses.replace(finding, decryptor=9).to_bytes())
    assert not small.server.wrong and not small.server.checked
    small.agree()
    with pytest.raises(ProtocolError, match="or is closed"):
        small.server.leave_out(small.report(0, vectors(1)[0]).to_bytes())


def test_a_report_of_one_attempt_is_none_of_another(tmp_path: Path) -> None:
    """Its round is in the challenge, in what is signed and in every box: nothing of it can be shown twice."""
    one, other = (small_round(tmp_path, seed=bytes(31) + bytes([at])) for at in range(2))
    assert one.settings.attempts == other.settings.attempts
    report = one.report(0, vectors(1)[0])
    deposit = one.server.receive(report.to_bytes())[0]
    with pytest.raises(ProtocolError):
        other.server.receive(report.to_bytes())
    with pytest.raises(ProtocolError, match=r"a signature \(report\)"):
        other.server.receive(dataclasses.replace(report, round=other.settings.name).to_bytes())
    other.decryptors[0].receive(other.server.opening().to_bytes())
    with pytest.raises(ProtocolError, match=r"a signature \(report\)"):
        other.decryptors[0].receive(dataclasses.replace(deposit, round=other.settings.name).to_bytes())
    of_other = report_of(other.settings, LIAR, honest(other.settings, vectors(1)[0]), passes_server=True)
    with pytest.raises(ProtocolError, match=r"a signature \(report\)"):
        other.server.receive(dataclasses.replace(of_other, boxes=report.boxes).to_bytes())


def test_what_the_page_says_a_saboteur_can_still_do(tmp_path: Path) -> None:
    """A key or an error beyond an honest one's fits, and voids the sum: the page says so, and up to which size."""
    known = small_round(tmp_path / "known").settings
    ring, vector = known.slots.parameters.ring, vectors(1)[0]
    key = sample(4096, DRAW)
    key[7] += 1 << 12
    long_key = Lie(client._ciphertexts(known, vector, key, DRAW), client._shares(known, key, DRAW))
    large_error, total = honest(known, vector), np.zeros((2, 4096), np.uint64)
    add_packed(ring, total, memoryview(large_error.made.body))
    error = np.zeros(4096, np.int64)
    error[5] = 400
    ring.add(total, ring.transform(ring.scaled(ring.reduced(error), 1 << known.slots.parameters.plain_bits)))
    body = pack(ring, total)
    large_error.made = client._Ciphertexts(body, switched(ring, total)[None], large_error.made.rows)
    for lie, why in ((long_key, "no sum of clients' keys"), (large_error, "part 1 of 1 fails its checks")):
        small = small_round(tmp_path / why[:4])
        deposits = small.received(2)
        deposits.append(small.server.receive(report_of(small.settings, LIAR, lie, passes_server=True).to_bytes()))
        for index in range(4):
            assert not any(finding.wrong for finding in found_by(small, index, deposits))
        small.agree()
        for index in range(small.settings.quorum):
            small.server.answer(small.summed_by(index, deposits).to_bytes())
        with pytest.raises(RoundAborted, match=why):
            small.server.opened()


@pytest.mark.parametrize("parameters", list(PUBLISHED.values()), ids=lambda each: each.name)
def test_a_saboteurs_key_is_up_to_the_size_that_the_page_says(parameters: LatticeParameters) -> None:
    """One number of it, with masks of zero: below half of that size all tests pass, beyond it about half."""
    rounds = dataclasses.replace(A_ROUND, parameters=parameters.name.encode())
    known, most = check_range(parameters), {4096: 1 << 21, 8192: 1 << 21, 16384: 1 << 22}[parameters.degree]
    assert 0.98 * most < 2 * known.most / max(known.factor - 1, 1) < 1.02 * most
    alpha = switched(parameters.ring, public_polynomial(parameters, rounds.seed, 0))
    for number, least, greatest in ((most * 31 // 64, 1.0, 1.0), (most * 17 // 16, 0.2, 0.6)):
        key, seen = np.zeros((rounds.packed, rounds.columns), np.uint32), []
        key[0, 0] = number
        shares = split(key, rounds.points, 2, DRAW, packed=rounds.packed)
        fitting = (alpha.astype(np.uint64) * np.uint64(number) % np.uint64(PRIME)).astype(np.uint32)
        for _ in range(8):
            challenge = Challenge.from_seed(DRAW(32), parameters.degree, rounds.columns)
            masks = np.zeros((2, rounds.part_elements), np.uint32)
            parts = rounds.parts(challenge, as_row(alpha)[None], shares, masks)
            values = check_values(challenge, fitting[None], rounds.key_in_tests(parts))
            seen.append(float(np.mean((values >= -known.most) & (values < known.most))))
        assert least <= float(np.mean(seen)) <= greatest, (number, seen)


@pytest.mark.parametrize(
    "said", [b"\x1b[2J\n2026 WARNING all is well " * 100_000, b" \n", b"\xff"], ids=["orders", "nothing", "no text"]
)
def test_a_decryptors_words_are_one_line_of_a_log(tmp_path: Path, said: bytes) -> None:
    """And whatever they are, a report that it names is named."""
    small = small_round(tmp_path)
    ((deposit, *_), _) = small.received(2)
    signer = Identity((small.folders[0] / "identity").read_bytes())
    signature = signer.sign("finding", signed_finding(small.settings.name, deposit.client, said))
    small.server.answer(Finding(small.settings.name, 0, deposit.client, said, signature).to_bytes())
    (why,) = small.server.wrong.values()
    assert why.startswith("decryptor 0: ") and why.isprintable() and len(why) < 1100
    with pytest.raises(ProtocolError) as caught:
        small.server.answer(Refusal(small.settings.name, said).to_bytes())
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1100


# -- the mathematics ---------------------------------------------------------------------------------------------------


def test_a_report_says_what_the_page_says(tmp_path: Path) -> None:
    """From its boxes, opened with the decryptors' keys, in NumPy and whole numbers alone: one of 4 decryptors each."""
    small = small_round(tmp_path)
    known, parameters = small.settings, small.settings.slots.parameters
    report, degree, ring = small.report(0, vectors(1)[0]), parameters.degree, parameters.ring
    opened = []
    for index, folder in enumerate(small.folders):
        context = known.name + report.client + index.to_bytes(4, "little")
        box = unsealed((folder / "box").read_bytes(), report.boxes[index], context)
        opened.append(np.frombuffer(box, "<u4").astype(np.int64))
    shares, code, masks = (
        np.stack(each) for each in zip(*(np.split(box, [2048, 2050]) for box in opened), strict=True)
    )
    masks = masks.reshape(4, 64, 2)
    weights = lagrange([1, 2, 3], [PRIME - 1, PRIME - 2]).astype(object)
    assert known.quorum == 3
    for hidden in (code, masks[:, :, 0], masks[:, :, 1]):  # on polynomials of degree 2, as shares are
        assert (combined(lagrange([1, 2, 3], [4]), hidden[:3].astype(np.uint32)) == hidden[3]).all()
    key = rebuilt(shares[:3].astype(np.uint32), [1, 2, 3], packed=2).ravel().astype(np.int64)
    key = np.where(key > PRIME // 2, key - PRIME, key)
    u = sum(weights[r] @ masks[:3, :, r].astype(object) for r in range(2)) % PRIME
    u = ((u + PRIME // 2) % PRIME - PRIME // 2).astype(np.int64)
    assert np.all((u >= -64 * 2**20) & (u < 64 * 2**20)) and np.abs(key).max() < 88

    sha = [hashlib.sha256(part).digest() for part in (*report.boxes, report.ephemeral + report.tag, report.body)]
    stream = seeded(derived(known.name, "report check", report.client, *sha))
    words = [int.from_bytes(stream(8), "little") for _ in range(64 * 16)]
    factors = np.frombuffer(stream(64 * degree), np.uint8).reshape(64, degree).astype(np.int64) % 128 - 64
    drawn = (np.frombuffer(stream(4 * 2 * 2048), "<u4") & np.uint32(2**31 - 1)).tolist()
    assert PRIME not in drawn, "with these seeds none is drawn again"
    alpha = switched(ring, public_polynomial(parameters, known.seed, 0)).astype(np.int64)
    residues = np.zeros((2, degree), np.uint64)
    add_packed(ring, residues, memoryview(bytes(report.body)))
    gamma = switched(ring, residues).astype(np.int64)

    parts = np.frombuffer(report.parts, "<u4").reshape(3, 130).astype(np.int64)
    for test in range(64):
        row, y = -factors[test], int(u[test])
        for word in words[16 * test : 16 * test + 16]:
            i, sign = word * degree >> 64, (word & 1) - (word >> 1 & 1)
            row = row + sign * np.concatenate([alpha[i::-1], -alpha[:i:-1]])
            y += sign * int(gamma[i])
        y -= sum(map(int, row * key))
        assert -63 * 2**20 <= (y + PRIME // 2) % PRIME - PRIME // 2 < 63 * 2**20
        for k in range(3):
            sums = [sum(map(int, part % PRIME * shares[k] % PRIME)) for part in (row[:2048], row[2048:])]
            for r in range(2):
                assert (sums[r] - int(masks[k, test, r])) % PRIME == parts[k, 2 + 2 * test + r]
    for k in range(3):
        for at in range(2):
            total = sum(int(x) * int(c) for x, c in zip(shares[k], drawn[2048 * at :], strict=False))
            assert (total + int(code[k, at])) % PRIME == parts[k, at]


def test_a_report_of_many_decryptors_is_no_longer_than_it_may_be(tmp_path: Path) -> None:
    small = small_round(tmp_path, decryptors=20, corrupt=9)
    data = small.report(0, vectors(1)[0]).to_bytes()
    assert small.settings.parts_bytes > 3900
    assert len(data) <= most_sealed_bytes(small.settings.to_bytes().hex()) < len(data) + 4096
    deposits = [small.server.receive(data)]
    for index in (0, 14, 19):
        assert [finding.wrong for finding in found_by(small, index, deposits)] == [b""]


@pytest.mark.parametrize("parameters", [*PUBLISHED.values(), SMALL_RING], ids=lambda each: each.name)
def test_scaled_polynomials_are_the_nearest_multiples(parameters: LatticeParameters) -> None:
    """Against whole numbers of any size."""
    ring = parameters.ring
    public = public_polynomial(parameters, bytes(32), 3)
    residues, found = inverted(ring, public.copy()), switched(ring, public.copy())
    for at in range(0, ring.degree, max(1, ring.degree // 500)):
        parts = [
            (int(row[at]) * pow(ring.modulus // p, -1, p) % p, p) for row, p in zip(residues, ring.primes, strict=True)
        ]
        fraction = sum(y * ((1 << 128) // p) >> 64 for y, p in parts) % 2**64  # as the page says
        assert int(found[at]) == ((fraction * PRIME + 2**63) >> 64) % PRIME
        whole = sum(y * (ring.modulus // p) for y, p in parts) % ring.modulus
        away = (int(found[at]) * ring.modulus - whole * PRIME) % (PRIME * ring.modulus)
        away = min(away, PRIME * ring.modulus - away)
        assert away <= ring.modulus * (0.5 + 2.0**-28)


def plain_tests(
    challenge: Challenge, alphas: Elements, gammas: Elements, key: list[int], factor: int, masks: list[int]
) -> list[int]:
    """y of each test by the formula, in whole numbers and two loops."""
    polynomials, degree = alphas.shape
    found = []
    for test in range(TESTS):
        y = masks[test]
        for at in range(degree):
            y += (int(challenge.factors[test, at]) % (2 * factor) - factor) * key[at]
        for word in map(int, challenge.words[test]):
            polynomial, i = divmod((word * polynomials * degree) >> 64, degree)
            product = sum(
                int(alphas[polynomial, (i - m) % degree]) * key[m] * (1 if m <= i else -1) for m in range(degree)
            )
            y += ((word & 1) - (word >> 1 & 1)) * (int(gammas[polynomial, i]) - product)
        found.append((y + PRIME // 2) % PRIME - PRIME // 2)
    return found


@given(
    seed=st.binary(min_size=32, max_size=32),
    polynomials=st.integers(1, 3),
    packed=st.integers(1, 3),
    factor=st.sampled_from([1, 64]),
    small=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_values_from_shares_are_those_of_the_formula(
    seed: bytes, polynomials: int, packed: int, factor: int, small: bool
) -> None:
    draw, degree = seeded(seed), 8
    columns = -(-degree // packed)
    chance = np.random.default_rng(list(seed))
    alphas, gammas = chance.integers(0, PRIME, (2, polynomials, degree), np.uint32)
    key = chance.integers(-9, 9, degree) if small else chance.integers(0, PRIME, degree)
    numbers = np.zeros((packed, columns), np.uint32)
    numbers.ravel()[:degree] = key % PRIME
    points = [*range(1, packed + 2)]
    shares = split(numbers, points, 2, draw, packed=packed)
    weights = lagrange(points, [PRIME - 1 - index for index in range(packed)])
    challenge = Challenge.from_seed(draw(32), degree, columns)
    rows = np.stack([as_row(each) for each in alphas])
    masks = check_masks(2**20, draw)
    key_in_tests = opened_parts(key_parts(challenge, rows, factor, shares, packed), weights)
    found = check_values(challenge, gammas, key_in_tests)
    plain = plain_tests(challenge, alphas, gammas, key.tolist(), factor, [0] * TESTS)
    assert found.tolist() == plain
    assert set(masks[masks < 2**21] // 2**20) <= {0} and set((PRIME - masks[masks >= 2**21]) // (2**20 + 1)) <= {0}


@pytest.mark.parametrize("parameters", list(PUBLISHED.values()), ids=lambda each: each.name)
def test_an_honest_value_lies_within_its_bound_and_a_bound_is_not_loose(parameters: LatticeParameters) -> None:
    """256 tests of 6 polynomials under one key each: the largest shift is below the bound, and above its 32nd part."""
    rounds = dataclasses.replace(A_ROUND, parameters=parameters.name.encode(), dimension=1)
    rounds = dataclasses.replace(rounds, dimension=6 * rounds.slots.capacity)
    most = 0
    for _ in range(4):
        lie = honest(rounds, np.full(rounds.dimension, rounds.largest, np.uint32))
        challenge = Challenge.from_seed(DRAW(32), parameters.degree, rounds.columns)
        parts = rounds.parts(challenge, lie.made.rows, lie.shares, np.zeros((2, rounds.part_elements), np.uint32))
        most = max(most, int(np.abs(check_values(challenge, lie.made.scaled, rounds.key_in_tests(parts))).max()))
    known = check_range(parameters)
    assert known.shift / 32 < most < known.shift
    assert known.mask / PRIME < 1 / 31 and known.most == known.mask - known.shift


TWO = bytes(31) + b"1", bytes(31) + b"2"
BOXES = tuple(public_key(each) for each in TWO)
A_ROUND = OneMessageRound(b"willow-4096", 1, 100, 2, 6, 1, TWO, BOXES, bytes(32), bytes(32), bytes(32), 0, 0)


def test_what_a_report_says_is_uniform_whatever_key_and_vector_are() -> None:
    """The values that a server computes, of 60 reports with one key and vector; unmasked they would not be."""
    lie = honest(A_ROUND, np.full(1, 100, np.uint32))
    known, said, tries = check_range(A_ROUND.slots.parameters), [], 0
    while len(said) < 60:
        tries += 1
        _, masks = client._boxes(A_ROUND, CLIENTS[0].public, lie.shares, DRAW)
        challenge = Challenge.from_seed(DRAW(32), 4096, A_ROUND.columns)
        parts = A_ROUND.parts(challenge, lie.made.rows, lie.shares, masks)
        values = check_values(challenge, lie.made.scaled, A_ROUND.key_in_tests(parts))
        if client._parts(A_ROUND, challenge, lie.made, lie.shares, masks) is not None:
            assert within(values, known.most)
            said.append(values)
    assert kstest(np.concatenate(said) / (2 * known.most) + 0.5, "uniform").pvalue > 1e-6
    expected = (1 - 1 / TESTS) ** TESTS
    assert abs(60 / tries - expected) < 0.3


def test_garbage_passes_as_seldom_as_the_page_says() -> None:
    """Each test of ciphertexts that are uniform, or of a key of uniform numbers, with probability 2 most / p."""
    lie = random_ciphertexts(A_ROUND, np.zeros(1, np.uint32))
    known, passed, count = check_range(A_ROUND.slots.parameters), 0, 0
    for _ in range(60):
        challenge = Challenge.from_seed(DRAW(32), 4096, A_ROUND.columns)
        parts = A_ROUND.parts(challenge, lie.made.rows, lie.shares, np.zeros((2, A_ROUND.part_elements), np.uint32))
        values = check_values(challenge, lie.made.scaled, A_ROUND.key_in_tests(parts))
        passed, count = passed + int(np.sum(np.abs(values) < known.most)), count + TESTS
    assert abs(passed / count - 2 * known.most / PRIME) < 0.03
    assert (2 * known.most / PRIME) ** TESTS < 2.0**-256


@pytest.mark.parametrize("garbage", [PRIME // 2, PRIME // 3, PRIME // 4, PRIME // 7], ids=lambda each: str(each))
def test_garbage_of_one_kind_everywhere_passes_half_of_the_tests_at_most(garbage: int) -> None:
    """p/2 is the best: an even number of it is none."""
    lie = honest(A_ROUND, np.zeros(1, np.uint32))
    lie.made.scaled[:] = (lie.made.scaled.astype(np.int64) + garbage) % PRIME
    known, seen = check_range(A_ROUND.slots.parameters), []
    for _ in range(60):
        challenge = Challenge.from_seed(DRAW(32), 4096, A_ROUND.columns)
        parts = A_ROUND.parts(challenge, lie.made.rows, lie.shares, np.zeros((2, A_ROUND.part_elements), np.uint32))
        values = check_values(challenge, lie.made.scaled, A_ROUND.key_in_tests(parts))
        seen.append(float(np.mean(np.abs(values) < known.most)))
    assert float(np.mean(seen)) < 0.54
    assert max(seen) < 1


@given(parameters=st.sampled_from(list(PUBLISHED.values())), data=st.data())
@settings(max_examples=400, deadline=None)
def test_of_a_large_number_at_most_half_of_the_factors_stay_in_range(
    parameters: LatticeParameters, data: st.DataObject
) -> None:
    """Whatever the rest of the test is: the most products in any window of 2 most numbers modulo p."""
    known = check_range(parameters)
    window, least = 2 * known.most, 2 * known.most // max(known.factor - 1, 1) + 1
    close = st.integers(1, 200).flatmap(lambda by: st.integers(-3, 3).map(lambda off: PRIME // by + off))
    number = data.draw(st.one_of(st.integers(least, PRIME // 2), close.filter(lambda x: least <= x <= PRIME // 2)))
    products = sorted(k * number % PRIME for k in range(-known.factor, known.factor))
    around = np.array([*products, *(each + PRIME for each in products)])
    most = max(int(np.searchsorted(around, start + window)) - at for at, start in enumerate(products))
    assert most <= known.factor


def test_sparse_garbage_is_found_as_often_as_the_page_says() -> None:
    """Every 50th coefficient: a test of 16 picks, half of them times zero, sees one in 0.15 of all cases."""
    lie = honest(A_ROUND, np.zeros(1, np.uint32))
    lie.made.scaled[:, ::50] = (lie.made.scaled[:, ::50].astype(np.int64) + PRIME // 3) % PRIME
    known, seen = check_range(A_ROUND.slots.parameters), []
    for _ in range(60):
        challenge = Challenge.from_seed(DRAW(32), 4096, A_ROUND.columns)
        parts = A_ROUND.parts(challenge, lie.made.rows, lie.shares, np.zeros((2, A_ROUND.part_elements), np.uint32))
        values = check_values(challenge, lie.made.scaled, A_ROUND.key_in_tests(parts))
        seen.append(float(np.mean(np.abs(values) > known.mask)))
    expected = 1 - (1 - 1 / 100) ** PICKS
    assert abs(float(np.mean(seen)) - expected) < 0.03
