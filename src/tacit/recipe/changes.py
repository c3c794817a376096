"""A recipe with some of its keys changed, as if its file had said so: what `--set section.key=value` means."""

import itertools
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import InputError, RecipeError
from tacit.parsing import parsed_toml

Made = TypeVar("Made")

_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[^"\'\[\]{},]+|.', re.DOTALL)  # of a value: strings whole
_PLAIN = (bool, int, float, str, list, dict)


def parsed_changes(texts: Sequence[str]) -> dict[str, list[Any]]:
    """{key: its values} of texts `section.key=value`; several values, `a,b,c`, ask for a run with each.

    A value is read as TOML, else it is a string as it stands; none at all, `key=`, is None: the key is left out.
    Raises: InputError for a text without a key, and for a key that is given twice.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        key = key.strip()
        if not separator or not _KEY.fullmatch(key):
            raise InputError(f"--set {text!r} sets no key; write SECTION.KEY=VALUE, such as rounds.rounds=100.")
        if key in found:
            raise InputError(f"--set gives {key} twice; give it once, its values with commas between.")
        found[key] = _values(value.strip())
    return found


def with_changes(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a recipe with those of `changes`, by dotted keys; None leaves a key out.

    Raises: RecipeError for a key below one that is no section, and for one to leave out that is not there.
    """
    changed = dict(given)
    for key, value in changes.items():
        if not _KEY.fullmatch(key):
            raise RecipeError(f"{key!r} is no key of a recipe; write SECTION.KEY, such as rounds.rounds.")
        *sections, last = key.split(".")
        table = changed
        for depth, section in enumerate(sections, start=1):
            below = table.get(section, {})
            if not isinstance(below, Mapping):
                raise RecipeError(f"{key}: '{'.'.join(sections[:depth])}' is a value and no section; give its own key.")
            table[section] = dict(below)  # the recipe that it was keeps its own
            table = table[section]
        if value is not None:
            table[last] = _plain(value)
        elif table.pop(last, None) is None:
            raise RecipeError(f"{key} is to be left out, and the recipe does not have it; drop that change.")
    return changed


def made_with(make: Callable[[Mapping[str, Any]], Made], given: Mapping[str, Any], changes: Mapping[str, Any]) -> Made:
    """What `make` makes of the values of a recipe with those of `changes`.

    Raises: RecipeError of `make`; where leaving other keys out mends it, with the options that do so.
    """
    try:
        return make(with_changes(given, changes))
    except RecipeError as error:
        raise RecipeError(f"{error}{_way_out(make, given, changes)}") from error


def _way_out(make: Callable[[Mapping[str, Any]], Any], given: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """One more key left out, of any section, or two of those that change."""
    touched = {key.partition(".")[0] for key in changes}
    others = sorted(set(_leaves(given)) - changes.keys())
    near = [key for key in others if key.partition(".")[0] in touched]
    singles = [(key,) for key in (*near, *(key for key in others if key not in near))]
    for left_out in (*singles, *itertools.combinations(near, 2)):
        more = {**changes, **dict.fromkeys(left_out)}
        try:
            make(with_changes(given, more))
        except RecipeError:
            continue
        return f" This works: `{options(more)}`."
    return ""


def _leaves(values: Mapping[str, Any], under: str = "") -> Iterator[str]:
    """The dotted keys that are no sections."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{under}{key}.")
        else:
            yield f"{under}{key}"


def options(changes: Mapping[str, Any]) -> str:
    """The changes as a shell takes them: `--set rounds.rounds=100 --set privacy.zcdp=`."""
    return " ".join(f"--set {shlex.quote(f'{key}={_written(value)}')}" for key, value in changes.items())


def _written(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def said(changes: Mapping[str, Any]) -> str:
    """The changes as people read them: `rounds.rounds=100, privacy.zcdp=` of one that is left out."""
    return ", ".join(f"{key}={'' if value is None else value}" for key, value in changes.items())


def _values(text: str) -> list[Any]:
    if not text:
        return [None]
    try:
        return [_of_toml(text)]
    except ValueError:  # several, or a string without its quotes
        return [_value(part) for part in _parts(text)]


def _value(text: str) -> Any:
    try:
        return _of_toml(text)
    except ValueError:
        return text or None


def _of_toml(text: str) -> Any:
    """Raises: ValueError for what is no value of TOML that a recipe could have (no key has a date)."""
    found = parsed_toml(f"value = {text}")
    if found.keys() != {"value"} or not isinstance(found["value"], _PLAIN):
        raise ValueError(f"{text!r} is not one value")
    return found["value"]


def _parts(text: str) -> list[str]:
    """What stands between the commas that are in no string and no bracket."""
    parts, depth = [""], 0
    for token in _PARTS.findall(text):
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        if token == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]


def _plain(value: Any) -> Any:
    """As a file would give it."""
    if isinstance(value, Mapping):
        return {key: _plain(of) for key, of in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(of) for of in value]
    return str(value) if isinstance(value, Path) else value
