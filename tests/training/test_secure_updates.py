"""Training on encoded updates: the same bits whoever computes them, a guarantee that counts the encoding, refusals."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.training.tiny import (
    MECHANISMS,
    cohorts_of,
    collector_of,
    cores,
    first_state,
    poisoned_loss,
    tiny_cache,
    tiny_learner,
    tiny_recipe,
    what_happened,
)
from tests.training.secure_plans import KEY, ONE, SECURE, plan_of

from tacit.data import Cache
from tacit.errors import InputError, RecipeError, RoundAborted, TrainingError
from tacit.federation.collector import Answered
from tacit.jobs.report import report
from tacit.jobs.train.run import begin, carry_on
from tacit.privacy import Guarantee
from tacit.privacy.encoding import Encoding, clip_inflation
from tacit.privacy.encoding_choice import encoding_within
from tacit.runs import Run
from tacit.secure_aggregation import decode
from tacit.secure_aggregation.counts import Played
from tacit.statements.accounts import accounts_of, trained
from tacit.statements.ledger import Ledger
from tacit.statements.run_facts import statement_of
from tacit.statements.verify import verify
from tacit.training import TrainQuestion, secure_updates
from tacit.training.cohort import CohortSum, train_cohort
from tacit.training.one_by_one import DevicesOneByOne
from tacit.training.report_encoding import bounded_loss, bounded_sum, whole_loss
from tacit.training.rounds import run_round
from tacit.training.secure_updates import RoundEncoding, SecureUpdates


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


class Watched(DevicesOneByOne):
    """Devices asked one by one, and what they were asked."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.tasks: list[TrainQuestion] = []

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        self.tasks.append(task)
        return super().collect(state, task, seed=seed)


def test_the_sum_has_the_same_bits_whoever_computes_it(cache: Cache) -> None:
    """Integers have no order of addition; diverged clients and nobody's places add none."""
    learner, plan = tiny_learner(cache, poisoned_loss), plan_of(cache)
    clients = np.arange(33)  # the last shard is filled up with nobody
    how = RoundEncoding(encoding=SecureUpdates().encoding(len(learner.start), plan.updates, 33), signs=bytes(32))

    def cohort(workers: int, clients: Any = clients) -> CohortSum:
        return train_cohort(
            learner.work(plan.client),
            jnp.asarray(learner.start),
            clients,
            seed=KEY,
            clip_norm=plan.updates.clip_norm,
            workers=cores(workers),
            secure=how,
        )

    one, two = cohort(1), cohort(2)
    assert 0 < int((~one.counted).sum()) < len(clients)
    np.testing.assert_array_equal(one.total, two.total)
    np.testing.assert_array_equal(one.norms, two.norms)
    np.testing.assert_array_equal(one.total, cohort(1, clients[::-1]).total)


reports_of = st.lists(
    st.tuples(st.floats(0, 4, width=32), st.floats(-1, 30, width=32) | st.just(math.nan)), min_size=1, max_size=9
)


@given(
    said=reports_of,
    estimate=st.none() | st.sampled_from([0.0, 1.0, 2.5]),
    bound=st.none() | st.sampled_from([0.7, 10.0]),
    inflation=st.sampled_from([1.001, 1.1, 2.0, 20.0]),
)
def test_one_sum_holds_all_that_the_server_learns(
    said: list[tuple[float, float]], estimate: float | None, bound: float | None, inflation: float
) -> None:
    """Coarse encodings, whose coordinates hold little, take many digits for a loss."""
    encoding = encoding_within(5, clip_norm=1.0, report_goal=9, inflation=inflation, sigmas=1.0)
    how = RoundEncoding(encoding=encoding, signs=bytes(32), clip_estimate=estimate, loss_bound=bound)
    total, update = how.sums.zero(), np.full(5, 0.2, np.float32)
    for client, (norm, loss) in enumerate(said):
        report = how.encoded(update, norm=np.float32(norm), loss=np.float32(loss), seed=KEY, client=client)
        assert report.shape == (how.length,) and report.max() <= 2 * encoding.largest
        total += report
    found = how.opened(total, len(said))
    assert found.short_updates == (None if estimate is None else sum(norm <= estimate for norm, _ in said))
    exact = bounded_sum(np.array([loss for _, loss in said], np.float32), bound)
    if exact is None or bound is None:
        assert found.losses is None
    else:
        assert found.losses is not None and abs(found.losses) <= len(said) * bound / 2
        assert found.losses == pytest.approx(exact, abs=len(said) * bound / 2**16)
    np.testing.assert_array_equal(found.total, decode_of(encoding, total, len(said)))


def decode_of(encoding: Encoding, total: Any, reports: int) -> Any:
    updates = total[: encoding.dimension] & np.uint32(encoding.modulus - 1)
    return decode(updates, encoding, signs=bytes(32), reports=reports)


@given(loss=st.floats(width=32), bound=st.sampled_from([0.7, 10.0]))
def test_a_whole_loss_is_a_step_from_the_bounded_one_and_never_farther_from_the_middle(
    loss: float, bound: float
) -> None:
    plain = bounded_sum(np.array([loss], np.float32), bound)
    found = bounded_loss(whole_loss(np.float32(loss), bound), 1, bound)
    assert plain is not None
    assert abs(found) <= abs(plain) <= abs(found) + bound / 2**16 * (1 + 1e-9)


def test_a_sum_of_other_reports_than_were_added_is_spoilt() -> None:
    how = RoundEncoding(encoding=encoding_within(5, 1.0, 9), signs=bytes(32), threshold=2)
    update = np.zeros(5, np.float32)
    one, other = (how.encoded(update, norm=np.float32(0), loss=np.float32(0), seed=KEY, client=i) for i in (0, 1))
    assert how.opened(one + other, 2).total.shape == (5,)
    twice = one + other
    twice[how.encoding.dimension] += 1
    with pytest.raises(InputError, match="says that it is of 3 reports, and 2 were added"):
        how.opened(twice, 2)
    with pytest.raises(RoundAborted, match="1 reports came, and no sum of fewer than 2"):
        how.opened(one, 1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_adds_its_noise_to_encoded_sums(cache: Cache, mechanism: str) -> None:
    learner, plan = tiny_learner(cache), plan_of(cache, mechanism)
    plain = replace(plan, secure=None, guarantee=replace(plan.guarantee, clip_inflation=1.0))
    states = []
    for each in (plan, plain):
        state = first_state(learner, each)
        state, outcome = run_round(state, 0, plan=each, key=KEY, collector=collector_of(learner, each, cores(), KEY))
        states.append(np.asarray(state.model))
        assert outcome.release.clip_inflation == each.guarantee.clip_inflation
    assert not np.array_equal(*states)
    if plan.guarantee.strategy is None:  # noise is bound to the sum that it is added to, and would differ
        encoding = plan.encoding(len(learner.start))
        assert encoding is not None
        rounding = math.sqrt(plan.report_goal * len(learner.start) / 6) / encoding.scale / plan.report_goal
        assert np.linalg.norm(states[0] - states[1]) == pytest.approx(rounding, rel=0.1)
    else:
        assert plan.guarantee.zcdp == pytest.approx(plain.guarantee.zcdp * 1.01**2, rel=1e-12)


def test_the_ledger_accounts_what_was_planned_with_counts_and_losses_beside(cache: Cache) -> None:
    """Only the updates become longer; counts and losses are exact integers."""
    learner = tiny_learner(cache)
    plan = plan_of(cache, "independent", clipping={"initial": 0.2}, training_loss={"bound": 10.0})
    state, collector = first_state(learner, plan), collector_of(learner, plan, cores(), KEY)
    ledger = Ledger()
    for round in range(plan.rounds):
        state, outcome = run_round(state, round, plan=plan, key=KEY, collector=collector)
        for release in (outcome.release, *outcome.also):
            ledger = ledger.add(release)
    found = ledger.composition(plan.guarantee.participation)
    inflations = {each.what: each.guarantee.clip_inflation for each in found.sequences}
    assert inflations == {"model update": 1.01, "clip estimate": 1.0, "training loss": 1.0}
    assert found.zcdp == pytest.approx(plan.guarantee.zcdp, rel=1e-12)


def test_the_scale_follows_the_clip_norm_in_force(cache: Cache) -> None:
    learner = tiny_learner(cache)
    plan = plan_of(cache, "independent", clipping={"initial": 0.2, "learning_rate": 5.0})
    collector, state = Watched(learner, cohorts_of(learner, plan, KEY)), first_state(learner, plan)
    for round in range(4):
        state, _ = run_round(state, round, plan=plan, key=KEY, collector=collector)
    how = [task.secure for task in collector.tasks]
    assert all(each is not None for each in how)
    encodings = [each.encoding for each in how if each is not None]
    assert [each.clip_norm for each in encodings] == [task.clip_norm for task in collector.tasks]
    assert len({each.clip_norm for each in encodings}) == 4
    assert {(each.largest, each.bits, each.dimension) for each in encodings} == {
        (encodings[0].largest, encodings[0].bits, encodings[0].dimension)
    }
    for each in encodings:
        assert each.scale * each.clip_norm == pytest.approx(encodings[0].scale * encodings[0].clip_norm, rel=1e-12)
        assert each.inflation == pytest.approx(1.01, rel=1e-12)
    assert len({each.signs for each in how if each is not None}) == 4


def test_the_guarantee_of_a_recipe_covers_its_encoding(cache: Cache) -> None:
    recipe = tiny_recipe(
        cache.path,
        privacy={"mechanism": {"name": "tree"}, "zcdp": 1.0},
        aggregation={"kind": "secure", "inflation": 1.2},
    )
    plan = recipe.plan()
    assert plan.guarantee.zcdp == pytest.approx(1.0, rel=1e-9)
    plain = tiny_recipe(cache.path, privacy={"mechanism": {"name": "tree"}, "zcdp": 1.0}).plan().guarantee
    assert plan.guarantee.noise_multiplier == pytest.approx(1.2 * plain.noise_multiplier, rel=1e-9)
    encoding = plan.encoding(12_345)
    assert encoding is not None
    assert clip_inflation(encoding.clip_norm, encoding.dimension, encoding.scale) <= plan.guarantee.clip_inflation
    assert (plan.encoding(12_345), plan.secure) == (encoding, SecureUpdates())


def test_a_run_that_was_interrupted_ends_in_the_same_bits(cache: Cache, tmp_path: Path) -> None:
    recipe = tiny_recipe(
        cache.path,
        privacy={"mechanism": {"name": "tree", "restarts": [5]}, "noise_multiplier": 0.3},
        clipping={"initial": 0.2},
        **SECURE,
    )
    with begin(recipe, tmp_path / "whole", anyway=True) as run:
        carry_on(run, hardware=ONE)
    for until in (3, 7, None):
        with begin(recipe, tmp_path / "parts", anyway=True) as run:
            carry_on(run, hardware=ONE, until=until)
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")


@pytest.mark.parametrize("protocol", ["masks", "one-message"])
def test_clients_that_play_a_whole_protocol_change_no_bit(cache: Cache, protocol: str) -> None:
    learner, models = tiny_learner(cache), []
    for played in ({}, {"protocol": protocol, "protocol_clients": 4}, {"protocol": protocol, "protocol_clients": 6}):
        plan = plan_of(cache, aggregation={"kind": "secure", **played})
        state, collector = first_state(learner, plan), collector_of(learner, plan, cores(), KEY)
        state, outcome = run_round(state, 0, plan=plan, key=KEY, collector=collector)
        assert outcome.release.reports == plan.report_goal
        models.append(np.asarray(state.model))
    np.testing.assert_array_equal(models[0], models[1])
    np.testing.assert_array_equal(models[0], models[2])


def test_the_sum_of_a_protocol_is_the_one_that_is_used(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = tiny_learner(cache)
    plan = plan_of(cache, aggregation={"kind": "secure", "protocol": "masks", "protocol_clients": 4})
    state, collector = first_state(learner, plan), collector_of(learner, plan, cores(), KEY)
    asked: list[int] = []

    def spoilt(protocol: str, words: Any, *, bits: int, **_: Any) -> Played:
        asked.append(len(words))
        return Played(sum(words) + np.uint32(1 << (bits - 1)), tuple(range(len(words))))

    monkeypatch.setattr(secure_updates, "play", spoilt)
    with pytest.raises(InputError, match="spoilt"):
        run_round(state, 0, plan=plan, key=KEY, collector=collector)
    assert asked == [4]


@pytest.mark.parametrize(
    ("played", "stated", "reported"),
    [
        (
            {},
            "The protocol that would keep the summands from the server was not run",
            "the protocol that hides the summands was not run",
        ),
        (
            {"protocol": "masks", "protocol_clients": 3},
            "Of each round 3 clients played the whole protocol that keeps the summands from the server, pairwise masks",
            "3 clients of each round played the protocol 'masks'",
        ),
    ],
    ids=["no protocol", "masks"],
)
def test_the_statement_and_the_report_say_what_was_done(
    cache: Cache, tmp_path: Path, played: dict[str, Any], stated: str, reported: str
) -> None:
    section = {"kind": "secure", **played}
    recipe = tiny_recipe(cache.path, privacy={"mechanism": {"name": "tree"}, "zcdp": 1.0}, aggregation=section)
    with begin(recipe, tmp_path / "run", anyway=True) as run:
        carry_on(run, hardware=ONE)
    with Run.open(tmp_path / "run") as run:
        found, accounts = statement_of(run), accounts_of(run)
        secure = trained(run).secure
    assert secure is not None and (secure.threshold, secure.report_goal) == (3, 6)
    assert accounts.realised is not None and accounts.planned.zcdp == pytest.approx(1.0)
    assert accounts.realised.sequences[0].guarantee.clip_inflation == 1.01
    text = found.markdown()
    for words in (
        f"padded to {secure.dimension:,}, {secure.bits} bits each",
        "lengthens it by a factor of at most 1.01",
        "none of fewer than 3 reports",
        "hides nothing from whoever runs it, and by the protocol alone a server would still learn each exact sum",
        stated,
        "at most 1.01 times that once encoded for secure aggregation",
    ):
        assert words in text, words
    assert all(line.holds for line in verify(found.to_record()))
    report(tmp_path / "run")
    page = (tmp_path / "run" / "report" / "report.md").read_text()
    assert "sums of updates" in page and reported in page


# -- what is refused -----------------------------------------------------------------------------------------------


def test_a_sum_of_fewer_reports_than_the_threshold_is_not_opened(cache: Cache) -> None:
    learner, plan = tiny_learner(cache, poisoned_loss), plan_of(cache, aggregation={"kind": "secure", "threshold": 6})
    collector = collector_of(learner, plan, cores(), KEY)
    with pytest.raises(TrainingError, match=r"round 0: [1-5] reports came, and no sum of fewer than 6 is opened"):
        run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector)
    lower = plan_of(cache, aggregation={"kind": "secure", "threshold": 2})
    _, outcome = run_round(first_state(learner, lower), 0, plan=lower, key=KEY, collector=collector)
    assert 2 <= outcome.release.reports < 6


def test_the_threshold_is_half_of_the_report_goal_by_default() -> None:
    assert [SecureUpdates().min_reports(goal) for goal in (2, 3, 5, 100)] == [2, 2, 3, 50]
    assert SecureUpdates(threshold=7).min_reports(9) == 7
    with pytest.raises(InputError, match="the sum of one report hides nothing"):
        SecureUpdates().min_reports(1)


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ({"kind": "secure", "threshold": 7}, r"aggregation\.threshold=7 is not between 2 and rounds\.report_goal=6"),
        ({"kind": "secure", "threshold": 1}, r"aggregation\.threshold"),
        ({"kind": "secure", "inflation": 1.0}, r"aggregation\.inflation"),
        ({"kind": "secure", "inflation": "1%"}, r"aggregation\.inflation"),
        ({"kind": "secure", "sigmas": 0.01}, r"aggregation\.sigmas"),
        ({"kind": "masked"}, r"aggregation\.kind"),
        ({"kind": "secure", "protocol": "other"}, r"aggregation\.protocol"),
        ({"kind": "secure", "protocol_clients": 3}, r"aggregation\.protocol_clients=3 are to play no protocol"),
        ({"kind": "secure", "protocol": "masks", "protocol_clients": 2}, r"aggregation\.protocol_clients"),
        (
            {"kind": "secure", "protocol_dropout": 0.1},
            r"protocol_dropout=0\.1 is the chance .* name one with aggregation",
        ),
        ({"kind": "secure", "protocol": "masks", "protocol_dropout": 0.31}, r"aggregation\.protocol_dropout"),
        ({"kind": "secure", "protocol": "masks", "protocol_dropout": -0.1}, r"aggregation\.protocol_dropout"),
        ({"kind": "secure", "protocol": "masks", "protocol_clients": 7}, r"protocol_clients=7 are more than rounds"),
        ({"inflation": 1.1}, r"aggregation\.kind"),
        ({"kind": "secure", "scale": 3.0}, r"aggregation\.scale"),
    ],
)
def test_recipes_that_cannot_be_are_refused(cache: Cache, section: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RecipeError, match=complaint):
        tiny_recipe(cache.path, aggregation=section)


def test_a_report_goal_beyond_the_modulus_is_refused_before_the_first_round(cache: Cache, tmp_path: Path) -> None:
    tight = {"aggregation": {"kind": "secure", "inflation": 1 + 1e-13}}
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["blt"], **tight)
    with pytest.raises(InputError, match=r"sums of report_goal=6 .* bits a coordinate, and words have 32"):
        begin(recipe, tmp_path / "run", anyway=True)
    assert not (tmp_path / "run").exists()


def test_a_guarantee_that_counts_no_inflation_has_no_encoding(cache: Cache) -> None:
    plan = plan_of(cache)
    bare: Guarantee = replace(plan.guarantee, clip_inflation=1.0)
    with pytest.raises(InputError, match="above 1"):
        first_state(tiny_learner(cache), replace(plan, guarantee=bare))
