"""The ledger: it keeps everything, and the accountant refuses what it has no theorem for."""

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.statements.releases import counted

from tacit.errors import AccountingError, UnknownRelease
from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.privacy.local_guarantee import Group, LocalGuarantee
from tacit.privacy.strategy import PUBLISHED_BLT, Banded, Dense, Strategy
from tacit.records import to_plain
from tacit.statements import Ledger, LocalReports, NoisedSum
from tacit.statements.ledger import ledger_record, release_from

PLAN = Participation(rounds=40, min_separation=6, max_participations=3)


def release(round: int, strategy: Strategy | None = None, **changes: Any) -> NoisedSum:
    """Round `round` of a run with noise multiplier 2, or without noise."""
    usual = NoisedSum(
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
    written = json.loads(json.dumps(to_plain(release(3, Tree(restarts=(8,))))))
    assert release_from(written) == release(3, Tree(restarts=(8,)))


@pytest.mark.parametrize("changes", [{"weights": [1.0]}, {"clip_norm": None}, {"clip_inflation": None}])
def test_a_record_with_other_fields_is_refused(changes: dict[str, object]) -> None:
    record = to_plain(release(0, Tree()))
    for name, value in changes.items():
        if value is None:
            del record[name]
        else:
            record[name] = value
    with pytest.raises(UnknownRelease, match=next(iter(changes))):
        release_from(record)


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
def test_what_has_no_theorem_is_refused_and_never_skipped(stranger: NoisedSum, complaint: str) -> None:
    ledger = run_of(2, Tree()).add(stranger)
    with pytest.raises(UnknownRelease, match=complaint):
        ledger.guarantee(PLAN)
    with pytest.raises(UnknownRelease):
        ledger.add(release(3, Tree())).zcdp(PLAN)


MATRICES = (Banded(np.ones((40, 6)) * (np.arange(40)[:, None] + np.arange(6) < 40)), Dense(np.tril(np.ones((40, 40)))))


@pytest.mark.parametrize("matrix", MATRICES, ids=repr)
def test_rows_that_name_a_matrix_are_accounted_as_rows_that_hold_it(matrix: Banded | Dense) -> None:
    record = json.loads(json.dumps(ledger_record(matrix)))
    assert set(record) == {"kind", "shape", "sha256"}
    naming = Ledger(tuple(release(at, matrix, strategy_record=record) for at in range(40)), matrix=matrix)
    assert naming.guarantee(PLAN) == run_of(40, matrix).guarantee(PLAN)
    assert naming.guarantee(PLAN).strategy == matrix
    shorter = Ledger(naming.releases[:39], matrix).add(naming.releases[39])
    assert shorter == naming


def test_a_matrix_that_is_lost_or_another_is_refused() -> None:
    one, other = MATRICES
    rows = (release(0, one, strategy_record=ledger_record(one)),)
    with pytest.raises(UnknownRelease, match=r"banded matrix with SHA-256 .* and none is at hand; put the strategy"):
        Ledger(rows).zcdp(PLAN)
    for wrong in (other, Banded(one.columns * 0.5)):
        with pytest.raises(UnknownRelease, match=r"and that of [0-9a-f]{16}\.\.\. is at hand"):
            Ledger(rows, wrong).zcdp(PLAN)
    changed_row = release(1, one, strategy_record=ledger_record(other))
    with pytest.raises(UnknownRelease, match="strategy_record is"):
        Ledger((*rows, changed_row), one).zcdp(PLAN)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(UnknownRelease, match="'quilted'"):
        Ledger((release(0, Tree(), strategy_record={"kind": "quilted"}),)).zcdp(PLAN)


def test_a_participation_of_fewer_rounds_cannot_account_the_run() -> None:
    with pytest.raises(AccountingError, match="rounds=41 lie beyond the 40"):
        run_of(41, Tree()).zcdp(PLAN)


def test_an_empty_ledger_has_no_guarantee() -> None:
    with pytest.raises(AccountingError, match="empty"):
        Ledger().guarantee(PLAN)


def histogram(round: int, **changes: Any) -> NoisedSum:
    """An evaluation histogram released after round `round`, with independent noise unless changed."""
    return replace(release(round, Independent(), what="evaluation histogram", noise_multiplier=4.0), **changes)


def test_several_sequences_add_up() -> None:
    ledger = Ledger((*run_of(40, Tree()).releases, histogram(9), histogram(19), histogram(39)))
    made = ledger.composition(PLAN)
    updates, evaluation = made.sequences
    assert updates.guarantee == run_of(40, Tree()).guarantee(PLAN)
    assert evaluation.guarantee.zcdp == pytest.approx(3 / 32)  # a client may come to all three
    assert made.zcdp == updates.guarantee.zcdp + evaluation.guarantee.zcdp == ledger.zcdp(PLAN)
    assert made.mu == pytest.approx((2 * made.zcdp) ** 0.5)
    assert made.epsilon(1e-8) > updates.guarantee.epsilon(1e-8)
    with pytest.raises(AccountingError, match="'evaluation histogram', and the guarantee of the model updates alone"):
        ledger.guarantee(PLAN)


def test_the_order_of_the_sequences_in_the_ledger_does_not_matter() -> None:
    mixed = Ledger((histogram(0), release(0, Tree()), release(1, Tree()), histogram(1), release(2, Tree())))
    sorted_out = Ledger((*run_of(3, Tree()).releases, histogram(0), histogram(1)))
    assert mixed.zcdp(PLAN) == sorted_out.zcdp(PLAN)


def test_a_sequence_without_noise_promises_nothing() -> None:
    made = Ledger((*run_of(3, Tree()).releases, histogram(0, strategy_record=None, noise_multiplier=0.0)))
    assert made.zcdp(PLAN) == math.inf
    assert not made.composition(PLAN).private


@pytest.mark.parametrize("what", ["gaussian sum: ", "gaussian sum", "evaluation", "", "clip  estimate"])
def test_only_declared_sums_are_understood(what: str) -> None:
    assert Ledger((histogram(0, what="gaussian sum: words typed"),)).zcdp(PLAN) == 1 / 32
    with pytest.raises(UnknownRelease, match="none of"):
        Ledger((histogram(0, what=what),)).zcdp(PLAN)


@settings(max_examples=60, deadline=None)
@given(
    released=st.sets(st.integers(0, 11), min_size=1),
    separation=st.integers(1, 6),
    most=st.integers(1, 5),
    strategy=st.sampled_from([Independent(), Tree(), Tree(restarts=(2,)), Blt(theta=(0.9,), omega=(0.5,))]),
    even=st.booleans(),
)
def test_sequences_that_skip_rounds_against_all_patterns(
    released: set[int], separation: int, most: int, strategy: Strategy, even: bool
) -> None:
    rounds = sorted(released)
    if even:
        rounds = list(range(rounds[0], 12, 1 + len(rounds) % 4))
    plan = Participation(rounds=12, min_separation=separation, max_participations=most)
    ledger = Ledger(tuple(histogram(round, strategy_record=strategy.to_record()) for round in rounds))
    (made,) = ledger.composition(plan).sequences
    matrix = strategy.dense(len(rounds))
    patterns = (
        pattern
        for count in range(1, most + 1)
        for pattern in itertools.combinations(range(len(rounds)), count)
        if all(rounds[j] - rounds[i] >= separation for i, j in itertools.pairwise(pattern))
    )
    worst = max(float(np.sum(matrix[:, pattern].sum(axis=1) ** 2)) for pattern in patterns)
    assert made.guarantee.sensitivity_squared >= worst * (1 - 1e-12)
    if even or isinstance(strategy, Independent):
        assert made.guarantee.sensitivity_squared == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("name", ["clip_norm", "clip_inflation"])
@pytest.mark.parametrize("strategy", [Tree(restarts=(4,)), Tree(), PUBLISHED_BLT["b100"]], ids=repr)
def test_the_clip_norm_changes_at_restarts_only(strategy: Strategy, name: str) -> None:
    for changed_at in range(1, 8):
        changed = {name: 2.0}
        ledger = Ledger(tuple(release(each, strategy, **(changed if each >= changed_at else {})) for each in range(8)))
        if isinstance(strategy, Tree) and changed_at in strategy.restarts:
            inflation = 2.0 if name == "clip_inflation" else 1.0
            assert ledger.zcdp(PLAN) == pytest.approx(run_of(8, strategy).zcdp(PLAN) * inflation**2, rel=1e-12)
        else:
            with pytest.raises(UnknownRelease, match=f"{name} is 2.0 in round {changed_at}"):
                ledger.zcdp(PLAN)


def test_the_noise_multiplier_never_changes_not_even_at_a_restart() -> None:
    ledger = run_of(4, Tree(restarts=(4,))).add(release(4, Tree(restarts=(4,)), noise_multiplier=3.0))
    with pytest.raises(UnknownRelease, match=r"noise_multiplier is 3\.0 in round 4"):
        ledger.zcdp(PLAN)


def test_independent_noise_starts_afresh_every_round() -> None:
    ledger = Ledger(tuple(release(each, Independent(), clip_norm=1.0 + each) for each in range(4)))
    (made,) = ledger.composition(PLAN).sequences
    assert made.clip_norms == ((0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0))
    assert made.guarantee.seed_stddev == 8.0  # of the clip norm in force now


def test_a_clip_estimate_counts_shifted_bits_every_round() -> None:
    good = Ledger(tuple(release(each, Tree(), what="clip estimate", clip_norm=0.5) for each in range(4)))
    assert good.zcdp(PLAN) == run_of(4, Tree()).zcdp(PLAN)
    with pytest.raises(UnknownRelease, match=r"a bit minus 1/2 has norm 0\.5"):
        Ledger((release(0, Tree(), what="clip estimate", clip_norm=1.0),)).zcdp(PLAN)
    with pytest.raises(UnknownRelease, match="where round 4 belongs"):
        good.add(release(5, Tree(), what="clip estimate", clip_norm=0.5)).zcdp(PLAN)


def test_a_round_of_a_histogram_is_released_once_and_in_order() -> None:
    for rounds in ((3, 3), (3, 2)):
        with pytest.raises(UnknownRelease, match="where one after 3 belongs"):
            Ledger(tuple(histogram(round) for round in rounds)).zcdp(PLAN)
    with pytest.raises(AccountingError, match="rounds=41 lie beyond"):
        Ledger((histogram(40),)).zcdp(PLAN)


ONCE = Participation(rounds=1, min_separation=1, max_participations=1)


def test_histograms_of_local_reports_promise_what_their_randomizers_do() -> None:
    ledger = Ledger((counted(1, 40, 0), counted(2, 39, 40), counted(3, 0, 79)))
    made = ledger.account(ONCE, central_delta=1e-6)
    assert isinstance(made, LocalGuarantee)
    assert made == ledger.local_guarantee(central_delta=1e-6)
    assert (made.user_epsilon, made.groups) == (2.0, (Group(40, 5), Group(39, 5)))  # nobody was asked the third
    assert made.central.epsilon_upper < 2.0
    assert tuple(release_from(json.loads(json.dumps(to_plain(each)))) for each in ledger.releases) == ledger.releases


@pytest.mark.parametrize(
    ("releases", "error", "says"),
    [
        ((counted(1, 40, 0), counted(2, 40, 39)), AccountingError, "histogram 2 of step 1, and groups that share"),
        ((counted(1, 40, 0), counted(1, 40, 40)), UnknownRelease, "histogram 1 of step 1 stands in the ledger twice"),
        ((counted(1, 40, 0), counted(0, 40, 40)), UnknownRelease, "below what it counts from"),
        ((counted(1, 40, 0, own_support=0.99),), UnknownRelease, "support"),
        ((counted(1, 0, 0),), AccountingError, "empty"),
    ],
)
def test_local_histograms_without_a_theorem_are_refused(
    releases: tuple[LocalReports, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Ledger(releases).account(ONCE)


def test_clients_who_reported_in_two_steps_are_refused() -> None:
    twice = Participation(rounds=2, min_separation=1, max_participations=2)
    with pytest.raises(AccountingError, match="asked in 2 rounds"):
        Ledger((counted(1, 40, 0), counted(1, 40, 40, turn=2))).account(twice)


def test_noised_sums_are_accounted_by_their_composition() -> None:
    assert run_of(40, Tree()).account(PLAN) == run_of(40, Tree()).composition(PLAN)
    with pytest.raises(AccountingError, match="empty"):
        Ledger().account(PLAN)


def test_a_mixture_of_kinds_is_refused_in_whatever_order() -> None:
    for mixed in ((release(0, Tree()), counted(1, 40, 0)), (counted(1, 40, 0), release(0, Tree()))):
        for account in (Ledger(mixed).account, Ledger(mixed).composition, Ledger(mixed).zcdp):
            with pytest.raises(UnknownRelease, match="account each kind"):
                account(ONCE)
        with pytest.raises(UnknownRelease, match="account each kind"):
            Ledger(mixed).local_guarantee()


def test_what_is_no_release_is_refused() -> None:
    with pytest.raises(UnknownRelease, match="the ledger holds a str"):
        Ledger(("a rumour",)).account(ONCE)  # type: ignore[arg-type]
    for record in (None, {}, {**to_plain(release(0)), "kind": "a rumour"}, {"kind": ["noised sum"]}):
        with pytest.raises(UnknownRelease, match="neither a noised sum nor local reports"):
            release_from(record)
