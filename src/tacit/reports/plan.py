"""What people read of a plan: its steps, tables of plans, and figures of the user's own numbers."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tacit.planning.scenario import AccountedPlan, ParticipationCost, Scenario
from tacit.planning.simulated_runs import TimerOutcome
from tacit.planning.steps import PlanStep
from tacit.planning.targets import MOST_ROUNDS, Goal, Reached
from tacit.plurals import quantity
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Heading, Paragraph, Table
from tacit.reports.figure import HUES, RED, Axis, Bars, Figure, Line, Panel, Points, Rule

HYPOTHESIS = (
    "Utility is taken to see the noise of the mean and nothing else: an assumption about training, not a theorem. "
    "Guarantees do not rest on it; they hold for clients that keep MinS, MaxP and the clip norm."
)
SIMULATED = (
    "A plan, not a promise: the hypothesis that utility sees only the noise of the mean is no theorem, and devices "
    "are simulated."
)
NO_TIMER = "No timer reaches the target: the population has no more to give; raise the report goal or z."

Timer: TypeAlias = tuple[float, AccountedPlan]  # hours, and the plan behind it


# -- the answer of a page ----------------------------------------------------------------------------------------------


def goal_answer(reached: Reached, goal: Goal) -> str:
    """Which report goal, and what it promises."""
    plan = reached.plan
    said = (
        f"{quantity(plan.report_goal, 'report')} a round and noise multiplier {plan.guarantee.noise_multiplier:.4g} "
        f"promise {_promise(plan, goal.delta)} over {quantity(plan.rounds, 'round')} with {plan.mechanism.name}"
    )
    if reached.at_utility:
        return f"{said}, with the noise that the model bears."
    return f"{said}, with {reached.noisier:.3g} times the noise that the model bears, so the model will be worse."


def forwards_answer(plans: Sequence[AccountedPlan], delta: float) -> str:
    """Which mechanism promises the most, and which the least."""
    best, *_, worst = sorted([plans[0], *plans], key=lambda each: each.zcdp)
    said = f"At the same utility {best.mechanism.name} promises {_promise(best, delta)}"
    if best is worst:
        return f"{said}."
    return f"{said}; {worst.mechanism.name} promises the least, {_promise(worst, delta)}."


def target_answer(answers: Sequence[Reached], goal: Goal) -> str:
    """Which mechanism takes the fewest reports; where none reaches the target, which comes nearest."""
    able = [each for each in answers if each.at_utility]
    if able:
        plan = min(able, key=lambda each: each.plan.report_goal).plan
        return (
            f"{plan.mechanism.name} reaches the target with the fewest reports, {plan.report_goal:,} a round: "
            f"{_promise(plan, goal.delta)}."
        )
    nearest = min(answers, key=lambda each: each.noisier)
    return (
        f"No report goal reaches the target at this utility; {nearest.plan.mechanism.name} comes nearest, with "
        f"{nearest.noisier:.3g} times the noise that the model bears."
    )


def timers_answer(timers: Sequence[Timer], delta: float, *, targeted: bool, reaching: float | None) -> str:
    """The shortest timer that reaches the target; without a target, what the best promises."""
    if targeted and reaching is None:
        return NO_TIMER
    if reaching is None:
        hours, plan = min(timers, key=lambda each: each[1].zcdp)
        return f"A timer of {hours:g} hours promises the most of those tried: {_lasting(plan, delta)}."
    plan = next(each for hours, each in timers if hours == reaching)
    return f"A timer of {reaching:g} hours is the shortest that reaches the target: {_lasting(plan, delta)}."


def rounds_answer(answers: Mapping[str, AccountedPlan | None], delta: float) -> str:
    """Which mechanism affords the most rounds."""
    able = [each for each in answers.values() if each is not None]
    if not able:
        return "The budget affords no round."
    plan = max(able, key=lambda each: each.rounds)
    more = " or more" if plan.rounds == MOST_ROUNDS else ""
    return f"{plan.mechanism.name} affords the most rounds, {plan.rounds:,}{more}: {_promise(plan, delta)}."


def _promise(plan: AccountedPlan, delta: float) -> str:
    return f"epsilon {rounded_up(plan.guarantee.epsilon(delta))} at delta {delta:g} (zCDP {rounded_up(plan.zcdp)})"


def _lasting(plan: AccountedPlan, delta: float) -> str:
    days = "" if plan.days is None else f", in {plan.days:.3g} days"
    return f"{_promise(plan, delta)}, MinS {plan.guarantee.participation.rounds_between}{days}"


# -- what stands in a text ---------------------------------------------------------------------------------------------


def step_blocks(steps: Sequence[PlanStep], *, simulated: bool = False) -> list[Block]:
    """The seven steps, each under its heading."""
    blocks: list[Block] = []
    for step in steps:
        blocks += [Heading(f"{step.number}. {step.title}", 3), Paragraph("\n\n".join(step.sentences))]
    return [*blocks, Paragraph(SIMULATED if simulated else HYPOTHESIS, soft=True)]


def forwards_blocks(
    scenario: Scenario, plans: Sequence[AccountedPlan], cost: ParticipationCost, delta: float
) -> list[Block]:
    """One configuration, a row for each mechanism."""
    plan = plans[0]
    participation = plan.guarantee.participation
    days = "" if plan.days is None else f", {plan.days:.3g} days at {plan.speed:.4g} rounds a day"
    taken = cost.of(plan.participations)
    costs = "".join(f", {value:,.4g} {name.replace('_', ' ')}" for name, value in taken.items())
    rows = [
        (
            each.mechanism.name,
            f"{each.guarantee.noise_multiplier:.5g}",
            ("" if each.guarantee.exact else "≤") + rounded_up(each.zcdp),
            rounded_up(each.guarantee.epsilon(delta)),
            str(each.memory),
            each.mechanism.says,
        )
        for each in plans
    ]
    blocks: list[Block] = [
        Paragraph(
            f"{scenario.clients.reachable:,} clients within reach, report goal {plan.report_goal}, {plan.rounds} "
            f"rounds: MinS {participation.rounds_between}, MaxP {participation.max_participations}."
        ),
        Paragraph(f"{plan.participations:,} client visits{costs}{days}."),
        Table(tuple(rows), ("mechanism", "z", "zCDP", "epsilon", "memory", "what it is")),
        Paragraph(f"{_legend(delta)}; memory in arrays of the model's size, kept from round to round."),
    ]
    if not all(each.guarantee.exact for each in plans):
        blocks.append(Paragraph("≤: a proved upper bound, where the exact worst case is out of reach."))
    return [*blocks, Paragraph(HYPOTHESIS, soft=True)]


def target_blocks(
    scenario: Scenario, answers: Sequence[Reached], goal: Goal, cost: ParticipationCost, target: str
) -> list[Block]:
    """The least report goal that reaches a target, a row for each mechanism. `target`: the target in words."""
    known = tuple(name.replace("_", " ") for name in cost.of(1))
    rows = []
    for each in answers:
        plan = each.plan
        participation = plan.guarantee.participation
        rows.append(
            (
                plan.mechanism.name,
                str(plan.report_goal),
                f"{plan.guarantee.noise_multiplier:.5g}",
                str(participation.rounds_between),
                str(participation.max_participations),
                rounded_up(plan.zcdp),
                rounded_up(plan.guarantee.epsilon(goal.delta)),
                f"{plan.participations:,}",
                f"×{each.noisier:.3g}",
                *(f"{value:,.4g}" for value in cost.of(plan.participations).values()),
            )
        )
    headings = ("mechanism", "report goal", "z", "MinS", "MaxP", "zCDP", "epsilon", "visits", "noise", *known)
    return [
        Paragraph(
            f"{scenario.clients.reachable:,} clients within reach, {quantity(scenario.rounds, 'round')}; "
            f"target {target}."
        ),
        Table(tuple(rows), headings),
        Paragraph(f"{_legend(goal.delta)}."),
        Paragraph(
            "The least report goals that reach the target with the noise that the model bears."
            if all(each.at_utility for each in answers)
            else "Noise above ×1: no report goal reaches the target at this utility; so many times the noise that the "
            "model bears does, and the model will be worse."
        ),
        Paragraph(HYPOTHESIS, soft=True),
    ]


def timer_blocks(
    scenario: Scenario, timers: Sequence[Timer], delta: float, *, target: float | None, reaching: float | None
) -> list[Block]:
    """What each timer buys, by an estimate, a row for each."""
    rows = []
    for hours, plan in timers:
        participation = plan.guarantee.participation
        rows.append(
            (
                f"{hours:g}h",
                f"{participation.rounds_between}",
                f"{participation.max_participations}",
                f"{plan.speed:.4g}",
                f"{plan.days:.3g}",
                rounded_up(plan.zcdp),
                rounded_up(plan.guarantee.epsilon(delta)),
                "<- the target" if hours == reaching else "",
            )
        )
    first = timers[0][1]
    return [
        Paragraph(
            f"Report goal {first.report_goal}, {quantity(scenario.rounds, 'round')}, {first.mechanism.name} (noise "
            f"multiplier {first.guarantee.noise_multiplier:.4g} or so)."
        ),
        Table(tuple(rows), ("timer", "MinS", "MaxP", "rounds a day", "days", "zCDP", "epsilon", "")),
        *([Paragraph(NO_TIMER)] if target is not None and reaching is None else []),
        Paragraph(f"{_legend(delta)}. Beyond what the population gives a longer timer costs speed."),
        Paragraph("MinS is an estimate until it is measured."),
    ]


def simulated_timer_blocks(
    scenario: Scenario,
    timers: Sequence[TimerOutcome],
    delta: float,
    *,
    best: TimerOutcome,
    target: float | None,
    reaching: float | None,
) -> list[Block]:
    """What each timer buys in a simulated population, a row for each."""
    rows = []
    for each in timers:
        marks = ["largest MinS"] * (each is best) + ["the target"] * (each.hours == reaching)
        rows.append(
            (
                f"{each.hours}h",
                str(each.promised.rounds_between),
                str(each.promised.max_participations),
                f"{each.run.rounds_per_day:.4g}",
                f"{each.run.days:.3g}",
                str(each.run.underfilled.size),
                f"{each.run.wasted_share:.0%}",
                rounded_up(each.plan.zcdp),
                rounded_up(each.plan.guarantee.epsilon(delta)),
                f"<- {' and '.join(marks)}" if marks else "",
            )
        )
    headings = ("timer", "MinS", "MaxP", "rounds a day", "days", "starved", "wasted", "zCDP", "epsilon", "")
    first = timers[0].plan
    return [
        Paragraph(
            f"{scenario.clients.devices:,} simulated devices, report goal {first.report_goal}, {scenario.rounds} "
            f"rounds, {first.mechanism.name}."
        ),
        Table(tuple(rows), headings),
        *([Paragraph(NO_TIMER)] if target is not None and reaching is None else []),
        Paragraph(
            f"Epsilon at delta {delta:g}. MinS and MaxP are what the timer promises in the simulated times of the "
            "rounds; the real ones are measured after the run."
        ),
    ]


def rounds_blocks(
    scenario: Scenario, report_goal: int, answers: Mapping[str, AccountedPlan | None], delta: float, target: float
) -> list[Block]:
    """How many rounds a budget affords, a row for each mechanism."""
    rows = [
        (name, "0", "", "", "", "")
        if plan is None
        else (
            name,
            f"{plan.rounds}{' or more' if plan.rounds == MOST_ROUNDS else ''}",
            f"{plan.guarantee.participation.max_participations}",
            rounded_up(plan.zcdp),
            rounded_up(plan.guarantee.epsilon(delta)),
            f"{plan.guarantee.noise_multiplier:.5g}",
        )
        for name, plan in answers.items()
    ]
    return [
        Paragraph(
            f"Report goal {report_goal}, noise as planned for {quantity(scenario.rounds, 'round')}; target zCDP "
            f"{target:.6g}."
        ),
        Table(tuple(rows), ("mechanism", "rounds", "MaxP", "zCDP", "epsilon", "z")),
        Paragraph(f"{_legend(delta)}."),
    ]


def _legend(delta: float) -> str:
    return f"z is the noise multiplier; epsilon at delta {delta:g}"


# -- figures -----------------------------------------------------------------------------------------------------------


def goals_figure(plans: Sequence[AccountedPlan], reached: Reached, goal: Goal) -> Figure:
    """zCDP over the report goal at this utility; the target, and the plan."""
    plan = reached.plan
    name = plan.mechanism.name
    return Figure(
        name="plan",
        title=f"zCDP over the report goal, {quantity(plan.rounds, 'round')}",
        alt=f"zCDP of {name} over the report goal at equal utility, a rule at the target of {goal.zcdp:.4g}, and the "
        f"plan: report goal {plan.report_goal:,}, zCDP {rounded_up(plan.zcdp)}.",
        panels=(
            Panel(
                marks=(
                    Line(label=f"{name}, at this utility", x=[p.report_goal for p in plans], y=[p.zcdp for p in plans]),
                    Rule(at=goal.zcdp, label="the target", stroke=1, hue=RED),
                    Points(label="the plan", x=(plan.report_goal,), y=(plan.zcdp,), size=8, hue=1),
                ),
                x=Axis("report goal (noise in proportion)", log=True),
                y=Axis("zCDP", log=True),
            ),
        ),
        headed=True,
    )


def mechanisms_figure(
    values: Mapping[str, float], axis: str, title: str, *, log: bool = False, target: float | None = None
) -> Figure:
    """One number for each mechanism, side by side; `target` is drawn across."""
    places = range(len(values))
    numbers = tuple(values.values())
    mark = (
        Points(x=tuple(places), y=numbers, size=8)
        if log  # bars would begin nowhere
        else Bars(x=tuple(places), y=numbers, width=0.6)
    )
    rule = () if target is None else (Rule(at=target, label="the target", stroke=1, hue=RED),)
    ticks = tuple((float(at), name.replace("-", "-\n")) for at, name in enumerate(values))
    return Figure(
        name="plan",
        title=title,
        alt=f"{axis}: " + ", ".join(f"{name} {value:.4g}" for name, value in values.items()) + ".",
        panels=(
            Panel(
                marks=(mark, *rule),
                x=Axis(ticks=ticks, margin=0.1),
                y=Axis(axis, log=log, low=None if log else 0),
            ),
        ),
        headed=True,
    )


def timers_figure(timers: Sequence[Timer], delta: float, target: float | None) -> Figure:
    """What each timer promises and how long the run takes."""
    days = [hours / 24 for hours, _ in timers]
    epsilons = [plan.guarantee.epsilon(delta) for _, plan in timers]
    rule = () if target is None else (Rule(at=target, label="the target", stroke=1, hue=RED),)
    between = [plan.guarantee.participation.rounds_between for _, plan in timers]
    lasts = [plan.days or 0.0 for _, plan in timers]
    drawn: tuple[tuple[str, Sequence[float], tuple[Rule, ...]], ...] = (
        (f"epsilon at delta {delta:g}", epsilons, rule),
        ("MinS, rounds", between, ()),
        ("days of the run", lasts, ()),
    )
    return Figure(
        name="plan",
        title=f"Timers, report goal {timers[0][1].report_goal:,}",
        alt=f"Epsilon, MinS and the days of the run over timers of {days[0]:g} to {days[-1]:g} days: epsilon "
        f"{epsilons[0]:.4g} to {epsilons[-1]:.4g}, MinS {between[0]} to {between[-1]}, {lasts[0]:.3g} to "
        f"{lasts[-1]:.3g} days.",
        panels=tuple(
            Panel(
                marks=(Line(x=days, y=values, hue=hue % HUES), *more),
                x=Axis("timer, days", whole=True),
                y=Axis(label, low=0),
            )
            for hue, (label, values, more) in enumerate(drawn)
        ),
        headed=True,
        same_x=True,
        height=2.4,
    )
