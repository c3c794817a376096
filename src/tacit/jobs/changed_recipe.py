"""A recipe of whatever kind with some of its keys changed: what `--set section.key=value` asks for.

Of `tacit mix`, which has no recipe, the keys are its options.
"""

import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, RecipeError
from tacit.files import PathLike

if TYPE_CHECKING:  # JAX comes with them
    from tacit.recipe import Recipe
    from tacit.recipe.mixture import MixtureRecipe


def any_recipe(recipe: "Recipe | MixtureRecipe | PathLike") -> "Recipe | MixtureRecipe":
    """The recipe as it is, or the one that a path leads to, with [mixture] or without. Raises: RecipeError."""
    from tacit.recipe import Recipe
    from tacit.recipe.mixture import MixtureRecipe, is_mixture

    if isinstance(recipe, Recipe | MixtureRecipe):
        return recipe
    return (MixtureRecipe if is_mixture(recipe) else Recipe).from_argument(recipe)


def changed_rounds(recipe: PathLike, texts: Sequence[str] = ()) -> "Recipe":
    """A recipe of rounds alone with each `section.key=value`, one value a key.

    Raises: RecipeError, also for one with [mixture]; InputError for what sets no key, and for several values.
    """
    from tacit.recipe import Recipe
    from tacit.recipe.changes import options
    from tacit.recipe.mixture import is_mixture

    changes = one_each(texts)
    if is_mixture(recipe):
        asked = "".join(f" {each}" for each in [options(changes)] if changes)
        raise RecipeError(
            f"'{recipe}' has [mixture]: it makes counts and a network one model, and this command takes rounds alone. "
            f"`tacit train {shlex.quote(str(recipe))} --out RUN{asked}` says what is expected of it, and makes it."
        )
    found = Recipe.from_argument(recipe)
    return found.changed(changes) if changes else found


def key_called(name: str) -> str | None:
    """The dotted key of a recipe of rounds whose own name is that, or like it; None where there is none."""
    from tacit.recipe import Recipe
    from tacit.recipe.complaint import key_anywhere, keys_of

    return key_anywhere(name, keys_of(Recipe))


def grid_of(texts: Sequence[str]) -> dict[str, list[Any]]:
    """{key: its values}, of `section.key=a,b,c`. Raises: InputError."""
    from tacit.recipe.changes import parsed_changes

    return parsed_changes(texts)


def one_each(texts: Sequence[str]) -> dict[str, Any]:
    """{key: its value}. Raises: InputError for what sets no key, and for several values."""
    grid = grid_of(texts)
    for key, values in grid.items():
        if len(values) > 1:
            raise InputError(
                f"--set {key} has {len(values)} values, of which `tacit train` makes a run each; give one here, or "
                'quote a text with commas: "a, b".'
            )
    return {key: value for key, (value,) in grid.items()}


def changed_options(given: Mapping[str, Any], texts: Sequence[str], command: str) -> dict[str, Any]:
    """The options of a command with each `key=value`, one value a key; `key=` leaves an option out.

    given: all that there are, by name. Raises: InputError for a key that is none of them, for what sets no key, and for
    several values.
    """
    changes = one_each(texts)
    for key in changes:
        if key not in given:
            meant = get_close_matches(key, given, n=1)
            way_out = f"did you mean {meant[0]}?" if meant else "remove it or mend its spelling"
            raise InputError(f"the key '{key}' is unknown; {way_out} (`{command}` has {', '.join(sorted(given))}).")
    changed = {**given, **changes}
    return {key: value for key, value in changed.items() if value is not None}
