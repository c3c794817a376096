"""Which settings of a tuning are told apart from the chosen one, by the clients and the seeds that judged them.

The chosen setting has the best mean score. Of several settings that are equally good it is the luckiest, so its lead
says nothing where the interval of a difference has zero in it. Intervals are those of `evaluation/crossed.py`: over
validation clients, and over trials where a setting has at least three. None is adjusted for how many were compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.comparison_models import MODEL
from tacit.planning.tuning import METRIC, Choice, Measured, Setting, Trial
from tacit.privacy.strategy import Record

if TYPE_CHECKING:  # SciPy would come with it
    from tacit.evaluation.crossed import Crossed


@dataclass(frozen=True, kw_only=True)
class ComparedSetting:
    """A setting without a failed trial: its mean score, and how far it is from the chosen one's.

    interval: of the score; against_chosen: of the score less the chosen one's. Both None where the clients of a trial
    were not counted one by one, or other words were; `against_chosen` also of the chosen one.
    """

    setting: Setting
    trials: int
    score: float
    chosen: bool
    interval: "Crossed | None" = None
    against_chosen: "Crossed | None" = None

    @property
    def told_apart(self) -> bool | None:
        """Whether the difference to the chosen one is more than chance; None where it is not known."""
        found = self.against_chosen
        return None if found is None else not found.interval.low <= 0 <= found.interval.high

    def to_record(self) -> Record:
        """Plain values for JSON; an interval is (least, value, most)."""
        return {
            "server_learning_rate": self.setting.server_learning_rate,
            "quantile": self.setting.quantile,
            "trials": self.trials,
            "score": self.score,
            "chosen": self.chosen,
            "interval": _ends(self.interval),
            "against_chosen": _ends(self.against_chosen),
            "told_apart": self.told_apart,
            "covers": None if self.interval is None else self.interval.covers,
            "clients": None if self.interval is None else self.interval.clients,
        }


def compared(trials: Sequence[Trial], choice: Choice | None, by: Measured) -> tuple[ComparedSetting, ...]:
    """Every setting that could have been chosen, in rising order; none where nothing was chosen."""
    if choice is None:
        return ()
    of: dict[Setting, list[Trial]] = {}
    for each in trials:
        of.setdefault(each.setting, []).append(each)
    able = {setting: tries for setting, tries in sorted(of.items()) if all(each.scored for each in tries)}
    best = able[choice.setting]
    return tuple(
        ComparedSetting(
            setting=setting,
            trials=len(tries),
            score=sum(each.score for each in tries) / len(tries),
            chosen=setting == choice.setting,
            interval=_interval(tries, by),
            against_chosen=None if setting == choice.setting else _difference(tries, best, by),
        )
        for setting, tries in able.items()
    )


def _interval(tries: Sequence[Trial], by: Measured) -> "Crossed | None":
    """Of their mean score."""
    from tacit.evaluation.crossed import crossed_interval

    found = _counted(tries, by)
    return None if found is None else crossed_interval(*found)


def _difference(tries: Sequence[Trial], best: Sequence[Trial], by: Measured) -> "Crossed | None":
    """Client by client, trials of both in pairs: what a pair has in common is the clients alone."""
    from tacit.evaluation.crossed import crossed_interval

    pairs = min(len(tries), len(best))
    found = _counted([*tries[:pairs], *best[:pairs]], by)
    if found is None:
        return None
    sums, words = found
    return crossed_interval(sums[:pairs] - sums[pairs:], words)


def _counted(tries: Sequence[Trial], by: Measured) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """((trials, clients) sums of the measure, (clients,) words); None where no interval can be made of them."""
    counted = [each.validated for each in tries if each.validated is not None]
    if len(counted) < len(tries) or len({each.predicted for each in counted}) > 1:
        return None
    found = [each.sums.get(MODEL, {}).get(METRIC[by]) for each in counted]
    words = np.array(counted[0].predicted, np.float64)
    if None in found or words.size < 2 or not words.sum():
        return None
    sums = np.array(found, np.float64)
    return (sums, words) if np.isfinite(sums).all() else None


def _ends(found: "Crossed | None") -> list[float] | None:
    return None if found is None else [found.interval.low, found.interval.value, found.interval.high]
