"""A recipe as TOML with a reason beside each value: what a plan hands over to be read before it is run."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tacit.design.mechanism import ChosenMechanism
from tacit.recipe.experiment import Recipe
from tacit.recipe.mixture import MixtureRecipe

OTHERWISE = "of the recipe that this one builds on"


def annotated_toml(recipe: Recipe | MixtureRecipe, reasons: Mapping[str, str], head: Sequence[str]) -> str:
    """Every key that differs from its default, or has one in `reasons`, below the comment `head`.

    `reasons` are by "section.key"; a key without one comes from the recipe that this one builds on.
    """
    lines = [f"# {line}".rstrip() for line in head]
    lines.append(_line("name", recipe.name, None))
    for section in type(recipe).model_fields:
        value = getattr(recipe, section)
        if section == "name" or value is None:
            continue
        given = dict(_given(value, section, reasons))
        kept = [_line(key, of, reasons.get(f"{section}.{key}", OTHERWISE)) for key, of in given.items()]
        if kept:
            lines += ["", f"[{section}]", *kept]
        lines += _mechanism(getattr(value, "mechanism", None), f"{section}.mechanism", reasons)
    return "\n".join(lines) + "\n"


def _given(value: Any, section: str, reasons: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The keys of a section that are worth a line."""
    for key, field in type(value).model_fields.items():
        of = getattr(value, key)
        default = field.get_default(call_default_factory=True) if not field.is_required() else ...
        worth = of is not None and (of != default or f"{section}.{key}" in reasons)
        if worth and not isinstance(of, ChosenMechanism):
            yield key, of


def _mechanism(chosen: ChosenMechanism | None, section: str, reasons: Mapping[str, str]) -> list[str]:
    """A table of its own: the name, and what differs from the defaults."""
    if chosen is None:
        return []
    defaults = {field.name: field.default for field in dataclasses.fields(chosen.parameters)}
    told = {
        key: of for key, of in chosen.to_plain().items() if getattr(chosen.parameters, key, of) != defaults.get(key)
    }
    return [
        "",
        f"[{section}]",
        *(_line(key, of, reasons.get(f"{section}.{key}", OTHERWISE)) for key, of in told.items()),
    ]


def _line(key: str, value: Any, reason: str | None) -> str:
    written = json.dumps(value, ensure_ascii=False, default=str)  # paths
    return f"{key} = {written}" + (f" # {reason}" if reason else "")
