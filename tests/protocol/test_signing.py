"""One form, one digest, one signature, of one kind of document."""

import json
import math
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.server.documents import ASSIGNMENT, a_plan, a_task

from tacit.errors import InputError
from tacit.protocol import signing
from tacit.protocol.code_digest import code_digest
from tacit.protocol.fields import Document
from tacit.protocol.messages import RoundTask, SignedPlan, SignedReceipt, SignedTask
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import canonical, canonical_json, digest, is_signed

# RFC 8785, appendix B: IEEE 754 double precision bits and ECMAScript's text.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), NUMBERS)
def test_numbers_of_rfc_8785(bits: str, text: str) -> None:
    value = struct.unpack(">d", bytes.fromhex(bits))[0]
    assert canonical_json(value) == text.encode()


def test_text_and_order_of_rfc_8785() -> None:
    """Sections 3.2.2 and 3.2.3: escapes, and the order of keys by UTF-16 code units."""
    value = {"numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]}
    value |= {"string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/", "literals": [None, True, False]}
    assert canonical_json(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    keys = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(canonical_json(keys)).values()) == [2, 4, 6, 7, 1, 5, 3]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_back_as_it_was(value: float) -> None:
    text = canonical_json(value).decode()
    assert float(text) == value and text == canonical_json(float(text)).decode()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("abcé€"), inner),
    )
)
def test_the_form_says_the_value_and_has_one_order(value: object) -> None:
    written = canonical_json(value)
    assert json.loads(written) == value
    assert written == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53 + 1, "\ud800", {1: 2}, b"bytes"], ids=repr)
def test_what_has_no_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        canonical_json(value)


def test_the_form_of_what_was_received_is_that_of_what_was_sent() -> None:
    task = a_task(encoded=True, asked=True)
    received = json.loads(task.model_dump_json())  # by a device in another language, which has no class for it
    assert canonical_json(received) == canonical(task)
    assert digest(RoundTask.model_validate_json(canonical(task))) == digest(task)


def test_a_signature_is_of_one_document_of_one_kind_by_one_operator() -> None:
    key, other = OperatorKey(bytes(32)), OperatorKey(b"\1" * 32)
    signed = [key.plan(a_plan()), key.task(a_task()), key.receipt(ASSIGNMENT, "ab" * 32)]
    assert all(is_signed(each, key.public) and not is_signed(each, other.public) for each in signed)
    assert not is_signed(SignedTask(task=a_task(round=4), signature=signed[1].signature), key.public)
    for purpose in ("plan", "receipt"):
        confused = key.signature(purpose, a_task())  # type: ignore[arg-type]
        assert not is_signed(SignedTask(task=a_task(), signature=confused), key.public)
    assert isinstance(signed[0], SignedPlan) and isinstance(signed[2], SignedReceipt)
    assert key.receipt(ASSIGNMENT, "ab" * 32) == signed[2]


def test_the_signature_is_ed25519_of_purpose_and_form() -> None:
    """RFC 8032, section 7.1, test 1, has this secret key and this public one; the message is as the protocol says."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    key = OperatorKey(bytes.fromhex(secret))
    assert key.public == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    message = (
        b"tacit task v1\0" + json.dumps(json.loads(canonical(a_task())), sort_keys=True, separators=(",", ":")).encode()
    )
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.public)).verify(
        bytes.fromhex(key.task(a_task()).signature), message
    )


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


def test_the_digest_of_the_code_is_what_a_stranger_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(signing.__file__).parent.parent
    command = "{ echo version $0; find . -name '*.py' | cut -c3- | LC_ALL=C sort | xargs sha256sum; } | sha256sum"
    import tacit

    shell = subprocess.run(["bash", "-c", command, tacit.__version__], cwd=folder, capture_output=True, check=True)
    assert shell.stdout.split()[0].decode() == code_digest()


def test_no_document_is_written_without_its_keys() -> None:
    """Defaults would be missing from what a stranger signs; only the word that tells answers apart has one."""

    def with_defaults(cls: type[Document]) -> set[str]:
        found = {f"{cls.__name__}.{name}" for name, field in cls.model_fields.items() if not field.is_required()}
        return found.union(*map(with_defaults, cls.__subclasses__()))

    assert with_defaults(Document) == {"ComeBack.answer", "Assignment.answer"}
