"""When a training ends before its last round: by a rule of the program's own, or by whoever runs it.

A rule that is given released models and nothing else decides by post-processing: everything that was planned holds. A
number of rounds that depends on what was released is no number that was fixed beforehand, and the realised figures are
of one that was; the statement says which hold (`statements.train`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from jax import Array

from tacit.errors import InputError
from tacit.jobs.train.learner import network_of
from tacit.keyboard.model_folder import TrainedModel
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.run_facts import ENDED
from tacit.statements.train_facts import EXACT, RELEASED
from tacit.text.vocabulary import Vocabulary
from tacit.training import Learner

Looks = Literal["released", "exact"]
LOOKS = (RELEASED, EXACT)


@dataclass(frozen=True)
class RunState:
    """What a rule decides by, after a round that is on disk: what was released, and what was planned."""

    rounds: int  # that are done
    planned_rounds: int
    metrics: Mapping[str, float]  # exact, of the last validation; empty unless the rule said that it looks at them
    _model: Callable[[], TrainedModel]

    @cached_property
    def model(self) -> TrainedModel:
        """The released model after these rounds: to ask it for next words, or to measure it on public text."""
        return self._model()


StopRule = Callable[[RunState], bool]


class Rule(NamedTuple):
    """A rule, and by what it decides."""

    asked: StopRule
    looks_at: Looks


class Stopping:
    """A rule as the rounds ask it; `ended` once it said so."""

    def __init__(self, rule: Rule, run: Run, learner: Learner, recipe: Recipe) -> None:
        self._rule, self._run, self._learner, self._recipe = rule, run, learner, recipe
        self.looks_at, self.ended = rule.looks_at, False

    def __call__(self, rounds: int, model: Array) -> bool:
        """Whether the training ends with the flat model (d,) after so many rounds, fewer than all.

        Raises: what the rule raises; InputError where it answers neither yes nor no.
        """
        state = RunState(
            rounds=rounds,
            planned_rounds=self._recipe.rounds.rounds,
            metrics=self._last_validation() if self.looks_at == EXACT else {},
            _model=lambda: self._released(model),
        )
        answer: Any = self._rule.asked(state)
        if not isinstance(answer, bool) and type(answer).__name__ not in ("bool", "bool_"):
            raise InputError(f"stop= answered {answer!r} after {rounds} rounds; answer True or False.")
        self.ended = bool(answer)
        return self.ended

    def kept(self) -> bool:
        """Whether it said so, which then is on disk. Hold the run's lock."""
        if self.ended:
            note_end(self._run, self.looks_at)
        return self.ended

    def _last_validation(self) -> dict[str, float]:
        found = [each for each in self._run.metrics() if each.split == "validation"]
        last = max((each.step for each in found), default=0)
        return {each.name: each.value for each in found if each.step == last}

    def _released(self, model: Array) -> TrainedModel:
        cache = self._learner.cache
        return TrainedModel(
            network=network_of(self._recipe, cache),
            parameters=self._learner.unravel(model),
            vocabulary=Vocabulary.from_json(cache.vocabulary_json),
            path=self._run.path,
            digest="",
            public_text=None,
        )


def check_rule(stop: StopRule | None, looks_at: Looks) -> None:
    """Raises: InputError for what cannot be asked, or says to look at something else."""
    if looks_at not in LOOKS:
        raise InputError(f"stop_looks_at={looks_at!r} is none of {', '.join(LOOKS)}; say what the rule decides by.")
    if stop is None and looks_at != RELEASED:
        raise InputError(f"stop_looks_at={looks_at!r} is of a rule, and there is none; give stop=, or leave it out.")
    if stop is not None and not callable(stop):
        raise InputError(f"stop={stop!r} cannot be asked; give a function of the run's state that answers yes or no.")


def note_end(run: Run, how: str) -> None:
    """Decided, and on disk: the run has no further round. how: RELEASED, EXACT or BY_HAND. Hold the run's lock."""
    if ENDED not in run.notes:
        run.note(ENDED, how)


def is_ending(run: Run) -> bool:
    """Whether that was decided."""
    return ENDED in run.notes
