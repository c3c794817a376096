"""Whatever a file holds, reading it gives clients or one sentence that says why not, and never a traceback."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.formats.exports import EXPORTS

from tacit.data import ClientText, open_source
from tacit.data.clients import checked_clients
from tacit.errors import SourceError

NASTY = ["\x00", '"', "{", "[" * 2_000, "\n", "\r", ",", ":", "\\ud800", "NaN", "true", "null", "From ", "\nFrom x\n"]
MORE = [": ", "\u200e", "=?x?q?=", "-", "1e999", "9" * 5_000, "\ufeff"]
BITS = st.sampled_from([*(each.encode() for each in (*NASTY, *MORE)), b"\xff", b"\xed\xa0\x80"])
EDIT = st.tuples(st.integers(0, 2_000), st.integers(0, 60), st.one_of(BITS, st.binary(max_size=8)), st.booleans())


def edited(content: bytes, edits: list[tuple[int, int, bytes, bool]]) -> bytes:
    """Some bytes taken out and others put in, or all that follows taken out."""
    for at, length, put, cut in edits:
        at %= len(content) + 1
        content = content[:at] + put + (b"" if cut and length > 40 else content[at + length % 9 :])
    return content


def read(path: Path, kind: str, how: dict[str, str]) -> list[ClientText]:
    return list(checked_clients(open_source(f"{kind}:{path}", **how)))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EXPORTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(EDIT, min_size=1, max_size=3))
def test_it_is_read_or_refused(name: str, edits: list[tuple[int, int, bytes, bool]], tmp_path: Path) -> None:
    kind, file, content, how = EXPORTS[name]
    (tmp_path / file).write_bytes(edited(content, edits))
    try:
        clients = read(tmp_path / file, kind, how)
    except SourceError as error:
        assert str(error).isprintable() or "\n" not in str(error)
        return
    names = [client.client_id for client in clients]
    assert len(set(names)) == len(names) and all(names)
    for client in clients:
        client.client_id.encode()
        "".join(client.texts).encode()
        assert client.timestamps is None or len(client.timestamps) == len(client.texts)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_file_that_is_cut_anywhere_is_read_or_refused(name: str, tmp_path: Path) -> None:
    kind, file, content, how = EXPORTS[name]
    whole = len(b"".join(text.encode() for client in read_bytes(tmp_path, name) for text in client.texts))
    for end in range(0, len(content), max(1, len(content) // 97)):
        (tmp_path / file).write_bytes(content[:end])
        try:
            clients = read(tmp_path / file, kind, how)
        except SourceError:
            continue
        if kind not in ("mbox", "whatsapp"):  # HTML that is cut shows its tags, a cut line goes on with the one above
            assert len(b"".join(text.encode() for client in clients for text in client.texts)) <= whole


def read_bytes(folder: Path, name: str) -> list[ClientText]:
    kind, file, content, how = EXPORTS[name]
    (folder / file).write_bytes(content)
    return read(folder / file, kind, how)


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\x00" * 5_000, b"\xef\xbb\xbf", b"\xff\xfe", bytes(range(256)) * 40, b"[" * 100_000]
)
def test_what_is_no_such_file_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    kind, file, _, how = EXPORTS[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(SourceError) as refusal:
        read(tmp_path / file, kind, how)
    assert file in str(refusal.value)


@pytest.mark.parametrize("name", EXPORTS)
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    kind, file, content, how = EXPORTS[name]
    (tmp_path / "empty").mkdir()
    for place in ("nothing", "empty", "a\x00b", "x" * 5_000):
        with pytest.raises(SourceError):
            read(tmp_path / place, kind, how)
    odd = tmp_path / f"caf\udce9 {file}"
    odd.write_bytes(content)
    assert read(odd, kind, how)
    source = open_source(f"{kind}:{odd}", **how)  # type: ignore[arg-type]
    assert "caf%E9" in source.description
