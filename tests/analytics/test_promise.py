"""The promise of a campaign: K reports compose, layers do not, and the weakest question counts."""

from dataclasses import replace

from tacit.analytics.campaign import Anonymity, Campaign
from tacit.analytics.contributions import Terms
from tacit.analytics.promise import promise_of
from tacit.privacy.shuffling import shuffle_epsilon

CAMPAIGN = Campaign(
    terms=Terms(local_epsilon=4.0, contributions=3),
    users_per_layer=20_000,
    passes=2,
    anonymity=Anonymity(k=20, delta=1e-3),
    counting_users=500,
)


def test_levels_compose_as_they_should() -> None:
    promise = promise_of(CAMPAIGN, [(20_000, 101), (20_000, 9901)], delta=1e-8)
    assert (promise.item_epsilon, promise.user_epsilon) == (4.0, 12.0)
    layers = [shuffle_epsilon(4.0, 60_000, 1e-8, "subset-selection", domain).epsilon_upper for domain in (101, 9901)]
    assert promise.central.epsilon_upper == max(layers)  # not their sum: nobody is in two layers
    fewer = promise_of(CAMPAIGN, [(20_000, 101), (20_000, 9901), (500, 12)], delta=1e-8)
    assert fewer.central == shuffle_epsilon(4.0, 1500, 1e-8, "subset-selection", 12)
    other = replace(CAMPAIGN, terms=replace(CAMPAIGN.terms, randomizer="projective-geometry"))
    assert "clones" in promise_of(other, [(20_000, 9901)], delta=1e-8).central.theorem


def test_lines_say_what_is_promised_and_what_is_not() -> None:
    said = "\n".join(promise_of(CAMPAIGN, [(20_000, 9901)], delta=1e-8).lines())
    assert "epsilon 4 for each word typed, 12 for all" in said
    assert "fewer than 20 contributors" in said and "SIMULATION" not in said
    simulated = replace(CAMPAIGN, seed=7, resample_users=True, anonymity=None)
    said = "\n".join(promise_of(simulated, [(20_000, 9901)], delta=1e-8).lines())
    assert "SIMULATION" in said and "seed 7" in said and "many users" in said and "none was asked for" in said
