"""A complete recipe for a population, from numbers that are public: how many clients, how many words, which epsilon.

Nothing of what clients typed goes in, so a recipe tells nobody more than its population's size. Each value has its
reason beside it, in the words of a comment.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

from tacit.design.best import BestMechanism, best_mechanism
from tacit.errors import InputError
from tacit.planning.judgement import FreeModel, Gains, Judgement, from_random, judged
from tacit.planning.noise_forecast import ALIKE, HOLD, OF_PUBLIC_SUMS, OF_SUMS, UNLIKE
from tacit.planning.run_shape import VISITS, Learning, RunShape, shape_of_run
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.recipe import Recipe
from tacit.recipe.annotated import annotated_toml
from tacit.recipe.model_section import ModelSection, section_of

Prospect = Literal["worth it", "may not pay off", "too noisy"]

# Measured (docs/results/first-hour.md). From random weights: blogs-en at 2,000 words without noise, 120 rounds of 50 at
# a rate of 1, 80 of 25 at 0.2, and 402 of 20 (docs/results/utility.md); within 0.08 of each.
FROM_RANDOM = Learning(
    start=0.0,
    half=120.0,
    power=0.85,
    momentum=0.9,
    rounds=(40, 60, 80, 120, 160),
    cohort=20,
    scale=OF_SUMS,
    hold=HOLD,
)
# From a model of public text, which begins with most of what there is to learn. How much is left depends on how far the
# clients' text is from it: of text of its own kind it gained 2% in the end, of another kind 15%, on one curve of the
# progress but for that factor, and 261 clients as much as thousands. The plan is made for a start in between.
FROM_PUBLIC = Learning(
    start=0.95,
    half=20.0,
    power=0.75,
    momentum=0.0,
    rounds=(20, 40, 80, 160),
    cohort=100,
    scale=OF_PUBLIC_SUMS,
    hold=HOLD,
    spared=0.1,
)
# Commit messages after a forum and novels were learnt sooner than that curve says: the end that would bring as much so
# soon is MOST, and of what was measured one kind gained more, 18.8% for 15.9% (docs/results/people.md).
MOST = 0.85
FROM_ALIKE, FROM_UNLIKE, FROM_FARTHEST = (replace(FROM_PUBLIC, start=1 / (1 + gain)) for gain in (ALIKE, UNLIKE, MOST))
LEAST = 0.4  # of what there is to learn: a model that always says the most frequent word has about a third of it
GOOD = 0.8  # of what the same run learns without noise
GAIN = 0.02  # of a public model's accuracy, where the texts differ: less is no reason to ask anybody

SMALL, MIDDLE = 20_000, 200_000  # clients up to which the small network, and the middle one, are taken
CLOSE_ENOUGH = 1.01  # of the smallest epsilon or population that works
LOOKS = 8  # evaluations on the way
HEAD = 112  # letters of a line of the comment above a recipe


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What is known of the clients without reading what they typed: how many of each split."""

    cache: Path
    train: int
    validation: int
    test: int


@dataclass(frozen=True, kw_only=True)
class RecipeProposal:
    """A recipe, why each value is what it is, and what is expected of it."""

    recipe: Recipe
    reasons: Mapping[str, str]
    epsilon: float
    delta: float
    clients: int
    shape: RunShape
    learning: Learning
    free: FreeModel | None = None  # measured; None: no public text is known

    @property
    def best_without_noise(self) -> float:
        """What the same clients would teach a model without noise, as a share of what there is to learn."""
        return shape_of_run(self.clients, math.inf, self.learning).learnt

    @property
    def loss(self) -> float:
        """The share of that which privacy costs: the noise, and the shorter way that the model goes because of it."""
        return 1 - self.shape.expected / self.best_without_noise

    @property
    def gains(self) -> Gains:
        """What is gained on the accuracy of the public model that it begins from."""
        return _gains(self.shape)

    @property
    def judgement(self) -> Judgement:
        """Whether it is worth training, over what is free."""
        start = self.gains if self.learning.start else from_random(self.shape.expected)
        return judged(start, self.free, hopeless=self.prospect == "too noisy")

    @property
    def prospect(self) -> Prospect:
        """What the noise leaves of it, whatever is free: by this a recipe is written or refused."""
        return _prospect(self.shape, self.best_without_noise)

    @property
    def written_epsilon(self) -> float | None:
        """The smallest epsilon at this delta that is not too noisy, to two digits; None where none of 1,000 is."""
        return _least(lambda epsilon: self._at(epsilon, self.clients) != "too noisy", self.epsilon, 1000.0)

    @property
    def working_epsilon(self) -> float | None:
        """The smallest epsilon at this delta with which it would work, to two digits; None where none of 1,000 does."""
        return _least(lambda epsilon: self._at(epsilon, self.clients) == "worth it", self.epsilon, 1000.0)

    @property
    def working_clients(self) -> int | None:
        """How many training clients this epsilon needs, to two digits; None where 100 million are not enough."""
        found = _least(lambda clients: self._at(self.epsilon, int(clients)) == "worth it", self.clients, 1e8)
        return None if found is None else math.ceil(found)

    def _at(self, epsilon: float, clients: int) -> Prospect:
        shape = shape_of_run(clients, zcdp_for_epsilon(epsilon, self.delta), self.learning)
        return _prospect(shape, shape_of_run(clients, math.inf, self.learning).learnt)

    def to_toml(self) -> str:
        """The recipe as a file, a reason beside each value."""
        head = (
            f"A private model of {self.clients:,} training clients at epsilon {self.epsilon:g}, delta {self.delta:g}.",
            "Written by `tacit recipe new` from how many clients there are; nothing that they typed was looked at.",
            *self._expectation(),
            "Every value may be changed: docs/recipes.md says what else there is.",
        )
        return annotated_toml(self.recipe, self.reasons, head)

    def _expectation(self) -> Iterator[str]:
        yield from wrap(self.judgement.says(), HEAD)
        if not self.learning.start:
            yield from wrap(
                f"{self.loss:.0%} is lost of what these clients would teach without privacy, as far as small runs "
                f"tell: the model learns {self.shape.learnt:.0%} of what there is to learn and keeps "
                f"{self.shape.share_kept:.0%} of that.",
                HEAD,
            )


def _gains(shape: RunShape) -> Gains:
    ways = (FROM_ALIKE, FROM_UNLIKE, FROM_FARTHEST)
    return Gains(*(way.learnt(shape.progress) / way.start * shape.share_kept - 1 for way in ways))


def _prospect(shape: RunShape, full: float) -> Prospect:
    """full: what the same clients would teach without noise."""
    if shape.learning.start:
        gains = _gains(shape)
        if gains.unlike < GAIN:
            return "too noisy"
        return "worth it" if gains.alike >= 0 else "may not pay off"
    if shape.expected < LEAST:
        return "too noisy"
    return "worth it" if shape.expected >= GOOD * full else "may not pay off"


def propose(
    corpus: Corpus,
    *,
    name: str,
    epsilon: float,
    size: Callable[[ModelSection], int],
    delta: float | None = None,
    first: ModelSection | None = None,
) -> RecipeProposal:
    """The recipe for these clients at this epsilon.

    size: how many parameters the network of a section has. delta: left out, that of so many clients. first: the section
    of a model of public text to begin from. Raises: InputError where there are too few clients for any, or none are
    held out.
    """
    for split, count in (("validation", corpus.validation), ("test", corpus.test)):
        if not count:
            raise InputError(
                f"none of the clients of '{corpus.cache}' are in the {split} split, which is a tenth of many, and a "
                "model cannot be judged on those it was trained on; import more clients."
            )
    settled = default_delta(corpus.train) if delta is None else delta
    network = _network(corpus, first)
    learning = replace(FROM_RANDOM if first is None else FROM_PUBLIC, parameters=size(network.section))
    shape = shape_of_run(corpus.train, zcdp_for_epsilon(epsilon, settled), learning)
    best = best_mechanism(shape.participation)
    told = {**_learning(shape, network), **_rounds(corpus, shape), **_privacy(corpus, epsilon, delta, best)}
    told |= _looks(corpus, shape)
    sections: dict[str, dict[str, Any]] = {"data": {"cache": corpus.cache}}
    for key, (value, _) in told.items():
        section, _, name_of = key.partition(".")
        sections.setdefault(section, {})[name_of] = value
    sections["privacy"]["mechanism"] = best.chosen
    recipe = Recipe.model_validate({"name": name, **sections, "model": network.section})
    reasons = {**{key: reason for key, (_, reason) in told.items()}, **network.reasons}
    reasons |= {"data.cache": "as given", "privacy.mechanism.name": best.why(), **_of_mechanism(best)}
    return RecipeProposal(
        recipe=recipe,
        reasons=reasons,
        epsilon=epsilon,
        delta=settled,
        clients=corpus.train,
        shape=shape,
        learning=learning,
    )


# -- the values and their reasons --------------------------------------------------------------------------------------

Told = dict[str, tuple[Any, str]]  # "section.key": (value, why)


@dataclass(frozen=True, kw_only=True)
class _Network:
    """The section [model], why, and the rates that go with it."""

    section: ModelSection
    reasons: Mapping[str, str]
    client: Mapping[str, Any]  # of [client]
    clip_norm: float
    tried: str  # where these come from


def _network(corpus: Corpus, first: ModelSection | None) -> _Network:
    """The larger the population, the less the noise and the larger the network that it bears."""
    if first is not None:
        kept = dict.fromkeys((f"model.{key}" for key in type(first).model_fields), "of the first model")
        reasons = {**kept, "model.init": "a model of public text: what it knows costs no privacy"}
        return _Network(section=first, reasons=reasons, client=GENTLE, clip_norm=0.3, tried=GENTLE_RATES)
    if corpus.train < SMALL:
        size, why = (32, 64, True), f"small, for fewer than {SMALL:,} clients: a coordinate's noise is the same in any,"
        rates = (FAST, 1.0, SMALL_RATES)
    elif corpus.train < MIDDLE:
        size, why = (64, 128, False), f"for {SMALL:,} to {MIDDLE:,} clients: between the small network and the papers',"
        rates = ({**FAST, "learning_rate": 1.0}, 0.5, LARGE_RATES)
    else:
        size, why = (96, 670, False), f"for {MIDDLE:,} clients or more: the papers',"
        rates = ({**FAST, "learning_rate": 1.0}, 0.5, LARGE_RATES)
    embedding, units, tied = size
    section = section_of().model_validate({"embedding": embedding, "units": units, "tied": tied})
    reasons = {
        "model.embedding": f"{why} and the fewer parameters, the sooner it learns",
        "model.units": "goes with the embedding",
        "model.tied": "one embedding at both ends: as good from random weights (docs/results/pretraining.md)"
        if tied
        else "separate embeddings, as in the papers",
    }
    client, clip_norm, tried = rates
    return _Network(section=section, reasons=reasons, client=client, clip_norm=clip_norm, tried=tried)


FAST: Mapping[str, Any] = {"learning_rate": 2.0, "batch_size": 4, "sentences": 64}
GENTLE: Mapping[str, Any] = {"learning_rate": 0.3, "batch_size": 8, "sentences": 32}
SMALL_RATES = "large, since updates are clipped: the best of three with so small a batch (docs/results/local-steps.md)"
LARGE_RATES = "large, since updates are clipped: 2 does as well, 0.5 worse (docs/results/local-steps.md)"
GENTLE_RATES = "a model that knows much already forgets with three times as large a one (docs/results/first-hour.md)"


def _learning(shape: RunShape, network: _Network) -> Told:
    rate, momentum = shape.learning_rate(network.clip_norm), shape.learning.momentum
    method = (
        ("momentum", "paper 1, Algorithm 1; it sees noised means alone, so it costs no privacy")
        if momentum
        else ("sgd", "a model that knows much already forgets some of it with momentum")
    )
    return {
        "client.batch_size": (
            network.client["batch_size"],
            "small: many local steps, which cost no privacy (docs/results/local-steps.md)",
        ),
        "client.learning_rate": (network.client["learning_rate"], network.tried),
        "client.sentences": (network.client["sentences"], "the most of a client in a round; it bounds a device's time"),
        "server.method": method,
        **({"server.momentum": (momentum, "paper 1")} if momentum else {}),
        "server.learning_rate": (
            rate,
            f"the model then goes {shape.progress:.3g} clip norms; farther, it would learn more and carry more noise",
        ),
        "privacy.clip_norm": (network.clip_norm, "below the norm of most updates, so that each counts the same"),
    }


def _rounds(corpus: Corpus, shape: RunShape) -> Told:
    visits, times = shape.rounds * shape.report_goal, shape.participation.max_participations
    tried = ", ".join(map(str, shape.learning.rounds))
    return {
        "rounds.rounds": (
            shape.rounds,
            f"the best of {tried} for {corpus.train:,} clients: at equal privacy, many small rounds learn more than "
            "few large ones",
        ),
        "rounds.report_goal": (
            shape.report_goal,
            f"{visits:,} participations in all, at most {VISITS:,}; not below {shape.learning.cohort} where there are "
            "as many, since a small cohort is noise itself",
        ),
        "rounds.min_separation": (
            shape.min_separation,
            f"the longest for {corpus.train:,} clients in turn; each takes part {times} times",
        ),
    }


def _privacy(corpus: Corpus, epsilon: float, delta: float | None, best: BestMechanism) -> Told:
    settled = default_delta(corpus.train) if delta is None else delta
    return {
        "privacy.epsilon": (epsilon, "as asked for; the noise multiplier follows from it"),
        "privacy.delta": (
            settled,
            "as asked for" if delta is not None else f"min(1e-5, n^-1.1) of {corpus.train:,} training clients",
        ),
    }


def _of_mechanism(best: BestMechanism) -> dict[str, str]:
    return dict.fromkeys(
        (f"privacy.mechanism.{key}" for key in best.chosen.parameters.to_plain()), "as many as the separation"
    )


def _looks(corpus: Corpus, shape: RunShape) -> Told:
    return {
        "evaluation.every": (max(1, shape.rounds // LOOKS), f"{LOOKS} looks on the way; no guarantee covers them"),
        "evaluation.clients": (min(100, corpus.validation), "validation clients, of those there are"),
        "evaluation.test_clients": (min(200, corpus.test), "test clients, of those there are"),
        "evaluation.sentences": (16, "of each: enough for the accuracy of many"),
    }


def _least(works: Callable[[float], bool], low: float, high: float) -> float | None:
    """The smallest of geometric steps of 2% or so at which it works, two digits rounded up; None where none does."""
    if not works(high):
        return None
    while high / low > CLOSE_ENOUGH:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if works(middle) else (middle, high)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return float(f"{math.ceil(high / digit * (1 - 1e-9)) * digit:.2g}")
