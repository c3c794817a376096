"""What a user sees while a job works: the only display, which listens to the events of all jobs.

On a terminal a bar for each stage, which moves; elsewhere (a log file, CI) a line each tenth of a stage, or
after ten seconds without one, and of a stage that is one of many its end alone; with `--json` nothing but
warnings. All of it goes to standard error.
"""

import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tacit.cli.console import complaints, styled
from tacit.cli.interrupts import STOPPED, will_say
from tacit.progress import Advanced, Evaluated, Event, Noted, Progress, StageBegan, StageEnded, Warned
from tacit.records import visible

if TYPE_CHECKING:  # half of what `tacit --help` would load
    from pathlib import Path

    from rich.console import RenderableType
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

TENTHS = 10
PATIENCE = 10.0  # seconds without a line, where no bar moves


def _epsilon(figures: Mapping[str, float]) -> str:
    from tacit.privacy.rounding import rounded_up

    if math.isinf(figures["zcdp"]):
        return "NON-PRIVATE"
    cost = f"zCDP {rounded_up(figures['zcdp'])}"
    if "epsilon" not in figures:
        return cost
    at = f" (delta {figures['delta']:g})" if "delta" in figures else ""
    return f"{cost}  epsilon {rounded_up(figures['epsilon'])}{at}"


def _clip_norm(figures: Mapping[str, float]) -> str:
    return f"clip norm {figures['clip_norm']:.3g} (estimate {figures['clip_estimate']:.3g})"


def _best(figures: Mapping[str, float]) -> str:
    """Of an earlier evaluation, where the last one is not the best."""
    return f" (best {figures['best']:.3f})" if figures["best"] < figures["held_out"] else ""


# What is said of which figures, in this order; a figure that no line names is not shown.
SHOWN: tuple[tuple[frozenset[str], Callable[[Mapping[str, float]], str]], ...] = (
    (frozenset({"top1_accuracy"}), lambda of: f"accuracy {of['top1_accuracy']:.2%}"),
    (frozenset({"clients_per_second"}), lambda of: f"{of['clients_per_second']:.1f} clients/s"),
    (frozenset({"day"}), lambda of: f"day {of['day']:.1f}"),
    (frozenset({"report_goal"}), lambda of: f"report goal {of['report_goal']:,.0f}"),
    (frozenset({"timer_hours"}), lambda of: f"timer {of['timer_hours']:g} hours"),
    (frozenset({"zcdp"}), _epsilon),
    (frozenset({"clip_norm", "clip_estimate"}), _clip_norm),
    (frozenset({"loss"}), lambda of: f"loss {of['loss']:.6f}"),
    (frozenset({"gap"}), lambda of: f"within {of['gap']:.1e} of the least squared error"),
    (frozenset({"training_loss"}), lambda of: f"loss {of['training_loss']:.3f} nats"),
    (frozenset({"held_out", "best"}), lambda of: f"held out {of['held_out']:.3f}{_best(of)}"),
    (frozenset({"prefixes"}), lambda of: f"{of['prefixes']:,.0f} prefixes alive"),
    (frozenset({"users"}), lambda of: f"{of['users']:,.0f} users"),
    (frozenset({"words"}), lambda of: f"{of['words']:,.0f} words"),
)


def shown(figures: Mapping[str, float]) -> str:
    """The figures as one line for people."""
    return "  ".join(said(figures) for names, said in SHOWN if names <= figures.keys())


class Display:
    """A listener that draws; enter it before the first event."""

    def __init__(self, bars: "Bars | None") -> None:
        self._bars = bars  # None: lines
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, int | None] = {}
        self._figures: dict[str, dict[str, float]] = {}
        self._said: dict[str, tuple[int, float]] = {}  # of each stage: tenths, and when
        self._parts: set[str] = set()
        self._done: dict[str, int] = {}

    def __call__(self, event: Event) -> None:
        """Draw one event."""
        match event:
            case StageBegan():
                self._begin(event)
            case Advanced():
                self._advance(event)
            case Evaluated():
                self._evaluated(event)
            case StageEnded() if self._bars is not None and event.stage in self._tasks:
                done = self._done[event.stage]
                self._bars.update(self._tasks[event.stage], total=done, completed=done)  # a total may have been a guess
                self._bars.stop_task(self._tasks[event.stage])
            case StageEnded() if event.stage in self._parts:
                self._line(event.stage)
            case Noted():
                complaints.print(event.message)
            case Warned():
                complaints.print(styled("warning:", "bold yellow"), event.message)
            case _:
                pass

    def _begin(self, event: StageBegan) -> None:
        self._totals[event.stage], self._figures[event.stage] = event.total, {}
        self._said[event.stage] = (self._tenths(event.stage, event.done), time.monotonic())
        self._done[event.stage] = event.done
        if event.part and self._bars is None:
            self._parts.add(event.stage)
        if self._bars is not None:
            shown = complaints.shown(event.opening)
            task = self._bars.add_task(
                complaints.shown(event.stage), total=event.total, completed=event.done, shown=shown
            )
            self._tasks[event.stage] = task
        elif event.opening and not event.part:
            complaints.print(f"{event.stage}: {event.opening}")

    def _advance(self, event: Advanced) -> None:
        if event.stage not in self._totals:
            self._begin(StageBegan(event.stage))
        figures = self._figures[event.stage]
        figures |= event.figures
        self._done[event.stage] = event.done
        if self._bars is not None:
            self._bars.update(self._tasks[event.stage], completed=event.done, shown=shown(figures))
            return
        tenths, when = self._said[event.stage]
        now = self._tenths(event.stage, event.done)
        if event.stage not in self._parts and (now > tenths or time.monotonic() - when > PATIENCE):
            self._said[event.stage] = (now, time.monotonic())
            self._line(event.stage)

    def _line(self, stage: str) -> None:
        """How far a stage is, of how many, and its figures of now."""
        total = self._totals[stage]
        of = "" if total is None else f" of {total:,}"
        complaints.print(f"{stage}: {self._done[stage]:,}{of}  {shown(self._figures[stage])}".rstrip())

    def _evaluated(self, event: Evaluated) -> None:
        """The accuracy stands behind the bar of whatever is under way; a line of its own where no bar moves.

        The figures of that line are the evaluation's alone: later rounds may be done already.
        """
        stage = next(reversed(self._totals), None)
        measured = {name: value for name, value in event.metrics.items() if name == "top1_accuracy"}
        if stage is not None:
            self._figures[stage] |= measured
        if self._bars is not None and stage is not None:
            self._bars.update(self._tasks[stage], shown=shown(self._figures[stage]))
        elif self._bars is None and stage not in self._parts:
            total = self._totals.get(stage) if stage is not None else None
            of = "" if total is None else f"/{total}"
            complaints.print(f"round {event.rounds}{of} ({event.split}): {shown(measured)}")

    def _tenths(self, stage: str, done: int) -> int:
        total = self._totals[stage]
        return done * TENTHS // total if total else 0


def _warnings(event: Event) -> None:
    if isinstance(event, Warned):
        Display(None)(event)


@contextmanager
def display(quiet: bool = False, run: "Path | None" = None) -> Iterator[Progress]:
    """Who listens to a job: bars on a terminal, lines elsewhere; with `quiet`, warnings only.

    run: the folder that `tacit resume` takes, where the job leaves one: Ctrl-C says so.
    """
    place = "" if run is None else str(run)
    will_say(STOPPED, place, f", or `tacit resume {shlex.quote(visible(place))}`")
    try:
        if quiet:
            yield _warnings
        elif not complaints.is_terminal or complaints.is_dumb_terminal:  # which cannot draw over what it drew
            yield Display(None)
        else:
            with _bars() as bars:
                yield Display(bars)
    finally:
        will_say("")


def _bars() -> "Bars":
    """What is done, of how many, since when and for how long still; below, the figures of the stage that is under way.

    All of it in 80 columns, for a name of 24 letters.
    """
    from rich.padding import Padding
    from rich.progress import BarColumn, MofNCompleteColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Stages(Bars):
        """A bar for each stage, and a line for the last."""

        def get_renderables(self) -> "Iterator[RenderableType]":
            yield self.make_tasks_table(self.tasks)
            if self.tasks and (figures := self.tasks[-1].fields["shown"]):
                yield Padding(Text(figures, no_wrap=False, overflow="fold"), (0, 0, 0, 2))

    class Counted(MofNCompleteColumn):
        """Nothing for a stage that counts nothing."""

        def render(self, task: Task) -> Text:
            return super().render(task) if task.completed or task.total else Text()

    class Left(TimeRemainingColumn):
        """Nothing where nobody knows, or nothing is left: "left" alone would be read with the time before it."""

        def render(self, task: Task) -> Text:
            return Text() if task.total is None or task.finished else Text.assemble("left ", super().render(task))

    return Stages(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        Counted(),
        TimeElapsedColumn(),
        Left(),
        console=complaints,
    )
