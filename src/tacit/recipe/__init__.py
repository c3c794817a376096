"""One experiment as a file: TOML in, a frozen value, TOML out.

`sections.py` has every key with its default and its reason, `experiment.py` the whole and what it means.
"""

from tacit.recipe.experiment import Recipe

__all__ = ["Recipe"]
