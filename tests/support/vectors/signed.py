"""Vectors of what an operator signs: documents of each purpose, the log, another key, tokens."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from tests.support.server.documents import ASSIGNMENT, a_plan, a_task
from tests.support.vectors.case import Case, case, file_of

from tacit.errors import TaskRefused
from tacit.protocol.fields import SignedDocument
from tacit.protocol.key_rotation import signed_key_rotation
from tacit.protocol.log_check import followed, logged
from tacit.protocol.log_proofs import bundle_entry, is_included, key_rotation_entry, leaf_of, plan_entry, root_of
from tacit.protocol.messages import (
    KeyRotation,
    Receipt,
    SignedKeyRotation,
    TokenKey,
    TreeHead,
)
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.requests import Conversation
from tacit.protocol.signing import digest, is_signature
from tacit.secure_aggregation.small_order import anybody_agrees, anybody_signs
from tacit.server.log.merkle_tree import MerkleTree
from tacit.statements.page_bundle import digest_of

OURS, OTHER = OperatorKey(bytes(32)), OperatorKey(bytes([1] * 32))
KEYS = {
    "operator": {"private": "00" * 32, "public": OURS.public},
    "another": {"private": "01" * 32, "public": OTHER.public},
}
PURPOSES = ("plan", "task", "receipt", "head", "token-key", "hand-over")
P = 2**255 - 19
EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826  # y of a point of order 8


# -- signatures --------------------------------------------------------------------------------------------------------


def _signed_texts() -> dict[str, tuple[str, str]]:
    """(purpose, text) of a document of each purpose, as tacit writes it, and of texts that it would not write."""
    documents: list[SignedDocument] = [
        a_plan(),
        a_task(),
        Receipt(assignment=ASSIGNMENT, sha256="ab" * 32, received=True),
        TreeHead(size=3, root="ab" * 32),
        TokenKey(epoch=9, opens=0.0, ends=604800.0, batch=8, modulus="ff" * 256, exponent=65537),
        KeyRotation(old=OURS.public, new=OTHER.public),
    ]
    found = {f"a {each.purpose}": (each.purpose, each.to_json()) for each in documents}
    said = f'"assignment": "{ASSIGNMENT}", "sha256": "{"ab" * 32}", "received": true'
    return {
        **{name: (str(purpose), text) for name, (purpose, text) in found.items()},
        "spaces between": ("receipt", "{ " + said + " }"),
        "an unknown key": ("receipt", "{" + said + ', "later": "ñ\U0001f600"}'),
        "an unknown key in escapes": ("receipt", "{" + said + ', "later": "\\u00f1\\ud83d\\ude00"}'),
        "lines": ("receipt", "{\n" + said + "\r\n}\n"),
        "no document at all": ("receipt", "[]"),
    }


def signatures_file() -> dict[str, Any]:
    """The content of `signatures.json`."""
    cases, rule = [], "#one-text-one-digest-one-signature"
    for name, (purpose, text) in _signed_texts().items():
        signature = OURS.signature(purpose, text)  # type: ignore[arg-type]
        whole = {"purpose": purpose, "document": text, "key": OURS.public, "signature": signature}
        cases.append(case(name, rule, **whole, digest=digest(text), valid=True))
    purpose, text = _signed_texts()["a receipt"]
    signature = OURS.signature("receipt", text)
    good = {"purpose": purpose, "document": text, "key": OURS.public, "signature": signature}
    flipped = bytearray.fromhex(signature)
    flipped[3] ^= 1
    beyond = int.from_bytes(bytes.fromhex(signature)[32:], "little") + 2**252 + 27742317777372353535851937790883648493
    changes: dict[str, dict[str, Any]] = {
        **{f"a receipt's, shown for a {other}": {"purpose": other} for other in PURPOSES if other != "receipt"},
        "another key": {"key": OTHER.public},
        "a changed byte of the text": {"document": text.replace("ab", "ac", 1)},
        "a space more": {"document": text.replace(",", ", ", 1)},
        "keys in another order": {"document": json.dumps(dict(reversed(json.loads(text).items())))},
        "a changed byte of the signature": {"signature": flipped.hex()},
        "a signature of zeros": {"signature": "00" * 64},
        "a signature whose second half is beyond the group's order": {
            "signature": signature[:64] + beyond.to_bytes(32, "little").hex()
        },
        "another's signature": {"signature": OTHER.signature("receipt", text)},
        "signed without a purpose": {"signature": OURS.sign(text.encode())},
        "signed for version 1": {"signature": OURS.sign(b"tacit receipt v1\0" + text.encode())},
        "signed by the digest": {"signature": OURS.sign(b"tacit receipt v2\0" + bytes.fromhex(digest(text)))},
    }
    for name, change in changes.items():
        said = {**good, **change}
        cases.append(case(name, rule, **said, digest=digest(said["document"]), valid=False))
    for name, key in _small().items():
        # R the identity and S = 0: what anybody can write, and a key of order 1 would take for every text.
        forged = {**good, "key": key, "signature": "01" + "00" * 63}
        cases.append(case(f"a key of small order: {name}", rule, **forged, digest=digest(text), valid=False))
    return file_of(
        "Whether `signature` is one of `document` for `purpose` by the owner of `key`, and the document's `digest`. "
        "`keys` are of tests; what is signed by them can be signed again to the byte (RFC 8032).",
        cases,
        keys=KEYS,
        small_order=_small_orders(),
    )


def _small() -> dict[str, str]:
    points = {"the identity": 1, "order 2": P - 1, "order 4": 0, "order 8": EIGHTH, "order 8, negative": P - EIGHTH}
    points |= {"order 4, written beyond the prime": P, "the identity, written beyond the prime": P + 1}
    named = {name: number.to_bytes(32, "little") for name, number in points.items()}
    signs = {f"{name}, the other sign": each[:-1] + bytes([each[-1] | 0x80]) for name, each in named.items()}
    return {name: each.hex() for name, each in (named | signs).items()}


def _small_orders() -> dict[str, Any]:
    """All keys of small order, of both curves, and some that are not."""
    numbers = [*range(4), 9, EIGHTH, P - EIGHTH, P - 2, P - 1, P, P + 1, P + 2, 2**255 - 1]
    numbers += [
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    ]
    keys = [(number + high).to_bytes(32, "little") for number in numbers for high in (0, 2**255)]
    return {
        "rule": "docs/protocol.md#one-text-one-digest-one-signature",
        "keys": [[key.hex(), anybody_signs(key), anybody_agrees(key)] for key in keys],
        "columns": ["key", "of small order as an Ed25519 key", "of small order as an X25519 key"],
    }


def check_signature(each: Case) -> None:
    """That this program decides a case of the file as it says."""
    assert digest(each["document"]) == each["digest"], each["name"]
    found = is_signature(each["purpose"], each["document"], each["signature"], each["key"])
    assert found is each["valid"], each["name"]


# -- the log -----------------------------------------------------------------------------------------------------------


def line(number: int) -> str:
    return plan_entry(hashlib.sha256(str(number).encode()).hexdigest())


def shown_log(entries: Sequence[str], key: OperatorKey = OURS, **head: Any) -> dict[str, Any]:
    root = root_of(map(leaf_of, entries)).hex()
    text = TreeHead(**{"size": max(len(entries), 1), "root": root, **head}).to_json()
    return {"head": {"document": text, "signature": key.signature("head", text)}, "entries": list(entries)}


def answered(talk: Conversation[Any], *answers: bytes) -> Any:
    """What a conversation comes to when these bodies come, one after another."""
    from tacit.protocol.requests import Answer

    left = list(answers)
    next(talk)
    while True:
        try:
            talk.send(Answer(200, {}, left.pop(0)))
        except StopIteration as end:
            return end.value


def log_file() -> dict[str, Any]:
    """The content of `log.json`."""
    rule = "#the-log"
    lines = [line(number) for number in range(40)]
    trees = [
        case(
            f"a tree of {size}",
            rule,
            entries=lines[:size],
            leaves=[leaf_of(line).hex() for line in lines[:size]][:4],
            root=root_of(map(leaf_of, lines[:size])).hex(),
        )
        for size in (1, 2, 3, 4, 5, 7, 8, 9, 31, 33)
    ]
    tree = MerkleTree([leaf_of(line) for line in lines[:11]])
    proofs = []
    for index, size in ((0, 1), (0, 2), (1, 2), (2, 3), (4, 7), (6, 7), (0, 8), (10, 11)):
        path = tree.inclusion(index, size)
        said = {"leaf": leaf_of(lines[index]).hex(), "index": index, "size": size}
        root = root_of(map(leaf_of, lines[:size])).hex()
        whole = {**said, "path": [each.hex() for each in path], "root": root}
        proofs.append(case(f"entry {index} of {size}", rule, **whole, included=True))
        if path:
            wrong: dict[str, Any] = {
                "a hash less": {"path": whole["path"][:-1]},
                "a hash more": {"path": [*whole["path"], whole["path"][0]]},
                "another index": {"index": (index + 1) % size},
                "another leaf": {"leaf": leaf_of(lines[39]).hex()},
            }
            for name, change in list(wrong.items())[: 4 if size == 7 else 1]:
                proofs.append(case(f"entry {index} of {size}: {name}", rule, **{**whole, **change}, included=False))
    return file_of(
        "`kept`: the entries that a device keeps; `line`: the one that it looks for; `shown`: the ShownLog that "
        "came. Accepted or not, `keeps` is what the device keeps then; `disbelieves`: it asks this "
        "operator for nothing more.",
        _log_cases(rule, lines),
        key=OURS.public,
        trees=trees,
        proofs=proofs,
        bundles=_bundle_cases(lines),
    )


FILES = {"index.html": "1" * 64, "page.js": "2" * 64, "model/step.onnx": "3" * 64, "Z.css": "4" * 64}


def _bundle_cases(lines: list[str]) -> list[Case]:
    """Whether `files`, with their `digest`, take the place of the bundle `have` (null: of none)."""
    ours, before = digest_of(FILES), digest_of({"index.html": "5" * 64})
    line, older = bundle_entry(ours), bundle_entry(before)
    kept = [*lines[:2], older]
    longer = [*kept, lines[2], line]
    shown: dict[str, tuple[str | None, list[str], dict[str, Any]]] = {
        "a first bundle": (None, [], shown_log(longer)),
        "a first one, of a log that was seen": (None, kept, shown_log(longer)),
        "a first one that the log does not show": (None, [], shown_log(kept)),
        "another bundle": (before, kept, shown_log(longer)),
        "another, by a log that was not seen before": (before, [], shown_log(longer)),
        "another, by a shorter log than was seen": (before, [*longer, lines[3]], shown_log(longer)),
        "another that the log does not show": (before, kept, shown_log([*kept, lines[2]])),
        "another that only the kept log shows": (before, longer, shown_log(kept)),
        "an older bundle": (before, kept, shown_log([lines[0], line, older])),
        "an older bundle, by a log that goes on": (before, [line, older], shown_log([line, older, lines[0]])),
        "of a bundle that the log does not have": ("ab" * 32, kept, shown_log(longer)),
        "by another's log": (before, kept, shown_log(longer, OTHER)),
        "by a log that was written anew": (before, kept, shown_log([lines[5], *longer[1:]])),
        "by a head of another size": (before, kept, shown_log(longer, size=4)),
        "by a head of another root": (before, kept, shown_log(longer, root="ab" * 32)),
    }
    said = {"files": FILES, "digest": ours}
    return [
        case(
            f"bundle: {name}",
            "#the-bundle-of-a-page",
            **said,
            have=have,
            kept=kept_then,
            shown=log,
            accepted=_is_taken(ours, have, kept_then, log),
        )
        for name, (have, kept_then, log) in shown.items()
    ]


def _is_taken(found: str, have: str | None, kept: Sequence[str], log: dict[str, Any]) -> bool:
    """The rule of the page: a line behind that of the bundle that is here, in a log as devices take one."""
    if not _looked_at(kept, log, bundle_entry(found))["accepted"]:
        return False
    entries = max(kept, log["entries"], key=len)
    before = None if have is None else bundle_entry(have)
    return before not in entries or entries.index(before) < entries.index(bundle_entry(found))


def check_bundle(each: Case) -> None:
    """The same."""
    assert digest_of(each["files"]) == each["digest"], each["name"]
    found = _is_taken(each["digest"], each["have"], each["kept"], each["shown"])
    assert found is each["accepted"], each["name"]


def _log_cases(rule: str, lines: list[str]) -> list[Case]:
    anew = [lines[0], lines[39], *lines[2:6]]
    shown: dict[str, tuple[list[str], dict[str, Any], str]] = {
        "the first log that is seen": ([], shown_log(lines[:3]), lines[1]),
        "the same log again": (lines[:3], shown_log(lines[:3]), lines[1]),
        "a longer log that begins alike": (lines[:3], shown_log(lines[:6]), lines[5]),
        "a shorter log, which changes nothing": (lines[:6], shown_log(lines[:3]), lines[1]),
        "a shorter log without the line": (lines[:6], shown_log(lines[:3]), lines[5]),
        "a longer log without the line": (lines[:3], shown_log(lines[:6]), lines[7]),
        "written anew, as long": (lines[:6], shown_log(anew), lines[2]),
        "written anew, shorter": (lines[:6], shown_log(anew[:3]), lines[2]),
        "written anew, longer": (lines[:3], shown_log(anew), lines[2]),
        "written anew, without the line": (lines[:6], shown_log(anew), lines[20]),
        "the line twice": ([], shown_log([lines[0], lines[0]]), lines[0]),
        "a head by another key": ([], shown_log(lines[:3], OTHER), lines[1]),
        "a head of another size": ([], shown_log(lines[:3], size=4), lines[1]),
        "a head of another root": ([], shown_log(lines[:3], root="ab" * 32), lines[1]),
        "a head of the list turned round": (
            [],
            {**shown_log(lines[:3]), "entries": lines[:3][::-1]},
            lines[1],
        ),
        "an entry more than the head's": ([], {**shown_log(lines[:3]), "entries": lines[:4]}, lines[3]),
        "an entry less than the head's": ([], {**shown_log(lines[:3]), "entries": lines[:2]}, lines[1]),
        "no entries": ([], {**shown_log(lines[:1]), "entries": []}, lines[0]),
    }
    found = []
    for name, (kept, log, line) in shown.items():
        decided = _looked_at(kept, log, line)
        found.append(case(name, rule, kept=kept, shown=log, line=line, **decided))
    return found


def _looked_at(kept: Sequence[str], log: dict[str, Any], line: str) -> dict[str, Any]:
    from tacit.protocol.log_check import AnotherLog

    try:
        came = answered(logged(line, operator=OURS.public, kept=kept), json.dumps(log).encode())
    except TaskRefused as refusal:
        return {"accepted": False, "keeps": list(kept), "disbelieves": isinstance(refusal, AnotherLog)}
    longer = len(came.entries) > len(kept)
    return {"accepted": True, "keeps": list(came.entries if longer else kept), "disbelieves": False}


def check_log(each: Case) -> None:
    """The same."""
    decided = _looked_at(each["kept"], each["shown"], each["line"])
    assert decided == {name: each[name] for name in decided}, each["name"]


def check_proof(each: Case) -> None:
    """The same."""
    path = [bytes.fromhex(step) for step in each["path"]]
    found = is_included(bytes.fromhex(each["leaf"]), each["index"], each["size"], path, bytes.fromhex(each["root"]))
    assert found is each["included"], each["name"]


def check_tree(each: Case) -> None:
    """The same."""
    leaves = [leaf_of(line) for line in each["entries"]]
    assert [leaf.hex() for leaf in leaves][:4] == each["leaves"] and root_of(leaves).hex() == each["root"]


# -- another key of the operator ---------------------------------------------------------------------------------------

THIRD = OperatorKey(bytes([2] * 32))


def rotation_file() -> dict[str, Any]:
    """The content of `rotation.json`."""
    rule = "#another-key-of-the-operator"
    good = signed_key_rotation(OURS, OTHER)
    rotated = key_rotation_entry(digest(good.document))
    log = [line(0), rotated]
    reverse = KeyRotation(old=OTHER.public, new=OURS.public).to_json()
    to_itself = signed_key_rotation(OURS, OURS)
    from_third = signed_key_rotation(THIRD, OTHER)
    cases: dict[str, tuple[str, list[str], SignedKeyRotation, dict[str, Any]]] = {
        "the pinned key handed over": (OURS.public, [], good, shown_log(log, OTHER)),
        "and the kept log goes on": (OURS.public, log[:1], good, shown_log(log, OTHER)),
        "the kept log is longer": (OURS.public, [*log, line(2)], good, shown_log(log, OTHER)),
        "the log was written anew": (OURS.public, [line(5)], good, shown_log(log, OTHER)),
        "the log has no such line": (OURS.public, [], good, shown_log(log[:1], OTHER)),
        "the log is signed by the old key": (OURS.public, [], good, shown_log(log, OURS)),
        "another key is pinned": (THIRD.public, [], good, shown_log(log, OTHER)),
        "the new key is pinned": (OTHER.public, [], good, shown_log(log, OTHER)),
        "from another key than the pinned one": (
            OURS.public,
            [],
            from_third,
            shown_log([key_rotation_entry(digest(from_third.document))], OTHER),
        ),
        "to the same key": (
            OURS.public,
            [],
            to_itself,
            shown_log([key_rotation_entry(digest(to_itself.document))], OURS),
        ),
        "not signed by the old key": (
            OURS.public,
            [],
            good.model_copy(update={"by_old": THIRD.signature("hand-over", good.document)}),
            shown_log(log, OTHER),
        ),
        "not signed by the new key": (
            OURS.public,
            [],
            good.model_copy(update={"by_new": THIRD.signature("hand-over", good.document)}),
            shown_log(log, OTHER),
        ),
        "both signatures by the old key": (
            OURS.public,
            [],
            good.model_copy(update={"by_new": good.by_old}),
            shown_log(log, OTHER),
        ),
        "signed for another purpose": (
            OURS.public,
            [],
            good.model_copy(update={"by_old": OURS.signature("plan", good.document)}),
            shown_log(log, OTHER),
        ),
        "back to the old key": (
            OTHER.public,
            [],
            SignedKeyRotation(
                document=reverse,
                by_old=OTHER.signature("hand-over", reverse),
                by_new=OURS.signature("hand-over", reverse),
            ),
            shown_log([*log, key_rotation_entry(digest(reverse))], OURS),
        ),
    }
    found = []
    for name, (pinned, kept, signed, shown) in cases.items():
        said = {"pinned": pinned, "kept": kept, "rotation": signed.model_dump(mode="json"), "shown": shown}
        before = [OURS.public] if name == "back to the old key" else []
        found.append(case(name, rule, **said, before=before, **_followed({**said, "before": before})))
    return file_of(
        "A task came that another key signed. The device has the `pinned` key, had those in `before`, keeps the "
        "entries `kept`, and gets `rotation` (a SignedKeyRotation) and `shown` (a ShownLog). `pins`: the key that it "
        "believes then.",
        found,
    )


def _followed(said: dict[str, Any]) -> dict[str, Any]:
    talk = followed(said["pinned"], kept=said["kept"])
    try:
        key, _ = answered(talk, json.dumps(said["rotation"]).encode(), json.dumps(said["shown"]).encode())
    except TaskRefused:
        return {"accepted": False, "pins": said["pinned"]}
    if key in said["before"]:  # `record.key_rotation`: there is no way back
        return {"accepted": False, "pins": said["pinned"]}
    return {"accepted": True, "pins": key}


def check_rotation(each: Case) -> None:
    """The same."""
    decided = _followed(each)
    assert decided == {name: each[name] for name in decided}, each["name"]
