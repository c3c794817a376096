"""What an attacker sees of training, from one phone's upload to released models: one defence after another.

Every view holds the upload of the one who is attacked. Sums are of clipped uploads in float32: what secure aggregation
opens, but for the rounding of its encoding, which one view has alone. Noise is drawn by the mechanisms that runs use.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax.numpy as jnp
import numpy as np

from tacit.aggregation import FloatSum
from tacit.audit.attack.population import Population, Vector
from tacit.audit.attack.settings import AttackSettings
from tacit.mechanisms import stream_for
from tacit.mechanisms.keys import KEY_BYTES
from tacit.networks.cifg.parameters import CifgParameters
from tacit.privacy import Guarantee, Independent, Participation, Tree
from tacit.privacy.encoding_choice import encoding_within
from tacit.privacy.strategy import Strategy
from tacit.secure_aggregation.decoding import decode
from tacit.secure_aggregation.encoding import encode
from tacit.training.randomness import seed_for

PURPOSE = "model update"  # of the noise
FEW = 10  # people in a sum, up to which sentences are looked for
ONE = Participation(rounds=1, min_separation=1, max_participations=1)
TWO = Participation(rounds=2, min_separation=2, max_participations=1)  # a run whose two models are seen


@dataclass(frozen=True)
class Seen:
    """What was seen, as parameters, and the standard deviation of the noise on each of them."""

    update: CifgParameters
    noise: float


Look = Callable[[int], Seen]  # at a target, by its number


@dataclass(frozen=True, kw_only=True)
class View:
    """What is seen of a target."""

    name: str
    says: str
    threat_model: str
    people: int  # whose uploads are in it
    seen: Look
    absent: Look | None = None  # the same without the target, where its presence is put to the test
    promise: Guarantee | None = None  # to the target; None where nothing is
    bias_alone: bool = False  # the attacker looks at the output bias, as the paper's does
    sentences: bool = True  # whether sentences are looked for: not among the words of many, and once of each kind


def views(people: Population, settings: AttackSettings, key: bytes) -> dict[str, View]:
    """All views by name, the least defended first. key: of the noise."""
    listed = [*_uploads(people, settings, key), *_sums(people, settings), *_released(people, settings, key)]
    return {view.name: view for view in listed}


def names(settings: AttackSettings) -> list[str]:
    """Those of all views, before there is anybody to look at."""
    sums = [f"sum-{size}" for size in settings.sums]
    return [
        "upload-bias",
        "upload",
        "clipped",
        "encoded",
        *sums,
        "release",
        "release-rest-known",
        "models",
        "models-rest-known",
    ]


def silence(people: Population, settings: AttackSettings, key: bytes) -> Look:
    """Releases in which nobody took part: noise alone, another one for each target."""
    return partial(_noisy, people, _nobody(people), _promise(people, settings, ONE, Independent()), key)


def _uploads(people: Population, settings: AttackSettings, key: bytes) -> list[View]:
    whole = View(
        name="upload",
        says="one upload",
        threat_model="The server reads one client's update as it is sent.",
        people=1,
        seen=partial(_exact, people, people.targets.updates.__getitem__),
    )
    clipped = replace(
        whole,
        name="clipped",
        says="one clipped upload",
        threat_model="The server reads one client's update, clipped by the device.",
        seen=partial(_exact, people, partial(people.clipped, people.targets)),
        absent=partial(_exact, people, partial(people.clipped, people.outsiders)),
    )
    encoded = replace(
        whole,
        name="encoded",
        says="one encoded upload",
        threat_model="The server reads one client's clipped update as it is encoded for secure aggregation.",
        seen=_encoded(people, settings, key),
    )
    published = replace(whole, name="upload-bias", says="its output bias alone", bias_alone=True, sentences=False)
    return [published, whole, clipped, encoded]


def _sums(people: Population, settings: AttackSettings) -> list[View]:
    return [
        View(
            name=f"sum-{size}",
            says=f"sum of {size:,}",
            threat_model="The server reads sums of clipped updates that secure aggregation opens, without noise.",
            people=size,
            seen=partial(_exact, people, partial(_sum, people, size)),
            sentences=size <= FEW,
        )
        for size in settings.sums
    ]


def _released(people: Population, settings: AttackSettings, key: bytes) -> list[View]:
    noised = f"the sum of {settings.cohort:,} clipped updates with noise of {settings.noise_multiplier:g} clip norms"
    trees = f"two consecutive models of DP-FTRL by trees, between which is {noised}"
    listed = []
    for name, says, read, limits, strategy in (
        ("release", "one release", noised, ONE, Independent()),
        ("models", "two models", trees, TWO, Tree()),
    ):
        promise = _promise(people, settings, limits, strategy)
        everybody, own = partial(_sum, people, settings.cohort), partial(people.clipped, people.targets)
        view = View(
            name=name,
            says=says,
            threat_model=f"Anybody reads {read}.",
            people=settings.cohort,
            seen=partial(_noisy, people, everybody, promise, key),
            promise=promise,
            sentences=limits == ONE,
        )
        rest_known = replace(
            view,
            name=f"{name}-rest-known",
            says=f"{says}, all others known",
            threat_model=f"Somebody who knows all other updates reads {read}, and takes the others away.",
            people=1,
            seen=partial(_noisy, people, own, promise, key),
            absent=partial(_noisy, people, _nobody(people), promise, key),
        )
        listed += [view, rest_known]
    return listed


def _promise(people: Population, settings: AttackSettings, limits: Participation, strategy: Strategy) -> Guarantee:
    return Guarantee(
        participation=limits,
        strategy=strategy,
        clip_norm=people.clip_norm,
        noise_multiplier=settings.noise_multiplier,
    )


def _nobody(people: Population) -> Callable[[int], Vector]:
    nothing = np.zeros(people.parameters, np.float32)
    return lambda _: nothing


def _exact(people: Population, of: Callable[[int], Vector], target: int) -> Seen:
    return Seen(people.tree(of(target)), 0.0)


def _encoded(people: Population, settings: AttackSettings, key: bytes) -> Look:
    """Rounding is noise that an attacker measures on updates of its own: those of people who took no part."""
    encoding = encoding_within(people.parameters, people.clip_norm, settings.cohort)
    signs = seed_for(key, "attack signs")

    def rounded(update: Vector, number: int) -> Vector:
        residues = encode(update, encoding, signs=signs, rounding=seed_for(key, "attack rounding", number))
        return decode(residues, encoding, signs=signs, reports=1)

    own = people.clipped(people.outsiders, 0)
    noise = float(np.std(rounded(own, settings.clients) - own))
    return lambda target: Seen(people.tree(rounded(people.clipped(people.targets, target), target)), noise)


def _sum(people: Population, size: int, target: int) -> Vector:
    """Of the target and the next ones, round and round; of so many people that all targets are in it, one for all."""
    if size in people.sums:
        return people.sums[size]
    sums, number = FloatSum(people.parameters), len(people.targets.norms)
    total = sums.zero()
    for at in range(target, target + size):
        total = sums.add(total, people.clipped(people.targets, at % number))
    return total


def _noisy(people: Population, of: Callable[[int], Vector], promise: Guarantee, key: bytes, target: int) -> Seen:
    """The last round of a run of so few; in the earlier ones nobody is. Noise is drawn anew for each target."""
    rounds, strategy = promise.participation.rounds, promise.strategy
    assert strategy is not None  # `_promise` has one
    stream, own = stream_for(strategy), seed_for(key, f"attack {strategy.kind}", target)[:KEY_BYTES]
    state = stream.init(people.parameters)
    for at in range(rounds):
        summed = of(target) if at == rounds - 1 else np.zeros(people.parameters, np.float32)
        noisy, state = stream.add_noise(
            state, jnp.asarray(summed), stddev=promise.seed_stddev, key=own, purpose=PURPOSE
        )
    weights = stream.dense(rounds)[-1]
    return Seen(people.tree(np.asarray(noisy)), promise.seed_stddev * float(np.linalg.norm(weights)))
