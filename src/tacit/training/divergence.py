"""Watches a training for a model that gets worse, and ends it where the caller requested that."""

from tacit.progress import Evaluated, Event, Progress, Warned
from tacit.runs import Run
from tacit.runs.diagnostics import worse_than_start
from tacit.statements.accounts import trained

LOSS, SPLIT = "cross_entropy", "validation"


class DivergenceWatch:
    """A listener that tells all that it hears, and warns once of each way in which the model got worse.

    `stops` is true from the evaluation on at which the model did worse than one that knows nothing, where `ends`.
    """

    def __init__(self, run: Run, progress: Progress, *, ends: bool) -> None:
        """ends: whether a drowned run is to stop."""
        self._vocabulary, self._progress, self._ends = trained(run).data.vocabulary_size, progress, ends
        self._losses = {
            metric.step: metric.value for metric in run.metrics() if (metric.split, metric.name) == (SPLIT, LOSS)
        }
        self._warned: set[str] = set()
        self.stops = False

    def __call__(self, event: Event) -> None:
        """Tell the event, then what follows from it."""
        self._progress(event)
        if not isinstance(event, Evaluated) or event.split != SPLIT or LOSS not in event.metrics:
            return
        self._losses[event.rounds] = event.metrics[LOSS]
        found = worse_than_start(self._losses, self._vocabulary)
        if found is None:
            return
        self.stops = self.stops or (found.diverged and self._ends)
        if found.name not in self._warned:
            self._warned.add(found.name)
            self._progress(Warned(found.name, found.meaning))
