"""What the owner of a device accepts: the file `policy.toml`, whose keys all have defaults, and what it refuses.

A refusal is a sentence with the value, the rule and the way out. docs/device.md lists the keys.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from tacit.data.splits import TemporalSplit
from tacit.device.eligibility import Eligibility
from tacit.device.task_handler import OPERATOR, Refuse
from tacit.errors import InputError, TaskRefused, of_type
from tacit.federation.cost import Cost
from tacit.federation.kinds import FEDERATED
from tacit.files import read_bounded
from tacit.networks.training_cost import GIGABYTE, TrainingCost
from tacit.parsing import parsed_toml
from tacit.protocol.messages import MatrixFile, Plan, RoundTask
from tacit.protocol.train import TrainDocument
from tacit.records import from_plain
from tacit.secure_aggregation.small_order import anybody_signs

FILE = "policy.toml"
SUMS = ("plain", "encoded", "sealed")  # how reports are summed
NOUGHT = ("hours_apart", "clock_minutes", "smallest_noise_multiplier", "send_after_s", "show_after_s")  # may be 0
MEGABYTE = 10**6
HELD_BACK = 4  # a report is held back for no more than this part of what is left of its round
READING = 0.8  # of the time until a report leaves: text is read in it


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules of a device's owner.

    The keys of `policy.toml`, which docs/device.md explains. Raises: InputError for a value that is none.
    """

    kinds: tuple[str, ...] = tuple(FEDERATED)  # of tasks
    aggregation: tuple[str, ...] = SUMS  # plain: the operator sees each report, inside TLS
    decryptors: tuple[str, ...] = ()  # of sealed sums, Ed25519 keys in hexadecimal digits; empty: any that a plan names
    corrupt_decryptors: int = 1  # of a sealed sum: so many that work with the operator must learn nothing
    noise_by_decryptors: bool = False  # no sum whose noise the operator adds, who then knows it without
    honest_decryptors: int = 1  # that may have to be honest, where decryptors add the noise: more make it weaker
    largest_zcdp: float = 2.0  # of a plan, computed from its numbers
    largest_epsilon: float = 10.0  # the same, at the plan's delta
    largest_delta: float = 1e-5  # at which a plan may give its epsilon
    largest_local_epsilon: float = 2.0  # of everything sent in a run whose reports this device randomises itself
    budget_zcdp: float = 4.0  # of everything that this device ever takes part in
    budget_zcdp_week: float = math.inf  # of the runs in which it took part in any seven days, each counted whole
    smallest_noise_multiplier: float = 0.1  # of a plan
    largest_clip_norm: float = 100.0  # of a plan
    smallest_cohort: int = 2  # the report goal, and the fewest reports that a sum is opened for
    rounds_apart: int = 1  # of two participations in a run: at least what the plan asks of every device
    hours_apart: float = 0.0  # of two participations in anything
    most_attempts: int = 5  # at one round of sealed sums, of which at most one is opened: they cost what one costs
    longest_round_hours: float = 24.0  # from a task's opening to its deadline
    clock_minutes: float = 10.0  # by which the operator's clock may be ahead of the device's
    largest_model_mb: float = 100.0  # that it downloads
    largest_report_mb: float = 100.0  # that it uploads
    send_after_s: float = 10.0  # from the record of a participation to its report; 0: as soon as it is made
    show_after_s: float = 600.0  # between asking for tokens and showing the first is a time drawn up to that
    largest_memory_mb: float = 1000.0  # of one step of training, by its sizes
    largest_operations: float = 2e14  # of a round's training, by its sizes: a core does 1e11 in a second
    split: str = ""  # time:0.8, say: text from there on is never trained on, but kept to judge models; empty: all is
    eligibility: Eligibility = field(default_factory=Eligibility)  # what its machine must be like: idle, on power

    def __post_init__(self) -> None:
        _check_names("kinds", self.kinds, tuple(FEDERATED))
        _check_names("aggregation", self.aggregation, SUMS)
        if strange := next(
            (key for key in self.decryptors if len(key) != 64 or set(key) - set("0123456789abcdef")), None
        ):
            raise InputError(
                f"decryptors has {strange!r}, which is no key; give 64 hexadecimal digits, as a decryptor shows."
            )
        if nobodys := next((key for key in self.decryptors if anybody_signs(bytes.fromhex(key))), None):
            raise InputError(
                f"decryptors has {nobodys!r}, a point of small order, for which anybody signs; give the key that a "
                "decryptor shows."
            )
        for each in dataclasses.fields(self):
            if isinstance(each.default, int | float):
                of_type(each.name, getattr(self, each.name), *{int, type(each.default)})
        for name in ("smallest_cohort", "rounds_apart", "corrupt_decryptors", "honest_decryptors", "most_attempts"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} is below 1; give at least 1.")
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            least = 0.0 if each.name in NOUGHT else None
            if isinstance(value, float) and not (value >= 0 if least is not None else value > 0):
                raise InputError(f"{each.name}={value:g} must be {'0 or more' if least is not None else 'above 0'}.")
        if self.split:
            TemporalSplit.parse(self.split)

    @classmethod
    def load(cls, path: Path) -> "Policy":
        """That of a file; the defaults where there is none. Raises: InputError naming the key."""
        try:
            text = read_bounded(path).decode("utf-8")
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the policy '{path}' cannot be read ({error}); save it as UTF-8.") from None
        try:
            table = parsed_toml(text)
        except ValueError as error:
            raise InputError(f"the policy '{path}' is not TOML: {error}; mend that line.") from None
        return from_plain(cls, table, where=f"the policy '{path}'")

    @property
    def temporal_split(self) -> TemporalSplit | None:
        """Where text begins that is not trained on; None where all of it may be."""
        return TemporalSplit.parse(self.split) if self.split else None

    def check_plan(self, plan: Plan, cost: Cost) -> None:
        """Raises: TaskRefused where the owner does not accept the plan, whatever its tasks are.

        cost: of the plan; what its kind does not have is None, and is not asked about.
        """
        refuse = _refusal(f"the plan of run {plan.run!r}")
        if plan.kind not in self.kinds:
            refuse(f"is to {plan.kind}, and the policy allows to {', '.join(self.kinds)} (kinds)")
        if plan.aggregation.kind not in self.aggregation:
            refuse(f"sums reports {plan.aggregation.kind}, and the policy allows {', '.join(self.aggregation)}")
        self._check_cost(cost, refuse)
        if plan.privacy.report_goal < self.smallest_cohort:
            refuse(f"has cohorts of {plan.privacy.report_goal}, below smallest_cohort={self.smallest_cohort}")
        if plan.aggregation.threshold < self.smallest_cohort:
            refuse(f"opens sums of {plan.aggregation.threshold} reports, below smallest_cohort={self.smallest_cohort}")
        if plan.separation.rounds is None and not plan.separation.timer_seconds:
            refuse("lets a device come in every round (it has no separation), for which nothing is promised")
        self._check_decryptors(plan, refuse)
        self._check_noise(plan, cost, refuse)

    def _check_cost(self, cost: Cost, refuse: Refuse) -> None:
        if cost.zcdp > self.largest_zcdp:
            refuse(f"costs zCDP {cost.zcdp:.4g}, above largest_zcdp={self.largest_zcdp:g}")
        if cost.delta is not None and cost.delta > self.largest_delta:
            refuse(f"gives epsilon at delta {cost.delta:g}, above largest_delta={self.largest_delta:g}")
        if cost.epsilon is not None and cost.epsilon > self.largest_epsilon:
            refuse(f"has epsilon {cost.epsilon:.4g}, above largest_epsilon={self.largest_epsilon:g}")
        if cost.noise_multiplier is not None and cost.noise_multiplier < self.smallest_noise_multiplier:
            refuse(
                f"has the noise multiplier {cost.noise_multiplier:g}, below "
                f"smallest_noise_multiplier={self.smallest_noise_multiplier:g}"
            )
        if cost.clip_norm is not None and cost.clip_norm > self.largest_clip_norm:
            refuse(f"has the clip norm {cost.clip_norm:g}, above largest_clip_norm={self.largest_clip_norm:g}")
        if cost.local_epsilon is not None and cost.local_epsilon > self.largest_local_epsilon:
            refuse(
                f"has local epsilon {cost.local_epsilon:.4g}, above "
                f"largest_local_epsilon={self.largest_local_epsilon:g}"
            )

    def check_matrix(self, said: MatrixFile) -> None:
        """Raises: TaskRefused where the file of a plan's matrix is larger than the device may fetch."""
        if said.bytes > self.largest_model_mb * MEGABYTE:
            size = f"{said.bytes / MEGABYTE:.3g} MB"
            _refusal("the plan")(f"has a matrix of {size}, above largest_model_mb={self.largest_model_mb:g}")

    def check_task(
        self, plan: Plan, task: RoundTask, now: float, as_planned: Callable[[Refuse], TrainingCost | None]
    ) -> None:
        """Raises: TaskRefused where the task is none of its plan's, or the owner does not accept it.

        now: of the device's clock, Unix seconds. as_planned: refuses what the plan's kind does not reckon with, and
        says what the task takes of the machine. Who signed the task, whoever calls has checked.
        """
        refuse = _refusal(f"round {task.round} of run {task.run!r}")
        if (task.run, task.kind) != (plan.run, plan.kind):
            refuse(f"is for another run ({plan.run!r}) or kind ({plan.kind}) than its plan", way_out=OPERATOR)
        if task.round >= plan.privacy.rounds:
            refuse(f"is beyond the {plan.privacy.rounds} rounds that its plan promises for", way_out=OPERATOR)
        question = task.asks if isinstance(task.asks, TrainDocument) else None
        encoded = None if question is None else question.encoded
        kind = "sealed" if task.sealed is not None else "plain" if encoded is None else "encoded"
        if kind != plan.aggregation.kind:
            refuse(f"wants a {kind} report, and its plan {plan.aggregation.kind} ones", way_out=OPERATOR)
        self._check_work(as_planned(refuse), refuse)
        if question is not None and question.clip_norm > self.largest_clip_norm:
            refuse(f"clips at {question.clip_norm:g}, above largest_clip_norm={self.largest_clip_norm:g}")
        if task.content.bytes > self.largest_model_mb * MEGABYTE:
            megabytes = task.content.bytes / MEGABYTE
            refuse(f"has a model of {megabytes:.1f} MB, above largest_model_mb={self.largest_model_mb:g}")
        try:
            report = task.asks.shape().bytes
        except InputError as error:
            refuse(f"asks nothing that can be answered: {error}", way_out=OPERATOR)
        if report > self.largest_report_mb * MEGABYTE:
            refuse(f"wants {report / MEGABYTE:.1f} MB, above largest_report_mb={self.largest_report_mb:g}")
        self._check_times(task, now, refuse)

    def report_after_s(self, task: RoundTask, now: float, reading_s: float) -> float:
        """Seconds from the record of a participation to its report, whatever was typed; 0 where the owner has it sent
        at once. reading_s: in which a slow device has computed it. Of a short round it is a quarter of the rest.
        """
        if not self.send_after_s:
            return 0.0
        return min(max(self.send_after_s, reading_s / READING), (task.deadline - now) / HELD_BACK)

    def reads_within_s(self, task: RoundTask, now: float, reading_s: float) -> float:
        """Seconds after which whoever reads the text for a report is ended, and the report says nothing.

        The rest of `report_after_s` is for encoding, sealing and slow disks, so that no report is late.
        """
        return (self.report_after_s(task, now, reading_s) or (task.deadline - now) / HELD_BACK) * READING

    def _check_work(self, work: TrainingCost | None, refuse: Refuse) -> None:
        if work is None:
            return
        if work.bytes > self.largest_memory_mb * MEGABYTE:
            needed = f"takes {work.bytes / GIGABYTE:.3g} GB of memory in a step"
            refuse(f"{needed}, above largest_memory_mb={self.largest_memory_mb:g}")
        if work.operations > self.largest_operations:
            refuse(f"takes {work.operations:.3g} operations, above largest_operations={self.largest_operations:g}")

    def _check_times(self, task: RoundTask, now: float, refuse: Refuse) -> None:
        if task.deadline - task.opens > self.longest_round_hours * 3600:
            hours = (task.deadline - task.opens) / 3600
            refuse(f"lasts {hours:.3g} hours, above longest_round_hours={self.longest_round_hours:g}")
        if now >= task.deadline:
            refuse(f"ended {now - task.deadline:.0f} s ago by this device's clock", way_out=CLOCK)
        if task.opens > now + self.clock_minutes * 60:
            refuse(
                f"opens in {task.opens - now:.0f} s by this device's clock, above clock_minutes={self.clock_minutes:g}",
                way_out=CLOCK,
            )

    def _check_decryptors(self, plan: Plan, refuse: Refuse) -> None:
        said = plan.aggregation
        if said.kind != "sealed":
            return
        if len(said.boxes) != len(said.keepers) or len(set(said.keepers)) < len(said.keepers):
            refuse("does not have one identity and one box for each of its decryptors", way_out=OPERATOR)
        if said.corrupt < self.corrupt_decryptors:
            refuse(
                f"is safe from {said.corrupt} corrupt decryptors, below corrupt_decryptors={self.corrupt_decryptors}"
            )
        strange = next((key for key in said.keepers if self.decryptors and key not in self.decryptors), None)
        if strange is not None:
            refuse(f"names the decryptor {strange[:16]}, which is none of the policy's decryptors")

    def _check_noise(self, plan: Plan, cost: Cost, refuse: Refuse) -> None:
        said = plan.aggregation
        if (strange := next((key for key in said.contributors if key not in said.keepers), None)) is not None:
            refuse(f"has noise of {strange[:16]}, which is none of its decryptors", way_out=OPERATOR)
        many = len(said.contributors)
        if len(set(said.contributors)) < many:
            refuse("has noise of a decryptor twice", way_out=OPERATOR)
        if said.honest > (many - said.corrupt if many else 1):
            refuse(
                f"relies on {said.honest} honest ones of {many} contributors, of whom {said.corrupt} may be corrupt",
                way_out=OPERATOR,
            )
        if not self.noise_by_decryptors or cost.local_epsilon is not None:  # that needs no noise on a sum
            return
        if not said.contributors:
            refuse("has the operator add the noise, and the policy wants that of decryptors (noise_by_decryptors)")
        if said.honest > self.honest_decryptors:
            refuse(f"relies on {said.honest} honest decryptors, above honest_decryptors={self.honest_decryptors}")


POLICY = f"change {FILE} if that is to be, or leave it"
CLOCK = "set the device's clock right, or wait for the next round"


def _refusal(what: str) -> Refuse:
    def refuse(why: str, way_out: str = POLICY) -> NoReturn:
        raise TaskRefused(f"{what} {why}; {way_out}.")

    return refuse


def _check_names(name: str, given: tuple[str, ...], known: tuple[str, ...]) -> None:
    if not given or set(given) - set(known):
        raise InputError(f"{name}={list(given)} must name some of {', '.join(known)}.")
