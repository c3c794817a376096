"""The privacy statement of a campaign for new words: from its ledger and a few facts to what people read and publish.

The items are those of arXiv:2305.18465, Appendix A, as in a run's statement (`statement.py`). Nothing is decided here:
facts come in, sentences and a record go out, and whatever weakens the guarantee stands on the first lines, in capitals.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from tacit.errors import InputError
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_guarantee import ASSUMPTIONS, RESAMPLED, SEEDED, LocalGuarantee, Record
from tacit.privacy.rounding import rounded_up
from tacit.statements.facts import OPERATING_SYSTEM
from tacit.statements.local_releases import PREFIX_VOTES, WORD_COUNTS, AnswersRelease, CampaignLedger
from tacit.statements.statement import PROTECTIVE_EPSILON, Item, Label, Statement

FORMAT = "tacit campaign statement 1"
TITLE = "Privacy statement of a campaign for new words"
SAMPLERS = {
    "random": "a uniform choice among the different things it holds",
    "greedy": "those that it holds most of, ties by a fixed order",
}


@dataclass(frozen=True, kw_only=True)
class CampaignFacts:
    """What a campaign's statement is made from; InputError, AccountingError or UnknownRelease where they contradict.

    `population` clients there were, each one user, or with `resampled` as many users as were asked, drawn from them.
    `key_source` is "operating system" or "fixed seed N"; the vocabulary is that of the devices, whose words are never
    reported, and "private" if it was counted in clients' text; `looked_at` names each other use of clients' text, which
    has no guarantee. `verify_command` is what checks the record of the statement.
    """

    ledger: CampaignLedger
    central_delta: float
    population: int
    resampled: bool
    key_source: str
    sampler: str
    anonymity: Anonymity | None
    vocabulary_kind: str
    vocabulary_description: str
    looked_at: tuple[str, ...]
    verify_command: str
    aggregation: str = "simulated in the clear"

    def __post_init__(self) -> None:
        if self.key_source != OPERATING_SYSTEM and not re.fullmatch(r"fixed seed \d+", self.key_source):
            raise InputError(f"key_source={self.key_source!r}; say {OPERATING_SYSTEM!r} or 'fixed seed N'.")
        if self.sampler not in SAMPLERS:
            raise InputError(f"sampler={self.sampler!r} is none of {', '.join(SAMPLERS)}; choose one of them.")
        if not 0 < self.central_delta < 1:
            raise InputError(f"central_delta={self.central_delta} is not between 0 and 1; give for example 1e-10.")
        assert self.guarantee  # refuses a ledger that has none
        if self.ledger.users > self.population and not self.resampled:
            raise InputError(
                f"{self.ledger.users} users were asked of a population of {self.population}, so some were asked twice, "
                "which has no guarantee; or say that they were resampled."
            )
        if self.anonymity and self.rare_output > self.anonymity.delta * (1 + 1e-9):
            raise InputError(
                f"the thresholds of the layers promise {self.rare_output:.3g} for k={self.anonymity.k}, not "
                f"{self.anonymity.delta:g}; state what they promise."
            )

    @cached_property
    def guarantee(self) -> LocalGuarantee:
        """What the ledger promises."""
        return self.ledger.guarantee(
            central_delta=self.central_delta, randomness=self.key_source, resampled=self.resampled
        )

    @cached_property
    def rare_output(self) -> float:
        """What the thresholds in the ledger promise for the anonymity's k; 1 where none was asked for."""
        return self.ledger.rare_output(self.anonymity.k) if self.anonymity else 1.0

    def to_record(self) -> Record:
        """Plain values for JSON, all that `from_record` needs."""
        return {
            **{name: getattr(self, name) for name in PLAIN},
            "looked_at": list(self.looked_at),
            "anonymity_k": self.anonymity.k if self.anonymity else None,
            "anonymity_delta": self.anonymity.delta if self.anonymity else None,
            "releases": [release.to_record() for release in self.ledger.releases],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "CampaignFacts":
        """The facts that `to_record` wrote; InputError or UnknownRelease where they are no such facts."""
        known = {*PLAIN, "looked_at", "anonymity_k", "anonymity_delta", "releases"}
        if record.keys() != known:
            odd = ", ".join(sorted(record.keys() ^ known))
            raise InputError(f"the facts have too few or too many keys ({odd}); use the version that wrote them.")
        for name, kind in PLAIN.items():
            if type(record[name]) is not kind and not (kind is float and type(record[name]) is int):
                raise InputError(f"{name}={record[name]!r} is of the wrong kind; use the version that wrote it.")
        for name in ("looked_at", "releases"):
            if not isinstance(record[name], list):
                raise InputError(f"{name}={record[name]!r} is no list; use the version that wrote it.")
        return cls(
            ledger=CampaignLedger(tuple(map(AnswersRelease.from_record, record["releases"]))),
            looked_at=tuple(map(str, record["looked_at"])),
            anonymity=_anonymity(record["anonymity_k"], record["anonymity_delta"]),
            **{name: record[name] for name in PLAIN},
        )


PLAIN = {field.name: field.type for field in fields(CampaignFacts) if field.type in (str, int, float, bool)}


def _anonymity(k: Any, delta: Any) -> Anonymity | None:
    if k is None and delta is None:
        return None
    if type(k) is not int or type(delta) is not float:
        raise InputError(f"anonymity_k={k!r}, anonymity_delta={delta!r}: give a number of users and a probability.")
    return Anonymity(k=k, delta=delta)


def campaign_statement(facts: CampaignFacts) -> Statement:
    """The statement of one campaign, with every item and every label that the facts call for."""
    layers = [release for release in facts.ledger.releases if release.what == PREFIX_VOTES]
    items = (
        Item("1", "DP setting", _setting(facts)),
        Item("2a", "Data accesses covered", _accesses(facts)),
        Item("2b", "Final mechanism output", _output(facts, layers)),
        Item("2c", "Unit of privacy", _unit(facts)),
        Item("2d", "Adjacency", ADJACENCY),
        Item("3a", "Type of accounting", _accounting(facts.guarantee)),
        Item("3b", "Accounting assumptions", "\n".join(f"- {each}" for each in _assumptions(facts))),
        Item("3c", "Formal DP statement", "\n".join(f"- {each}" for each in _formal(facts))),
        Item("3d", "Transparency and verifiability", _verifiability(facts)),
    )
    figures: Record = {
        "users": facts.ledger.users,
        "layers": len(layers),
        "passes": len({release.turn for release in layers}),
        "words": sum(release.words for release in layers),
        "guarantee": facts.guarantee.to_record(),
        "anonymity": {"k": facts.anonymity.k, "delta": facts.anonymity.delta, "delta_of_thresholds": facts.rare_output}
        if facts.anonymity
        else None,
    }
    return Statement(facts=facts, labels=_labels(facts), items=items, figures=figures, title=TITLE, format=FORMAT)


ADJACENCY = (
    "Replace-one, of one answer: two data sets are neighbours if one answer of one person is another, be it any prefix "
    "or word or 'nothing'. The number of people asked and of reports is the same and public."
)


def _labels(facts: CampaignFacts) -> tuple[Label, ...]:
    labels, guarantee = [], facts.guarantee
    if facts.key_source != OPERATING_SYSTEM:
        labels.append(Label("FIXED SEED", f"randomness came from {facts.key_source}. {SEEDED}"))
    if facts.resampled:
        labels.append(Label("RESAMPLED USERS", RESAMPLED))
    if facts.vocabulary_kind == "private":
        meaning = "the list of known words was counted in clients' own text; there is no guarantee for it."
        labels.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    levels = (
        ("LOCAL", "without trust in whoever sums the reports", guarantee.item_epsilon),
        ("CENTRAL", "even where nobody sees single reports", guarantee.central_user_epsilon),
    )
    for level, where, epsilon in levels:
        if epsilon > PROTECTIVE_EPSILON:
            meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; {where}, this campaign's is "
            labels.append(Label(f"VERY LARGE {level} EPSILON", meaning + f"{rounded_up(epsilon)}."))
    return tuple(labels)


def _setting(facts: CampaignFacts) -> str:
    return (
        "Local: every device randomises its own answers before they leave, and needs to trust nobody for the local "
        "figures. Central figures besides, for those who see only sums or shuffled reports. Aggregation of devices' "
        f"reports: {facts.aggregation}."
    )


def _accesses(facts: CampaignFacts) -> str:
    people = "users drawn from" if facts.resampled else "users of a population of"
    return "\n\n".join(
        [
            f"The guarantee applies to the words typed by {facts.ledger.users:,} {people} {facts.population:,} "
            "clients, in one campaign. Each user is asked one question, once.",
            "Words of the vocabulary that the devices have are never reported. Vocabulary "
            f"({facts.vocabulary_kind}): {facts.vocabulary_description}.",
            "Trying settings on the same clients is not part of the campaign and has no guarantee.",
            "Looked at without any guarantee: " + ("; ".join(facts.looked_at) or "nothing else") + ".",
        ]
    )


def _output(facts: CampaignFacts, layers: list[AnswersRelease]) -> str:
    words = sum(release.words for release in layers)
    text = (
        f"Released: {words:,} words. Technically the output is that of all {len(layers):,} layers, each the prefixes "
        "and words with most votes and those votes, so what is said here holds for everything broadcast to devices on "
        "the way, too."
    )
    counted = [release for release in facts.ledger.releases if release.what == WORD_COUNTS]
    if counted:
        text += f" Besides, estimates of how often each word is typed, from {counted[0].users:,} further users."
    return text


def _unit(facts: CampaignFacts) -> str:
    K = facts.guarantee.contributions
    return (
        f"Two units. One answer: a user sends {K} of them, {SAMPLERS[facts.sampler]}, padded with 'nothing', in random "
        "order, so that one word typed instead of another changes at most one answer. One person: everything that a "
        "user answered. A person with several devices that are asked counts as several."
    )


def _accounting(guarantee: LocalGuarantee) -> str:
    return (
        "Pure local differential privacy of each report, exact; the answers of one person add up (basic composition); "
        "groups of people do not, because nobody is in two (parallel composition). The central figure of one answer is "
        f"by shuffling: {guarantee.central.theorem}; the worst group counts. The central figure of a person is by "
        "group privacy over the answers, or the local one where that is less."
    )


def _assumptions(facts: CampaignFacts) -> list[str]:
    sizes = [release.users for release in facts.ledger.releases]
    users = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
    return [
        *ASSUMPTIONS.values(),
        f"Randomness of the devices came from: {facts.key_source}.",
        f"The {len(sizes):,} groups have {users} users each, by the ledger, which shows each user in one group.",
    ]


def _formal(facts: CampaignFacts) -> list[str]:
    anonymity = (
        facts.anonymity.sentence()
        if facts.anonymity
        else "Anonymity: none was asked for; what a single person typed can be output."
    )
    return [*facts.guarantee.promises(), anonymity, "Figures are rounded up."]


def _verifiability(facts: CampaignFacts) -> str:
    return (
        "The record of this statement holds the whole ledger: every group that was asked, and what was released of it. "
        f"Every figure, label and sentence is recomputed from it by\n\n    {facts.verify_command}\n\n"
        "The devices' part, the accountant and the verifier are one program whose source can be read."
    )
