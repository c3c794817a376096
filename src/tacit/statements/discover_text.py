"""The sentences of a discovery run's statement, item by item. Figures in them are rounded up, never down."""

from tacit.privacy.local_guarantee import ASSUMPTIONS, LocalGuarantee
from tacit.statements.count_facts import SAMPLERS, DiscoveryFacts
from tacit.statements.local_releases import WORD_COUNTS, LocalReports
from tacit.statements.train_text import sealed

ADJACENCY = (
    "Replace-one, of one answer: two data sets are neighbours if one answer of one user is another, be it any prefix "
    "or word or 'nothing'. The number of users asked and of reports is the same and public."
)


def setting(facts: DiscoveryFacts) -> str:
    return (
        "Local: every device randomises its own answers before they leave, and needs to trust nobody for the local "
        "figures. Central figures besides, for those who see only sums or shuffled reports. Aggregation of devices' "
        f"reports: {facts.aggregation}."
    )


def accesses(facts: DiscoveryFacts) -> str:
    return "\n\n".join(
        [
            _who(facts),
            "Words of the vocabulary that the devices have are never reported. Vocabulary "
            f"({facts.vocabulary_kind}): {facts.vocabulary_description}.",
            "Trying settings on the same clients is not part of the discovery and has no guarantee.",
            "Looked at without any guarantee: " + ("; ".join(facts.looked_at) or "nothing else") + ".",
            *([facts.budget.sentence()] if facts.budget else []),
        ]
    )


def _who(facts: DiscoveryFacts) -> str:
    """Whose words, and who sees to it that nobody is asked twice."""
    if facts.on_devices:
        return (
            f"The guarantee applies to the words typed on {facts.users:,} devices of a population of about "
            f"{facts.population:,}, which have no identities, in one discovery. A device answers one question of it, "
            "once, and sees to that by its own record; who is asked which is who comes first. It applies as well to "
            "devices whose group gave no sum and was asked again of others: what they sent is in no sum, and they have "
            "answered."
        )
    users = "users drawn from" if facts.resampled else "users of a population of"
    return (
        f"The guarantee applies to the words typed by {facts.users:,} {users} {facts.population:,} "
        "clients, in one discovery. Each user is asked one question, once."
    )


def output(facts: DiscoveryFacts, layers: list[LocalReports]) -> str:
    words = sum(release.words for release in layers)
    text = (
        f"Released: {words:,} words. Technically the output is that of all {len(layers):,} layers, each the prefixes "
        "and words with most votes and those votes, so what is said here holds for everything broadcast to devices on "
        "the way, too."
    )
    counted = [release for release in facts.releases if release.what == WORD_COUNTS]
    if counted:
        text += f" Besides, estimates of how often each word is typed, from {counted[0].users:,} further users."
    return text


def unit(facts: DiscoveryFacts) -> str:
    K = facts.guarantee.contributions
    return (
        f"Two units. One answer: a user sends {K} of them, {SAMPLERS[facts.sampler]}, padded with 'nothing', in random "
        "order, so that one word typed instead of another changes at most one answer. One user: everything that a "
        "user answered. Who has several devices that are asked counts as several users."
    )


def accounting(guarantee: LocalGuarantee) -> str:
    return (
        "Pure local differential privacy of each report, exact; the answers of one user add up (basic composition); "
        "groups of users do not, because nobody is in two (parallel composition). The central figure of one answer is "
        f"by shuffling: {guarantee.central.theorem}; the worst group counts. The central figure of a user is by "
        "group privacy over the answers, or the local one where that is less."
    )


def assumptions(facts: DiscoveryFacts) -> list[str]:
    sizes = [release.users for release in facts.releases]
    users = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
    return [
        *ASSUMPTIONS.values(),
        f"Randomness of the devices came from: {facts.key_source}.",
        f"The {len(sizes):,} groups have {users} users each, by the ledger, "
        + (
            "and that no device is in two its own record sees to."
            if facts.on_devices
            else "which shows each user in one group."
        ),
    ]


def formal(facts: DiscoveryFacts) -> list[str]:
    anonymity = (
        facts.anonymity.sentence()
        if facts.anonymity
        else "Anonymity: none was asked for; what a single user typed can be output."
    )
    return [*facts.guarantee.promises(), anonymity, "Figures are rounded up."]


def verifiability(facts: DiscoveryFacts) -> str:
    return (
        "The record of this statement holds the whole ledger: every group that was asked, and what was released of it. "
        f"Every figure, label and sentence is recomputed from it by\n\n    {facts.verify_command}\n\n"
        f"It recomputes every line{sealed(facts.seal)}. The devices' part, the accountant and the verifier are one "
        "program whose source can be read."
    )
