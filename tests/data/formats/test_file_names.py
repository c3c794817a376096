"""One way from a file's name to a client's, and back, whatever bytes a file system keeps."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.data import TextsOf, VocabularyChoice, open_source
from tacit.data.formats.file_names import file_of_name, name_of_file


@given(st.binary(min_size=1, max_size=20).filter(lambda name: b"\x00" not in name))
def test_every_name_comes_back_and_is_text(name: bytes) -> None:
    called = name_of_file(os.fsdecode(name))
    called.encode("utf-8")
    assert os.fsencode(file_of_name(called)) == name


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="%\x00"), max_size=20))
def test_text_stands_as_it_is(name: str) -> None:
    assert name_of_file(name) == name


def test_no_two_files_are_one_client() -> None:
    names = [b"caf\xe9.txt", b"caf%E9.txt", b"caf%25E9.txt", "café.txt".encode(), b"caf\xc3.txt"]
    called = [name_of_file(os.fsdecode(name)) for name in names]
    assert called[0] == "caf%E9.txt" and called[3] == "café.txt" and len(set(called)) == len(names)


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems keep text alone")
def test_a_folder_of_such_files_is_imported(tmp_path: Path) -> None:
    """It ended in a UnicodeEncodeError on 4f13359c."""
    folder = tmp_path / os.fsdecode(b"notes \xe9")
    (folder / os.fsdecode(b"sub\xff")).mkdir(parents=True)
    names = [b"caf\xe9.txt", b"100%.txt", b"sub\xff/a.txt"]
    for name in names:
        (folder / os.fsdecode(name)).write_text("good morning")
    (tmp_path / "words.txt").write_text("good\nmorning\n")
    source = open_source(f"folder:{folder}")
    chosen = VocabularyChoice(word_list=str(tmp_path / "words.txt"))
    cache = tacit.import_data(source, tmp_path / "cache", vocabulary=chosen)
    called = [cache.name(client) for client in range(cache.manifest.clients)]
    assert called == ["100%25.txt", "caf%E9.txt", "sub%FF/a.txt"]
    assert all((folder / file_of_name(name)).is_file() for name in called)
    assert cache.manifest.source == "folder notes %E9, a text file is a client"


def test_the_same_texts_from_a_mapping_have_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "a é.txt").write_text("x")
    (client,) = open_source(f"folder:{tmp_path}").clients()
    (mapped,) = TextsOf({client.client_id: "x"}).clients()
    assert client.client_id == mapped.client_id == "a é.txt"
