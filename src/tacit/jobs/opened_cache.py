"""A cache as jobs are given it: by its path, or open."""

from tacit.data import Cache
from tacit.errors import CacheError
from tacit.files import PathLike, as_path


def open_cache(data: Cache | PathLike) -> Cache:
    """The cache at a path; one that is open already as it is.

    Raises: CacheError where there is none, with the command that makes it where shipped recipes name that very cache.
    """
    if isinstance(data, Cache):
        return data
    path = as_path("data", data)
    if not path.exists():
        from tacit.recipe.shipped_recipes import caches  # recipes are loaded where they are needed

        if (command := caches().get(str(path))) is not None:
            raise CacheError(f"there is no cache at {path} yet; `{command}` makes it.")
    return Cache.open(path)
