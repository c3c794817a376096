"""What `tacit export` writes of n-grams and mixtures: a phone's files read back as the mixture, and dictionaries."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.training.tiny import SETTINGS, tiny_cache

import tacit
from tacit.data import TextsOf
from tacit.errors import InputError
from tacit.evaluation.counts.device_part import StatisticSum
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.jobs.dictionary_files import READING
from tacit.keyboard.dictionaries import from_model
from tacit.keyboard.dictionaries.entries import BEGINNING
from tacit.keyboard.dictionaries.format_202 import read_static_dictionary
from tacit.keyboard.dictionaries.format_403 import read_dynamic_dictionary
from tacit.keyboard.phone_model import load_phone_model
from tacit.networks.model_files import read_files
from tacit.text.vocabulary import BOS
from tacit.training.pretrain import Pretraining

TOLERANCE = 1e-4  # of a probability's logarithm, where it is above 1e-9


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_model, "PLACES", 50)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """n-grams, counts with noise that nobody knows and with noise of a seed, a public network, and mixtures."""
    at = tmp_path_factory.mktemp("counted")
    cache = tiny_cache(at / "cache")
    tacit.ngram(cache, at / "pb", cutoffs=(1, 1, 1), declared_public=True)
    sums = tuple(map(StatisticSum.from_text, ("word_counts:56 norm 4 unit 16", "word_pairs:20 norm 3 unit 16")))
    settings = CountSettings(sums=sums, split_name="train")
    tacit.count(cache, at / "secret", settings=settings, release=ReleaseCost(epsilon=8.0))
    tacit.count(cache, at / "seeded", settings=settings, release=ReleaseCost(epsilon=8.0), seed=2)
    plan = Pretraining(sentences=64, every=64)
    tacit.pretrain(cache, at / "net", model=SETTINGS, settings=plan, held_out=3, declared_public=True)
    tacit.mix(at / "pb", at / "counted", counts=at / "secret")
    tacit.mix(at / "pb", at / "known", counts=at / "seeded")
    tacit.mix(at / "pb", at / "whole", counts=at / "secret", network=at / "net", weight=0.4)
    return at


def scores(reader: Any, tokens: list[int]) -> np.ndarray:
    state, found = reader.begin(), []
    for token in tokens:
        state, here = reader.step(state, token)
        found.append(np.asarray(here, np.float64))
    return np.array(found)


@pytest.mark.parametrize("name", ["pb", "counted", "whole"])
def test_a_phone_reads_what_the_mixture_says(made: Path, tmp_path: Path, name: str) -> None:
    """Every probability, after 60 words of any kind, to 1e-4 of its logarithm."""
    tacit.export(made / name, tmp_path / "phone")
    ours, theirs = load_phone_model(made / name), load_phone_model(tmp_path / "phone")
    random = np.random.default_rng(0)
    tokens = [BOS, *random.integers(3, ours.vocabulary.size, 60).tolist()]
    mine, read = scores(ours.reader, tokens), scores(theirs.reader, tokens)
    likely = mine > math.log(1e-9)
    assert likely.sum() > 1000 and np.abs(mine[likely] - read[likely]).max() <= TOLERANCE
    assert (read[~likely] < math.log(1e-8)).all()
    ((_, asked),), ((_, said),) = (tacit.suggest(each, ["I"]).after for each in (tmp_path / "phone", made / name))
    assert [each.word for each in asked] == [each.word for each in said]
    assert [each.probability for each in asked] == pytest.approx([each.probability for each in said], rel=TOLERANCE)
    assert tacit.verify(tmp_path / "phone").holds


def test_a_phone_s_files_are_refused_where_one_was_changed(made: Path, tmp_path: Path) -> None:
    tacit.export(made / "whole", tmp_path / "phone")
    record = json.loads((tmp_path / "phone" / "manifest.json").read_text())
    assert record["files"].keys() == {"counts.safetensors", "step.onnx", "settings.json", "vocabulary.json"}
    assert record["privacy"]["statement"]["schema"] == "tacit.mixture.promise"
    for name in record["files"]:
        path = tmp_path / "phone" / name
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(InputError, match="is not the file that was exported"):
            load_phone_model(tmp_path / "phone").reader.begin()
        assert not tacit.verify(tmp_path / "phone").holds
        path.write_bytes(content)
    record["privacy"]["statement"]["epsilon"] *= 0.5
    (tmp_path / "phone" / "manifest.json").write_text(json.dumps(record))
    assert not tacit.verify(tmp_path / "phone").holds


def test_a_smaller_graph_is_near_and_counts_have_none(made: Path, tmp_path: Path) -> None:
    tacit.export(made / "whole", tmp_path / "small", quantize="int8")
    tokens = [BOS, 5, 6, 7, 8]
    ours, theirs = (load_phone_model(each).reader for each in (made / "whole", tmp_path / "small"))
    assert 1e-9 < np.abs(np.exp(scores(ours, tokens)) - np.exp(scores(theirs, tokens))).max() < 0.02
    for quantize, match in (("int8", "no network"), ("int3", "no network")):
        with pytest.raises(InputError, match=match):
            tacit.export(made / "counted", tmp_path / "other", quantize=quantize)
    with pytest.raises(InputError, match="is unknown; it is one of"):
        tacit.export(made / "whole", tmp_path / "other", quantize="int3")


def test_a_mixture_s_dictionary_says_what_all_of_it_costs(made: Path, tmp_path: Path) -> None:
    written = tacit.export_dictionary(made / "counted", tmp_path / "en.dict")
    read = read_static_dictionary((tmp_path / "en.dict").read_bytes())
    assert "epsilon 8" in read.attributes["description"] and read.followers[(BEGINNING,)]
    assert written.promise == tmp_path / "en.dict.promise.json" and tacit.verify(written.promise).holds
    record = json.loads(written.promise.read_text())
    written.promise.write_text(json.dumps({**record, "epsilon": record["epsilon"] / 2}))
    assert not tacit.verify(written.promise).holds
    tacit.export_dictionary(made / "whole", tmp_path / "en", trigrams=True)
    assert any(len(context) == 2 for context in read_dynamic_dictionary(tmp_path / "en").followers)
    listed = tacit.export_dictionary(made / "counted", tmp_path / "words.combined")
    assert listed.version is None and "  bigram=" in (tmp_path / "words.combined").read_text()


def test_what_was_not_released_follows_nothing(made: Path, tmp_path: Path) -> None:
    """Noise of a known seed can be taken away; the n-grams alone are public."""
    tacit.export_dictionary(made / "known", tmp_path / "en.dict")
    read = read_static_dictionary((tmp_path / "en.dict").read_bytes())
    assert not read.followers and "noise of a known seed" in read.attributes["description"]
    public = tacit.export_dictionary(made / "pb", tmp_path / "pb.dict")
    assert public.promise is None and "public text alone" in public.dictionary.attributes["description"]
    assert read_static_dictionary((tmp_path / "pb.dict").read_bytes()).followers


def test_a_promise_that_does_not_hold_is_refused(made: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(made / "counted", tmp_path / "changed")
    file = tmp_path / "changed" / "promise.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "epsilon": 0.1}))
    with pytest.raises(InputError, match="does not hold"):
        tacit.export_dictionary(tmp_path / "changed", tmp_path / "en.dict")
    file.unlink()
    made_of = tacit.export_dictionary(tmp_path / "changed", tmp_path / "en.dict")
    assert "no guarantee" in made_of.dictionary.attributes["description"] and not made_of.dictionary.followers


def test_more_words_come_from_public_text_alone(made: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = read_files(made / "pb").vocabulary.words
    text = [f"quux {words[0]} {words[1]}"] * 3 + [f"garply {words[2]}"]
    pq.write_table(pa.table({"text": text}), tmp_path / "more.parquet")
    pq.write_table(pa.table({"text": text, "client_id": ["a"] * 4}), tmp_path / "people.parquet")
    seen: list[Any] = []
    written = tacit.export_dictionary(
        made / "pb",
        tmp_path / "en.dict",
        words_from=f"public:{tmp_path / 'more.parquet'}",
        most_words=1,
        progress=seen.append,
    )
    read = read_static_dictionary((tmp_path / "en.dict").read_bytes())
    assert {entry.word for entry in read.entries} == {*words, "quux"} and any(READING in str(each) for each in seen)
    assert read.followers[("quux",)] and "more.parquet" in written.dictionary.attributes["description"]
    with pytest.raises(tacit.errors.SourceError, match="clients' text and not public"):
        tacit.export_dictionary(made / "pb", tmp_path / "x.dict", words_from=f"public:{tmp_path / 'people.parquet'}")
    with pytest.raises(InputError, match="may be clients' text"):
        tacit.export_dictionary(made / "pb", tmp_path / "x.dict", words_from=str(tmp_path / "people.parquet"))
    with pytest.raises(InputError, match="most_words=5"):
        tacit.export_dictionary(made / "pb", tmp_path / "x.dict", most_words=5)


def test_emoji_of_a_vocabulary_are_next_words(tmp_path: Path) -> None:
    texts = TextsOf({f"book {n}": ["good morning 👋", "good morning 👋 the"] for n in range(40)})
    (tmp_path / "words.txt").write_text("good\nmorning\n👋\nthe\n")
    choice = tacit.data.VocabularyChoice(word_list=str(tmp_path / "words.txt"))
    cache = tacit.import_data(texts, tmp_path / "cache", vocabulary=choice, emoji=True)
    tacit.ngram(cache, tmp_path / "pb", cutoffs=(1, 1, 1), declared_public=True)
    tacit.export_dictionary(tmp_path / "pb", tmp_path / "en.dict")
    read = read_static_dictionary((tmp_path / "en.dict").read_bytes())
    assert read.followers[("morning",)][0][0] == "👋"
