"""The parts of training that a program may replace, and the names by which a run records them.

A run that began with a hook is resumed with the same one: the folder keeps its name (and, of a dataclass, its values),
and another is refused. That a function of the same name still computes the same is the program's to see to.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Self

from tacit.errors import InputError, RunError
from tacit.federation.collector import Collector
from tacit.training.client import ClientAlgorithm
from tacit.training.rounds import OwnOptimizer
from tacit.training.sampling import CohortSampler


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Own parts of a training; None: the one that the recipe says."""

    collector: Collector | None = None  # who asks the devices; it brings its own clients
    sampler: CohortSampler | None = None  # who takes part in a simulated round
    algorithm: ClientAlgorithm | None = None  # what a device computes
    optimizer: OwnOptimizer | None = None  # what the server does with a noised mean

    def __post_init__(self) -> None:
        if self.collector is not None and (self.sampler or self.algorithm):
            raise InputError(
                "a collector asks its devices by itself, so sampler= and algorithm= would change nothing; drop them, "
                "or give them to the collector."
            )

    @property
    def names(self) -> dict[str, str]:
        """Of those given: argument -> qualified name. Raises: InputError for what has none."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: qualified_name(name, hook) for name, hook in given.items() if hook is not None}

    def required(self, recorded: Mapping[str, str], run: str) -> Self:
        """These, where a run was begun with them. Raises: RunError naming the first that is another."""
        given = self.names
        for name in sorted(recorded.keys() | given.keys()):
            began, here = recorded.get(name), given.get(name)
            if began == here:
                continue
            if began is None:
                raise RunError(f"'{run}' began without a {name} of its own, and {here} would change it; drop {name}=.")
            now = "" if here is None else f", and {here} is another"
            raise RunError(f"'{run}' began with the {name} {began}{now}; resume it from Python with that as {name}=.")
        return self


def qualified_name(argument: str, hook: Any) -> str:
    """module:Name of a function, or of the class of an object, with the values of a dataclass."""
    named = hook if isinstance(hook, FunctionType | type) else type(hook)
    if named.__qualname__.endswith("<lambda>") or named.__module__ in ("functools", "builtins", "optax._src.base"):
        raise InputError(
            f"{argument}= has no name that a run could remember; give a function made with def, or an object of a "
            "class of your own."
        )
    values = ""
    if dataclasses.is_dataclass(hook) and not isinstance(hook, type):
        fields = ((field.name, getattr(hook, field.name)) for field in dataclasses.fields(hook))
        values = "(" + ", ".join(f"{name}={value!r}" for name, value in fields) + ")"
    return f"{named.__module__}:{named.__qualname__}{values}"
