"""A job reads all of a cache before it believes any of it: text that was rewritten under an old manifest is found."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.training.tiny import SETTINGS, tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.manifest import Manifest
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.errors import CacheError, InputError
from tacit.jobs.begin import checked_cache
from tacit.jobs.training_run import begin, carry_on
from tacit.keyboard.model_folder import load_model, write_model, write_origin
from tacit.keyboard.vocabulary import Provenance, Vocabulary
from tacit.runs import Run

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


JOBS: dict[str, Callable[[Cache, Path, Path], Any]] = {
    "train": lambda cache, _, out: tacit.train(tiny_recipe(cache.path), out, hardware=ONE),
    "pretrain": lambda cache, _, out: tacit.pretrain(cache.path, out, model=SETTINGS),
    "evaluate": lambda cache, model, out: tacit.evaluate([model], cache.path, out=out, hardware=ONE),
    "evaluate an open cache": lambda cache, model, out: tacit.evaluate([model], cache, out=out, hardware=ONE),
    "personalize": lambda cache, model, out: tacit.personalize(model, cache.path, out, hardware=ONE),
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
    values = {name: getattr(manifest, name) for name in Manifest.__dataclass_fields__}
    Manifest(**{**values, "vocabulary": type(manifest.vocabulary)(**listed)}).save(cache.path)
    with pytest.raises(CacheError, match="lists another vocabulary than it holds"):
        checked_cache(cache.path)


def test_a_model_is_remembered_with_all_its_files(model: Path) -> None:
    """Of public text or not is part of it, too."""
    before = load_model(model).digest
    write_origin(model, "a public book")
    assert load_model(model).digest != before
