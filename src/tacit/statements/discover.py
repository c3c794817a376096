"""The statement of a discovery of words: its facts, sentences item by item, labels and figures.

Figures in sentences are rounded up, never down.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_guarantee import ASSUMPTIONS, RESAMPLED, SEEDED, LocalGuarantee
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.runs import Run
from tacit.runs.metadata import DiscoveryMetadata
from tacit.statements import device_text
from tacit.statements.accounts import ledger_of
from tacit.statements.count_facts import SAMPLERS, DiscoveryFacts
from tacit.statements.local_releases import PREFIX_VOTES, WORD_COUNTS, LocalReports, digest_of_outputs
from tacit.statements.run_facts import budget_of, published_path, summed_how
from tacit.statements.statement import PROTECTIVE_EPSILON, Item, Label, budget_label, delta_label, numbered, sealed

FACTS = DiscoveryFacts
OF_WHOM = ("vocabulary_sha256", "population_sha256", "name", "deployment")  # in a run's settings
ADJACENCY = (
    "Replace-one, of one answer: two data sets are neighbours if one answer of one user is another, be it any prefix "
    "or word or 'nothing'. The number of users asked and of reports is the same and public."
)


def items(facts: DiscoveryFacts) -> tuple[Item, ...]:
    """What is said, item by item."""
    return numbered(
        (
            setting(facts),
            accesses(facts),
            output(facts, _layers(facts)),
            unit(facts),
            ADJACENCY,
            accounting(facts.guarantee),
            "\n".join(f"- {each}" for each in assumptions(facts)),
            "\n".join(f"- {each}" for each in formal(facts)),
            verifiability(facts),
        )
    )


def title(facts: DiscoveryFacts) -> str:
    """Of the statement."""
    return "Privacy statement of a discovery of new words"


def figures(facts: DiscoveryFacts) -> Record:
    """What is promised as plain values."""
    layers = _layers(facts)
    return {
        "users": facts.users,
        "layers": len(layers),
        "passes": len({release.turn for release in layers}),
        "words": sum(release.words for release in layers),
        "guarantee": facts.guarantee.to_record(),
        "anonymity": {"k": facts.anonymity.k, "delta": facts.anonymity.delta, "delta_of_thresholds": facts.rare_output}
        if facts.anonymity
        else None,
    }


def _layers(facts: DiscoveryFacts) -> list[LocalReports]:
    return [release for release in facts.releases if release.what == PREFIX_VOTES]


def labels(facts: DiscoveryFacts) -> tuple[Label, ...]:
    """What weakens the guarantee."""
    found, guarantee = list[Label](), facts.guarantee
    if facts.key_source != OPERATING_SYSTEM:
        found.append(Label("FIXED SEED", f"randomness came from {facts.key_source}. {SEEDED}"))
    if facts.resampled:
        found.append(Label("RESAMPLED USERS", RESAMPLED))
    if facts.vocabulary_kind == "private":
        meaning = "the list of known words was counted in clients' own text; there is no guarantee for it."
        found.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    found.extend(delta_label(facts.central_delta, facts.population))
    found.extend(budget_label(facts.budget))
    levels = (
        ("LOCAL", "without trust in whoever sums the reports", guarantee.item_epsilon),
        ("CENTRAL", "even where nobody sees single reports", guarantee.central_user_epsilon),
    )
    for level, where, epsilon in levels:
        if epsilon > PROTECTIVE_EPSILON:
            meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; {where}, this discovery's is "
            found.append(Label(f"VERY LARGE {level} EPSILON", meaning + f"{rounded_up(epsilon)}."))
    return tuple(found)


def facts(run: Run, delta: float | None = None) -> DiscoveryFacts:
    """Of a run that finds words. Raises: InputError for another kind, AccountingError before a first layer."""
    metadata = run.of_kind(DiscoveryMetadata, "only `tacit discover` finds words; give the folder of one")
    settings = run.settings_table
    anonymity = settings.get("anonymity")
    return DiscoveryFacts(
        releases=ledger_of(run).local_reports,
        seal=run.seal,
        budget=budget_of(run),
        central_delta=metadata.delta if delta is None else delta,
        population=metadata.population,
        resampled=settings["resample_users"],
        key_source=metadata.key_source,
        sampler=settings["reports"]["sampler"],
        anonymity=None if anonymity is None else Anonymity(k=anonymity["k"], delta=anonymity["delta"]),
        vocabulary_kind=metadata.vocabulary_kind,
        vocabulary_description=metadata.vocabulary_description,
        aggregation=_voted(run, metadata, settings.get("secure_sum")),
        looked_at=(
            ("the figures under 'simulation' in result.json, counted in the clients' own text",)
            if metadata.deployment is None
            else device_text.LOOKED_AT_OF_COUNTS
        ),
        on_devices=metadata.deployment is not None,
        outputs=digest_of_outputs(asked(run), ((step.file, step.digest) for step in run.steps())),
        verify_command=f"tacit verify {shlex.quote(str(published_path(run) / 'report' / 'statement.json'))}",
    )


def asked(run: Run) -> Record:
    """What may be known of a discovery's settings: all but whose text or which devices it asks."""
    return {name: value for name, value in run.settings_table.items() if name not in OF_WHOM}


def _voted(run: Run, metadata: DiscoveryMetadata, secure: Mapping[str, Any] | None) -> str:
    """Who adds up the reports of a group."""
    if metadata.deployment is None or metadata.asked_by is None:
        return summed_how(secure)
    logged = device_text.logged(run.notes)
    return device_text.voted(metadata.asked_by, metadata.deployment) + logged


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
    """Whose words they are, and what ensures that nobody is asked twice."""
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
        f"It recomputes every line{sealed(facts.seal)}. {_outputs(facts)}The devices' part, the accountant and the "
        "verifier are one program whose source can be read."
    )


def _outputs(facts: DiscoveryFacts) -> str:
    """How a stranger checks the words themselves, where the statement says what was output."""
    if facts.outputs is None:
        return ""
    return (
        f"Settings and the outputs of all steps have the SHA-256 {facts.outputs} and are published beside this "
        "statement; the same command for that folder plays the run again from them, and makes the words anew. "
    )
