"""`tacit.import_data`: text goes in with a vocabulary whose origin is said; what cannot be is refused before it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.data import Cache, Source, TableOf, TextsOf, VocabularyChoice
from tacit.data.clients import split_of
from tacit.errors import CacheError, InputError, SourceError
from tacit.jobs.import_data import COUNTING, FINDING, import_data, open_data
from tacit.progress import Advanced, Event, StageBegan, Warned
from tacit.text.vocabulary import OOV, Vocabulary

TYPED = {"a": ["The dog. The cat", "a dog"], "b": ["Dog dog dog!"], "f": ["..."], "c": ["zebra"]}  # c is not in train
ROWS = [(name, text) for name, texts in TYPED.items() for text in texts]


@pytest.fixture
def clients(tmp_path: Path) -> str:
    path = tmp_path / "typed.parquet"
    names, texts = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"client_id": names, "text": texts}), path)
    return str(path)


@pytest.fixture
def public(tmp_path: Path) -> VocabularyChoice:
    path = tmp_path / "public.parquet"
    pq.write_table(pa.table({"text": ["the dog the dog the cat", None, "<url> The"]}), path)
    return VocabularyChoice(public=(str(path),))


def listed(folder: Path, words: Sequence[str]) -> VocabularyChoice:
    (folder / "words.txt").write_text("\n".join(words), encoding="utf-8")
    return VocabularyChoice(word_list=str(folder / "words.txt"))


def test_the_cache_keeps_its_vocabulary(clients: str, public: VocabularyChoice, tmp_path: Path) -> None:
    seen: list[Event] = []
    cache = import_data(clients, tmp_path / "c", vocabulary=public, progress=seen.append)
    vocabulary = Vocabulary.load(cache.vocabulary_path)
    assert vocabulary.words == ("the", "dog", "The", "cat")  # ten thousand were not to be had
    assert vocabulary.sha256 == cache.manifest.vocabulary.sha256
    ids, lengths = cache.sentences(0)
    assert [vocabulary.word_of(int(id)) for id in ids[: lengths[0]]] == ["<bos>", "The", "dog", "<eos>"]
    assert [event.done for event in seen if isinstance(event, Advanced)] == [4]
    again = import_data(clients, str(tmp_path / "d"), vocabulary=VocabularyChoice(file=cache.vocabulary_path))
    assert again.manifest == cache.manifest == open_data(str(tmp_path / "d")).manifest


def test_what_is_done_is_told_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_is_found() -> Source:
        assert seen == [StageBegan(FINDING, opening="docstrings")]
        raise SourceError("no module")

    seen: list[Event] = []
    monkeypatch.setattr("tacit.data.formats.docstrings.Docstrings.open", lambda place: nothing_is_found())
    with pytest.raises(SourceError, match="no module"):
        import_data("docstrings", tmp_path / "c", progress=seen.append)


def test_what_words_are_counted_on_is_told(clients: str, public: VocabularyChoice, tmp_path: Path) -> None:
    private = VocabularyChoice(private=True)
    for choice, opening in (
        (public, "counting the words of public text"),
        (private, "counting the clients' words"),
        (listed(tmp_path, ["dog"]), ""),
    ):
        seen: list[Event] = []
        import_data(clients, tmp_path / "c", vocabulary=choice, progress=seen.append)
        assert StageBegan(COUNTING, opening=opening) in seen


def test_tables_name_their_columns_too(public: VocabularyChoice, tmp_path: Path) -> None:
    names, texts = zip(*ROWS, strict=True)
    columns = {"client_id": "author", "text": "body"}
    named = import_data({"author": names, "body": texts}, tmp_path / "c", vocabulary=public, **columns)  # type: ignore[arg-type]
    usual = import_data({"client_id": names, "text": texts}, tmp_path / "d", vocabulary=public)
    assert named.manifest.files == usual.manifest.files
    with pytest.raises(SourceError, match="texts in memory, a key is a client gives clients as they are"):
        import_data(TextsOf(TYPED), tmp_path / "e", vocabulary=public, text="body")


def test_a_cache_of_something_else_is_replaced_with_a_warning(
    clients: str, public: VocabularyChoice, tmp_path: Path
) -> None:
    def warned(**asked: Any) -> list[str]:
        seen: list[Event] = []
        import_data(clients, tmp_path / "c", vocabulary=public, progress=seen.append, **asked)
        return [event.message for event in seen if isinstance(event, Warned) and event.code == "cache replaced"]

    assert warned() == warned() == []  # new, then the same again
    (message,) = warned(lowercase=True)
    assert "held another cache (3 clients of Parquet typed.parquet)" in message
    (tmp_path / "c" / "ids").unlink()
    assert warned() == []  # a damaged one is mended by importing again


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            {"a": ["the dog"]},
            "1 client is too few to train a private model on, and none is in these splits: validation, t",
        ),
        ({"a": ["the dog"], "c": ["the cat"]}, "2 clients are too few"),
        ({"a": ["the dog"], "b": ["the cat"], "c": ["the dog"]}, None),
    ],
)
def test_clients_that_nobody_can_learn_from_are_warned_of(
    typed: dict[str, list[str]], said: str | None, public: VocabularyChoice, tmp_path: Path
) -> None:
    seen: list[Event] = []
    import_data(TextsOf(typed), tmp_path / "c", vocabulary=public, progress=seen.append)
    warned = [event.message for event in seen if isinstance(event, Warned) and event.code == "few clients"]
    assert len(warned) == (said is not None) and all(str(said) in each for each in warned)


def test_lower_case(clients: str, public: VocabularyChoice, tmp_path: Path) -> None:
    cache = import_data(clients, tmp_path / "c", vocabulary=public, lowercase=True)
    assert cache.manifest.vocabulary.lowercase is True
    assert cache.manifest.oov_rate == 2 / 10  # a, zebra


def test_one_language_and_emoji(tmp_path: Path) -> None:
    typed = {"a": ["İzmir ❤ ISPARTA"], "b": ["izmir"], "c": ["ısparta ❤\ufe0f"]}
    choice = listed(tmp_path, ["İzmir", "❤", "IZMIR"])
    cache = import_data(TextsOf(typed), tmp_path / "c", vocabulary=choice, lowercase=True, language="tr", emoji=True)
    assert Vocabulary.load(cache.vocabulary_path).words == ("izmir", "❤\ufe0f", "ızmır")
    assert (cache.manifest.words, cache.manifest.oov_words) == (6, 2)
    assert (cache.manifest.vocabulary.language, cache.manifest.vocabulary.emoji) == ("tr", True)
    saved = VocabularyChoice(file=cache.vocabulary_path)
    assert import_data(TextsOf(typed), tmp_path / "d", vocabulary=saved).manifest.vocabulary.language == "tr"
    with pytest.raises(InputError, match="is written in tr, not in de; leave --language out"):
        import_data(TextsOf(typed), tmp_path / "d", vocabulary=saved, language="de")


def test_two_languages_share_one_vocabulary(tmp_path: Path) -> None:
    """The longer text does not crowd out the other's words."""
    for name, texts in (("en", ["the dog and the cat"] * 500), ("es", ["el perro y el gato"])):
        pq.write_table(pa.table({"text": texts}), tmp_path / f"{name}.parquet")
    choice = VocabularyChoice(public=(str(tmp_path / "en.parquet"), str(tmp_path / "es.parquet")))
    typed = {"a": ["the dog"], "b": ["el perro"], "c": ["el gato and the dog"]}
    cache = import_data(TextsOf(typed), tmp_path / "c", vocabulary=choice, vocabulary_size=8)
    assert Vocabulary.load(cache.vocabulary_path).words == ("el", "the", "and", "cat")


CHINESE = "你好吗？我很好，谢谢你。今天天气怎么样？我们去公园散步吧。"
THAI = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"


@pytest.mark.parametrize(("text", "script"), [(CHINESE, "Han"), (THAI, "Thai")])
def test_scripts_without_blanks_are_refused_by_name(
    text: str, script: str, public: VocabularyChoice, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match=rf"\d\d% of what .* most of it {script}.*Put a blank or U\+200B between"):
        import_data(TextsOf({name: [text] for name in "abc"}), tmp_path / "c", vocabulary=public)
    assert not (tmp_path / "c").exists()
    pq.write_table(pa.table({"text": [text]}), tmp_path / "public.parquet")
    choice = VocabularyChoice(public=(str(tmp_path / "public.parquet"),))
    with pytest.raises(SourceError, match=f"most of it {script}"):
        import_data(TextsOf({"a": ["the dog"]}), tmp_path / "c", vocabulary=choice)


@pytest.mark.parametrize(
    "typed",
    [
        "we ate 饺子 in 北京 and it was good",
        "你 好 吗 ？ 我 很 好",
        "เกิด\u200bมา\u200bมี\u200bอิสระ\u200bและ\u200bเสมอภาค\u200bกัน",
    ],
)
def test_a_stray_word_or_cut_text_is_read(typed: str, public: VocabularyChoice, tmp_path: Path) -> None:
    assert import_data(TextsOf({"a": [typed]}), tmp_path / "c", vocabulary=public).manifest.words >= 6


def test_word_lists(clients: str, tmp_path: Path) -> None:
    choice = listed(tmp_path, ["dog", "", "The", "dog", "cat"])
    cache = import_data(clients, tmp_path / "c", vocabulary=choice, vocabulary_size=6)
    assert cache.manifest.vocabulary.kind == "word list"
    assert Vocabulary.load(cache.vocabulary_path).words == ("dog", "The")
    with pytest.raises(InputError, match="has 3 words"):
        import_data(clients, tmp_path / "d", vocabulary=choice, vocabulary_size=9)


def test_private_words_are_those_of_training_clients(clients: str, tmp_path: Path) -> None:
    cache = import_data(clients, tmp_path / "c", vocabulary=VocabularyChoice(private=True))
    assert cache.manifest.vocabulary.kind == "private"
    trained = " ".join(text for name, texts in TYPED.items() if split_of(name) == "train" for text in texts)
    known = Vocabulary.load(cache.vocabulary_path).words
    assert all(word in trained for word in known)
    assert OOV in cache.sentences(2)[0]
    assert OOV not in cache.sentences(0)[0]


def test_clients_of_a_program_are_those_of_a_file(clients: str, tmp_path: Path) -> None:
    """The same text from a mapping, from a table and from a file: the same cache but for what it says it came from."""
    choice = listed(tmp_path, ["dog", "The"])
    filed = import_data(clients, tmp_path / "file", vocabulary=choice)
    names, texts = zip(*ROWS, strict=True)
    for number, source in enumerate((TextsOf(TYPED), TableOf({"client_id": names, "text": texts, "other": texts}))):
        cache = import_data(source, tmp_path / f"{number}", vocabulary=choice)
        assert cache.manifest.files == filed.manifest.files
        assert cache.manifest.source == source.description
    rows = [{"client_id": name, "text": text} for name, text in ROWS]
    for bare in (rows, pa.table({"client_id": names, "text": texts}), {"client_id": names, "text": texts}):
        assert import_data(bare, tmp_path / "bare", vocabulary=choice).manifest.files == filed.manifest.files
    named = import_data(TextsOf(TYPED, description="letters"), tmp_path / "named", vocabulary=choice)
    assert named.to_record()["source"] == "letters"


def test_public_text_has_no_clients(clients: str, tmp_path: Path) -> None:
    """What looks like somebody's text is not taken for public text by mistake."""
    with pytest.raises(SourceError, match=r"client_id.*--vocabulary-from-private"):
        import_data(clients, tmp_path / "c", vocabulary=VocabularyChoice(public=(clients,)))
    assert not (tmp_path / "c").exists()


def test_vocabularies_that_cannot_be(clients: str, public: VocabularyChoice, tmp_path: Path) -> None:
    none = tmp_path / "none"
    with pytest.raises(InputError, match="exactly one"):
        VocabularyChoice()
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    pq.write_table(pa.table({"number": [1]}), tmp_path / "numbers.parquet")
    for choice, size, says in (
        (public, 50, "has 4 different words"),
        (VocabularyChoice(public=(str(none),)), None, "no public text at"),
        (VocabularyChoice(public=(str(tmp_path / "numbers.parquet"),)), None, "no 'text'"),
        (VocabularyChoice(word_list=none), None, "no word list"),
        (VocabularyChoice(file=none), None, "no vocabulary at"),
        (VocabularyChoice(word_list=tmp_path / "latin"), None, "not UTF-8"),
    ):
        with pytest.raises(InputError, match=says):
            import_data(clients, tmp_path / "c", vocabulary=choice, vocabulary_size=size)
    assert not (tmp_path / "c").exists()


def test_other_folders_are_left_alone(clients: str, public: VocabularyChoice, tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="is not a cache"):
        import_data(clients, tmp_path, vocabulary=public)
    with pytest.raises(CacheError, match=r"no manifest\.json"):
        open_data(tmp_path)


def test_saved_vocabularies_do_not_bend(clients: str, public: VocabularyChoice, tmp_path: Path) -> None:
    file = VocabularyChoice(file=import_data(clients, tmp_path / "c", vocabulary=public).vocabulary_path)
    with pytest.raises(InputError, match="has 8 ids, not 9"):
        import_data(clients, tmp_path / "d", vocabulary=file, vocabulary_size=9)
    with pytest.raises(InputError, match="keeps capitals"):
        import_data(clients, tmp_path / "d", vocabulary=file, lowercase=True)


def test_records_count_bytes(clients: str, public: VocabularyChoice, tmp_path: Path) -> None:
    cache: Cache = import_data(clients, tmp_path / "c", vocabulary=public)
    on_disk = sum(path.stat().st_size for path in cache.path.iterdir() if path.name != "manifest.json")
    assert cache.to_record()["bytes"] == on_disk


def test_without_a_vocabulary_the_manuals_are_read_and_unknown_words_are_told(tmp_path: Path) -> None:
    typed = {name: ["zyxq wvut zyxq. the wvut", "qqxz qqxz"] for name in "abcdef"}
    seen: list[Event] = []
    cache = import_data(TextsOf(typed), tmp_path / "c", vocabulary_size=50, progress=seen.append)
    assert cache.manifest.vocabulary.kind == "public" and "manuals" in cache.manifest.vocabulary.description
    (warned,) = [event for event in seen if isinstance(event, Warned)]
    assert warned.code == "many unknown words" and warned.message.startswith(f"{cache.manifest.oov_rate:.0%} of")
    seen.clear()
    known = {name: ["the function is called with the value"] for name in "abcdef"}
    import_data(TextsOf(known), tmp_path / "d", vocabulary_size=2000, progress=seen.append)
    assert not [event for event in seen if isinstance(event, Warned)]


def test_a_file_that_is_one_split_leaves_the_others_empty_and_it_is_said(tmp_path: Path) -> None:
    """Of a file that is called otherwise the same clients are split by their names."""
    rows = pa.table({"client_id": [str(n) for n in range(50)], "text": ["the function"] * 50})
    seen: list[Event] = []
    splits = {}
    for name in ("notes.test.parquet", "notes.parquet"):
        pq.write_table(rows, tmp_path / name)
        splits[name] = import_data(str(tmp_path / name), tmp_path / name[:-8], progress=seen.append).manifest.splits
    (warned,) = [event for event in seen if isinstance(event, Warned)]
    assert (
        warned.code == "empty split"
        and "none of the 50 clients is in these splits: train, validation;" in warned.message
    )
    assert splits["notes.test.parquet"]["test"] == 50 and min(splits["notes.parquet"].values()) > 0
