"""The seven steps of `tacit strategy`: what was decided, why, and the number, a few lines each."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.planning.production import Production
from tacit.planning.production_tuning import Tuned
from tacit.planning.scenario import Plan, Record
from tacit.planning.steps import SAVED_BY_PRETRAINING, AdaptivePrice, Goal, Story, Told
from tacit.privacy.encoding import Encoding
from tacit.privacy.gaussian import epsilon
from tacit.privacy.rounding import rounded_up

MUCH_NOISE = 2.0  # times what the model bears, from which on a usable model is not to be expected
SMALL_PUBLIC = "caches/public-text"  # of the command that is shown where no model is given


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the steps are told besides the plan: where values came from, and what is to be named in commands."""

    model: Path | None
    recipe: Path | None  # what the production recipe builds on
    out: Path
    pair_from: str  # the simulation that showed the noise the model bears
    tuned: Tuned | None
    encoding: Encoding | None  # of secure aggregation, where it was asked for
    acceptable_days: float
    others: tuple[Plan, ...]  # further mechanisms at the same utility and participation


class ProductionStory(Story):
    """The steps of a plan that counts on a simulation."""

    def __init__(self, production: Production, goal: Goal, given: Given) -> None:
        super().__init__(production.scenario, production.reached, goal)
        self.production, self.given = production, given

    def pretraining(self) -> Told:
        """Step 1."""
        model, rounds = self.given.model, self.scenario.rounds
        anybody = replace(self.scenario.clients, max_participations=None)  # a longer run lets everybody come more often
        longer = replace(self.scenario, rounds=rounds + SAVED_BY_PRETRAINING, clients=anybody)
        without = longer.plan(
            self.plan.mechanism, self.plan.report_goal, noise_multiplier=self.plan.guarantee.noise_multiplier
        )
        if model is not None:
            said = f"Begin from {model}, which production.toml names as model.init."
        else:
            said = (
                f"No model given: make one with `tacit pretrain {SMALL_PUBLIC} --out models/public` and run this again "
                "with --model models/public/model, or production.toml begins at random."
            )
        return [
            said,
            f"The paper saved about {SAVED_BY_PRETRAINING} rounds so. With {rounds + SAVED_BY_PRETRAINING} rounds in "
            f"place of {rounds} this plan would be {self.price(without)}.",
        ], {
            "model": None if model is None else str(model),
            "rounds": rounds,
            "zcdp_with_more_rounds": without.zcdp,
            "epsilon_with_more_rounds": without.guarantee.epsilon(self.goal.delta),
        }

    def noise(self) -> Told:
        """Step 2."""
        utility = self.scenario.utility
        _, figures = super().noise()
        return [
            f"Noise multiplier {utility.noise_multiplier:g} at {utility.report_goal} reports with "
            f"{utility.mechanism.name}: {self.given.pair_from}.",
            f"That is a noise of {figures['noise_of_mean']:.4g} clip norms on the mean, and with "
            f"{self.plan.mechanism.name} noise multiplier {figures['noise_multiplier']:.4g} at {utility.report_goal}.",
        ], figures

    def scale(self) -> Told:
        """Step 3."""
        plan, reached, made = self.plan, self.reached, self.production
        _, figures = super().scale()
        target = f"epsilon {self.epsilon_of_goal():.6g} at delta {self.goal.delta:g} (zCDP {self.goal.zcdp:.6g})"
        noise = f"report goal {plan.report_goal:,}, noise multiplier {plan.guarantee.noise_multiplier:.6g}"
        if reached.at_utility:
            said = [f"{noise.capitalize()}: the least report goal that reaches {target} at this utility."]
        else:
            if made.fed is not None:
                days = self.given.acceptable_days
                reason = f"rounds of more than {made.fed:,} reports do not end within {days:g} days"
            elif made.exhausted:
                reason = f"{self.goal.most:,} reports a round are the most the system takes"
            else:
                reason = "simulations of all devices gave less than small ones, and more reports were not tried"
            share = 1 / reached.noisier
            said = [
                f"The target, {target}, is OUT OF REACH at this utility: {reason}. So {noise}: the noise on the mean "
                f"is {reached.noisier:.3g} times what the model bears, the signal-to-noise {share:.1%} of what the "
                "utility target takes. Expect a worse model."
            ]
            if reached.noisier > MUCH_NOISE:
                said.append("WARNING: do not expect a usable model; ask for less, or reach more devices.")
        said.append(
            f"It promises {self.price(plan)}, with {plan.mechanism.name}; {plan.participations:,} client visits."
        )
        if self.given.others:
            listed = ", ".join(
                f"{each.mechanism.name} {rounded_up(each.zcdp)} ({self.memory(each)})" for each in self.given.others
            )
            said.append(
                f"In memory it takes {self.memory(plan)} of the model's size. Others at the same noise on the mean, "
                f"zCDP: {listed}."
            )
        return said, {
            **figures,
            "at_utility": reached.at_utility,
            "signal_to_noise": 1 / reached.noisier,
            "largest_report_goal_that_ends_in_time": made.fed,
            "other_mechanisms": [each.to_record(self.goal.delta) for each in self.given.others],
        }

    def memory(self, plan: Plan) -> str:
        """What is kept from round to round."""
        arrays = plan.strategy.memory(plan.rounds)
        return "1 array" if arrays == 1 else f"{arrays} arrays"

    def epsilon_of_goal(self) -> float:
        """At the goal's delta."""
        return epsilon(self.goal.zcdp, self.goal.delta)

    def separation(self) -> Told:
        """Step 4."""
        seen, clients = self.production.simulated, self.scenario.clients
        promised, realised = seen.promised, seen.realised
        longest = clients.longest_separation(self.plan.report_goal)
        said = [
            f"Timer {seen.timer_hours:g} hours: in a simulation of all {clients.devices:,} devices it promises MinS "
            f"{promised.rounds_between}, MaxP {promised.max_participations}, which the plan counts on; realised there: "
            f"MinS {realised.rounds_between}, MaxP {realised.max_participations}. Devices / report goal is "
            f"{longest:,}.",
            f"The run takes {seen.days:.3g} of {self.given.acceptable_days:g} acceptable days, at "
            f"{seen.rounds_per_day:.4g} rounds a day; {seen.starved:,} rounds starve.",
        ]
        others = {each.timer_hours: each for each in self.production.other_timers}
        if others:
            listed = "; ".join(
                f"{hours:g} hours MinS {each.promised.rounds_between} in {each.days:.3g} days"
                for hours, each in sorted(others.items())
            )
            said.append(f"Other timers, simulated small: {listed}.")
        return said, {**seen.to_record(), "longest_separation": longest}

    def adaptive(self) -> Told:
        """Step 5."""
        price = AdaptivePrice.of(self.scenario, self.plan.report_goal, self.goal.zcdp)
        updates = price.update_noise_multiplier
        listed = ", ".join(map(str, price.restarts))
        restarts = f"restarts at {listed}" if listed else "no restart within these rounds"
        figures: Record = {
            "restarts": list(price.restarts),
            "bit_stddev": price.bit_stddev,
            "noise_multiplier": price.noise_multiplier,
            "update_noise_multiplier": updates,
            "times_the_noise": price.noisier,
        }
        said = [
            f"Where learning rates are known: tree-variance-reduced with {restarts} (the clip norm changes only at "
            f"those) takes noise multiplier {price.noise_multiplier:.6g} for the target."
        ]
        if updates is None or price.noisier is None:
            said.append(f"A count with noise {price.bit_stddev:g} (report goal / 20) costs all of it: not affordable.")
            return said, figures
        said.append(
            f"The count of short updates, with noise {price.bit_stddev:g}, inflates that to {updates:.6g} "
            f"({updates / price.noise_multiplier - 1:+.2%}, Theorem 1): {price.noisier:.3g} times the noise that the "
            f"model bears, against {self.reached.noisier:.3g} with a fixed clip norm."
        )
        return said, figures

    def fixed(self) -> Told:
        """Step 6."""
        given, tuned = self.given, self.given.tuned
        if tuned is not None:
            return [
                f"Tuned in {tuned.folder}: server learning rate {tuned.server_learning_rate:g}, clip norm "
                f"{tuned.clip_norm:.4g}; production.toml has both, and the clip norm is fixed.",
                tuned.price,
            ], tuned.to_record()
        small = min(self.scenario.utility.report_goal, -(-self.plan.report_goal // 2))
        recipe = given.out / "production.toml" if given.recipe is None else given.recipe
        command = (
            f"tacit tune {shlex.quote(str(recipe))} --report-goal {small} --large-report-goal "
            f"{self.plan.report_goal} --out {shlex.quote(str(given.out / 'tuning'))}"
        )
        return [
            "Not tuned: production.toml has the learning rates and the clip norm of "
            + ("the defaults." if given.recipe is None else f"{given.recipe}."),
            f"Tune small, then run this again with --tuning: `{command}`",
        ], {"command": command, "report_goal": small, "client_visits": small * self.scenario.rounds}

    def secure(self) -> Told:
        """Step 7."""
        after = (
            "MinS and MaxP above are a plan. After the run `tacit account run RUN` computes both from what happened; "
            "only that holds, and the run's statement says loudly where it is weaker than this plan."
        )
        coded = self.given.encoding
        if coded is None:
            inflated = rounded_up(self.plan.zcdp * 1.01**2, 6)
            return [
                "Secure aggregation was not asked for (--secagg): a clip norm inflated by 1% would make zCDP "
                f"{inflated} of {rounded_up(self.plan.zcdp, 6)}.",
                after,
            ], {"clip_inflation": 1.0}
        bits = coded.bits(self.plan.report_goal)
        return [
            f"Encoding {coded.dimension:,} coordinates with scale {coded.scale:.6g} inflates the clip norm by "
            f"{coded.inflation - 1:.3%}, and all figures here count it; the sums take {bits} bits a coordinate.",
            "Recipes know no secure sums yet: a simulated run of production.toml adds the same noise and claims less.",
            after,
        ], {
            "clip_inflation": coded.inflation,
            "dimension": coded.dimension,
            "scale": coded.scale,
            "bits_per_coordinate": bits,
        }
