"""Options made from settings: a command declares what a frozen dataclass says of itself.

A field `name: Annotated[kind, "What --help says."] = default` is the option `--name`: name, type, help and default are
the field's, so a new setting is one line. A second text is an example, for the refusal of what cannot be read. A field
without a text gives the options of its own fields where it is a dataclass too; any other is the command's to fill. What
Typer alone can say (`typer.Option`) may stand in place of a text.
"""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import typer

from tacit.cli import values

S = TypeVar("S")
Path = tuple[str, ...]  # a field, below the fields that hold it


class Named(dict[str, str]):
    """What a command calls settings otherwise: a field's name -> its option's."""


class Setting(NamedTuple):
    """One option, and the field that it fills."""

    path: Path
    name: str
    kind: Any
    help: Any  # text, or what Typer takes
    example: tuple[str, ...]  # one, or none
    default: Any

    @property
    def parameter(self) -> inspect.Parameter:
        """As Typer sees it."""
        annotation, default = Annotated[self.kind, self.help], self.default
        if self._is_text:
            kind = str | None if NoneType in get_args(self.kind) else str
            annotation = Annotated[kind, typer.Option(help=self.help)]
            default = default if default is MISSING else values.written(default)
        elif isinstance(self.help, str):
            flag = [f"--{self._option}"] if self.kind is bool else []  # without its opposite
            annotation = Annotated[self.kind, typer.Option(*flag, help=self.help)]
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=annotation,
            default=inspect.Parameter.empty if default is MISSING else default,
        )

    def read(self, given: Any) -> Any:
        """The value of what was given. Raises: InputError where its text cannot be read."""
        if given is None or not self._is_text:
            return given
        return values.typed(given, self._option, self.kind, *self.example)

    @property
    def _is_text(self) -> bool:
        return isinstance(self.help, str) and not values.is_plain(self.kind)

    @property
    def _option(self) -> str:
        return self.name.replace("_", "-")


class Options(Generic[S]):
    """The options of the settings `S` as they were given; the command fills the fields that are no options."""

    def __init__(self, kind: type[S], declared: Sequence[Setting], given: Mapping[str, Any]) -> None:
        self._kind, self._declared, self._given = kind, declared, given

    def settings(self, **others: Any) -> S:
        """The settings, with these fields besides. Raises: InputError for what cannot be read, or cannot be."""
        found = [(each.path, each.read(self._given[each.name])) for each in self._declared]
        return _made(self._kind, MISSING, found, others)

    def __getitem__(self, name: str) -> Any:
        """What was given as the option of this name; its default where it was not."""
        return self._given[name]


def declared_by(
    kind: type, named: Mapping[str, str] = MappingProxyType({}), holder: Any = MISSING
) -> Iterator[Setting]:
    """The options of a dataclass, in the order of its fields. holder: a value of it, which says the defaults."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint, default = hints[field.name], _default(field, holder)
        if get_origin(hint) is Annotated:
            own, about, *example = get_args(hint)
            yield Setting((field.name,), named.get(field.name, field.name), own, about, tuple(example), default)
        elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
            for each in declared_by(hint, named, default):
                yield each._replace(path=(field.name, *each.path))


def _made(kind: type[S], holder: Any, found: Sequence[tuple[Path, Any]], others: Mapping[str, Any]) -> S:
    """The dataclass with what was found; of a holder's other fields, the holder's values."""
    given = {path[0]: value for path, value in found if len(path) == 1}
    hints, fields = get_type_hints(kind), {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in dict.fromkeys(path[0] for path, _ in found if len(path) > 1):
        below = [(path[1:], value) for path, value in found if path[0] == name]
        given[name] = _made(hints[name], _default(fields[name], holder), below, {})
    made: S = kind(**given, **others) if holder is MISSING else dataclasses.replace(holder, **given)
    return made


def _default(field: "dataclasses.Field[Any]", holder: Any) -> Any:
    """Of the field, in the holder where there is one; MISSING where it has none."""
    if holder is not MISSING:
        return getattr(holder, field.name)
    return field.default_factory() if callable(field.default_factory) else field.default
