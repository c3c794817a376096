"""What a person sees while a run trains: round, accuracy, clients a second, zCDP and epsilon so far, time left.

On a terminal one line that moves; elsewhere (a log file, CI) a line per evaluation.
"""

import math
from types import TracebackType
from typing import Self

from tacit.cli.bars import counting_bar
from tacit.cli.console import complaints
from tacit.privacy.rounding import rounded_up
from tacit.progress import Advanced, Evaluated, Event, StageBegan, Warned


class TrainingProgress:
    """Listens to the events of training and draws them."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._accuracy, self._total = float("nan"), 0
        self._figures: dict[str, float] = {}
        self._bar = counting_bar(quiet=quiet, says=True)
        self._task = self._bar.add_task("training", total=None, shown="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, event: Event) -> None:
        match event:
            case StageBegan() if event.total is not None:
                self._total = event.total or 0
                self._bar.update(self._task, total=event.total, completed=event.done)
            case Advanced():
                self._figures |= event.figures
                self._bar.update(self._task, completed=event.done, shown=self._line())
            case Evaluated():
                self._accuracy = event.metrics["top1_accuracy"]
                self._bar.update(self._task, shown=self._line())
                if self._bar.disable and not self._quiet:
                    complaints.print(f"round {event.rounds}/{self._total} ({event.split}): {self._line()}")
            case Warned():
                complaints.print(f"[bold yellow]warning:[/] {event.message}", soft_wrap=True)
            case _:
                pass

    def _line(self) -> str:
        shown = [f"accuracy {self._accuracy:.2%}"]
        if "clients_per_second" in self._figures:
            shown.append(f"{self._figures['clients_per_second']:.1f} clients/s")
        if math.isinf(self._figures.get("zcdp", 0.0)):
            shown.append("NON-PRIVATE")
        elif "zcdp" in self._figures:
            price = rounded_up(self._figures["zcdp"]), rounded_up(self._figures["epsilon"])
            shown.append("zCDP {}  epsilon {}".format(*price))
        if "clip_estimate" in self._figures:
            now, estimate = self._figures["clip_norm"], self._figures["clip_estimate"]
            shown.append(f"clip norm {now:.3g} (estimate {estimate:.3g})")
        return "  ".join(shown)
