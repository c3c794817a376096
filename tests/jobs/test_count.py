"""A count: exact as plain Python counts, released with the noise that is promised, and its command."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.support.training.tiny import tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.counts.device_part import StatisticHistogram
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.privacy.composition import Composition

WORDS = StatisticHistogram(statistic="words", cuts=(20.0, 40.0, 80.0))
SLICED = StatisticHistogram(statistic="unknown_share", cuts=(0.1,), by="sentences", slices=(4.0,))
SETTINGS = CountSettings(statistics=(WORDS, SLICED), split_name="train")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("count"))


def lengths(cache: Cache) -> list[int]:
    """Words that each training client typed, by plain Python."""
    return [int((cache.sentences(int(each))[1] - 2).sum()) for each in cache.clients("train")]


def test_exact_counts_are_those_of_plain_python(cache: Cache, tmp_path: Path) -> None:
    found = tacit.count(cache, tmp_path / "run", settings=SETTINGS)
    histogram = found.exact["statistics"]["words"]["histogram"]
    edges = [-np.inf, *WORDS.cuts, np.inf]
    slow = [sum(low <= each < high for each in lengths(cache)) for low, high in pairwise(edges)]
    assert np.ravel(histogram["counts"]).tolist() == [*slow, 0] and sum(slow) == len(cache.clients("train"))
    assert found.released is None and not found.run.steps_done


def test_what_is_released_has_the_noise_that_is_promised(cache: Cache, tmp_path: Path) -> None:
    """Two histograms: each client adds a vector of norm sqrt(2), so every cell has sqrt(2) z; sqrt(1) is rejected."""
    price = ReleaseCost(epsilon=2.0)
    zcdp, off = 0.0, []
    for seed in range(12):
        found = tacit.count(cache, tmp_path / str(seed), settings=SETTINGS, release=price, seed=seed)
        assert found.released is not None
        realised = found.account.realised
        assert isinstance(realised, Composition)
        zcdp = realised.zcdp
        for name in ("words", "unknown_share by sentences"):
            noised, exact = (
                np.ravel(part["statistics"][name]["histogram"]["counts"]) for part in (found.released, found.exact)
            )
            off.append(noised - exact)
    spread, stddev = np.concatenate(off).std(), np.sqrt(2) / np.sqrt(2 * zcdp)
    assert 0.8 < spread / stddev < 1.25 and not 0.8 < spread / (stddev / np.sqrt(2)) < 1.25


def test_its_statement_is_verified_and_its_report_needs_the_folder_alone(cache: Cache, tmp_path: Path) -> None:
    run = tmp_path / "run"
    tacit.count(cache, run, settings=SETTINGS, release=ReleaseCost(epsilon=4.0), seed=1)
    assert tacit.verify(run).holds
    said = (run / "report" / "report.md").read_text()
    assert "words" in said and "SIMULATION ONLY" not in said
    tacit.report(run)
    assert (run / "report" / "report.md").read_text() == said


def test_devices_randomise_their_own_answers(cache: Cache, tmp_path: Path) -> None:
    price = ReleaseCost(local_epsilon=3.0)
    found = tacit.count(cache, tmp_path / "run", settings=SETTINGS, release=price, seed=2)
    assert found.released is not None and tacit.verify(tmp_path / "run").holds


def test_the_command(cache: Cache, tmp_path: Path) -> None:
    words = ["count", "words:20,40", "unknown_share:0.1 by sentences:4", "--data", str(cache.path)]
    given = [*words, "--out", str(tmp_path / "run"), "--split-name", "train", "--epsilon", "4", "--seed", "1"]
    done = CliRunner().invoke(app, [*given, "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert (record["schema"], record["version"]) == ("tacit.count", 1)
    assert record["released"]["statistics"].keys() == {"words", "unknown_share by sentences"}
    again = CliRunner().invoke(app, [*given])
    assert again.exit_code == 0 and "unknown_share" in again.stdout


def test_too_few_clients_say_nothing(cache: Cache, tmp_path: Path) -> None:
    one = CountSettings(statistics=(WORDS,), split_name="train", clients=1)
    with pytest.raises(InputError, match="say nothing about many"):
        tacit.count(cache, tmp_path / "run", settings=one)
    assert not (tmp_path / "run").exists()
