"""Every mechanism by its one name: what may be said of it, and how its strategy is made; a file for each.

Recipes, `tacit design`, `tacit account`, plans, pages and contract tests go through MECHANISMS; a factorization of
one's own is a file and a line in `mechanisms.py`, or a recipe's `name = "package.module:MECHANISM"`.
What searches for a design is imported by the function that asks for it: most who read the catalogue design nothing.
"""

from tacit.design.catalogue.mechanisms import MECHANISMS, chosen, mechanism_named

__all__ = ["MECHANISMS", "chosen", "mechanism_named"]
