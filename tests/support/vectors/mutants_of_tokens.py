"""Hostile keys of tokens: what an operator answers to a device that it enrolled, and has to show a token."""

import json

from tests.support.vectors.case import Case
from tests.support.vectors.changes import DOCUMENTS, LOG, SHAPE, Change, Said, made, of_each_place
from tests.support.vectors.tokens import EPOCH, RULE, token_key

KEY: Said = json.loads(token_key())
OURS = f"token-key {EPOCH} KEY"
APART, NO_KEY = "it could tell this device from others", "nobody can ask for tokens by it"


def base(plain: Said) -> Said:
    """What a device follows as it is, until it asks for tokens. plain: the base of its plan."""
    return {**plain, "key": KEY, "lines": [OURS]}


KEYS: tuple[Change, ...] = (
    ("is signed by another", "the operator did not sign it", {"by": "another"}),
    ("is of another epoch than the log's", APART, {"set": {"epoch": EPOCH + 1}}),
    ("has an even modulus", NO_KEY, {"set": {"modulus": KEY["modulus"][:-1] + "0"}}),
    ("has a modulus of no size", NO_KEY, {"set": {"modulus": f"{3:0512x}"}}),
    ("has a modulus of fewer bits", NO_KEY, {"set": {"modulus": "0" + KEY["modulus"][1:]}}),
    ("has a modulus of capital letters", SHAPE, {"set": {"modulus": KEY["modulus"].upper()}}),
    ("has a modulus of more digits", SHAPE, {"set": {"modulus": KEY["modulus"] + "01"}}),
    ("has a small exponent", SHAPE, {"set": {"exponent": 3}}),
    ("has an even exponent", NO_KEY, {"set": {"exponent": 65_538}}),
    ("has an exponent beyond its bits", SHAPE, {"set": {"exponent": 2**32}}),
    ("has no tokens", SHAPE, {"set": {"batch": 0}}),
    ("has 101 tokens", SHAPE, {"set": {"batch": 101}}),
    ("has a key twice", SHAPE, {"replace": ['"batch":3', '"batch":4,"batch":3']}),
)
LOGS: tuple[Change, ...] = (
    ("has not the key", APART, {"set": {"lines": ["plan " + "ab" * 32]}}),
    ("has the key as a plan", APART, {"set": {"lines": ["plan KEY"]}}),
    ("has another key", APART, {"set": {"lines": [f"token-key {EPOCH} " + "ab" * 32]}}),
    ("has two keys of the epoch", APART, {"set": {"lines": [OURS, f"token-key {EPOCH} " + "ab" * 32]}}),
    ("has the key twice", APART, {"set": {"lines": [OURS, OURS]}}),
    ("has the key under another epoch", APART, {"set": {"lines": [f"token-key {EPOCH + 1} KEY"]}}),
)


def cases() -> list[Case]:
    """Of the base here."""
    return [
        *made("enrolled", "key", DOCUMENTS, of_each_place(KEY)),
        *made("enrolled", "key", RULE, KEYS),
        *made("enrolled", "log", LOG, LOGS),
    ]
