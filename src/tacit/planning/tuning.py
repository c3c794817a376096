"""Few small trials instead of many: which settings to try, which one to take, and what it means at scale.

arXiv:2305.18465, Section 2.5 (6): "a few small report goal experiments with Alg. 1 that tune quantile and server
learning rate, select the best learning rate, and fix the clip norm based on the estimation; and run DP-FTRL with large
report goals". Where that sentence leaves a choice open, the function here says which one was made.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np

from tacit.errors import InputError
from tacit.evaluation.comparison_models import ComparisonModels
from tacit.files import read_bounded
from tacit.parsing import parsed_json
from tacit.planning.adaptive_clipping import FIRST_RESTART, RESTART_EVERY
from tacit.planning.scenario import Record

SCHEMA, VERSION = "tacit.tuning", 1

Measured = Literal["accuracy", "cross-entropy"]
METRIC: dict[Measured, str] = {"accuracy": "top1_accuracy", "cross-entropy": "cross_entropy"}
DIVERGED = "diverged"  # the note of a run that could not be carried to its end, with what was said
NAME = re.compile(r"lr(?P<rate>.+)-q(?P<quantile>.+)-try(?P<number>[1-9][0-9]*)")
SHORT = 512  # rounds; in fewer, a first restart at 128 comes too late to say much of the clip norm that it brings
LAST_SHARE = 4  # a clip norm is read from the last quarter of the rounds
SETTLED = 1.5  # estimates that move by more than this factor within it are still on their way


@dataclass(frozen=True, kw_only=True, order=True)
class Setting:
    """What a trial tries."""

    server_learning_rate: float
    quantile: float  # the share of clients whose update shall not be clipped

    def __post_init__(self) -> None:
        if not 0 < self.server_learning_rate < math.inf:
            raise InputError(
                f"a server learning rate of {self.server_learning_rate:g} is no step; give numbers above 0."
            )
        if not 0 < self.quantile < 1:
            raise InputError(f"quantile {self.quantile:g} is no share of clients; give numbers between 0 and 1.")


@dataclass(frozen=True, kw_only=True, order=True)
class TrialName:
    """A trial by what it tries and its number among those that try the same; str() is the name of its folder."""

    setting: Setting
    number: int  # from 1

    def __str__(self) -> str:
        return f"lr{_short(self.setting.server_learning_rate)}-q{_short(self.setting.quantile)}-try{self.number}"

    @classmethod
    def from_folder(cls, folder: str) -> "TrialName | None":
        """The name of a trial's folder; None where it is no trial's."""
        found = NAME.fullmatch(folder)
        try:
            return found and cls(
                setting=Setting(server_learning_rate=float(found["rate"]), quantile=float(found["quantile"])),
                number=int(found["number"]),
            )
        except ValueError:
            return None


@dataclass(frozen=True, kw_only=True)
class TuningSettings:
    """What is tried and how small, how it is chosen, and for which report goal. None: as the recipe has it.

    Without `server_learning_rates`, half, once and twice the recipe's; without `quantiles`, the recipe's; each pair is
    tried `seeds` times. A trial has `report_goal` clients a round, `rounds` rounds and `min_separation`, begins its
    estimates at `initial_clip_norm`, and trains on the cache `data`. The production recipe has `large_report_goal`.
    `public`: why the trials cost the production clients nothing, in words; None: they are the same clients.
    InputError for values that mean nothing.
    """

    server_learning_rates: Annotated[
        tuple[float, ...] | None, "With commas; left out: half, once and twice the recipe's."
    ] = None
    quantiles: Annotated[
        tuple[float, ...] | None,
        "Shares of clients whose update is not clipped, with commas; left out: the recipe's.",
    ] = None
    seeds: Annotated[int, "Trials of each pair; their mean counts."] = 1
    report_goal: Annotated[
        int | None, "Clients of a trial's round; left out: the recipe's. The noise goes with it."
    ] = None
    rounds: Annotated[int | None, "Rounds of a trial; left out: the recipe's."] = None
    min_separation: Annotated[int | None, "Of a trial; left out: the recipe's."] = None
    initial_clip_norm: Annotated[
        float | None,
        "Where the estimates begin; left out: clipping.initial, or a tenth of privacy.clip_norm.",
    ] = None
    data: Annotated[Path | None, "A cache to tune on, in place of the recipe's."] = None
    choose_by: Annotated[Measured, "accuracy or cross-entropy, of validation clients, after the last round."] = (
        "accuracy"
    )
    large_report_goal: Annotated[int, "Clients of a round in production."] = (
        6500  # arXiv:2305.18465, its production runs
    )
    public: Annotated[
        str | None,
        "Why the trials cost the production clients nothing, in your words ('docstrings, public text', "
        "'another population: ...'); left out, they are taken to be the same clients.",
    ] = None

    def __post_init__(self) -> None:
        if self.choose_by not in METRIC:
            raise InputError(f"--choose-by {self.choose_by!r} is unknown; choose {' or '.join(get_args(Measured))}.")
        if self.seeds < 1:
            raise InputError(f"--seeds {self.seeds} leaves nothing to try; give at least 1.")
        if self.public is not None and not self.public.strip():
            raise InputError("--public is empty; say in words why the trials cost the production clients nothing.")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one trial. `failure` says why it may not be chosen; None: it worked."""

    setting: Setting
    score: float  # of held-out clients after the last round; not a number where there is none
    clip_estimates: tuple[float, ...] = ()  # (rounds,): the estimate of the quantile after each round
    failure: str | None = None
    validated: ComparisonModels | None = None  # the released model on validation clients, one by one

    @property
    def scored(self) -> bool:
        """Whether it may be chosen: it did not fail, and has a score."""
        return self.failure is None and math.isfinite(self.score)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The setting to take to production."""

    setting: Setting
    score: float  # the mean of its trials
    trials: int
    clip_norm: float  # to be fixed
    drift: float = 1.0  # by what factor the estimates behind it still moved; 1 where they stood still

    @property
    def settled(self) -> bool:
        """Whether the estimates had come to rest, as those of the paper had (Section 2.1)."""
        return self.drift <= SETTLED


@dataclass(frozen=True, kw_only=True)
class TrialOutcome:
    """What a trial's run folder says."""

    name: TrialName
    path: Path
    planned_rounds: int
    rounds: int  # released
    metrics: Mapping[str, float]  # of validation clients after the last round; empty before
    clip_norms: tuple[float, ...]  # (rounds,) in force
    clip_estimates: tuple[float, ...]  # (rounds,) after each
    zcdp: float  # realised; of everything that the run released
    epsilon: float
    delta: float
    fixed_seed: bool
    failure: str | None  # in a few words; None: it works so far
    reason: str | None  # the whole sentence
    validated: ComparisonModels | None = None  # the released model on validation clients, one by one

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to do."""
        return (self.rounds == self.planned_rounds and bool(self.metrics)) or self.failure == DIVERGED

    @property
    def status(self) -> str:
        """What became of it, in a few words."""
        if self.failure is not None:
            return f"FAILED: {self.failure}"
        return "finished" if self.metrics else "unfinished"

    def trial(self, by: Measured) -> Trial:
        """The trial as the choice sees it."""
        return Trial(
            setting=self.name.setting,
            score=self.metrics.get(METRIC[by], math.nan),
            clip_estimates=self.clip_estimates,
            failure=self.failure,
            validated=self.validated,
        )

    def to_record(self) -> Record:
        """A row of trials.csv."""
        return {
            "trial": str(self.name),
            "server_learning_rate": self.name.setting.server_learning_rate,
            "quantile": self.name.setting.quantile,
            "number": self.name.number,
            "rounds": self.rounds,
            "top1_accuracy": self.metrics.get("top1_accuracy"),
            "cross_entropy": self.metrics.get("cross_entropy"),
            "clip_norm": self.clip_norms[-1] if self.clip_norms else None,
            "clip_estimate": self.clip_estimates[-1] if self.clip_estimates else None,
            "zcdp": self.zcdp,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "status": self.status,
            "reason": self.reason,
        }


def grid(server_learning_rates: Sequence[float], quantiles: Sequence[float]) -> tuple[Setting, ...]:
    """All pairs, each once, in rising order. Raises: InputError for an empty list or a value out of range."""
    for name, values in (("server learning rates", server_learning_rates), ("quantiles", quantiles)):
        if not values:
            raise InputError(f"the list of {name} is empty, so there is nothing to try; give at least one.")
    pairs = itertools.product(sorted(set(server_learning_rates)), sorted(set(quantiles)))
    return tuple(Setting(server_learning_rate=rate, quantile=quantile) for rate, quantile in pairs)


def choose(trials: Sequence[Trial], by: Measured) -> Choice | None:
    """The setting with the best mean score over its trials; None where every setting failed.

    A setting is out as soon as one of its trials failed: it would be one seed away from failing in production. Of
    equal settings the smaller server learning rate is taken, then the smaller quantile, which clips more.
    """
    of: dict[Setting, list[Trial]] = {}
    for trial in trials:
        of.setdefault(trial.setting, []).append(trial)
    able = {
        setting: math.fsum(each.score for each in tries) / len(tries)
        for setting, tries in of.items()
        if all(each.scored for each in tries)
    }
    if not able:
        return None
    sign = -1 if by == "accuracy" else 1
    best = min(able, key=lambda setting: (sign * able[setting], setting))
    estimates = [each.clip_estimates for each in of[best]]
    return Choice(
        setting=best,
        score=able[best],
        trials=len(of[best]),
        clip_norm=fixed_clip_norm(estimates),
        drift=max(max(each) / min(each) for each in _last_quarters(estimates)),
    )


def fixed_clip_norm(estimates: Sequence[Sequence[float]]) -> float:
    """The clip norm to fix: the median of the estimates after the last quarter of each trial's rounds, to three digits.

    The estimate is a noised walk around the quantile; the median over many rounds of it is steadier than the last one,
    and the last quarter is of a model like the finished one. A setting is "relatively insensitive" to it (Section 2.1).
    Raises: InputError where no round was estimated.
    """
    last = _last_quarters(estimates)
    if not last:
        raise InputError("no round has estimated a clip norm, so none can be fixed; tune with at least one round.")
    return significant(float(np.median(np.concatenate(last))), 3)


def _last_quarters(estimates: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    return [each[-math.ceil(len(each) / LAST_SHARE) :] for each in estimates if len(each)]


def scaled_noise_multiplier(noise_multiplier: float, *, report_goal: int, to: int, error_ratio: float = 1.0) -> float:
    """The noise multiplier that leaves the noise on the mean as it is when the report goal becomes `to`.

    z' = z (to / report goal), the hypothesis of arXiv:2305.18465, Section 2.2 (500 with 0.54, 6,500 with 7); to nine
    digits. error_ratio: the error of the models under the old mechanism over that under the new one at equal seeds,
    where the mechanism changes too, so that it stays.
    """
    return significant(noise_multiplier * to / report_goal * error_ratio, 9)


def trial_restarts(rounds: int, given: Sequence[int] = ()) -> tuple[int, ...]:
    """Where the trees of a trial restart, so that the estimate comes into force: those `given` that are reached, else
    the paper's 128, 1152, ... (Algorithm 1), or a quarter and half of a run with fewer than 512 rounds.
    """
    reached = tuple(at for at in given if at < rounds)
    if reached:
        return reached
    if rounds < 2:
        raise InputError(f"a trial of {rounds} round has no restart to take an estimate over; give at least 2 rounds.")
    if rounds >= SHORT:
        return tuple(range(FIRST_RESTART, rounds, RESTART_EVERY))
    return tuple(sorted({max(rounds // 4, 1), max(rounds // 2, 1)}))


def at_the_edge(choice: Choice, trials: Sequence[Trial]) -> tuple[str, ...]:
    """Which of the chosen values is the smallest or the largest that was tried, of several; a better may lie beyond.

    Each as "the largest server learning rate".
    """
    found = []
    for name in ("server_learning_rate", "quantile"):
        tried = {getattr(trial.setting, name) for trial in trials}
        chosen, shown = getattr(choice.setting, name), name.replace("_", " ")
        for end, word in ((min(tried), "smallest"), (max(tried), "largest")):
            if len(tried) > 1 and chosen == end:
                found.append(f"the {word} {shown}")
    return tuple(found)


def significant(value: float, digits: int) -> float:
    """The value to so many significant digits: what stands in a recipe can be read, and is the same everywhere."""
    return float(f"{value:.{digits}g}")


def _short(value: float) -> str:
    """As Python writes it, so that equal names are equal values; 1 for 1.0."""
    return repr(float(value)).removesuffix(".0")


# -- what a tuning hands over to a plan --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The setting that a tuning chose. `price` is what the trials cost in privacy, in the words of the tuning."""

    folder: Path
    server_learning_rate: float
    clip_norm: float
    report_goal: int
    noise_multiplier: float
    cost: str

    @classmethod
    def read(cls, folder: Path) -> "Tuned":
        """From the folder's tuning.json; InputError where there is none, or where nothing was chosen."""
        path = folder / "tuning.json"
        try:
            record: Any = parsed_json(read_bounded(path))
        except FileNotFoundError:
            raise InputError(f"there is no '{path}'; `tacit tune RECIPE --out {folder}` writes it.") from None
        except ValueError as error:
            raise InputError(f"'{path}' is not JSON ({error}); tune again.") from error
        if not isinstance(record, dict) or (record.get("schema"), record.get("version")) != (SCHEMA, VERSION):
            raise InputError(f"'{path}' is not of the format '{SCHEMA} {VERSION}'; use the version that wrote it.")
        if record.get("chosen") is None:
            raise InputError(f"'{path}' chose nothing, because every trial failed; tune again with other settings.")
        try:
            return cls(
                folder=folder,
                server_learning_rate=_above_zero(record["chosen"]["server_learning_rate"]),
                clip_norm=_above_zero(record["chosen"]["clip_norm"]),
                report_goal=int(_above_zero(record["trial_report_goal"])),
                noise_multiplier=float(record["trial_noise_multiplier"]),
                cost=str(record["privacy_of_tuning"]["words"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"'{path}' lacks or misnames a value ({error}); use the version that wrote it.") from error

    def to_record(self) -> Record:
        """What the plan says of it, as plain values for JSON."""
        return {
            "tuning": str(self.folder),
            "server_learning_rate": self.server_learning_rate,
            "clip_norm": self.clip_norm,
            "privacy_of_tuning": self.cost,
        }


def _above_zero(value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{value!r} is not above 0")
    return number
