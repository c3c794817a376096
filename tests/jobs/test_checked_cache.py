"""A job reads all of a cache before it believes any of it: text that was rewritten under an old manifest is found."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import pytest
from tests.support.journals import rewrite_each
from tests.support.training import tiny
from tests.support.training.tiny import MECHANISMS, SETTINGS, tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.manifest import CacheManifest
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.errors import CacheError, InputError
from tacit.jobs.run_start import checked_cache
from tacit.jobs.train.run import begin, carry_on
from tacit.keyboard.model_folder import load_model, write_model
from tacit.networks.model_files import write_origin
from tacit.runs import Run
from tacit.text.vocabulary import Provenance, Vocabulary
from tacit.training import rounds

ONE = Hardware(workers=1)
KNOWN = Vocabulary(words=("the", "of"), provenance=Provenance(kind="public", description="two words"))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return tiny_cache(tmp_path / "cache")


@pytest.fixture
def model(cache: Cache, tmp_path: Path) -> Path:
    write_model(tmp_path / "model", SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_json.encode())
    return tmp_path / "model"


def rewrite(cache: Path, client: int = 0) -> None:
    """Another text of one client, in a file of the same size beneath the same manifest."""
    ids, ends = np.fromfile(cache / "ids", "<u2"), np.fromfile(cache / "sentence_offsets", "<i8")
    first = slice(ends[client], ends[client + 1])
    ids[first] = np.where(ids[first] > 3, 63 - ids[first], ids[first])
    ids.tofile(cache / "ids")


def test_two_copies_of_a_run_are_not_resumed_on_different_text(cache: Cache, tmp_path: Path) -> None:
    """They would share their noise: the difference of their models is the difference of what the text says."""
    begin(tiny_recipe(cache.path), tmp_path / "run").close()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    rewrite(cache.path)
    with Run.open(tmp_path / "copy") as copy:
        with pytest.raises(CacheError, match=r"cache/ids is not what was imported \(its SHA-256 differs\)"):
            carry_on(copy, hardware=ONE, until=1)
        assert copy.steps_done == 0


def noises_to_the_end(run: Path) -> list[tuple[float, npt.NDArray[np.float64]]]:
    """(standard deviation of a seed, what was added to the sum) of each round that was still to be done."""
    heard, add_noise = [], rounds._add_noise

    def listening(total: Any, noise: Any, updates: Any, key: bytes) -> Any:
        released, after = add_noise(total, noise, updates, key)
        heard.append((updates.seed_stddev, np.asarray(released, np.float64) - np.asarray(total, np.float64)))
        return released, after

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "_add_noise", listening)
        tacit.resume(run, hardware=ONE)
    return heard


@pytest.mark.parametrize("mechanism", [pytest.param("tree", marks=pytest.mark.nightly), "blt", "banded-inverse"])
def test_two_copies_that_were_made_to_go_on_with_different_text_share_no_noise(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """Cache, manifest, metadata and seals are made to fit; with equal text, equal noise. To the end of both runs."""
    with begin(tiny_recipe(cache.path, privacy=MECHANISMS[mechanism]), tmp_path / "run") as run:
        carry_on(run, hardware=ONE, until=4)
    for name in ("same", "other"):
        shutil.copytree(tmp_path / "run", tmp_path / name)
    one, same = noises_to_the_end(tmp_path / "run"), noises_to_the_end(tmp_path / "same")
    assert len(one) == 5
    assert all(a.tobytes() == b.tobytes() for (_, a), (_, b) in zip(one, same, strict=True))

    sentence = tiny.Typists._sentence
    monkeypatch.setattr(tiny.Typists, "_sentence", lambda self, draw: " ".join(sentence(self, draw).split()[::-1]))
    shutil.rmtree(cache.path)
    digest = tiny_cache(cache.path).manifest.digest
    assert digest != cache.manifest.digest

    def fitting(entry: dict[str, Any]) -> dict[str, Any]:
        metadata = entry["metadata"]
        return {**entry, "metadata": {**metadata, "data": {**metadata["data"], "cache_digest": digest}}}

    rewrite_each(tmp_path / "other", "begun", fitting)
    other = noises_to_the_end(tmp_path / "other")
    for round, ((stddev, a), (_, b)) in enumerate(zip(one, other, strict=True), 4):
        assert np.std(a - b) > stddev, f"round {round}: what is the same of two noises is no protection"


JOBS: dict[str, Callable[[Cache, Path, Path], Any]] = {
    "train": lambda cache, _, out: tacit.train(tiny_recipe(cache.path), out, hardware=ONE),
    "pretrain": lambda cache, _, out: tacit.pretrain(cache.path, out, model=SETTINGS, declared_public=True),
    "evaluate": lambda cache, model, out: tacit.evaluate([model], cache.path, out=out, hardware=ONE),
    "evaluate an open cache": lambda cache, model, out: tacit.evaluate([model], cache, out=out, hardware=ONE),
    "personalize": lambda cache, model, out: tacit.personalize(model, cache.path, out, hardware=ONE),
    "type": lambda cache, model, out: tacit.type_ab(model, model, cache.path, out, hardware=ONE),
    "discover": lambda cache, _, out: tacit.discover(
        cache, KNOWN, out, DiscoverySettings(reports=LocalReportSettings(local_epsilon=6.0), users_per_layer=5)
    ),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_no_job_begins_on_text_that_was_rewritten(job: Callable[..., Any], cache: Cache, model: Path) -> None:
    rewrite(cache.path, client=45)  # of the test part, which training does not read
    out = cache.path.parent / "out"
    with pytest.raises(CacheError, match=r"ids is not what was imported"):
        job(cache, model, out)
    assert not out.exists()


def edited(vocabulary: str) -> str:
    """The same words from elsewhere, with a digest that fits."""
    words = Vocabulary.from_json(vocabulary)
    public = Provenance(kind="public", description="found on a walk")
    return Vocabulary(words=words.words, provenance=public, lowercase=words.lowercase).to_json()


def test_where_words_come_from_cannot_be_rewritten(cache: Cache, model: Path) -> None:
    """Not in a cache, not beside a model: neither file is then what the other side remembers."""
    before = load_model(model).digest
    (model / "vocabulary.json").write_text(edited(cache.vocabulary_json))
    assert load_model(model).digest != before
    with pytest.raises(InputError, match="different words, or for words of another origin"):
        tacit.evaluate([model], cache, hardware=ONE)
    (cache.path / "vocabulary.json").write_text(edited(cache.vocabulary_json).ljust(len(cache.vocabulary_json)))
    with pytest.raises(CacheError, match=r"vocabulary\.json"):
        checked_cache(cache.path)


def test_a_manifest_cannot_say_another_origin_than_the_vocabulary(cache: Cache) -> None:
    """All digests fit: whoever writes a cache by hand can make them."""
    manifest = cache.manifest
    listed = vars(manifest.vocabulary) | {"kind": "public"}
    values = {name: getattr(manifest, name) for name in CacheManifest.__dataclass_fields__}
    CacheManifest(**{**values, "vocabulary": type(manifest.vocabulary)(**listed)}).save(cache.path)
    with pytest.raises(CacheError, match="lists another vocabulary than it holds"):
        checked_cache(cache.path)


def test_a_model_is_remembered_with_all_its_files(model: Path) -> None:
    """Of public text or not is part of it, too."""
    before = load_model(model).digest
    write_origin(model, "a public book")
    assert load_model(model).digest != before
