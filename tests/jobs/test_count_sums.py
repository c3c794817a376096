"""A count by sums: exact as plain Python sums, released with the noise that is promised, kept, resumed and refused."""

import hashlib
import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.training.tiny import tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.errors import InputError, RunError
from tacit.evaluation.counts import device_part
from tacit.evaluation.counts.device_part import StatisticHistogram, StatisticSum
from tacit.evaluation.counts.statistics import SUMS, TypedText
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.jobs import count_steps
from tacit.privacy.composition import Composition
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.text.vocabulary import SPECIALS, Vocabulary

PAIRS = StatisticSum(statistic="word_pairs", words=40, norm=4.0)
SETTINGS = CountSettings(
    sums=(PAIRS, StatisticSum(statistic="word_counts", words=12, norm=3.0)), split_name="train"
)  # together within the norm 5
PRICE = ReleaseCost(epsilon=4.0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("sums"))


def words_of(cache: Cache) -> list[str]:
    return list(Vocabulary.load(cache.vocabulary_path).words)


def pairs_by_hand(cache: Cache) -> Counter[str]:
    """How often each pair of the first words was typed by training clients, clipped to the norm, by plain Python."""
    total: Counter[str] = Counter()
    known = dict(enumerate(words_of(cache)[: PAIRS.words], start=SPECIALS))
    for client in cache.clients("train"):
        ids, lengths = cache.sentences(int(client))
        own: Counter[str] = Counter()
        for end, length in zip(np.cumsum(lengths), lengths, strict=True):
            sentence = ids[end - length + 1 : end - 1].tolist()
            own.update(f"{known[a]} {known[b]}" for a, b in pairwise(sentence) if a in known and b in known)
        norm = sum(count**2 for count in own.values()) ** 0.5
        total.update({pair: int(count * min(1, PAIRS.norm / norm) + 1e-12) for pair, count in own.items()})
    return +total


def released_in(run: Path, name: str = "word_pairs") -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.load(run / "report" / "sums.npz")[name]
    return found


def test_exact_sums_are_those_of_plain_python(cache: Cache, tmp_path: Path) -> None:
    found = tacit.count(cache, tmp_path / "run", settings=SETTINGS)
    exact, slow = found.exact["sums"]["word_pairs"], pairs_by_hand(cache)
    assert [row["count"] for row in exact["largest"]] == sorted(slow.values(), reverse=True)[:20]
    assert all(row["count"] == slow[row["cell"]] for row in exact["largest"])
    assert exact["sent"] == slow.total() < exact["typed"] and exact["clients_scaled_down"] > 0
    assert found.released is None and not found.run.steps_done
    assert not (tmp_path / "run" / "report" / "sums.npz").exists()


def test_every_cell_has_the_noise_of_all_sums_together(cache: Cache, tmp_path: Path) -> None:
    """Norms 4 and 3 together are 5: every cell has 5 z; that of one of the sums alone is rejected."""
    names = {"word_pairs": PAIRS.cells, "word_counts": 12}
    zcdp, off = 0.0, []
    exactly: dict[str, Any] = {}
    for seed in range(6):
        found = tacit.count(cache, tmp_path / str(seed), settings=SETTINGS, release=PRICE, seed=seed)
        realised = found.account.realised
        assert isinstance(realised, Composition)
        zcdp = realised.zcdp
        exactly = exactly or sums_of(cache)
        off += [released_in(tmp_path / str(seed), name) - exactly[name] for name in names]
    spread = np.concatenate(off).std()
    for norm, right in ((5.0, True), (4.0, False), (7.0, False)):
        stddev = norm / np.sqrt(2 * zcdp)
        assert (0.9 < spread / stddev < 1.1) == right, (spread, stddev)
    assert found.released is not None
    assert found.released["sums"]["word_pairs"]["stddev"] == pytest.approx(5.0 / np.sqrt(2 * zcdp))


def sums_of(cache: Cache) -> dict[str, NDArray[np.int64]]:
    """The exact sums, from each client's own report."""
    reports = sum(SETTINGS.computation.report_of(cache, int(each)).astype(np.int64) for each in cache.clients("train"))  # type: ignore[union-attr]
    return {"word_pairs": reports[: PAIRS.cells], "word_counts": reports[PAIRS.cells :]}


@pytest.mark.parametrize("protocol", ["masks", "one-message"])
def test_secure_sums_release_the_same_to_the_bit(protocol: Any, cache: Cache, tmp_path: Path) -> None:
    secure = replace(PRICE, secure_sum=SimulatedProtocol(protocol=protocol, devices=3))
    for name, price in (("clear", PRICE), ("secure", secure)):
        tacit.count(cache, tmp_path / name, settings=SETTINGS, release=price, seed=1)
    assert (tmp_path / "clear/report/sums.npz").read_bytes() == (tmp_path / "secure/report/sums.npz").read_bytes()
    assert "secure aggregation" in tacit.statement(tmp_path / "secure").markdown()


def test_what_leaves_is_verified_and_its_report_needs_the_folder_alone(tmp_path: Path) -> None:
    cache, run = tiny_cache(tmp_path / "data"), tmp_path / "run"
    found = tacit.count(cache, run, settings=SETTINGS, release=PRICE, seed=1)
    record = json.loads((run / "report" / "record.json").read_text())["released"]
    content = (run / "report" / "sums.npz").read_bytes()
    assert record["file"] == {"name": "sums.npz", "sha256": hashlib.sha256(content).hexdigest()}
    assert content == (run / "steps" / "release-000000.npz").read_bytes()
    values, words = released_in(run).reshape(PAIRS.axes), words_of(cache)
    for row in record["sums"]["word_pairs"]["largest"]:
        first, second = row["cell"].split()
        assert values[words.index(first), words.index(second)] == row["count"]
    assert found.released == found.record["released"] and tacit.verify(run).holds
    said = (run / "report" / "report.md").read_text()
    assert "word_pairs: 1,600 cells of the first 40 words, norm 4." in said and "SIMULATION ONLY" not in said
    assert "occurrences" in (run / "simulation" / "report.md").read_text()
    cache.path.rename(tmp_path / "away")
    (run / "report" / "report.md").unlink()
    tacit.report(run)
    assert (run / "report" / "report.md").read_text() == said and tacit.verify(run).holds
    (run / "report" / "sums.npz").write_bytes(content[:-1] + b"x")
    assert [line.name for line in tacit.verify(run).failed] == ["file report/sums.npz"]


def test_the_statement_says_what_a_client_adds(cache: Cache, tmp_path: Path) -> None:
    tacit.count(cache, tmp_path / "run", settings=SETTINGS, release=PRICE, seed=1)
    said = tacit.statement(tmp_path / "run").markdown()
    assert "A client adds whole numbers of L2 norm 5 at most" in said
    assert "word_pairs of the first 40 words of the vocabulary, within the norm 4" in said and "2 sums over" in said
    assert tacit.account_run(tmp_path / "run").to_record()["promise"]["clip_norm"] == [5.0]
    assert "VOCABULARY" not in said


def test_the_statement_says_whose_words_name_the_cells(tmp_path: Path) -> None:
    typed = TextsOf({f"client {n}": ["the selfie of the selfie"] * 3 for n in range(40)})
    tacit.import_data(typed, tmp_path / "data", vocabulary=VocabularyChoice(private=True))
    asked = replace(SETTINGS, sums=(replace(PAIRS, words=3),))
    tacit.count(tmp_path / "data", tmp_path / "run", settings=asked, release=PRICE, seed=1)
    said = tacit.statement(tmp_path / "run").markdown()
    assert "VOCABULARY FROM PRIVATE TEXT" in said and "counted in clients' own text" in said
    assert tacit.verify(tmp_path / "run").holds


def test_a_killed_run_goes_on_to_the_same_release(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tacit.count(cache, tmp_path / "whole", settings=SETTINGS, release=PRICE, seed=1)

    class Killed(BaseException):
        pass

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    for what in ("write_whole", "StepEntry", "released"):  # before the file, before its row, after it
        run = tmp_path / what
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(count_steps, what, dies)
            tacit.count(cache, run, settings=SETTINGS, release=PRICE, seed=1)
        found = tacit.resume(run)
        assert np.array_equal(released_in(run), released_in(tmp_path / "whole")) and tacit.verify(run).holds
        assert found.run.steps_done == 1  # type: ignore[attr-defined]
    file = tmp_path / "whole" / "steps" / "release-000000.npz"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(RunError, match="is not the file that step 0 names"):
        tacit.resume(tmp_path / "whole")


def test_a_million_cells_are_summed_client_by_client(tmp_path: Path) -> None:
    """No table of clients times cells: 300 clients of a million cells would be 2.4 GB."""
    words = [a + b + c for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyzabcd"]
    (tmp_path / "words.txt").write_text("\n".join(words) + "\n")
    typed = TextsOf({f"client {n}": [f"{words[n]} {words[999 - n]} {words[0]}"] for n in range(300)})
    tacit.import_data(typed, tmp_path / "data", vocabulary=VocabularyChoice(word_list=tmp_path / "words.txt"))
    asked = CountSettings(sums=(StatisticSum.from_text("word_pairs:1000 norm 30"),), split_name="train")
    run = tmp_path / "run"
    found = tacit.count(tmp_path / "data", run, settings=asked, release=ReleaseCost(zcdp=5e5), seed=1)
    assert found.released is not None
    clear = found.released["sums"]["word_pairs"]["clear"]
    assert clear["by_noise_alone"] == pytest.approx(31.67, abs=0.01)
    values = released_in(run).reshape(1000, 1000)
    assert values.nbytes == 8 * 10**6 and np.count_nonzero(values) == 2 * found.record["asked"]  # noise rounds to 0


@pytest.mark.parametrize(
    ("settings", "release", "said"),
    [
        (SETTINGS, ReleaseCost(local_epsilon=2.0), "local_epsilon=2 lets each device answer one histogram"),
        (replace(SETTINGS, clients=1), PRICE, "say nothing about many"),
        (replace(SETTINGS, sums=(replace(PAIRS, words=900),)), PRICE, "900 words are more than the"),
    ],
)
def test_what_cannot_be_summed_is_said_before_anything_is_written(
    settings: CountSettings, release: ReleaseCost, said: str, cache: Cache, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        tacit.count(cache, tmp_path / "run", settings=settings, release=release)
    assert not (tmp_path / "run").exists()


def test_histograms_and_sums_are_not_mixed() -> None:
    with pytest.raises(InputError, match=r"words is a histogram and word_pairs a sum, .*; count each in a run"):
        CountSettings(statistics=(StatisticHistogram.from_text("words:9"),), sums=(PAIRS,))


def test_a_statistic_that_fails_names_the_client(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: TypedText) -> NDArray[np.int64]:
        raise ZeroDivisionError("none")

    monkeypatch.setattr(device_part, "SUMS", {**SUMS, "word_pairs": (2, fails)})
    with pytest.raises(InputError, match=r"fails on the text of client \d+ \(ZeroDivisionError: none\); let it count"):
        tacit.count(cache, tmp_path / "run", settings=SETTINGS, release=PRICE)


def test_the_command(cache: Cache, tmp_path: Path) -> None:
    asked = ["count", "word_pairs:40 norm 4", "--data", str(cache.path), "--split-name", "train", "--epsilon", "4"]
    given = [*asked, "--out", str(tmp_path / "run"), "--seed", "1"]
    done = CliRunner().invoke(app, [*given, "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert (record["schema"], record["version"]) == ("tacit.count", 1)
    assert record["released"]["sums"]["word_pairs"]["cells"] == 1600
    again = CliRunner().invoke(app, [*given])
    assert again.exit_code == 0 and "word_pairs: 1,600 cells" in again.stdout
    mixed = CliRunner().invoke(app, [*given, "words:9"])
    assert mixed.exit_code == 2 and "count each in a run of its own" in mixed.output.replace("\n", " ")


def test_units_are_released_and_reports_divide_by_them(cache: Cache, tmp_path: Path) -> None:
    """The noise of every cell is that of both norms in units; what people read is in occurrences."""
    asked = CountSettings(
        sums=(replace(PAIRS, unit=16), StatisticSum(statistic="word_counts", words=12, norm=3.0, unit=4)),
        split_name="train",
    )
    found = tacit.count(cache, tmp_path / "run", settings=asked, release=PRICE, seed=1)
    loaded = np.load(tmp_path / "run" / "report" / "sums.npz")
    plain = tacit.count(cache, tmp_path / "plain", settings=SETTINGS, release=PRICE, seed=1)
    stddev = np.load(tmp_path / "plain" / "report" / "sums.npz")["stddev"]
    assert float(loaded["stddev"]) == pytest.approx(float(stddev) / 5 * np.hypot(4 * 16, 3 * 4))
    of_pairs = found.released["sums"]["word_pairs"]
    assert of_pairs["stddev"] == pytest.approx(float(loaded["stddev"]) / 16) and of_pairs["unit"] == 16
    sent, before = (each.exact["sums"]["word_pairs"] for each in (found, plain))
    assert sent["typed"] == before["typed"] and sent["sent"] > before["sent"]
    assert tacit.verify(tmp_path / "run").holds
    again = tacit.resume(tmp_path / "run")
    assert again.to_record() == found.to_record()
