"""The bar of a long command: what is done, of how many, since when and for how long still."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tacit.cli.console import complaints


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
