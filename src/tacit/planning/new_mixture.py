"""A recipe of a whole predictor for a population, from how many clients there are and from public text alone."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.evaluation.counts.device_part import StatisticSum
from tacit.parsing import parsed_toml
from tacit.planning.counts import BELIEVED, ProposedSums, proposed_sums
from tacit.planning.judgement import FreeModel, Judgement, judged_counts
from tacit.planning.new_recipe import HEAD, Corpus, RecipeProposal, propose
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import epsilon as epsilon_of
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.recipe.annotated import annotated_toml
from tacit.recipe.mixture import MixtureRecipe
from tacit.recipe.model_section import ModelSection

if TYPE_CHECKING:
    from tacit.data import Cache

TEST_CLIENTS = 500
TRAINING = "training"
FOLLOWS = {"privacy.epsilon", "privacy.delta", "model.init"}  # of [training]: from the mixture's own sections
NO_ROUNDS = "all of it: counts alone did as well as with rounds at thousands of people (docs/results/mixture.md)"


@dataclass(frozen=True, kw_only=True)
class PublicParts:
    """What is public and at hand."""

    text: "Cache"
    ngrams: tuple[Path, ...]  # none: `text` is counted
    network: Path | None
    section: ModelSection | None  # of that network


@dataclass(frozen=True, kw_only=True)
class MixtureProposal:
    """A recipe of a mixture, why each value is what it is, and what is expected of it."""

    recipe: MixtureRecipe
    reasons: Mapping[str, str]
    clients: int
    epsilon: float
    delta: float
    counted: ProposedSums
    rounds: RecipeProposal | None  # None: there are none
    free: FreeModel | None = None  # of the public text

    @property
    def judgement(self) -> Judgement:
        """Whether it is worth it, over what is free: by its counts, of which it has one at least."""
        return judged_counts(self.clients, self.epsilon, self.free)

    def expectation(self) -> str:
        """What the noise leaves of the counts."""
        names = {"word_counts": "words", "word_pairs": "pairs of words"}
        left = " and ".join(f"{count:,} {names.get(name, name)}" for name, count in self.counted.believed.items())
        return f"{left} are expected above {BELIEVED:g} standard deviations of their noise"

    def to_toml(self) -> str:
        """The recipe as a file, a reason beside each value."""
        head = (
            f"A predictor from {self.clients:,} clients at epsilon {self.epsilon:g}, delta {self.delta:g}: a public "
            "n-gram model,",
            "private counts that bend it, and a network beside it; one promise for all of it.",
            "Written by `tacit recipe new` from how many clients there are and from public text alone.",
            *wrap(self.judgement.says(), HEAD),
            f"{self.expectation()}.".capitalize(),
            "Every value may be changed: docs/mixture.md says what else there is.",
        )
        text = annotated_toml(self.recipe.model_copy(update={TRAINING: None}), self.reasons, head)
        return text if self.rounds is None else text + "\n" + _nested(self.rounds)


def propose_mixture(
    corpus: Corpus,
    parts: PublicParts,
    *,
    name: str,
    epsilon: float,
    size: Callable[[ModelSection], int],
    delta: float | None = None,
    training_share: float = 0.0,
) -> MixtureProposal:
    """The recipe for these clients at this epsilon. training_share: of the zCDP, the rounds'; size: as for `propose`.

    Raises: InputError where noise would hide every word, where nobody is held out, and for rounds without a network.
    """
    settled = default_delta(corpus.train) if delta is None else delta
    rho = zcdp_for_epsilon(epsilon, settled)
    if not corpus.test:
        raise InputError(
            f"none of the clients of '{corpus.cache}' are in the test split, which is a tenth of many, and nothing can "
            "be measured on those who were counted; import more clients."
        )
    counted = proposed_sums(parts.text, clients=corpus.train, rho=rho * (1 - training_share))
    if not counted.sums:
        raise InputError(
            f"at epsilon {epsilon:g}, noise would hide every word that {corpus.train:,} clients type; ask ten times as "
            "many, give a larger --epsilon, or take the public parts alone: `tacit mix NGRAM --network NETWORK "
            f"--public {parts.text.path}`."
        )
    rounds = None if not training_share else _rounds(corpus, parts, name, rho * training_share, settled, size)
    values, reasons = _values(corpus, parts, name, epsilon, delta, settled, counted, training_share)
    if rounds is not None:
        values |= parsed_toml(_nested(rounds))
    return MixtureProposal(
        recipe=MixtureRecipe.model_validate(values),
        reasons=reasons,
        clients=corpus.train,
        epsilon=epsilon,
        delta=settled,
        counted=counted,
        rounds=rounds,
    )


def _values(
    corpus: Corpus,
    parts: PublicParts,
    name: str,
    epsilon: float,
    delta: float | None,
    settled: float,
    counted: ProposedSums,
    training_share: float,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The recipe's values by section, and the reason for each by "section.key"."""
    noise = ", ".join(f"{stddev:,.0f} of {what}" for what, stddev in counted.stddev.items())
    mixture: dict[str, tuple[Any, str]] = {
        "public": (parts.text.path, "public text over the clients' words: it sets the network's weight"),
        "sums": (
            tuple(map(_text, counted.sums)),
            f"by public passages and {corpus.train:,} clients; the noise of a cell is {noise} occurrences",
        ),
        "counts_share": (
            1 - training_share,
            "the rest is the rounds', as asked for" if training_share else NO_ROUNDS,
        ),
    }
    if parts.ngrams:
        several = "; the counts say how much of each" if len(parts.ngrams) > 1 else ""
        mixture["ngram"] = (parts.ngrams, f"as given{several}")
    if parts.network is not None:
        mixture["network"] = (parts.network, "a model of public text: what it knows costs no privacy")
    why = "as asked for" if delta is not None else f"min(1e-5, n^-1.1) of {corpus.train:,} training clients"
    sections: dict[str, dict[str, tuple[Any, str]]] = {
        "data": {"cache": (corpus.cache, "as given")},
        "mixture": mixture,
        "privacy": {"epsilon": (epsilon, "as asked for, of everything together"), "delta": (settled, why)},
        "evaluation": {
            "test_clients": (min(TEST_CLIENTS, corpus.test), "of those there are; no guarantee covers them")
        },
    }
    values = {section: {key: value for key, (value, _) in given.items()} for section, given in sections.items()}
    reasons = {f"{section}.{key}": why for section, given in sections.items() for key, (_, why) in given.items()}
    return {"name": name, **values}, reasons


def _rounds(
    corpus: Corpus,
    parts: PublicParts,
    name: str,
    rho: float,
    delta: float,
    size: Callable[[ModelSection], int],
) -> RecipeProposal:
    if parts.section is None:
        raise InputError("rounds begin from a network of public text; none is given; give --init (`tacit pretrain`).")
    return propose(corpus, name=name, epsilon=epsilon_of(rho, delta), size=size, delta=delta, first=parts.section)


def _nested(rounds: RecipeProposal) -> str:
    """What `[training]` says, as a file: the sections of a recipe without what follows from the mixture's own."""
    kept, section = [], ""
    for line in annotated_toml(rounds.recipe, rounds.reasons, ()).splitlines():
        if found := re.fullmatch(r"\[(.+)\]", line):
            section = found[1]
            line = f"[{TRAINING}.{section}]"
        if section in ("", "data") or f"{section}.{line.partition(' = ')[0]}" in FOLLOWS:
            continue
        kept.append(line)
    return "\n".join(kept).strip() + "\n"


def _text(asked: StatisticSum) -> str:
    """As `StatisticSum.from_text` reads it."""
    return f"{asked.statistic}:{asked.words} norm {json.dumps(asked.norm)} unit {asked.unit}"
