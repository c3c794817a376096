"""Every mechanism by its one name: what may be said of it, and how its strategy is made; a file for each.

Recipes, `tacit design`, `tacit account`, plans, pages and contract tests go through MECHANISMS; a factorization of
one's own is a file and a line in `table.py`, or `name = "package.module:MECHANISM"` in a recipe (docs/extending.md).
What searches for a design is imported by the function that asks for it: most who read the catalogue design nothing.
"""

from tacit.design.catalogue.table import MECHANISMS, chosen, mechanism_named

__all__ = ["MECHANISMS", "chosen", "mechanism_named"]
