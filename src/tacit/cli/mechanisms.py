"""Options made from the catalogue: one for each parameter of a mechanism, with the parameter's own words as help."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from tacit.cli import values
from tacit.design.mechanism import Mechanism, Parameters

# What reads a list, which Typer takes as text.
READ: dict[type, Callable[[str, str], tuple[float, ...]]] = {float: values.numbers, int: values.rounds}


def options_of(mechanism: Mechanism) -> type:
    """A dataclass of options: a field for each parameter of the mechanism. `given` reads one that was filled."""
    fields: list[tuple[str, Any, Any]] = []
    for name, (kind, said) in _described(mechanism.parameters).items():
        flag = f"--{name.replace('_', '-')}"
        if kind is bool:
            fields.append((name, Annotated[bool, typer.Option(flag, help=said)], dataclasses.field(default=False)))
            continue
        shown = str if _listed(kind) else kind
        fields.append((name, Annotated[shown | None, typer.Option(flag, help=said)], dataclasses.field(default=None)))
    return dataclasses.make_dataclass(f"{mechanism.name} options", fields, frozen=True, kw_only=True)


def given(mechanism: Mechanism, options: Any) -> Mapping[str, Any]:
    """What was given of the mechanism's options, as its parameters have it; what was left out is left out."""
    found = {}
    for name, (kind, _) in _described(mechanism.parameters).items():
        value = getattr(options, name)
        listed = _listed(kind)
        if value is not None and value is not False:
            found[name] = READ[listed](value, name.replace("_", "-")) if listed else value
    return found


def _described(parameters: type[Parameters]) -> dict[str, tuple[Any, str]]:
    """{name: (type, help)}; the type without None."""
    hints = get_type_hints(parameters, include_extras=True)
    found = {}
    for field in dataclasses.fields(parameters):
        kind, said = get_args(hints[field.name])[:2]
        kinds = [each for each in get_args(kind) if each is not type(None)] if type(None) in get_args(kind) else [kind]
        found[field.name] = (kinds[0], said)
    return found


def _listed(kind: Any) -> type | None:
    """What a tuple holds; None of a single value."""
    return get_args(kind)[0] if get_origin(kind) is tuple else None
