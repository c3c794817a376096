"""Documents that tests begin with: a plan and tasks of a small made-up run."""

from typing import Any

from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.protocol.messages import (
    UNATTESTED,
    AggregationSettings,
    Content,
    Plan,
    RoundTask,
    Separation,
    TrainingPrivacy,
)
from tacit.protocol.train import EncodedSum, TrainDocument, Training

ASSIGNMENT = "0123456789abcdef" * 2
PARAMETERS = 40


def a_plan(**changed: Any) -> Plan:
    privacy = TrainingPrivacy(
        kind="training",
        zcdp=0.5,
        epsilon=4.38,
        delta=1e-6,
        clip_norm=1.5,
        noise_multiplier=7.0,
        mechanism="BLT",
        matrix=None,
        report_goal=10,
        rounds=20,
        max_participations=4,
    )
    aggregation = AggregationSettings(
        kind="plain", threshold=2, keepers=(), boxes=(), corrupt=0, contributors=(), honest=1
    )
    fields = {
        "version": 2,
        "kind": "train",
        "population": "keyboards-es",
        "run": "es-1",
        "recipe": 'name = "niña"\n[deployment]\ndevices = 120_000\n',
        "code": "ab" * 32,
        "privacy": privacy,
        "separation": Separation(rounds=5, timer_seconds=None, clock="start"),
        "aggregation": aggregation,
        "vocabulary": "cd" * 32,
        "attestation": UNATTESTED,
        "enrolment": "none",
    }
    return Plan(**fields | changed)


def a_task(*, encoded: bool = False, asked: bool = False, **changed: Any) -> RoundTask:
    """asked: for the bit on the clip estimate, and for the loss."""
    sums = None
    if encoded:
        found = encoding_within(PARAMETERS, 1.5, 10)
        names = {name: getattr(found, name) for name in Encoding.__dataclass_fields__}
        length = found.dimension + 1 + (1 + digits(found) if asked else 0)
        sums = EncodedSum(**names, signs="ef" * 32, length=length, threshold=5)
    fields = {
        "run": "es-1",
        "plan": "12" * 32,
        "round": 3,
        "attempt": 0,
        "task": "34" * 16,
        "content": Content(sha256="56" * 32, bytes=300, path="/v1/models/" + "56" * 32),
        "asks": TrainDocument(
            kind="train",
            parameters=PARAMETERS,
            client=Training(
                epochs=1, batch_size=16, learning_rate=0.5, sentences=64, words=20, proximal=0.0, precision="float32"
            ),
            clip_norm=1.5,
            clip_estimate=1.0 if asked else None,
            loss_bound=10.0 if asked else None,
            encoded=sums,
        ),
        "sealed": None,
        "opens": 1000.0,
        "deadline": 2000.0,
    }
    return RoundTask(**fields | changed)


def digits(encoding: Encoding) -> int:
    """Of a loss, to the base 2 C_inf + 1: as training.secure_updates counts them."""
    base, rest, count = 2 * encoding.largest + 1, 1 << 16, 0
    while rest:
        rest, count = rest // base, count + 1
    return count
