"""The sentences of a privacy statement, item by item. Figures in them are rounded up, never down."""

from collections.abc import Iterable

from tacit.privacy.composition import Composition
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import (
    Strategy,
)
from tacit.statements.device_text import who_came
from tacit.statements.train_facts import SideRelease, TrainingFacts

FLOATING_POINT = (
    "the analysis is of real numbers. Noised sums are released on a grid that is chosen before the data; what floating "
    "point changes all the same is bounded in docs/floating-point.md, and not added here."
)
CLIP_NORMS_SHOWN = 12  # of more, only the first, the last and the extremes


def setting(facts: TrainingFacts) -> str:
    """Item 1."""
    if facts.keepers:
        kind = trusted_keepers(facts.keepers)
    elif facts.planned.private:
        kind = "A central guarantee: the server is trusted to run the mechanism as described."
    else:
        kind = "None: no noise was added. A central guarantee would be the setting."
    return f"{kind} Aggregation of clients' updates: {facts.aggregation}."


def trusted_keepers(keepers: int) -> str:
    """Whom a guarantee trusts whose noise so many keepers add."""
    return (
        f"A central guarantee that needs no trusted server: {keepers:,} keepers each add the whole noise of the "
        "mechanism to every sum before anybody opens it, and one keeper's noise is what is accounted. It holds against "
        "the server and all keepers but one, if one keeper is honest and no sum is opened without it; whoever "
        "simulates a run is all of them, and could know everything. The model has the noise of all, "
        f"{keepers**0.5:.3g} times the standard deviation that is accounted."
    )


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


def assumptions(facts: TrainingFacts) -> str:
    """Item 3b."""
    guarantee = facts.planned
    encoded = (
        f", and at most {rounded_up(guarantee.clip_inflation, 6)} times that once encoded for secure aggregation"
        if guarantee.clip_inflation > 1
        else ""
    )
    norm = "the clip norm in force" if facts.clip_norms else f"{guarantee.clip_norm:.6g}"
    each = f", of each of {facts.keepers:,} keepers" if facts.keepers else ""
    noise = (
        f"Gaussian seeds of standard deviation {guarantee.noise_multiplier:.6g} x {norm}{each}, with "
        f"keys from {facts.key_source}; {FLOATING_POINT}"
        if guarantee.private
        else f"No noise; randomness of the simulation came from {facts.key_source}."
    )
    lines = [
        f"- Planned: {_limits(guarantee.participation)}.",
        *_who_came(facts),
        f"- A client's update of a round has norm at most {norm} (clipped as one vector{encoded}) "
        f"and weight one; the mean divides by the constant report goal {facts.report_goal:,}, whatever number "
        f"{'came' if facts.realised else 'comes'}.",
        *([f"- {_clip_norms(facts)}"] if facts.clip_norms else []),
        f"- {noise}",
        *(f"- {_side_assumption(each)}" for each in facts.also_released),
    ]
    return "\n".join(lines)


def _who_came(facts: TrainingFacts) -> list[str]:
    """Who took part and what enforces it; of a planned run, who is to, and what a simulation saw."""
    if facts.realised and facts.separation is not None and facts.participations is not None:
        limits = _limits(facts.realised.participation)
        return [
            f"- {who_came(facts.participations, limits, facts.separation)}",
            f"- Participation is enforced so: {facts.cohort_rule}.",
        ]
    if facts.realised:
        return [
            f"- Realised, measured from the log of the run, {facts.participations:,} participations: "
            f"{_limits(facts.realised.participation)}. It counts under "
            "the assumption that when a client comes does not depend on what anyone typed.",
            f"- Participation is enforced by the cohort rule: {facts.cohort_rule}.",
        ]
    seen = []
    if facts.simulated is not None:
        seen.append(
            f"- In a simulation, not in any run: {_limits(facts.simulated)}. {facts.simulation} The simulation is a "
            "model of devices; what real ones do is measured when they have done it."
        )
    return [*seen, f"- Participation is to be enforced so: {facts.cohort_rule}."]


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
    text = (
        f"As planned, the run is {promise(facts.planned_in_all, facts.delta)}. "
        f"As realised, it is {promise(realised, facts.delta)}. Figures are rounded up."
    )
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
    return (
        "Every figure is re-derived from the ledger or from the parameters alone by\n\n"
        f"{_listing([facts.verify_command, *commands])}\n\n"
        "The record of this statement holds all that its figures, labels and sentences follow from: "
        f"`tacit verify` recomputes every line of it{sealed(facts.seal)}. The mechanism, the accountant and the "
        "verifier are one program whose source can be read."
    )


def sealed(seal: str | None) -> str:
    """What ties a statement to its run, where the run has a seal."""
    if seal is None:
        return ""
    return f", and of the run folder that its facts are those of the ledger and log with the seal {seal}"


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


def _clip_norms(facts: TrainingFacts) -> str:
    """Which clip norms were in force; of many, the first, the last and the extremes."""
    held = facts.clip_norms
    text = (
        "The clip norm follows the released counts of short updates, and changes only where the noise of the updates "
        "starts afresh"
    )
    if len(held) > CLIP_NORMS_SHOWN:
        norms = [norm for _, norm in held]
        return (
            f"{text}: {norms[0]:.6g} at first, {norms[-1]:.6g} at last, {len(held) - 1:,} changes, never below "
            f"{min(norms):.6g} or above {max(norms):.6g}."
        )
    return f"{text}: {'; '.join(f'{norm:.6g} from round {at:,} on' for at, norm in held)} (rounds counted from 0)."


def _side_assumption(side: SideRelease) -> str:
    guarantee = side.planned
    seeds = (
        f"Gaussian seeds of standard deviation {guarantee.noise_multiplier:.6g} x {guarantee.clip_norm:.6g}"
        if guarantee.private
        else "no noise"
    )
    return (
        f"{side.what}: a client's summand has norm at most {guarantee.clip_norm:.6g}; {seeds}; "
        f"planned {_limits(guarantee.participation)}"
        + (f"; realised {_limits(side.realised.participation)}." if side.realised else ".")
    )


def _promised(facts: TrainingFacts) -> tuple[Composition, ...]:
    """As planned, and as it happened where anything has."""
    realised = facts.realised_in_all
    return (facts.planned_in_all, realised) if realised else (facts.planned_in_all,)


def _limits(participation: Participation) -> str:
    return (
        f"{participation.rounds:,} rounds, each client in at most {participation.max_participations:,} of them "
        f"(MaxP), two of them at least {participation.min_separation:,} rounds apart (MinS = "
        f"{participation.rounds_between:,} rounds in between)"
    )
