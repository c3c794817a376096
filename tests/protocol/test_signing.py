"""One text, one digest, one signature, of one kind of document."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.server.documents import ASSIGNMENT, a_plan, a_task

from tacit.code_digest import DEVICE_ROOMS, build_digest, code_digest
from tacit.errors import InputError
from tacit.protocol import signing
from tacit.protocol.messages import Plan, Receipt, RoundTask, Signed
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest, is_signed

KEY = OperatorKey(bytes(32))
SIGNED = {
    Plan: KEY.plan(a_plan().to_json()),
    RoundTask: KEY.signed(a_task(encoded=True, asked=True)),
    Receipt: KEY.receipt(ASSIGNMENT, "ab" * 32),
}


def test_a_signature_is_of_one_text_of_one_kind_by_one_operator() -> None:
    other = OperatorKey(b"\1" * 32)
    for kind, signed in SIGNED.items():
        assert [each for each in SIGNED if is_signed(each, signed, KEY.public)] == [kind]
        assert not is_signed(kind, signed, other.public)
    task = SIGNED[RoundTask]
    assert not is_signed(RoundTask, Signed(document=a_task(round=4).to_json(), signature=task.signature), KEY.public)
    assert KEY.receipt(ASSIGNMENT, "ab" * 32) == SIGNED[Receipt]


@given(data=st.data(), kind=st.sampled_from(sorted(SIGNED, key=lambda each: each.__name__)))
def test_no_byte_of_a_signed_text_may_be_another(data: st.DataObject, kind: type[Plan]) -> None:
    signed = SIGNED[kind]
    content = bytearray(signed.document.encode())
    at, bit = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 6))  # ASCII stays ASCII
    content[at] ^= 1 << bit
    changed = signed.model_copy(update={"document": content.decode()})
    assert not is_signed(kind, changed, KEY.public) and digest(changed.document) != digest(signed.document)


@given(data=st.data(), indent=st.sampled_from([None, 1, 3]), ascii=st.booleans())
def test_texts_of_one_meaning_are_different_texts(data: st.DataObject, indent: int | None, ascii: bool) -> None:
    """Nobody signs what a text means: spaces, order and escapes count, and a reader takes each text as it is."""
    text = SIGNED[RoundTask].document
    order = data.draw(st.permutations(list(json.loads(text))))
    written = json.dumps({key: json.loads(text)[key] for key in order}, indent=indent, ensure_ascii=ascii)
    assert RoundTask.from_json(written) == RoundTask.from_json(text)
    same = written == text
    assert (digest(written) == digest(text)) is same
    assert is_signed(RoundTask, SIGNED[RoundTask].model_copy(update={"document": written}), KEY.public) is same


def test_what_crosses_inside_another_document_is_the_text_that_was_signed() -> None:
    text = '{"assignment" : "' + ASSIGNMENT + '", "sha256":"' + "ab" * 32 + '",  "received":true, "más": "\\u20ac\\n"}'
    signed = Signed(document=text, signature=KEY.signature("receipt", text))
    came = Signed.from_json(json.dumps(json.loads(signed.to_json()), indent=2))  # on its way it was written anew
    assert (
        came.document == text and is_signed(Receipt, came, KEY.public) and came.read(Receipt).assignment == ASSIGNMENT
    )


def test_the_signature_is_ed25519_of_purpose_and_text() -> None:
    """RFC 8032, section 7.1, test 1, has this secret key and this public one; the message is as the protocol says."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    key = OperatorKey(bytes.fromhex(secret))
    assert key.public == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    signed = key.signed(a_task())
    message = b"tacit task v2\0" + signed.document.encode()
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.public)).verify(bytes.fromhex(signed.signature), message)


def test_a_key_is_kept_in_a_file_that_its_owner_alone_may_read(tmp_path: Path) -> None:
    file = tmp_path / "server" / "operator.key"
    made = OperatorKey.in_file(file)
    assert OperatorKey.in_file(file).public == made.public and file.stat().st_mode & 0o077 == 0
    file.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        OperatorKey.in_file(file)
    file.chmod(0o600)
    file.write_text("zz")
    with pytest.raises(InputError, match="is no operator's key"):
        OperatorKey.in_file(file)


@pytest.mark.parametrize(("rooms", "found"), [(" ".join(DEVICE_ROOMS), code_digest), (".", build_digest)])
def test_the_digest_of_the_code_is_what_a_stranger_computes(rooms: str, found: object) -> None:
    folder = Path(signing.__file__).parent.parent
    listed = f"find {rooms} -name '*.py' | sed 's|^[.]/||' | LC_ALL=C sort"
    shell = subprocess.run(
        ["bash", "-c", f"{listed} | xargs sha256sum | sha256sum"], cwd=folder, capture_output=True, check=True
    )
    assert callable(found) and shell.stdout.split()[0].decode() == found()
