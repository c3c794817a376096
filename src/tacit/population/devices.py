"""A population of simulated devices, and the rules by which a server asks them round after round.

What is simulated: who is charging, left alone and on an unmetered network at which hour (`availability`), how long an
attempt to train takes and how often it fails (`work_model`), when a device asks for work (`check_ins`), the timer that
keeps it away after it took part, the server that selects more devices than it needs and finishes with the first
reports, and the wall clock. Nothing is learnt here: `simulation` runs many rounds, `simulated_cohorts` gives them to
training.
"""

import math
import operator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError, ParticipationError
from tacit.population.availability import HOUR, Availability, sessions_of
from tacit.population.check_ins import LoopSettings, run_length
from tacit.population.hashed_randomness import key_for
from tacit.population.work_model import SECOND, WorkModel, attempts_of
from tacit.privacy.measured_participation import Clock

MOST_DEVICES = 100_000_000
MOST_DAYS = 3650
MINUTE = 60 * SECOND


@dataclass(frozen=True, kw_only=True)
class Population:
    """So many devices, when they may be asked, and what an attempt to train takes them."""

    devices: int
    availability: Availability = field(default_factory=Availability)
    work: WorkModel = field(default_factory=WorkModel)

    def __post_init__(self) -> None:
        _check_whole("devices", self.devices)
        if self.devices > MOST_DEVICES:
            raise InputError(
                f"devices={self.devices} is above {MOST_DEVICES}; give at most that, and scale the report goal with "
                "them."
            )


@dataclass(frozen=True, kw_only=True)
class RoundRules:
    """How the server runs a round, and when a device may come again.

    While fewer than ceil(`over_selection` * `report_goal`) devices are at work or have reported, every eligible device
    that asks is selected (arXiv:1902.01046, Section 9: 130%); a device that drops out makes place for another. The
    round finishes with the `report_goal`-th upload; what comes later is not used. An attempt is given up after
    `deadline_minutes`. The next round opens `pause_minutes` after the finish. A device asks once in every
    `check_in_minutes`.

    After an upload, used or not, a device stays away for `timer_hours`. Its timer starts when its round finishes
    (`clock="finish"`, as the papers count; at its own upload if that comes later), or already at its upload
    (`clock="upload"`), but it never comes twice in one round. A device that drops out has sent nothing and may come
    back at its next check-in.

    `most_days` is how long a run may take. InputError for values that mean nothing.
    """

    report_goal: int
    timer_hours: float
    clock: Clock = "finish"
    over_selection: float = 1.3
    check_in_minutes: float = 30.0
    deadline_minutes: float = 15.0
    pause_minutes: float = 2.0
    most_days: float = 365.0

    def __post_init__(self) -> None:
        _check_whole("report_goal", self.report_goal)
        for name, unit in (
            ("timer_hours", 24),
            ("check_in_minutes", 1440),
            ("deadline_minutes", 1440),
            ("most_days", 1),
        ):
            if not 0 < getattr(self, name) <= MOST_DAYS * unit:
                raise InputError(
                    f"{name}={getattr(self, name)} is no time above 0; give one, of at most ten years "
                    f"({MOST_DAYS * unit})."
                )
        if not 0 <= self.pause_minutes <= MOST_DAYS * 1440:
            raise InputError(f"pause_minutes={self.pause_minutes} is no time of 0 or more below ten years; give one.")
        if not 1 <= self.over_selection <= 100:
            raise InputError(
                f"over_selection={self.over_selection} is not between 1 and 100; give how many devices are selected "
                "for each report, 1.3 say."
            )
        if self.clock not in ("finish", "upload"):
            raise InputError(f"clock={self.clock!r} is neither 'finish' nor 'upload'; say when the timer starts.")

    @property
    def timer(self) -> int:
        """In milliseconds."""
        return max(1, round(self.timer_hours * HOUR))

    @property
    def pause(self) -> int:
        """In milliseconds."""
        return round(self.pause_minutes * MINUTE)

    @property
    def until(self) -> int:
        """The end of the longest run, in milliseconds."""
        return round(self.most_days * 24 * HOUR)

    @property
    def places(self) -> int:
        """ceil(over_selection * report_goal), not fooled by the last bit of the product."""
        return max(self.report_goal, math.ceil(self.over_selection * self.report_goal - 1e-9))


def loop_settings(
    population: Population, rules: RoundRules, seed: int, *, examples: ArrayLike | None = None
) -> LoopSettings:
    """Everything that the compiled loops need, as numbers; the same seed gives the same devices.

    `examples` (devices,) are the devices' examples where they are known, instead of the drawn ones: InputError where
    they are not that. ParticipationError where the report goal exceeds the devices.
    """
    devices = population.devices
    if rules.report_goal > devices:
        raise ParticipationError(
            f"report_goal={rules.report_goal} exceeds the {devices} devices, and a device reports once in a round; "
            f"give at most {devices}."
        )
    known = np.empty(0, np.float32) if examples is None else _known(examples, devices)
    traits = key_for(seed, "traits")
    run = run_length(devices)
    return LoopSettings(
        sessions=sessions_of(
            population.availability,
            traits,
            (key_for(seed, "presence"), key_for(seed, "begin"), key_for(seed, "length")),
        ),
        attempts=attempts_of(
            population.work,
            deadline=max(1, round(rules.deadline_minutes * MINUTE)),
            traits=traits,
            keys=(key_for(seed, "transfer"), key_for(seed, "failure"), key_for(seed, "moment of failure")),
            known=known,
        ),
        order=key_for(seed, "order"),
        devices=devices,
        run=run,
        runs=-(-devices // run),
        period=max(1, round(rules.check_in_minutes * MINUTE)),
        goal=rules.report_goal,
        places=rules.places,
    )


def _known(examples: ArrayLike, devices: int) -> NDArray[np.float32]:
    known = np.asarray(examples, np.float32)
    if known.shape != (devices,) or not np.isfinite(known).all() or (known < 0).any():
        raise InputError(
            f"examples has shape {known.shape} for {devices} devices; give one finite count of 0 or more for each."
        )
    return known


def _check_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 1:
        raise InputError(f"{name}={value!r} is not a whole number of at least 1; give one.")
