"""What a person sees while a run trains: round, accuracy, clients a second, zCDP and epsilon so far, time left.

On a terminal one line that moves; elsewhere (a log file, CI) a line per evaluation.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from tacit.cli.bars import counting_bar
from tacit.cli.console import complaints
from tacit.privacy import Guarantee, Participation
from tacit.privacy.rounding import rounded_up
from tacit.runs import Run
from tacit.runs.diagnostics import clipping_failure

if TYPE_CHECKING:  # JAX would come with it
    from tacit.training import RoundOutcome


class TrainingProgress:
    """A Watcher that draws. Privacy so far is that of the rounds released, under what happened.

    `planned` is of all that the run releases together: `Recipe.guarantee`.
    """

    def __init__(self, run: Run, planned: Guarantee, delta: float, *, quiet: bool = False) -> None:
        self._planned, self._delta, self._quiet = planned, delta, quiet
        rounds, clients = run.participations()
        self._rounds: list[NDArray[np.int64]] = [rounds]
        self._clients: list[NDArray[np.int64]] = [clients]
        self._accuracy = float("nan")
        self._seconds, self._trained = 0.0, 0
        self._done = run.rounds_done
        self._measures = [row.measures for row in run.rounds()]
        self._warned: set[str] = set()
        self._bar = counting_bar(quiet=quiet, says=True)
        total = planned.participation.rounds
        self._task = self._bar.add_task("training", total=total, completed=self._done, shown="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def round_done(self, outcome: "RoundOutcome") -> None:
        """Count the round and show its price."""
        self._rounds.append(np.full(len(outcome.clients), outcome.round))
        self._clients.append(outcome.clients)
        self._done = outcome.round + 1
        self._seconds += outcome.seconds
        self._trained += len(outcome.clients)
        shown = (
            "" if self._bar.disable else self._line(self._done)
        )  # the price of so many rounds is not free to compute
        self._bar.update(self._task, completed=self._done, shown=shown)
        self._measures.append(outcome.measures)
        self._warn()

    def _warn(self) -> None:
        """Once of each way in which adaptive clipping fails, when it is seen first."""
        failure = clipping_failure(self._measures)
        if failure is not None and failure.name not in self._warned:
            self._warned.add(failure.name)
            complaints.print(f"[bold yellow]warning:[/] {failure.advice}", soft_wrap=True)

    def measured(self, rounds: int, split: str, metrics: dict[str, float]) -> None:
        """Show the accuracy; a line of its own where no bar moves."""
        self._accuracy = metrics["top1_accuracy"]
        if not self._bar.disable:
            self._bar.update(self._task, shown=self._line(self._done))
        elif not self._quiet:
            complaints.print(f"round {rounds}/{self._planned.participation.rounds} ({split}): {self._line(rounds)}")

    def _line(self, rounds: int) -> str:
        speed = self._trained / self._seconds if self._seconds else 0.0
        return f"accuracy {self._accuracy:.2%}  {speed:.1f} clients/s  {self._price(rounds)}{self._clip_norm()}"

    def _clip_norm(self) -> str:
        """Where it is adapted."""
        last = self._measures[-1] if self._measures else {}
        if "clip_estimate" not in last:
            return ""
        return f"  clip norm {last['clip_norm']:.3g} (estimate {last['clip_estimate']:.3g})"

    def _price(self, rounds: int) -> str:
        """Of the first so many rounds: a model is measured while further ones are played."""
        if not self._planned.private:
            return "NON-PRIVATE"
        if rounds == 0:
            return "zCDP 0"
        of_round, clients = np.concatenate(self._rounds), np.concatenate(self._clients)
        happened = Participation.realised(rounds, of_round[of_round < rounds], clients[of_round < rounds])
        spent = self._planned.with_participation(happened)
        return (
            f"zCDP {rounded_up(spent.zcdp)}  epsilon {rounded_up(spent.epsilon(self._delta))} (delta {self._delta:g})"
        )
