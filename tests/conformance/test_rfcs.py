"""Vectors of standards: Merkle trees (RFC 9162), blind signatures (RFC 9474), JSON (RFC 8785)."""

import json
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tacit.errors import InputError
from tacit.parsing import parsed_json, strict_json
from tacit.protocol.blind_rsa import SALT_BYTES, Blinded
from tacit.protocol.log_proofs import is_included
from tacit.server.store.blind_signer import Signer

from .conftest import count

Vectors = Callable[[str], Path]


def test_proofs_of_inclusion(vectors: Vectors) -> None:
    """RFC 9162, section 2.1.3.2, and each way in which a proof may be none. github.com/transparency-dev/merkle."""
    files = sorted(vectors("merkle/testdata/inclusion").rglob("*.json"))
    count("merkle inclusion", len(files))
    other = [str(file) for file in files if not _holds(json.loads(file.read_text(encoding="utf-8")))]
    assert files and not other


def _holds(case: dict[str, Any]) -> bool:
    path = [b64decode(each) for each in case["proof"] or []]
    found = is_included(
        b64decode(case["leafHash"] or ""), case["leafIdx"], case["treeSize"], path, b64decode(case["root"] or "")
    )
    return found != case["wantErr"]


@cache
def signer_of(p: str, q: str, e: str, d: str) -> Signer:
    """A key of 4096 bits is checked for a quarter of a second."""
    of_p, of_q, public, private = (int(each, 16) for each in (p, q, e, d))
    residues = private % (of_p - 1), private % (of_q - 1), rsa.rsa_crt_iqmp(of_p, of_q)
    return Signer(
        rsa.RSAPrivateNumbers(of_p, of_q, private, *residues, rsa.RSAPublicNumbers(public, of_p * of_q)).private_key()
    )


def test_blind_signatures(vectors: Vectors) -> None:
    """github.com/cfrg/draft-irtf-cfrg-blind-signatures; a case without a salt is of a variant that is not used here."""
    cases = json.loads(vectors("draft-irtf-cfrg-blind-signatures/test_vectors.json").read_text(encoding="utf-8"))
    count("draft-irtf-cfrg-blind-signatures", len(cases))
    for case in cases:
        signer = signer_of(case["p"], case["q"], case["e"], case["d"])
        key = signer.public
        message, salt, inverse, sent, signed, signature = (
            bytes.fromhex(case[name]) for name in ("msg", "salt", "inv", "blinded_msg", "blind_sig", "sig")
        )
        assert signer.sign(sent) == signed
        assert key.is_signature(message, signature) == (len(salt) == SALT_BYTES)
        if len(salt) != SALT_BYTES:
            continue
        blind = pow(int.from_bytes(inverse, "big"), -1, key.n).to_bytes(key.size, "big")
        blinded = Blinded.from_prepared(key, message, draw={len(salt): salt, len(blind): blind}.__getitem__)
        assert (blinded.sent, blinded.finalize(signed)) == (sent, signature)
        with pytest.raises(InputError):
            blinded.finalize(bytes(key.size))


def test_json_is_read_as_its_canonical_form_is(vectors: Vectors) -> None:
    """RFC 8785. Nothing is written in that form here: what is signed is a text as it came. So both texts are read, the
    one that somebody wrote and the canonical one, to the same value. github.com/cyberphone/json-canonicalization.
    """
    files = sorted(vectors("json-canonicalization/testdata/input").glob("*.json"))
    count("json-canonicalization", len(files))
    for file in files:
        written, canonical = (file.parents[1].joinpath(each, file.name).read_bytes() for each in ("input", "output"))
        as_hex = file.parents[1].joinpath("outhex", f"{file.stem}.txt").read_text(encoding="ascii")
        assert bytes.fromhex(as_hex) == canonical
        for read in (parsed_json, strict_json):
            assert read(written) == read(canonical)
    assert files
