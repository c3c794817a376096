"""The exceptions of tacit, all of them.

TacitError                      a sentence for people: the value, the rule, the way out; exit code 2
├── InputError                  a value somebody gave is wrong
│   ├── RecipeError             a recipe is unknown to us or contradicts itself
│   ├── SourceError             clients' text cannot be read as it was described
│   └── CacheError              a cache is half-written, foreign or damaged
├── AccountingError             no guarantee can be computed for what was asked
│   └── UnknownRelease          the ledger holds a release that the accountant does not understand
├── ParticipationError          the population cannot give the cohorts that were promised
├── TrainingError               training cannot go on (nobody's update was finite, say)
└── RunError                    a run folder is foreign, locked, full or damaged
"""


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


class ParticipationError(TacitError):
    """The population cannot give the cohorts that were promised."""


class TrainingError(TacitError):
    """Training cannot go on."""


class RunError(TacitError):
    """A run folder is foreign, locked, full or damaged."""


def of_type(name: str, value: object, *types: type) -> None:
    """Raises: InputError unless the argument called `name` is of one of the types."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join(each.__name__ for each in types)
        raise InputError(f"{name}={value!r} is of the type {type(value).__name__}; give {wanted}.")
