"""What a round of training asks of a device, as a document, and what a report of it may be."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from tacit.federation.report_shape import ReportShape, encoded_shape, update_shape
from tacit.protocol.fields import MOST_PARAMETERS, Digest, Document, Positive, QuestionDocument, Real, Several

if TYPE_CHECKING:
    from tacit.privacy.encoding import Encoding


class Training(Document):
    """What a device computes: the fields of `training.client.ClientTraining`."""

    epochs: Annotated[int, Field(ge=1, le=100_000)]
    batch_size: Annotated[int, Field(ge=1, le=100_000)]
    learning_rate: Positive
    sentences: Annotated[int, Field(ge=1, le=100_000)]
    words: Annotated[int, Field(ge=1, le=100_000)]
    proximal: Real
    precision: Literal["float32", "bfloat16"]


class EncodedSum(Document):
    """How updates become integers: the fields of `privacy.encoding.Encoding`, with what is a round's own."""

    parameters: Annotated[int, Field(ge=1, le=MOST_PARAMETERS)]
    dimension: Annotated[int, Field(ge=1, le=2 * MOST_PARAMETERS)]
    clip_norm: Positive
    scale: Positive
    report_goal: Several
    sigmas: Positive
    margin: Annotated[int, Field(ge=0, le=1 << 32)]
    margin_each: Annotated[int, Field(ge=0, le=1 << 32)]
    signs: Digest  # 32 bytes: the public seed of the rotation
    length: Annotated[int, Field(ge=1, le=2 * MOST_PARAMETERS + 100)]  # words of a report
    threshold: Several

    def encoding(self) -> "Encoding":
        """The numbers alone. Raises: InputError for numbers that make no encoding."""
        from tacit.privacy.encoding import Encoding  # loaded where something is encoded

        names = Encoding.__dataclass_fields__
        return Encoding(**{name: getattr(self, name) for name in names})


class TrainDocument(QuestionDocument):
    """An update of the model that the round begins with, clipped; the content is the model."""

    kind: Literal["train"]
    parameters: Annotated[int, Field(ge=1, le=MOST_PARAMETERS)]  # of the model
    client: Training
    clip_norm: Positive
    clip_estimate: Positive | None  # say in one bit whether your update was no longer than this; null: not asked
    loss_bound: Positive | None  # send your training loss, clipped to [0, this], less half of it; null: not asked
    encoded: EncodedSum | None  # null: updates in clear

    @model_validator(mode="after")
    def _consistent(self) -> "TrainDocument":
        if self.encoded is not None and self.encoded.parameters != self.parameters:
            raise ValueError("the encoding is for another number of parameters than the model has")
        return self

    @property
    def whole(self) -> bool:
        """See QuestionDocument: encoded updates are."""
        return self.encoded is not None

    @property
    def margin(self) -> int:
        """See QuestionDocument."""
        return 0 if self.encoded is None else self.encoded.margin_each

    @property
    def signs(self) -> bytes:
        """See QuestionDocument."""
        return b"" if self.encoded is None else bytes.fromhex(self.encoded.signs)

    def shape(self) -> ReportShape:
        """See QuestionDocument."""
        if self.encoded is not None:
            encoding, clips = self.encoded.encoding(), self.clip_norm
            return encoded_shape(self.encoded.length, encoding, clip_norm=clips, clip_estimate=self.clip_estimate)
        return update_shape(
            self.parameters, clip_norm=self.clip_norm, clip_estimate=self.clip_estimate, loss_bound=self.loss_bound
        )


def trained_words(settings: Training) -> int:
    """Words of all epochs behind one report, with those that fill sentences and batches up: time and memory follow."""
    batches = -(-settings.sentences // settings.batch_size)
    return settings.epochs * batches * settings.batch_size * (settings.words + 1)
