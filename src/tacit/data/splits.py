"""What of a client's text a model may learn from, and what it is judged on: a cut in time, never a random one.

A device fine-tunes on what its owner has typed and is used for what comes next, so test text is later than all text
that was trained on. With a gate there are three parts, train < gate < test: the personalised model is accepted or
rejected on text that it was not trained on, and judged on text that did not choose it.

Sentences of one time (a post, a message) are never parted. A sentence WITHOUT a time could have been typed before or
after any other, so it stays out of every part and is counted; a client none of whose sentences has one is left out too,
unless the cache's own order is declared to be that of typing (`undated="order"`).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal, NamedTuple, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.data.manifest import NO_TIME
from tacit.errors import InputError

Times = NDArray[np.int64]
Rows = NDArray[np.int64]
SplitRule = Literal["time", "count", "date", "last"]


class Unsplit(StrEnum):
    """Why a client has no train and test part; its value is the reason for people."""

    NO_TIME = "no sentence has a time"
    ONE_TIME = "all its sentences have one time"
    NO_TRAIN = "too little text to train on"
    NO_GATE = "too little text for the gate"
    NO_TEST = "too little text to test on"


class Parts(NamedTuple):
    """Which sentences of a client (numbers in the cache, in the order of time) belong to which part."""

    train: Rows
    gate: Rows  # empty without a gate
    test: Rows
    undated: int  # sentences left out because their time is unknown


@dataclass(frozen=True, kw_only=True)
class TemporalSplit:
    """Where test text begins, and how much of the text before it is kept for the gate.

    `time`: the first `value` (a share in (0, 1)) of the sentences come before; cut at the nearest change of time.
    `count`: at most the first `value` sentences come before.
    `date`: what was typed before `value` (seconds since 1970, as `parse` makes of a day in UTC) comes before.
    `last`: at least the last `value` sentences are for test.
    `gate`: share of the text before test, its latest, that is set aside for the gate; 0.0: two parts only.
    """

    rule: SplitRule = "time"
    value: float = 0.8
    gate: float = 0.0
    undated: Literal["drop", "order"] = "drop"
    least: int = 1  # sentences that each part must have, or the client is left out

    def __post_init__(self) -> None:
        if self.rule == "time" and not 0.0 < self.value < 1.0:
            raise InputError(f"split time:{self.value:g} must be a share between 0 and 1, such as time:0.8.")
        if self.rule in ("count", "last") and (not self.value >= 1 or self.value % 1 != 0):
            raise InputError(f"split {self.rule}:{self.value:g} must be a whole number of sentences, at least 1.")
        if not 0.0 <= self.gate < 1.0:
            raise InputError(f"the gate's share {self.gate:g} must be at least 0 and below 1, such as 0.125.")
        if self.least < 1:
            raise InputError(f"least={self.least} sentences must be at least 1.")

    @classmethod
    def parse(cls, text: str, *, gate: float = 0.0, undated: Literal["drop", "order"] = "drop") -> Self:
        """`time:0.8`, `count:100`, `date:2004-06-01` or `last:20`. InputError naming the four otherwise."""
        rule, _, value = text.partition(":")
        try:
            if rule == "date":
                day = datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)
                return cls(rule="date", value=day.timestamp(), gate=gate, undated=undated)
            if rule in get_args(SplitRule):
                return cls(rule=cast(SplitRule, rule), value=float(value), gate=gate, undated=undated)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"split {text!r} cannot be read; {_FORMS}.") from error
        raise InputError(f"split {text!r} is unknown; {_FORMS}.")

    def parts(self, timestamps: Times) -> Parts | Unsplit:
        """Which sentences train, gate and test, given when each was typed (sentences,), in any order; or why none do.

        Every time of train is before every time of gate, and that before every time of test, strictly.
        """
        rows, times = self._in_order(timestamps)
        if not len(rows):
            return Unsplit.NO_TIME
        changes = np.flatnonzero(times[1:] > times[:-1]) + 1  # places where a cut parts no two of one time
        if not len(changes) and self.rule != "date":
            return Unsplit.ONE_TIME
        cut = self._test_begins(times, changes)
        earlier = changes[changes < cut]
        learnt = cut
        if self.gate and len(earlier):
            learnt = _nearest(earlier, (1.0 - self.gate) * cut)
        if learnt < self.least:
            return Unsplit.NO_TRAIN
        if self.gate and cut - learnt < self.least:
            return Unsplit.NO_GATE
        if len(rows) - cut < self.least:
            return Unsplit.NO_TEST
        return Parts(rows[:learnt], rows[learnt:cut], rows[cut:], len(timestamps) - len(rows))

    def _in_order(self, timestamps: Times) -> tuple[Rows, Times]:
        """(sentences that have a place in time, their times), ascending."""
        dated = np.flatnonzero(timestamps != NO_TIME)
        if not len(dated) and self.undated == "order" and self.rule != "date":
            places = np.arange(len(timestamps))
            return places, places
        rows = dated[np.argsort(timestamps[dated], kind="stable")]
        return rows, timestamps[rows]

    def _test_begins(self, times: Times, changes: Rows) -> int:
        """How many sentences come before test."""
        sentences = len(times)
        if self.rule == "date":
            return int(np.searchsorted(times, self.value))
        if self.rule == "time":
            return _nearest(changes, self.value * sentences)
        wanted = self.value if self.rule == "count" else sentences - self.value
        edges = np.concatenate([[0], changes, [sentences]])
        return int(edges[np.searchsorted(edges, max(wanted, 0), side="right") - 1])

    def __str__(self) -> str:
        """As `parse` reads it."""
        if self.rule == "date":
            return f"date:{datetime.fromtimestamp(self.value, UTC):%Y-%m-%d}"
        return f"{self.rule}:{self.value:g}"


def _nearest(changes: Rows, place: float) -> int:
    """The change nearest to a place; the earlier of two as near."""
    return int(changes[np.argmin(np.abs(changes - place))])


_FORMS = "write time:0.8, count:100, date:2004-06-01 or last:20"
