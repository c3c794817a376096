"""A cache with the text of one device, and an operator who has answered nobody yet."""

import pytest
from tests.support.device.operator import Operator, cache_of_one

from tacit.data import Cache


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return cache_of_one(tmp_path_factory.mktemp("device") / "cache")


@pytest.fixture
def words(cache: Cache) -> str:
    return cache.manifest.vocabulary.sha256


@pytest.fixture
def operator() -> Operator:
    return Operator()
