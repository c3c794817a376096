"""Text of options to values: the only place where a command reads more than Typer does.

Each parser takes the text and the name of its option, and raises an InputError that says both and how to write it.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from tacit.errors import InputError, conceivable

P = ParamSpec("P")
V = TypeVar("V")

SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9}
FEW = 10_000  # of numbers that an option stands for
PLAIN = {bool, int, float, str, Path, list[str], list[Path]}  # Typer reads them
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def numeric(parse: Callable[Concatenate[str, str, P], V]) -> Callable[Concatenate[str, str, P], V]:
    """A parser of numbers, all of which somebody can mean."""

    @functools.wraps(parse)
    def parsed(text: str, name: str, /, *more: P.args, **named: P.kwargs) -> V:
        found = parse(text, name, *more, **named)
        conceivable(f"--{name}", *(found if isinstance(found, Sequence) else (found,)))
        return found

    return parsed


def parts(text: str) -> list[str]:
    """What stands between commas, without spaces; nothing of an empty text."""
    return [part.strip() for part in text.split(",") if part.strip()]


@numeric
def number(text: str, name: str) -> float:
    """`--name 0.5`."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--{name} {text!r} is no number.") from None


@numeric
def numbers(text: str, name: str, example: str = "0.99,0.7") -> tuple[float, ...]:
    """`--name 0.99,0.7`; none of an empty text."""
    try:
        return tuple(float(part) for part in parts(text))
    except ValueError as error:
        raise InputError(f"--{name} {text!r} is not a list of numbers; write for example {example}.") from error


@numeric
def whole_number(text: str, name: str) -> int:
    """`--name 5`."""
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--{name} {text!r} is no whole number.") from None


@numeric
def rounds(text: str, name: str) -> tuple[int, ...]:
    """`--name 128,1152`; none of an empty text."""
    try:
        return tuple(int(part) for part in parts(text))
    except ValueError as error:
        raise InputError(f"--{name} {text!r} is not a list of rounds; write for example 128,1152.") from error


@numeric
def whole_numbers(text: str, name: str) -> Sequence[int]:
    """`--name 5`, `--name 5,7`, or `--name 5:80`, which is a range with both ends."""
    try:
        given = [int(part) for part in text.split(":" if ":" in text else ",")]
        low, high = given if ":" in text else (0, 0)
    except ValueError as error:
        raise InputError(
            f"--{name} {text!r} is neither a number nor several; write 2000, or 1000,2000, or 1000:4000."
        ) from error
    if high - low >= FEW:
        raise InputError(f"--{name} {text!r} stands for {high - low + 1:,} numbers, and {FEW:,} are the most.")
    return range(low, high + 1) if ":" in text else given


@numeric
def count(text: str, name: str) -> int:
    """4210000, 4_210_000, 4.21e6 or 4.21M as a whole number of at least 1."""
    digits, unit = (text[:-1], SUFFIXES[text[-1]]) if text[-1:] in SUFFIXES else (text, 1.0)
    try:
        value = float(digits) * unit
        if value < 1:
            raise ValueError
        return round(value)
    except (ValueError, OverflowError):
        raise InputError(f"--{name} {text!r} is no number of at least 1; write 4210000, 4.21M or 4.21e6.") from None


@numeric
def seconds(text: str, name: str) -> float:
    """The seconds of "48h", "90m", "2d", "1.5h", "30s" or "1w"; above 0."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", text)
    if found is None:
        raise InputError(f"--{name} {text!r} is no duration; write a number and a unit (s, m, h, d, w): 48h, 90m, 2d.")
    value = float(found[1]) * SECONDS[found[2]]
    if not value:
        raise InputError(f"--{name} {text!r} keeps nobody from coming at once; give a time above 0.")
    return value


def from_to_step(text: str, name: str) -> tuple[float, ...]:
    """The cuts of `--name -0.1:0.2:0.01`, in exact fractions, so that 0.02 is the cut it looks like."""
    if not re.fullmatch(r"(-?\d{1,9}(\.\d{1,9})?(:|$)){3}", text):
        raise InputError(f"--{name} {text!r} cannot be read; write FROM:TO:STEP, such as -0.1:0.2:0.01.")
    first, last, step = (Fraction(part) for part in text.split(":"))
    if step <= 0 or first >= last:
        raise InputError(f"--{name} {text!r} has no cuts; write FROM:TO:STEP with FROM below TO and STEP above 0.")
    if (last - first) / step > FEW:
        raise InputError(f"--{name} {text!r} has {(last - first) // step:,} cuts, and {FEW:,} are the most.")
    return tuple(float(first + k * step) for k in range(int((last - first) / step) + 1))


# -- by type -----------------------------------------------------------------------------------------------------------


def is_plain(kind: Any) -> bool:
    """Whether Typer reads a value of this type, or None, itself."""
    return _without_none(kind) in PLAIN


def typed(text: str, name: str, kind: Any, *example: str) -> Any:
    """The text as a value of a type that Typer does not read: see `written`. example: one of how to write it.

    Raises: InputError; whether a word is one of a Literal, whoever takes it checks.
    """
    own: Any = _without_none(kind)
    if get_origin(own) is tuple:
        return None if own is not kind and not text else _several(text, name, get_args(own)[0], *example)
    if _is_a_dataclass(own):
        inner = {field.name: get_type_hints(own)[field.name] for field in dataclasses.fields(own)}
        if len(inner) == 1:
            return own(typed(text, name, *inner.values(), *example))
        return own(**fields(text, name, inner, *example))
    return text


def written(value: Any) -> Any:
    """A value as `typed` reads it: several with commas, and a dataclass by its fields."""
    if isinstance(value, tuple):
        return ",".join(map(_in_full, value))
    if dataclasses.is_dataclass(value):
        inner = tuple(getattr(value, field.name) for field in dataclasses.fields(value))
        return written(inner[0] if len(inner) == 1 else inner)
    return value if value is None else str(value)


def fields(text: str, name: str, kinds: dict[str, Callable[[str], Any]], example: str) -> dict[str, Any]:
    """`--name 20,1e-6`, one number for each field."""
    try:
        found = [kind(part) for kind, part in zip(kinds.values(), text.split(","), strict=True)]
    except ValueError as error:
        raise InputError(f"--{name} {text!r} is not {','.join(kinds)}; write for example {example}.") from error
    conceivable(f"--{name}", *found)
    return dict(zip(kinds, found, strict=True))


def _several(text: str, name: str, kind: Any, *example: str) -> tuple[Any, ...]:
    if kind is int:
        return tuple(whole_number(each, name) for each in parts(text))
    return numbers(text, name, *example) if kind is float else tuple(parts(text))


def _is_a_dataclass(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _without_none(kind: Any) -> Any:
    """The type beside None, or the type."""
    others = [each for each in get_args(kind) if each is not NoneType]
    return others[0] if len(others) == 1 and NoneType in get_args(kind) else kind


def _in_full(value: Any) -> str:
    """The shortest text that reads as this very value: 1 for 1.0."""
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)
