"""The bar of a long command: what is done, of how many, since when and for how long still."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tacit.cli.console import complaints
from tacit.progress import Advanced, Event, StageBegan


@contextmanager
def import_bar(*, shown: bool) -> Iterator[Callable[[Event], None]]:
    """A bar of clients read and words, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=complaints, transient=True, disable=not (shown and complaints.is_terminal)) as bar:
        task = bar.add_task("counting and reading", total=None, words="")

        def listen(event: Event) -> None:
            if isinstance(event, StageBegan):
                bar.update(task, description=event.stage, total=event.total)
            elif isinstance(event, Advanced):
                words = f"{event.figures['words']:,.0f} words" if "words" in event.figures else ""
                bar.update(task, completed=event.done, words=words)

        yield listen


def counting_bar(*, quiet: bool, says: bool = False, left: str = "left") -> Progress:
    """A bar on standard error that counts; disabled when quiet or where no terminal shows it.

    says: its tasks have a field `shown`, plain text that stands behind the count.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *([TextColumn("{task.fields[shown]}", markup=False)] if says else []),
        TimeElapsedColumn(),
        TextColumn(left),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=complaints,
        disable=quiet or not complaints.is_terminal,
    )
