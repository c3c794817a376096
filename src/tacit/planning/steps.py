"""The seven steps from a scenario to a private run (arXiv:2305.18465, Section 2.5), with its figures."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tacit.design.mechanism import Mechanism
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.scenario import Plan, Record, Scenario
from tacit.planning.targets import Progress, Reached, report_goal_for
from tacit.privacy.composition import update_noise_multiplier
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
    scenario: Scenario, mechanism: Mechanism, goal: Goal, *, progress: Progress | None = None
) -> tuple[Reached, tuple[Step, ...]]:
    """The plan for `goal` and the seven steps that lead to it.

    Each step is that of the paper; where it leaves a number open, the number is computed here. Nothing is trained.
    """
    reached = report_goal_for(scenario, mechanism, goal.zcdp, most=goal.most, progress=progress)
    return reached, Story(scenario, reached, goal).steps()


@dataclass(frozen=True, kw_only=True)
class AdaptivePrice:
    """What adapting the clip norm takes with a tree that begins afresh, at one zCDP (arXiv:2305.18465, Algorithm 1).

    `noise_multiplier` is that of updates and counts together; of it `update_noise_multiplier` remains on the updates
    (Theorem 1), None where a count with noise `bit_stddev` clients costs all there is. `noisier` is the noise of the
    mean over what the utility bears.
    """

    restarts: tuple[int, ...]
    bit_stddev: float
    noise_multiplier: float
    update_noise_multiplier: float | None
    noisier: float | None

    @classmethod
    def of(cls, scenario: Scenario, report_goal: int, zcdp: float) -> "AdaptivePrice":
        """With the restarts and the noise on the count that the paper uses, and its estimate of the prefix sums."""
        restarts = tuple(range(FIRST_RESTART, scenario.rounds, RESTART_EVERY))
        afresh = Mechanism.fixed("tree-variance-reduced", Tree(restarts=restarts, variance_reduced=True))
        plan = scenario.plan(afresh, report_goal)
        noise, bits = noise_multiplier_for(zcdp, plan.guarantee.sensitivity), report_goal / BITS_PER_REPORT
        updates = update_noise_multiplier(noise, bits) if 2 * bits > noise else None
        return cls(
            restarts=restarts,
            bit_stddev=bits,
            noise_multiplier=noise,
            update_noise_multiplier=updates,
            noisier=None if updates is None else updates / plan.guarantee.noise_multiplier,
        )


Told: TypeAlias = tuple[list[str], Record]


class Story:
    """What each step comes to, for one plan: sentences, and the figures of them."""

    def __init__(self, scenario: Scenario, reached: Reached, goal: Goal) -> None:
        self.scenario, self.reached, self.goal = scenario, reached, goal
        self.plan = reached.plan

    def steps(self) -> tuple[Step, ...]:
        """All seven, in their order."""
        parts: tuple[tuple[str, Callable[[], Told]], ...] = (
            ("Pre-train on public text", self.pretraining),
            ("Find the most noise that the model bears, small", self.noise),
            ("Scale report goal and noise to the target", self.scale),
            ("Separate a client's visits as far as the population allows", self.separation),
            ("Try adaptive clipping, without tuning by hand", self.adaptive),
            ("Where that fails or costs too much: tune small, then fix the clip norm", self.fixed),
            ("Sum securely; account what happened", self.secure),
        )
        steps = []
        for number, (title, tell) in enumerate(parts, start=1):
            sentences, figures = tell()
            steps.append(Step(number=number, title=title, sentences=tuple(sentences), figures=figures))
        return tuple(steps)

    def price(self, plan: Plan) -> str:
        epsilon = plan.guarantee.epsilon(self.goal.delta)
        return f"zCDP {rounded_up(plan.zcdp, 6)} (epsilon {rounded_up(epsilon, 6)} at delta {self.goal.delta:g})"

    def pretraining(self) -> Told:
        longer = replace(self.scenario, rounds=self.scenario.rounds + SAVED_BY_PRETRAINING)
        noise = self.plan.guarantee.noise_multiplier
        without = longer.plan(self.plan.mechanism, self.plan.report_goal, noise_multiplier=noise)
        return [
            f"Count on {self.scenario.rounds} private rounds: {self.price(self.plan)} in the end. Had public text not "
            f"saved about {SAVED_BY_PRETRAINING} rounds, as it did in the paper, it would be {self.price(without)} at "
            "the same noise, and more days."
        ], {"rounds": self.scenario.rounds, "zcdp_with_rounds_saved": self.plan.zcdp, "zcdp_without": without.zcdp}

    def noise(self) -> Told:
        utility = self.scenario.utility
        borne = utility.noise_of_mean(self.plan.guarantee.participation)
        own = self.plan.guarantee.noise_multiplier / self.reached.noisier / self.plan.report_goal * utility.report_goal
        return [
            f"Given: the model bears noise multiplier {utility.noise_multiplier:g} at report goal "
            f"{utility.report_goal} with {utility.mechanism.name}: a noise of {borne:.4g} clip norms on the "
            f"mean ({utility.objective} error of the prefix sums). With {self.plan.mechanism.name} that is noise "
            f"multiplier {own:.4g} there. Where it is a guess, try it in a simulation on public data, small."
        ], {"noise_of_mean": borne, "report_goal": utility.report_goal, "noise_multiplier": own}

    def scale(self) -> Told:
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
            f"{self.price(plan)}; {plan.participations:,} client visits.",
        ], {**plan.to_record(self.goal.delta), "target_zcdp": self.goal.zcdp, "times_the_noise": reached.noisier}

    def separation(self) -> Told:
        clients, plan = self.scenario.clients, self.plan
        participation = plan.guarantee.participation
        longest = clients.longest_separation(plan.report_goal)
        said = [
            f"{clients.reachable:,} clients within reach and {plan.report_goal} of them a round: at most MinS "
            f"{longest - 1} (b = {longest}), if everyone comes in turn. The plan counts on MinS "
            f"{participation.rounds_between} and MaxP {participation.max_participations}."
        ]
        figures: Record = {
            "longest_separation": longest,
            "min_separation": participation.min_separation,
            "max_participations": participation.max_participations,
            "days": plan.days,
        }
        if clients.rounds_per_day is None:
            said.append("The timer follows from the speed: measure the rounds a day, and give them as rounds_per_day.")
            return said, figures
        hours = clients.timer_for(participation.min_separation)
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

    def adaptive(self) -> Told:
        """Step 5, and its price: Theorem 1, and the restarts."""
        plan = self.plan
        price = AdaptivePrice.of(self.scenario, plan.report_goal, plan.zcdp)
        told = []
        if not isinstance(plan.strategy, Tree):
            told.append(
                f"The clip norm can change only where the noise starts afresh, and {plan.mechanism.name} never does: "
                "this step is run with a tree, and the norm that it finds is kept for step 6."
            )
        told.append(
            f"With the paper's restarts ({', '.join(map(str, price.restarts)) or 'none within these rounds'}) a tree "
            f"takes noise multiplier {price.noise_multiplier:.6g} for the same zCDP."
        )
        figures: Record = {
            "bit_stddev": price.bit_stddev,
            "restarts": list(price.restarts),
            "noise_multiplier": price.noise_multiplier,
        }
        updates = price.update_noise_multiplier
        if updates is None:
            return [
                *told,
                f"The noise on the count, report goal / {BITS_PER_REPORT} = {price.bit_stddev:g} clients, costs all of "
                f"it: take more noise on the count than {price.noise_multiplier / 2:.4g}.",
            ], figures
        return [
            *told,
            f"Of that, a count with noise {price.bit_stddev:g} clients (report goal / {BITS_PER_REPORT}) leaves the "
            f"updates noise multiplier {updates:.6g}, {updates / price.noise_multiplier - 1:.2%} more (Theorem 1): "
            f"{price.noisier:.3g} times the noise that the model bears. Watch for a clip norm that runs away at a "
            "large report goal.",
        ], {**figures, "update_noise_multiplier": updates, "times_the_noise": price.noisier}

    def fixed(self) -> Told:
        small = min(self.scenario.utility.report_goal, self.plan.report_goal)
        visits = small * self.scenario.rounds
        return [
            "Tune the quantile and the server's learning rate with a small report goal, read off the clip norm, fix "
            f"it, and run large: report goal {self.plan.report_goal}, noise multiplier "
            f"{self.plan.guarantee.noise_multiplier:.6g}, {self.price(self.plan)}.",
            f"Each of those runs costs up to {visits:,} client visits at {small} reports a round. On clients' data "
            "they are releases too: account them, or tune on public data.",
        ], {"report_goal": small, "client_visits": visits}

    def secure(self) -> Told:
        factor = self.scenario.clip_inflation
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
