"""The sentences of the statement of an evaluation on devices, item by item. Figures are rounded up, never down."""

from tacit.privacy.composition import Composition
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.rounding import rounded_up
from tacit.statements.count_facts import EvaluationFacts
from tacit.statements.device_text import asked_once
from tacit.statements.ledger import NoisedSum
from tacit.statements.local_releases import LocalReports
from tacit.statements.train_facts import ADJACENCIES
from tacit.statements.train_text import FLOATING_POINT, sealed

ONE_REPORT = (
    "Replace-one, of one report: two data sets are neighbours if one client holds anything else, so that its report "
    "may be any other. The number of clients asked is the same and public."
)


def setting(facts: EvaluationFacts) -> str:
    """Item 1."""
    kind = (
        "Local: every device randomises its one report before it leaves, and needs to trust nobody."
        if isinstance(facts.guarantee, LocalGuarantee)
        else "A central guarantee: the aggregator is trusted to add up the devices' reports and to add the noise as "
        "described."
    )
    return f"{kind} Aggregation of devices' reports: {facts.aggregation}."


def accesses(facts: EvaluationFacts) -> str:
    """Item 2a."""
    return "\n\n".join(
        [
            _whose_text(facts),
            "How many clients were asked and the settings are public. A model itself is not covered here: its training "
            "has a guarantee of its own, and a client that trained it, too, adds the two figures.",
            "Trying settings on the same clients is not part of the evaluation and has no guarantee.",
            "Looked at without any guarantee: " + ("; ".join(facts.looked_at) or "nothing else") + ".",
            *([facts.budget.sentence()] if facts.budget else []),
        ]
    )


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
    return (
        f"Released: {'; '.join(_step(each) for each in steps_of(facts))}. Whatever is computed of them is covered, too."
    )


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
        else f"- {asked_once(participations_in(facts))}"
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
            "- A client adds one unit to one cell of each histogram of its step, so its part of a step's H histograms "
            "has norm sqrt(H), exactly.",
            f"- Gaussian noise of standard deviation {spreads} in every cell, with keys from {facts.key_source}; "
            f"{FLOATING_POINT}",
        ]
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
    """The standard deviation of the noise in every cell."""
    return noised.clip_norm * noised.noise_multiplier


def _step(step: list[NoisedSum | LocalReports]) -> str:
    clients, count = sum(each.reports for each in step), histograms_in(step)
    kind = "from randomised reports, one of each client" if isinstance(step[0], LocalReports) else "with noise"
    return f"{count:,} histogram{'s' if count > 1 else ''} over {clients:,} clients, {kind}"
