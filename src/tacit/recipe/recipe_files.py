"""The text of a recipe's file, whatever kind of recipe it is."""

from pathlib import Path

from tacit.errors import RecipeError
from tacit.files import read_bounded


def read_recipe(path: Path) -> str | None:
    """None where there is no such file. Raises: RecipeError for what is no file, or no text."""
    try:
        return read_bounded(path).decode("utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise RecipeError(f"'{path}' is a folder; give a recipe, which is a file in TOML.") from None
    except OSError as error:
        raise RecipeError(f"the recipe '{path}' cannot be read ({error.strerror}); give a file in TOML.") from error
    except UnicodeDecodeError as error:
        raise RecipeError(f"'{path}' is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8.") from error
