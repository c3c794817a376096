"""The seven steps from a task to a private run (arXiv:2305.18465, Section 2.5), with the figures of this task."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tacit.planning.candidates import Mechanism
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.plan import Plan, Record, Task
from tacit.planning.targets import Progress, Reached, report_goal_for
from tacit.privacy.adaptive_clipping import update_noise_multiplier
from tacit.privacy.gaussian import noise_multiplier_for
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Tree

SAVED_BY_PRETRAINING = 1000  # rounds, about, to the same accuracy (arXiv:2305.18465, Section 2.3)
BITS_PER_REPORT = 20  # the noise on the count of clipped updates is m/20 (arXiv:2305.18465, Algorithm 1)
FIRST_RESTART, RESTART_EVERY = 128, 1024  # rounds at which the clip norm is renewed there


@dataclass(frozen=True, kw_only=True)
class Step:
    """One numbered step: what to do, what it comes to here, and the figures of that."""

    number: int
    title: str
    sentences: tuple[str, ...]
    figures: Record = field(default_factory=dict)

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {
            "step": self.number,
            "title": self.title,
            "sentences": list(self.sentences),
            "figures": self.figures,
        }


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is to be reached: `zcdp` at most, with at most `most` reports a round; epsilon is told at `delta`."""

    zcdp: float
    delta: float
    most: int | None = None


def seven_steps(
    task: Task, mechanism: Mechanism, goal: Goal, *, progress: Progress | None = None
) -> tuple[Reached, tuple[Step, ...]]:
    """The plan for `goal` and the seven steps that lead to it.

    Each step is that of the paper; where it leaves a number open, the number is computed here. Nothing is trained.
    """
    reached = report_goal_for(task, mechanism, goal.zcdp, most=goal.most, progress=progress)
    story = _Story(task, reached, goal)
    parts: tuple[tuple[str, Callable[[], tuple[list[str], Record]]], ...] = (
        ("Pre-train on public text", story.pretraining),
        ("Find the most noise that the model bears, small", story.noise),
        ("Scale report goal and noise to the target", story.scale),
        ("Separate a client's visits as far as the population allows", story.separation),
        ("Try adaptive clipping, without tuning by hand", story.adaptive),
        ("Where that fails or costs too much: tune small, then fix the clip norm", story.fixed),
        ("Sum securely; account what happened", story.secure),
    )
    steps = []
    for number, (title, tell) in enumerate(parts, start=1):
        sentences, figures = tell()
        steps.append(Step(number=number, title=title, sentences=tuple(sentences), figures=figures))
    return reached, tuple(steps)


class _Story:
    """What each step comes to, for one plan."""

    def __init__(self, task: Task, reached: Reached, goal: Goal) -> None:
        self.task, self.reached, self.goal = task, reached, goal
        self.plan = reached.plan

    def price(self, plan: Plan) -> str:
        epsilon = plan.guarantee.epsilon(self.goal.delta)
        return f"zCDP {rounded_up(plan.zcdp, 6)} (epsilon {rounded_up(epsilon, 6)} at delta {self.goal.delta:g})"

    def pretraining(self) -> tuple[list[str], Record]:
        longer = replace(self.task, rounds=self.task.rounds + SAVED_BY_PRETRAINING)
        noise = self.plan.guarantee.noise_multiplier
        without = longer.plan(self.plan.mechanism, self.plan.report_goal, noise_multiplier=noise)
        return [
            f"Count on {self.task.rounds} private rounds: {self.price(self.plan)} in the end. Had public text not "
            f"saved about {SAVED_BY_PRETRAINING} rounds, as it did in the paper, it would be {self.price(without)} at "
            "the same noise, and more days."
        ], {"rounds": self.task.rounds, "zcdp_with_rounds_saved": self.plan.zcdp, "zcdp_without": without.zcdp}

    def noise(self) -> tuple[list[str], Record]:
        utility = self.task.utility
        borne = utility.noise_of_mean(self.plan.guarantee.participation)
        own = self.plan.guarantee.noise_multiplier / self.reached.noisier / self.plan.report_goal * utility.report_goal
        return [
            f"Given: the model bears noise multiplier {utility.noise_multiplier:g} at report goal "
            f"{utility.report_goal} with {utility.mechanism.name}: a noise of {borne:.4g} clip norms on the "
            f"mean ({utility.objective} error of the prefix sums). With {self.plan.mechanism.name} that is noise "
            f"multiplier {own:.4g} there. Where it is a guess, try it in a simulation on public data, small."
        ], {"noise_of_mean": borne, "report_goal": utility.report_goal, "noise_multiplier": own}

    def scale(self) -> tuple[list[str], Record]:
        plan, reached = self.plan, self.reached
        asked = f"zCDP {self.goal.zcdp:.6g}"
        if reached.at_utility:
            said = f"The least report goal that reaches the target, {asked}, at this utility is {plan.report_goal}."
        else:
            limit = "what the population gives" if self.goal.most is None else f"{self.goal.most} reports a round"
            said = (
                f"The target, {asked}, is out of reach at this utility within {limit}. At {plan.report_goal} reports "
                f"it takes {reached.noisier:.3g} times the noise that the model bears: expect a worse model, ask for "
                "less, or reach more clients."
            )
        return [
            said,
            f"Report goal {plan.report_goal}, noise multiplier {plan.guarantee.noise_multiplier:.6g}: "
            f"{self.price(plan)}; {plan.visits:,} client visits.",
        ], {**plan.to_record(self.goal.delta), "target_zcdp": self.goal.zcdp, "times_the_noise": reached.noisier}

    def separation(self) -> tuple[list[str], Record]:
        clients, plan = self.task.clients, self.plan
        served = plan.guarantee.participation
        longest = clients.longest_separation(plan.report_goal)
        said = [
            f"{clients.reachable:,} clients within reach and {plan.report_goal} of them a round: at most MinS "
            f"{longest - 1} (b = {longest}), if everyone comes in turn. The plan counts on MinS "
            f"{served.rounds_between} and MaxP {served.max_participations}."
        ]
        figures: Record = {
            "longest_separation": longest,
            "min_separation": served.min_separation,
            "max_participations": served.max_participations,
            "days": plan.days,
        }
        if clients.rounds_per_day is None:
            said.append("The timer follows from the speed: measure the rounds a day, and give them as rounds_per_day.")
            return said, figures
        hours = clients.timer_for(served.min_separation)
        figures["timer_hours"] = hours
        said.append(
            f"At {clients.rounds_per_day:g} rounds a day a timer of {hours} hours keeps that separation (whole days, "
            "because clients come at their own time of day)."
        )
        behind = clients.with_timer(hours).speed(plan.report_goal) or clients.rounds_per_day
        if behind < clients.rounds_per_day * (1 - 1e-9):
            faster = f" {hours - HOURS_PER_DAY} hours are faster, at a shorter separation."
            said.append(
                f"That asks more of the population than it gives at this speed: {behind:.4g} rounds a day remain."
                + (faster if hours > HOURS_PER_DAY else "")
            )
        if plan.days is not None:
            said.append(f"The run takes about {plan.rounds / behind:.3g} days.")
        return said, figures

    def adaptive(self) -> tuple[list[str], Record]:
        plan = self.plan
        noise, bits = plan.guarantee.noise_multiplier, plan.report_goal / BITS_PER_REPORT
        restarts = tuple(range(FIRST_RESTART, plan.rounds, RESTART_EVERY))
        if isinstance(plan.strategy, Tree):
            afresh = replace(plan.guarantee, strategy=replace(plan.strategy, restarts=restarts))
            noise = noise_multiplier_for(plan.zcdp, afresh.sensitivity)
            told = (
                f"With the paper's restarts ({', '.join(map(str, restarts)) or 'none within these rounds'}) the same "
                f"zCDP takes noise multiplier {noise:.6g}."
            )
        else:
            return [
                f"The clip norm can change only where the noise starts afresh, and {plan.mechanism.name} never does: "
                "run this step with a tree, and keep the norm that it finds for step 6."
            ], {}
        figures: Record = {"bit_stddev": bits, "restarts": list(restarts), "noise_multiplier": noise}
        if 2 * bits <= noise:
            return [
                told,
                f"The noise on the count, report goal / {BITS_PER_REPORT} = {bits:g} clients, costs all of it: take "
                f"more noise on the count than {noise / 2:.4g}.",
            ], figures
        updates = update_noise_multiplier(noise, bits)
        return [
            told,
            f"Of that, a count with noise {bits:g} clients (report goal / {BITS_PER_REPORT}) leaves the updates noise "
            f"multiplier {updates:.6g}, {updates / noise - 1:.2%} more (Theorem 1). Watch for a clip norm that runs "
            "away at a large report goal.",
        ], {**figures, "update_noise_multiplier": updates}

    def fixed(self) -> tuple[list[str], Record]:
        small = min(self.task.utility.report_goal, self.plan.report_goal)
        visits = small * self.task.rounds
        return [
            "Tune the quantile and the server's learning rate with a small report goal, read off the clip norm, fix "
            f"it, and run large: report goal {self.plan.report_goal}, noise multiplier "
            f"{self.plan.guarantee.noise_multiplier:.6g}, {self.price(self.plan)}.",
            f"Each of those runs costs up to {visits:,} client visits at {small} reports a round. On clients' data "
            "they are releases too: account them, or tune on public data.",
        ], {"report_goal": small, "client_visits": visits}

    def secure(self) -> tuple[list[str], Record]:
        factor = self.task.clip_inflation
        if factor > 1:
            said = f"The figures above count a clip norm inflated by {factor:.6g}, as encoding for secure sums does."
        else:
            said = (
                "Encoding for secure sums inflates the clip norm: 1% costs 2.01% of zCDP, "
                f"{rounded_up(self.plan.zcdp * 1.01**2, 6)} instead of {rounded_up(self.plan.zcdp, 6)}."
            )
        return [
            said,
            "MinS and MaxP above are promises. Compute both from what happened and account again: `tacit account run "
            "RUN`, or `tacit account log ROUNDS.csv --timer 48h` where only the times of the rounds are known.",
        ], {"clip_inflation": factor}
