"""Words that fewer than k of those asked typed, and that a discovery outputs all the same: over many campaigns.

Every layer asks a group in which k - 1 users hold each rare word and all others one common word: the most that the
promise must stand. The spine, the randomizer, the threshold and the trie are those of a run.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tacit.data.unknown_words import TypedWords
from tacit.discovery.collect import AtOnce, DiscoverQuestion
from tacit.discovery.rounds import Discovery, Output, discover
from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError
from tacit.privacy.empirical.error_rates import rate_at_most
from tacit.privacy.empirical.samples import error_of
from tacit.statements.local_releases import LocalReports

RARE = "bcdefgh"  # the first letters of as many rare words; the common one begins with "a"


@dataclass(frozen=True)
class RareOutput:
    """Of so many campaigns, in how many a given rare prefix, and a given rare word, were output.

    `lower` is at most the true probability of the prefix with the confidence; `others` is the mean over all prefixes.
    """

    campaigns: int
    prefix: int
    word: int
    lower: float
    others: float


class _RareInEveryLayer(AtOnce):
    """k - 1 users of each group for every rare word's client, the rest for the common one's."""

    def _users(self, question: DiscoverQuestion) -> NDArray[np.int64]:
        each = self.assignment
        users = np.full(self.typed.clients, each, np.int64)
        users[0] = question.users - each * (self.typed.clients - 1)
        return users


@dataclass
class _Memory:
    """A journal that forgets nothing and begins empty."""

    steps: dict[str, tuple[LocalReports, Output]] = field(default_factory=dict)

    def read(self, name: str) -> tuple[LocalReports, Output] | None:
        return self.steps.get(name)

    def write(self, name: str, release: LocalReports, output: Output, participants: int) -> None:
        self.steps[name] = release, output


def rare_output(settings: DiscoverySettings, campaigns: int, seed: int, *, confidence: float = 0.95) -> RareOutput:
    """How often strings of k - 1 contributors in each group are output.

    settings: with an `anonymity`, whose k decides how many contribute, and an alphabet with "a" to "h". Each campaign
    has its own seed. Raises: InputError without an anonymity, and for a group too small for the rare words.
    """
    if settings.anonymity is None:
        raise InputError("the settings promise no anonymity, so there is nothing to refute; give anonymity=Anonymity.")
    each = settings.anonymity.k - 1
    if each * len(RARE) > settings.fewest_users:
        raise InputError(
            f"{len(RARE)} rare words of {each} users are more than the {settings.fewest_users} of a group; ask more."
        )
    found = [_campaign(settings, each, seed + number) for number in range(campaigns)]
    prefixes = np.array([[letter in begun for letter in RARE] for begun, _ in found])
    words = sum(2 * RARE[0] in campaign.words for _, campaign in found)
    prefix = int(prefixes[:, 0].sum())
    lower = 1 - float(rate_at_most(campaigns - prefix, campaigns, error_of(confidence)))
    return RareOutput(campaigns, prefix, words, lower, float(prefixes.mean()))


def _campaign(settings: DiscoverySettings, each: int, seed: int) -> tuple[tuple[str, ...], Discovery]:
    """The prefixes that the first layer output, and all that the campaign did."""
    of = replace(settings, seed=seed, resample_users=True)
    words = ("aa", *(2 * letter for letter in RARE))
    clients = len(words)
    typed = TypedWords(
        words=words,
        offsets=np.arange(clients + 1, dtype=np.int64),
        word_of=np.arange(clients, dtype=np.int32),
        counts=np.ones(clients, np.int32),
        typed=np.ones(clients, np.int64),
    )
    collector = _RareInEveryLayer(typed=typed, assignment=each, resampled=True, seed=seed)
    campaign = discover(of, collector, _Memory(), population=clients)
    return campaign.layers[0].grown.prefixes, campaign
