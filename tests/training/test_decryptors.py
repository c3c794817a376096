"""Decryptors in training: the noise that is released is all theirs and K times one's, and a run goes on with the
same.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy.stats import chi2
from tests.support.training.tiny import (
    MECHANISMS,
    collector_of,
    cores,
    first_state,
    poisoned_loss,
    tiny_cache,
    tiny_learner,
    tiny_recipe,
    what_happened,
)

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import InputError, RecipeError, RoundAborted, TrainingError, UnknownRelease
from tacit.federation.collector import Answered
from tacit.jobs.report import report
from tacit.jobs.train.noise_forecast import noise_forecast
from tacit.jobs.train.run import begin, carry_on
from tacit.mechanisms.all_rounds import carrying_stream
from tacit.privacy.shared_noise import of_one
from tacit.records import to_plain
from tacit.secure_aggregation import decode
from tacit.secure_aggregation.masked.messages import MaskedVector
from tacit.secure_aggregation.simulate import run_masked_round
from tacit.statements import NoisedSum
from tacit.statements.accounts import accounts_of, ledger_of
from tacit.statements.ledger import release_from
from tacit.statements.run_facts import facts_of, statement_of
from tacit.statements.train_facts import TrainingFacts
from tacit.statements.verify import against_run, verify
from tacit.training import RoundPlan, SimulatedCollector, TrainQuestion, states
from tacit.training.decryptors import first_states, noise_words
from tacit.training.hooks import Hooks
from tacit.training.one_by_one import DevicesOneByOne
from tacit.training.rounds import run_round
from tacit.training.secure_updates import RoundEncoding, round_signs

KEY = bytes(range(16))
PRIVATE = [name for name in MECHANISMS if name != "none"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def keeping(count: int, **more: Any) -> dict[str, Any]:
    return {"kind": "secure", "decryptors": count, **more}


def plan_of(cache: Cache, mechanism: str = "blt", **section: Any) -> RoundPlan:
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS[mechanism], aggregation={"kind": "secure", **section})
    return recipe.designed().plan(recipe.matrix())


def decoded(words: Sequence[NDArray[np.uint32]], how: RoundEncoding) -> NDArray[np.float32]:
    """What these words add up to, as a sum of no reports: (parameters,)."""
    total = np.sum(words, axis=0, dtype=np.uint32) & np.uint32(how.encoding.modulus - 1)
    return decode(total, how.encoding, signs=how.signs, reports=0)


def noise_of(plan: RoundPlan, parameters: int, key: bytes = KEY) -> list[NDArray[np.float32]]:
    """What decryptors add in every round of a run, decoded as a sum of no reports: (rounds, parameters)."""
    encoding, strategy = plan.encoding(parameters), plan.updates.strategy
    assert encoding is not None and strategy is not None
    carried = first_states(plan.decryptors, strategy, encoding.dimension)
    one = of_one(plan.updates, plan.honest_decryptors)
    found = []
    for round in range(plan.rounds):
        how = RoundEncoding(encoding=encoding, signs=round_signs(key, round))
        words, carried = noise_words(carried, one, how, model=jnp.zeros(parameters), key=key)
        assert len(words) == plan.decryptors
        found.append(decoded(words, how))
    return found


@pytest.mark.parametrize("mechanism", PRIVATE)
@pytest.mark.parametrize("honest", [1, 2])
def test_the_noise_is_k_decryptors_and_no_other_scale(cache: Cache, mechanism: str, honest: int) -> None:
    """The variance of each round's noise is K/h times that of one stream of the mechanism, in the units of updates."""
    plan, times = plan_of(cache, mechanism, decryptors=3, honest_decryptors=honest), 3 / honest
    strategy = plan.updates.strategy
    assert strategy is not None
    dense, released = carrying_stream(strategy).dense(plan.rounds), np.array(noise_of(plan, 3000), np.float64)
    rows = np.linalg.norm(dense, axis=1)
    covariance = released @ released.T / 3000 / (times * plan.updates.seed_stddev**2)
    np.testing.assert_allclose(covariance, dense @ dense.T, rtol=0, atol=0.15 * rows.max() ** 2)
    for noise, row in zip(released, rows, strict=True):
        square = float(np.square(noise / (plan.updates.seed_stddev * row)).sum())
        low, high = chi2.ppf(1e-6, noise.size), chi2.ppf(1 - 1e-6, noise.size)
        assert low < square / times < high
        wrong = {1, 2, 3, 4, 3 / 2, 3 / 4, 3 / 2**0.5} - {times}  # h forgotten, counted twice, without its root
        assert not any(low < square / each < high for each in wrong)


class Watched(SimulatedCollector):
    """A simulated population of which every sum is also made without decryptors' noise."""

    sums: list[tuple[TrainQuestion, Answered, Answered]]

    @classmethod
    def of(cls, collector: SimulatedCollector) -> "Watched":
        watched = cls.__new__(cls)
        watched.__dict__.update(vars(collector), sums=[])
        return watched

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        found, after = super().collect(state, task, seed=seed)
        exact, _ = super().collect(state, replace(task, noise=()), seed=seed)
        self.sums.append((task, found, exact))
        return found, after


@pytest.mark.parametrize("protocol", [None, "masks", "one-message"])
def test_the_server_decodes_noised_sums_and_adds_no_noise(cache: Cache, protocol: str | None) -> None:
    """What is released less the exact sum is the decryptors' integers, and the model moves by what is released
    alone.
    """
    played = {} if protocol is None else {"protocol": protocol, "protocol_clients": 3}
    learner, plan = tiny_learner(cache), plan_of(cache, decryptors=2, **played)
    plan = replace(plan, server=replace(plan.server, method="sgd", learning_rate=1.0))
    state, collector = first_state(learner, plan), Watched.of(collector_of(learner, plan, cores(), KEY))
    assert state.noise is None and len(state.decryptors) == 2
    for round in range(2):
        before = np.asarray(state.model)
        state, outcome = run_round(state, round, plan=plan, key=KEY, collector=collector)
        task, found, exact = collector.sums[-1]
        assert task.secure is not None and len(task.noise) == 2 and outcome.release.decryptors == 2
        added = decoded(task.noise, task.secure)
        assert np.abs(added).max() > 0.1
        np.testing.assert_allclose(found.values - exact.values, added, atol=1e-5 * np.abs(added).max())
        np.testing.assert_allclose(
            state.model, before + np.asarray(found.values) / plan.report_goal, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("honest", [1, 2])
def test_a_round_gets_the_noise_of_shares(cache: Cache, honest: int) -> None:
    """As the round is played, whatever the functions below it are given."""
    learner, plan = tiny_learner(cache), plan_of(cache, "independent", decryptors=3, honest_decryptors=honest)
    collector = Watched.of(collector_of(learner, plan, cores(), KEY))
    run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector)
    task, _, _ = collector.sums[-1]
    assert task.secure is not None
    noise = np.asarray(decoded(task.noise, task.secure), np.float64)
    square = float(np.square(noise / plan.updates.seed_stddev).sum())
    low, high = chi2.ppf(1e-6, noise.size), chi2.ppf(1 - 1e-6, noise.size)
    assert low < square / (3 / honest) < high
    assert not any(low < square / each < high for each in {3, 1.5, 0.75, 3 / 2**0.5} - {3 / honest})


def test_whoever_computes_the_round_has_the_same_bits(cache: Cache) -> None:
    learner, plan, models = tiny_learner(cache), plan_of(cache, decryptors=2), []
    for workers in (1, 2):
        state, collector = first_state(learner, plan), collector_of(learner, plan, cores(workers), KEY)
        for round in range(3):
            state, _ = run_round(state, round, plan=plan, key=KEY, collector=collector)
        models.append(np.asarray(state.model))
    np.testing.assert_array_equal(*models)
    for protocol in ("masks", "one-message"):
        played = plan_of(cache, decryptors=2, protocol=protocol, protocol_clients=4)
        state, collector = first_state(learner, played), collector_of(learner, played, cores(), KEY)
        for round in range(3):
            state, _ = run_round(state, round, plan=played, key=KEY, collector=collector)
        np.testing.assert_array_equal(models[0], np.asarray(state.model))


def test_devices_asked_one_by_one_make_the_same_sum(cache: Cache) -> None:
    """Within the rounding of a client's own arithmetic."""
    learner, plan, found = tiny_learner(cache), plan_of(cache, decryptors=2), []
    whole = collector_of(learner, plan, cores(), KEY)
    for collector in (whole, DevicesOneByOne(whole._learner, whole._cohorts)):
        state, _ = run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector)
        found.append(np.asarray(state.model))
    np.testing.assert_allclose(*found, atol=1e-3)


def test_each_decryptor_and_each_round_has_noise_of_its_own(cache: Cache) -> None:
    plan = plan_of(cache, "independent", decryptors=3)
    encoding, strategy = plan.encoding(500), plan.updates.strategy
    assert encoding is not None and strategy is not None

    def words(round: int, *, key: bytes = KEY, model: float = 0.0) -> tuple[NDArray[np.uint32], ...]:
        carried = first_states(3, strategy, encoding.dimension)
        for each in range(round + 1):
            how = RoundEncoding(encoding=encoding, signs=round_signs(key, each))
            said, carried = noise_words(carried, plan.updates, how, model=jnp.full(500, model), key=key)
        return said

    every = [*words(0), *words(1), *words(0, key=bytes(16)), *words(0, model=1.0)]
    assert len({each.tobytes() for each in every}) == len(every)
    assert all(np.array_equal(one, two) for one, two in zip(words(1), words(1), strict=True))


@pytest.mark.parametrize(
    "mechanism",
    ["tree", "blt", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("independent", "banded-inverse"))],
)
def test_a_run_that_was_interrupted_ends_in_the_same_bits(
    cache: Cache, tmp_path: Path, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from short checkpoints, which have keys in place of what each decryptor carries, and on two workers."""
    monkeypatch.setattr(states, "EVERY", 4)
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS[mechanism], aggregation=keeping(2))
    with begin(recipe, tmp_path / "whole", anyway=True) as run:
        carry_on(run, hardware=Hardware(workers=1))
    for until in (3, 7, None):
        with begin(recipe, tmp_path / "parts", anyway=True) as run:
            carry_on(run, hardware=Hardware(workers=2), until=until)
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")


def test_short_checkpoints_are_short(cache: Cache, tmp_path: Path) -> None:
    recipe = tiny_recipe(cache.path, aggregation=keeping(2))
    with begin(recipe, tmp_path / "run", anyway=True) as run:
        carry_on(run, hardware=Hardware(workers=1), until=3)
        whole, last = (load_file(tmp_path / "run" / "steps" / f"round-{at:06d}.safetensors") for at in (0, 2))
    assert {f".decryptors[{decryptor}].buffers" for decryptor in (0, 1)} <= set(whole) - set(last)
    assert [len(last[f".decryptors[{decryptor}].keys"]) for decryptor in (0, 1)] == [2, 2]


def test_no_device_opens_a_sum_without_every_decryptor() -> None:
    vectors = [np.full(5, number, np.uint32) for number in range(7)]
    whole = run_masked_round(vectors, bits=16, seed=1, fewest=3, always=[5, 6])
    assert whole.total is not None and int(whole.total[0]) == sum(range(7))
    without = run_masked_round(vectors, bits=16, seed=1, fewest=3, always=[5, 6], leaving=[(6, MaskedVector)])
    assert without.total is None and isinstance(without.aborted, RoundAborted)
    assert "client 6, without whom no sum is opened" in str(without.aborted)
    anyone = run_masked_round(vectors, bits=16, seed=1, fewest=3, leaving=[(6, MaskedVector)])
    assert anyone.total is not None and int(anyone.total[0]) == sum(range(6))


# -- what is promised ----------------------------------------------------------------------------------------------


def test_one_decryptors_noise_is_accounted_and_all_of_it_foreseen(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.planning.noise_forecast.FEWEST_ROUNDS", 9)  # as if runs of nine rounds were measured
    noise = {"mechanism": {"name": "tree"}, "epsilon": 8.0, "delta": 1e-3}
    plain, kept = (
        tiny_recipe(cache.path, privacy=noise, aggregation=section) for section in ({"kind": "secure"}, keeping(4))
    )
    assert kept.plan().guarantee == plain.plan().guarantee
    one, four = (noise_forecast(each).noise_forecast for each in (plain, kept))
    assert one is not None and four is not None and four.guarantee == one.guarantee
    assert four.noise == pytest.approx(2 * one.noise) and four.ratio == pytest.approx(2 * one.ratio)
    assert (
        "The noise of 4 decryptors is" in noise_forecast(kept).sentence
        and "decryptors" not in noise_forecast(plain).sentence
    )
    parameters = 12_345
    narrow, wide = (each.plan().encoding(parameters) for each in (plain, kept))
    assert narrow is not None and wide is not None
    assert (wide.scale, wide.largest) == (narrow.scale, narrow.largest) and wide.bits > narrow.bits
    assert wide.margin > 6 * math.sqrt(4) * wide.scale * kept.plan().updates.seed_stddev


def test_the_statement_the_ledger_and_the_report_say_who_was_trusted(cache: Cache, tmp_path: Path) -> None:
    private = {"mechanism": {"name": "tree"}, "zcdp": 1.0}
    section = keeping(3, protocol="masks", protocol_clients=3, threshold=4)
    with begin(tiny_recipe(cache.path, privacy=private, aggregation=section), tmp_path / "run", anyway=True) as run:
        carry_on(run, hardware=Hardware(workers=1))
        assert all(release.decryptors == 3 for release in ledger_of(run).noised_sums)
        found, accounts = statement_of(run), accounts_of(run)
        assert accounts.realised is not None and accounts.realised.zcdp == pytest.approx(1.0)
        assert all(line.holds for line in against_run(found.to_record(), run))
    text = found.markdown()
    for words in (
        "It holds against the server and all decryptors but one, if one decryptor is honest",
        "3 decryptors each add the whole noise of the mechanism",
        "1.73 times the standard deviation that is accounted",
        "none of fewer than 4 reports and none without the noise of all 3 decryptors, which were simulated",
        "beside the decryptors, without whose noise no device helps to open a sum",
        "of each of 3 decryptors, with keys from",
        "at most 1.01 times that once encoded",
    ):
        assert words in text, words
    assert "the server is trusted to run the mechanism" not in text
    record = found.to_record()
    assert record["facts"]["decryptors"] == 3 and all(line.holds for line in verify(record))
    record["facts"]["decryptors"] = 4
    assert {line.name for line in verify(record) if not line.holds} >= {"facts.decryptors", "items.0.text"}
    assert "honest_decryptors" not in record["facts"]
    report(tmp_path / "run")
    page = (tmp_path / "run" / "report" / "report.md").read_text()
    assert "noise added by" in page and "3 decryptors, simulated" in page


def test_the_statement_says_how_many_are_relied_on(cache: Cache, tmp_path: Path) -> None:
    private = {"mechanism": {"name": "tree"}, "zcdp": 1.0}
    section = keeping(3, honest_decryptors=2)
    with begin(tiny_recipe(cache.path, privacy=private, aggregation=section), tmp_path / "run", anyway=True) as run:
        carry_on(run, hardware=Hardware(workers=1), until=2)
        assert all((release.decryptors, release.honest_decryptors) == (3, 2) for release in ledger_of(run).noised_sums)
        found, realised = statement_of(run), accounts_of(run).realised
        assert realised is not None and all(line.holds for line in against_run(found.to_record(), run))
    text, record = found.markdown(), found.to_record()
    for words in (
        "3 decryptors each add 1/2 of the variance of the noise of the mechanism",
        "if at least 2 of 3 decryptors are honest and no sum is opened without them",
        "1.22 times the standard deviation that is accounted",
        "of any 2 together of 3 decryptors, with keys from",
    ):
        assert words in text, words
    assert record["facts"]["honest_decryptors"] == 2 and all(line.holds for line in verify(record))
    record["facts"]["honest_decryptors"] = 3
    assert {line.name for line in verify(record) if not line.holds} >= {"items.0.text"}


def test_facts_with_decryptors_of_no_noise_are_refused(cache: Cache, tmp_path: Path) -> None:
    with begin(tiny_recipe(cache.path), tmp_path / "run", anyway=True) as run:
        carry_on(run, hardware=Hardware(workers=1), until=1)
        facts = facts_of(run)
    assert isinstance(facts, TrainingFacts) and "decryptors" not in facts.to_record()
    for decryptors, complaint in ((3, "no encoding"), (1, "decryptors=1")):
        with pytest.raises(InputError, match=complaint):
            replace(facts, decryptors=decryptors)
    with pytest.raises(InputError, match="honest_decryptors=2 of 0 decryptors"):
        replace(facts, honest_decryptors=2)


def test_rows_of_ledgers_from_before_there_were_decryptors_are_read() -> None:
    row = NoisedSum(
        round=0, what="model update", strategy_record=None, clip_norm=1.0, noise_multiplier=0.0, reports=1, dropped=0
    )
    plain = to_plain(row)
    del plain["decryptors"]
    assert release_from(plain) == row
    del plain["clip_inflation"]
    with pytest.raises(UnknownRelease, match="lacks 'clip_inflation'"):
        release_from(plain)


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"aggregation": keeping(1)}, r"aggregation\.decryptors"),
        ({"aggregation": keeping(0)}, r"aggregation\.decryptors"),
        ({"aggregation": keeping(2.5)}, r"aggregation\.decryptors"),
        ({"aggregation": keeping(2, protocol="masks", protocol_dropout=0.1)}, r"protocol_dropout=0\.1 .* drop one"),
        ({"privacy": MECHANISMS["none"], "aggregation": keeping(2)}, r"mechanism='none' has none"),
        (
            {
                "privacy": {"mechanism": {"name": "independent"}, "noise_multiplier": 0.3},
                "clipping": {"initial": 0.2},
                "aggregation": keeping(2),
            },
            r"\[clipping\] releases sums of its own .* drop \[clipping\] or aggregation\.decryptors",
        ),
        ({"training_loss": {"bound": 10.0}, "aggregation": keeping(2)}, r"\[training_loss\] releases sums"),
    ],
)
def test_recipes_that_cannot_be_are_refused(cache: Cache, sections: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RecipeError, match=complaint):
        tiny_recipe(cache.path, **sections)


def test_a_round_that_is_aborted_is_not_begun_again_with_the_same_noise(cache: Cache) -> None:
    """A decryptor gives a round's noise once; without decryptors another cohort is asked."""
    learner = tiny_learner(cache, poisoned_loss)
    section = {"protocol": "masks", "protocol_clients": 6, "threshold": 6}
    plain, kept = plan_of(cache, "independent", **section), plan_of(cache, "independent", **section, decryptors=2)
    for plan, aborted in ((plain, False), (kept, True)):
        collector = collector_of(learner, plan, cores(), KEY)
        if aborted:
            with pytest.raises(TrainingError, match=r"round 0: .* Nothing was released"):
                run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector)
        else:
            _, outcome = run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector)
            assert len(outcome.clients) > plan.report_goal


def test_more_decryptors_than_words_hold_are_refused_before_the_first_round(cache: Cache, tmp_path: Path) -> None:
    loud = {"mechanism": {"name": "independent"}, "noise_multiplier": 3e5}
    recipe = tiny_recipe(cache.path, privacy=loud, aggregation=keeping(1000))
    with pytest.raises(InputError, match="bits a coordinate, and words have 32"):
        begin(recipe, tmp_path / "run", anyway=True)
    assert not (tmp_path / "run").exists()


def test_a_collector_of_ones_own_opens_sums_itself(cache: Cache, tmp_path: Path) -> None:
    recipe = tiny_recipe(cache.path, aggregation=keeping(2))
    learner, plan = tiny_learner(cache), recipe.designed().plan()
    hooks = Hooks(collector=collector_of(learner, plan, cores(), KEY))
    with pytest.raises(InputError, match=r"aggregation\.decryptors=2 .* drop aggregation\.decryptors"):
        begin(recipe, tmp_path / "run", hooks=hooks, anyway=True)
    assert not (tmp_path / "run").exists()
