"""The recipes that come with the package, by their names: `tacit train chat-private` needs no path."""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

_CACHE = re.compile(r'^cache = "(.+)" # made by: (.+)$', re.MULTILINE)


def shipped() -> Mapping[str, str]:
    """The text of each, by its name, in the order of names."""
    found = (files("tacit.recipe") / "shipped").iterdir()
    texts = {each.name: each.read_text(encoding="utf-8") for each in found if each.name.endswith(".toml")}
    return dict(sorted((name.removesuffix(".toml"), text) for name, text in texts.items()))


def named(path: Path) -> str | None:
    """The text of the recipe that is meant where no file is: by its name, with `recipes/` or `.toml` or without."""
    alone = str(path.parent) in (".", "recipes") and path.suffix in ("", ".toml")
    return shipped().get(path.name.removesuffix(".toml")) if alone else None


def caches() -> Mapping[str, str]:
    """The command that makes the cache of a shipped recipe, by the cache's path, as the recipe says beside it."""
    return dict(found for text in shipped().values() for found in _CACHE.findall(text))
