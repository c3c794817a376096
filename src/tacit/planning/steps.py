"""The seven steps from a scenario to a private run (arXiv:2305.18465, Section 2.5), with its figures.

Who takes part is estimated by formulas, or comes from a simulated population (`production`); the steps are the same.
"""

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tacit.design.mechanism import Mechanism
from tacit.planning.adaptive_clipping import BITS_PER_REPORT, WITHOUT_DECRYPTORS, AdaptiveClippingCost
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.noise_forecast import STEP, ratio_of_sums, share_kept
from tacit.planning.scenario import AccountedPlan, Record, Scenario
from tacit.planning.targets import Goal, Reached, report_goal_for
from tacit.privacy.encoding import Encoding
from tacit.privacy.gaussian import epsilon
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Tree
from tacit.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.planning.production import Production
    from tacit.planning.tuning import Tuned

SAVED_BY_PRETRAINING = 1000  # rounds, about, to the same accuracy (arXiv:2305.18465, Section 2.3)
NETWORKS = (80_000, 2_400_000)  # parameters: of the trainings that were measured, and of the papers' network
MAX_RELATIVE_NOISE = 2.0  # times what the model bears, from which on a usable model is not to be expected
SMALL_PUBLIC = "caches/public-text"  # of the command that is shown where no model is given


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """One numbered step: what to do, what it comes to here, and the figures of that."""

    number: int
    title: str
    sentences: tuple[str, ...]
    figures: Record = field(default_factory=dict)

    def to_record(self) -> Record:
        """The step as plain values for JSON."""
        return {
            "step": self.number,
            "title": self.title,
            "sentences": list(self.sentences),
            "figures": self.figures,
        }


@dataclass(frozen=True, kw_only=True)
class ProductionNotes:
    """What the steps of a simulated plan tell besides it: where values came from, and what commands are to name."""

    model: Path | None  # that training begins from
    recipe: Path | None  # what the production recipe builds on
    out: Path
    tuned: "Tuned | None"
    encoding: Encoding | None  # of secure aggregation, where it was asked for
    others: tuple[AccountedPlan, ...]  # further mechanisms at the same noise on the mean and participation


def seven_steps(
    scenario: Scenario, mechanism: Mechanism, goal: Goal, *, progress: Progress = silent
) -> tuple[Reached, tuple[PlanStep, ...]]:
    """The plan for `goal` and the seven steps that lead to it, by formulas.

    Each step is that of the paper; where it leaves a number open, the number is computed here. Nothing is trained.
    """
    reached = report_goal_for(scenario, mechanism, goal.zcdp, most=goal.max_goal, progress=progress)
    return reached, PlanSteps(scenario=scenario, reached=reached, goal=goal).steps()


StepContent: TypeAlias = tuple[list[str], Record]  # its sentences, and the figures of them


@dataclass(frozen=True, kw_only=True)
class PlanSteps:
    """What each step comes to, for one plan.

    production: the simulation that the plan counts on, of runs of at most `acceptable_days`, with `notes` on where its
    values came from; None where it was made with formulas. noise_from: where the noise that the model bears was seen.
    """

    scenario: Scenario
    reached: Reached
    goal: Goal
    noise_from: str = "as given; where it is a guess, try it in a simulation on public data, small"
    production: "Production | None" = None
    acceptable_days: float = math.inf
    notes: ProductionNotes | None = None

    @property
    def plan(self) -> AccountedPlan:
        """The plan that the steps lead to."""
        return self.reached.plan

    def steps(self) -> tuple[PlanStep, ...]:
        """All seven, in their order."""
        parts: tuple[tuple[str, Callable[[], StepContent]], ...] = (
            ("Pre-train on public text", self._pretraining),
            ("Find the most noise that the model bears, small", self._noise),
            ("Scale report goal and noise to the target", self._scale),
            (
                "Separate a client's visits as far as the population allows",
                self._estimated_separation if self.production is None else self._simulated_separation,
            ),
            ("Try adaptive clipping, without tuning by hand", self._adaptive),
            ("Where that fails or costs too much: tune small, then fix the clip norm", self._fixed),
            ("Sum securely; account what happened", self._secure),
        )
        steps = []
        for number, (title, content) in enumerate(parts, start=1):
            sentences, figures = content()
            steps.append(PlanStep(number=number, title=title, sentences=tuple(sentences), figures=figures))
        return tuple(steps)

    def _cost(self, plan: AccountedPlan) -> str:
        promised = plan.guarantee.epsilon(self.goal.delta)
        return f"zCDP {rounded_up(plan.zcdp, 6)} (epsilon {rounded_up(promised, 6)} at delta {self.goal.delta:g})"

    def _pretraining(self) -> StepContent:
        rounds, clients = self.scenario.rounds, self.scenario.clients
        if self.production is not None:  # its MaxP is that of these rounds; in more of them everybody comes more often
            clients = replace(clients, max_participations=None)
        longer = replace(self.scenario, rounds=rounds + SAVED_BY_PRETRAINING, clients=clients)
        noise = self.plan.guarantee.noise_multiplier
        without = longer.plan(self.plan.mechanism, self.plan.report_goal, noise_multiplier=noise)
        said, figures = [], {}
        if self.notes is not None:
            model = self.notes.model
            figures["model"] = None if model is None else str(model)
            said.append(
                f"No model given: make one with `tacit pretrain {SMALL_PUBLIC} --out models/public` and run this again "
                "with --model models/public/model, or production.toml begins at random."
                if model is None
                else f"Begin from {model}, which production.toml names as model.init."
            )
        said.append(
            f"Count on {rounds} private rounds: {self._cost(self.plan)} in the end. Had public text not saved about "
            f"{SAVED_BY_PRETRAINING} rounds, as it did in the paper, it would be {self._cost(without)} at the same "
            "noise, and more days."
        )
        return said, {
            **figures,
            "rounds": rounds,
            "zcdp_with_rounds_saved": self.plan.zcdp,
            "zcdp_without": without.zcdp,
            "epsilon_without": without.guarantee.epsilon(self.goal.delta),
        }

    def _noise(self) -> StepContent:
        utility, plan = self.scenario.utility, self.plan
        borne = utility.noise_of_mean(plan.guarantee.participation)
        of_all = plan.guarantee.noise_multiplier * self.scenario.noisier / self.reached.noisier
        own = of_all / plan.report_goal * utility.report_goal
        return [
            f"Noise multiplier {utility.noise_multiplier:g} at {utility.report_goal} reports with "
            f"{utility.mechanism.name}: {self.noise_from}.",
            f"That is a noise of {borne:.4g} clip norms on the mean ({utility.objective} error of the prefix sums), "
            f"and with {plan.mechanism.name} noise multiplier {own:.4g} at {utility.report_goal}.",
        ], {"noise_of_mean": borne, "report_goal": utility.report_goal, "noise_multiplier": own}

    def _scale(self) -> StepContent:
        plan, reached, goal = self.plan, self.reached, self.goal
        target = f"epsilon {epsilon(goal.zcdp, goal.delta):.6g} at delta {goal.delta:g} (zCDP {goal.zcdp:.6g})"
        noise = f"report goal {plan.report_goal:,}, noise multiplier {plan.guarantee.noise_multiplier:.6g}"
        if reached.at_utility:
            said = [f"{noise.capitalize()}: the least report goal that reaches {target} at this utility."]
        else:
            said = [
                f"The target, {target}, is OUT OF REACH at this utility: {self._limit()}. So {noise}: the noise on the "
                f"mean is {reached.noisier:.3g} times what the model bears, the signal-to-noise "
                f"{1 / reached.noisier:.1%} of what the utility target takes. Expect a worse model, ask for less, or "
                "reach more devices."
            ]
            if reached.noisier > MAX_RELATIVE_NOISE:
                said.append("WARNING: do not expect a usable model; ask for less, or reach more devices.")
        said.append(
            f"It promises {self._cost(plan)}, with {plan.mechanism.name}; {plan.participations:,} client visits."
        )
        small, large = (self._kept(parameters) for parameters in NETWORKS)
        said.append(
            f"With a server step of {STEP:g} (rate 1, momentum 0.9, clip norm 1) a network of {NETWORKS[0]:,} "
            f"parameters will keep about {small:.0%} of its accuracy without noise, one of {NETWORKS[1]:,} about "
            f"{large:.0%} (docs/which-epsilon.md)."
        )
        figures: Record = {
            "share_kept": {str(NETWORKS[0]): small, str(NETWORKS[1]): large},
            **plan.to_record(goal.delta),
            "target_zcdp": goal.zcdp,
            "at_utility": reached.at_utility,
            "times_the_noise": reached.noisier,
            "signal_to_noise": 1 / reached.noisier,
        }
        if self.production is not None:
            figures["largest_report_goal_that_ends_in_time"] = self.production.largest_feasible
        if self.notes is not None:
            figures["other_mechanisms"] = [each.to_record(goal.delta) for each in self.notes.others]
            if self.notes.others:
                said.append(self._beside_others(self.notes.others))
        return said, figures

    def _kept(self, parameters: int) -> float:
        """The share of the accuracy without noise that such a network keeps."""
        return share_kept(ratio_of_sums(STEP * self.plan.noise_of_mean, parameters=parameters))

    def _limit(self) -> str:
        """Why no larger report goal was taken."""
        production, most = self.production, self.goal.max_goal
        if production is not None and production.largest_feasible is not None:
            largest, days = production.largest_feasible, self.acceptable_days
            return f"rounds of more than {largest:,} reports do not end within {days:g} days"
        if production is not None and not production.exhausted:
            return "simulations of all devices gave less than small ones, and more reports were not tried"
        if most is None:
            return "the population gives no more"
        return f"{most:,} reports a round are the most the system takes"

    def _beside_others(self, others: tuple[AccountedPlan, ...]) -> str:
        listed = ", ".join(f"{each.mechanism.name} {rounded_up(each.zcdp)} ({_memory(each)})" for each in others)
        return (
            f"In memory it takes {_memory(self.plan)} of the model's size. Others at the same noise on the mean, "
            f"zCDP: {listed}."
        )

    def _estimated_separation(self) -> StepContent:
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

    def _simulated_separation(self) -> StepContent:
        assert self.production is not None  # by `steps`
        run, clients = self.production.simulated, self.scenario.clients
        promised, realised = run.promised, run.realised
        longest = clients.longest_separation(self.plan.report_goal)
        said = [
            f"Timer {run.timer_hours:g} hours: in a simulation of all {clients.devices:,} devices it promises MinS "
            f"{promised.rounds_between}, MaxP {promised.max_participations}, which the plan counts on; realised there: "
            f"MinS {realised.rounds_between}, MaxP {realised.max_participations}. Devices / report goal is "
            f"{longest:,}.",
            f"The run takes {run.days:.3g} of {self.acceptable_days:g} acceptable days, at "
            f"{run.rounds_per_day:.4g} rounds a day; {run.underfilled:,} rounds starve.",
        ]
        others = {each.timer_hours: each for each in self.production.other_timers}
        if others:
            listed = "; ".join(
                f"{hours:g} hours MinS {each.promised.rounds_between} in {each.days:.3g} days"
                for hours, each in sorted(others.items())
            )
            said.append(f"Other timers, simulated small: {listed}.")
        return said, {**run.to_record(), "longest_separation": longest}

    def _adaptive(self) -> StepContent:
        """Step 5, and its price: Theorem 1, and the restarts."""
        plan = self.plan
        zcdp, same = (plan.zcdp, "the same zCDP") if self.production is None else (self.goal.zcdp, "the target")
        cost = AdaptiveClippingCost.from_scenario(self.scenario, plan.report_goal, zcdp)
        updates = cost.update_noise_multiplier
        figures: Record = {
            "restarts": list(cost.restarts),
            "bit_stddev": cost.bit_stddev,
            "noise_multiplier": cost.noise_multiplier,
            "update_noise_multiplier": updates,
            "times_the_noise": cost.noisier,
        }
        said = [WITHOUT_DECRYPTORS] if self.scenario.noises > 1 else []
        if not isinstance(plan.strategy, Tree):
            said.append(
                f"The clip norm can change only where the noise starts afresh, and {plan.mechanism.name} never does: "
                "this step is run with a tree, and the norm that it finds is kept for step 6."
            )
        said.append(
            f"With the paper's restarts ({', '.join(map(str, cost.restarts)) or 'none within these rounds'}) a tree "
            f"takes noise multiplier {cost.noise_multiplier:.6g} for {same}."
        )
        if updates is None or cost.noisier is None:
            said.append(
                f"The noise on the count, report goal / {BITS_PER_REPORT} = {cost.bit_stddev:g} clients, costs all of "
                f"it: take more noise on the count than {cost.noise_multiplier / 2:.4g}."
            )
            return said, figures
        said.append(
            f"Of that, a count with noise {cost.bit_stddev:g} clients (report goal / {BITS_PER_REPORT}) leaves the "
            f"updates noise multiplier {updates:.6g}, {updates / cost.noise_multiplier - 1:.2%} more (Theorem 1): "
            f"{cost.noisier:.3g} times the noise that the model bears, against {self.reached.noisier:.3g} with a "
            "fixed clip norm. Watch for a clip norm that runs away at a large report goal."
        )
        return said, figures

    def _fixed(self) -> StepContent:
        plan, notes = self.plan, self.notes
        if notes is not None and notes.tuned is not None:
            tuned = notes.tuned
            return [
                f"Tuned in {tuned.folder}: server learning rate {tuned.server_learning_rate:g}, clip norm "
                f"{tuned.clip_norm:.4g}; production.toml has both, and the clip norm is fixed.",
                tuned.cost,
            ], tuned.to_record()
        large = (
            plan.report_goal if self.production is None else -(-plan.report_goal // 2)
        )  # `tacit tune` tries smaller ones only
        small = min(self.scenario.utility.report_goal, large)
        figures: Record = {"report_goal": small, "client_visits": small * self.scenario.rounds}
        said = [
            "Tune the quantile and the server's learning rate with a small report goal, read off the clip norm, fix "
            f"it, and run large: report goal {plan.report_goal}, noise multiplier "
            f"{plan.guarantee.noise_multiplier:.6g}, {self._cost(plan)}.",
            f"Each of those runs costs up to {small * self.scenario.rounds:,} client visits at {small} reports a "
            "round. On clients' data they are releases too: account them, or tune on public data.",
        ]
        if notes is not None:
            recipe = notes.out / "production.toml" if notes.recipe is None else notes.recipe
            figures["command"] = (
                f"tacit tune {shlex.quote(str(recipe))} --report-goal {small} --large-report-goal "
                f"{plan.report_goal} --out {shlex.quote(str(notes.out / 'tuning'))}"
            )
            untuned = "the defaults." if notes.recipe is None else f"{notes.recipe}."
            said += [
                f"Not tuned: production.toml has the learning rates and the clip norm of {untuned}",
                f"Tune small, then run this again with --tuning: `{figures['command']}`",
            ]
        return said, figures

    def _secure(self) -> StepContent:
        plan, factor = self.plan, self.scenario.clip_inflation
        encoding = None if self.notes is None else self.notes.encoding
        figures: Record = {"clip_inflation": factor}
        if encoding is not None:
            figures |= {
                "dimension": encoding.dimension,
                "scale": encoding.scale,
                "bits_per_coordinate": encoding.bits,
                "clipping_probability": encoding.clipping_probability,
                "most_reports": encoding.most_reports,
            }
            said = [
                f"Encoding {encoding.dimension:,} coordinates with scale {encoding.scale:.6g} inflates the clip norm "
                f"by {encoding.inflation - 1:.3%}, and all figures here count it; the sums take {encoding.bits} bits a "
                "coordinate.",
                f"A coordinate is clipped at {encoding.largest:,}, {encoding.sigmas:g} standard deviations: in a given "
                f"update any is with probability below {encoding.clipping_probability:.1e}, which would cost accuracy "
                f"and no privacy. No sum of up to {encoding.most_reports:,} reports overflows.",
                "production.toml has it as [aggregation]: a simulated run encodes every update for real.",
            ]
            if (decryptors := self.scenario.noises) > 1:
                honest = self.scenario.honest
                each = "the noise" if honest == 1 else f"1/{honest} of the variance"
                said.append(
                    f"{decryptors} decryptors each add {each} that is accounted, so that no server does; the model "
                    f"gets {self.scenario.noisier:.3g} times its standard deviation, which all figures here count."
                )
        elif factor > 1:
            said = [f"The figures above count a clip norm inflated by {factor:.6g}, as encoding for secure sums does."]
        else:
            said = [
                "Encoding for secure sums inflates the clip norm: 1% costs 2.01% of zCDP, "
                f"{rounded_up(plan.zcdp * 1.01**2, 6)} instead of {rounded_up(plan.zcdp, 6)}."
            ]
        return [
            *said,
            "MinS and MaxP above are a plan. After the run `tacit account run RUN` computes both from what happened, "
            "or `tacit account log ROUNDS.csv --timer 48h` where only the times of the rounds are known; only that "
            "holds, and the run's statement says loudly where it is weaker than this plan.",
        ], figures


def _memory(plan: AccountedPlan) -> str:
    """What is kept from round to round, in arrays of the model's size."""
    return "1 array" if plan.memory == 1 else f"{plan.memory} arrays"
