"""From clients' reports to their sum: what each may contribute (`clipping.py`), and the one way in which all is added.

Whoever sums reports does it by an `Aggregation`, be it a core, a cluster's worker or a server among several.
"""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.aggregation.sums import Aggregation, Counted, CountSum, FloatSum, ReportSum, WordSum, merged
else:
    __getattr__ = late(
        __name__,
        dict.fromkeys(("Aggregation", "CountSum", "Counted", "FloatSum", "ReportSum", "WordSum", "merged"), "sums"),
    )

__all__ = ["Aggregation", "CountSum", "Counted", "FloatSum", "ReportSum", "WordSum", "merged"]
