"""What devices are asked to count, as documents, and what a report of it may be. Settings are in the plan."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from tacit.federation.report_layout import MOST_CELLS, MOST_HISTOGRAMS, BoundedLayout, ReportLayout
from tacit.federation.report_shape import ReportShape
from tacit.protocol.fields import MOST_PARAMETERS, Document, Positive, QuestionDocument

MOST_MODELS = 100
MOST_BUCKETS = 1_000
Cells = Annotated[int, Field(ge=2, le=MOST_CELLS)]


class HistogramsDocument(QuestionDocument):
    """One unit in one cell of each histogram."""

    cells: Annotated[tuple[Cells, ...], Field(min_length=1, max_length=MOST_HISTOGRAMS)]  # "no report" is one
    local_epsilon: Positive | None  # answer one of them, randomised; null: count yourself in each

    @model_validator(mode="after")
    def _is_no_more_than_a_report_holds(self) -> "HistogramsDocument":
        if sum(self.cells) > MOST_CELLS:
            raise ValueError(f"all histograms together have more than {MOST_CELLS:,} cells")
        return self

    def shape(self) -> ReportShape:
        """See QuestionDocument."""
        return ReportLayout(sizes=self.cells, local_epsilon=self.local_epsilon).shape


class CountDocument(HistogramsDocument):
    """Statistics of the device's text, which the plan names; the content is no model at all.

    Of sums `cells` are those of each sum, and a device sends whole numbers in place of units.
    """

    kind: Literal["count"]
    # of each sum, the L2 norm that a device's numbers stay within; null: histograms
    norms: Annotated[tuple[Positive, ...], Field(max_length=MOST_HISTOGRAMS)] | None

    @property
    def sums(self) -> BoundedLayout | None:
        """How a report of sums lies in a vector; None of histograms. Raises: InputError for norms that are none."""
        return None if self.norms is None else BoundedLayout(sizes=self.cells, norms=self.norms)

    def shape(self) -> ReportShape:
        """See QuestionDocument."""
        return super().shape() if self.sums is None else self.sums.shape


class ModelHistogramsDocument(HistogramsDocument):
    """One unit in one cell of each histogram; the content is the models, one after another."""

    parameters: Annotated[
        tuple[Annotated[int, Field(ge=1, le=MOST_PARAMETERS)], ...], Field(min_length=1, max_length=MOST_MODELS)
    ]  # of each model

    @property
    def policies_to_judge(self) -> tuple[dict[str, Any], ...] | None:
        """Each as plain values; None: there are none to be judged."""
        return None


class EvaluateDocument(ModelHistogramsDocument):
    """How well each model predicts the device's text, and what each further one changes against the first."""

    kind: Literal["evaluate"]


class RuleDocument(Document):
    """Fine-tune by the strategy of this place, and use the model where the gate of this level accepts it."""

    strategy: Annotated[int, Field(ge=0, lt=MOST_HISTOGRAMS)]
    level: Annotated[float, Field(gt=0, le=1)]


class PolicyDocument(Document):
    """One rule for each bucket of train tokens; null keeps the global model. Fields of `evaluation.gate.Policy`."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    cuts: Annotated[tuple[Positive, ...], Field(max_length=MOST_BUCKETS)]
    rules: Annotated[tuple[RuleDocument | None, ...], Field(min_length=1, max_length=MOST_BUCKETS + 1)]


class PersonalizeDocument(ModelHistogramsDocument):
    """What fine-tuning the model on the device's own text would change, and what each policy would."""

    kind: Literal["personalize"]
    # judge these; null: they are designed
    policies: Annotated[tuple[PolicyDocument, ...], Field(max_length=100)] | None

    @property
    def policies_to_judge(self) -> tuple[dict[str, Any], ...] | None:
        """See ModelHistogramsDocument."""
        return None if self.policies is None else tuple(each.model_dump() for each in self.policies)
