"""A finished discovery played again from what it published: does the list of words follow, vote by vote?

Nobody's report is needed. What a layer may keep, and what stands in the ledger of it, follow from the settings and from
what the layer before kept. What nobody outside can see is that the answers left out had fewer votes, and that the votes
are those of the reports.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.discovery.counting import WordCounts, count_words
from tacit.discovery.question import PrefixQuestion, WordQuestion
from tacit.discovery.rounds import (
    COUNTING,
    Discovery,
    Layer,
    Output,
    counting_task,
    layer_task,
    name_of_layer,
    release_of_counts,
    release_of_layer,
)
from tacit.discovery.settings import DiscoverySettings
from tacit.discovery.trie import Grown
from tacit.errors import TacitError
from tacit.records import first_difference, from_plain, to_plain
from tacit.statements.local_releases import LocalReports
from tacit.text.alphabet import END


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What was published, step by step: why a step does not follow, None where it does; `found` where all do."""

    complaints: Mapping[str, str | None]
    found: Discovery | None


def replayed(settings: DiscoverySettings, ledger: Sequence[LocalReports], steps: Mapping[str, Output]) -> Replayed:
    """The run of these settings again, from its ledger and its steps' outputs by name, to the first that fails."""
    complaints: dict[str, str | None] = {}
    layers: list[Layer] = []
    counts: WordCounts | None = None
    try:
        for name, layer in _layers(settings, ledger, steps):
            complaints[name] = None
            layers.append(layer)
        found = tuple(word for layer in layers for word in layer.words)
        if settings.counting_users:
            complaints[COUNTING] = None
            counts = _counts(settings, found, _at(ledger, len(layers)), steps)
        _check_end(settings, ledger, steps, len(layers))
    except _DoesNotFollow as broken:
        return Replayed(complaints={**complaints, broken.step: str(broken)}, found=None)
    return Replayed(complaints=complaints, found=Discovery(layers=tuple(layers), words=found, counts=counts))


class _DoesNotFollow(Exception):
    """One step does not follow from those before it."""

    def __init__(self, step: str, why: str) -> None:
        super().__init__(why)
        self.step = step


def _layers(
    settings: DiscoverySettings, ledger: Sequence[LocalReports], steps: Mapping[str, Output]
) -> Iterable[tuple[str, Layer]]:
    """Each layer by its name, checked. Raises: _DoesNotFollow."""
    found: tuple[str, ...] = ()
    done = 0
    for turn in range(1, settings.passes + 1):
        excluded = frozenset(found)
        prefixes: tuple[str, ...] = ("",)
        for number in range(1, settings.depth + 1):
            if not prefixes:
                break
            name = name_of_layer(turn, number)
            question = PrefixQuestion(
                prefixes=prefixes, alphabet=settings.alphabet, depth=settings.depth, found=excluded
            )
            grown = _output(Grown, name, steps)
            stated = _at(ledger, done)
            release = release_of_layer(settings, layer_task(settings, question, turn), turn, grown)
            _check_released(name, stated, release)
            if complaint := _of_grown(question, grown, settings.prefixes, release):
                raise _DoesNotFollow(name, complaint)
            yield name, Layer(release=release, grown=grown)
            prefixes, found, done = grown.prefixes, found + grown.words, done + 1


def _of_grown(question: PrefixQuestion, grown: Grown, limit: int, release: LocalReports) -> str | None:
    """What is wrong with what a layer kept; see `trie.grow`, which says what may be kept of all votes."""
    positions = {prefix: at for at, prefix in enumerate(question.prefixes)}
    for what, texts, votes in (
        ("prefixes", grown.prefixes, grown.prefix_votes),
        ("words", grown.words, grown.word_votes),
    ):
        ending = "" if what == "prefixes" else END
        if len(texts) != len(votes):
            return f"{len(texts)} {what} have {len(votes)} votes"
        answers = [_answer(question, positions, text + ending) for text in texts]
        if None in answers:
            return f"one of the {what} continues no prefix that the layer before kept, or was found before"
        few = [count for count in votes if not release.least_votes <= count <= release.reports]
        if few:
            return f"one of the {what} has {few[0]:,} votes, not {release.least_votes:,} to {release.reports:,}"
        ranks = list(zip((-count for count in votes), answers, strict=True))
        if ranks != sorted(ranks) or len(set(answers)) < len(answers):
            return f"the {what} are not in the order of their votes, or one is there twice"
    if (kept := len(grown.prefixes) + len(grown.words)) > limit:
        return f"{kept} answers are kept, more than {limit}"
    return None


def _answer(question: PrefixQuestion, positions: Mapping[str, int], text: str) -> int | None:
    """The number of an answer to the question; None where it is none that may be kept."""
    alphabet, prefix, symbol = question.alphabet, text[:-1], text[-1:]
    may_end = symbol != END or (prefix != "" and prefix not in question.found)
    if prefix not in positions or symbol not in alphabet.symbols or not may_end:
        return None
    return positions[prefix] * alphabet.size + alphabet.number(symbol)


def _counts(
    settings: DiscoverySettings, found: tuple[str, ...], stated: LocalReports | None, steps: Mapping[str, Output]
) -> WordCounts:
    task = counting_task(settings, found)
    release = release_of_counts(task, found)
    _check_released(COUNTING, stated, release)
    votes = _output(_Votes, COUNTING, steps).votes
    domain = WordQuestion(words=found).domain
    if len(votes) != domain or min(votes) < 0 or max(votes) > release.reports:
        raise _DoesNotFollow(COUNTING, f"there are not {domain:,} votes of 0 to {release.reports:,}")
    return count_words(np.array(votes, np.int64), release.reports, task.settings.randomizer_for(domain))


@dataclass(frozen=True, kw_only=True)
class _Votes:
    votes: tuple[int, ...]


def _check_end(
    settings: DiscoverySettings, ledger: Sequence[LocalReports], steps: Mapping[str, Output], layers: int
) -> None:
    """Raises: _DoesNotFollow where the ledger or the outputs go on after the last step."""
    done = layers + bool(settings.counting_users)
    if not len(ledger) == len(steps) == done:
        raise _DoesNotFollow(
            "steps",
            f"{done} steps follow from the settings; the ledger has {len(ledger)}, and {len(steps)} have outputs",
        )


def _check_released(name: str, stated: LocalReports | None, release: LocalReports) -> None:
    """Raises: _DoesNotFollow where the ledger says otherwise than the settings and what was kept."""
    if stated is None:
        raise _DoesNotFollow(name, "the ledger has no such release")
    close = {
        name: getattr(stated, name)
        for name in ("own_support", "other_support")
        if math.isclose(getattr(stated, name), getattr(release, name), rel_tol=1e-9)  # another machine's last bits
    }
    if differs := first_difference(to_plain(replace(release, **close)), to_plain(stated)):
        raise _DoesNotFollow(name, f"by settings and votes against the ledger, {differs}")


def _output(kind: Any, name: str, steps: Mapping[str, Output]) -> Any:
    """The published output of a step. Raises: _DoesNotFollow."""
    try:
        return from_plain(kind, steps[name], where=name)
    except KeyError:
        raise _DoesNotFollow(name, "it is not among the published outputs") from None
    except TacitError as error:
        raise _DoesNotFollow(name, str(error)) from None


def _at(ledger: Sequence[LocalReports], number: int) -> LocalReports | None:
    return ledger[number] if number < len(ledger) else None
