"""Canaries, where they come, what is kept of rounds, and the bounds: each against what it ought to be."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray
from tests.support.training.tiny import LOSS, SETTINGS

from tacit.aggregation.clipping import clip
from tacit.audit.one_run.canaries import CanaryUpdates, canary_sentence, check_words, coins, projections
from tacit.audit.one_run.exposure import chance_of
from tacit.audit.one_run.places import CanaryCohorts, places, rounds_from, whitening
from tacit.audit.one_run.released import Watched, WatchedOptimizer, means_from_models
from tacit.audit.one_run.scores import Seen, scores
from tacit.audit.one_run.settings import CanarySettings
from tacit.errors import InputError
from tacit.mechanisms import stream_for
from tacit.privacy import Guarantee, Participation
from tacit.privacy.strategy import BandedToeplitz, Independent, Strategy, Tree
from tacit.training.client import ClientTraining, local_update, sgd_step
from tacit.training.server import Method, ServerOptimizer, server_step

LIMITS = Participation(rounds=6, min_separation=3, max_participations=2)
STRATEGIES = [Independent(), BandedToeplitz((1.0, 0.5, 0.25)), Tree()]
CLIENT = ClientTraining(batch_size=2, sentences=4, words=6)


def promised(strategy: Strategy, noise: float = 2.0) -> Guarantee:
    return Guarantee(participation=LIMITS, strategy=strategy, clip_norm=0.5, noise_multiplier=noise)


# -- what canaries send ------------------------------------------------------------------------------------------------


def sent(sentences: NDArray[np.int32]) -> tuple[jax.Array, jax.Array]:
    """(what a client with this text adds to a sum, the loss it names)."""
    model = SETTINGS.init(jax.random.key(0))
    update = jax.jit(partial(CanaryUpdates(5, SETTINGS.vocabulary), LOSS, settings=CLIENT, step=sgd_step(LOSS, CLIENT)))
    found, loss = update(model, jnp.asarray(sentences), jnp.int32(2))
    return ravel_pytree(clip(found, 0.5).update)[0], loss


def padded(ids: list[int]) -> NDArray[np.int32]:
    rows = np.zeros((4, CLIENT.words + 1), np.int32)
    rows[0, : len(ids)] = ids
    return rows


def test_a_canary_sends_its_direction_at_full_norm_or_nothing() -> None:
    included = coins(5, 40)
    assert 10 < included.sum() < 30
    directions = []
    for group in (int(np.flatnonzero(included)[0]), int(np.flatnonzero(included)[-1]), int(np.argmin(included))):
        vector, loss = sent(padded(canary_sentence(group, SETTINGS.vocabulary)))
        assert loss == 0
        if not included[group]:
            assert not vector.any()
            continue
        assert np.linalg.norm(vector) == pytest.approx(0.5, rel=1e-6)
        which = np.zeros(group + 1, np.int64)
        assert projections(5, np.asarray(vector)[None], which)[group] == pytest.approx(0.5, rel=1e-5)
        directions.append(np.asarray(vector) / 0.5)
    assert abs(directions[0] @ directions[1]) < 6 / np.sqrt(len(directions[0]))


def test_people_send_what_they_send_without_canaries() -> None:
    sentences = np.random.default_rng(0).integers(4, 60, (4, CLIENT.words + 1)).astype(np.int32)
    model = SETTINGS.init(jax.random.key(0))
    alone = jax.jit(partial(local_update, LOSS, settings=CLIENT, step=sgd_step(LOSS, CLIENT)))
    expected, _ = alone(model, jnp.asarray(sentences), jnp.int32(2))
    assert np.array_equal(sent(sentences)[0], ravel_pytree(clip(expected, 0.5).update)[0])


def test_a_sentence_that_training_cuts_too_short_is_refused() -> None:
    with pytest.raises(InputError, match=r"client\.words=3 cuts the sentence"):
        check_words(ClientTraining(words=3))


# -- where they come ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_weights_make_noise_one_and_a_canary_mu(strategy: Strategy) -> None:
    guarantee = promised(strategy)
    noise = stream_for(strategy).dense(6) * guarantee.seed_stddev
    weights, mu = whitening(guarantee)
    assert weights.shape == (3, 6)
    for start in range(3):
        assert np.linalg.norm(weights[start] @ noise) == pytest.approx(1)
        assert guarantee.clip_norm * weights[start, rounds_from(start, LIMITS)].sum() == pytest.approx(mu[start])
        assert mu[start] <= guarantee.mu * (1 + 1e-9)
    precision = np.linalg.inv(noise @ noise.T)
    worst = max(
        precision[np.ix_(came, came)].sum() for came in itertools.combinations(range(6), 2) if came[1] - came[0] > 2
    )
    assert mu.max() == pytest.approx(guarantee.clip_norm * np.sqrt(worst))
    assert isinstance(strategy, Tree) or mu.max() == pytest.approx(guarantee.mu)  # of a tree more is claimed than seen


def test_canaries_come_where_it_costs_most_and_as_often_as_anybody_may() -> None:
    guarantee = promised(BandedToeplitz((1.0, 0.5, 0.25)))
    found = places(guarantee, [4, 4, 4, 1, 1], report_goal=20)
    assert [many for _, many in found] == [8, 6]  # a group comes together
    costs = [whitening(guarantee)[1][start] for start, _ in found]
    assert costs == sorted(costs, reverse=True) and costs[0] == pytest.approx(guarantee.mu)
    cohorts = CanaryCohorts(LIMITS, found)
    clock = cohorts.init(80 + 14, report_goal=20)
    came: list[list[int]] = []
    for round in range(6):
        draw = np.random.default_rng(round)
        cohort, clock = cohorts.draw(clock, round=round, report_goal=20, generator=draw)
        assert len(set(cohort.tolist())) == 20
        came.append(sorted(each for each in cohort.tolist() if each >= 80))
    for number, start in enumerate(cohorts.starts):
        rounds = [round for round in range(6) if 80 + number in came[round]]
        assert rounds == rounds_from(int(start), LIMITS).tolist()


def test_more_canaries_than_half_of_the_cohorts_are_refused() -> None:
    with pytest.raises(InputError, match=r"40 canaries do not fit.*has room for 30"):
        places(promised(Independent()), [1] * 40, report_goal=20)


# -- what is kept ------------------------------------------------------------------------------------------------------


def watched(
    server: ServerOptimizer, weights: NDArray[np.float64], means: NDArray[np.float32]
) -> tuple[Watched, list[NDArray[np.float32]]]:
    """(the state after rounds with these noised means, all models)."""
    optimizer = WatchedOptimizer(server, weights, report_goal=10)(len(means))
    model = jnp.zeros(means.shape[1])
    state, models = optimizer.init(model), [np.asarray(model)]
    for mean in means:
        model, state = server_step(optimizer, model, state, jnp.asarray(mean))
        models.append(np.asarray(model))
    assert isinstance(state, Watched)
    return state, models


@pytest.mark.parametrize("method", ["sgd", "momentum", "nesterov"])
def test_what_is_kept_follows_from_the_released_models(method: Method) -> None:
    server, draw = ServerOptimizer(method=method, learning_rate=0.7), np.random.default_rng(1)
    means, weights = draw.normal(size=(6, 30)).astype(np.float32), draw.normal(size=(2, 6))
    state, models = watched(server, weights, means)
    assert np.allclose(means_from_models(models, server), means, atol=1e-5)
    assert np.allclose(state.sums, 10 * weights @ means, atol=1e-4)


def test_a_watched_optimizer_steps_as_the_servers() -> None:
    server, draw = ServerOptimizer(method="adam"), np.random.default_rng(2)
    means = draw.normal(size=(4, 30)).astype(np.float32)
    plain, model = server.transformation(4), jnp.zeros(30)
    state = plain.init(model)
    for mean in means:
        model, state = server_step(plain, model, state, jnp.asarray(mean))
    assert np.array_equal(watched(server, np.ones((1, 4)), means)[1][-1], model)


# -- bounds ------------------------------------------------------------------------------------------------------------

DIMENSION = 3000


def seen_of(draw: np.random.Generator, mu: float, *, groups: int, alike: int = 1, signal: float = 0.0) -> Seen:
    """Scores of a release v = canaries + noise of mu, with people's updates in a twentieth of the coordinates."""
    directions = draw.normal(size=(groups, DIMENSION)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    included = draw.random(groups) < 0.5
    v = draw.normal(size=DIMENSION) + mu * alike * directions[included].sum(axis=0)
    v[: DIMENSION // 20] += signal * draw.normal(size=DIMENSION // 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.audit.one_run.scores.projections", lambda seed, vectors, which: directions @ vectors[0])
        found = scores(0, v.astype(np.float32)[None], np.zeros(groups, np.int64))
    return Seen(scores=found, included=included, dimension=DIMENSION, alike=alike)


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_bounds_are_below_mu_as_often_as_they_say(mu: float) -> None:
    """At confidence 0.8 of 200 releases 160 are expected; 143 or fewer are seen once in a thousand times."""
    draw = np.random.default_rng(3)
    held = np.zeros(3)
    for _ in range(200):
        seen = seen_of(draw, mu, groups=40)
        lower = [seen.known_directions(0.8).lower, seen.in_against_out(0.8).lower, seen.guesses(0.8)[0]]
        held += np.array(lower) <= mu
    assert (held >= 143).all()
    assert mu == 0 or held[0] <= 185  # and no bound that is far too low


def test_a_group_shows_more_than_as_many_alone_and_half_the_noise_is_found() -> None:
    draw = np.random.default_rng(4)
    alone = np.mean([seen_of(draw, 0.3, groups=500).known_directions(0.95).lower for _ in range(10)])
    together = np.mean([seen_of(draw, 0.3, groups=50, alike=10).known_directions(0.95).lower for _ in range(10)])
    assert alone < 0.8 * 0.3 < together < 0.3
    assert seen_of(draw, 0.6, groups=50, alike=10).known_directions(0.95).lower > 0.3


def test_large_updates_of_people_hide_little() -> None:
    draw = np.random.default_rng(5)
    loud = np.mean([seen_of(draw, 1.0, groups=60, signal=50.0).known_directions(0.5).estimate for _ in range(10)])
    assert 0.8 < loud < 1.1


def test_exposure_of_sentences_that_no_model_saw_is_as_likely_as_said() -> None:
    ranks = np.random.default_rng(6).integers(1, 4097, (4000, 3))
    bits = (12 - np.log2(ranks)).sum(axis=1)
    chances = np.array([chance_of(each, 3) for each in bits])
    for chance in (0.5, 0.1, 0.02):
        assert abs((chances <= chance).mean() - chance) < 4 * np.sqrt(chance / 4000)


# -- how many ----------------------------------------------------------------------------------------------------------


def test_too_few_canaries_are_refused_with_the_number_that_will_do() -> None:
    with pytest.raises(InputError, match=r"give at least (\d+)") as refused:
        CanarySettings(canaries=20).check_enough(0.5)
    enough = int(str(refused.value).rpartition("at least ")[2].rstrip("."))
    CanarySettings(canaries=enough).check_enough(0.5)
    with pytest.raises(InputError, match=f"at least {enough}"):
        CanarySettings(canaries=enough - 10).check_enough(0.5)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"canaries": 15}, "no whole number of groups.*give 10"),
        ({"canaries": -1}, "canaries=-1 must be at least 0"),
        ({"see": "none"}, "see='none' is unknown"),
        ({"repeats": (0,)}, "repeats=.* must be numbers from 1"),
        ({"canaries": 0, "sentences": 0}, "leave nothing to look for"),
        ({"confidence": 1.0}, "confidence=1.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        CanarySettings(**given)  # type: ignore[arg-type]
