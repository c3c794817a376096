"""From clients' reports to their sum: what each may contribute (`clipping.py`), and the one way in which all is added.

Whoever sums reports does it by an `Aggregation`, be it a core, a cluster's worker or a server among several.
"""

from tacit.aggregation.sums import Aggregation, Counted, CountSum, FloatSum, ReportSum, WordSum, merged

__all__ = ["Aggregation", "CountSum", "Counted", "FloatSum", "ReportSum", "WordSum", "merged"]
