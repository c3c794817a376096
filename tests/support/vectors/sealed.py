"""Vectors of sealed reports: each function of the one-message protocol, and whole reports under written randomness."""

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.server.documents import a_task
from tests.support.vectors.case import Case, case, file_of
from tests.support.vectors.documents import KEY, OTHER_KEY

from tacit.errors import InputError, ProtocolError
from tacit.protocol.messages import RoundTask
from tacit.protocol.one_message_shape import seed_of
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.discrete_gaussian import TAIL, WORD_BYTES, sample, thresholds
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.lattice import PUBLISHED, public_polynomial
from tacit.secure_aggregation.one_message.messages import (
    OneMessageReport,
    OneMessageRound,
    box_context,
    report_digests,
    signed_report,
)
from tacit.secure_aggregation.one_message.report_check import challenge_seed, check_range, switched
from tacit.secure_aggregation.one_message.ring import Ring, primitive_root
from tacit.secure_aggregation.residues import pack
from tacit.secure_aggregation.secrets import Identity
from tacit.secure_aggregation.shares import lagrange, split, uniform

PAGE = "docs/secure-aggregation-protocols.md"
COMMON, RING = f"{PAGE}#what-all-messages-have-in-common", f"{PAGE}#ring-numbers-and-slots"
MESSAGES, CHECK = f"{PAGE}#the-one-message-protocol", f"{PAGE}#the-check-of-a-report"
SETTINGS = f"{PAGE}#settings-of-a-round"
SERVER = bytes([0x10] * 32)
FIRST = 64  # bytes that are shown of what is long


def long(data: bytes) -> dict[str, Any]:
    """What is too long to be written down."""
    return {"bytes": len(data), "first": data[:FIRST].hex(), "sha256": hashlib.sha256(data).hexdigest()}


def _words(values: NDArray[Any]) -> list[str]:
    return [str(each) for each in values.ravel().tolist()]  # beyond 53 bits: in decimal digits


# -- functions ---------------------------------------------------------------------------------------------------------


def _functions() -> list[Case]:
    one, other = secrets.KeyPair(bytes([1] * 32)), secrets.KeyPair(bytes([2] * 32))
    identity = Identity(bytes([3] * 32))
    content, associated = b"what is in it", b"beside it"
    box = secrets.sealed(other.public, content, associated, secrets.seeded(bytes([4] * 32)))
    ephemeral = secrets.seeded(bytes([4] * 32))(32)
    keys = {"private": one.private.hex(), "public": one.public.hex(), "other": other.public.hex()}
    said = {"key": "05" * 32, "data": content.hex()}
    return [
        case(
            "derived",
            COMMON,
            secret="06" * 32,
            purpose="public polynomial",
            context=["00000000", "01000000"],
            gives=secrets.derived(bytes([6] * 32), "public polynomial", bytes(4), b"\1\0\0\0").hex(),
        ),
        case(
            "derived, no context",
            COMMON,
            secret="07" * 16,
            purpose="sealed box",
            context=[],
            gives=secrets.derived(bytes([7] * 16), "sealed box").hex(),
        ),
        case(
            "agreed",
            COMMON,
            **keys,
            purpose="report tag",
            context=["08" * 32],
            gives=one.agreed(other.public, "report tag", bytes([8] * 32)).hex(),
        ),
        case("agreed, no context", COMMON, **keys, purpose="p", context=[], gives=one.agreed(other.public, "p").hex()),
        case(
            "sealed",
            MESSAGES,
            to=other.public.hex(),
            to_private=other.private.hex(),
            ephemeral_private=ephemeral.hex(),
            content=content.hex(),
            associated=associated.hex(),
            gives=box.hex(),
        ),
        case("tag", COMMON, **said, gives=secrets.tag(bytes([5] * 32), content).hex()),
        case(
            "signature",
            COMMON,
            private="03" * 32,
            public=identity.public.hex(),
            purpose="report",
            message=content.hex(),
            gives=identity.sign("report", content).hex(),
        ),
        case("stream", COMMON, seed="09" * 32, gives=secrets.seeded(bytes([9] * 32))(80).hex()),
    ]


def check_function(each: Case) -> None:
    """That this program computes what a case of the file says."""
    again = {made["name"]: made for made in _functions()}
    assert again[each["name"]] == each, each["name"]
    if each["name"] == "sealed":
        content = secrets.unsealed(*(bytes.fromhex(each[name]) for name in ("to_private", "gives", "associated")))
        assert content.hex() == each["content"]


def _rings() -> list[Case]:
    found = []
    for degree, primes in ((4, (17, 41)), (8, (17, 97)), (64, (257, 641))):
        ring = Ring(degree, primes)
        coefficients = np.arange(degree, dtype=np.int64) * 3 - 5
        residues = ring.reduced(coefficients)
        turned = ring.transform(residues.copy())
        said = {"degree": degree, "primes": list(primes), "coefficients": coefficients.tolist()}
        psi = [primitive_root(prime, degree) for prime in primes]
        more = {"packed": pack(ring, turned).hex()} if degree >= 64 else {}
        whole = {"residues": residues.tolist(), "transform": turned.tolist(), **more}
        square = np.zeros_like(turned)
        ring.add_product(square, turned, ring.prepared(turned))
        found.append(case(f"degree {degree}", RING, **said, psi=psi, **whole, transform_of_the_square=square.tolist()))
    for name, each in PUBLISHED.items():
        ring = each.ring
        ramp = ring.transform(ring.reduced(np.arange(each.degree, dtype=np.int64) - 5))
        psi = [primitive_root(prime, each.degree) for prime in each.primes]
        public = public_polynomial(each, bytes([3] * 32), 1)
        found.append(
            case(
                name,
                RING,
                degree=each.degree,
                primes=[str(prime) for prime in each.primes],
                of="coefficient i is i - 5",
                psi=[str(root) for root in psi],
                transform_begins=[_words(row[:4]) for row in ramp],
                transform_packed=long(pack(ring, ramp)),
                seed="03" * 32,
                polynomial=1,
                public_begins=[_words(row[:4]) for row in public],
                public_packed=long(pack(ring, public)),
                public_scaled_begins=switched(ring, public.copy())[:8].tolist(),
                shift=check_range(each).shift,
                factor=check_range(each).factor,
            )
        )
    return found


def check_ring(each: Case) -> None:
    """The same."""
    again = {made["name"]: made for made in _rings()}
    assert again[each["name"]] == each, each["name"]


def _gaussians() -> list[Case]:
    table = thresholds()
    words = [0, 1, table[0], table[88] - 1, table[88], 2**127, table[-1] - 1, table[-1], 2**128 - 1]
    drawn = secrets.seeded(bytes([3] * 32))(WORD_BYTES * 40)
    words += [int.from_bytes(drawn[at : at + WORD_BYTES], "little") for at in range(0, len(drawn), WORD_BYTES)]
    raw = [word.to_bytes(WORD_BYTES, "little") for word in words]
    numbers = sample(len(words), lambda size: b"".join(raw)).tolist()
    return [case("numbers of words", RING, words=[each.hex() for each in raw], numbers=numbers)]


def check_gaussians(each: Case) -> None:
    """The same."""
    raw = bytes.fromhex("".join(each["words"]))
    assert sample(len(each["words"]), lambda size: raw).tolist() == each["numbers"], each["name"]


def _slots() -> list[Case]:
    found = []
    for parameters, dimension, largest, reports, contributors, margin in (
        (b"willow-4096", 5, 100, 10, 0, 0),
        (b"willow-4096", 5, 100, 10, 2, 700),
        (b"willow-4096", 20_000, 65_000, 1000, 0, 0),
        (b"willow-8192", 40_000, 2000, 500, 0, 0),
        (b"willow-16384", 144_528, 9_000, 1000, 0, 0),
    ):
        keys = (bytes.fromhex(KEY), bytes.fromhex(OTHER_KEY))[:contributors]
        made = sealed_settings(parameters, dimension, largest, most_reports=reports, contributors=keys, margin=margin)
        slots = made.slots
        vector = (np.arange(dimension) * 7 % (largest + 1)).astype(np.uint32)
        plain = slots.plain(vector, slots.polynomials - 1)
        numbers = [sum(int(limb) << (64 * at) for at, limb in enumerate(row)) for row in plain]
        said = {"set": parameters.decode(), "dimension": dimension, "largest": largest, "most_reports": reports}
        gives = {"width": slots.width, "per_coefficient": slots.per_coefficient, "checks": slots.checks}
        more = {"polynomials": slots.polynomials, "body_bytes": made.body_bytes, "quorum": made.quorum}
        name = f"{parameters.decode()}: {dimension} numbers to {largest}, {contributors} contributors"
        of = "number i is 7 i modulo largest + 1"
        last = {"last_polynomial_begins": [str(number) for number in numbers[:6]]}
        beside = {"contributors": contributors, "margin": margin, "of": of}
        found.append(
            case(name, RING, **said, **beside, **gives, **more, packed=made.packed, columns=made.columns, **last)
        )
    return found


def check_slots(each: Case) -> None:
    """The same."""
    again = {made["name"]: made for made in _slots()}
    assert again[each["name"]] == each, each["name"]


def _shares() -> list[Case]:
    found = []
    for decryptors, corrupt, packed in ((3, 1, 2), (4, 1, 2), (5, 2, 2)):
        numbers = np.arange(3 * packed, dtype=np.uint32).reshape(packed, 3) + np.uint32(2**31 - 9)
        numbers %= np.uint32(2**31 - 1)
        draw = secrets.seeded(bytes([decryptors] * 32))
        random = uniform(corrupt * 3, secrets.seeded(bytes([decryptors] * 32))).reshape(corrupt, 3)
        points = list(range(1, decryptors + 1))
        shares = split(numbers, points, corrupt + 1, draw, packed=packed)
        back = lagrange(points[: packed + corrupt], [2**31 - 2 - index for index in range(packed)])
        found.append(
            case(
                f"{decryptors} decryptors, {corrupt} corrupt",
                RING,
                rows=numbers.tolist(),
                random=random.tolist(),
                random_at=[-(packed + 1 + index) for index in range(corrupt)],
                shares=shares.tolist(),
                weights_of_the_first_shares=back.tolist(),
            )
        )
    return found


def check_shares(each: Case) -> None:
    """The same."""
    again = {made["name"]: made for made in _shares()}
    assert again[each["name"]] == each, each["name"]


# -- a round's settings, and reports -----------------------------------------------------------------------------------

DECRYPTORS = [(Identity(bytes([0x40 + at] * 32)), secrets.KeyPair(bytes([0x50 + at] * 32))) for at in range(4)]


def sealed_settings(
    parameters: bytes, dimension: int, largest: int, *, many: int = 3, **changed: Any
) -> OneMessageRound:
    said: dict[str, Any] = {
        "parameters": parameters,
        "dimension": dimension,
        "largest": largest,
        "report_goal": 2,
        "most_reports": 10,
        "corrupt": 1,
        "decryptors": tuple(identity.public for identity, _ in DECRYPTORS[:many]),
        "boxes": tuple(box.public for _, box in DECRYPTORS[:many]),
        "server": secrets.public_key(SERVER),
        "seed": bytes([0x11] * 32),
        "plan": bytes([0x12] * 32),
        "round_index": 7,
        "series": 1,
    }
    return OneMessageRound(**said | changed)


def _fields(settings: OneMessageRound) -> dict[str, Any]:
    def shown(value: Any) -> Any:
        if isinstance(value, tuple):
            return [each.hex() for each in value]
        return value.hex() if isinstance(value, bytes) else value

    return {name: shown(getattr(settings, name)) for name in OneMessageRound.__dataclass_fields__}


def _reports() -> list[Case]:
    rounds: dict[str, tuple[OneMessageRound, bool, int]] = {
        "willow-4096, three decryptors": (sealed_settings(b"willow-4096", 5, 100), True, 1),
        "willow-4096, four decryptors": (sealed_settings(b"willow-4096", 300, 100, many=4), False, 2),
        "willow-4096, two polynomials": (sealed_settings(b"willow-4096", 20_000, 65_000), False, 3),
        "willow-8192": (sealed_settings(b"willow-8192", 1000, 2000, many=4), False, 4),
        "willow-16384": (sealed_settings(b"willow-16384", 1000, 9000, many=4), False, 5),
    }
    return [_report(name, *each) for name, each in rounds.items()]


def _report(name: str, settings: OneMessageRound, whole: bool, number: int) -> Case:
    seed, private = bytes([0x30 + number] * 32), bytes([0x20 + number] * 32)
    identity = Identity(private)
    vector = (np.arange(settings.dimension) * 7 % (settings.largest + 1)).astype(np.uint32)
    report = one_message_report(settings, identity, vector, draw=lambda size: seed)
    degree, stream = settings.slots.parameters.degree, secrets.seeded(seed)
    key = sample(degree, stream)
    errors = [sample(degree, stream) for _ in range(settings.slots.polynomials)]
    ephemeral = stream(32)
    assert secrets.public_key(ephemeral) == report.ephemeral
    digests = report_digests(report.boxes, report.ephemeral, report.tag, report.body_digest)
    contents = []
    for at, box in enumerate(report.boxes):
        beside = box_context(settings.name, report.client, at)
        inside = secrets.unsealed(DECRYPTORS[at][1].private, box, beside)
        cut = 4 * settings.columns
        shown = {"share": long(inside[:cut]), "masks": long(inside[cut:])}
        contents.append({"box": long(box), "associated": beside.hex(), **shown})
    steps = {
        "round": settings.name.hex(),
        "series": settings.attempts.name.hex(),
        "key_begins": key[:16].tolist(),
        "errors_begin": [each[:16].tolist() for each in errors],
        "ephemeral_private": ephemeral.hex(),
        "tag_key": secrets.agreed(ephemeral, settings.server, "report tag", settings.name, report.client).hex(),
        "challenge_seed": challenge_seed(settings.name, report.client, digests).hex(),
        "signed": signed_report(settings.name, report.client, digests, report.parts).hex(),
        "digests": [each.hex() for each in digests],
        "boxes": contents,
        "parts": long(report.parts),
        "body": long(bytes(report.body)),
        "tag": report.tag.hex(),
        "signature": report.signature.hex(),
    }
    data = report.to_bytes()
    said = {"identity": private.hex(), "seed": seed.hex(), "vector": "number i is 7 i modulo largest + 1"}
    more = {"bytes": data.hex()} if whole else {}
    public = {"settings": settings.to_bytes().hex(), "fields": _fields(settings)}
    return case(name, MESSAGES, **public, **said, steps=steps, report=long(data), **more)


def check(each: Case) -> None:
    """That this program makes and reads the report of a case as it is written."""
    settings = OneMessageRound.from_bytes(bytes.fromhex(each["settings"]))
    assert _fields(settings) == each["fields"] and settings.name.hex() == each["steps"]["round"], each["name"]
    vector = (np.arange(settings.dimension) * 7 % (settings.largest + 1)).astype(np.uint32)
    seed = bytes.fromhex(each["seed"])
    made = one_message_report(settings, Identity(bytes.fromhex(each["identity"])), vector, draw=lambda size: seed)
    data = made.to_bytes()
    assert long(data) == each["report"] and data.hex() == each.get("bytes", data.hex()), each["name"]
    read = OneMessageReport.from_bytes(data, round=settings.name)
    assert read.signature.hex() == each["steps"]["signature"], each["name"]


def _refused() -> list[Case]:
    """Settings that a device takes, and such that it does not, for a plan that trusts the decryptors of the first."""
    good = sealed_settings(b"willow-4096", 5, 100)
    data = good.to_bytes()
    strange = tuple(identity.public for identity, _ in DECRYPTORS[1:4])
    changed = {
        "the plan's": data,
        "a byte more": data + b"\0",
        "a byte less": data[:-1],
        "a set that nobody published": data.replace(b"willow-4096", b"willow-4097"),
        "another decryptor": sealed_settings(b"willow-4096", 5, 100, decryptors=strange).to_bytes(),
        "more corrupt decryptors than the plan has": sealed_settings(b"willow-4096", 5, 100, corrupt=2).to_bytes(),
    }
    trusted = {"threshold": 2, "keepers": [identity.public.hex() for identity, _ in DECRYPTORS[:3]], "corrupt": 1}
    found = []
    for name, settings in changed.items():
        found.append(case(name, SETTINGS, settings=settings.hex(), **trusted, accepted=_takes(settings, trusted)))
    for name, plan in (
        ("a plan that opens no sum of two", {**trusted, "threshold": 3}),
        ("a plan that is safe from two", {**trusted, "corrupt": 2}),
    ):
        found.append(case(name, SETTINGS, settings=data.hex(), **plan, accepted=_takes(data, plan)))
    return found


def _takes(settings: bytes, plan: dict[str, Any]) -> bool:
    try:
        made = OneMessageRound.from_bytes(settings)
        trusted = {bytes.fromhex(key) for key in plan["keepers"]}
        made.check(least_reports=plan["threshold"], decryptors=trusted, corrupt=plan["corrupt"])
    except (InputError, ProtocolError):
        return False
    return True


def check_settings(each: Case) -> None:
    """The same."""
    assert _takes(bytes.fromhex(each["settings"]), each) is each["accepted"], each["name"]


def _seeds() -> list[Case]:
    found = []
    for name, task in (("an update", a_task(encoded=True)), ("another", a_task(encoded=True, round=9, attempt=2))):
        found.append(case(f"seed of {name}", "#a-sealed-report", task=task.to_json(), seed=seed_of(task).hex()))
    counts = {**json.loads(a_task().to_json()), "asks": {"kind": "count", "cells": [3], "local_epsilon": None}}
    counts["asks"]["norms"] = None
    task = RoundTask.from_json(json.dumps(counts))
    found.append(case("seed of counts", "#a-sealed-report", task=task.to_json(), seed=seed_of(task).hex()))
    return found


def check_seed(each: Case) -> None:
    """The same."""
    assert seed_of(RoundTask.from_json(each["task"])).hex() == each["seed"], each["name"]


def file() -> dict[str, Any]:
    """The content of `sealed.json`."""
    return file_of(
        "`cases`: reports. All randomness of one is stream(seed), in this order: 16 bytes for each number of the key; "
        "16 for each error, polynomial by polynomial; the ephemeral private key (32); the random values of the key's "
        "shares at -1 - packed and below, row by row. Then, until the values of all tests are in range: packed rows "
        "of random numbers, one for each column of masks; 4 bytes for the mask of each test, of which the low bits "
        "less 64 S are it, and number 0 of the test's column 0 is what makes the sum right; the random values of the "
        "shares of these; 32 bytes, the ephemeral key, for each box. Elements are the low 31 bits of 4 bytes; those "
        "that are p are drawn again, after all of one kind. Other ways to draw are as good. What is long has its "
        "length, its first bytes and its SHA-256; the first report has all `bytes`. `functions`, `rings`, "
        "`gaussians` (with `thresholds`, of x = -88 on), `slots` and `shares` are its parts; numbers beyond 53 bits "
        "are in decimal digits. `settings`: whether a device takes a round's settings under a plan with these keepers, "
        "threshold and corrupt ones. `seeds`: of a round's task.",
        _reports(),
        server_private=SERVER.hex(),
        decryptors=[{"identity": f"{0x40 + at:02x}" * 32, "box": f"{0x50 + at:02x}" * 32} for at in range(4)],
        functions=_functions(),
        rings=_rings(),
        thresholds=[f"{each:032x}" for each in thresholds()],
        tail=TAIL,
        gaussians=_gaussians(),
        slots=_slots(),
        shares=_shares(),
        settings=_refused(),
        seeds=_seeds(),
    )
