"""How reports of one shape are added, by workers and by whoever adds up what those have."""

from tacit.aggregation import FloatSum, ReportSum, WordSum
from tacit.federation.report_shape import LOSS, SHORT, ReportShape


def sums_of(shape: ReportShape) -> ReportSum:
    """The sum of vectors of this shape, with what is asked beside them."""
    vectors = FloatSum(shape.length) if shape.tensor == "update" else WordSum(shape.length)
    return ReportSum(vectors, SHORT in shape.beside, LOSS in shape.beside)
