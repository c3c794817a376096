"""Runs side by side: curves over each other, prices at one delta, and what was asked differently."""

from starlette.requests import Request

from tacit.errors import InputError
from tacit.federation.kinds import KINDS, loaded
from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Table
from tacit.reports.comparison import EXACT, MOST, comparison
from tacit.reports.figure import HUES, Axis, Figure, Line, Panel
from tacit.reports.summary import RunSummary
from tacit.runs import TrainingMetadata
from tacit.view.looks import opened_to_read
from tacit.view.rows import answer
from tacit.view.shown import Shown, View


def page(view: View, request: Request) -> Shown:
    """`?run=` the places, twice or more. Runs that train are compared as `tacit compare` does, others by their answers.

    Raises: InputError for fewer than two, or too many.
    """
    places = list(dict.fromkeys(request.query_params.getlist("run")))
    if not 2 <= len(places) <= MOST:
        raise InputError(f"{len(places)} runs were chosen, and 2 to {MOST} can be laid side by side; choose so many.")
    paths = [view.folders.folder(place) for place in places]
    summaries = [_summary(view, path) for path in paths]
    training = [each for each in summaries if each is not None]
    if len(training) == len(paths):
        blocks = _of_training(view, training)
    else:
        looks = [view.looks.look(path) for path in paths]
        rows = [
            (path.name, look.glance.kind, answer(look.page.title, look.page.blocks) if look.page else look.why)
            for path, look in zip(paths, looks, strict=True)
        ]
        blocks = [Table(tuple(rows), ("run", "kind", "what it says"))]
        blocks.append(Paragraph("Curves are laid over each other where all runs train.", soft=True))
    chosen = [(place, path.name) for place, path in zip(places, paths, strict=True)]
    return Shown(
        template="compare",
        title=f"{len(places)} runs side by side",
        values={"blocks": blocks, "chosen": chosen},
        record={"runs": places},
    )


def _summary(view: View, path: object) -> RunSummary | None:
    """Of a run that trains, with what may be shown of it; None of another kind."""
    from tacit.reports.train_record import summary_from

    with opened_to_read(path) as run:  # type: ignore[arg-type]
        if not isinstance(run.metadata, TrainingMetadata):
            return None
        made_by = KINDS[run.kind].records
        assert made_by is not None  # a run that trains may be read at any time
        records = loaded(made_by)(run)
        return summary_from(records.exact if view.simulation else records.released)


def _of_training(view: View, summaries: list[RunSummary]) -> list[Block]:
    """What `tacit compare` says; without exact numbers what is left of it, and the price over rounds."""
    if view.simulation:
        exact = comparison(summaries)
        return [FigureOf(exact.figure), *exact.blocks()]
    blocks = [block for block in comparison(summaries).blocks() if not isinstance(block, Labels)]
    found: list[Block] = [FigureOf(_price(summaries))]
    skipping = False
    for block in blocks:
        if isinstance(block, Heading):
            skipping = block.text in EXACT
        if not skipping:
            found.append(block)
    return [
        *found,
        Paragraph("Accuracies are exact numbers of clients' text; `tacit view --simulation` shows them.", soft=True),
    ]


def _price(summaries: list[RunSummary]) -> Figure:
    """Epsilon spent over rounds, of all."""
    marks = tuple(
        Line(
            x=[each.rounds for each in summary.spent],
            y=[each.epsilon for each in summary.spent],
            label=summary.name,
            hue=number % HUES,
        )
        for number, summary in enumerate(summaries)
    )
    return Figure(
        name="price",
        title="Epsilon spent over rounds, each at its own delta",
        alt=f"Epsilon spent by {', '.join(each.name for each in summaries)}.",
        panels=(Panel(marks=marks, x=Axis("rounds", whole=True), y=Axis("epsilon", low=0)),),
    )
