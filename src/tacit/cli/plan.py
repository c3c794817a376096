"""`tacit plan`: privacy, visits and days of a run before any is spent.

Forwards (`run`), back from a target (`target`, `timer`, `rounds`), the seven steps of arXiv:2305.18465, Section 2.5
(`steps`, which is meant where no command is named), and the trade-offs as figures (`figures`).
"""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.options import with_options
from tacit.cli.plan_figures import figures
from tacit.cli.plan_options import Asked, Chosen, Delta, Json, One, PerVisit, ReportGoal, Target, chosen
from tacit.cli.plan_timer import Simulated, show_simulated_timers
from tacit.cli.tables import print_table
from tacit.design.catalogue import MECHANISMS
from tacit.planning import ParticipationCost, Plan, Scenario, report_goal_for, rounds_for
from tacit.planning.steps import seven_steps
from tacit.planning.targets import MOST_ROUNDS, Reached, timers
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record

SEARCHED = (
    "independent",
    "tree",
    "tree-variance-reduced",
    "blt",
    "blt-b400",
    "lambda-cgd",
)  # fast, and never worse for waiting
HYPOTHESIS = (
    "Utility is taken to see the noise of the mean and nothing else: an assumption about training, not a theorem. "
    "Guarantees do not rest on it; they hold for clients that keep MinS, MaxP and the clip norm."
)


class StepsByDefault(TyperGroup):
    """`tacit plan --population ...` means `tacit plan steps --population ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command where an option stands first."""
        named = not args or not args[0].startswith("-") or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if named else ["steps", *args])


app = typer.Typer(
    cls=StepsByDefault,
    no_args_is_help=True,
    help="Plan a run before it is run: privacy, client visits and days. Without a command: `steps`.",
)
app.command("figures")(figures)

Most = Annotated[int | None, typer.Option(help="Most reports a round that the system can take.")]


@app.command("steps")
@speaks_plainly
@with_options
def plan_steps(
    asked: Asked, target: Target, mechanism: One = "blt", most_reports: Most = None, as_json: Json = False
) -> None:
    """From population and target to a plan, in the seven steps of arXiv:2305.18465, Section 2.5."""
    task, goal = asked.task(), target.goal(most_reports)
    with complaints.status("searching") as status:
        reached, steps = seven_steps(task, chosen([mechanism], ())[0], goal, progress=status.update)
    if as_json:
        print_json({"plan": _answer(reached, goal.delta), "steps": [step.to_record() for step in steps]})
        return
    for step in steps:
        console.print(f"[bold]{step.number}. {step.title}[/]")
        for sentence in step.sentences:
            console.print(f"   {sentence}")
    console.print(HYPOTHESIS)


@app.command("run")
@speaks_plainly
@with_options
def plan_run(
    asked: Asked,
    report_goal: ReportGoal,
    cost: PerVisit,
    delta: Delta = 1e-10,
    mechanism: Chosen = None,
    as_json: Json = False,
) -> None:
    """One configuration, every mechanism at the same utility: guarantee, visits, days, memory."""
    task, per_visit = asked.task(), cost.cost()
    plans = []
    with complaints.status("designing") as status:
        for each in chosen(mechanism, tuple(name for name, of in MECHANISMS.items() if of.matrix is None)):
            status.update(f"designing {each.name}")
            plans.append(task.plan(each, report_goal))
    if as_json:
        records = [{**plan.to_record(delta), **per_visit.of(plan.participations)} for plan in plans]
        print_json({"population": task.clients.devices, "reachable": task.clients.reachable, "plans": records})
        return
    rows = [(*_row(plan, delta), plan.mechanism.says) for plan in plans]
    console.print(_setting(task, plans[0], per_visit))
    print_table(
        ("mechanism", "z", "zCDP", "epsilon", "memory", "what it is"),
        rows,
    )
    console.print(f"{_legend(delta)}; memory in arrays of the model's size, kept from round to round.")
    if not all(plan.guarantee.exact for plan in plans):
        console.print("≤: a proved upper bound, where the exact worst case is out of reach.")
    console.print(HYPOTHESIS)


@app.command("target")
@speaks_plainly
@with_options
def plan_target(
    asked: Asked,
    target: Target,
    cost: PerVisit,
    most_reports: Most = None,
    mechanism: Chosen = None,
    as_json: Json = False,
) -> None:
    """Which report goal and noise reach an epsilon at this utility: the least, for each mechanism."""
    task, goal, per_visit = asked.task(), target.goal(most_reports), cost.cost()
    answers: list[Reached] = []
    with complaints.status("searching") as status:
        for each in chosen(mechanism, SEARCHED):

            def tell(line: str, name: str = each.name) -> None:
                status.update(f"{name}: {line}")

            answers.append(report_goal_for(task, each, goal.zcdp, most=goal.most, progress=tell))
    if as_json:
        records = [{**_answer(each, goal.delta), **per_visit.of(each.plan.participations)} for each in answers]
        print_json({"target_zcdp": goal.zcdp, "delta": goal.delta, "answers": records})
        return
    asked_for = f"zCDP {goal.zcdp:.6g}" if target.epsilon is None else f"epsilon {target.epsilon:g} at {goal.delta:g}"
    console.print(f"{task.clients.reachable:,} clients within reach, {task.rounds} rounds; target {asked_for}.")
    known = list(per_visit.of(1))
    headings = ("mechanism", "report goal", "z", "MinS", "MaxP", "zCDP", "epsilon", "visits", "noise")
    print_table(
        (*headings, *(name.replace("_", " ") for name in known)),
        [_answer_row(each, goal.delta, per_visit) for each in answers],
    )
    console.print(f"{_legend(goal.delta)}.")
    if all(each.at_utility for each in answers):
        console.print("The least report goals that reach the target with the noise that the model bears.")
    else:
        console.print(
            "Noise above ×1: no report goal reaches the target at this utility; so many times the noise that the model "
            "bears does, and the model will be worse."
        )
    console.print(HYPOTHESIS)


@app.command("timer")
@speaks_plainly
@with_options
def plan_timer(
    asked: Asked,
    report_goal: ReportGoal,
    target: Target,
    simulated: Simulated,
    mechanism: One = "blt",
    as_json: Json = False,
) -> None:
    """What each timer buys, in whole days up to what the population gives; and the shortest that reaches a target."""
    simulated.check()
    task, rho = asked.task(), target.rho
    each = chosen([mechanism], ())[0]
    if simulated.simulate:
        show_simulated_timers(task, each, report_goal, simulated, rho=rho, delta=target.delta, as_json=as_json)
        return
    with complaints.status("designing") as status:
        listed = []
        for hours, plan in timers(task, each, report_goal):
            status.update(f"timer of {hours} hours")
            listed.append((hours, plan))
    reaching = None if rho is None else next((hours for hours, plan in listed if plan.zcdp <= rho), None)
    if as_json:
        records = [{"timer_hours": hours, **plan.to_record(target.delta)} for hours, plan in listed]
        print_json({"timers": records, "target_zcdp": rho, "shortest_timer_hours": reaching})
        return
    rows = [
        (
            f"{hours}h",
            f"{plan.guarantee.participation.rounds_between}",
            f"{plan.guarantee.participation.max_participations}",
            f"{plan.speed:.4g}",
            f"{plan.days:.3g}",
            rounded_up(plan.zcdp),
            rounded_up(plan.guarantee.epsilon(target.delta)),
            "<- the target" if hours == reaching else "",
        )
        for hours, plan in listed
    ]
    noise = listed[0][1].guarantee.noise_multiplier
    console.print(f"Report goal {report_goal}, {task.rounds} rounds, {each.name} (noise multiplier {noise:.4g} or so).")
    print_table(("timer", "MinS", "MaxP", "rounds a day", "days", "zCDP", "epsilon", ""), rows)
    if rho is not None and reaching is None:
        console.print("No timer reaches the target: the population has no more to give; raise the report goal or z.")
    console.print(f"{_legend(target.delta)}. Beyond what the population gives a longer timer costs speed.")
    console.print("MinS is an estimate until it is measured.")


@app.command("rounds")
@speaks_plainly
@with_options
def plan_rounds(
    asked: Asked, report_goal: ReportGoal, target: Target, mechanism: Chosen = None, as_json: Json = False
) -> None:
    """How many rounds the budget affords, with strategy and noise as planned for --rounds."""
    task, rho = asked.task(), target.needed()
    answers: list[tuple[str, Plan | None]] = []
    with complaints.status("searching") as status:
        for each in chosen(mechanism, SEARCHED):
            status.update(f"searching with {each.name}")
            answers.append((each.name, rounds_for(task, each, report_goal, rho)))
    if as_json:
        records = [
            {"mechanism": name, "rounds": 0} if plan is None else plan.to_record(target.delta) for name, plan in answers
        ]
        print_json({"target_zcdp": rho, "planned_rounds": task.rounds, "answers": records})
        return
    rows = [
        (name, "0", "", "", "", "")
        if plan is None
        else (
            name,
            f"{plan.rounds}{' or more' if plan.rounds == MOST_ROUNDS else ''}",
            f"{plan.guarantee.participation.max_participations}",
            rounded_up(plan.zcdp),
            rounded_up(plan.guarantee.epsilon(target.delta)),
            f"{plan.guarantee.noise_multiplier:.5g}",
        )
        for name, plan in answers
    ]
    console.print(f"Report goal {report_goal}, noise as planned for {task.rounds} rounds; target zCDP {rho:.6g}.")
    headings = ("mechanism", "rounds", "MaxP", "zCDP", "epsilon", "z")
    print_table(headings, rows)
    console.print(f"{_legend(target.delta)}.")


def _legend(delta: float) -> str:
    return f"z is the noise multiplier; epsilon at delta {delta:g}"


def _answer(reached: Reached, delta: float) -> Record:
    return {**reached.plan.to_record(delta), "at_utility": reached.at_utility, "times_the_noise": reached.noisier}


def _answer_row(reached: Reached, delta: float, per_visit: ParticipationCost) -> tuple[str, ...]:
    plan = reached.plan
    served = plan.guarantee.participation
    return (
        plan.mechanism.name,
        str(plan.report_goal),
        f"{plan.guarantee.noise_multiplier:.5g}",
        str(served.rounds_between),
        str(served.max_participations),
        rounded_up(plan.zcdp),
        rounded_up(plan.guarantee.epsilon(delta)),
        f"{plan.participations:,}",
        f"×{reached.noisier:.3g}",
        *(f"{value:,.4g}" for value in per_visit.of(plan.participations).values()),
    )


def _setting(task: Scenario, plan: Plan, per_visit: ParticipationCost) -> str:
    served = plan.guarantee.participation
    days = "" if plan.days is None else f", {plan.days:.3g} days at {plan.speed:.4g} rounds a day"
    costs = "".join(
        f", {value:,.4g} {name.replace('_', ' ')}" for name, value in per_visit.of(plan.participations).items()
    )
    return (
        f"{task.clients.reachable:,} clients within reach, report goal {plan.report_goal}, {plan.rounds} rounds: "
        f"MinS {served.rounds_between}, MaxP {served.max_participations}.\n"
        f"{plan.participations:,} client visits{costs}{days}."
    )


def _row(plan: Plan, delta: float) -> tuple[str, ...]:
    record = plan.to_record(delta)
    return (
        plan.mechanism.name,
        f"{plan.guarantee.noise_multiplier:.5g}",
        ("" if plan.guarantee.exact else "≤") + rounded_up(plan.zcdp),
        rounded_up(record["epsilon"]),
        str(record["memory"]),
    )
