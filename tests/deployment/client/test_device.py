"""A device from its check-in to its receipt: what leaves it, what it refuses, and what it says of it."""

from pathlib import Path

import pytest
from tests.deployment.client.made import PARAMETERS, Operator, a_plan, cache_of_one, once

from tacit.data import Cache
from tacit.deployment.bodies import Expected, read_report


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return cache_of_one(tmp_path_factory.mktemp("device") / "cache")


@pytest.fixture
def operator() -> Operator:
    return Operator()


def test_takes_part_and_is_thanked(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(cache.manifest.vocabulary.sha256)
    task = operator.task(plan, 0)
    operator.assign(plan, task)
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "reported", turn.says
    ((assignment, body),) = operator.received
    report = read_report(body, Expected.by(task), assignment)
    assert report.usable and abs(report.values).max() > 0 and report.values.shape == (PARAMETERS,)
    assert 0 < turn.spent < plan.privacy.zcdp
