"""Layer after layer, pass after pass: from nothing to words with counts.

The server's part is a question out, a sum of votes in, `grow`, again; who asks the devices is a `Collector`. Each
finished layer is kept with its ledger entry before the next begins, so that a run that stops goes on where it was;
nobody is asked twice, and what was output and what stands in the ledger never disagree.
Source: paper 2, Algorithm 2 and section 4.
"""

import json
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tacit.discovery.collect import DiscoverQuestion
from tacit.discovery.counting import WordCounts, count_words
from tacit.discovery.question import PrefixQuestion, WordQuestion
from tacit.discovery.settings import DiscoverySettings
from tacit.discovery.trie import Grown, grow
from tacit.errors import RunError
from tacit.federation.collector import Collector, released
from tacit.privacy.local_anonymity import absolute_threshold
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent
from tacit.records import from_plain, to_plain
from tacit.statements.local_releases import PREFIX_VOTES, WORD_COUNTS, LocalReports

COUNTING = "counting"  # the step after all layers
LAYERS = "asking layers"  # the stage, a step a layer

Output = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """What one layer output, and the ledger's entry for it."""

    release: LocalReports
    grown: Grown

    @property
    def words(self) -> tuple[str, ...]:
        """The words that ended in it, by falling votes."""
        return self.grown.words


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """All layers and the words in the order found; `counts` are None where no users were asked to count."""

    layers: tuple[Layer, ...]
    words: tuple[str, ...]
    counts: WordCounts | None


class StepJournal(Protocol):
    """Where finished steps are kept, by name: what was released, and what was output of it as plain values."""

    def read(self, name: str) -> tuple[LocalReports, Output] | None:
        """The step, or None where it is not finished."""
        ...

    def write(self, name: str, release: LocalReports, output: Output, participants: int) -> None:
        """Keep a step, whole or not at all. participants: how many took part, reports and dropped ones."""
        ...


def discover(
    settings: DiscoverySettings,
    collector: Collector,
    journal: StepJournal,
    *,
    population: int,
    known: Container[str] = frozenset(),
    progress: Progress = silent,
) -> Discovery:
    """Ask a population for words, going on from what the journal has; `known` words are never output.

    population: the number of clients, or about how many there are. A function of the arguments where the collector's
    sums are, however often it was interrupted. Raises: ParticipationError, before anything is asked, where there are
    fewer users than the run needs.
    """
    settings.check_population(population)
    layers: list[Layer] = []
    found: tuple[str, ...] = ()
    users = 0
    progress(StageBegan(LAYERS, settings.passes * settings.depth))
    for turn in range(1, settings.passes + 1):
        excluded = frozenset(found)
        prefixes: tuple[str, ...] = ("",)
        for layer in range(1, settings.depth + 1):
            if not prefixes:
                break
            question = PrefixQuestion(
                prefixes=prefixes, alphabet=settings.alphabet, depth=settings.depth, found=excluded
            )
            name = name_of_layer(turn, layer)
            done = _kept_layer(journal, name) or _collect_layer(
                settings, collector, journal, name, question, turn, known
            )
            released(collector, _round(settings, turn, layer))
            layers.append(done)
            prefixes, found, users = done.grown.prefixes, found + done.words, users + done.release.users
            progress(Advanced(LAYERS, (turn - 1) * settings.depth + layer, _figures(done, users, len(found))))
    progress(StageEnded(LAYERS))
    counts = _count(settings, collector, journal, found)
    return Discovery(layers=tuple(layers), words=found, counts=counts)


def least_votes(settings: DiscoverySettings, users: int, domain: int) -> int:
    """The fewest votes with which an answer is kept: the absolute threshold, or 1 where no anonymity is asked for.

    A string is voted on once a pass, so each pass has its share of delta.
    """
    if settings.anonymity is None:
        return 1
    randomizer = settings.reports.randomizer_for(domain)
    reports = users * settings.reports.contributions
    k, delta = settings.anonymity.k, settings.anonymity.delta / settings.passes
    return absolute_threshold(randomizer.p, randomizer.q, reports, k, delta)


def _kept_layer(journal: StepJournal, name: str) -> Layer | None:
    kept = journal.read(name)
    if kept is None:
        return None
    release, output = kept
    return Layer(release=release, grown=from_plain(Grown, output, error=RunError, where=f"the step {name}"))


def _collect_layer(
    settings: DiscoverySettings,
    collector: Collector,
    journal: StepJournal,
    name: str,
    question: PrefixQuestion,
    turn: int,
    known: Container[str],
) -> Layer:
    """One layer: fresh users, their votes, and what grows from them; it is kept when this returns."""
    task = layer_task(settings, question, turn)
    answered, _ = collector.collect(collector.init(), task, seed=b"")
    least = least_votes(settings, task.users, question.domain)
    grown = grow(question, answered.values, limit=settings.prefixes, least_votes=least, known=known)
    release = release_of_layer(settings, task, turn, grown)
    journal.write(name, release, to_plain(grown), answered.participants)
    return Layer(release=release, grown=grown)


def step_content(output: Output) -> bytes:
    """What a step output, as its file has it and its digest is of."""
    return json.dumps(output, ensure_ascii=False).encode()


def name_of_layer(turn: int, layer: int) -> str:
    """Of the step of a layer in a journal; pass and layer count from 1."""
    return f"pass-{turn}-layer-{layer:02d}"


def layer_task(settings: DiscoverySettings, question: PrefixQuestion, turn: int) -> DiscoverQuestion:
    """What the users of a layer are asked in the pass `turn`, and which users they are."""
    sizes, before = settings.users_of_layers, question.layer - 1
    return DiscoverQuestion(
        round=_round(settings, turn, question.layer),
        question=question,
        settings=settings.reports,
        first_user=(turn - 1) * sum(sizes) + sum(sizes[:before]),
        users=sizes[before],
    )


def release_of_layer(settings: DiscoverySettings, task: DiscoverQuestion, turn: int, grown: Grown) -> LocalReports:
    """The ledger's entry for a layer that left `grown`."""
    return LocalReports(
        what=PREFIX_VOTES,
        turn=turn,
        layer=task.round - _round(settings, turn, 1) + 1,
        least_votes=least_votes(settings, task.users, task.question.domain),
        prefixes=len(grown.prefixes),
        words=len(grown.words),
        **_report_settings(task),
    )


def counting_task(settings: DiscoverySettings, found: tuple[str, ...]) -> DiscoverQuestion:
    """What the last group of users is asked: how often each word that was found is typed.

    They choose at random whatever found the words: who only speaks of the word it types most says little of the rest.
    """
    return DiscoverQuestion(
        round=settings.passes * settings.depth,
        question=WordQuestion(words=found),
        settings=replace(settings.reports, sampler="random"),
        first_user=settings.users - settings.counting_users,
        users=settings.counting_users,
    )


def release_of_counts(task: DiscoverQuestion, found: tuple[str, ...]) -> LocalReports:
    """The ledger's entry for the counts of the words that were found."""
    return LocalReports(
        what=WORD_COUNTS, turn=0, layer=0, least_votes=0, prefixes=0, words=len(found), **_report_settings(task)
    )


def _count(
    settings: DiscoverySettings, collector: Collector, journal: StepJournal, found: tuple[str, ...]
) -> WordCounts | None:
    """Ask the last group of users how often the found words occur; their summed votes are what is kept."""
    if not settings.counting_users:
        return None
    task = counting_task(settings, found)
    kept = journal.read(COUNTING)
    if kept is None:
        answered, _ = collector.collect(collector.init(), task, seed=b"")
        votes = answered.values
        release = release_of_counts(task, found)
        journal.write(COUNTING, release, {"votes": votes.tolist()}, answered.participants)
    else:
        release, votes = kept[0], np.array(kept[1]["votes"], np.int64)
    released(collector, task.round)
    return count_words(votes, release.reports, task.settings.randomizer_for(task.question.domain))


def _round(settings: DiscoverySettings, turn: int, layer: int) -> int:
    """The number of the group of users of a layer; pass and layer count from 1."""
    return (turn - 1) * settings.depth + layer - 1


def _report_settings(task: DiscoverQuestion) -> dict[str, Any]:
    """The fields of a release that do not depend on the answers."""
    randomizer = task.settings.randomizer_for(task.question.domain)
    return {
        "first_user": task.first_user,
        "users": task.users,
        "contributions": task.settings.contributions,
        "domain": task.question.domain,
        "local_epsilon": task.settings.local_epsilon,
        "randomizer": task.settings.randomizer,
        "own_support": randomizer.p,
        "other_support": randomizer.q,
    }


def _figures(done: Layer, users: int, words: int) -> dict[str, float]:
    """What is told of a layer: which it is, prefixes alive after it, users asked and words found so far."""
    return {
        "pass": done.release.turn,
        "layer": done.release.layer,
        "prefixes": len(done.grown.prefixes),
        "users": users,
        "words": words,
    }
