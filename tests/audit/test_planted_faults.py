"""Faults planted one by one, and the same without: the audit refutes the one, and not the other."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.audit.finding import Finding
from tacit.audit.mechanism import secure
from tacit.audit.mechanism.again import OneKeyTwice, Resumed
from tacit.audit.mechanism.case import Case, Sums
from tacit.audit.mechanism.catalogue import FEW, promise
from tacit.audit.mechanism.rounds import FAR, OTHERS, Canary, Summed, Update, case_of_rounds, clipped_sum, plan_of
from tacit.audit.mechanism.scores import audit
from tacit.audit.mechanism.secure import case_of_decryptors, case_of_encoding
from tacit.audit.mechanism.streams import NoisedSums, case_of_every_node, case_of_sums
from tacit.errors import BudgetError
from tacit.mechanisms import stream
from tacit.mechanisms.keys import RoundKey, round_key
from tacit.privacy import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, BandedToeplitz, Independent, Tree
from tacit.runs import budget, budget_book
from tacit.runs.budget_book import Cost, Window
from tacit.training.adaptive_clipping import AdaptiveClipping
from tacit.training.collect import TrainQuestion

RUNS = 16_000
BLT = promise(PUBLISHED_BLT["b400"])
ALONE = promise(Independent())


def found(case: Case, *, runs: int = RUNS) -> Finding:
    return audit(case, runs=runs, confidence=0.999, seed=7)


def check(faulty: Case, mended: Case, *, runs: int = RUNS) -> None:
    """The faulty one is refuted, and the mended one neither refuted nor far from what it claims."""
    assert found(faulty, runs=runs).broken
    kept = found(mended, runs=runs)
    assert not kept.broken
    assert kept.lower > 0.9 * kept.claim


# -- noise ------------------------------------------------------------------------------------------------------------


def test_a_scale_that_is_ten_percent_low() -> None:
    less = replace(BLT, noise_multiplier=0.9 * BLT.noise_multiplier)
    check(case_of_sums("scale", BLT, NoisedSums(less)), case_of_sums("scale", BLT))


def test_a_scale_that_is_ten_percent_low_stops_a_sequential_test_early() -> None:
    less = replace(BLT, noise_multiplier=0.9 * BLT.noise_multiplier)
    alarm = found(case_of_sums("scale", BLT, NoisedSums(less))).figures["alarm_after"]
    assert alarm is not None and alarm <= 2000
    assert found(case_of_sums("scale", BLT)).figures["alarm_after"] is None


def test_a_tree_whose_clients_are_thought_to_come_as_early_as_they_may() -> None:
    limits = Participation(rounds=128, min_separation=60, max_participations=2)
    restarted = Tree(restarts=(40,))
    greedy = restarted.dense(128)[:, [0, 60]].sum(axis=1)
    guarantee = Guarantee.for_zcdp(4.5, participation=limits, strategy=restarted, clip_norm=1.0)
    claim = float(np.linalg.norm(greedy)) / guarantee.noise_multiplier
    mended = case_of_every_node("greedy", guarantee)
    check(replace(mended, claim=claim), mended)


def test_coefficients_that_are_cut_at_the_separation() -> None:
    column = PUBLISHED_BLT["b400"].column(FEW.rounds)[: FEW.min_separation]
    cut = replace(BLT, strategy=BandedToeplitz(tuple(column.tolist())))
    assert cut.mu < BLT.mu
    check(case_of_sums("cut", BLT, claim=cut.mu), case_of_sums("cut", BLT))


def unbound(key: bytes, purpose: str, round: int, *, bound_to: bytes, summed: Any, before: bytes = b"") -> RoundKey:
    """The key of a round alone: not of what its noise is added to."""
    return round_key(key, purpose, round, bound_to=bound_to, summed=np.zeros(1))


@pytest.mark.parametrize(
    ("guarantee", "release", "more"),
    [(ALONE, Resumed(ALONE), 1), (BLT, OneKeyTwice(BLT), FEW.rounds)],
    ids=["noise reused on resume", "one seed for two releases"],
)
def test_noise_that_is_added_to_two_sums(
    monkeypatch: pytest.MonkeyPatch, guarantee: Guarantee, release: Any, more: int
) -> None:
    case = case_of_sums("again", guarantee, release, more=more)
    kept = found(case)
    assert not kept.broken and kept.lower > 0.9 * kept.claim
    monkeypatch.setattr(stream, "round_key", unbound)
    assert found(case).lower > 6  # as much as so many runs can show


def test_clipping_after_the_noise() -> None:
    raw = FAR / BLT.clip_norm  # times what a clipped update adds

    def late(contributions: Sums, seed: int) -> NDArray[Any]:
        return np.clip(NoisedSums(BLT)(contributions * np.float32(raw), seed), -BLT.clip_norm, BLT.clip_norm)

    check(case_of_sums("clip after noise", BLT, late), case_of_sums("clip after noise", BLT))


def test_a_decryptors_noise_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of_decryptors("decryptors", BLT, decryptors=3, honest=2)
    kept = found(case)
    assert not kept.broken and kept.lower > 0.9 * kept.claim
    drawn = secure.noise_words

    def without_the_first(*args: Any, **named: Any) -> Any:
        words, states = drawn(*args, **named)
        return (np.zeros_like(words[0]), *words[1:]), states

    monkeypatch.setattr(secure, "noise_words", without_the_first)
    assert found(case).broken


# -- contributions ----------------------------------------------------------------------------------------------------


def by_layer(updates: Sequence[Update], question: TrainQuestion) -> NDArray[np.float32]:
    """Each layer is clipped to the clip norm by itself."""
    whole = np.array([np.concatenate(list(each.values())) for each in updates])
    return np.clip(whole, -question.clip_norm, question.clip_norm).sum(axis=0)


def weighted(updates: Sequence[Update], question: TrainQuestion) -> NDArray[np.float32]:
    """Clipped, then weighted by sentences, of which the last client has three times as many as the others."""
    *others, last = [clipped_sum([each], question) for each in updates]
    return np.sum(others, axis=0) + (3 if len(updates) > OTHERS else 1) * last


def by_cohort(updates: Sequence[Update], question: TrainQuestion) -> NDArray[np.float32]:
    """What a server then divides by the report goal is divided by the number of reports."""
    return clipped_sum(updates, question) * np.float32(question.report_goal / len(updates))


def compared_and_counted(updates: Sequence[Update], question: TrainQuestion) -> NDArray[np.float32]:
    """An update whose norm is no number is not longer than the clip norm, so it is counted, and its NaNs are zeros."""
    total = np.zeros(2, np.float32)
    for update in updates:
        whole = np.concatenate(list(update.values()))
        norm = float(np.linalg.norm(whole))
        total += np.nan_to_num(whole * (question.clip_norm / norm if norm > question.clip_norm else 1.0))
    return total


@pytest.mark.parametrize("summed", [by_layer, weighted, by_cohort], ids=lambda each: each.__name__)
def test_sums_that_one_client_moves_further_than_the_clip_norm(summed: Summed) -> None:
    check(case_of_rounds("sum", plan_of(BLT), summed=summed), case_of_rounds("sum", plan_of(BLT)))


def test_an_update_that_is_not_finite_is_counted() -> None:
    canary = Canary(update=(math.nan, FAR))
    assert found(case_of_rounds("nan", plan_of(BLT), summed=compared_and_counted, canary=canary)).broken
    assert found(case_of_rounds("nan", plan_of(BLT), canary=canary)).lower < 0.5  # it adds zeros


def test_an_inflation_that_is_forgotten() -> None:
    mended = case_of_encoding("encoding", BLT, inflation=1.1)
    check(replace(mended, claim=BLT.mu), mended)


def test_a_share_of_the_budget_that_counts_take_and_nobody_accounts() -> None:
    plan = plan_of(ALONE, clipping=AdaptiveClipping(initial=0.3))
    mended = case_of_rounds("adaptive", plan)
    check(replace(mended, claim=plan.updates.mu), mended)


# -- budgets ----------------------------------------------------------------------------------------------------------


def allowed_in_the_second_window(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many runs release in it: one that was entered in the first and goes on, and what is let in beside it.

    Each costs all that a window may.
    """
    now = 0.0
    clock = SimpleNamespace(time=lambda: now, monotonic=lambda: now, sleep=lambda seconds: None)
    monkeypatch.setattr(budget, "time", clock)
    window = Window(days=7, zcdp=4.5)
    shared = budget.PopulationBudget.create(folder, clients="everybody", zcdp=100.0, window=window)
    releasing = 0
    for name, day in ("first", 6.0), ("second", 7.5):
        now = day * budget_book.DAY
        try:
            with shared.reserving(kind="train", run=folder / name, clients=9, planned=Cost(zcdp=4.5)):
                releasing += 1
        except BudgetError:
            pass
    return releasing


def releases(count: int) -> Case:
    """So many runs of one round each, with the canary in all, beside what a window of theirs promises."""
    together = Participation(rounds=count, min_separation=1, max_participations=count)
    one = Guarantee.for_zcdp(4.5, participation=replace(together, rounds=1), strategy=Independent(), clip_norm=1.0)
    return replace(case_of_sums("windows", replace(one, participation=together)), claim=3.0)


def test_windows_of_a_budget_that_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mended = releases(allowed_in_the_second_window(tmp_path / "kept", monkeypatch))

    def by_entry(reservation: budget_book.Reservation, when: float) -> bool:
        """A run counts in the window that it was entered in, and in no other."""
        return reservation.state != "withdrawn" and reservation.reserved.time >= when

    monkeypatch.setattr(budget_book.Reservation, "may_release_after", by_entry)
    check(releases(allowed_in_the_second_window(tmp_path / "broken", monkeypatch)), mended)
