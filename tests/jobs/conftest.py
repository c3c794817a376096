"""Clients with words to discover."""

from pathlib import Path

import pytest
from tests.support.discovery.typed_words import write_clients


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clients(tmp_path_factory.mktemp("clients"))
