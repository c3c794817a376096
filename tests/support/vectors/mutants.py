"""Hostile plans, tasks, logs, models and servers, one change each, that no device follows, whoever wrote it."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from tests.support.vectors import mutants_of_counts, mutants_of_sums, mutants_of_tokens
from tests.support.vectors.case import Case, file_of
from tests.support.vectors.changes import (
    CHECKS,
    DOCUMENTS,
    LOG,
    OWN,
    SHAPE,
    TOO_CHEAP,
    Change,
    Said,
    made,
    of_each_place,
)
from tests.support.vectors.mutants_of_counts import NETWORK, WORDS
from tests.support.vectors.prices import training_plan
from tests.support.vectors.scripted_turn import CODE, NOON, Scripted, Steps, Text, Trainer, driven, standing
from tests.support.vectors.signed import KEYS, OTHER, OURS
from tests.support.vectors.turns import HOUR, MEMORY, MODEL, NO_CONTENT, a_task, problem

from tacit.device.own_handlers import task_handlers
from tacit.privacy.encoding_choice import encoding_within
from tacit.protocol.log_proofs import leaf_of, root_of
from tacit.protocol.messages import RoundTask
from tacit.protocol.one_message_shape import seed_of
from tacit.protocol.requests import Ask
from tacit.protocol.served_bodies import model_body
from tacit.protocol.signing import digest

PLACE, SPLIT = "3d" * 16, "time:0.8"
ABOUT = (
    "A device of `population` with the `words`, new, by the default policy but for the `split` that keeps text to "
    "judge models by, at `now`. It has the code of the `network`. An operator with the private key gives it a place: a "
    "signed task, then the signed plan, the log, the content, all of `bases`. The plan's SHA-256 is the task's `plan` "
    "and stands in the log. Where a base has `settings`, the task's `sealed` is their fields in order, each behind its "
    "length; in them PLAN is the plan's SHA-256, and SEED the seed of the base's task. Each case changes one thing "
    "before that is signed. `in` says what: plan, task, settings, log (its `lines`, in which PLAN is that SHA-256), "
    "head, or content (its hexadecimal digits). `set` has new values by their path, `remove` paths, `behind` a path "
    "and what is added to its text, `replace` a piece of the whole text (no spaces between its signs) and what stands "
    "there instead, `by` who signs instead. The device ends its turn with `what`, gives its place back, has read no "
    "text, and has written no participation. To a base with a `key` the operator answers instead that a token is "
    "needed, and shows this key, whose SHA-256 is KEY in the log's `lines`: the device, whose enrolment code is "
    "`code`, asks for no tokens."
)


def compact(said: Any) -> str:
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def bases() -> dict[str, Said]:
    """What a device follows as it is."""
    plain, _ = training_plan({"name": "independent"}, rounds=40, apart=5)
    encoded, _ = training_plan({"name": "independent"}, rounds=40, apart=5, encoded={"kind": "secure"})
    encoding = encoding_within(4, 0.2, 6)
    names = ("parameters", "dimension", "clip_norm", "scale", "report_goal", "sigmas", "margin", "margin_each")
    numbers = {name: getattr(encoding, name) for name in names}
    asks = {"encoded": {**numbers, "signs": "ef" * 32, "length": encoding.dimension + 1, "threshold": 3}}
    found = {
        name: {
            "plan": json.loads(plan.to_json()),
            "task": json.loads(a_task(plan, asks=more).to_json()),
            "content": MODEL.hex(),
        }
        for name, plan, more in (("plain", plain, {}), ("encoded", encoded, asks))
    }
    found |= mutants_of_sums.bases(MODEL) | mutants_of_counts.bases()
    found["enrolled"] = mutants_of_tokens.base(found["plain"])
    for base in found.values():
        base["plan"]["vocabulary"] = WORDS.sha256
    return found


# -- one change --------------------------------------------------------------------------------------------------------


def patched(said: Any, each: Case, what: str) -> Any:
    """A document, with the change of a case where it is of this one."""
    if each["in"] != what:
        return said
    found = json.loads(json.dumps(said))
    for path, value in each.get("set", {}).items():
        place, last = _inside(found, path)
        place[last] = value
    for path in each.get("remove", ()):
        place, last = _inside(found, path)
        del place[last]
    if "behind" in each:
        path, more = each["behind"]
        place, last = _inside(found, path)
        place[last] += more
    return found


def _inside(said: Any, path: str) -> tuple[Any, str]:
    *inner, last = path.split(".")
    for name in inner:
        said = said[name]
    return said, last


def changed(said: Any, each: Case, what: str) -> str:
    """The text of a document, with that change."""
    text = compact(patched(said, each, what))
    if "replace" in each and each["in"] == what:
        old, new = each["replace"]
        assert text.count(old) == 1, (each["name"], old)
        text = text.replace(old, new)
    return text


def sealed_digits(base: Said, each: Case, plan: str) -> str:
    """The settings of a task's sealed round. plan: the plan's SHA-256."""
    task = RoundTask.from_json(compact({**base["task"], "plan": plan}))
    known = {"PLAN": plan, "SEED": seed_of(task).hex()}
    found = b""
    for value in patched(base["settings"], each, "settings").values():
        content = bytes.fromhex(known.get(value[:4], value[:4]) + value[4:])
        found += len(content).to_bytes(4, "little") + content
    return found.hex()


@dataclass
class Server:
    """Answers what the bases and a case say."""

    base: Said
    each: Case

    def signed(self, purpose: Any, text: str, *, of: str | None = None) -> Said:
        other = self.each.get("by") == "another" and self.each["in"] == (of or purpose)
        return {"document": text, "signature": (OTHER if other else OURS).signature(purpose, text)}

    def __call__(self, ask: Ask) -> Scripted:
        """By the path alone; nothing else is known here."""
        base, each, path = self.base, self.each, ask.path
        plan = changed(base["plan"], each, "plan")
        content = bytes.fromhex(each["set"]["content"] if each["in"] == "content" else base["content"])
        key = changed(base.get("key"), each, "key")
        if path == "/v1/check-in":
            if "key" in base:
                return problem("token")
            sha256 = hashlib.sha256(content).hexdigest()
            named = {"sha256": sha256, "bytes": len(content), "path": f"/v1/models/{sha256}"}
            sealed = sealed_digits(base, each, digest(plan)) if "settings" in base else None
            said = {**base["task"], "plan": digest(plan), "content": named, "sealed": sealed}
            task = changed(said, each, "task")
            given = {"answer": "assignment", "assignment": PLACE, "secret": "78" * 32}
            return _answer(compact({**given, "signed_task": self.signed("task", task)}))
        if path == "/v1/tokens/key":
            return _answer(compact(self.signed("token-key", key, of="key")))
        if path.startswith("/v1/plans/"):
            return _answer(compact({**self.signed("plan", plan), "evidence": None}))
        if path == "/v1/log":
            given = each["set"]["lines"] if each["in"] == "log" else base.get("lines", ["plan PLAN"])
            lines = [line.replace("PLAN", digest(plan)).replace("KEY", digest(key)) for line in given]
            head = {"size": len(lines), "root": root_of(map(leaf_of, lines)).hex()}
            return _answer(compact({"head": self.signed("head", changed(head, each, "head")), "entries": lines}))
        if path.startswith("/v1/models/"):
            return Scripted(200, content)
        return NO_CONTENT if ask.method == "DELETE" else problem("not-found")


def _answer(text: str) -> Scripted:
    return Scripted(200, text.encode())


@dataclass
class Typed(Text):
    """Text that cannot be read: whoever asks for it is found out."""

    words: int = WORDS.size
    vocabulary: str = WORDS.sha256
    vocabulary_json: str = field(default=WORDS.to_json(), repr=False)
    read: bool = False

    def check_judges(self) -> None:
        """Its owner keeps some."""

    def check_spelling(self) -> None:
        """Its words are at hand."""

    def unknown_words(self, known: object) -> NoReturn:
        """Of its words."""
        self._is_read()

    @property
    def whole(self) -> NoReturn:
        """All of it."""
        self._is_read()

    @property
    def judging(self) -> NoReturn:
        """What is kept."""
        self._is_read()

    def _is_read(self) -> NoReturn:
        self.read = True
        raise RuntimeError("the text cannot be read")


def check(each: Case, bases: Mapping[str, Said]) -> None:
    """That this program refuses a case before it reads text, and remembers no participation."""
    outcome, asked, kept, read = _played(each, bases)
    assert outcome is not None and outcome.what == each["what"], (each["name"], str(outcome))
    assert not read and not kept, each["name"]
    assert not any(path.startswith("POST /v1/reports") for path in asked), each["name"]
    if "key" in bases[each["base"]]:
        assert asked[:2] == ["POST /v1/check-in", "GET /v1/tokens/key"] and "POST /v1/tokens" not in asked, each["name"]
    else:
        assert f"DELETE /v1/reports/{PLACE}" in asked, (each["name"], asked)


def check_base(base: str, bases: Mapping[str, Said]) -> None:
    """That this program follows what no case has changed."""
    outcome, asked, kept, read = _played({"name": base, "base": base, "in": "nothing"}, bases)
    if "key" in bases[base]:
        assert outcome is not None and outcome.what == "unanswered" and asked[-1] == "POST /v1/tokens", str(outcome)
        return
    assert outcome is not None and outcome.what == "lost" and read and len(kept) == 1, (base, str(outcome))
    assert f"POST /v1/reports/{PLACE}" in asked


def _played(each: Case, bases: Mapping[str, Said]) -> tuple[Any, list[str], list[Any], bool]:
    """(what the turn comes to, what was asked, the participations, whether text was read)"""
    steps, trainer, text = Steps(), Trainer("fails"), Typed()
    typed: Any = text
    handlers, policy = task_handlers(typed, trainer), {"split": SPLIT}
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        folder, server = Path(place), Server(bases[each["base"]], each)
        outcome = driven(
            folder,
            server,
            steps,
            now=NOON,
            key=OURS.public,
            policy=policy,
            handlers=handlers,
            code=CODE,
            draw=os.urandom,
        )
        kept = standing(folder, NOON, policy)["participations"]
    asked = [f"{step['ask']['method']} {step['ask']['path']}" for step in steps.said if "ask" in step]
    return outcome, asked, kept, text.read or trainer.read


# -- the table ---------------------------------------------------------------------------------------------------------

RECIPE = '[rounds]\nrounds = 40\nreport_goal = 6\n\n[privacy.mechanism]\nname = "independent"\n'
PLAN_CHANGES: tuple[Change, ...] = (
    ("claims less zCDP than its numbers give", TOO_CHEAP, {"set": {"privacy.zcdp": 0.111}}),
    ("claims a smaller epsilon", TOO_CHEAP, {"set": {"privacy.epsilon": 2.11}}),
    ("claims the epsilon of a larger delta", TOO_CHEAP, {"set": {"privacy.delta": 1e-7}}),
    ("adds less noise than it claims", TOO_CHEAP, {"set": {"privacy.noise_multiplier": 5.9}}),
    ("adds no noise", TOO_CHEAP, {"set": {"privacy.noise_multiplier": 0}}),
    ("lets devices come more often", TOO_CHEAP, {"set": {"separation.rounds": 4}}),
    ("promises nothing", "a plan promises something", {"set": {"privacy.zcdp": None, "privacy.epsilon": None}}),
    ("claims a zCDP of nobody's policy", "the owner's policy", {"set": {"privacy.zcdp": 2.1, "privacy.epsilon": 99}}),
    ("claims a delta of nobody's policy", "the owner's policy", {"set": {"privacy.delta": 1e-4}}),
    ("sums two reports", "it contradicts its own recipe", {"set": {"privacy.report_goal": 2}}),
    ("has one round fewer than its recipe", OWN, {"set": {"privacy.rounds": 39}}),
    ("has one round more than its recipe", OWN, {"set": {"privacy.rounds": 41}}),
    ("counts a larger cohort than its recipe", OWN, {"set": {"privacy.report_goal": 600}}),
    ("names another mechanism than its recipe", OWN, {"set": {"privacy.mechanism": "tree"}}),
    ("names a matrix that its mechanism has not", OWN, {"set": {"privacy.matrix": {"sha256": "ab" * 32, "bytes": 80}}}),
    ("encodes, and its recipe does not", OWN, {"set": {"aggregation.kind": "encoded"}}),
    ("seals, and its recipe does not", OWN, {"set": {"aggregation.kind": "sealed"}}),
    ("has a recipe that is no TOML", "the recipe cannot be read", {"set": {"recipe": "name ="}}),
    ("has an empty recipe", "the recipe cannot be read", {"set": {"recipe": ""}}),
    ("has a recipe with a key twice", "the recipe cannot be read", {"set": {"recipe": RECIPE + 'name = "tree"\n'}}),
    ("has a recipe with a seed", "everybody could draw the noise", {"set": {"recipe": RECIPE + "[run]\nseed = 7\n"}}),
    ("has a recipe with a seed of 0", "everybody could draw it", {"set": {"recipe": RECIPE + "[run]\nseed = 0\n"}}),
    ("has a mechanism with a strange key", "its cost is unknown", {"set": {"recipe": RECIPE + "luck = 7\n"}}),
    ("has code of anybody's as its mechanism", "its cost is unknown", {
        "set": {"recipe": RECIPE.replace("independent", "os:system"), "privacy.mechanism": "os:system"}}),
    ("has a mechanism still to be designed", "its cost is unknown", {
        "set": {"recipe": RECIPE.replace("independent", "blt"), "privacy.mechanism": "blt"}}),
    ("has a million rounds", "no device reckons with so many", {
        "set": {"recipe": RECIPE.replace("= 40", "= 1000000"), "privacy.rounds": 1_000_000}}),
    ("clips the loss in its recipe alone", OWN, {"set": {"recipe": RECIPE + "[training_loss]\nbound = 4.0\n"}}),
    ("has no separation at all", TOO_CHEAP, {"set": {"separation.rounds": None}}),
    ("has a clip norm of nobody's policy", "the owner's policy", {"set": {"privacy.clip_norm": 101}}),
    ("is of a later version", "its version is unknown", {"set": {"version": 3}}),
    ("is of an earlier version", "its version is unknown", {"set": {"version": 1}}),
    ("is of another population", "it is for others", {"set": {"population": "en"}}),
    ("is about other words", "it is for others", {"set": {"vocabulary": "ab" * 32}}),
    ("is to dance", "its kind is unknown", {"set": {"kind": "dance"}}),
    ("is to evaluate, with a training's privacy", OWN, {"set": {"kind": "evaluate"}}),
    ("wants an attested device", "it cannot be shown", {"set": {"attestation.devices": "tpm"}}),
    ("has an attested server", "it cannot be checked", {"set": {"attestation.server": "tpm"}}),
    ("has an unknown critical key", "it must not be ignored", {"set": {"weekdays": [6], "critical": ["weekdays"]}}),
    ("has a critical key inside", "it must not be ignored", {
        "set": {"separation.weekdays": [6], "separation.critical": ["weekdays"]}}),
    ("has a key twice", SHAPE, {"replace": ['"population":"es"', '"population":"en","population":"es"']}),
    ("has a key twice inside", SHAPE, {"replace": ['"threshold":2', '"threshold":1,"threshold":2']}),
    ("has NaN for a number", SHAPE, {"replace": ['"max_participations":null', '"max_participations":NaN']}),
    ("has Infinity for a number", SHAPE, {"replace": ['"timer_seconds":null', '"timer_seconds":Infinity']}),
    ("has a number beyond all numbers", SHAPE, {"replace": ['"timer_seconds":null', '"timer_seconds":1e999']}),
    ("has a comma too many", SHAPE, {"replace": ['"timer_seconds":null,', '"timer_seconds":null,,']}),
    ("has something behind it", SHAPE, {"replace": ['"enrolment":"none"}', '"enrolment":"none"}{}']}),
    ("has a lone surrogate", SHAPE, {"replace": ['"population":"es"', '"population":"\\ud800"']}),
    ("is signed by another", "the operator did not sign it", {"by": "another"}),
)  # fmt: skip
TASK_CHANGES: tuple[Change, ...] = (
    ("clips above its plan", "more would leave than is accounted", {"set": {"asks.clip_norm": 0.3}}),
    ("clips a little above its plan", "more would leave than is accounted", {"set": {"asks.clip_norm": 0.2001}}),
    ("clips below all digits", "float32 does not resolve it", {"set": {"asks.clip_norm": 1e-44}}),
    ("asks for a bit that its plan has not", "more would leave", {"set": {"asks.clip_estimate": 0.1}}),
    ("asks for the loss", "more would leave than is accounted", {"set": {"asks.loss_bound": 10}}),
    ("is beyond the plan's rounds", "the plan ends before", {"set": {"round": 40}}),
    ("is of another run", "it is not its plan's", {"set": {"run": "r2"}}),
    ("is of another plan", "it is not its plan's", {"set": {"plan": "ab" * 32}}),
    ("is over", "its time is over", {"set": {"opens": NOON - 2 * HOUR, "deadline": NOON - HOUR}}),
    ("ends now", "its time is over", {"set": {"opens": NOON - HOUR, "deadline": NOON}}),
    ("opens in eleven minutes", "no clock is so far ahead", {"set": {"opens": NOON + 660}}),
    ("opens tomorrow", "no clock is so far ahead", {"set": {"opens": NOON + 24 * HOUR, "deadline": NOON + 25 * HOUR}}),
    ("lasts a month", "the owner's policy", {"set": {"deadline": NOON + 700 * HOUR}}),
    ("ends before it opens", SHAPE, {"set": {"deadline": NOON - 1, "opens": NOON + 1}}),
    ("trains for ever", "no device works so long", {"set": {"asks.client.epochs": 10**9}}),
    ("trains on more than fits", "no device works so long", {
        "set": {"asks.client.sentences": 10**6, "asks.client.words": 10**6}}),
    ("is for another number of parameters", "the model has others", {"set": {"asks.parameters": 5}}),
    ("has a model of 101 MB", "the owner's policy", {"set": {"content.bytes": 101_000_000}}),
    ("has a model at another path", "a path is a digest", {"set": {"content.path": "/v1/models/" + "ab" * 32}}),
    ("has a model on another server", "a path is a digest", {"set": {"content.path": "https://example.org/"}}),
    ("has a model above its folder", "a path is a digest", {"set": {"content.path": "/v1/models/../key"}}),
    ("seals what its plan does not", "it is not as its plan says", {"set": {"sealed": "ab" * 40}}),
    ("is to evaluate", "it is not its plan's", {"set": {"asks": {
        "kind": "evaluate", "parameters": [4], "cells": [3], "local_epsilon": None}}}),
    ("is of an unknown kind", "its kind is unknown", {"set": {"asks.kind": "dance"}}),
    ("has an unknown precision", "its kind is unknown", {"set": {"asks.client.precision": "float8"}}),
    ("has a critical key", "it must not be ignored", {"set": {"asks.mode": 1, "asks.critical": ["mode"]}}),
    ("has a key twice", SHAPE, {"replace": ['"round":0', '"round":7,"round":0']}),
    ("has no number as its learning rate", SHAPE, {"replace": ['"learning_rate":0.5', '"learning_rate":NaN']}),
    ("is no object", SHAPE, {"replace": ['{"run":"r"', '[{"run":"r"']}),
    ("is signed by another", "the operator did not sign it", {"by": "another"}),
)  # fmt: skip
ENCODED_CHANGES: tuple[Change, ...] = (
    ("wants updates in the clear", "it is not as its plan says", {"set": {"asks.encoded": None}}),
    ("opens sums of fewer than its plan", "it is not as its plan says", {"set": {"asks.encoded.threshold": 2}}),
    ("encodes for another clip norm", "it encodes other updates", {"set": {"asks.encoded.clip_norm": 0.1}}),
    ("rounds more coarsely than its plan", "the update would be longer", {"set": {"asks.encoded.scale": 100}}),
    ("encodes other parameters", "it encodes other updates", {"set": {"asks.encoded.parameters": 5}}),
    ("has a dimension of no Hadamard matrix", "nothing rotates so", {"set": {"asks.encoded.dimension": 7}}),
    ("has fewer words than coordinates", "the report has others", {"set": {"asks.encoded.length": 3}}),
    ("has a word more", "the report has others", {"set": {"asks.encoded.length": 6}}),
    ("counts a cohort beyond its words", "the sum would overflow", {"set": {"asks.encoded.report_goal": 2**31}}),
    ("has signs that are short", SHAPE, {"set": {"asks.encoded.signs": "ef" * 31}}),
)
ENCODED_PLANS: tuple[Change, ...] = (
    ("opens the sum of one", "the owner's policy", {"set": {"aggregation.threshold": 1}}),
    ("is plain, and its recipe encodes", OWN, {"set": {"aggregation.kind": "plain"}}),
    ("lengthens updates more than it counts", TOO_CHEAP, {
        "replace": ['kind = \\"secure\\"', 'kind = \\"secure\\"\\ninflation = 2.0']}),
)  # fmt: skip
LOG_CHANGES: tuple[Change, ...] = (
    ("has not the plan", "others may have another plan", {"set": {"lines": ["plan " + "ab" * 32]}}),
    ("has the plan as another thing", "others may have another plan", {"set": {"lines": ["page PLAN"]}}),
    ("has the plan under another's", "others may have another plan", {"set": {"lines": ["plan " + "ab" * 32] * 2}}),
)
STRANGE_LOGS: tuple[Change, ...] = (
    ("has the plan within a line", SHAPE, {"set": {"lines": ["plan PLAN more"]}}),
    ("has an empty line", SHAPE, {"set": {"lines": ["plan PLAN", ""]}}),
)
HEAD_CHANGES: tuple[Change, ...] = (
    ("has another root", "it is of another log", {"set": {"root": "ab" * 32}}),
    ("has another size", "it is of another log", {"set": {"size": 2}}),
    ("has no size", SHAPE, {"remove": ["size"]}),
    ("is signed by another", "the operator did not sign it", {"by": "another"}),
)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
TENSOR = np.array([0.5, -0.5, 0.25, 0.0], np.float32)


def models() -> Iterator[Change]:
    """Of the task's digest: what is signed, and is no model that a device trains."""
    for value in NOT_FINITE:
        yield (
            f"has {value}",
            "a number that is none",
            {"set": {"content": model_body(np.where(TENSOR, TENSOR, value)).hex()}},
        )
    for count in (3, 5, 0):
        made = model_body(np.zeros(count, np.float32)).hex()
        yield f"has {count} numbers", "it is of another network", {"set": {"content": made}}
    for cut in (0, 7, 8, 40, len(MODEL) - 1):
        yield f"is cut after {cut} bytes", SHAPE, {"set": {"content": MODEL[:cut].hex()}}
    pieces = (
        (b"F32", b"F64"),
        (b"model", b"words"),
        (b"[4]", b"[2]"),
        (b"[4]", b"[9]"),
        (b"0,16", b"0,99"),
        (b"{", b"["),
    )
    for old, new in pieces:
        yield f"says {new.decode()}", SHAPE, {"set": {"content": MODEL.replace(old, new, 1).hex()}}
    yield "is longer than it says", SHAPE, {"set": {"content": (MODEL + b"\0\0\0\0").hex()}}
    yield "has a header of many GB", SHAPE, {"set": {"content": ((1 << 40).to_bytes(8, "little") + MODEL[8:]).hex()}}


def file() -> dict[str, Any]:
    """The content of `mutants.json`."""
    known = bases()
    plain, encoded = known["plain"], known["encoded"]
    own = [each for each in of_each_place(encoded["task"]) if "encoded" in each[0]]
    cases = [
        *made("plain", "plan", DOCUMENTS, of_each_place(plain["plan"])),
        *made("plain", "task", DOCUMENTS, of_each_place(plain["task"])),
        *made("encoded", "task", DOCUMENTS, own),
        *made("plain", "plan", CHECKS, PLAN_CHANGES),
        *made("plain", "task", CHECKS, TASK_CHANGES),
        *made("encoded", "task", CHECKS, ENCODED_CHANGES),
        *made("encoded", "plan", CHECKS, ENCODED_PLANS),
        *made("plain", "log", LOG, LOG_CHANGES),
        *made("plain", "log", LOG, STRANGE_LOGS, outcome="unanswered"),
        *made("plain", "head", LOG, HEAD_CHANGES),
        *made("plain", "content", CHECKS, models()),
        *mutants_of_sums.cases(),
        *mutants_of_counts.cases(known),
        *mutants_of_tokens.cases(),
    ]
    shared = {
        "population": "es",
        "words": WORDS.to_json(),
        "network": NETWORK,
        "split": SPLIT,
        "now": NOON,
        "keys": KEYS,
    }
    shared |= {"code": CODE, "bases": known}
    return file_of(ABOUT, cases, **shared)
