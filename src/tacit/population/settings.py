"""A simulation as one frozen value, in TOML and back; options stand above what a file of settings says.

The file has the keys of `Population` and `RoundRules`, all of them optional: `rounds` and `seed` at the top, then
[population], [population.availability] with its tables `night` and `day`, [population.work] and [rules].
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

import tomli_w

from tacit.errors import InputError
from tacit.files import read_bounded
from tacit.parsing import parsed_toml
from tacit.population.devices import Population, RoundRules

Settings = TypeVar("Settings")

REQUIRED = {
    ("population", "devices"): "--population",
    ("rules", "report_goal"): "--report-goal",
    ("rules", "timer_hours"): "--timer-hours",
    (None, "rounds"): "--rounds",
}


@dataclass(frozen=True, kw_only=True)
class SimulationSettings:
    """One simulation, whole: `rounds` rounds of a population under a server's rules; the same seed, the same rounds.

    InputError for values that mean nothing.
    """

    population: Population
    rules: RoundRules
    rounds: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
                needed = "at least 1" if least else "0 or more"
                raise InputError(f"{name}={value!r} is not a whole number of {needed}; give one.")

    @classmethod
    def read(cls, path: Path | None, options: Mapping[tuple[str, ...], Any] = MappingProxyType({})) -> Self:
        """The file's settings (none without a file) with every option that is not None written over them.

        `options` are by the path of their key: ("rules", "timer_hours"). InputError naming the file and the key where
        one is unknown or has a wrong value, and the option where one is missing.
        """
        table = {} if path is None else _toml(path)
        for keys, value in options.items():
            if value is not None:
                inner = table
                for key in keys[:-1]:
                    inner = inner.setdefault(key, {})
                    _check_table(key, inner, path)
                inner[keys[-1]] = value
        for (section, key), option in REQUIRED.items():
            inner = table if section is None else table.get(section, {})
            _check_table(str(section), inner, path)
            if key not in inner:
                raise InputError(f"{key} is missing; give {option}, or {key} in a file of --settings.")
        known = {"population", "rules", "rounds", "seed"}
        if unknown := sorted(table.keys() - known):
            raise InputError(f"'{path}': the key '{unknown[0]}' is unknown; known here: {', '.join(sorted(known))}.")
        devices, rules = table["population"]["devices"], table["rules"]
        least = RoundRules(report_goal=rules["report_goal"], timer_hours=_number("timer_hours", rules["timer_hours"]))
        return cls(
            population=_filled(Population(devices=devices), table["population"], "population"),
            rules=_filled(least, rules, "rules"),
            rounds=table["rounds"],
            seed=table.get("seed", 0),
        )

    def to_toml(self) -> str:
        """Every key with its value; `read` gives the same simulation back."""
        return tomli_w.dumps(asdict(self))

    def changed(
        self, *, devices: int | None = None, timer_hours: float | None = None, rules: RoundRules | None = None
    ) -> Self:
        """The same simulation of another number of devices, behind another timer, or under other rules."""
        rules = rules or self.rules
        if timer_hours is not None:
            rules = replace(rules, timer_hours=timer_hours)
        population = self.population if devices is None else replace(self.population, devices=devices)
        return replace(self, population=population, rules=rules)

    def within(self, days: float | None) -> Self:
        """The same simulation, refused where it takes more than so many days; None: as long as it may already."""
        if days is None:
            return self
        return replace(self, rules=replace(self.rules, most_days=min(self.rules.most_days, days)))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return parsed_toml(read_bounded(path).decode("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"there is no file of settings '{path}'; `tacit simulate` writes one into its --out."
        ) from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"'{path}' is not TOML in UTF-8: {error}; mend that line.") from error


def _filled(defaults: Settings, table: dict[str, Any], where: str) -> Settings:
    """The same settings with the values of a table; nested tables change nested settings."""
    names = [field.name for field in fields(defaults)]  # type: ignore[arg-type]  # a dataclass, as its callers say
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in names:
            raise InputError(f"the key '{where}.{key}' is unknown; known in {where}: {', '.join(names)}.")
        present = getattr(defaults, key)
        if is_dataclass(present):
            _check_table(f"{where}.{key}", value, None)
            values[key] = _filled(present, value, f"{where}.{key}")
        elif key == "zones":
            values[key] = _zones(value)
        else:
            values[key] = _number(f"{where}.{key}", value) if isinstance(present, float) else value
    return replace(defaults, **values)  # type: ignore[type-var]


def _zones(value: Any) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, list) or not all(isinstance(zone, list) and len(zone) == 2 for zone in value):
        raise InputError(f"zones = {value!r} are no time zones; write [[-8, 0.2], [-5, 0.8]]: hours and weights.")
    return tuple((_number("zones", hours), _number("zones", weight)) for hours, weight in value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name} = {value!r} is no number; give one.")
    return float(value)


def _check_table(name: str, value: Any, path: Path | None) -> None:
    if not isinstance(value, dict):
        where = f"'{path}': " if path else ""
        raise InputError(f"{where}{name} = {value!r}, but '{name}' is a section; write [{name}] and its keys below it.")
