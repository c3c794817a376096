"""Dataclasses as plain values for JSON and TOML, and back, with one way to name a wrong key or a wrong value.

    to_plain(value)           dataclasses become dictionaries, tuples lists; None, text and numbers stay
    from_plain(cls, record)   the dataclass again; `error` says which key is unknown, missing, or of the wrong kind

A field that has a default may be missing. A union of dataclasses (`NoisedSum | LocalReports`) is told apart by the key
`kind`, a `ClassVar[str]` of each of its members, which `to_plain` writes.
"""

import dataclasses
import functools
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin

from tacit.errors import InputError, TacitError

T = TypeVar("T")
Record = dict[str, Any]
_PLAIN = frozenset({str, int, float, bool, type(None)})
_LEAVES = frozenset({str, float, bool})  # of which every value is one
LARGEST = 2**512  # of a whole number in a record: beyond any seed, and a real number still comes near it

# What a terminal obeys and does not show (but for the end of a line and tabs), what turns the direction of writing, and
# halves of characters, which no encoding takes.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def to_plain(value: Any) -> Any:
    """The value as dictionaries, lists, text, numbers and None; a dataclass with a `kind` begins with it."""
    if type(value) in _PLAIN:  # most of what a run writes
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": vars(type(value))["kind"]} if _has_kind(type(value)) else {}
        return {**kind, **{field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}}
    if isinstance(value, Mapping):
        return {str(key): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return value.tolist()
    return str(value) if hasattr(value, "__fspath__") else value


def from_plain(cls: type[T], record: Any, *, error: type[TacitError] = InputError, where: str = "") -> T:
    """The dataclass `cls` that `to_plain` wrote as `record`.

    where: what is read, for the sentence of an error. Raises: `error` naming the key that is unknown or missing, or the
    value of the wrong kind.
    """
    if not isinstance(record, Mapping):
        raise error(f"{where or cls.__name__} is {_shown(record)}, and a table of values was expected.")
    types_of, (fields, needed) = _types(cls), _fields(cls)  # type: ignore[arg-type]
    given = record
    if _has_kind(cls):  # type: ignore[arg-type]
        _check_kind(cls, record, error, where)
        given = {key: value for key, value in record.items() if key != "kind"}
    if given.keys() != fields.keys():
        unknown, missing = sorted(given.keys() - fields.keys()), [name for name in needed if name not in given]
        if unknown or missing:
            what = f"has the unknown key '{unknown[0]}'" if unknown else f"lacks '{missing[0]}'"
            raise error(f"{where or cls.__name__} {what}; its keys are {', '.join(fields)}.")
    values = dict(given)
    for name, value in given.items():
        wanted = types_of[name]
        if not (type(value) is wanted and wanted in _LEAVES):  # most are, and are told in a moment
            values[name] = _value(wanted, value, error, _inside(where, name))
    return cls(**values)


def first_difference(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> str | None:
    """The first setting that differs, as `name was X and is now Y`; None where none does."""
    for name in sorted(old.keys() | new.keys()):
        before, now, where = old.get(name), new.get(name), f"{path}{name}"
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            if found := first_difference(before, now, f"{where}."):
                return found
        elif before != now:
            return f"{where} was {_shown(before)} and is now {_shown(now)}"
    return None


def json_ready(value: Any) -> Any:
    """The same value for JSON, which has neither infinities (text here) nor what is not a number (null)."""
    return _finite(to_plain(value))


def _finite(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _finite(inner) for key, inner in plain.items()}
    if isinstance(plain, list):
        return [_finite(inner) for inner in plain]
    if isinstance(plain, float) and not math.isfinite(plain):
        return None if math.isnan(plain) else str(plain)
    return plain


def visible(text: str) -> str:
    """The text with what a terminal would obey written as JSON writes it, `\\u001b`; for people and for JSON alike."""
    return _UNSHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# -- one value ---------------------------------------------------------------------------------------------------------


def _value(wanted: Any, value: Any, error: type[TacitError], where: str) -> Any:
    """`value` as the annotated type `wanted`."""
    if _fits(wanted, value):
        return value
    origin, inner = _parts(wanted)
    if isinstance(wanted, TypeVar):
        return value
    if origin in (Union, types.UnionType):
        return _member(inner, value, error, where)
    if origin is typing.Literal:
        if value not in inner:
            raise error(f"{where} is {_shown(value)}, and may be {', '.join(map(repr, inner))}.")
        return value
    if origin in (tuple, list, Sequence):
        return _several(origin, inner, value, error, where)
    if origin in (dict, Mapping):
        return _table(inner, value, error, where)
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return value if isinstance(value, wanted) else from_plain(wanted, value, error=error, where=where)
    return _single(wanted, value, error, where)


def _fits(wanted: Any, value: Any) -> bool:
    """Whether the value is one as it is: most of what a run of many rounds wrote, told in a moment."""
    return wanted is Any or (
        type(value) is wanted and (wanted in _LEAVES or (wanted is int and -LARGEST <= value <= LARGEST))
    )


def _member(members: tuple[Any, ...], value: Any, error: type[TacitError], where: str) -> Any:
    """One of a union: None, the dataclass whose kind the record names, or the first type that takes the value."""
    if value is None and type(None) in members:
        return None
    others = [member for member in members if member is not type(None)]
    if isinstance(value, Mapping) and "kind" in value:
        named = [each for each in others if getattr(each, "kind", None) == value["kind"]]
        if named:
            return _value(named[0], value, error, where)
    if len(others) == 1:
        return _value(others[0], value, error, where)
    for member in others:
        try:
            return _value(member, value, error, where)
        except error:
            continue
    names = ", ".join(str(getattr(each, "kind", getattr(each, "__name__", each))) for each in others)
    raise error(f"{where} is {_shown(value)}, and is none of {names}.")


def _several(origin: Any, inner: tuple[Any, ...], value: Any, error: type[TacitError], where: str) -> Any:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise error(f"{where} is {_shown(value)}, and a list was expected.")
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        if len(value) != len(inner):
            raise error(f"{where} has {len(value)} values, and {len(inner)} were expected.")
        return tuple(
            _value(kind, each, error, f"{where}[{at}]")
            for at, (kind, each) in enumerate(zip(inner, value, strict=True))
        )
    kind = inner[0] if inner else Any
    found = [_value(kind, each, error, f"{where}[{at}]") for at, each in enumerate(value)]
    return found if origin is list else tuple(found)


def _table(inner: tuple[Any, ...], value: Any, error: type[TacitError], where: str) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise error(f"{where} is {_shown(value)}, and a table of values was expected.")
    key, kind = inner or (Any, Any)
    if kind is Any and key is not int:
        return dict(value)
    if key is int:  # JSON and TOML have text keys only
        if strange := next((k for k in value if not re.fullmatch(r"-?[0-9]{1,99}", str(k))), None):
            raise error(f"{where} has the key {_shown(strange)}, and whole numbers were expected.")
        value = {int(k): each for k, each in value.items()}
    return {k: each if _fits(kind, each) else _value(kind, each, error, _inside(where, k)) for k, each in value.items()}


def _single(wanted: Any, value: Any, error: type[TacitError], where: str) -> Any:
    """Text, a truth value, a number (a whole one stands for a real one), or whatever class is asked for."""
    if isinstance(value, int) and abs(value) > LARGEST:
        raise error(f"{where} is {_shown(value)}, and no whole number has so many digits.")
    if wanted is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if wanted is float and value in ("inf", "-inf"):  # what `json_ready` wrote
        return float(value)
    if wanted is int and isinstance(value, bool):
        raise error(f"{where} is {_shown(value)}, and a whole number was expected.")
    if isinstance(wanted, type) and isinstance(value, wanted):
        return value
    if isinstance(wanted, type) and hasattr(wanted, "__fspath__") and isinstance(value, str):
        return wanted(value)
    expected = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}.get(wanted, str(wanted))
    raise error(f"{where} is {_shown(value)}, and {expected} was expected.")


# -- classes -----------------------------------------------------------------------------------------------------------


@functools.cache
def _types(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@functools.cache
def _fields(cls: Any) -> tuple[Mapping[str, "dataclasses.Field[Any]"], tuple[str, ...]]:
    """(the fields by name, the names of those that must be given)."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    return fields, tuple(name for name, field in fields.items() if _is_needed(field))


@functools.cache
def _parts(wanted: Any) -> tuple[Any, tuple[Any, ...]]:
    """What an annotation is of, and with what in it."""
    return get_origin(wanted), get_args(wanted)


@functools.cache
def _has_kind(cls: type) -> bool:
    hint = _types(cls).get("kind")
    return get_origin(hint) is ClassVar and isinstance(vars(cls).get("kind"), str)


def _check_kind(cls: type, record: Mapping[str, Any], error: type[TacitError], where: str) -> None:
    if _has_kind(cls) and "kind" in record and record["kind"] != cls.kind:  # type: ignore[attr-defined]
        raise error(
            f"{where or cls.__name__} is of the kind {record['kind']!r}, and {cls.kind!r} was expected."  # type: ignore[attr-defined]
        )


def _is_needed(field: "dataclasses.Field[Any]") -> bool:
    return field.init and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _inside(where: str, name: Any) -> str:
    return f"{where}.{name}" if where else str(name)


def _shown(value: Any, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else text[:most] + "..."
