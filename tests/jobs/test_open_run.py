"""A run whose mechanism is one of somebody's own is read by a process that has never heard of it."""

import sys
from pathlib import Path

import pytest
from tests.support.training.tiny import tiny_cache, tiny_recipe

from tacit.compute import Hardware
from tacit.errors import InputError
from tacit.jobs.account.run import account_run
from tacit.jobs.report import report
from tacit.jobs.statement import statement
from tacit.jobs.train.job import train
from tacit.privacy.strategy import STRATEGIES

MODULE = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.design.mechanism import Mechanism
from tacit.privacy.strategy import STRATEGIES, Strategy


@dataclass(frozen=True)
class Own(Strategy):
    kind: ClassVar[str] = "own"

    def dense(self, rounds):
        return np.eye(rounds) + 0.5 * np.eye(rounds, k=-1)


STRATEGIES[Own.kind] = Own
OWN = Mechanism.fixed("own", Own())
"""


def test_a_mechanism_of_ones_own_is_found_by_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_mechanism.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    cache, path = tiny_cache(tmp_path / "cache"), tmp_path / "run"
    own = {"mechanism": {"name": "own_mechanism:OWN"}, "noise_multiplier": 0.3}
    train(tiny_recipe(cache.path, privacy=own), path, until=2, hardware=Hardware(workers=1)).run.close()
    for job in (account_run, statement, report):
        sys.modules.pop("own_mechanism")
        del STRATEGIES["own"]
        assert job(path) is not None  # type: ignore[operator]
        assert "own" in STRATEGIES
    sys.modules.pop("own_mechanism")
    del STRATEGIES["own"]
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(tmp_path)])
    with pytest.raises(InputError, match="'own_mechanism:OWN' cannot be had"):
        account_run(path)
