"""The ledger: it keeps everything, and the accountant refuses what it has no theorem for."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tacit.errors import AccountingError, UnknownRelease
from tacit.privacy import Guarantee, Ledger, Participation, RoundRelease, Tree
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy

PLAN = Participation(rounds=40, min_separation=6, max_participations=3)


def release(round: int, strategy: Strategy | None = None, **changes: Any) -> RoundRelease:
    """Round `round` of a run with noise multiplier 2, or without noise."""
    usual = RoundRelease(
        round=round,
        what="model update",
        strategy_record=strategy.to_record() if strategy else None,
        clip_norm=0.5,
        noise_multiplier=2.0 if strategy else 0.0,
        reports=10,
        dropped=1,
    )
    return replace(usual, **changes)


def run_of(rounds: int, strategy: Strategy | None = None) -> Ledger:
    return Ledger(tuple(release(round, strategy) for round in range(rounds)))


@pytest.mark.parametrize("strategy", [Tree(restarts=(16,)), PUBLISHED_BLT["b100"], None], ids=repr)
def test_a_finished_run_gives_the_guarantee_it_was_made_with(strategy: Strategy | None) -> None:
    made_with = Guarantee(
        participation=PLAN,
        strategy=strategy,
        clip_norm=0.5,
        noise_multiplier=2.0 if strategy else 0.0,
    )
    assert run_of(40, strategy).guarantee(PLAN) == made_with
    assert run_of(40, strategy).zcdp(PLAN) == made_with.zcdp


def test_a_prefix_is_accounted_as_the_rounds_it_has() -> None:
    rhos = [run_of(rounds, Tree()).zcdp(PLAN) for rounds in range(41)]
    assert rhos[0] == 0.0
    assert rhos == sorted(rhos)
    seven = Participation(rounds=7, min_separation=6, max_participations=3)
    assert run_of(7, Tree()).guarantee(PLAN).participation == seven
    assert rhos[7] == run_of(7, Tree()).zcdp(seven)


def test_adding_leaves_the_old_ledger_alone() -> None:
    empty = Ledger()
    one = empty.add(release(0, Tree()))
    assert (len(empty.releases), len(one.releases)) == (0, 1)
    assert one.add(release(1, Tree())) == run_of(2, Tree())


def test_a_release_survives_json() -> None:
    written = json.loads(json.dumps(release(3, Tree(restarts=(8,))).to_record()))
    assert RoundRelease.from_record(written) == release(3, Tree(restarts=(8,)))


@pytest.mark.parametrize("changes", [{"weights": [1.0]}, {"clip_norm": None}])
def test_a_record_with_other_fields_is_refused(changes: dict[str, object]) -> None:
    record = release(0, Tree()).to_record()
    for name, value in changes.items():
        if value is None:
            del record[name]
        else:
            record[name] = value
    with pytest.raises(UnknownRelease, match="not understood"):
        RoundRelease.from_record(record)


@pytest.mark.parametrize(
    ("stranger", "complaint"),
    [
        (release(2, Tree(), what="clip norm"), "release of 'clip norm'"),
        (release(1, Tree()), "round 1 stands in the ledger where round 2 belongs"),
        (release(3, Tree()), "round 3 stands in the ledger where round 2 belongs"),
        (release(2, Tree(restarts=(2,))), "strategy_record"),
        (release(2, None), "strategy_record"),
        (release(2, Tree(), clip_norm=0.6), "clip_norm is 0.6 in round 2"),
        (release(2, Tree(), noise_multiplier=1.9), "noise_multiplier is 1.9 in round 2"),
    ],
)
def test_what_has_no_theorem_is_refused_and_never_skipped(stranger: RoundRelease, complaint: str) -> None:
    ledger = run_of(2, Tree()).add(stranger)
    with pytest.raises(UnknownRelease, match=complaint):
        ledger.guarantee(PLAN)
    with pytest.raises(UnknownRelease):
        ledger.add(release(3, Tree())).zcdp(PLAN)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(UnknownRelease, match="'banded'"):
        Ledger((release(0, Tree(), strategy_record={"kind": "banded"}),)).zcdp(PLAN)


def test_a_participation_of_fewer_rounds_cannot_account_the_run() -> None:
    with pytest.raises(AccountingError, match="rounds=41 lie beyond the 40"):
        run_of(41, Tree()).zcdp(PLAN)


def test_an_empty_ledger_has_no_guarantee() -> None:
    with pytest.raises(AccountingError, match="empty"):
        Ledger().guarantee(PLAN)
