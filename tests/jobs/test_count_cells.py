"""A count of chosen cells: noised as promised, divided by each cell's weight, stated, resumed, refused, and bent by."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.training.tiny import WORDS, tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.errors import InputError
from tacit.evaluation.counts.cell_list import CellList, CellSum, ListedSum
from tacit.evaluation.counts.device_part import StatisticSum, SumsQuestion
from tacit.evaluation.counts.sums import ReleasedSums
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.jobs.count.observed import observed_in
from tacit.privacy.composition import Composition
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.text.vocabulary import SPECIALS, Provenance, Vocabulary

PUBLIC = Provenance(kind="public", description="public text of a test")
CELLS = CellList(
    norm=60,
    ngrams=(*((word,) for word in WORDS[:20]), (WORDS[0], WORDS[1]), (WORDS[0], WORDS[1], WORDS[4])),
    units=(*(10 + at for at in range(20)), 25, 50),
    provenance=PUBLIC,
)
PRICE = ReleaseCost(epsilon=4.0, delta=1e-5)
WORDS_TOO = StatisticSum(statistic="word_counts", words=12, norm=80.0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("cells") / "cache")


@pytest.fixture
def asked(tmp_path: Path) -> CountSettings:
    return CountSettings(cells=CELLS.save(tmp_path / "cells.txt"), split_name="train")


def exactly(cache: Cache, settings: CountSettings) -> np.ndarray[Any, Any]:
    assert isinstance(settings.computation, SumsQuestion) and settings.cells is not None
    question = settings.computation.counting(settings.cells, Vocabulary.load(cache.vocabulary_path))
    reports = [question.report_of(cache, int(each)).astype(np.int64) for each in cache.clients("train")]
    return np.sum(reports, axis=0)


def test_each_cell_has_the_noise_of_the_norm_and_a_model_reads_it_divided_by_its_weight(
    cache: Cache, asked: CountSettings, tmp_path: Path
) -> None:
    vocabulary, off = Vocabulary.load(cache.vocabulary_path), []
    both = replace(asked, sums=(WORDS_TOO,))  # norms 60 and 80 together are 100
    exact = exactly(cache, both)[12:]
    for seed in range(12):
        run = tmp_path / str(seed)
        found = tacit.count(cache, run, settings=both, release=PRICE, seed=seed)
        file = np.load(run / "report" / "sums.npz")
        off.append(file["cells"] - exact)
    realised = found.account.realised
    assert isinstance(realised, Composition)
    spread, z = np.concatenate(off).std(), 1 / np.sqrt(2 * realised.zcdp)
    for norm, right in ((100.0, True), (60.0, False), (140.0, False)):
        assert (0.85 < spread / (norm * z) < 1.15) == right
    assert found.account.to_record()["promise"]["clip_norm"] == [100.0]
    released = ReleasedSums.from_content((run / "report" / "sums.npz").read_bytes(), ("word_counts", "cells"))
    assert isinstance(both.computation, SumsQuestion)
    seen = observed_in(released, both.computation.statistics, vocabulary)
    seen.check(vocabulary.size)
    assert seen.words is not None and seen.pairs is not None and seen.trigrams is not None
    # The list stands for all words, in place of the sum over the first of them.
    assert seen.words.ids[:, 0].tolist() == [vocabulary.id_of(word) for word in WORDS[:20]]
    assert seen.words.counts.tolist() == (file["cells"][:20] / np.array(CELLS.units[:20])).tolist()
    assert seen.words.stddev.tolist() == pytest.approx([100 * z / unit for unit in CELLS.units[:20]])
    assert seen.trigrams.ids.tolist() == [[vocabulary.id_of(word) for word in CELLS.ngrams[-1]]]
    assert seen.trigrams.stddev.tolist() == pytest.approx([100 * z / 50])


def test_sums_without_a_list_are_observed_as_before(cache: Cache, tmp_path: Path) -> None:
    sums = (WORDS_TOO, StatisticSum(statistic="word_pairs", words=3, norm=9.0, unit=2))
    tacit.count(cache, tmp_path / "run", settings=CountSettings(sums=sums, split_name="train"), release=PRICE, seed=1)
    content = (tmp_path / "run" / "report" / "sums.npz").read_bytes()
    found = ReleasedSums.from_content(content, ("word_counts", "word_pairs"))
    seen = observed_in(found, sums, Vocabulary.load(cache.vocabulary_path))
    assert seen.trigrams is None and seen.pairs is not None
    assert seen.pairs.ids[1].tolist() == [SPECIALS, SPECIALS + 1]
    assert seen.pairs.counts.tolist() == (found.sums["word_pairs"] / 2).tolist()


def test_the_statement_and_the_report_name_the_list(cache: Cache, asked: CountSettings, tmp_path: Path) -> None:
    run = tmp_path / "run"
    found = tacit.count(cache, run, settings=asked, release=PRICE, seed=1)
    said = tacit.statement(run).markdown()
    assert f"22 n-grams of a list (SHA-256 {CELLS.sha256}; public: public text of a test)" in said
    assert "within the norm 60" in said and tacit.verify(run).holds
    page = (run / "report" / "report.md").read_text()
    assert "cells: 22 n-grams of a list" in page and "SIMULATION ONLY" not in page
    rows = found.released["sums"]["cells"]["largest"]  # type: ignore[index]
    assert {row["stddev"] for row in rows} == {
        found.released["sums"]["cells"]["stddev"] * 50 / unit  # type: ignore[index]
        for row in rows
        for unit in [CELLS.units[CELLS.ngrams.index(tuple(row["cell"].split()))]]
    }
    exact = found.exact["sums"]["cells"]
    assert exact["typed"] >= exact["sent"] > 0


def test_a_resumed_run_wants_the_same_list(cache: Cache, asked: CountSettings, tmp_path: Path) -> None:
    run = tmp_path / "run"
    found = tacit.count(cache, run, settings=asked, release=PRICE, seed=1)
    assert tacit.resume(run).to_record() == found.to_record()
    replace(CELLS, units=(11, *CELLS.units[1:])).save(tmp_path / "cells.txt")
    with pytest.raises(InputError, match=r"is not the one that the settings of the run names: its SHA-256 was"):
        tacit.resume(run)
    (tmp_path / "cells.txt").unlink()
    with pytest.raises(InputError, match="there is no list of cells"):
        tacit.resume(run)


@pytest.mark.parametrize("protocol", ["masks", "one-message"])
def test_a_secure_sum_is_the_same_to_the_bit(protocol: Any, cache: Cache, asked: CountSettings, tmp_path: Path) -> None:
    secure = replace(PRICE, secure_sum=SimulatedProtocol(protocol=protocol, devices=3))
    for name, price in (("clear", PRICE), ("secure", secure)):
        tacit.count(cache, tmp_path / name, settings=asked, release=price, seed=1)
    assert (tmp_path / "clear/report/sums.npz").read_bytes() == (tmp_path / "secure/report/sums.npz").read_bytes()


def test_a_list_counts_devices_where_it_says_once(cache: Cache, tmp_path: Path) -> None:
    once = replace(CELLS, once=True, norm=60_000, path=None).save(tmp_path / "once.txt")
    settings = CountSettings(cells=once, split_name="train")
    found = exactly(cache, settings) // np.array(CELLS.units)
    typed = [set(cache.sentences(int(each))[0].tolist()) for each in cache.clients("train")]
    vocabulary = Vocabulary.load(cache.vocabulary_path)
    assert found[:20].tolist() == [sum(vocabulary.id_of(word) in own for own in typed) for word in WORDS[:20]]


def test_what_may_not_be_counted_is_refused_before_anything_is_written(cache: Cache, tmp_path: Path) -> None:
    other = replace(CELLS, ngrams=(("nobody",), *CELLS.ngrams[1:])).save(tmp_path / "other.txt")
    for settings, price, said in (
        (CountSettings(cells=other, split_name="train"), PRICE, "the word 'nobody' of cell 1 is not in the vocabulary"),
        (CountSettings(cells=CELLS, split_name="train"), PRICE, "is in no file"),
        (CountSettings(cells=CELLS), ReleaseCost(local_epsilon=1.0), "and cells is a sum of whole numbers"),
    ):
        with pytest.raises(InputError, match=said):
            tacit.count(cache, tmp_path / "run", settings=settings, release=price)
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="were chosen by clients' own text"):
        replace(CELLS, provenance=Provenance(kind="private", description="counted on clients"))


def test_weights_that_a_device_does_not_apply_are_found(cache: Cache, asked: CountSettings) -> None:
    """A planted fault: units left out before clipping, or cells that are not clipped."""
    assert asked.cells is not None
    listed = ListedSum.over(asked.cells, Vocabulary.load(cache.vocabulary_path))
    question = SumsQuestion((listed,))
    reports = [question.report_of(cache, int(each)).astype(np.int64) for each in cache.clients("train")]
    assert max(int((each**2).sum()) for each in reports) <= 60**2
    assert max(int(each.max()) for each in reports) > 20, "units are in what a device sends"
    assert CellSum.of(CELLS).to_plain()["sha256"] == CELLS.sha256


def test_the_command_plans_counts_and_bends(cache: Cache, tmp_path: Path) -> None:
    """From public text to a list, from clients' text to its counts, and from those to a model."""
    (tmp_path / "words.txt").write_text("\n".join(WORDS) + "\n")
    draw = np.random.default_rng(1)
    texts = {f"text {n}": [" ".join(draw.choice(WORDS, 9)) for _ in range(99)] for n in range(9)}
    words = VocabularyChoice(file=cache.vocabulary_path)
    public = tacit.import_data(
        TextsOf(texts, description="public text of a test"), tmp_path / "public", vocabulary=words
    )
    file, price = tmp_path / "cells.txt", ["--epsilon", "8", "--delta", "1e-5"]
    planned = [*("plan", "counts", "--public", str(public.path), "--clients", "4000"), *price]
    made = CliRunner().invoke(app, [*planned, "--cells", str(file), "--json"])
    assert made.exit_code == 0, made.output
    record = json.loads(made.stdout)
    assert record["asked"] == ["--cells", str(file)] and CellList.load(file).sha256 == record["cells"]["sha256"]
    sums = CliRunner().invoke(app, planned)
    assert sums.exit_code == 0 and "word_counts:56 norm" in sums.output.replace("\n", " ")
    run = tmp_path / "run"
    given = ["count", "--cells", str(file), "--data", str(cache.path), "--split-name", "train", *price]
    counted = CliRunner().invoke(app, [*given, "--out", str(run), "--seed", "1"])
    assert counted.exit_code == 0, counted.output
    tacit.ngram(public, tmp_path / "pb", cutoffs=(1, 1, 1))
    mixed = tacit.mix(tmp_path / "pb", tmp_path / "mixture", counts=run)
    assert tacit.verify(tmp_path / "mixture").holds and mixed.epsilon == pytest.approx(8.0)
    refused = CliRunner().invoke(app, [*planned[:-4], "--cells", str(tmp_path / "new.txt")])
    assert refused.exit_code == 2 and "follows from their price" in refused.output.replace("\n", " ")
