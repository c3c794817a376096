"""What a round of training asks of a device, as a document, and what a report of it may be."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from tacit.errors import InputError
from tacit.federation.report_shape import LOSS, SHORT, ReportShape, check_norm, squared_norm
from tacit.protocol.fields import MOST_PARAMETERS, Digest, Document, Positive, QuestionDocument, Real, Several

if TYPE_CHECKING:
    from tacit.privacy.encoding import Encoding

LOSS_STEPS = 1 << 15  # of an encoded loss, to half its bound: training.private_loss.STEPS


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


class TrainingAsked(QuestionDocument):
    """An update of the model that the round begins with, clipped; the content is the model."""

    kind: Literal["train"]
    parameters: Annotated[int, Field(ge=1, le=MOST_PARAMETERS)]  # of the model
    client: Training
    clip_norm: Positive
    clip_estimate: Positive | None  # say in one bit whether your update was no longer than this; null: not asked
    loss_bound: Positive | None  # send your training loss, clipped to [0, this], less half of it; null: not asked
    encoded: EncodedSum | None  # null: updates in clear

    @model_validator(mode="after")
    def _consistent(self) -> "TrainingAsked":
        if self.encoded is not None and self.encoded.parameters != self.parameters:
            raise ValueError("the encoding is for another number of parameters than the model has")
        return self

    @property
    def whole(self) -> bool:
        """See QuestionDocument: encoded updates are."""
        return self.encoded is not None

    def shape(self) -> ReportShape:
        """See QuestionDocument."""
        if self.encoded is not None:
            largest = 2 * self.encoded.encoding().largest
            check = partial(check_words, asks=self)
            return ReportShape(tensor="words", length=self.encoded.length, largest=largest, check=check)
        said = {SHORT: self.clip_estimate, LOSS: self.loss_bound}
        return ReportShape(
            tensor="update",
            length=self.parameters,
            largest=None,
            beside=frozenset(name for name, value in said.items() if value is not None),
            loss_bound=self.loss_bound,
            check=partial(check_norm, clip_norm=self.clip_norm),
        )


def trained_words(asked: Training) -> int:
    """Words of all epochs behind one report, with those that fill sentences and batches up: time and memory follow."""
    batches = -(-asked.sentences // asked.batch_size)
    return asked.epochs * batches * asked.batch_size * (asked.words + 1)


def check_words(words: NDArray[np.uint32], asks: TrainingAsked) -> None:
    """That encoded words (length,) are those of one clipped update, as exactly as their integers tell.

    Coordinates lie in 0..2 C_inf and, less the shift, have squared norm at most `longest_squared`; behind them stand 1,
    a bit where it is asked, the digits of a loss. Raises: InputError.
    """
    assert asks.encoded is not None  # the caller's to know
    encoding = asks.encoded.encoding()
    update, behind = words[: encoding.dimension], [int(each) for each in words[encoding.dimension :]]
    if int(update.max()) > 2 * encoding.largest:
        raise InputError(f"a coordinate of the report is beyond {2 * encoding.largest}.")
    if squared_norm(update, encoding.largest) > encoding.longest_squared:
        raise InputError(f"the report is longer than the clip norm {asks.clip_norm:g} allows.")
    if behind.pop(0) != 1:
        raise InputError("the report does not count as one.")
    if asks.clip_estimate is not None and behind.pop(0) > 1:
        raise InputError("the report's bit on its length is neither 0 nor 1.")
    base = 2 * encoding.largest + 1
    if any(digit >= base for digit in behind):
        raise InputError(f"a digit of the report's loss is beyond {base - 1}.")
    if sum(digit * base**place for place, digit in enumerate(behind)) > 2 * LOSS_STEPS:
        raise InputError("the report's loss is beyond its bound.")
