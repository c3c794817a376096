"""Clients that vanish from the protocol that they play: what sum, counts and log say then, and aborted rounds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
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
from tests.training.secure_plans import KEY, ONE, plan_of

from tacit.data import Cache
from tacit.errors import ParticipationError, RoundAborted, TrainingError
from tacit.jobs.train.run import begin, carry_on
from tacit.privacy.encoding_choice import encoding_within
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.secure_aggregation.counts import SENDS_VECTOR, Played
from tacit.secure_aggregation.simulated_protocol import FEWEST, Protocol
from tacit.statements.run_facts import statement_of
from tacit.statements.verify import verify
from tacit.training import secure_updates
from tacit.training.cohort import CohortSum, train_cohort
from tacit.training.collect import ATTEMPTS
from tacit.training.one_by_one import DevicesOneByOne
from tacit.training.rounds import run_round
from tacit.training.secure_updates import RoundEncoding, SecureUpdates

LOSING = {"kind": "secure", "protocol": "masks", "protocol_clients": 6, "protocol_dropout": 0.2, "threshold": 3}
DIVERGED_FOURTH = [3, 4, 7, 5, 8, 9, 10, 12, 13, 14, 15]  # who types the poisoned word: the fourth, and the last


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def losing(cache: Cache, **section: Any) -> Any:
    return plan_of(
        cache,
        "independent",
        aggregation={**LOSING, **section},
        clipping={"initial": 0.2},
        training_loss={"bound": 10.0},
        rounds={"rounds": 4, "report_goal": 6, "min_separation": 1, "max_participations": 4},
    )


def aborting(monkeypatch: pytest.MonkeyPatch, when: Any) -> list[int]:
    """The protocol is aborted in those of its calls, counted from 0, of which `when` says so; the calls."""
    calls: list[int] = []
    play = secure_updates.play

    def sometimes(*of: Any, **how: Any) -> Played:
        calls.append(len(calls))
        if when(calls[-1]):
            raise RoundAborted("2 of 6 clients sent their vectors, of 4 without whom no sum is opened.")
        return play(*of, **how)

    monkeypatch.setattr(secure_updates, "play", sometimes)
    return calls


@pytest.mark.parametrize("protocol", ["masks", "one-message"])
def test_the_sum_is_of_those_who_reported_before_they_vanished(cache: Cache, protocol: Protocol) -> None:
    """Beside the sum over the others alone, for which nobody plays; three clients play nothing, and one diverged."""
    learner, plan, clients = tiny_learner(cache, poisoned_loss), losing(cache), np.array(DIVERGED_FOURTH)
    encoding = SecureUpdates().encoding(len(learner.start), plan.updates, len(clients))
    alone = RoundEncoding(encoding=encoding, signs=bytes(32), clip_estimate=0.2, loss_bound=10.0)
    how = replace(alone, played=secure_updates.SimulatedProtocol(protocol=protocol, devices=8), dropout=0.25)

    def cohort(how: RoundEncoding, clients: Any, seed: bytes) -> CohortSum:
        return train_cohort(
            learner.work(plan.client),
            jnp.asarray(learner.start),
            clients,
            seed=seed,
            clip_norm=plan.updates.clip_norm,
            workers=cores(),
            secure=how,
        )

    before = after = 0
    for number in range(8):
        seed = bytes([number] * 32)
        vanished = how.vanishing(seed)
        silent = {place for place, sent in vanished.items() if sent <= SENDS_VECTOR}
        everybody = cohort(alone, clients, seed)
        there = np.array([place not in silent for place in range(len(clients))]) & everybody.counted
        staying = sum(everybody.counted[place] and place not in vanished for place in range(8))
        if (protocol == "masks" and staying < 5) or there[:8].sum() < FEWEST:
            with pytest.raises(RoundAborted, match=r"without whom no sum|too many vanished|no sum of fewer than 3"):
                cohort(how, clients, seed)
            continue
        found = cohort(how, clients, seed)
        wanted = cohort(alone, clients[there], seed)
        np.testing.assert_array_equal(found.counted, there)
        np.testing.assert_array_equal(found.total, wanted.total)
        assert found.opened is not None and wanted.opened is not None
        assert found.opened[1:] == wanted.opened[1:]
        before, after = before + len(silent), after + len(vanished) - len(silent)
    assert before and after, "of both kinds there must be some"


def test_a_share_of_the_clients_vanishes_at_every_step() -> None:
    how = RoundEncoding(
        encoding=encoding_within(100, clip_norm=1.0, report_goal=1000),
        signs=bytes(32),
        played=secure_updates.SimulatedProtocol(devices=1000),
        dropout=0.2,
    )
    gone = [how.vanishing(bytes([seed] * 32)) for seed in range(20)]
    share = np.mean([len(each) for each in gone]) / 1000
    assert abs(share - 0.2) < 5 * (0.2 * 0.8 / 20_000) ** 0.5
    steps = np.bincount([sent for each in gone for sent in each.values()], minlength=5)
    assert len(steps) == 5 and np.abs(steps / steps.sum() - 0.2).max() < 5 * (0.2 * 0.8 / steps.sum()) ** 0.5
    assert gone[0] == how.vanishing(bytes(32)) != gone[1]


def test_devices_asked_one_by_one_vanish_alike(cache: Cache) -> None:
    learner, plan = tiny_learner(cache), losing(cache, threshold=2)
    key = bytes([5] * 16)
    states = [first_state(learner, plan) for _ in range(2)]
    collectors = collector_of(learner, plan, cores(), key), DevicesOneByOne(learner, cohorts_of(learner, plan, key))
    dropped = 0
    for round in range(3):
        done = [
            run_round(state, round, plan=plan, key=key, collector=collector)
            for state, collector in zip(states, collectors, strict=True)
        ]
        (fast, found), (slow, twin) = done
        np.testing.assert_array_equal(found.clients, twin.clients)
        assert (found.release.reports, found.release.dropped) == (twin.release.reports, twin.release.dropped)
        assert len(found.clients) == found.release.reports + found.release.dropped
        dropped += found.release.dropped
        states = [fast, slow]
    assert dropped


# -- aborted rounds ----------------------------------------------------------------------------------------------------


def test_an_aborted_round_is_begun_again_with_another_cohort(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever trained for nothing is in the log, and stays away as long as the others."""
    learner, plan = tiny_learner(cache), plan_of(cache, aggregation={**LOSING, "protocol_dropout": 0.0})
    collector = collector_of(learner, plan, cores(), KEY)
    _, whole = run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector)
    calls = aborting(monkeypatch, lambda call: call < 2)
    state, outcome = run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector)
    assert len(calls) == 3
    assert len(outcome.clients) == len(set(outcome.clients.tolist())) == 18
    np.testing.assert_array_equal(outcome.clients[:6], whole.clients)
    assert (outcome.release.reports, outcome.release.dropped) == (6, 12)
    _, later = run_round(state, 1, plan=plan, key=KEY, collector=collector)
    assert not set(later.clients.tolist()) & set(outcome.clients.tolist())


@pytest.mark.parametrize(
    ("goal", "raised", "said"),
    [
        (3, TrainingError, f"So it went with {ATTEMPTS} cohorts.*Nothing was released.*protocol_clients"),
        (
            6,
            ParticipationError,
            "round 3 needs report_goal=6 .*6 cohorts of this round were given up, the last because",
        ),
    ],
    ids=["always", "until nobody is free"],
)
def test_a_round_that_is_aborted_again_and_again_releases_nothing(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: int, raised: Any, said: str
) -> None:
    recipe = tiny_recipe(
        cache.path,
        privacy=MECHANISMS["blt"],
        aggregation={"kind": "secure", "protocol": "masks", "protocol_clients": 3},
        rounds={"rounds": 9, "report_goal": goal, "min_separation": 1, "max_participations": 9},
    )
    aborting(monkeypatch, lambda call: call >= 3)
    with begin(recipe, tmp_path / "run", anyway=True) as run:
        with pytest.raises(raised, match=said) as error:
            carry_on(run, hardware=ONE)
        assert "2 of 6 clients sent their vectors, of 4 without whom" in str(error.value)
    with Run.open(tmp_path / "run") as run:
        assert reconciled(run).steps_done == 3


def test_a_run_that_loses_clients_ends_in_the_same_bits_when_it_was_interrupted(cache: Cache, tmp_path: Path) -> None:
    """Aborted rounds included; the statement says what happened, and holds."""
    recipe = tiny_recipe(
        cache.path,
        privacy={"mechanism": {"name": "independent"}, "noise_multiplier": 0.3},
        clipping={"initial": 0.2},
        aggregation={**LOSING, "protocol_dropout": 0.3, "threshold": 2},
        rounds={"rounds": 9, "report_goal": 6, "min_separation": 2, "max_participations": 5},
    )
    with begin(recipe, tmp_path / "whole", anyway=True) as run:
        carry_on(run, hardware=ONE)
    for until in (2, 5, None):
        with begin(recipe, tmp_path / "parts", anyway=True) as run:
            carry_on(run, hardware=ONE, until=until)
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")
    with Run.open(tmp_path / "whole") as run:
        reconciled(run)
        sums = [release for step in run.steps() for release in step.releases]
        found = statement_of(run)
    assert {each["reports"] + each["dropped"] for each in sums} > {6}, "some round must have been begun again"
    assert min(each["reports"] for each in sums) < 6
    assert "each vanished on the way with a chance of 0.3" in found.markdown()
    assert all(line.holds for line in verify(found.to_record()))
