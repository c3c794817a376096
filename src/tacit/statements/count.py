"""The statement of counts on devices, about models or of their text: what it follows from, its sentences and labels.

Figures in sentences are rounded up, never down.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import AccountingError, InputError
from tacit.privacy.composition import Composition
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.records import many
from tacit.runs import Run
from tacit.runs.metadata import AskingMetadata, CountMetadata
from tacit.statements import device_text
from tacit.statements.accounts import ledger_of, participation_of
from tacit.statements.count_facts import EvaluationFacts
from tacit.statements.device_text import realised_once
from tacit.statements.ledger import COUNT_SUM, NoisedSum
from tacit.statements.local_releases import LocalReports
from tacit.statements.participation_log import separation_of
from tacit.statements.run_facts import EXACT_FIGURES, budget_of, published_path, summed_how
from tacit.statements.statement import PROTECTIVE_EPSILON, Item, Label, budget_label, delta_label, numbered
from tacit.statements.train import FLOATING_POINT, sealed, trusted_decryptors, whose_noise
from tacit.statements.train_facts import ADJACENCIES, UNITS

FACTS = EvaluationFacts
ONE_REPORT = (
    "Replace-one, of one report: two data sets are neighbours if one client holds anything else, so that its report "
    "may be any other. The number of clients asked is the same and public."
)
PRIVATE_WORDS = "the vocabulary, whose words name the cells and were counted in clients' own text"
LISTED = "cells"  # the sum whose cells are those of a list
MODELS_APART = (
    " A model itself is not covered here: its training has a guarantee of its own, and a client that trained it, too, "
    "adds the two figures."
)


def items(facts: EvaluationFacts) -> tuple[Item, ...]:
    """What is said, item by item."""
    return numbered(
        (
            setting(facts),
            accesses(facts),
            output(facts),
            UNITS[facts.unit],
            adjacency(facts),
            accounting(facts),
            assumptions(facts),
            formal(facts),
            verifiability(facts),
        )
    )


def title(facts: EvaluationFacts) -> str:
    """Of the statement."""
    return f"Privacy statement of an evaluation of {facts.of}"


def labels(facts: EvaluationFacts) -> tuple[Label, ...]:
    """What weakens the guarantee."""
    found = []
    if facts.key_source != OPERATING_SYSTEM:
        meaning = f"randomness came from {facts.key_source}; whoever knows the seed can take the noise away."
        found.append(Label("FIXED SEED", meaning))
    if PRIVATE_WORDS in facts.looked_at:
        meaning = "the list of words was counted in clients' own text; there is no guarantee for the vocabulary."
        found.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    if facts.delta > 0:
        found.extend(delta_label(facts.delta, facts.asked))
    found.extend(budget_label(facts.budget))
    if facts.epsilon > PROTECTIVE_EPSILON:
        meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; this evaluation's is "
        found.append(Label("VERY LARGE EPSILON", meaning + f"{rounded_up(facts.epsilon, 6)}."))
    return tuple(found)


def figures(facts: EvaluationFacts) -> Record:
    """What an evaluation promises as plain values: of central releases with the noise of a count, step by step."""
    local = isinstance(facts.guarantee, LocalGuarantee)
    found: Record = {
        "kind": "local" if local else "central",
        "unit": facts.unit,
        "adjacency": "replace-one" if local else "zero-out",
        "key_source": facts.key_source,
        "aggregation": facts.aggregation,
    }
    found |= {"zcdp": facts.guarantee.zcdp} if isinstance(facts.guarantee, Composition) else {}
    steps = steps_of(facts)
    found |= {"epsilon": facts.epsilon, "delta": facts.delta, "steps": len(steps)}
    sums = [each for each in facts.releases if isinstance(each, NoisedSum)]
    if facts.of_sums:
        found["clip_norm"] = [each.clip_norm for each in sums]
    else:
        found["histograms"] = [histograms_in(step) for step in steps]
    if not local:
        found["stddev_of_a_count"] = list(map(stddev_of_a_count, sums))
        if sums[0].decryptors:
            found |= {"decryptors": sums[0].decryptors, "honest_decryptors": sums[0].honest_decryptors}
    return found


def facts(run: Run, delta: float | None = None) -> EvaluationFacts:
    """Of a run that asked clients for counts. Raises: AccountingError where nothing is released."""
    found = evaluation_facts(run, delta)
    if found is None:
        raise AccountingError(
            f"'{run.path}' has released nothing, and nothing is to be stated about nothing; ask for a release with "
            "--zcdp, --epsilon or --local-epsilon."
        )
    return found


def evaluation_facts(run: Run, delta: float | None = None) -> EvaluationFacts | None:
    """Of a run that asked clients for counts; None where nothing is released. InputError for another."""
    metadata = run.metadata
    if not isinstance(metadata, AskingMetadata):
        raise InputError(f"'{run.path}' is a run of `tacit {run.kind}`, which evaluates nothing; give one that does.")
    ledger, settings = ledger_of(run), run.settings_table
    if not ledger.releases:
        return None
    local = isinstance(ledger.releases[0], LocalReports)
    return EvaluationFacts(
        of=metadata.of,
        subjects=_subjects(settings),
        source=metadata.source,
        split="devices" if metadata.deployment else settings["data"]["split"],
        asked=metadata.asked,
        delta=0.0 if local else metadata.delta if delta is None else delta,
        aggregation=_counted(
            run, metadata, local=local, secure=settings.get("release", {}).get("secure_sum"), sums="sums" in settings
        ),
        looked_at=_looked_at(metadata),
        verify_command=f"tacit verify {shlex.quote(str(published_path(run) / 'report' / 'statement.json'))}",
        key_source=metadata.key_source,
        unit="client" if metadata.deployment is None else "device",
        participation=participation_of(run, run.steps_done),
        releases=ledger.releases,
        seal=run.seal,
        budget=budget_of(run),
        separation=separation_of(run),
    )


def _looked_at(metadata: AskingMetadata) -> tuple[str, ...]:
    """What is used of clients' text without a guarantee."""
    found = device_text.LOOKED_AT_OF_COUNTS if metadata.deployment else (EXACT_FIGURES,)
    private = isinstance(metadata, CountMetadata) and metadata.vocabulary_kind == "private"
    return (*found, PRIVATE_WORDS) if private else found


def _counted(run: Run, metadata: AskingMetadata, *, local: bool, secure: Mapping[str, Any] | None, sums: bool) -> str:
    """Who adds up what clients count. sums: whether that is whole numbers in many cells."""
    if metadata.deployment is None or metadata.asked_by is None:
        return summed_how(secure)
    logged = device_text.logged(run.notes)
    return device_text.counted(metadata.asked_by, metadata.deployment, local=local, sums=sums) + logged


def _subjects(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The models by the names of their folders and their weights, words beside them, and how they are fine-tuned; or
    the statistics that are counted.
    """
    if "statistics" in settings:
        return tuple(map(_counted_by, settings["statistics"]))
    if "sums" in settings:
        return tuple(map(_summed_by, settings["sums"]))
    models = settings["models"] if "models" in settings else [settings["model"]]
    return (*map(_named, models), *_words_beside(settings), *settings.get("strategies", ()))


def _counted_by(statistic: Mapping[str, Any]) -> str:
    """A statistic, how finely it is told and what slices it."""
    said = f"{statistic['statistic']} in {len(statistic['cuts']) + 1:,} bins"
    return said if "by" not in statistic else f"{said} by {statistic['by']} in {len(statistic['slices']) + 1:,} slices"


def _summed_by(statistic: Mapping[str, Any]) -> str:
    """A sum, over which cells and within which norm."""
    if statistic["statistic"] == LISTED:
        chosen = f"{statistic['cells']:,} n-grams of a list (SHA-256 {statistic['sha256']}; {statistic['source']})"
        return f"{LISTED}: {chosen}, weighted and within the norm {statistic['norm']:g}"
    first = f"{statistic['statistic']} of the first {statistic['words']:,} words of the vocabulary"
    return f"{first}, within the norm {statistic['norm']:g}"


def _named(model: Mapping[str, str]) -> str:
    """A trained model with the digest of its weights; one that was counted on a cache without: it would be of text."""
    name = Path(model["path"]).name
    if "sha256" in model:
        return f"{name} (SHA-256 of its weights {model['sha256'][:16]}...)"
    return f"{name} (word counts of the training clients of a cache of that name, without a guarantee)"


def _words_beside(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Discovered words that the second keyboard of a test of typing has beside its model's: those of a release."""
    words = settings.get("more_words")
    if words is None:
        return ()
    digest = f"SHA-256 {settings['more_words_sha256'][:16]}..."
    return (f"beside the second, words of the discovery run {Path(words).name} ({digest}; it has its own statement)",)


def promise_of(run: Run, delta: float | None = None) -> Record:
    """What an evaluation has released promises to each asked client, as plain values; kind "nothing" if it has not."""
    facts = evaluation_facts(run, delta)
    return {"kind": "nothing"} if facts is None else figures(facts)


def setting(facts: EvaluationFacts) -> str:
    """Item 1."""
    kind = (
        "Local: every device randomises its one report before it leaves, and needs to trust nobody."
        if isinstance(facts.guarantee, LocalGuarantee)
        else _central([each for each in facts.releases if isinstance(each, NoisedSum)])
    )
    return f"{kind} Aggregation of devices' reports: {facts.aggregation}."


def _central(sums: list[NoisedSum]) -> str:
    """Who is trusted with the noise: of a run the same in every step."""
    if not sums[0].decryptors:
        return (
            "A central guarantee: the aggregator is trusted to add up the devices' reports and to add the noise as "
            "described."
        )
    many, honest = sums[0].decryptors, sums[0].honest_decryptors
    return trusted_decryptors(many, honest, noise="each cell", simulated=False, has="What is released")


def accesses(facts: EvaluationFacts) -> str:
    """Item 2a."""
    return "\n\n".join(
        [
            _whose_text(facts),
            "How many clients were asked and the settings are public." + ("" if _of_text(facts) else MODELS_APART),
            "Trying settings on the same clients is not part of the evaluation and has no guarantee.",
            "Looked at without any guarantee: " + ("; ".join(facts.looked_at) or "nothing else") + ".",
            *([facts.budget.sentence()] if facts.budget else []),
        ]
    )


def _of_text(facts: EvaluationFacts) -> bool:
    """Whether the text itself is counted, and no model of it."""
    return facts.of == CountMetadata.of


def _whose_text(facts: EvaluationFacts) -> str:
    about = f"in one evaluation of {facts.of}: {', '.join(facts.subjects)}"
    if facts.separation is not None:
        return (
            f"The guarantee applies to the use of {facts.source}, of about {facts.asked:,} devices that were asked, "
            f"{about}."
        )
    return (
        f"The guarantee applies to the use of the text of {facts.asked:,} clients, who were asked of the "
        f"{facts.split} split of {facts.source}, {about}."
    )


def output(facts: EvaluationFacts) -> str:
    """Item 2b."""
    steps = "; ".join(_step(each, facts.subjects) for each in steps_of(facts))
    return f"Released: {steps}. Whatever is computed of them is covered, too."


def adjacency(facts: EvaluationFacts) -> str:
    """Item 2d."""
    return ONE_REPORT if isinstance(facts.guarantee, LocalGuarantee) else ADJACENCIES["zero-out"]


def accounting(facts: EvaluationFacts) -> str:
    """Item 3a."""
    if isinstance(facts.guarantee, LocalGuarantee):
        return (
            "Pure local differential privacy of each report, exact. A client is in one group and gives one report "
            "(parallel composition), and which of the histograms it answers is drawn without looking at its text."
        )
    return (
        "zCDP of all steps as one Gaussian mechanism with independent noise, by its exact worst-case sensitivity; "
        "converted to (epsilon, delta) exactly by the Gaussian mechanism's own privacy curve (arXiv:1805.06530, "
        "Theorem 8)."
    )


def assumptions(facts: EvaluationFacts) -> str:
    """Item 3b."""
    came = facts.participation
    limits = (
        f"- Realised, measured from the log of the run: {came.rounds:,} step{'s' if came.rounds > 1 else ''}, "
        f"each client in at most {came.max_participations:,}."
        if facts.separation is None
        else f"- {realised_once(participations_in(facts))}"
    )
    if isinstance(facts.guarantee, LocalGuarantee):
        return "\n".join(
            [
                limits,
                "- Each device runs the randomizer as published, with random bits of its own.",
                f"- Randomness came from: {facts.key_source}.",
            ]
        )
    sums = [each for each in facts.releases if isinstance(each, NoisedSum)]
    spreads = " and ".join(f"{stddev_of_a_count(each):.4g}" for each in sums)
    return "\n".join(
        [
            limits,
            f"- {_added(facts, sums)}",
            f"- Gaussian noise of standard deviation {spreads} in every cell{_whose(sums[0])}, with keys from "
            f"{facts.key_source}; {FLOATING_POINT}",
        ]
    )


def _whose(noised: NoisedSum) -> str:
    if not noised.decryptors:
        return ""
    return f", {whose_noise(noised.honest_decryptors)} of {noised.decryptors:,} decryptors"


def _added(facts: EvaluationFacts, sums: list[NoisedSum]) -> str:
    """What one client adds to the cells of its step."""
    if facts.of_sums:
        norms = " and ".join(f"{each.clip_norm:.6g}" for each in sums)
        return (
            f"A client adds whole numbers of L2 norm {norms} at most to all cells of its step: it scales its own down "
            "to that and rounds down."
        )
    return (
        "A client adds one unit to one cell of each histogram of its step, so its part of a step's H histograms has "
        "norm sqrt(H), exactly."
    )


def formal(facts: EvaluationFacts) -> str:
    """Item 3c."""
    if isinstance(facts.guarantee, LocalGuarantee):
        return (
            f"epsilon-local DP with epsilon = {rounded_up(facts.epsilon)} (delta = 0) for everything a client reports, "
            "against everybody who sees the report. Figures are rounded up."
        )
    promised: Composition = facts.guarantee
    return (
        f"rho-zCDP with rho = {rounded_up(promised.zcdp, 6)}, hence (epsilon, delta)-DP with epsilon = "
        f"{rounded_up(facts.epsilon, 6)} at delta = {facts.delta:g}, for everything one client holds. Figures are "
        "rounded up."
    )


def verifiability(facts: EvaluationFacts) -> str:
    """Item 3d."""
    return (
        "The record of this statement holds the whole ledger: every step, and what was released of it. Every figure, "
        f"label and sentence is recomputed from it by\n\n    {facts.verify_command}\n\n"
        f"It recomputes every line{sealed(facts.seal)}. The devices' part, the accountant and the verifier are one "
        "program whose source can be read."
    )


def participations_in(facts: EvaluationFacts) -> int:
    """How many took part, in all steps."""
    return sum(each.reports + (each.dropped if isinstance(each, NoisedSum) else 0) for each in facts.releases)


def steps_of(facts: EvaluationFacts) -> list[list[NoisedSum | LocalReports]]:
    """The releases, those of one step together."""
    found: dict[int, list[NoisedSum | LocalReports]] = {}
    for each in facts.releases:
        step = each.turn - 1 if isinstance(each, LocalReports) else each.round
        found.setdefault(step, []).append(each)
    return [found[step] for step in sorted(found)]


def histograms_in(step: list[NoisedSum | LocalReports]) -> int:
    """How many histograms a step released: of noised sums, the square of what one client adds to all their cells."""
    return sum(1 if isinstance(each, LocalReports) else round(each.clip_norm**2) for each in step)


def stddev_of_a_count(noised: NoisedSum) -> float:
    """The standard deviation of the noise in every cell, as it is accounted."""
    return noised.clip_norm * noised.noise_multiplier


def _step(step: list[NoisedSum | LocalReports], subjects: tuple[str, ...]) -> str:
    clients = sum(each.reports for each in step)
    if isinstance(step[0], NoisedSum) and step[0].what == COUNT_SUM:
        return f"{many(len(subjects), 'sum')} over {clients:,} clients, with noise in every cell"
    kind = "from randomised reports, one of each client" if isinstance(step[0], LocalReports) else "with noise"
    return f"{many(histograms_in(step), 'histogram')} over {clients:,} clients, {kind}"
