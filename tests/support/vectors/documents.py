"""Vectors of documents: texts that a reader takes, with what they mean, and texts that it refuses, with the reason."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from tests.support.server.documents import ASSIGNMENT, a_plan, a_task
from tests.support.vectors.case import Case, case, file_of

from tacit.errors import InputError
from tacit.parsing import strict_json
from tacit.protocol import messages
from tacit.protocol.fields import Document, read_json

ABOUT = (
    "Each case is a JSON `text` (or `bytes`, in hexadecimal digits, where it is no UTF-8) to be read as a document of "
    "`kind`. Accepted: `means` is what the known keys say. Refused: `reason` is why, in one word; programs agree on "
    "the refusal, and each says why in its own words. `plus` and `times`: the text is `text`, with the one mark @ "
    "replaced by so many times that string."
)
RULE = "#documents"
ANSWER: TypeAdapter[Any] = TypeAdapter(messages.Answer)
SIGNATURE = "ab" * 64
SIGNED = {"document": "{}", "signature": SIGNATURE}
SMALL = "01" + "00" * 31  # the identity point, which anybody signs with
ZERO = "00" * 32
KEY = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
OTHER_KEY = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
PRIVACIES: Mapping[str, dict[str, Any]] = {
    "histograms": {
        **{"zcdp": 0.02, "report_goal": 100, "rounds": 1, "max_participations": 1, "kind": "histograms"},
        **{"epsilon": 1.2, "delta": 1e-6, "histograms": [3], "noise_multiplier": 5.0},
    },
    "sums": {
        **{"zcdp": 0.02, "report_goal": 100, "rounds": 1, "max_participations": 1, "kind": "sums"},
        **{"epsilon": 1.2, "delta": 1e-6, "clip_norm": 20.0, "noise_multiplier": 5.0},
    },
    "local": {
        **{"zcdp": 2.0, "report_goal": 100, "rounds": 1, "max_participations": 1, "kind": "local"},
        **{"local_epsilon": 2.0},
    },
}
QUESTIONS: Mapping[str, dict[str, Any]] = {
    "discover prefixes": {
        "kind": "discover",
        "question": {"about": "prefixes", "prefixes": ["a", "b"], "alphabet": "abc", "depth": 4, "found": ["ab"]},
        "reports": {
            "local_epsilon": 4.0,
            "contributions": 2,
            "sampler": "random",
            "randomizer": "subset-selection",
        },
    },
    "discover words": {
        "kind": "discover",
        "question": {"about": "words", "words": ["uno", "dos"]},
        "reports": {"local_epsilon": 4.0, "contributions": 1, "sampler": "greedy", "randomizer": "k-ary"},
    },
    "evaluate": {"kind": "evaluate", "cells": [3, 5], "local_epsilon": None, "parameters": [40, 40]},
    "personalize": {
        **{"kind": "personalize", "cells": [3], "local_epsilon": 1.0, "parameters": [40]},
        "policies": [{"name": "p", "cuts": [10.0], "rules": [None, {"strategy": 0, "level": 0.5}]}],
    },
    "count": {"kind": "count", "cells": [3, 4], "local_epsilon": None, "norms": None},
    "count sums": {"kind": "count", "cells": [3, 4], "local_epsilon": None, "norms": [1.5, 20]},
}
LONG_KEYS = {f"kind-{number}": 1 for number in range(65)}


def read(kind: str, text: str | bytes) -> Document:
    """A text as a document of this name; `Answer` is one of two. Raises: InputError."""
    if kind == "Answer":
        found: Document = read_json(ANSWER.validate_json, text)
        return found
    reader: type[Document] = getattr(messages, kind)
    return reader.from_json(text)


def meaning(document: Document) -> Any:
    """What its known keys say, as plain values."""
    return document.model_dump(mode="json", exclude={"critical"})


STRICT = {"twice": "duplicate key", "finite": "not finite", "nested": "depth", "digits": "digits"}
KINDS = {
    **{"missing": "missing", "critical": "critical", "small_order": "small order", "union_tag_invalid": "unknown kind"},
    **{"union_tag_not_found": "missing", "string_pattern_mismatch": "pattern", "literal_error": "value"},
    **{"value_error": "contradiction", "finite_number": "not finite", "json_invalid": "syntax"},
}


def reason(kind: str, text: str | bytes) -> str | None:
    """Why a text is refused, in a word of this file's; None where it is taken."""
    try:
        strict_json(text)
    except ValueError as error:
        return next((word for sign, word in STRICT.items() if sign in str(error)), "syntax")
    adapter: Any = ANSWER if kind == "Answer" else TypeAdapter(getattr(messages, kind))
    try:
        adapter.validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]["type"]
        if found in KINDS:
            return KINDS[found]
        return "type" if found.endswith("_type") or found == "int_from_float" else "bound"
    return None


def text_in(each: Case) -> str | bytes:
    """The text of a case."""
    if "bytes" in each:
        return bytes.fromhex(each["bytes"])
    if "times" in each:
        return str(each["text"]).replace("@", each["plus"] * each["times"])
    return str(each["text"])


def _examples() -> dict[str, tuple[str, Any]]:
    """(kind, plain values) of a good document of each kind, by name."""
    plan, task = json.loads(a_plan().to_json()), json.loads(a_task().to_json())
    sealed = {
        **{"kind": "sealed", "threshold": 5, "keepers": [KEY], "boxes": ["09" + "00" * 31], "corrupt": 0},
        **{"contributors": [KEY], "honest": 1},
    }
    matrix = {"kind": "banded", "rounds": 20, "bands": 4, "sha256": "ef" * 32, "bytes": 800, "path": ""}
    matrix["path"] = "/v1/models/" + "ef" * 32
    found = {
        "check-in": ("CheckIn", {"version": 2, "population": "es", "versions": {"train": 1}, "token": None}),
        "check-in with a token": (
            "CheckIn",
            {"version": 2, "population": "es.1_a-b", "versions": {"train": 1, "count": 1}, "token": "00ff" * 146},
        ),
        "come back": ("Answer", {"answer": "come_back", "after_s": 6, "before_s": 12.5}),
        "assignment": (
            "Answer",
            {"answer": "assignment", "assignment": ASSIGNMENT, "secret": "78" * 32, "signed_task": SIGNED},
        ),
        "signed": ("Signed", SIGNED),
        "signed plan": ("SignedPlan", {**SIGNED, "evidence": None}),
        "signed plan with evidence": ("SignedPlan", {**SIGNED, "evidence": "00ff"}),
        "plan": ("Plan", plan),
        "plan with a matrix": ("Plan", {**plan, "privacy": {**plan["privacy"], "matrix": matrix}}),
        "plan that promises nothing": ("Plan", {**plan, "privacy": {**plan["privacy"], "zcdp": None, "epsilon": None}}),
        "plan of sealed sums": ("Plan", {**plan, "aggregation": sealed}),
        "plan with a timer": (
            "Plan",
            {**plan, "separation": {"rounds": None, "timer_seconds": 86400, "clock": "finish"}},
        ),
        **{f"plan of {name}": ("Plan", {**plan, "kind": "count", "privacy": said}) for name, said in PRIVACIES.items()},
        "task": ("RoundTask", task),
        "task with all that is asked": ("RoundTask", json.loads(a_task(encoded=True, asked=True).to_json())),
        **{f"task to {name}": ("RoundTask", {**task, "asks": said}) for name, said in QUESTIONS.items()},
        "head": ("TreeHead", {"size": 3, "root": "ab" * 32}),
        "log": ("ShownLog", {"head": SIGNED, "entries": ["plan " + "12" * 32, "token-key 7 " + "34" * 32]}),
        "proof": ("InclusionProof", {"index": 0, "head": SIGNED, "path": ["12" * 32]}),
        "rotation": ("KeyRotation", {"old": KEY, "new": OTHER_KEY}),
        "signed rotation": ("SignedKeyRotation", {"document": "{}", "by_old": SIGNATURE, "by_new": SIGNATURE}),
        "token key": (
            "TokenKey",
            {"epoch": 9, "opens": 0, "ends": 604800.0, "batch": 8, "modulus": "ff" * 256, "exponent": 65537},
        ),
        "token request": (
            "TokenRequest",
            {"code": "!" * 10 + "~" * 10, "epoch": 9, "blinded": ["01" * 256], "evidence": None},
        ),
        "blind signatures": ("BlindSignatures", {"epoch": 9, "signatures": ["01" * 256]}),
        "receipt": ("Receipt", {"assignment": ASSIGNMENT, "sha256": "ab" * 32, "received": True}),
        "problem": ("Problem", {"type": "tacit:late", "title": "Over.", "status": 410, "detail": "It is over."}),
    }
    return {name: (kind, json.loads(json.dumps(said))) for name, (kind, said) in found.items()}


NOTHING = object()  # in place of a value: the key is left out
# Of which example, at which place, which value: each is wrong in this alone, or right.
CHANGES: list[tuple[str, str, Any]] = [
    *[("check-in", "version", value) for value in (1, 3, 1_000_000, 0, 1_000_001, "2", True, 2.0, 2.5, None, NOTHING)],
    *[
        ("check-in", "population", value)
        for value in ("a", "A" * 100, "9.x", "A" * 101, "", ".a", "-a", "a b", "a\n", "ñ", "../x", 7, NOTHING)
    ],
    *[
        ("check-in", "versions", value)
        for value in ({}, {"a-9": 1}, {"train": 0}, {"Train": 1}, {"9a": 1}, {"": 1}, {"a" * 40: 1}, {"a" * 41: 1})
    ],
    *[("check-in", "versions", value) for value in ({"train": "1"}, {"train": 1, "dance": 4}, LONG_KEYS, [], None)],
    *[("check-in", "token", value) for value in ("", "0", "00", "AB", "00" * 2048, "00" * 2049, 7, NOTHING)],
    *[("come back", "after_s", value) for value in (0, 1e9, 1.5e9, -1, "6", True, None, NOTHING)],
    ("come back", "before_s", 1),
    *[("come back", "answer", value) for value in ("later", None, NOTHING)],
    *[("assignment", "assignment", value) for value in ("AB" * 16, "ab" * 15, "ab" * 17, 12, NOTHING)],
    *[("assignment", "secret", value) for value in ("ab" * 16, NOTHING)],
    *[("assignment", "signed_task", value) for value in (None, [], "{}", NOTHING)],
    *[("signed", "document", value) for value in ("", "{", "[]", {}, NOTHING)],
    *[("signed", "signature", value) for value in ("AB" * 64, "ab" * 63, "", NOTHING)],
    *[("signed plan", "evidence", value) for value in ("", "0", "ab" * 20000, "ab" * 20001, NOTHING)][:2],
    ("signed plan", "evidence", NOTHING),
    *[("plan", "version", value) for value in (1, 3, "2", 2.0, NOTHING)],
    *[("plan", "kind", value) for value in ("dance", "Dance", NOTHING)],
    *[("plan", "run", value) for value in ("r", "r/s", "", NOTHING)],
    *[("plan", "code", value) for value in ("AB" * 32, "ab" * 31, NOTHING)],
    *[("plan", "enrolment", value) for value in ("tokens", "codes", None)],
    ("plan", "recipe", ""),
    *[("plan", "privacy.kind", value) for value in ("sums", "guessed", NOTHING)],
    *[("plan", "privacy.zcdp", value) for value in (0, 1e50, 1.1e50, -0.1, None, "0.5", NOTHING)],
    *[("plan", "privacy.delta", value) for value in (0, 1, 1e-300, 0.999)],
    *[("plan", "privacy.clip_norm", value) for value in (0, 1e-300, 1e50, 2e50, -1)],
    *[("plan", "privacy.noise_multiplier", value) for value in (0, -1)],
    *[("plan", "privacy.rounds", value) for value in (0, 10**9, 10**9 + 1, 1.0, "20")],
    *[("plan", "privacy.max_participations", value) for value in (None, 0, 1)],
    *[("plan", "privacy.mechanism", value) for value in ("", "m" * 100, "m" * 101)],
    *[("plan with a matrix", "privacy.matrix.kind", value) for value in ("dense", "sparse")],
    *[("plan with a matrix", "privacy.matrix.path", value) for value in ("/v1/models/../x", "http://x/v1/models/")],
    *[("plan with a matrix", "privacy.matrix.bytes", value) for value in (0, 8 * (1 << 22) + 8193)],
    *[("plan", "separation.rounds", value) for value in (None, 0, 1.5)],
    *[("plan", "separation.timer_seconds", value) for value in (0, 1e9, 2e9, -1)],
    *[("plan", "separation.clock", value) for value in ("finish", "noon")],
    *[("plan", "aggregation.kind", value) for value in ("encoded", "secret")],
    *[("plan", "aggregation.threshold", value) for value in (1, 0)],
    *[("plan of sealed sums", "aggregation.keepers", value) for value in ([SMALL], [ZERO], ["ab"], [KEY, OTHER_KEY])],
    *[("plan of sealed sums", "aggregation.boxes", value) for value in ([ZERO], [SMALL], ["ff" * 31])],
    ("plan of sealed sums", "aggregation.contributors", ["00" * 31 + "80"]),
    *[("plan of sealed sums", "aggregation.honest", value) for value in (0, 100, 101)],
    *[("plan of sealed sums", "aggregation.corrupt", value) for value in (100, 101, -1)],
    *[("plan", "attestation.server", value) for value in ("tpm", "", "a b")],
    *[("plan of histograms", "privacy.histograms", value) for value in ([], [0], [1, 2, 3], 3)],
    *[("plan of local", "privacy.local_epsilon", value) for value in (0, 1e-9, None)],
    *[("task", "round", value) for value in (0, -1, 10**9 + 1, 0.0, "0")],
    *[("task", "attempt", value) for value in (1_000_000, 1_000_001)],
    *[("task", "opens", value) for value in (0, 1999.5, 2000.0, 2000.5, -1, 1e11)],
    *[("task", "deadline", value) for value in (1000, 1e11, 1.1e11)],
    *[("task", "sealed", value) for value in ("", "ab", "abc")],
    *[("task with all that is asked", "sealed", value) for value in ("ab", "AB")],
    *[("task", "content.bytes", value) for value in (0, 1, 8 * 10**9, 8 * 10**9 + 1)],
    *[("task", "content.sha256", value) for value in ("56" * 31,)],
    *[("task", "asks.kind", value) for value in ("dance", "count", NOTHING)],
    *[("task", "asks.parameters", value) for value in (0, 10**9 + 1)],
    *[("task", "asks.client.epochs", value) for value in (0, 100_000, 100_001)],
    *[("task", "asks.client.precision", value) for value in ("bfloat16", "float64")],
    *[("task", "asks.client.learning_rate", value) for value in (0, 1)],
    ("task", "asks.client.proximal", -0.5),
    *[("task", "asks.clip_estimate", value) for value in (0, 1, NOTHING)],
    *[("task with all that is asked", "asks.parameters", value) for value in (41,)],
    *[("task with all that is asked", "asks.encoded.signs", value) for value in ("ef" * 31,)],
    *[("task with all that is asked", "asks.encoded.margin", value) for value in (1 << 32, (1 << 32) + 1)],
    *[("task to discover prefixes", "asks.question.prefixes", value) for value in ([], ["a" * 1001], [7])],
    *[("task to discover prefixes", "asks.question.depth", value) for value in (1, 2, 1000, 1001)],
    *[("task to discover prefixes", "asks.question.alphabet", value) for value in ("", "áñ¿")],
    *[("task to discover prefixes", "asks.question.about", value) for value in ("words", "songs", NOTHING)],
    *[("task to discover words", "asks.question.words", value) for value in ([], ["dos", "dos"])],
    *[("task to discover words", "asks.reports.local_epsilon", value) for value in (0, 700, 701)],
    *[("task to discover words", "asks.reports.sampler", value) for value in ("random", "best")],
    *[("task to evaluate", "asks.cells", value) for value in ([], [1], [2])],
    *[("task to personalize", "asks.policies", value) for value in (None, [])],
    *[("task to personalize", "asks.policies", [{"name": "p", "cuts": [], "rules": each}]) for each in ([], [None])],
    *[("task to count sums", "asks.norms", value) for value in ([0, 1], [1, 2])],
    *[("head", "size", value) for value in (1, 0, -1)],
    *[("log", "entries", [value]) for value in ("plan " + "AB" * 32, "PLAN " + "12" * 32, "plan " + "12" * 31)],
    *[("log", "entries", [value]) for value in ("a-b 0123456789 " + "12" * 32, "a 01234567890 " + "12" * 32)],
    *[("log", "entries", [value]) for value in ("plan  " + "12" * 32, "plan " + "12" * 32 + "\n", " " + "12" * 32)],
    ("log", "entries", []),
    *[("proof", "path", ["12" * 32] * times) for times in (0, 17, 18)],
    *[("rotation", "new", value) for value in (SMALL, "ee" + "ff" * 30 + "7f", "EE" * 32)],
    *[("token key", "batch", value) for value in (0, 1, 100, 101)],
    *[("token key", "exponent", value) for value in (3, 65539, (1 << 32) - 1, 1 << 32)],
    *[("token key", "modulus", value) for value in ("ff" * 255,)],
    *[("token request", "code", value) for value in ("a" * 19, "a" * 200, "a" * 201, "a" * 19 + " ")],
    *[("token request", "blinded", value) for value in ([], ["01" * 255])],
    *[("receipt", "received", value) for value in (False, 1, "true", None, NOTHING)],
    *[("problem", "type", value) for value in ("tacit:new-one", "late", "about:blank", "tacit:", "tacit:Late")],
    *[("problem", "status", value) for value in (399, 400, 599, 600, "410")],
    *[("problem", "detail", value) for value in ("", "a" * 2000, "a" * 2001)],
]
CRITICAL: list[tuple[str, str, Any]] = [
    *[("check-in", "critical", value) for value in ([], ["later"], ["version"], ["critical"], "later", [7], None)],
    *[("check-in", "critical", value) for value in ([""], ["k" * 101], [f"key-{number}" for number in range(33)])],
    ("plan", "separation.critical", ["weekdays"]),
    ("plan", "separation.critical", []),
    ("plan", "privacy.critical", ["kind"]),
    ("task", "asks.client.critical", ["dropout"]),
    ("log", "head.critical", ["date"]),
    ("receipt", "critical", ["received"]),
]
UNKNOWN: list[tuple[str, str, Any]] = [
    ("check-in", "later", {"a": [1, 2, {"critical": ["b"], "b": 1}]}),
    ("plan", "privacy.later", None),
    ("plan", "separation.weekdays", [6, 7]),
    ("task", "asks.client.dropout", 0.5),
    ("task", "content.critical_path", "critical"),
    ("task to discover words", "asks.question.prefixes", "ignored: of another question"),
    ("receipt", "", "a key without letters"),
    ("problem", "instance", "/x"),
    ("assignment", "after_s", "ignored: of the other answer"),
]


def changed(said: Any, place: str, value: Any) -> Any:
    """A copy with another value at a place, keys with dots between; or without the key."""
    found = copy.deepcopy(said)
    *path, last = place.split(".")
    at = found
    for key in path:
        at = at[key]
    if value is NOTHING:
        del at[last]
    else:
        at[last] = value
    return found


def _decided(name: str, kind: str, text: str, **more: Any) -> Case:
    said = {"kind": kind, "text": text, **more}
    why = reason(kind, text_in(said))
    if why is None:
        return case(name, RULE, **said, accepted=True, means=meaning(read(kind, text_in(said))))
    return case(name, RULE, **said, accepted=False, reason=why)


def _written(examples: Mapping[str, tuple[str, Any]]) -> list[Case]:
    """Texts of one meaning that are written in several ways, and texts that are no document at all."""
    kind, said = examples["check-in"]
    text, back = json.dumps(said), json.dumps(examples["come back"][1])
    later = text[:-1] + ', "later": '

    def nested(depth: int) -> str:
        return later + "[" * depth + "]" * depth + "}"

    texts = {
        "spaces and another order": '\n{ "token" :null,"versions":{ "train":1 } , "version":2,"population" : "es" }\t',
        "escapes": '{"\\u0076ersion": 2, "population": "e\\u0073", "versions": {"train": 1}, "token": null}',
        "a key twice": text[:-1] + ', "version": 2}',
        "a key twice, once in escapes": text[:-1] + ', "\\u0076ersion": 2}',
        "an unknown key twice": text[:-1] + ', "later": 1, "later": 1}',
        "a key twice within an unknown one": text[:-1] + ', "later": [{"a": 1, "a": 2}]}',
        "a key twice within a known one": text.replace('"train": 1', '"train": 1, "train": 1'),
        "NaN in an unknown key": text[:-1] + ', "later": NaN}',
        "an infinity in an unknown key": text[:-1] + ', "later": -Infinity}',
        "a number beyond all in an unknown key": text[:-1] + ', "later": 1e999}',
        "a number that is almost nothing": text[:-1] + ', "later": 1e-999}',
        "lists nested 64 deep in the object": nested(64),
        "lists nested 65 deep in the object": nested(65),
        "lists side by side": later + "[" + "[]," * 200 + "[]]}",
        "a number of 300 digits": later + "9" * 300 + "}",
        "a number of 301 digits": later + "9" * 301 + "}",
        "half of a pair of surrogates": later + '"\\ud800"}',
        "half of a pair of surrogates in a key": text[:-1] + ', "\\udc00": 1}',
        "a pair of surrogates": later + '"\\ud83d\\ude00"}',
        "a character of four bytes": later + '"\U0001f600"}',
        "a zero character in escapes": later + '"\\u0000"}',
        "a key that objects of some languages have": text[:-1] + ', "__proto__": {"version": 3}, "constructor": 1}',
        "a known key in the prototype alone": '{"__proto__": ' + text + "}",
        "keys that differ in case": text.replace('"version"', '"Version"'),
        "a whole number with a fraction": text.replace('"version": 2', '"version": 2.0'),
        "a whole number with an exponent": text.replace('"version": 2', '"version": 2e0'),
        "a string of 400 digits": text[:-1] + ', "later": "' + "9" * 400 + '"}',
        "a fraction of 400 digits": text[:-1] + ', "later": 0.' + "9" * 400 + "}",
        "nothing": "",
        "null": "null",
        "a list": f"[{text}]",
        "two documents": text + text,
        "cut off": text[:-1],
        "a comma at the end": text[:-1] + ",}",
        "single quotes": text.replace('"', "'"),
        "a comment": "/* */" + text,
        "a number with a plus": text.replace('"version": 2', '"version": +2'),
        "a number with a zero before it": text.replace('"version": 2', '"version": 02'),
        "a tab in a string": text.replace('"es"', '"e\ts"'),
        "a mark of byte order": "\ufeff" + text,
    }
    found = [_decided(f"written: {name}", kind, each) for name, each in texts.items()]
    answers = {
        "an exponent": back.replace("12.5", "1.25e1"),
        "an integer where a real one is expected": back.replace("12.5", "12"),
        "minus nothing": back.replace("12.5", "-0.0"),
        "a real number that rounds to an infinity": back.replace("12.5", "1e309"),
        "NaN": back.replace("12.5", "NaN"),
        "a whole number of an exponent": back.replace("12.5", "1e3"),
    }
    found += [_decided(f"written: {name}", "Answer", each) for name, each in answers.items()]
    for name, broken in {"no UTF-8": b"\xff", "UTF-16": None, "half of a character": b"\xc3"}.items():
        data = text.encode("utf-16") if broken is None else text.encode().replace(b"es", b"e" + broken)
        why = reason(kind, data)
        assert why is not None
        found.append(case(f"written: {name}", RULE, kind=kind, bytes=data.hex(), accepted=False, reason=why))
    return found


def _long(examples: Mapping[str, tuple[str, Any]]) -> list[Case]:
    """Texts that are too long to be written here."""
    plan, recipe, detail = examples["plan"][1], 1 << 18, changed(examples["problem"][1], "detail", "@")
    found = []
    for name, kind, said, plus, times in (
        ("a recipe as long as it may be", "Plan", changed(plan, "recipe", "@"), "a", recipe),
        ("a recipe that is longer", "Plan", changed(plan, "recipe", "@"), "a", recipe + 1),
        ("a document as long as it may be", "Signed", {**SIGNED, "document": "@"}, "a", 1 << 21),
        ("a document that is longer", "Signed", {**SIGNED, "document": "@"}, "a", (1 << 21) + 1),
        ("a text as long as it may be, counted in characters", "Problem", detail, "\U0001f600", 2000),
        ("a text that is longer", "Problem", detail, "\U0001f600", 2001),
        ("evidence that is longer", "SignedPlan", {**SIGNED, "evidence": "@"}, "ab", 20_001),
    ):
        text = json.dumps(said)
        why = reason(kind, text_in({"text": text, "plus": plus, "times": times}))
        decided = {"accepted": True} if why is None else {"accepted": False, "reason": why}
        found.append(case(f"long: {name}", RULE, kind=kind, text=text, plus=plus, times=times, **decided))
    return found


def file() -> dict[str, Any]:
    """The content of `documents.json`."""
    examples, cases = _examples(), []
    for name, (kind, said) in examples.items():
        cases.append(_decided(name, kind, json.dumps(said)))
    for title, changes in (("", CHANGES), ("", CRITICAL), ("unknown key: ", UNKNOWN)):
        for name, place, value in changes:
            kind, said = examples[name]
            shown = "left out" if value is NOTHING else json.dumps(value)
            shown = shown if len(shown) <= 40 else f"{shown[:24]}... of {len(shown)} characters"
            cases.append(_decided(f"{title}{name}: {place} {shown}", kind, json.dumps(changed(said, place, value))))
    cases += _written(examples) + _long(examples)
    return file_of(ABOUT, cases)


def check(each: Case) -> None:
    """That this program decides a case of the file as it says."""
    text = text_in(each)
    try:
        found = read(each["kind"], text)
    except InputError:
        assert not each["accepted"], each["name"]
        assert reason(each["kind"], text) == each["reason"], each["name"]
        return
    assert each["accepted"], each["name"]
    if "means" in each:
        assert meaning(found) == each["means"], each["name"]
