"""A campaign: layer after layer, pass after pass, from nothing to words with counts.

The server's part is `PrefixQuestion` out, a sum of votes in, `grow`, again; what the devices do is
`contributions.reports`, here for a simulated population at once (`simulated_devices.py`). Each finished layer is
written down with its ledger entry before the next begins, so that a campaign that stops goes on where it was; nobody
is asked twice, and what was output and what stands in the ledger never disagree.
Source: paper 2, Algorithm 2 and section 4.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from tacit.data.unknown_words import TypedWords
from tacit.discovery.collect import votes_of
from tacit.discovery.counting import WordCounts, count_words
from tacit.discovery.device import PrefixQuestion, Terms, WordQuestion
from tacit.discovery.report_sums import Crowd
from tacit.discovery.settings import Campaign
from tacit.discovery.trie import grow
from tacit.errors import UnknownRelease
from tacit.privacy.local_anonymity import absolute_threshold
from tacit.randomizers.device_randomness import device_generator
from tacit.records import from_plain
from tacit.statements.local_releases import PREFIX_VOTES, WORD_COUNTS, LocalReports

COUNTING = "counting"  # the step after all layers

_DEVICES = 2  # the stream of a seed that devices draw from; the assignment, which may be the same number, has others


@dataclass(frozen=True, kw_only=True)
class Layer:
    """What one layer output, and the ledger's entry for it."""

    release: LocalReports
    prefixes: tuple[str, ...]
    prefix_votes: tuple[int, ...]
    words: tuple[str, ...]
    word_votes: tuple[int, ...]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Layer":
        """What `asdict` gave, through JSON or not."""
        output = {name: tuple(value) for name, value in record.items() if name != "release"}
        return cls(release=from_plain(LocalReports, record.get("release"), error=UnknownRelease), **output)


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """All layers and the words in the order found; `counts` are None where no users were asked to count."""

    layers: tuple[Layer, ...]
    words: tuple[str, ...]
    counts: WordCounts | None


class Journal(Protocol):
    """Where finished steps are kept, by name."""

    def read(self, name: str) -> dict[str, Any] | None:
        """The record, or None where the step is not finished."""
        ...

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Keep a step, whole or not at all."""
        ...


Watcher = Callable[[Layer], None]  # called with each layer, whether done now or before


def discover(
    campaign: Campaign,
    typed: TypedWords,
    journal: Journal,
    *,
    assignment: int,
    known: Container[str] = frozenset(),
    watcher: Watcher | None = None,
) -> Discovery:
    """Run a campaign over a population, going on from what the journal has.

    `assignment` decides who answers in which layer; `known` words are never output. With the campaign's seed the
    result is a function of the arguments, however often it was interrupted.
    Raises: ParticipationError, before anything is asked, where there are fewer users than the campaign needs.
    """
    campaign.check_population(typed.clients)
    crowd = Crowd(clients=typed.clients, assignment=assignment, resampled=campaign.resample_users)
    layers: list[Layer] = []
    found: tuple[str, ...] = ()
    for turn in range(1, campaign.passes + 1):
        excluded = frozenset(found)
        prefixes: tuple[str, ...] = ("",)
        for layer in range(1, campaign.depth + 1):
            if not prefixes:
                break
            question = PrefixQuestion(
                prefixes=prefixes, alphabet=campaign.alphabet, depth=campaign.depth, found=excluded
            )
            name = f"pass-{turn}-layer-{layer:02d}"
            record = journal.read(name)
            if record is None:
                record = asdict(_ask(campaign, typed, crowd, question, turn, known))
                journal.write(name, record)
            done = Layer.from_record(record)
            layers.append(done)
            prefixes, found = done.prefixes, found + done.words
            if watcher:
                watcher(done)
    counts = _count(campaign, typed, crowd, found, journal)
    return Discovery(layers=tuple(layers), words=found, counts=counts)


def least_votes(campaign: Campaign, users: int, domain: int) -> int:
    """The fewest votes with which an answer is kept: the absolute threshold, or 1 where no anonymity is asked for.

    A string is voted on once a pass, so each pass has its share of delta.
    """
    if campaign.anonymity is None:
        return 1
    randomizer = campaign.terms.randomizer_for(domain)
    reports = users * campaign.terms.contributions
    k, delta = campaign.anonymity.k, campaign.anonymity.delta / campaign.passes
    return absolute_threshold(randomizer.p, randomizer.q, reports, k, delta)


def _ask(
    campaign: Campaign, typed: TypedWords, crowd: Crowd, question: PrefixQuestion, turn: int, known: Container[str]
) -> Layer:
    """One layer: fresh users, their votes, and what grows from them."""
    sizes, before = campaign.users_of_layers, question.layer - 1
    size = sizes[before]
    first_user = (turn - 1) * sum(sizes) + sum(sizes[:before])
    users = crowd.group(first_user, size)
    randomness = _randomness(campaign, (turn - 1) * campaign.depth + before)
    votes = votes_of(typed, question, campaign.terms, users, randomness)
    least = least_votes(campaign, size, question.domain)
    grown = grow(question, votes, limit=campaign.prefixes, least_votes=least, known=known)
    return Layer(
        release=LocalReports(
            what=PREFIX_VOTES,
            turn=turn,
            layer=question.layer,
            least_votes=least,
            prefixes=len(grown.prefixes),
            words=len(grown.words),
            **_asked(campaign.terms, question.domain, first_user, size),
        ),
        prefixes=grown.prefixes,
        prefix_votes=grown.prefix_votes,
        words=grown.words,
        word_votes=grown.word_votes,
    )


def _count(
    campaign: Campaign, typed: TypedWords, crowd: Crowd, found: tuple[str, ...], journal: Journal
) -> WordCounts | None:
    """Ask the last group of users how often the found words occur; their summed votes are what is kept.

    They choose at random whatever found the words: who only speaks of the word it types most says little of the rest.
    """
    if not campaign.counting_users:
        return None
    question = WordQuestion(words=found)
    terms = replace(campaign.terms, sampler="random")
    record = journal.read(COUNTING)
    if record is None:
        first_user = campaign.users - campaign.counting_users
        users = crowd.group(first_user, campaign.counting_users)
        votes = votes_of(typed, question, terms, users, _randomness(campaign, campaign.passes * campaign.depth))
        release = LocalReports(
            what=WORD_COUNTS,
            turn=0,
            layer=0,
            least_votes=0,
            prefixes=0,
            words=len(found),
            **_asked(terms, question.domain, first_user, campaign.counting_users),
        )
        record = {"release": asdict(release), "votes": votes.tolist()}
        journal.write(COUNTING, record)
    reports = from_plain(LocalReports, record.get("release"), error=UnknownRelease).reports
    return count_words(np.array(record["votes"], np.int64), reports, terms.randomizer_for(question.domain))


def _asked(terms: Terms, domain: int, first_user: int, users: int) -> dict[str, Any]:
    """What of a release does not depend on the answers."""
    randomizer = terms.randomizer_for(domain)
    return {
        "first_user": first_user,
        "users": users,
        "contributions": terms.contributions,
        "domain": domain,
        "local_epsilon": terms.local_epsilon,
        "randomizer": terms.randomizer,
        "own_support": randomizer.p,
        "other_support": randomizer.q,
    }


def _randomness(campaign: Campaign, group: int) -> np.random.Generator:
    """The operating system's, or the seed's own stream for each group of users."""
    return device_generator() if campaign.seed is None else np.random.default_rng([campaign.seed, _DEVICES, group])
