"""The section [model] of a recipe: which network, and the settings of that network.

Its keys are `kind`, `init` and the fields of the network's dataclass, with their defaults; the vocabulary is the
cache's. Beside the networks that are built in, any class can be named: "package.module:Class" (`language_model`).
"""

import dataclasses
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidatorFunctionWrapHandler, WrapValidator
from pydantic import create_model as section_class

from tacit.errors import InputError
from tacit.networks.language_model import LanguageModel, kind_of, model_class, model_of, settings_of
from tacit.networks.models import DEFAULT


class ModelSection(BaseModel):
    """What every network's section has; `section_of` adds the keys of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    kind: str = DEFAULT
    init: Path | None = Field(default=None, strict=False)  # a model of `tacit pretrain` to begin from; else random

    def settings(self, vocabulary: int) -> LanguageModel:
        """The network with so many ids. Raises: InputError for settings that it refuses."""
        own = self.model_dump(exclude={"kind", "init"})
        return model_of(self.kind, {**own, "vocabulary": vocabulary})


def section_of(kind: str = DEFAULT) -> type[ModelSection]:
    """The section of this kind of network. Raises: InputError where there is none, or its settings cannot be keys."""
    return _section_of(kind)


@cache
def _section_of(kind: str) -> type[ModelSection]:
    network = model_class(kind)
    hints, keys = get_type_hints(network), dict[str, Any]()
    for field in dataclasses.fields(network):  # type: ignore[arg-type]  # `model_class` looked
        if field.name in ModelSection.model_fields:
            raise InputError(
                f"model.kind='{kind}' has a setting '{field.name}', which [model] means otherwise; rename it."
            )
        if field.name != "vocabulary" and field.init:
            strict = get_origin(hints[field.name]) is not tuple  # TOML has lists for them
            keys[field.name] = (hints[field.name], _key(field, strict=strict))
    return section_class(f"ModelSection[{kind}]", __base__=ModelSection, **keys)


def section_for(network: LanguageModel) -> ModelSection:
    """The section of this network; how many words it has is the cache's to say."""
    keys = {key: value for key, value in settings_of(network).items() if key != "vocabulary"}
    return section_of(kind_of(network)).model_validate(keys)


def _key(field: "dataclasses.Field[Any]", *, strict: bool) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return Field(default_factory=field.default_factory, strict=strict)
    return Field(default=... if field.default is dataclasses.MISSING else field.default, strict=strict)


def _of_its_kind(given: Any, check: ValidatorFunctionWrapHandler) -> ModelSection:
    """The section of the network that `given` names, or is."""
    if isinstance(given, ModelSection):
        return given
    if isinstance(given, LanguageModel):
        return section_for(given)
    kind = given.get("kind", DEFAULT) if isinstance(given, dict) else None
    if not isinstance(kind, str):
        found: ModelSection = check(given)  # says what is wrong with it
        return found
    return section_of(kind).model_validate(given)


# What a recipe's `model` is: a table of keys, or a network itself, whose vocabulary then is the cache's all the same.
Network = Annotated[SerializeAsAny[ModelSection], WrapValidator(_of_its_kind)]
