"""For whom mechanisms are designed: participations, one or several at once."""

from collections.abc import Sequence

from tacit.design.blt import spread
from tacit.errors import InputError
from tacit.privacy.participation import Participation


def limits_of(rounds: int, min_separation: int, max_participations: int | None = None) -> Participation:
    """What a design is for; left out, `max_participations` is as many as the separation allows.

    Raises: InputError where the numbers contradict each other.
    """
    worst = Participation.worst_case(rounds, min_separation).of_a_run()
    if min_separation > rounds:
        raise InputError(
            f"min_separation={min_separation} exceeds the {rounds} rounds: nobody could come twice; give at most "
            f"{rounds}, which says just that."
        )
    if max_participations is None:
        return worst
    if max_participations > worst.max_participations:
        longest = (rounds - 1) // (max_participations - 1)
        way_out = f" or a separation of at most {longest}" if longest else ""
        raise InputError(
            f"max_participations={max_participations} does not fit: {rounds} rounds at a separation of "
            f"{min_separation} allow {worst.max_participations}; give at most {worst.max_participations}{way_out}."
        )
    return Participation(rounds=rounds, min_separation=min_separation, max_participations=max_participations)


def several_limits(
    rounds: Sequence[int], min_separations: Sequence[int], max_participations: int | None = None
) -> tuple[Participation, ...]:
    """All combinations, rounds first; a `range` stands for three values at equal ratios between its ends.

    Among several, `max_participations` are promised where so many fit, and as many as fit elsewhere.
    """
    combined = [(each, separation) for each in _spread(rounds) for separation in _spread(min_separations)]
    if len(combined) == 1:
        return (limits_of(*combined[0], max_participations),)
    fitting = [limits_of(*each) for each in combined]
    if max_participations is None:
        return tuple(fitting)
    return tuple(
        Participation(
            rounds=each.rounds, min_separation=each.min_separation, max_participations=max_participations
        ).effective
        for each in fitting
    )


def _spread(values: Sequence[int]) -> Sequence[int]:
    return spread(values.start, values.stop - 1) if isinstance(values, range) else values
