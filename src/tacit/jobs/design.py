"""Designing mechanisms: the parameters with the least error for a participation, that error, and all side by side."""

import math
import time
from collections.abc import Sequence
from typing import Any

from tacit.design.blt import spread
from tacit.design.catalogue import MECHANISMS, mechanism_named
from tacit.design.losses import losses
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.design.objective import Objective, checked_objective
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError, TacitError, of_type
from tacit.jobs.design_results import Design, Made, MechanismComparison, RobustDesign
from tacit.privacy.participation import Participation
from tacit.progress import Progress, counted, silent


def design_mechanism(
    mechanism: str,
    participation: Participation,
    *,
    objective: Objective | None = None,
    server: Workload = PREFIX,
    workload: Made | None = None,
    progress: Progress = silent,
    **parameters: Any,
) -> Design:
    """The strategy of a mechanism that costs least for `participation`, or the one that `parameters` say.

    mechanism: a name of the catalogue, or `package.module:NAME`.
    participation: how often, and how far apart, a client takes part.
    objective: the loss to minimise, "max" of the worst round or "rms"; left out, the mechanism's own.
    server: what it makes of the releases with momentum and cooldown, of whose models the errors are told as well; and
    they are what is lowered, unless `workload` says otherwise.
    workload: "prefix" lowers the errors of the sums of the releases, as without a server.
    parameters: what the mechanism takes (docs/recipes.md).

    Raises: InputError where a name, a parameter or the participation does not fit, or there is no design for a server;
    AccountingError where its sensitivity is not known.
    """
    of_type("mechanism", mechanism, str)
    of_type("participation", participation, Participation)
    entry = mechanism_named(mechanism)
    wanted = checked_objective(entry.objective if objective is None else objective)
    aim = _workload(server, workload)
    return _designed(
        entry, entry.problem(participation, wanted, entry.parameters_from(parameters), progress, aim), server
    )


def design_robust_mechanism(
    mechanism: str,
    participations: Sequence[Participation],
    *,
    objective: Objective | None = None,
    server: Workload = PREFIX,
    workload: Made | None = None,
    progress: Progress = silent,
    **parameters: Any,
) -> RobustDesign:
    """One strategy for all `participations`: the one whose worst ratio to the least loss possible there is least.

    Raises: InputError for a mechanism that has no such design, for a server's models, or no participation.
    """
    if server != PREFIX or workload == "server":
        raise InputError(
            "for several participations there are designs for prefix sums alone; give one participation, or a server "
            "without momentum and cooldown."
        )
    entry = mechanism_named(mechanism)
    if entry.robust is None:
        able = ", ".join(name for name, each in MECHANISMS.items() if each.robust is not None)
        raise InputError(f"{entry.name} is designed for one participation at a time; for several, take {able}.")
    wanted = checked_objective(entry.objective if objective is None else objective)
    given = entry.parameters_from(parameters)
    begin = time.perf_counter()
    strategy = entry.robust(participations, wanted, given)
    seconds = time.perf_counter() - begin
    cases = []
    for participation in counted(
        participations, "designing for each participation", progress, total=len(participations)
    ):
        alone = entry.made(entry.problem(participation, wanted, given))
        cases.append(
            (participation, entry.cost(strategy, participation).of(wanted), entry.cost(alone, participation).of(wanted))
        )
    return RobustDesign(mechanism=entry.name, objective=wanted, strategy=strategy, cases=tuple(cases), seconds=seconds)


def compare_mechanisms(
    participation: Participation,
    *,
    objective: Objective = "max",
    slow: bool = False,
    server: Workload = PREFIX,
    workload: Made | None = None,
    progress: Progress = silent,
) -> MechanismComparison:
    """Every mechanism of the catalogue for `participation`, by its loss; each designed for `objective`.

    participation: how often, and how far apart, a client takes part. objective: the loss to minimise, "max" of the
    worst round or "rms". slow: matrices for these rounds too, which take seconds to minutes. server, workload: as for
    `design_mechanism`; what has no design for a server's models stands there as it is designed for prefix sums, and the
    order is by the models. What cannot be had here says why.
    """
    of_type("participation", participation, Participation)
    wanted, aim = checked_objective(objective), _workload(server, workload)
    tried = [
        (mechanism, parameters)
        for mechanism in MECHANISMS.values()
        if slow or mechanism.matrix is None
        for parameters in mechanism.compared(mechanism, participation)
    ]
    designs = []
    for mechanism, parameters in counted(tried, "comparing mechanisms", progress, total=len(tried)):
        begin = time.perf_counter()
        try:
            able = aim if mechanism.any_workload else PREFIX
            problem = mechanism.problem(participation, wanted, parameters, progress, able)
            designs.append(_designed(mechanism, problem, server))
        except TacitError as error:
            designs.append(
                Design(
                    mechanism=mechanism.name,
                    parameters=parameters,
                    objective=wanted,
                    strategy=None,
                    losses=None,
                    memory=None,
                    seconds=time.perf_counter() - begin,
                    refused=str(error),
                    server=server,
                )
            )
    costs = [each.models or each.losses for each in designs]
    order = sorted(range(len(designs)), key=lambda at: math.inf if (cost := costs[at]) is None else cost.of(wanted))
    return MechanismComparison(
        participation=participation, objective=wanted, designs=tuple(designs[at] for at in order), server=server
    )


def _workload(server: Workload, workload: Made | None) -> Workload:
    """What is designed for. InputError for what is nothing, or for the models of a server that makes prefix sums."""
    of_type("server", server, Workload)
    if workload not in (None, "prefix", "server"):
        raise InputError(f"workload='{workload}' is neither prefix nor server; leave it out, and a server decides.")
    if workload == "server" and server == PREFIX:
        raise InputError(
            "workload='server' designs for the models of a server with momentum or a cooldown; without either they are "
            "prefix sums: give momentum=0.9 or cooldown=0.3, or leave it out."
        )
    return PREFIX if workload == "prefix" else server


def _designed(mechanism: Mechanism, problem: DesignProblem, server: Workload) -> Design:
    begin = time.perf_counter()
    strategy = mechanism.made(problem)
    seconds = time.perf_counter() - begin
    return Design(
        mechanism=mechanism.name,
        parameters=problem.parameters,
        objective=problem.objective,
        strategy=strategy,
        losses=mechanism.cost(strategy, problem.participation),
        memory=strategy.memory(problem.participation.rounds),
        seconds=seconds,
        server=server,
        workload="prefix" if problem.workload == PREFIX else "server",
        models=None if server == PREFIX else losses(strategy, problem.participation, server),
    )


# -- for whom ----------------------------------------------------------------------------------------------------------


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
