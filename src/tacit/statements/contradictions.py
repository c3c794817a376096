"""Facts that no run can have: the checks of every kind of facts, by counting alone.

A statement whose facts break one of these rules was written by no run, and no other check need find what was changed.
"""

import math
import re
from collections.abc import Iterable, Sequence

from tacit.errors import InputError
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.separation import DeviceSeparation
from tacit.statements.local_releases import PREFIX_VOTES, LocalReports

LARGEST = 2**53  # whole numbers that every program reads alike
ASK = "ask for the statement as its run wrote it"


def check_count(name: str, value: object, *, minimum: int) -> None:
    """InputError unless `value` is a whole number of at least `least` that JSON can carry."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= LARGEST:
        raise InputError(f"{name}={str(value)[:40]} is no whole number from {minimum} to 2^53; {ASK}.")


def check_seal(seal: str | None) -> None:
    """InputError for what is no SHA-256."""
    if seal is not None and not re.fullmatch("[0-9a-f]{64}", seal):
        raise InputError(f"seal={seal[:80]!r} is no SHA-256; {ASK}.")


def check_limits(limits: Participation) -> None:
    """InputError unless the limits are numbers that JSON can carry; they may allow more than can happen."""
    for name in ("rounds", "min_separation", "max_participations"):
        check_count(name, getattr(limits, name), minimum=1)


def check_came(realised: Participation, participations: int, population: int) -> None:
    """InputError where no log of `participations` rows over `population` clients has this participation.

    came: measured from the log, so that somebody did come `max_participations` times, and `min_separation` is the
    number of rounds where nobody came twice. A client is in a round once, and each round has a participant.
    """
    check_count("population", population, minimum=1)
    _check_pattern(realised, participations)
    most = realised.max_participations
    if participations > population * most:
        raise InputError(
            f"{participations:,} participations of {population:,} clients are more than {most} of some client, the "
            f"most that anyone came; {ASK}."
        )


def check_kept(realised: Participation, participations: int, kept: DeviceSeparation) -> None:
    """InputError where devices that keep this separation cannot have come so in a run of `participations` rows.

    How many devices there are is the operator's guess, so nothing follows from it.
    """
    _check_pattern(realised, participations)
    if kept.rounds is None:
        return
    most = kept.by_index(realised.rounds)
    sooner = realised.min_separation < most.min_separation or realised.max_participations > most.max_participations
    if sooner or (kept.timer_seconds is None and realised != most):
        raise InputError(f"devices that keep {kept} came with {realised}; {ASK}.")


def check_planned(limits: Participation, kept: DeviceSeparation) -> None:
    """InputError where what devices keep is not what was planned with, or only expected where they keep a timer."""
    if kept.rounds is None:
        return
    most = kept.by_index(limits.rounds).max_participations
    if (limits.min_separation, limits.effective.max_participations) != (kept.rounds, most):
        raise InputError(f"devices keep {kept}, and what was planned is {limits}; {ASK}.")


def _check_pattern(realised: Participation, participations: int) -> None:
    """InputError where no client can have come so in these rounds, each of which has a participant."""
    rounds, most, apart = realised.rounds, realised.max_participations, realised.min_separation
    check_count("rounds", rounds, minimum=1)
    check_count("participations", participations, minimum=rounds)
    if (most - 1) * apart >= rounds:
        raise InputError(f"nobody comes {most} times in {rounds} rounds, {apart} rounds apart; {ASK}.")
    if most == 1 and apart != rounds:
        raise InputError(f"nobody came twice, and yet {apart} of {rounds} rounds lie between; {ASK}.")


def check_cohort(goal: int, population: int, rounds: int, planned: Participation | None) -> None:
    """InputError where so many reports a round cannot be had; planned: the limits that are to hold, of a plan."""
    check_count("population", population, minimum=1)
    check_count("report_goal", goal, minimum=1)
    if goal > population:
        raise InputError(f"report_goal={goal:,} is above the population of {population:,}; {ASK}.")
    if planned is not None and goal * rounds > population * planned.effective.max_participations:
        raise InputError(
            f"{rounds:,} rounds of {goal:,} reports take {goal * rounds:,} participations, and {population:,} clients "
            f"that come {planned.effective.max_participations} times at most give fewer; {ASK}."
        )


def check_decryptors(decryptors: int, honest: int, planned: Guarantee, *, beside: int) -> None:
    """InputError for decryptors of noise that there is not, or that was added to what nobody encoded; beside: how many
    sequences were released beside the model updates.
    """
    check_count("honest_decryptors", honest, minimum=1)
    if honest > max(1, decryptors):
        raise InputError(f"honest_decryptors={honest} of {decryptors} decryptors; {ASK}.")
    if decryptors == 0:
        return
    check_count("decryptors", decryptors, minimum=2)
    if not planned.private or planned.clip_inflation <= 1 or beside:
        raise InputError(
            f"{decryptors} decryptors add noise to encoded model updates, and here is no noise, no encoding, or a "
            f"sequence "
            f"beside the updates, whose noise is nobody's but the server's; {ASK}."
        )


def check_clip_norms(held: tuple[tuple[int, float], ...], planned: Guarantee, realised: Guarantee) -> None:
    """InputError unless they begin with the planned one and change only where `Ledger.composition` allows it."""
    begins = [at for at, _ in held]
    for _, norm in held:
        if not (math.isfinite(norm) and norm > 0):
            raise InputError(f"clip_norms has {norm}, which bounds nothing; {ASK}.")
    if held[0] != (0, planned.clip_norm):
        raise InputError(
            f"clip_norms begin with {held[0]}, and the run began with clip norm {planned.clip_norm}; begin with that."
        )
    if begins != sorted(set(begins)) or begins[-1] >= realised.participation.rounds:
        raise InputError(
            f"clip_norms hold from the rounds {begins}, which are not increasing rounds of the "
            f"{realised.participation.rounds} released; name each once."
        )
    early = [at for at in begins[1:] if not planned.starts_afresh(at)]
    if early:
        raise InputError(
            f"clip_norms change in round {early[0]}, where the noise does not start afresh, and the rounds before and "
            "after have no guarantee together; a clip norm changes at a restart only."
        )


def check_prefix_layers(releases: Iterable[LocalReports]) -> None:
    """InputError unless the passes are numbered 1, 2, ... and so are the layers of each."""
    layers: dict[int, list[int]] = {}
    for release in releases:
        if release.what == PREFIX_VOTES:
            layers.setdefault(release.turn, []).append(release.layer)
    _check_numbered("passes", sorted(layers))
    for turn, found in layers.items():
        _check_numbered(f"layers of pass {turn}", sorted(found))


def check_histogram_numbers(releases: Iterable[LocalReports]) -> None:
    """InputError unless the histograms of each step are numbered 1, 2, ..."""
    layers: dict[int, list[int]] = {}
    for release in releases:
        layers.setdefault(release.turn, []).append(release.layer)
    for turn, found in layers.items():
        _check_numbered(f"histograms of step {turn}", sorted(found))


def check_steps(steps: Iterable[int], rounds: int) -> None:
    """InputError unless each of the steps that were logged, 0, 1, ..., released something, and no other did."""
    found = sorted(set(steps))
    if found != list(range(len(found))) or len(found) != rounds:
        raise InputError(f"{rounds} steps were taken and the steps {found[:9]} released something; {ASK}.")


def check_histograms(clip_norm: float) -> None:
    """InputError unless a client's part is of a whole number of histograms, one unit in each."""
    histograms = clip_norm**2 if 0 < clip_norm <= math.sqrt(LARGEST) else 0.5
    if round(histograms) < 1 or not math.isclose(histograms, round(histograms), rel_tol=1e-9):
        raise InputError(f"clip_norm={clip_norm:g} is not the root of a number of histograms; {ASK}.")


def _check_numbered(what: str, numbers: Sequence[int]) -> None:
    if list(numbers) != list(range(1, len(numbers) + 1)):
        raise InputError(f"the {what} are numbered {list(numbers)[:9]}, and not 1, 2, ...; {ASK}.")
