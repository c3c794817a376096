"""Decryptors' noise in secure sums: what is released, that the modulus holds it, and that none is drawn for two
rounds.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.support.mechanisms.strategies import STRATEGIES, carrying

from tacit.errors import InputError, ProtocolError, RunError
from tacit.files import held
from tacit.mechanisms import all_rounds as whole
from tacit.mechanisms.all_rounds import DecryptorNoiseStream, largest_deviation
from tacit.privacy import encoding_choice
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_with_noise, encoding_within
from tacit.privacy.strategy import Strategy
from tacit.secure_aggregation import noise, secrets
from tacit.secure_aggregation.counts import play
from tacit.secure_aggregation.decoding import SessionOutcome, basis, decode
from tacit.secure_aggregation.encoding import encode
from tacit.secure_aggregation.masked.client import DevicePolicy, MaskedClient
from tacit.secure_aggregation.masked.messages import RoundSettings
from tacit.secure_aggregation.masked.server import MaskedServer
from tacit.secure_aggregation.noise import NoiseDecryptor, residues
from tacit.secure_aggregation.one_message.lattice import published
from tacit.secure_aggregation.one_message.slots import Slots
from tacit.secure_aggregation.secrets import Identity
from tacit.secure_aggregation.simulated_protocol import Protocol

PARAMETERS, REPORTS, CLIP_NORM, DEVIATION = 40, 6, 2.0, 3.0  # deviation of a seed, in the units of updates
ROUNDS = 5
ENCODING = encoding_within(PARAMETERS, CLIP_NORM, REPORTS)


@pytest.fixture(autouse=True)
def fixed_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decryptors' keys 1, 2, 3, ...: a noise test that fails must fail for everybody."""
    keys = iter(range(1, 10_000))
    monkeypatch.setattr(whole, "fresh_key", lambda: next(keys).to_bytes(16, "big"))


def seed_of(*about: object) -> bytes:
    return hashlib.sha256(repr(about).encode()).digest()


def stream_of(strategy: Strategy, *, times: float = 1.0) -> DecryptorNoiseStream:
    """A decryptor's stream for ENCODING; `times` the deviation that it should have."""
    stddev = ENCODING.scale * DEVIATION * times
    return DecryptorNoiseStream(stream=carrying(strategy), stddev=stddev, dimension=ENCODING.dimension)


def noisy(strategy: Strategy, decryptors: int) -> Encoding:
    largest = DEVIATION * largest_deviation(carrying(strategy), ROUNDS)
    return encoding_with_noise(ENCODING, largest, decryptors=decryptors, rounds=ROUNDS)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_what_is_released_is_the_sum_and_the_decryptors_noise(strategy: Strategy, tmp_path: Path) -> None:
    """Words modulo 2^b in, one of K decryptors a round of the stream each; decoded, their variances have added up."""
    decryptors, encoding = 3, noisy(strategy, 3)
    streams = [stream_of(strategy) for _ in range(decryptors)]
    parties = [NoiseDecryptor(tmp_path / str(k), each, encoding) for k, each in enumerate(streams)]
    rows = np.linalg.norm(carrying(strategy).dense(ROUNDS), axis=1)
    weighed: list[float] = []
    for round in range(ROUNDS):
        signs, name = seed_of("signs", round), seed_of("name", round)
        updates = np.random.default_rng(round).normal(0, 0.3, (REPORTS, PARAMETERS)).astype(np.float32)
        total = np.zeros(encoding.dimension, np.uint32)
        for client, update in enumerate(updates):
            total += encode(update, encoding, signs=signs, rounding=seed_of("rounding", round, client))
        plain = decode(total & np.uint32(encoding.modulus - 1), encoding, signs=signs, reports=REPORTS)
        for party in parties:
            total += party.noise(round, name=name, signs=signs)
        released = decode(total & np.uint32(encoding.modulus - 1), encoding, signs=signs, reports=REPORTS)
        weighed.extend((released - plain).astype(np.float64) / (DEVIATION * rows[round]))
    square = float(np.square(weighed).sum())
    # Correlated rounds: the squares of a strategy's rows say how few of them are independent.
    freedom = len(weighed) / ROUNDS
    assert decryptors * chi2.ppf(1e-5, freedom) < square / ROUNDS < decryptors * chi2.ppf(1 - 1e-5, freedom)


def test_the_wrong_scale_is_rejected(tmp_path: Path) -> None:
    """Independent noise, so that every number counts: K = 3 decryptors' variance, neither that of 2 nor of 4."""
    strategy, square = STRATEGIES["independent"], 0.0
    encoding = noisy(strategy, 4)
    parties = [NoiseDecryptor(tmp_path / str(k), stream_of(strategy), encoding) for k in range(3)]
    for round in range(40):
        signs, name = seed_of("signs", round), seed_of("name", round)
        total = np.zeros(encoding.dimension, np.uint32)
        for party in parties:
            total += party.noise(round, name=name, signs=signs)
        found = decode(total & np.uint32(encoding.modulus - 1), encoding, signs=signs, reports=0)
        square += float(np.square(found / DEVIATION, dtype=np.float64).sum())
    numbers = 40 * PARAMETERS
    for decryptors, right in ((3, True), (2, False), (4, False), (1, False)):
        assert bool(chi2.ppf(1e-4, numbers) < square / decryptors < chi2.ppf(1 - 1e-4, numbers)) is right


@given(noise=st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=9))
def test_words_add_up_to_the_integers(noise: list[int]) -> None:
    encoding = encoding_within(1, 1.0, 1 << 20)
    words = residues(np.array(noise, np.int64), encoding)
    assert words.dtype == np.uint32 and all(word < encoding.modulus for word in words)
    assert int(words.sum(dtype=np.int64)) % encoding.modulus == sum(noise) % encoding.modulus


def test_a_rounds_basis_is_orthogonal_and_that_of_encoded_updates() -> None:
    signs, update = seed_of("signs"), np.random.default_rng(0).normal(0, 0.1, PARAMETERS).astype(np.float32)
    turn, back = basis(ENCODING, signs)
    vector = np.random.default_rng(1).normal(size=ENCODING.dimension)
    kept = vector.copy()
    np.testing.assert_allclose(back(turn(vector)), vector, atol=1e-12)
    assert np.linalg.norm(turn(vector)) == pytest.approx(np.linalg.norm(vector))
    assert np.array_equal(vector, kept)
    padded = np.pad(update.astype(np.float64), (0, ENCODING.dimension - PARAMETERS))
    words = encode(update, ENCODING, signs=signs, rounding=seed_of("rounding")).astype(np.int64) - ENCODING.largest
    assert np.abs(words - ENCODING.scale * turn(padded)).max() < 1.001


# -- in the masked protocol --------------------------------------------------------------------------------------------


def played(folder: Path, *, lacks: int | None = None, careful: bool = True) -> NDArray[np.float32] | str:
    """A round of five devices and two decryptors, decoded; `lacks` is a party whose vector the server leaves out."""
    encoding = noisy(STRATEGIES["tree"], 2)
    draw, signs = secrets.seeded(seed_of("parties")), seed_of("signs")
    identities = [Identity(draw(32)) for _ in range(7)]
    public, private = [each.public for each in identities], draw(32)
    settings = RoundSettings.from_cohort(
        public,
        dimension=encoding.dimension,
        bits=encoding.bits,
        most_reports=encoding.most_reports,
        fewest=2,
        server_key=secrets.public_key(private),
        nonce=draw(32),
        always=public[5:] if careful else (),
        dropout=0.2,
    )
    server = MaskedServer(settings, public, private)
    updates = np.full((5, PARAMETERS), 0.01, np.float32)
    words = [encode(each, encoding, signs=signs, rounding=draw(32)) for each in updates]
    for number in range(2):
        decryptor = NoiseDecryptor(folder / str(number), stream_of(STRATEGIES["tree"]), encoding)
        words.append(decryptor.noise(0, name=settings.name, signs=signs))
    policy = DevicePolicy(fewest=2, corruption=0.0, always=frozenset(public[5:] if careful else ()))
    devices = [
        MaskedClient(server.invitation, each, vector, policy=policy, draw=draw)
        for each, vector in zip(identities, words, strict=True)
    ]
    answers = {client: device.advertise() for client, device in enumerate(devices)}
    try:
        for step in range(5):
            for client, data in answers.items():
                if not (step == 2 and client == lacks):
                    server.receive(data)
            answers = {client: devices[client].receive(data) for client, data in server.advance().items()}
    except ProtocolError as error:
        return str(error)
    return decode(server.total, encoding, signs=signs, reports=5 - (lacks in range(5)))


def test_decryptors_add_their_noise_as_devices_add_updates(tmp_path: Path) -> None:
    released, less = played(tmp_path / "a"), played(tmp_path / "b", lacks=2)
    assert isinstance(released, np.ndarray) and isinstance(less, np.ndarray)
    for found, sum_of in ((released, 0.05), (less, 0.04)):
        square = float(np.square((found - sum_of) / DEVIATION, dtype=np.float64).sum())
        assert 2 * chi2.ppf(1e-4, PARAMETERS) < square < 2 * chi2.ppf(1 - 1e-4, PARAMETERS)


def test_devices_open_no_sum_without_the_decryptors_that_they_know(tmp_path: Path) -> None:
    assert "client 6, without whom no sum is opened" in str(played(tmp_path / "a", lacks=6))
    without = played(tmp_path / "b", lacks=6, careful=False)  # what the policy is for: half of the noise is gone
    assert isinstance(without, np.ndarray)


@pytest.mark.parametrize("strategy", ["independent", "tree"])
def test_one_message_gives_the_same_sum_as_masks(tmp_path: Path, strategy: str) -> None:
    """Two rounds of five encoded updates and three decryptors' streams, by both protocols."""
    encoding = noisy(STRATEGIES[strategy], 3)
    decryptors = [NoiseDecryptor(tmp_path / str(each), stream_of(STRATEGIES[strategy]), encoding) for each in range(3)]
    for round in range(2):
        signs, update = seed_of("signs", round), np.full(PARAMETERS, 0.01, np.float32)
        words = [encode(update, encoding, signs=signs, rounding=seed_of(round, client)) for client in range(5)]
        added = [decryptor.noise(round, name=seed_of(round), signs=signs) for decryptor in decryptors]
        total, other = (
            play(
                protocol,
                words,
                bits=encoding.bits,
                each=2 * encoding.largest,
                noise=added,
                margin=encoding.margin_each,
            ).total
            for protocol in get_args(Protocol)
        )
        assert np.array_equal(total, other)
        found = decode(total, encoding, signs=signs, reports=5)
        assert 0.5 < (found - 0.05).std() / (3**0.5 * DEVIATION) < 2


# -- the modulus -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decryptors", [1, 3])
def test_the_margin_fails_as_rarely_as_it_says(decryptors: int) -> None:
    """A loose failure probability, so that it can be counted; a margin of nine tenths fails far more often."""
    rounds, failure, trials = 10, 0.1, 400
    encoding = encoding_with_noise(ENCODING, DEVIATION, decryptors=decryptors, rounds=rounds, failure=failure)
    spread = ENCODING.scale * DEVIATION
    generator = np.random.default_rng(2)
    shape = (trials, decryptors, rounds * encoding.dimension)
    farthest = np.abs(np.floor(generator.normal(0, spread, shape) + 0.5).sum(axis=1)).max(axis=1)
    assert (farthest > encoding.margin).mean() < failure + 3 * math.sqrt(failure / trials)
    assert (farthest > encoding.margin).mean() > failure / 3  # no more than is needed
    assert (farthest > 0.85 * encoding.margin).mean() > 3 * failure


def test_one_decryptors_noise_is_beyond_its_own_margin_as_rarely_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loose probability, so that it can be counted; nine tenths of the margin are left far more often."""
    monkeypatch.setattr(encoding_choice, "UNSENT", 0.1)
    decryptors, rounds, trials = 3, 10, 400
    encoding = encoding_with_noise(ENCODING, DEVIATION, decryptors=decryptors, rounds=rounds)
    shape = (trials, decryptors * rounds * encoding.dimension)
    noise = np.floor(np.random.default_rng(3).normal(0, ENCODING.scale * DEVIATION, shape) + 0.5)
    farthest = np.abs(noise).max(axis=1)
    assert 0.1 / 3 < (farthest > encoding.margin_each).mean() < 0.1 + 3 * math.sqrt(0.1 / trials)
    assert (farthest > 0.85 * encoding.margin_each).mean() > 0.3


def test_production_takes_two_bits_more() -> None:
    """2.38 million parameters, 6,500 reports, noise multiplier 7, three decryptors, 2,000 rounds."""
    plain = encoding_within(2_380_000, 5.0, 6500)
    encoding = encoding_with_noise(plain, 7 * 5.0, decryptors=3, rounds=2000)
    assert (plain.bits, encoding.bits) == (19, 21)
    assert encoding.most_reports >= 6500 and encoding.inflation == plain.inflation
    assert 2 * (encoding.largest * 6500 + encoding.margin) < encoding.modulus
    slots = Slots(published("willow-16384"), encoding.dimension, 2 * encoding.largest, 6500, 3, encoding.margin_each)
    assert (slots.width, slots.per_coefficient, slots.polynomials) == (22, 10, 15)  # of 14 without
    assert encoding.with_clip_norm(1.0).margin == encoding.margin, "noise follows the clip norm, as the scale does"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"deviation": 0.0}, "deviation=0.0"),
        ({"deviation": math.nan}, "deviation=nan"),
        ({"decryptors": 0}, "decryptors=0"),
        ({"rounds": True}, "rounds=True"),
        ({"failure": 1.0}, "failure=1.0"),
        ({"deviation": 1e9}, "noise up to .* need .* bits"),
    ],
)
def test_numbers_that_are_none_are_refused(wrong: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"deviation": 1.0, "decryptors": 3, "rounds": 10, **wrong}
    with pytest.raises(InputError, match=says):
        encoding_with_noise(ENCODING, given.pop("deviation"), **given)
    with pytest.raises(InputError, match="margin=-1"):
        Encoding(parameters=1, dimension=1, clip_norm=1.0, scale=1.0, report_goal=1, margin=-1)
    with pytest.raises(InputError, match=r"margin_each=0\.5"):
        Encoding(parameters=1, dimension=1, clip_norm=1.0, scale=1.0, report_goal=1, margin_each=0.5)  # type: ignore[arg-type]


# -- one round, one noise ----------------------------------------------------------------------------------------------


class Counter:
    """A stream whose integers say from which state and for which round they were drawn; it can be told to die."""

    dies = False

    def begin(self) -> Mapping[str, NDArray[Any]]:
        return {"drawn": np.zeros(1, np.int64)}

    def draw(
        self, carried: Mapping[str, NDArray[Any]], about: bytes, turn: SessionOutcome, back: SessionOutcome
    ) -> tuple[NDArray[np.int64], Mapping[str, NDArray[Any]]]:
        if self.dies:
            raise KeyboardInterrupt
        said = hashlib.sha256(carried["drawn"].tobytes() + about).digest()
        return np.full(ENCODING.dimension, said[0], np.int64), {"drawn": carried["drawn"] + said[0] + 1}


def ask(decryptor: NoiseDecryptor, round: int, name: str = "") -> NDArray[np.uint32]:
    return decryptor.noise(round, name=seed_of(round, name), signs=seed_of("signs", round))


@given(asked=st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.integers(0, 3)), max_size=30))
def test_no_round_has_two_names_or_two_noises(
    asked: list[tuple[int, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is asked, and wherever the process dies: before the draw, before the state, before a name is written."""
    folder, said, named = tmp_path_factory.mktemp("decryptor"), {}, {}
    for round, name, death in asked:
        decryptor, stream = NoiseDecryptor(folder, Counter(), ENCODING), Counter()
        stream.dies = death == 1
        decryptor._stream = stream
        with pytest.MonkeyPatch.context() as patch:
            if death >= 2:
                writes = iter([*[True] * (death - 2), False])

                def written(path: Path, content: bytes, writes: Iterator[bool] = writes) -> None:
                    if not next(writes, True):
                        raise KeyboardInterrupt
                    path.write_bytes(content)

                patch.setattr(noise, "write_whole", written)
            before = decryptor.rounds
            try:
                words = ask(decryptor, round, name)
            except ProtocolError:
                assert round not in (before - 1, before) or named.get(round, name) != name
                continue
            except KeyboardInterrupt:
                if decryptor.rounds > before:
                    named[round] = name
                continue
        assert named.setdefault(round, name) == name
        assert np.array_equal(said.setdefault(round, words), words)
    assert len(list(folder.glob("before-*.npz"))) <= 3


def test_a_killed_decryptor_goes_on_with_the_noise_it_would_have_given(tmp_path: Path) -> None:
    """The true stream: asked again, or by a new process, the words are the same; later rounds as well."""
    stream = stream_of(STRATEGIES["blt"])
    decryptor = NoiseDecryptor(tmp_path, stream, ENCODING)
    first = ask(decryptor, 0)
    again = NoiseDecryptor(tmp_path, stream, ENCODING)
    assert np.array_equal(ask(again, 0), first)
    second = ask(again, 1)
    assert np.array_equal(ask(NoiseDecryptor(tmp_path, stream, ENCODING), 1), second)
    assert not np.array_equal(first, second)
    other = NoiseDecryptor(tmp_path / "other", stream, ENCODING)
    assert not np.array_equal(ask(other, 0), first), "every decryptor has a key of its own"
    assert (tmp_path / "other").stat().st_mode & 0o077 == 0


def test_other_rounds_and_names_are_refused(tmp_path: Path) -> None:
    decryptor = NoiseDecryptor(tmp_path, Counter(), ENCODING)
    with pytest.raises(ProtocolError, match="that of round 0 is next"):
        ask(decryptor, 1)
    with pytest.raises(ProtocolError, match="must have 32"):
        decryptor.noise(0, name=b"short", signs=bytes(32))
    with pytest.raises(InputError, match="signs has 3 bytes"):
        decryptor.noise(0, name=bytes(32), signs=b"abc")
    assert decryptor.rounds == 0
    ask(decryptor, 0)
    with pytest.raises(ProtocolError, match="cancels in their difference"):
        ask(decryptor, 0, "another")
    with pytest.raises(ProtocolError, match="cancels in their difference"):
        decryptor.noise(0, name=seed_of(0, ""), signs=seed_of("others"))
    ask(decryptor, 1), ask(decryptor, 2)
    with pytest.raises(ProtocolError, match="round 0 is asked for and that of round 3"):
        ask(decryptor, 0)
    with pytest.raises(ProtocolError, match="round -1"):
        ask(decryptor, -1)


def test_a_lost_or_held_folder_is_said(tmp_path: Path) -> None:
    decryptor = NoiseDecryptor(tmp_path, Counter(), ENCODING)
    ask(decryptor, 0)
    with held(tmp_path), pytest.raises(RunError, match="another process"):
        ask(decryptor, 1)
    (tmp_path / "before-000001.npz").write_bytes(b"PK damaged")
    with pytest.raises(RunError, match="begin another with new decryptors"):
        ask(decryptor, 1)
    (tmp_path / "rounds.json").write_bytes(b"{}")
    with pytest.raises(RunError, match="begin another with new decryptors"):
        ask(decryptor, 1)
    (tmp_path / "rounds.json").unlink()  # what a thief of answers would like: round 0 once more
    for again in (0, 1):
        with pytest.raises(RunError, match=r"rounds.json' is gone.*begin another with new decryptors"):
            ask(decryptor, again)


def test_a_folder_that_others_may_look_into_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(InputError, match=r"others may look into .*chmod 700"):
        NoiseDecryptor(tmp_path, Counter(), ENCODING)
    tmp_path.chmod(0o700)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="is a file; give the path of a folder"):
        NoiseDecryptor(tmp_path / "file", Counter(), ENCODING)
