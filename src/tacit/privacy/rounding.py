"""Figures as people read them: rounded, and never in favour of the guarantee."""

import math
from decimal import ROUND_CEILING, Context


def rounded_up(figure: float, digits: int = 4) -> str:
    """So many significant digits, never below the figure: a guarantee is not to look better than it is."""
    if math.isinf(figure):
        return "infinite"
    # Its own last bits may lie above what it stands for: 0.5 computed as 0.5000000000000001 is shown as 0.5.
    kept = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(figure * (1 - 1e-12))
    return f"{float(kept):.{digits}g}"
