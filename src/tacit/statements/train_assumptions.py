"""What the guarantee of a training run assumes, in sentences: participation, clip norms, noise, how the run ended."""

from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.statements.decryptor_text import whose_noise
from tacit.statements.device_text import participations_of_log
from tacit.statements.statement import FLOATING_POINT
from tacit.statements.train_facts import EXACT, RELEASED, SideRelease, TrainingFacts

CLIP_NORMS_SHOWN = 12  # of more, only the first, the last and the extremes


def assumptions(facts: TrainingFacts) -> str:
    """Item 3b."""
    guarantee = facts.planned
    encoded = (
        f", and at most {rounded_up(guarantee.clip_inflation, 6)} times that once encoded for secure aggregation"
        if guarantee.clip_inflation > 1
        else ""
    )
    norm = "the clip norm in force" if facts.clip_norms else f"{guarantee.clip_norm:.6g}"
    each = f", {whose_noise(facts.honest_decryptors)} of {facts.decryptors:,} decryptors" if facts.decryptors else ""
    noise = (
        f"Gaussian seeds of standard deviation {guarantee.noise_multiplier:.6g} x {norm}{each}, with "
        f"keys from {facts.key_source}; {FLOATING_POINT}"
        if guarantee.private
        else f"No noise; randomness of the simulation came from {facts.key_source}."
    )
    lines = [
        f"- Planned: {_limits(guarantee.participation)}.",
        *_participations(facts),
        f"- A client's update of a round has norm at most {norm} (clipped as one vector{encoded}) "
        f"and weight one; the mean divides by the constant report goal {facts.report_goal:,}, whatever number "
        f"{'came' if facts.realised else 'comes'}.",
        *([f"- {_ended_by(facts)}"] if facts.ended else []),
        *([f"- {_clip_norms(facts)}"] if facts.clip_norms else []),
        f"- {noise}",
        *(f"- {_side_assumption(each)}" for each in facts.also_released),
    ]
    return "\n".join(lines)


def _participations(facts: TrainingFacts) -> list[str]:
    """Who took part and what enforces it; of a planned run, who is to, and what a simulation saw."""
    if facts.realised and facts.separation is not None and facts.participations is not None:
        limits = _limits(facts.realised.participation)
        return [
            f"- {participations_of_log(facts.participations, limits, facts.separation)}",
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


def _ended_by(facts: TrainingFacts) -> str:
    """Why there are fewer rounds than planned, and what that does to the figures."""
    assert facts.realised is not None  # checked
    done, planned = facts.realised.participation.rounds, facts.planned.participation.rounds
    ended = f"The run ended after {done:,} of {planned:,} planned rounds,"
    if facts.ended == RELEASED:
        return (
            f"{ended} by a rule of the program's own that was given the released models and no exact number; that it "
            "looked at nothing else is the word of whoever ran it. Its decision follows from releases, so that "
            "it costs nothing beside the planned figures."
        )
    if facts.ended == EXACT:
        return (
            f"{ended} by a rule of the program's own that was given exact accuracies of validation clients. Those have "
            "no guarantee, and when it ended tells of them; for the clients that were trained on, the planned figures "
            "hold."
        )
    return (
        f"{ended} by the decision of whoever ran it, who can have seen exact accuracies and losses on the way. If the "
        "decision followed from what was released, or from held-out clients, the planned figures hold; if it followed "
        "from neither, as where a budget was spent, the realised ones; if from the losses of clients that were trained "
        "on, it has no guarantee."
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


def _limits(participation: Participation) -> str:
    return (
        f"{participation.rounds:,} rounds, each client in at most {participation.max_participations:,} of them "
        f"(MaxP), two of them at least {participation.min_separation:,} rounds apart (MinS = "
        f"{participation.rounds_between:,} rounds in between)"
    )
