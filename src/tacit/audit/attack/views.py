"""What an attacker sees of training, from one phone's upload to released models: one defence after another.

Every view holds the upload of the one who is attacked. Sums are of clipped uploads in float32: what secure aggregation
opens, but for the rounding of its encoding. Noise is drawn by the mechanisms that runs use.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tacit.aggregation import FloatSum
from tacit.audit.attack.population import Population, Vector
from tacit.audit.attack.settings import AttackSettings
from tacit.mechanisms import stream_for
from tacit.networks.cifg.parameters import CifgParameters
from tacit.privacy import Guarantee, Independent, Participation, Tree
from tacit.privacy.strategy import Strategy
from tacit.training.randomness import seed_for

PURPOSE = "model update"  # of the noise
LARGE = 10  # people in a sum, up to which sentences are looked for
ONE = Participation(rounds=1, min_separation=1, max_participations=1)
TWO = Participation(rounds=2, min_separation=2, max_participations=1)  # a run whose last two models are seen


@dataclass(frozen=True)
class Seen:
    """What was seen, as parameters, and the standard deviation of the noise on each of them."""

    update: CifgParameters
    noise: float


@dataclass(frozen=True, kw_only=True)
class View:
    """What is seen of a target, by the target's number."""

    name: str
    says: str
    threat_model: str
    people: int  # whose uploads are in it
    seen: Callable[[int], Seen]
    absent: Callable[[int], Seen] | None = None  # the same without the target, where its presence is put to the test
    promise: Guarantee | None = None  # to the target; None where nothing is
    bias_alone: bool = False  # the attacker looks at the output bias, as the paper's does
    sentences: bool = True  # whether there are so few words in it that sentences are looked for


def views(people: Population, settings: AttackSettings, key: bytes) -> dict[str, View]:
    """All views by name, the least defended first."""
    whole, clipped = (
        View(name=name, says=says, threat_model=f"The server reads {read}.", people=1, seen=partial(_exact, people, of))
        for name, says, read, of in (
            ("upload", "one upload", "one client's update as it is sent", people.targets.updates.__getitem__),
            ("clipped", "one clipped upload", "one client's update, clipped by the device", partial(people.clipped, people.targets)),
        )
    )
    clipped = replace(clipped, absent=partial(_exact, people, partial(people.clipped, people.outsiders)))
    published = replace(whole, name="upload-bias", says="its output bias", bias_alone=True, sentences=False)
    listed = [published, whole, clipped]
    for size in settings.sums:
        listed.append(
            View(
                name=f"sum-{size}",
                says=f"sum of {size:,}",
                threat_model="The server reads the sum of clipped updates that secure aggregation opens, without noise.",
                people=size,
                seen=partial(_exact, people, partial(_sum, people, size)),
                sentences=size <= LARGE,
            )
        )
    return {view.name: view for view in (*listed, *_noised(people, settings, key))}


def _noised(people: Population, settings: AttackSettings, key: bytes) -> list[View]:
    cohort = partial(_sum, people, settings.cohort)
    multiplier = settings.noise_multiplier
    independent, tree = (
        Guarantee(participation=of, strategy=strategy, clip_norm=people.clip_norm, noise_multiplier=multiplier)
        for of, strategy in ((ONE, Independent()), (TWO, Tree()))
    )
    release = f"the sum of {settings.cohort:,} clipped updates with noise of {multiplier:g} clip norms"
    models = f"two consecutive models of DP-FTRL by trees, between which is {release}"
    nothing = np.zeros(people.parameters, np.float32)
    listed = []
    for name, says, read, promise in (("release", "one release", release, independent), ("models", "two models", models, tree)):
        known = "Somebody who knows all other updates reads"
        one = View(
            name=name,
            says=says,
            threat_model=f"Anybody reads {read}.",
            people=settings.cohort,
            seen=partial(_released, people, cohort, promise, key),
            promise=promise,
        )
        rest_known = replace(
            one,
            name=f"{name}-rest-known",
            says=f"{says}, all others known",
            threat_model=f"{known} {read}, and takes the others away.",
            people=1,
            seen=partial(_released, people, partial(people.clipped, people.targets), promise, key),
            absent=partial(_released, people, lambda target: nothing, promise, key),
        )
        listed += [one, rest_known]
    return listed


def _exact(people: Population, of: Callable[[int], Vector], target: int) -> Seen:
    return Seen(people.tree(of(target)), 0.0)


def _sum(people: Population, size: int, target: int) -> Vector:
    """Of the target and the next ones, round and round; if there are more people than targets, of all and others."""
    number = len(people.targets.norms)
    sums, inside = FloatSum(people.parameters), min(size, number)
    total = sums.zero()
    for at in range(target, target + inside) if size < number else range(number):
        total = sums.add(total, people.clipped(people.targets, at % number))
    return sums.merge(total, people.others[size - number]) if size > number else total


def _released(
    people: Population, of: Callable[[int], Vector], guarantee: Guarantee, key: bytes, target: int
) -> Seen:
    """The last round of a run of so few; in the earlier ones others took part. Noise is drawn anew for each target."""
    rounds, strategy = guarantee.participation.rounds, guarantee.strategy
    assert strategy is not None  # `_noised` made it
    stream, own = stream_for(strategy), seed_for(key, f"noise of {strategy.kind}", target)[:16]
    state, nothing = stream.init(people.parameters), np.zeros(people.parameters, np.float32)
    for at in range(rounds):
        summed = of(target) if at == rounds - 1 else nothing
        noisy, state = stream.add_noise(state, summed, stddev=guarantee.seed_stddev, key=own, purpose=PURPOSE)
    weights = stream.dense(rounds)[-1]
    return Seen(people.tree(np.asarray(noisy)), guarantee.seed_stddev * float(np.linalg.norm(weights)))
