"""The sentences of a training run's statement, item by item; `train_assumptions.py` has those of what is assumed.

Figures are rounded up, never down.
"""

from collections.abc import Iterable

from tacit.privacy.composition import Composition
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Strategy
from tacit.statements.decryptor_text import trusted_decryptors
from tacit.statements.statement import sealed
from tacit.statements.train_facts import EXACT, RELEASED, TrainingFacts


def setting(facts: TrainingFacts) -> str:
    """Item 1."""
    if facts.decryptors:
        kind = trusted_decryptors(
            facts.decryptors, facts.honest_decryptors, noise="the mechanism", simulated=facts.separation is None
        )
    elif facts.planned.private:
        kind = "A central guarantee: the server is trusted to run the mechanism as described."
    else:
        kind = "None: no noise was added. A central guarantee would be the setting."
    return f"{kind} Aggregation of clients' updates: {facts.aggregation}."


def accesses(facts: TrainingFacts) -> str:
    """Item 2a."""
    promise = "The guarantee applies to" if facts.planned.private else "There is no guarantee for"
    guessed = "" if facts.separation is None else "about "
    clients = "clients" if facts.separation is None else "devices, by the operator's word"
    lines = [
        f"{promise} the use of clients' text in a single training run over a population of {guessed}"
        f"{facts.population:,} {clients}, for every client that keeps the participation limits; one that does not keep "
        "them does not weaken the guarantee of the others.",
        "Trying settings on the same clients and choosing a model by what it scores are not part of the run and "
        "have no guarantee.",
        f"Vocabulary ({facts.vocabulary_kind}): {facts.vocabulary_description}.",
        "Public data: " + ("; ".join(facts.public_data) or "none") + ".",
        "Looked at without any guarantee: " + ("; ".join(facts.looked_at) or "nothing else") + ".",
        *([facts.budget.sentence()] if facts.budget else []),
    ]
    if facts.vocabulary_kind == "private":
        lines.append("The vocabulary itself was taken from private text and has no guarantee.")
    if facts.vocabulary_kind == "discovered":
        lines.append(
            "Some of its words were discovered under local differential privacy; that discovery's own "
            "statement covers them, and this one does not."
        )
    return "\n\n".join(lines)


def output(facts: TrainingFacts) -> str:
    """Item 2b."""
    sums = "privatised sums" if facts.planned.private else "sums, un-noised,"
    rounds = (facts.realised or facts.planned).participation.rounds
    text = (
        f"Released: {facts.released}. Technically the mechanism's output is the full sequence of {sums} of all "
        f"{rounds:,} rounds, so what is said here holds for every intermediate model "
        "too, those sent to devices included."
    )
    if facts.also_released:
        names = ", ".join(each.what for each in facts.also_released)
        text += f" Besides the model updates, sums of these were released: {names}."
    return text


def accounting(facts: TrainingFacts) -> str:
    """Item 3a."""
    if not facts.planned_in_all.private:
        return "None; there is nothing to account."
    exact = all(each.guarantee.exact for promised in _promised(facts) for each in promised.sequences)
    worst = "its exact worst-case sensitivity" if exact else "a proved upper bound of its worst-case sensitivity"
    text = (
        f"zCDP of the whole sequence of rounds as one Gaussian mechanism, {described(facts.planned.strategy)}, by "
        f"{worst} over all participation patterns; converted to (epsilon, delta) exactly by the Gaussian "
        "mechanism's own privacy curve (arXiv:1805.06530, Theorem 8), which is what PLD accounting approximates."
    )
    if facts.also_released:
        others = "; ".join(f"{each.what} by {described(each.planned.strategy)}" for each in facts.also_released)
        text += f" The zCDP of the other sequences is added: {others}."
    return text


def formal(facts: TrainingFacts) -> str:
    """Item 3c."""
    if not facts.planned_in_all.private:
        return f"None: zCDP is infinite, and epsilon is infinite at every delta (delta = {facts.delta:g})."
    realised = facts.realised_in_all
    if realised is None:
        return (
            "As planned, and not as it happened, because nothing has: the run would be "
            f"{promise(facts.planned_in_all, facts.delta)}. Figures are rounded up."
        )
    fixed = ", had the number of rounds been fixed beforehand," if facts.ended else ","
    text = (
        f"As planned, the run is {promise(facts.planned_in_all, facts.delta)}. "
        f"As realised{fixed} it is {promise(realised, facts.delta)}. Figures are rounded up."
    )
    if facts.ended in (RELEASED, EXACT):
        text += " It was not, so the planned figures are those that hold."
    if facts.also_released:
        parts = ", ".join(f"{each.what} {rounded_up(each.guarantee.zcdp, 6)}" for each in realised.sequences)
        text += f" Of the realised rho: {parts}."
    if facts.vocabulary_kind == "private":
        text += " Neither covers the vocabulary."
    if facts.vocabulary_kind == "discovered":
        text += " Neither covers the vocabulary, which has the guarantee of its discovery."
    return text


def verifiability(facts: TrainingFacts) -> str:
    """Item 3d."""
    commands: list[str | None] = []
    for sequences in zip(*(promised.sequences for promised in _promised(facts)), strict=True):
        commands.extend(account_command(each.guarantee, facts.delta) for each in sequences)
    if facts.realised is None:
        return (
            "The planned figures are re-derived from the parameters alone by\n\n"
            f"{_listing([*commands, facts.verify_command])}\n\n"
            "After the run, `tacit account run` gives the realised ones. The mechanism and the accountant are programs "
            "whose source can be read."
        )
    audit = "" if facts.audited is None else f"\n\n{facts.audited.sentence(facts.planned_in_all.mu)}"
    return (
        "Every figure is re-derived from the ledger or from the parameters alone by\n\n"
        f"{_listing([facts.verify_command, *commands])}\n\n"
        "The record of this statement holds all that its figures, labels and sentences follow from: "
        f"`tacit verify` recomputes every line of it{sealed(facts.seal)}. The mechanism, the accountant and the "
        f"verifier are one program whose source can be read.{audit}"
    )


def _listing(commands: Iterable[str | None]) -> str:
    """Command lines to run, each once."""
    return "\n".join(f"    {command}" for command in dict.fromkeys(commands) if command)


def extrapolated(facts: TrainingFacts) -> str:
    """The last section, of a run that was not made."""
    larger = facts.at_larger_cohort()
    realised = larger.realised_in_all
    return (
        f"This run had {facts.report_goal:,} reports a round and noise multiplier "
        f"{facts.planned.noise_multiplier:.6g}. The same run with {larger.report_goal:,} reports a round and noise "
        f"multiplier {larger.planned.noise_multiplier:.6g} has the same noise on the mean; if its model were as good "
        f"and its participation the same, it would be {promise(larger.planned_in_all, facts.delta)} as planned"
        + (f" and {promise(realised, facts.delta)} as realised" if realised else "")
        + ". That run was not made."
    )


def account_command(guarantee: Guarantee, delta: float) -> str | None:
    """The `tacit account` command line that re-derives a guarantee's figures; None where there is none."""
    mechanism = None if guarantee.strategy is None else guarantee.strategy.account_command()
    if mechanism is None:
        return None
    limits = guarantee.participation
    encoded = "" if guarantee.clip_inflation == 1 else f"--clip-inflation {guarantee.clip_inflation!r} "
    return (
        f"tacit account {mechanism} --rounds {limits.rounds} --min-separation {limits.min_separation} "
        f"--max-participations {limits.max_participations} --noise-multiplier {guarantee.noise_multiplier!r} "
        f"{encoded}--delta {delta!r}"
    )


def described(strategy: Strategy | None) -> str:
    """The mechanism in a few words."""
    return "independent noise every round" if strategy is None else strategy.describe()


def promise(guarantee: Composition, delta: float) -> str:
    """The formal guarantee in one clause."""
    return (
        f"rho-zCDP with rho = {rounded_up(guarantee.zcdp, 6)}, hence (epsilon, delta)-DP with epsilon = "
        f"{rounded_up(guarantee.epsilon(delta), 6)} at delta = {delta:g}"
    )


def _promised(facts: TrainingFacts) -> tuple[Composition, ...]:
    """As planned, and as it happened where anything has."""
    realised = facts.realised_in_all
    return (facts.planned_in_all, realised) if realised else (facts.planned_in_all,)
