"""One model of counts and a network: what it predicts, what it promises in all, and what it is not made of."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.training.tiny import SETTINGS, tiny_cache, tiny_recipe

import tacit
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.evaluation.counts.device_part import StatisticSum
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import nats_of
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.jobs.mix import BESIDE_COUNTS, BESIDE_NGRAMS, _by_shares, _half, mix_with
from tacit.keyboard.mixture import MixtureReader
from tacit.keyboard.phone_model import load_phone_model
from tacit.networks.model_files import read_files
from tacit.networks.ngram.bend import Bend, Observed, ObservedCells
from tacit.networks.ngram.kneser_ney import kneser_ney, likeliest_weight
from tacit.networks.ngram.merge import merged
from tacit.networks.ngram.reader import NGramReader, ngram_reader
from tacit.networks.ngram.tables import NGramTables
from tacit.privacy import gaussian
from tacit.privacy.composition import Composition
from tacit.text.vocabulary import BOS, EOS
from tacit.training.pretrain import Pretraining

SUMS = ("word_counts:56 norm 4 unit 16", "word_pairs:20 norm 3 unit 16")


def counted(cache: Cache, out: Path, *sums: str, **release: Any) -> Path:
    settings = CountSettings(sums=tuple(map(StatisticSum.from_text, sums)), split_name="train")
    tacit.count(cache, out, settings=settings, release=ReleaseCost(**release) if release else None, seed=2)
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache, a counted model, a run of counts, a trained one and a pre-training."""
    at = tmp_path_factory.mktemp("mixed")
    cache = tiny_cache(at / "cache")
    tacit.ngram(cache, at / "pb", cutoffs=(1, 1, 1), declared_public=True)
    counted(cache, at / "counts", *SUMS, epsilon=8.0)
    tacit.train(tiny_recipe(cache.path), at / "run")
    plan = Pretraining(sentences=64, every=64)
    tacit.pretrain(cache, at / "public", model=SETTINGS, settings=plan, held_out=3, declared_public=True)
    return at


def probabilities(reader: Any, tokens: list[int]) -> np.ndarray:
    state, scores = reader.begin(), np.zeros(0, np.float32)
    for token in tokens:
        state, scores = reader.step(state, token)
    return np.exp(scores.astype(np.float64))


def test_an_option_is_set_by_its_name(made: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"counts": made / "counts", "network": made / "run", "weight": None, "megabytes": 8.0}
    found = mix_with([made / "pb"], tmp_path / "set", ["weight=0.4", "megabytes="], public=None, **given)
    tacit.mix(made / "pb", tmp_path / "option", **{**given, "weight": 0.4})
    assert found.network_weight == 0.4
    for name in ("model.safetensors", "settings.json"):
        assert (tmp_path / "set" / name).read_bytes() == (tmp_path / "option" / name).read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wieght=0.4", r"the key 'wieght' is unknown; did you mean weight\? .`tacit mix` has .*megabytes"),
        ("mixture.weight=0.4", r"did you mean weight\?"),
        ("seed=3", "the key 'seed' is unknown; remove it"),
        ("weight=0.4,0.5", "--set weight has 2 values, of which `tacit train` makes a run each; give one here"),
        ("weight", "sets no key"),
        ("weight=2", "weight=2 of the network must lie above 0"),
        ("weight=true", "weight"),
        ("megabytes=inf", "megabytes=inf of n-grams must lie above 0, and be finite"),
        ("counts=3", "counts"),
    ],
)
def test_what_cannot_be_set_is_refused_first(made: Path, tmp_path: Path, text: str, message: str) -> None:
    given: dict[str, Any] = {"counts": made / "counts", "network": made / "run", "weight": None, "megabytes": 8.0}
    with pytest.raises(InputError, match=message):
        mix_with([made / "pb"], tmp_path / "out", [text], public=None, **given)
    with pytest.raises(InputError, match="gives weight twice"):
        mix_with([made / "pb"], tmp_path / "out", ["weight=0.4", "weight=0.5"], public=None, **given)
    assert not (tmp_path / "out").exists()


def test_its_promise_is_the_composition_of_its_parts_to_1e_12(made: Path, tmp_path: Path) -> None:
    found = tacit.mix(made / "pb", tmp_path / "all", counts=made / "counts", network=made / "run", weight=0.4)
    parts = [tacit.account_run(made / name).realised for name in ("counts", "run")]
    assert all(isinstance(each, Composition) for each in parts)
    zcdp = sum(each.zcdp for each in parts if isinstance(each, Composition))
    record = json.loads((tmp_path / "all" / "promise.json").read_text())
    assert record["zcdp"] == pytest.approx(zcdp, rel=1e-12)
    assert record["epsilon"] == pytest.approx(gaussian.epsilon(zcdp, record["delta"]), rel=1e-12)
    assert (
        found.epsilon
        == record["epsilon"]
        > max(each.epsilon(record["delta"]) for each in parts if isinstance(each, Composition))
    )
    assert read_files(tmp_path / "all").public_text is None
    checked = tacit.verify(tmp_path / "all")
    assert checked.holds and "FIXED SEED" in checked.labels and "epsilon" in str(found)


@pytest.mark.parametrize("name", ["zcdp", "epsilon", "delta", "noise"])
def test_a_promise_that_was_changed_fails(made: Path, tmp_path: Path, name: str) -> None:
    tacit.mix(made / "pb", tmp_path / "all", counts=made / "counts")
    file = tmp_path / "all" / "promise.json"
    record = json.loads(file.read_text())
    if name == "noise":
        record["statements"]["counts"]["facts"]["releases"][0]["noise_multiplier"] *= 2
    else:
        record[name] *= 0.5
    file.write_text(json.dumps(record))
    assert not tacit.verify(tmp_path / "all").holds
    file.write_text(json.dumps({**record, "statements": None}))
    with pytest.raises(InputError, match="lacks its statements"):
        tacit.verify(tmp_path / "all")
    file.write_text(json.dumps({"schema": "other"}))
    with pytest.raises(InputError, match="no promise of a mixture"):
        tacit.verify(tmp_path / "all")
    with pytest.raises(InputError, match="of several runs"):
        tacit.verify(tmp_path / "all", run=made / "counts")


def test_it_predicts_by_the_sum_of_its_parts(made: Path, tmp_path: Path) -> None:
    tacit.mix(made / "pb", tmp_path / "all", counts=made / "counts", network=made / "run", weight=0.4)
    tacit.mix(made / "pb", tmp_path / "bent", counts=made / "counts", network=made / "public", weight=0.3)
    ngram, run, public = (load_phone_model(made / name).reader for name in ("pb", "run", "public"))
    assert isinstance(ngram, NGramReader)
    files = read_files(tmp_path / "all")
    arrays = {name.removeprefix("bend."): each for name, each in files.weights.items() if name.startswith("bend.")}
    bend = Bend.from_arrays(arrays, 60)
    for tokens in ([BOS], [BOS, 5, 9], [BOS, 7, 3, 8, 8, 20]):
        counts = bend.bent(probabilities(ngram, tokens).astype(np.float32), tuple(tokens[-3:]))
        for name, network, weight, bent in (("all", run, 0.4, False), ("bent", public, 0.3, True)):
            model = load_phone_model(tmp_path / name)
            assert isinstance(model.reader, MixtureReader)
            found = probabilities(model.reader, tokens)
            other = probabilities(network, tokens)
            other[:2] = 0
            other = (other / other.sum()).astype(np.float32)
            other = bend.bent(other.copy(), tuple(tokens[-3:])) if bent else other
            wanted = (1 - weight) * counts + weight * other
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-6)  # the network's weights are of 16 bits
            assert found.sum() == pytest.approx(1, abs=1e-6)
    ((_, words),) = tacit.suggest(tmp_path / "all", ["wab"]).after
    assert len(words) == 3
    tacit.evaluate([tmp_path / "all", tmp_path / "bent", made / "run"], made / "cache")


def test_private_counts_bend_towards_what_people_type(made: Path, tmp_path: Path) -> None:
    """A model of other people's text, bent by counts without much noise, predicts these people better."""
    cache = Cache.open(made / "cache")
    flat = tacit.ngram(
        tiny_cache(tmp_path / "few", {"train": 1, "validation": 1}), tmp_path / "pb", declared_public=True
    )
    plain = counted(cache, tmp_path / "counts", "word_counts:56 norm 4000", "word_pairs:56 norm 4000", zcdp=1e6)
    tacit.mix(flat.folder, tmp_path / "bent", counts=plain)
    held_out = HeldOut.read(cache, cache.clients("test"), sentences=20, words=20)
    bent, before = (
        nats_of(load_phone_model(each).reader, held_out).mean() for each in (tmp_path / "bent", flat.folder)
    )
    assert bent < before - 0.05


@pytest.fixture(scope="module")
def others(made: Path) -> Path:
    """A second text: the same words in another order of frequency."""
    cache = tiny_cache(made / "other", {"train": 3, "validation": 2})
    tacit.ngram(cache, made / "pb-other", cutoffs=(1, 1, 1), declared_public=True)
    return made / "pb-other"


def test_several_texts_are_one_model_by_the_counts_that_were_released(made: Path, others: Path, tmp_path: Path) -> None:
    """The text that is these people's has nearly all of it; and the model is that of `merged`, bent."""
    runs = counted(Cache.open(made / "cache"), tmp_path / "counts", "word_counts:56 norm 4000", zcdp=1e6)
    found = tacit.mix([others, made / "pb"], tmp_path / "both", counts=runs)
    assert list(found.shares) == [str(others), str(made / "pb")]
    assert sum(found.shares.values()) == pytest.approx(1) and found.shares[str(made / "pb")] > 0.8
    assert "Shares of the texts" in str(found) and "pb-other" in str(found)
    tables = [ngram_reader(read_files(each)).tables for each in (others, made / "pb")]
    kept = [(each, share) for each, share in zip(tables, found.shares.values(), strict=True) if share]
    one = merged([each for each, _ in kept], [share for _, share in kept])
    files = read_files(tmp_path / "both")
    np.testing.assert_array_equal(files.weights["ngram.words.3"], one.arrays()["words.3"])
    np.testing.assert_array_equal(files.weights["ngram.shares.2"], one.arrays()["shares.2"])
    reader = load_phone_model(tmp_path / "both").reader
    for tokens in ([BOS], [BOS, 5, 9], [BOS, 7, 3, 8, 8, 20]):
        assert probabilities(reader, tokens).sum() == pytest.approx(1, abs=1e-6)


def test_what_is_released_alone_weighs_the_texts(made: Path, others: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "counts", tmp_path / "counts")
    shutil.rmtree(tmp_path / "counts" / "simulation")
    one = tacit.mix([others, made / "pb"], tmp_path / "one", counts=made / "counts")
    other = tacit.mix([others, made / "pb"], tmp_path / "other", counts=tmp_path / "counts")
    assert one.shares == other.shares
    assert (tmp_path / "one" / "model.safetensors").read_bytes() == (
        tmp_path / "other" / "model.safetensors"
    ).read_bytes()


def test_weights_too_large_for_16_bits_stay_as_they_are() -> None:
    large, small = np.array([7e4, 1.0], np.float32), np.array([0.1, -3.0], np.float32)
    assert _half(large) is large and _half(small).dtype == np.float16
    np.testing.assert_allclose(_half(small), small, rtol=1e-3)


def test_a_network_is_weighed_on_public_text_in_which_the_texts_have_their_shares() -> None:
    """Held-out passages of one text count by its share alone, however many there are of the other."""

    def of_text(seed: int, words: list[int], many: int) -> list[list[int]]:
        random = np.random.default_rng(seed)
        return [[BOS, *random.choice(words, 9).tolist(), EOS] for _ in range(many)]

    def reader(lines: list[list[int]]) -> NGramReader:
        text = np.array([id for line in lines for id in line])
        return NGramReader(NGramTables.packed(kneser_ney(text, vocabulary=20, order=2, cutoffs=(1,))))

    low, high = list(range(4, 10)), list(range(10, 16))
    one, other = reader(of_text(0, low, 50)), reader(of_text(1, high, 50))
    sentences = np.zeros((12, 2, 12), np.int32)
    for at, words in enumerate([low] * 9 + [high] * 3):
        sentences[at, :, :11] = of_text(at + 2, words, 2)
    counts = _by_shares({one: 0.2, other: 0.8}, HeldOut(sentences=sentences))
    assert len(counts) == 12 * 2 * 10
    assert counts[: 9 * 20].sum() / counts.sum() == pytest.approx(0.2, abs=1e-6)
    first, second = np.where(np.arange(240) < 180, 0.5, 0.1), np.where(np.arange(240) < 180, 0.1, 0.5)
    assert likeliest_weight(first, second) < 0.5 < likeliest_weight(first, second, counts)
    assert counts[0] == pytest.approx(0.2 / 0.75, rel=1e-6) and counts[-1] == pytest.approx(0.8 / 0.25, rel=1e-6)


def test_n_grams_take_no_more_room_than_was_asked_for(made: Path, tmp_path: Path) -> None:
    whole = tacit.mix(made / "pb", tmp_path / "whole", counts=made / "counts")
    small = tacit.mix(made / "pb", tmp_path / "small", counts=made / "counts", megabytes=0.01)
    weights = read_files(tmp_path / "small").weights
    size = sum(each.nbytes for name, each in weights.items() if name.startswith("ngram.") and name[-1] in "234")
    assert small.bytes < whole.bytes and 5_000 < size <= 10_000


def test_of_public_text_alone_it_promises_nothing_and_says_so(made: Path, tmp_path: Path) -> None:
    found = tacit.mix(made / "pb", tmp_path / "both", network=made / "public", weight=0.5)
    assert found.epsilon == 0 and "nothing is promised" in str(found)
    assert read_files(tmp_path / "both").public_text is not None
    checked = tacit.verify(tmp_path / "both")
    assert checked.holds and "public text alone" in checked.judgement


def test_a_count_is_believed_by_the_noise_that_it_has(made: Path, tmp_path: Path) -> None:
    """The bend is that of the released numbers in occurrences, with the noise that the statement says: no more, no
    less.
    """
    tacit.mix(made / "pb", tmp_path / "bent", counts=made / "counts")
    released = np.load(made / "counts" / "report" / "sums.npz")
    (row,) = json.loads((tmp_path / "bent" / "promise.json").read_text())["statements"]["counts"]["facts"]["releases"]
    stddev = row["noise_multiplier"] * row["clip_norm"] / 16  # of one occurrence, which is 16 units
    cells = [released["word_counts"] / 16, released["word_pairs"].reshape(20, 20) / 16]
    tables = ngram_reader(read_files(made / "pb")).tables

    def bend_of(stddev: float) -> dict[str, np.ndarray]:
        return Bend.fitted(tables, Observed(*(ObservedCells.dense(each, stddev) for each in cells))).arrays()

    weights = read_files(tmp_path / "bent").weights
    for name, each in bend_of(stddev).items():
        np.testing.assert_allclose(weights[f"bend.{name}"], each, rtol=1e-5, err_msg=name)
    for wrong in (stddev / 1.5, stddev * 1.5):
        assert not np.allclose(bend_of(wrong)["ratios"], weights["bend.ratios"], rtol=1e-5)


def test_it_is_made_of_what_was_released_alone(made: Path, tmp_path: Path) -> None:
    """Without the clients' text and the simulation's exact figures it is the same, byte by byte."""
    shutil.copytree(made / "counts", tmp_path / "counts")
    shutil.rmtree(tmp_path / "counts" / "simulation")
    tacit.mix(made / "pb", tmp_path / "one", counts=made / "counts")
    tacit.mix(made / "pb", tmp_path / "other", counts=tmp_path / "counts")
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other"))
    assert one == other


def test_a_network_that_clients_taught_has_a_weight_that_no_text_sets(made: Path, tmp_path: Path) -> None:
    for usual, more in ((BESIDE_NGRAMS, {}), (BESIDE_COUNTS, {"counts": made / "counts"})):
        found = tacit.mix(made / "pb", tmp_path / str(usual), network=made / "run", **more)
        assert found.network_weight == read_files(tmp_path / str(usual)).settings["network_weight"] == usual
    assert (BESIDE_NGRAMS, BESIDE_COUNTS) == (0.75, 0.6)


def test_what_cannot_be_mixed_is_refused(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cache = Cache.open(made / "cache")

    def refused(says: str, kind: type[Exception] = InputError, **parts: Any) -> None:
        with pytest.raises(kind, match=says):
            tacit.mix(parts.pop("ngram", made / "pb"), out, **parts)
        assert not out.exists()

    refused("alone is no mixture")
    refused("follow from counts or from public text", ngram=[made / "pb", made / "public"])
    refused("none, or one is there twice", ngram=[made / "pb", made / "pb"], counts=made / "counts")
    refused("none, or one is there twice", ngram=[], counts=made / "counts")
    refused("must lie above 0", counts=made / "counts", megabytes=0)
    refused("of the kind 'cifg'", ngram=[made / "pb", made / "run"], counts=made / "counts")
    refused("a weight is a network's", counts=made / "counts", weight=0.3)
    refused("one of --weight and --public", network=made / "public")
    refused("one of --weight and --public", network=made / "run", weight=0.3, public=made / "cache")
    for wrong in (0, -1, 1.5):
        refused("must lie above 0", network=made / "run", weight=wrong)
    refused("of the kind 'cifg'", ngram=made / "run", counts=made / "counts")
    refused("of the kind 'ngram'|is counted and no network", network=made / "pb", weight=0.3)
    refused("nothing is known of the text", network=made / "run" / "model", weight=0.3)
    refused("clients', and a weight", network=made / "run", public=made / "cache")
    refused("run of `tacit train`", counts=made / "run")
    refused("released no word_counts", counts=counted(cache, tmp_path / "exact", SUMS[0]))
    refused("released no word_counts", counts=counted(cache, tmp_path / "pairs", SUMS[1], epsilon=1.0))
    changed = tmp_path / "changed"
    shutil.copytree(made / "run", changed)
    (changed / "model" / "origin.json").write_text("{}")
    refused("not what it wrote", RunError, network=changed, weight=0.3)
    shutil.copytree(made / "counts", tmp_path / "tampered")
    with (tmp_path / "tampered" / "report" / "sums.npz").open("ab") as file:
        file.write(b"x")
    refused("sums.npz", RunError, counts=tmp_path / "tampered")


def test_parts_with_other_words_are_refused(made: Path, tmp_path: Path) -> None:
    from tacit.data import TextsOf, VocabularyChoice

    (tmp_path / "words.txt").write_text("the\nof\n" + "\n".join(f"x{chr(97 + n)}" for n in range(20)) + "\n")
    texts = TextsOf({f"client {n}": ["the selfie of the selfie"] * (n % 7 + 1) for n in range(40)})
    other = tacit.import_data(texts, tmp_path / "other", vocabulary=VocabularyChoice(word_list=tmp_path / "words.txt"))
    runs = counted(other, tmp_path / "counts", "word_counts:20 norm 3", epsilon=4.0)
    with pytest.raises(InputError, match="other words than the n-gram model"):
        tacit.mix(made / "pb", tmp_path / "out", counts=runs)
    tacit.ngram(other, tmp_path / "pb", declared_public=True)
    with pytest.raises(InputError, match="know other words"):
        tacit.mix([made / "pb", tmp_path / "pb"], tmp_path / "out", counts=made / "counts")
    tacit.ngram(made / "cache", tmp_path / "order", order=3, declared_public=True)
    with pytest.raises(InputError, match="all the same --order"):
        tacit.mix([made / "pb", tmp_path / "order"], tmp_path / "out", counts=made / "counts")
    with pytest.raises(InputError, match="knows other words"):
        tacit.mix(tmp_path / "pb", tmp_path / "out", network=made / "run", weight=0.3)
