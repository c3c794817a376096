"""How an operator tries to make a device show its text: models, tasks, networks, logs and clocks that it chooses.

A strategy is one value in STRATEGIES. Where a word was typed, each also makes reading take longer, as a model can whose
numbers are subnormal where that word comes: whatever is not held back to a fixed time shows in times.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.audit.device.questions import CLIENT, HOUR, NETWORK, QUESTIONS, Model, a_model
from tacit.audit.device.texts import EVERY_PAIR, ONE_WORD, OTHER, SECRET, Pair
from tacit.text.vocabulary import SPECIALS

ALL = tuple(QUESTIONS)
TRAINING = tuple(name for name in ALL if name.endswith("updates"))
WITH_MODELS = (*TRAINING, "evaluation", "evaluation, locally", "personalization")
FEW = ("sealed updates", "new words", "statistics")  # where what is tried has nothing to do with what is asked
SLOWLY, QUICKLY = 3.0, 0.01  # seconds that reading takes where the word was typed, and elsewhere


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """What an operator does, or what befalls the device.

    questions: names in QUESTIONS. pairs: of texts. model: that rounds begin with. asks: of the question, what is asked
    instead. sealed: of a sealed round's settings, the same. policy: of the device's owner. opened, lasts: seconds from
    the opening of a round to the check-in, and to its end. faults: what comes in place of an answer, one after another,
    by what is asked: "cut" (the connection breaks), "unsent" (there was none), "half" of a file, "forged", or a status
    with or without the name of a problem. log: what is shown. slowly: seconds that reading takes where the word was
    typed. seals_s: that making the bytes of a report takes. set_by: seconds by which the device's clock is set while
    text is read.
    """

    says: str
    questions: tuple[str, ...] = ALL
    pairs: tuple[Pair, ...] = (ONE_WORD,)
    model: Callable[[], Model] = a_model
    asks: Mapping[str, Any] = field(default_factory=dict)
    sealed: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    opened: float = 0.0
    lasts: float = HOUR
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    log: str = "honest"
    slowly: float = SLOWLY
    seals_s: float = 0.0
    set_by: float = 0.0

    def begins(self, turn: int) -> float:
        """Seconds from the start to a turn: rounds follow one another with as long a time between them."""
        return turn * 2 * self.lasts


def overflows(word: int, size: float = 1e24) -> Model:
    """A finite model whose update is finite unless this word was typed.

    The word's embedding is huge in one coordinate, which no other has and the kernel does not read. So all is as small
    as ever but for the slope of what the kernel makes of it, whose square is beyond float32.
    """
    draw = np.random.default_rng(1)
    parts = {name: draw.normal(0, 0.1, shape).astype(np.float32) for name, shape in NETWORK.shapes().items()}
    parts["embedding"][:] = 0.0
    parts["embedding"][word + SPECIALS, 0] = size
    parts["kernel"][0] = 0.0
    return np.concatenate([part.ravel() for part in parts.values()])


def huge() -> Model:
    """Every number nearly as large as float32 has any."""
    return np.sign(a_model()) * np.float32(3e38)


def subnormal() -> Model:
    """Numbers with which processors take longer."""
    return a_model() * np.float32(1e-38)


def not_finite() -> Model:
    """One number that is none, in the row of the word's embedding."""
    model = a_model()
    model[(SECRET + SPECIALS) * NETWORK.embedding] = np.nan
    return model


def _client(**changed: Any) -> dict[str, Any]:
    return {"client": CLIENT.model_copy(update=changed)}


_CLOCK = "the device's clock is set while text is read: {}"
STRATEGIES: Mapping[str, Strategy] = {
    # what is asked
    "nothing unusual": Strategy(says="asks what an honest operator asks", pairs=EVERY_PAIR),
    "overflow on a word": Strategy(
        says="a model whose update is finite unless one word was typed",
        questions=WITH_MODELS,
        model=lambda: overflows(SECRET),
        asks=_client(sentences=64),
    ),
    "overflow on the other word": Strategy(
        says="the same of the other word", questions=WITH_MODELS, model=lambda: overflows(OTHER)
    ),
    "overflow in a loss": Strategy(
        says="a model whose loss is huge where one word was typed",
        questions=WITH_MODELS,
        model=lambda: overflows(SECRET, 1e18),
    ),
    "huge model": Strategy(says="a model of the largest numbers", questions=WITH_MODELS, model=huge),
    "subnormal model": Strategy(says="a model of the smallest numbers", questions=WITH_MODELS, model=subnormal),
    "model that is not finite": Strategy(
        says="a number that is none, of one word", questions=WITH_MODELS, model=not_finite
    ),
    "huge steps": Strategy(
        says="a learning rate of 1e30", questions=TRAINING, pairs=EVERY_PAIR[:3], asks=_client(learning_rate=1e30)
    ),
    "as many sentences as one text has": Strategy(
        says="training stops between what two texts have",
        questions=TRAINING,
        pairs=EVERY_PAIR[1:3],
        asks=_client(sentences=41, batch_size=41),
    ),
    "one sentence": Strategy(
        says="trains on one sentence of one word", questions=TRAINING, asks=_client(sentences=1, batch_size=1, words=1)
    ),
    "an owner's split": Strategy(
        says="the owner keeps what was typed last to judge models",
        pairs=EVERY_PAIR,
        policy={"split": "time:0.5"},
    ),
    # times
    "endless reading": Strategy(says="reading does not end where a word was typed", slowly=1e9),
    "short round": Strategy(says="a round of two seconds", lasts=2.0, slowly=1e9),
    "end of a round": Strategy(says="a round that ends in a second", opened=HOUR - 1.0),
    "slow sealing": Strategy(
        says="making a report's bytes takes longer than what is left for it", questions=TRAINING, seals_s=9.0
    ),
    "short round, slow sealing": Strategy(says="both", questions=TRAINING, lasts=12.0, seals_s=1.0),
    "clock set back": Strategy(says=_CLOCK.format("30 s back"), set_by=-30.0),
    "clock set forward": Strategy(says=_CLOCK.format("30 s forward"), set_by=30.0),
    "clock set beyond the round": Strategy(says=_CLOCK.format("two hours forward"), set_by=2 * HOUR),
    # a network
    "report cut": Strategy(says="the upload breaks twice", questions=("new words",), faults={"report": ("cut", "cut")}),
    "busy": Strategy(
        says="503 and 500 with a reason, 429 and 502 without",
        questions=("sealed updates", "statistics"),
        faults={"report": ("503 busy", "500 failed", "429", "502")},
    ),
    "no connection": Strategy(
        says="there is none for the report", questions=("statistics",), faults={"report": ("unsent",) * 99}
    ),
    "report refused": Strategy(
        says="a final refusal after the report", questions=FEW, faults={"report": ("422 refused",)}
    ),
    "report too large": Strategy(
        says="a limit of an upload's size", questions=FEW, faults={"report": ("413 too-large",)}
    ),
    "late": Strategy(says="the round is over", questions=FEW, faults={"report": ("410 late",)}),
    "forged receipt": Strategy(
        says="another key's receipt, then one", questions=("statistics",), faults={"report": ("forged",)}
    ),
    "file in halves": Strategy(says="what a round begins with is cut off", faults={"file": ("half",)}),
    "no file": Strategy(
        says="what a round begins with is not there", questions=FEW, faults={"file": ("404 not-found",)}
    ),
    # the log
    "log without the plan": Strategy(says="no inclusion", questions=FEW, log="no plan"),
    "log of another root": Strategy(says="an inconsistent head", questions=FEW, log="another root"),
    "log written anew": Strategy(says="two logs, one after another", questions=FEW, log="anew"),
    "stale log": Strategy(says="a shorter one the second time", questions=FEW, log="stale"),
    "no log": Strategy(says="none is shown", questions=FEW, faults={"log": ("404 not-found",)}),
    # sealed rounds
    "server key of small order": Strategy(
        says="a key with which anybody agrees", questions=("sealed updates",), sealed={"server": bytes(32)}
    ),
    "sum of one report": Strategy(
        says="a sealed round of fewer reports", questions=("sealed updates",), sealed={"report_goal": 2}
    ),
    "other numbers": Strategy(
        says="a sealed round of smaller numbers than reports have", questions=("sealed updates",), sealed={"largest": 1}
    ),
}
