"""The models that a job types with, by name: files, a model in memory, the trigram of a cache."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.training.tiny import WORDS, tiny_cache

import tacit
from tacit.errors import CacheError, InputError
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.jobs.phone_models import phone_model
from tacit.text.vocabulary import BOS, SPECIALS


def test_the_trigram_of_a_cache_is_counted_on_its_training_clients(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache", {"train": 5, "test": 3})
    model = phone_model("model", f"trigram:{tmp_path / 'cache'}")
    counted = BackedOffTrigram.train(cache, cache.clients("train"), vocabulary=60)
    ((_, suggested),) = tacit.suggest(model, [""]).after
    assert [WORDS.index(each.word) + SPECIALS for each in suggested] == counted.suggestions(*[_ids(BOS)] * 2)[
        0
    ].tolist()
    assert phone_model("model", model) is model and model.name == str(model) == f"trigram:{tmp_path / 'cache'}"
    assert phone_model("model", f"trigram:{tmp_path / 'cache'}").digest == model.digest


def _ids(id: int) -> Any:

    return np.array([id], np.int64)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="nowhere"):
        phone_model("a", f"trigram:{tmp_path}/nowhere")
    tiny_cache(tmp_path / "cache", {"test": 2})
    with pytest.raises(InputError, match="no training clients"):
        phone_model("a", f"trigram:{tmp_path / 'cache'}")
    with pytest.raises(InputError, match="a=3 is no path"):
        phone_model("a", 3)  # type: ignore[arg-type]
