"""The exceptions of tacit, all of them.

TacitError                      a sentence for people: the value, the rule, the way out; exit code 2
├── InputError                  a value somebody gave is wrong
│   ├── RecipeError             a recipe is unknown to us or contradicts itself
│   ├── SourceError             clients' text cannot be read as it was described
│   └── CacheError              a cache is half-written, foreign or damaged
├── AccountingError             no guarantee can be computed for what was asked
│   └── UnknownRelease          the ledger holds a release that the accountant does not understand
├── BudgetError                 a population has been asked for all that it may be
├── DeviceError                 a device's own folder is locked, full, foreign or damaged
├── ParticipationError          the population cannot give the cohorts that were promised
├── ProtocolError               a message of secure aggregation breaks its protocol, and is refused
│   └── RoundAborted            a round of secure aggregation cannot give its sum, and gives nothing
├── RunError                    a run folder is foreign, locked, full or damaged
├── ServerError                 a server cannot be reached in time, or answers what its protocol does not allow
├── StoreError                  the database or the files of a server cannot be used, or are of another version
│   └── LeaseLost               another coordinator took over the run
├── TaskRefused                 a device will not do what it was asked: its policy or its record does not allow it
│   └── NotTheOperator          another signed it than the operator whose key the device has pinned
└── TrainingError               training cannot go on (nobody's update was finite, say)
"""

import math
import os
import re
import sys

MOST = 10**15  # of whole numbers; all of them are exact in real ones
_HALF = re.compile("[\ud800-\udfff]")  # of a character; so Python reads what is not UTF-8
HUGE, TINY = 1e50, 1e-30  # of real ones, by magnitude


class TacitError(Exception):
    """Whatever tacit refuses to do; its message is shown to the user as it stands, with exit code 2."""


class InputError(TacitError, ValueError):
    """A value that somebody gave breaks a rule."""


class RecipeError(InputError):
    """A recipe has an unknown key, a wrong value, or two values that contradict each other."""


class SourceError(InputError):
    """Clients' text cannot be read as it was described."""


class CacheError(InputError):
    """A cache is half-written, foreign or damaged."""


class AccountingError(TacitError, ValueError):
    """No guarantee can be computed for what was asked; a bound is never made up instead."""


class UnknownRelease(AccountingError):
    """The ledger holds a release that the accountant does not understand."""


class BudgetError(TacitError):
    """The budget of a population does not allow what was asked of its clients."""


class DeviceError(TacitError):
    """A device's own folder is locked, full, foreign or damaged; what it remembers is as it was."""


class ParticipationError(TacitError):
    """The population cannot give the cohorts that were promised."""


class ProtocolError(TacitError):
    """A message of secure aggregation breaks its protocol and is refused; the round may go on without it."""


class RoundAborted(ProtocolError):
    """A round of secure aggregation cannot give the exact sum of an agreed set, and so gives nothing."""


class RunError(TacitError):
    """A run folder is foreign, locked, full or damaged."""


class ServerError(TacitError):
    """A server cannot be reached in time, or answers what its protocol does not allow.

    final: asking the same again would be answered the same. kind: the type of the server's Problem, None without one.
    unsent: no byte of the request left, for there was no connection that could carry it.
    """

    def __init__(self, message: str, *, final: bool = False, kind: str | None = None, unsent: bool = False) -> None:
        super().__init__(message)
        self.final, self.kind, self.unsent = final, kind, unsent


class StoreError(TacitError):
    """The database or the files of a server cannot be read or written, or are of another version."""


class LeaseLost(StoreError):
    """Another coordinator took over the run; whoever gets this stops and writes nothing."""


class TaskRefused(TacitError):
    """A device will not do what it was asked: its owner's policy, or its own record, does not allow it."""


class NotTheOperator(TaskRefused):
    """What a device was asked is signed by another key than the one that it has pinned."""


class TrainingError(TacitError):
    """Training cannot go on."""


def conceivable(name: str, *values: object) -> None:
    """Raises: InputError where one of the values called `name` is a number that nobody can mean, or no text.

    What is not a number, infinities, whole numbers beyond MOST, and others so large or so small that their squares
    cannot be computed with; text that is not UTF-8, and paths to a place whose name is not, which no file of ours could
    say. What else a value may be, whoever takes it says.
    """
    for value in values:
        if isinstance(value, os.PathLike) and "\0" in str(value):
            raise InputError(f"{name} {value} has the character 0, which no path has.")
        named = [str(value)] if isinstance(value, str | os.PathLike) else []
        leads = [os.path.realpath(value)] if isinstance(value, os.PathLike) else []
        if (half := next((text for text in named + leads if _HALF.search(text)), None)) is not None:
            otherwise = "" if sys.getfilesystemencoding() == "utf-8" else ", or say PYTHONUTF8=1 where it is"
            raise InputError(f"{name} {half} is not UTF-8; write or rename it so{otherwise}.")
        if isinstance(value, int) and abs(value) > MOST:
            shown = value if abs(value) < 10**30 else f"of {math.log10(abs(value)):.0f} digits"
            raise InputError(f"{name} {shown} is beyond any number that is meant; give at most {MOST:,}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{name} {value} is no finite number; give one.")
        if isinstance(value, float) and (abs(value) > HUGE or 0 < abs(value) < TINY):
            raise InputError(f"{name} {value:g} is beyond any number that is meant; give one of {TINY:g} to {HUGE:g}.")


def of_type(name: str, value: object, *types: type) -> None:
    """Raises: InputError unless the argument called `name` is of one of the types."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join(each.__name__ for each in types)
        raise InputError(f"{name}={value!r} is of the type {type(value).__name__}; give {wanted}.")
