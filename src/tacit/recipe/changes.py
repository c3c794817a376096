"""A recipe with some of its keys changed, as if its file had said so: what `--set section.key=value` means."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import InputError, RecipeError
from tacit.parsing import parsed_toml

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
