"""A cache gives back what went in, opens without reading, and refuses what is not whole."""

import errno
import gc
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.conftest import REPOSITORY

from tacit.data import Cache, ClientText, VocabularyRecord, build_cache
from tacit.data.cache import VERIFYING
from tacit.data.clients import split_of
from tacit.data.importing import TOKENISING, BlockDigests
from tacit.data.manifest import NO_TIME, SPLITS
from tacit.errors import CacheError, InputError, SourceError
from tacit.progress import Advanced, Event, StageBegan, StageEnded

BOS, EOS, OOV = 1, 2, 3


@dataclass
class Given:
    """A source of clients that a test made."""

    given: list[ClientText]
    description: str = "a test"
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def expected_clients(self) -> int | None:
        return len(self.given)

    def clients(self) -> Iterator[ClientText]:
        return iter(self.given)


@dataclass(frozen=True)
class Encoded:
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    text_of: NDArray[np.int32]


def slow_sentences(text: str) -> list[list[int]]:
    """A toy language: a line is a sentence, a letter is a word, `z` is out of vocabulary."""
    lines = [[OOV if letter == "z" else ord(letter) for letter in line] for line in text.split("\n")]
    return [[BOS, *line, EOS] for line in lines if line]


def encode(texts: Sequence[str]) -> Encoded:
    cut = [(at, ids) for at, text in enumerate(texts) for ids in slow_sentences(text)]
    return Encoded(
        ids=np.array([id for _, ids in cut for id in ids], np.int32),
        lengths=np.array([len(ids) for _, ids in cut], np.int32),
        text_of=np.array([at for at, _ in cut], np.int32),
    )


def record(size: int = 1000) -> VocabularyRecord:
    return VocabularyRecord(size=size, sha256="0" * 64, lowercase=False, kind="public", description="toy", oov_id=OOV)


def build(clients: list[ClientText], out: Path, *, size: int = 1000) -> Cache:
    return build_cache(
        Given(clients), encode, out, vocabulary=record(size), vocabulary_json='{"toy": 1}', tokenizer="toy-1"
    )


def client_with(name: str, *texts: str, times: list[int] | None = None, split: str | None = None) -> ClientText:
    timestamps = None if times is None else np.array(times, np.int64)
    return ClientText(client_id=name, texts=texts, timestamps=timestamps, split=split)


CLIENTS = [
    client_with("ann", "abc\nde", "z", times=[5, 7]),
    client_with("nobody", "", "\n"),
    client_with("böb", "q", split="test"),
]

TEXTS = st.lists(st.text("abz\n", max_size=8), max_size=4)


@given(
    population=st.dictionaries(st.text("xyé", min_size=1, max_size=3), st.tuples(TEXTS, st.booleans()), max_size=6),
    splits=st.lists(st.sampled_from([None, *SPLITS]), min_size=6, max_size=6),
    size=st.sampled_from([1000, 100_000]),
    at_once=st.sampled_from([1, 250, 10_000]),
)
def test_against_python_lists(
    tmp_path_factory: pytest.TempPathFactory,
    population: dict[str, tuple[list[str], bool]],
    splits: list[str | None],
    size: int,
    at_once: int,
) -> None:
    clients = [
        client_with(name, *texts, times=list(range(len(texts))) if timed else None, split=split)
        for (name, (texts, timed)), split in zip(population.items(), splits, strict=False)
    ]
    slow = [(client, [slow_sentences(text) for text in client.texts]) for client in clients]
    kept = [(client, sentences) for client, sentences in slow if any(sentences)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.data.importing.CHARACTERS_AT_ONCE", at_once)
        if not kept:
            with pytest.raises(SourceError, match=f"none of the {len(clients)} clients"):
                build(clients, tmp_path_factory.mktemp("t") / "cache", size=size)
            return
        cache = build(clients, tmp_path_factory.mktemp("t") / "cache", size=size)
    assert cache.manifest.clients == len(kept)
    assert cache.manifest.clients_without_sentences == len(clients) - len(kept)
    for number, (client, by_text) in enumerate(kept):
        sentences = [ids for text in by_text for ids in text]
        times = [NO_TIME if client.timestamps is None else at for at, text in enumerate(by_text) for _ in text]
        ids, lengths = cache.sentences(number)
        assert ids.dtype == (np.uint16 if size == 1000 else np.int32)
        assert [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])] == sentences
        assert cache.sentence_count(number) == len(sentences)
        assert cache.words(number) == cache.words_per_client()[number] == sum(len(ids) - 2 for ids in sentences)
        assert cache.timestamps(number).tolist() == times
        assert cache.name(number) == client.client_id
        assert number in cache.clients(client.split or split_of(client.client_id))
    words = [id for _, by_text in kept for text in by_text for ids in text for id in ids[1:-1]]
    assert (cache.manifest.words, cache.manifest.oov_words) == (len(words), words.count(OOV))
    assert sum(cache.manifest.splits.values()) == len(kept)
    assert sorted(np.concatenate([cache.clients(name) for name in SPLITS])) == cache.clients().tolist()
    cache.verify()


def slow_padded(sentences: list[list[int]], chosen: list[int], length: int) -> list[list[int]]:
    return [(sentences[number] + [0] * length)[:length] for number in chosen]


@given(
    texts=st.lists(st.text("abz", min_size=1, max_size=9), min_size=1, max_size=9),
    length=st.integers(1, 12),
    size=st.sampled_from([1000, 100_000]),
    data=st.data(),
)
def test_padded_against_a_loop_over_sentences(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], length: int, size: int, data: st.DataObject
) -> None:
    """Any sentences of any client, again and in any order, cut or padded."""
    clients = [client_with("first", "q"), client_with("it", *texts), client_with("last", "zz")]
    cache = build(clients, tmp_path_factory.mktemp("t") / "cache", size=size)
    for client, of in enumerate([["q"], texts, ["zz"]]):
        chosen = data.draw(st.lists(st.integers(0, len(of) - 1), max_size=12))
        rows = cache.padded(client, np.array(chosen, np.int64), length)
        assert rows.dtype == np.int32 and rows.shape == (len(chosen), length)
        assert rows.tolist() == slow_padded([slow_sentences(text)[0] for text in of], chosen, length)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return build(CLIENTS, tmp_path / "cache")


@pytest.mark.parametrize("asked", [[], [0], [2, 0, 1, 2]])
def test_reading_ahead_changes_nothing(tmp_path: Path, asked: list[int]) -> None:
    cache = build([client_with("a", "ab", "c"), client_with("b", "zz"), client_with("c", "d")], tmp_path / "c")
    cache.read_ahead(np.array(asked, np.int64))
    everything = np.arange(2)
    assert cache.padded(0, everything, 4).tolist() == slow_padded(
        [slow_sentences(t)[0] for t in ("ab", "c")], [0, 1], 4
    )


def test_a_system_that_cannot_be_asked_reads_on_demand(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.posix_fadvise", raising=False)
    cache.read_ahead(np.arange(2))
    assert cache.padded(1, np.arange(1), 3).tolist() == [[BOS, ord("q"), EOS]]


def test_a_cache_that_shrinks_while_it_is_read_is_named(cache: Cache) -> None:
    (cache.path / "ids").write_bytes(b"")
    with pytest.raises(CacheError, match="ids was cut short while it was read"):
        cache.padded(0, np.arange(1), 3)


def test_files_are_closed_with_the_cache(cache: Cache) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not list open files")
    before = descriptors()
    opened = Cache.open(cache.path)
    opened.padded(0, np.arange(1), 3)
    assert descriptors() > before
    del opened
    gc.collect()
    assert descriptors() <= before


def test_a_digest_is_of_the_text_and_not_of_its_place(tmp_path: Path) -> None:
    one, again = build(CLIENTS, tmp_path / "one"), build(CLIENTS, tmp_path / "again")
    other = build([*CLIENTS[:-1], client_with("böb", "r", split="test")], tmp_path / "other")
    assert one.manifest.digest == again.manifest.digest != other.manifest.digest


def test_the_manifest_says_what_is_in_it(cache: Cache) -> None:
    manifest = Cache.open(cache.path).manifest
    assert manifest == cache.manifest
    assert (manifest.clients, manifest.sentences, manifest.words, manifest.oov_words) == (2, 4, 7, 1)
    assert (manifest.clients_without_sentences, manifest.source, manifest.tokenizer) == (1, "a test", "toy-1")
    assert manifest.oov_rate == 1 / 7
    assert manifest.vocabulary == record()
    assert cache.vocabulary_path.read_text() == '{"toy": 1}'


def test_nothing_unfinished_stays_behind(cache: Cache) -> None:
    assert [path.name for path in cache.path.parent.iterdir()] == ["cache"]


def test_maps_are_read_only(cache: Cache) -> None:
    with pytest.raises(ValueError, match="read-only"):
        cache.sentences(0)[0][0] = 9


def test_progress_is_told(tmp_path: Path) -> None:
    seen: list[Event] = []
    build_cache(
        Given(CLIENTS),
        encode,
        tmp_path / "c",
        vocabulary=record(),
        vocabulary_json="{}",
        tokenizer="",
        progress=seen.append,
    )
    assert seen == [StageBegan(TOKENISING, 3), Advanced(TOKENISING, 3, {"words": 7}), StageEnded(TOKENISING)]


def test_an_old_cache_is_replaced_a_foreign_folder_is_not(cache: Cache) -> None:
    assert build([client_with("eve", "a")], cache.path).manifest.clients == 1
    foreign = cache.path.parent / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("dear to somebody")
    for place in (foreign, foreign / "thesis.txt"):
        with pytest.raises(CacheError, match="exists and is not a cache"):
            build(CLIENTS, place)
    assert (foreign / "thesis.txt").read_text() == "dear to somebody"


def test_a_broken_import_leaves_the_old_cache(cache: Cache) -> None:
    with pytest.raises(SourceError, match="'x' came twice"):
        build([client_with("x", "a"), client_with("x", "b")], cache.path)
    assert Cache.open(cache.path).manifest.clients == 2
    assert [path.name for path in cache.path.parent.iterdir()] == ["cache"]


def test_a_full_disk_leaves_the_old_cache_and_no_rest(cache: Cache) -> None:
    def full(texts: Sequence[str]) -> Encoded:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        build_cache(Given(CLIENTS), full, cache.path, vocabulary=record(), vocabulary_json="", tokenizer="")
    assert Cache.open(cache.path).manifest == cache.manifest
    assert [path.name for path in cache.path.parent.iterdir()] == ["cache"]


def test_names_are_needed(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="empty name"):
        build([client_with("", "a")], tmp_path / "c")


def test_unknown_clients_and_splits_are_refused(cache: Cache) -> None:
    for client in (-1, 2):
        with pytest.raises(InputError, match="clients are 0 to 1"):
            cache.sentences(client)
    with pytest.raises(InputError, match="train, validation, test"):
        cache.clients("dev")


def damage_nothing_there(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()
    path.rmdir()


def damage_half_written(path: Path) -> None:
    (path / "manifest.json").unlink()


def damage_cut_short(path: Path) -> None:
    content = (path / "ids").read_bytes()
    (path / "ids").write_bytes(content[:-1])


def damage_file_gone(path: Path) -> None:
    (path / "splits").unlink()


def damage_other_format(path: Path) -> None:
    (path / "manifest.json").write_text('{"format": "somebody-else-1"}')


def damage_older_rules(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"tacit-cache-3"', '"tacit-cache-2"'))


def damage_no_object(path: Path) -> None:
    (path / "manifest.json").write_text("[]")


def damage_no_json(path: Path) -> None:
    (path / "manifest.json").write_text("{")


def damage_field_gone(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["vocabulary"]["oov_id"]
    (path / "manifest.json").write_text(json.dumps(manifest))


def damage_wrong_type(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "clients": "2"}))


def damage_other_provenance(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"kind": "public"', '"kind": "private"'))


def damage_other_layout(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace("\n", "\t", 1))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (damage_nothing_there, "there is no cache at"),
        (damage_half_written, "import did not end"),
        (damage_cut_short, "has 29 bytes where the manifest promises 30"),
        (damage_file_gone, "lacks its file splits"),
        (damage_other_format, "has format 'somebody-else-1'"),
        (damage_older_rules, "words that the rules tacit-words-1 cut .format tacit-cache-2.*import the source again"),
        (damage_no_object, "has format None"),
        (damage_no_json, "is not JSON"),
        (damage_field_gone, "vocabulary lacks 'oov_id'"),
        (damage_wrong_type, "clients is '2', and a whole number was expected"),
        (damage_other_provenance, "manifest.json was changed"),
        (damage_other_layout, "manifest.json was changed"),
    ],
)
def test_what_is_not_whole_is_refused(cache: Cache, damage: object, complaint: str) -> None:
    damage(cache.path)  # type: ignore[operator]
    with pytest.raises(CacheError, match=complaint):
        Cache.open(cache.path)


@pytest.mark.parametrize("blocks", [4, 7, 4 << 20])  # bytes
def test_every_flipped_bit_is_found(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    """Each file in turn and bits all over it: opening refuses, or checking does, and names the file."""
    for module in ("manifest", "importing", "mapped_sentences"):
        monkeypatch.setattr(f"tacit.data.{module}.BLOCK", blocks)
    cache = build(CLIENTS, tmp_path_factory.mktemp("t") / "cache")
    draw = np.random.default_rng(blocks)
    for file in sorted(cache.path.iterdir()):
        whole = file.read_bytes()
        for bit in draw.integers(8 * len(whole), size=6):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << (bit % 8)
            file.write_bytes(flipped)
            with pytest.raises(CacheError, match=file.name if file.name != "manifest.json" else str(cache.path)):
                Cache.open(cache.path).verify()
        file.write_bytes(whole)
    Cache.open(cache.path).verify()


def everything(cache: Cache) -> None:
    """All that is read of a client's text without that the cache was verified; each part may refuse."""

    def of_client(client: int) -> Iterator[Callable[[], object]]:
        yield lambda: cache.sentences(client)
        yield lambda: cache.padded(client, np.arange(cache.sentence_count(client)), 3)
        yield lambda: cache.timestamps(client)
        yield lambda: cache.words(client)
        yield lambda: cache.name(client)

    for read in [*of_client(0), *of_client(1), cache.words_per_client]:
        with suppress(CacheError):
            read()


@pytest.mark.parametrize("name", ["client_offsets", "sentence_offsets", "ids", "names", "name_offsets"])
def test_a_flipped_bit_of_what_nobody_verified_is_a_cache_error(cache: Cache, name: str) -> None:
    """A device reads its own sentences and verifies nothing: no place beyond a file's end, no memory for it."""
    whole = (cache.path / name).read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << (bit % 8)
        (cache.path / name).write_bytes(flipped)
        everything(Cache.open(cache.path))


@pytest.mark.parametrize("name", ["client_offsets", "sentence_offsets", "ids"])
def test_what_has_no_place_in_a_cache_is_said_by_its_file(cache: Cache, name: str) -> None:
    size = (cache.path / name).stat().st_size
    (cache.path / name).write_bytes(bytes([0xFF]) * size)
    for read in (cache.sentences, lambda client: cache.padded(client, np.zeros(1, np.int64), 3)):
        with pytest.raises(CacheError, match=f"{name} is not what was imported"):
            read(0)


@given(parts=st.lists(st.binary(max_size=20), max_size=8), block=st.integers(1, 9))
def test_digests_by_block_against_slices(parts: list[bytes], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.data.importing.BLOCK", block)
        digests, whole = BlockDigests(), b"".join(parts)
        for part in parts:
            digests.update(part)
        found = digests.hexdigests()
    slow = [hashlib.sha256(whole[at : at + block]).hexdigest() for at in range(0, len(whole), block)]
    assert list(found) == slow


def test_a_vocabulary_that_changed_is_not_given(cache: Cache) -> None:
    cache.vocabulary_path.write_text('{"toy": 2}')
    with pytest.raises(CacheError, match=r"vocabulary.json is not what was imported"):
        _ = Cache.open(cache.path).vocabulary_json


def test_a_long_check_is_told_of(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.data.cache.UNNOTICED", -1.0)
    seen: list[Event] = []
    cache.verify(seen.append)
    assert seen == [StageBegan(VERIFYING, 8, 1), *(Advanced(VERIFYING, n) for n in range(2, 9)), StageEnded(VERIFYING)]


def test_what_is_open_stays_what_it_was(cache: Cache) -> None:
    """A folder that another import replaces is not read half and half."""
    before = cache.sentences(0)[0].tolist()
    build([client_with("eve", "xyz")], cache.path)
    assert cache.name(0) == "ann" and cache.sentences(0)[0].tolist() == before
    cache.verify()


def test_a_cache_is_for_its_maker_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        assert stat.S_IMODE(build(CLIENTS, tmp_path / "c").path.stat().st_mode) == 0o700
    finally:
        os.umask(old)


KILLED = """
import os, sys
from pathlib import Path
from tests.data.test_cache import CLIENTS, build, encode
import tests.data.test_cache as cache

def die(texts):
    os.kill(os.getpid(), 9)

cache.encode = die
build(CLIENTS, Path(sys.argv[1]))
"""


def test_what_a_killed_import_left_goes_with_the_next(tmp_path: Path) -> None:
    """Text as numbers, and nobody knows that it is there."""
    (tmp_path / ".other.0a1b2c3d.draft").mkdir()  # of another cache, or of a process that is at it
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "c"], check=False, cwd=REPOSITORY)
    assert killed.returncode == -signal.SIGKILL
    (left,) = (path for path in tmp_path.iterdir() if "other" not in path.name)
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    build(CLIENTS, tmp_path / "c")
    assert {path.name for path in tmp_path.iterdir()} == {"c", ".other.0a1b2c3d.draft"}
