"""What is wrong with a recipe in one sentence, and which key was meant by one that there is not."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from tacit.errors import InputError
from tacit.networks.models import DEFAULT
from tacit.recipe.model_section import ModelSection, section_of


def first_complaint(error: ValidationError, recipe: type[BaseModel], values: Mapping[str, Any]) -> str:
    """One sentence about the first wrong key of `values`: the key, its value, the rule.

    A key that is unknown is told before one that is missing, since it may be the same one misspelt.
    """
    all_of_them = error.errors()
    first = min(all_of_them, key=lambda each: each["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    more = f" ({len(all_of_them) - 1} more after it)" if len(all_of_them) > 1 else ""
    if first["type"] == "extra_forbidden":
        meant = nearest_key(key, recipe, values)
        way_out = "remove it or mend its spelling" if meant is None else f"did you mean {meant}?"
        return f"the key '{key}' is unknown; {way_out} (docs/recipes.md lists all).{more}"
    if first["type"] == "missing":
        return f"the key '{key}' is missing; give it.{more}"
    if first["type"] == "value_error":
        return f"{first['msg'].removeprefix('Value error, ')}{more}"
    if first["type"] == "model_type":
        return f"{key} = {first['input']!r}, but '{key}' is a section; write [{key}] and its keys below it.{more}"
    rule = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return f"{key} = {first['input']!r}: {rule}; docs/recipes.md lists every key with its default.{more}"


def nearest_key(key: str, recipe: type[BaseModel], values: Mapping[str, Any]) -> str | None:
    """The key of a recipe that an unknown one is most like: in its own section, else in any; None if like none.

    key: "section.key", or a key of the top level, where a section is returned as "[section]".
    """
    sections = keys_of(recipe, values)
    section, _, name = key.rpartition(".")
    here = get_close_matches(name, sections.get(section, ()), n=1)
    if here:
        return f"[{here[0]}]" if not section and here[0] in sections else f"{section}.{here[0]}".removeprefix(".")
    return key_anywhere(name, sections)


def key_anywhere(name: str, sections: dict[str, list[str]]) -> str | None:
    """The dotted key of `keys_of` whose last part is most like a name; None if like none."""
    everywhere = {name: section for section, names in reversed(sections.items()) for name in names if section}
    found = get_close_matches(name, everywhere, n=1, cutoff=0.8)
    return f"{everywhere[found[0]]}.{found[0]}" if found else None


def keys_of(recipe: type[BaseModel], values: Mapping[str, Any] = MappingProxyType({})) -> dict[str, list[str]]:
    """{section: its keys}; "" is the top level. values: of the recipe, whose network says which keys [model] has."""
    found = {"": list(recipe.model_fields)}
    for name, field in recipe.model_fields.items():
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
        for kind in kinds:
            if issubclass(kind, BaseModel):
                of = _of_network(values.get(name)) if kind is ModelSection else kind
                found[name] = list(of.model_fields)
    return found


def _of_network(given: object) -> type[ModelSection]:
    """The section of the network that is named, of the usual one where it is none."""
    kind = given.get("kind", DEFAULT) if isinstance(given, Mapping) else DEFAULT
    try:
        return section_of(kind if isinstance(kind, str) else DEFAULT)
    except InputError:
        return section_of()
