"""One run: its state, what its report says by now, its statement verified line by line, and what may be taken away."""

from starlette.requests import Request

from tacit.reports.blocks import Block, FigureOf, Labels, Paragraph
from tacit.view.keyboards import has_model
from tacit.view.looks import Look, check_there
from tacit.view.pages.downloads import offered
from tacit.view.rows import answer
from tacit.view.shown import Shown, View

MOST_LINES = 400  # of a verification that stand in a page; those that fail stand first


def page(view: View, request: Request) -> Shown:
    """As its report is, or would be now. Raises: TacitError where there is no run, or it is damaged."""
    place = request.path_params["place"]
    path = view.folders.folder(place)
    mark = view.changes.mark(place)  # before it is read: what is written meanwhile is told
    look = view.looks.look(path)
    title = look.page.title if look.page else path.name
    first = answer(look.page.title, look.page.blocks) if look.page else look.why
    labels, rest = arranged(look, first)
    headline = dict(look.page.headline) if look.page else {}
    return Shown(
        template="run",
        title=title,
        values={
            "place": place,
            "look": look,
            "labels": labels,
            "answer": first,
            "has_model": has_model(path),
            "blocks": rest,
            "mark": mark,
            "files": offered(view, path),
        },
        record={
            "place": place,
            "kind": look.glance.kind,
            "state": look.state.word,
            "steps": look.glance.done,
            "planned": look.glance.planned,
            "answer": first,
            "headline": headline,
            "report": dict(look.page.record) if look.page else None,
            "mark": mark,
        },
    )


def arranged(look: Look, first: str) -> tuple[list[Block], list[Block]]:
    """(the warnings that stand before all else, the rest): the answer once, and figures of a live page with the others;
    what it has without any stands under the answer.

    first: the sentence that stands above.
    """
    found = list(look.page.blocks) if look.page else []
    labels: list[Block] = [each for each in found[:1] if isinstance(each, Labels)]
    rest = found[len(labels) :]
    if rest and isinstance(rest[0], Paragraph) and rest[0].text == first:
        rest = rest[1:]
    if not any(isinstance(each, FigureOf) for each in look.more):
        return labels, [*look.more, *rest]
    drawn = [at for at, each in enumerate(rest) if isinstance(each, FigureOf)]
    end = next((at for at in drawn if at + 1 not in drawn), -1) + 1  # of the first group of figures
    return labels, [*rest[:end], *look.more, *rest[end:]]


def statement(view: View, request: Request) -> Shown:
    """The part of the page that is filled in when the statement is verified."""
    place = request.path_params["place"]
    path = view.folders.folder(place)
    check_there(path)
    checked = view.checks.of(path)
    if checked is None:
        return Shown(
            template="statement",
            title="",
            values={"checked": None, "complaint": ""},
            record={"checked": None},
            status=202,
        )
    lines = [*checked.failing, *(each for each in checked.lines if each.holds)]
    return Shown(
        template="statement",
        title="",
        values={"checked": checked, "lines": lines[:MOST_LINES], "complaint": ""},
        record={
            "holds": not checked.failing,
            "lines": [{"name": each.name, "holds": each.holds, "complaint": each.complaint} for each in lines],
        },
    )
