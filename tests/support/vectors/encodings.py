"""Vectors of encodings: updates become integers, under randomness that is written down."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.vectors.case import Case, case, file_of
from tests.support.vectors.prices import shortened

from tacit.errors import InputError
from tacit.federation.cost import ROUNDING
from tacit.federation.report_shape import encoded_shape
from tacit.privacy.encoding import PALEY_ORDERS, Encoding
from tacit.privacy.encoding_choice import encoding_within, padded_dimension
from tacit.secure_aggregation.encoding import encode, sign_bits
from tacit.secure_aggregation.hadamard import factors, paley_matrix, rotate
from tacit.secure_aggregation.secrets import seeded
from tacit.training.report_encoding import ReportEncoding, whole_loss

RULE = "docs/secure-aggregation.md#updates-become-integers"
SIGNS, PRIVATE = "11" * 32, "22" * 32


def _floats(values: NDArray[np.float32]) -> str:
    return values.astype("<f4").tobytes().hex()


def _numbers(digits: str) -> NDArray[np.float32]:
    return np.frombuffer(bytes.fromhex(digits), "<f4").astype(np.float32)


def _plain(found: Encoding) -> dict[str, Any]:
    names = ("parameters", "dimension", "clip_norm", "scale", "report_goal", "sigmas", "margin", "margin_each")
    return {name: getattr(found, name) for name in names}


def _update(parameters: int, seed: int, length: float) -> NDArray[np.float32]:
    found = np.random.default_rng(seed).integers(-1000, 1001, parameters).astype(np.float32)
    norm = float(np.sqrt(np.sum(found.astype(np.float64) ** 2)))
    return (found * np.float32(length / norm)).astype(np.float32) if norm else found


UPDATES: dict[str, tuple[int, float, float, str, str]] = {
    "shorter than the clip norm": (40, 1.5, 0.9, SIGNS, PRIVATE),
    "as long as the clip norm": (40, 1.5, 1.5, SIGNS, PRIVATE),
    "longer, and so clipped": (40, 1.5, 7.0, SIGNS, PRIVATE),
    "other signs": (40, 1.5, 0.9, "33" * 32, PRIVATE),
    "other rounding": (40, 1.5, 0.9, SIGNS, "44" * 32),
    "of one number": (1, 0.2, 0.1, SIGNS, PRIVATE),
    "of two numbers": (2, 0.2, 0.1, SIGNS, PRIVATE),
    "of a dimension that is a power of two": (64, 0.2, 0.2, SIGNS, PRIVATE),
    "of Paley's order 12": (12, 0.2, 0.2, SIGNS, PRIVATE),
    "of Paley's order 20 and zeros behind it": (39, 0.2, 0.2, SIGNS, PRIVATE),
    "of another order of Paley's": (85, 0.2, 0.2, SIGNS, PRIVATE),
    "of a thousand numbers": (1000, 3.0, 2.9, SIGNS, PRIVATE),
}


def _encoded() -> list[Case]:
    found = []
    for seed, (name, (parameters, clip_norm, length, signs, rounding)) in enumerate(UPDATES.items()):
        encoding, update = encoding_within(parameters, clip_norm, 10), _update(parameters, seed, length)
        found.append(_encoding_of(name, encoding, update, signs, rounding))
    encoding = encoding_within(40, 1.5, 10)
    one = np.zeros(40, np.float32)
    found.append(_encoding_of("zero", encoding, one, SIGNS, PRIVATE))
    one[7] = -1.5
    found.append(_encoding_of("of one number that is not zero", encoding, one.copy(), SIGNS, PRIVATE))
    fine = encoding_within(40, 1.5, 10, inflation=1.0001)
    found.append(_encoding_of("finer", fine, _update(40, 1, 1.5), SIGNS, PRIVATE))
    coarse = encoding_within(40, 1.5, 10, inflation=2.0)
    found.append(_encoding_of("coarser", coarse, _update(40, 1, 1.5), SIGNS, PRIVATE))
    few = encoding_within(40, 1.5, 10, sigmas=0.5)
    found.append(_encoding_of("cut off at half a deviation", few, _update(40, 1, 1.5), SIGNS, PRIVATE))
    return found


def _encoding_of(name: str, encoding: Encoding, update: NDArray[np.float32], signs: str, rounding: str) -> Case:
    said = {"encoding": _plain(encoding), "update": _floats(update), "signs": signs, "rounding": rounding}
    bits = sign_bits(bytes.fromhex(signs), encoding).tobytes().hex()
    words = encode(update, encoding, signs=bytes.fromhex(signs), rounding=bytes.fromhex(rounding))
    return case(name, RULE, **said, sign_bits=bits, words=words.tolist())


def check(each: Case) -> None:
    """That this program computes what a case of the file says."""
    encoding, signs, rounding = Encoding(**each["encoding"]), each["signs"], each["rounding"]
    found = _encoding_of(each["name"], encoding, _numbers(each["update"]), signs, rounding)
    assert found["words"] == each["words"] and found["sign_bits"] == each["sign_bits"], each["name"]


def _rotations() -> list[Case]:
    found = []
    for dimension in (1, 2, 4, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 8192, 12 * 8192):
        vector = np.random.default_rng(dimension).integers(-9, 10, dimension).astype(np.float32)
        turned = vector.copy()
        rotate(turned)
        back = turned.copy()
        rotate(back, back=True)
        paley, power = factors(dimension)
        said = {"dimension": dimension, "paley": paley, "power": power}
        if dimension <= 96:
            more = {"vector": _floats(vector), "rotated": _floats(turned), "back": _floats(back)}
        else:  # every number i is ((7 i) mod 19) - 9
            vector = ((np.arange(dimension) * 7) % 19 - 9).astype(np.float32)
            rotate(vector)
            more = {"of": "i -> ((7 i) mod 19) - 9", "sha256": hashlib.sha256(vector.tobytes()).hexdigest()}
            more["first"] = _floats(vector[:8])
        found.append(case(f"dimension {dimension}", RULE, **said, **more))
    return found


def check_rotation(each: Case) -> None:
    """The same."""
    again = {case["name"]: case for case in _rotations()}
    assert again[each["name"]] == each, each["name"]


def _choices() -> list[Case]:
    found = []
    for parameters, clip_norm, goal, inflation, sigmas in (
        (1, 0.2, 2, 1.01, 10.0),
        (40, 1.5, 10, 1.01, 10.0),
        (40, 1.5, 10, 1.05, 8.0),
        (85, 0.2, 500, 1.01, 10.0),
        (144_528, 0.2, 1000, 1.01, 10.0),
        (661_000, 0.3, 6500, 1.01, 10.0),
        (2_424_832, 0.1, 100, 1.02, 10.0),
    ):
        made = encoding_within(parameters, clip_norm, goal, inflation=inflation, sigmas=sigmas)
        said = {"parameters": parameters, "clip_norm": clip_norm, "report_goal": goal}
        wanted = {"at_most": inflation, "sigmas": sigmas}
        gives = {"inflation": shortened(made.inflation), "largest": made.largest, "bits": made.bits}
        squared = {"longest_squared": made.longest_squared}
        scale = {"dimension": made.dimension, "scale": made.scale}
        name = f"{parameters} numbers for sums of {goal}, {inflation} and {sigmas}"
        found.append(case(name, RULE, **said, **wanted, **scale, **gives, **squared))
    return found


def check_choice(each: Case) -> None:
    """The same."""
    said = (each["parameters"], each["clip_norm"], each["report_goal"])
    made = encoding_within(*said, inflation=each["at_most"], sigmas=each["sigmas"])
    assert padded_dimension(each["parameters"]) == each["dimension"] == made.dimension, each["name"]
    for name in ("scale", "inflation"):
        assert abs(getattr(made, name) - each[name]) <= ROUNDING * each[name], each["name"]
    names = {"parameters": said[0], "clip_norm": said[1], "report_goal": said[2], "sigmas": each["sigmas"]}
    found = Encoding(dimension=each["dimension"], scale=each["scale"], **names)
    whole = (found.largest, found.longest_squared, found.bits)
    assert whole == (each["largest"], each["longest_squared"], each["bits"]), each["name"]


def _behind() -> list[Case]:
    """Reports with what stands behind the coordinates."""
    encoding = encoding_within(40, 1.5, 10)
    update = _update(40, 3, 1.2)
    asked: dict[str, tuple[float | None, float | None]] = {
        "nothing is asked": (None, None),
        "the bit": (1.0, None),
        "the loss": (None, 10.0),
        "both": (1.0, 10.0),
    }
    found = []
    for name, (estimate, bound) in asked.items():
        how = ReportEncoding(encoding=encoding, signs=bytes.fromhex(SIGNS), clip_estimate=estimate, loss_bound=bound)
        for norm, loss in ((0.5, 6.25), (1.0, 0.0), (2.5, 20.0)):
            words = how.encoded(update, norm=np.float32(norm), loss=np.float32(loss), seed=bytes(32), client=0)
            said = {"clip_estimate": estimate, "loss_bound": bound, "norm": norm, "loss": loss, "length": how.length}
            behind = words[encoding.dimension :].tolist()
            found.append(case(f"{name}: norm {norm}, loss {loss}", "#a-report", **said, behind=behind))
    return found


def check_behind(each: Case) -> None:
    """The same."""
    again = {case["name"]: case for case in _behind()}
    assert again[each["name"]] == each, each["name"]


def _losses() -> list[Case]:
    numbers = [0.0, 1e-5, 2.5, 4.99999, 5.0, 5.00001, 7.3, 10.0, 11.0, -1.0, 1 / 3]
    return [
        case(f"loss {loss} of 10", "#a-report", loss=loss, bound=10.0, whole=whole_loss(np.float32(loss), 10.0))
        for loss in numbers
    ]


def check_loss(each: Case) -> None:
    """The same."""
    assert whole_loss(np.float32(each["loss"]), each["bound"]) == each["whole"], each["name"]


def _received() -> list[Case]:
    """Words that a server takes, and words that it refuses."""
    encoding = encoding_within(40, 1.5, 10)
    words = encode(_update(40, 0, 1.2), encoding, signs=bytes.fromhex(SIGNS), rounding=bytes.fromhex(PRIVATE))
    good = [*words.tolist(), 1]
    longest = [encoding.largest] * (len(good) - 1)
    root = int(encoding.longest_squared**0.5)
    bodies = {
        "a report": good,
        "two reports in one": [*good[:-1], 2],
        "none": [*good[:-1], 0],
        "a coordinate beyond the largest": [2 * encoding.largest + 1, *good[1:]],
        "all coordinates at their largest": [*([2 * encoding.largest] * (len(good) - 1)), 1],
        "as long as one coordinate may be": [min(2 * encoding.largest, encoding.largest + root), *longest[1:], 1],
    }
    return [
        case(name, "#a-report", encoding=_plain(encoding), words=each, accepted=_takes(encoding, each))
        for name, each in bodies.items()
    ]


def _takes(encoding: Encoding, words: list[int]) -> bool:
    shape = encoded_shape(len(words), encoding, clip_norm=encoding.clip_norm, clip_estimate=None)
    try:
        shape.check(np.array(words, np.uint32))
    except InputError:
        return False
    return True


def check_received(each: Case) -> None:
    """The same."""
    assert _takes(Encoding(**each["encoding"]), each["words"]) is each["accepted"], each["name"]


def _streams() -> list[Case]:
    rule = "docs/secure-aggregation-protocols.md#what-all-messages-have-in-common"
    return [
        case(f"key {key[:2]}", rule, key=key, bytes=seeded(bytes.fromhex(key))(48).hex()) for key in (SIGNS, PRIVATE)
    ]


def check_stream(each: Case) -> None:
    """The same."""
    assert seeded(bytes.fromhex(each["key"]))(48).hex() == each["bytes"], each["name"]


def file() -> dict[str, Any]:
    """The content of `encodings.json`."""
    paley = {
        str(order): ["".join("+" if entry > 0 else "-" for entry in row) for row in paley_matrix(order)]
        for order in PALEY_ORDERS[:5]
    }
    hashed = {
        str(order): hashlib.sha256((paley_matrix(order) > 0).astype(np.uint8).tobytes()).hexdigest()
        for order in PALEY_ORDERS
    }
    return file_of(
        "`cases`: an `update` becomes `words`, bit for bit. Real numbers are float32, little-endian, in hexadecimal "
        "digits. `signs` and `rounding` are keys of 32 bytes; the first bytes of their `streams` (AES-256 in counter "
        "mode from 0) are here, too. `sign_bits`: from the stream of `signs`, the first sign in the lowest bit; 1 "
        "turns a sign. Each attempt at rounding takes `dimension` words of 4 bytes, little-endian, from the stream "
        "of `rounding`: a number is rounded up where its word is below its fraction times 2^32. `rotations`: a vector, "
        "times the matrix over the root of its order, and times the transpose, in float32 and in the page's order of "
        "additions. `choices`: which numbers an encoding has; real ones agree to the `tolerance`. `behind`: what "
        "stands behind the coordinates. `losses`: a loss in whole steps. `received`: whether a server takes words. "
        "`paley`: the first matrices, and the SHA-256 of a byte 1 for each + and 0 for each -, row by row, of all.",
        _encoded(),
        tolerance=ROUNDING,
        streams=_streams(),
        rotations=_rotations(),
        choices=_choices(),
        behind=_behind(),
        losses=_losses(),
        received=_received(),
        paley=paley,
        paley_sha256=hashed,
    )
