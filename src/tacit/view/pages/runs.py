"""All runs: live state, the answer first, accuracy beside what is free, epsilon; to search, sort and choose from."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from tacit.view.mixtures import MixtureRow, mixtures
from tacit.view.rows import Row
from tacit.view.shown import Shown, View

PER_PAGE = 100
ORDERS: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "changed": ("last change", lambda row: -row.changed),
    "name": ("name", lambda row: row.name.lower()),
    "kind": ("kind", lambda row: row.kind),
    "state": ("state", lambda row: row.state),
    "epsilon": ("epsilon", lambda row: float("inf") if row.epsilon is None else row.epsilon),
    "accuracy": ("accuracy", lambda row: 1.0 if row.accuracy is None else -row.accuracy),
}


def page(view: View, request: Request) -> Shown:
    """`?search=` words that name, kind, state, place or answer have; `?sort=` one of ORDERS; `?page=` from 1 on."""
    asked = request.query_params
    mark = view.changes.mark("")  # before the rows are read: what is written meanwhile is told
    rows, waiting = view.rows.all()
    left_out = view.folders.left_out
    words = asked.get("search", "").lower().split()[:20]
    found = [row for row in rows if all(word in _text(row) for word in words)]
    order = asked.get("sort", "changed")
    order = order if order in ORDERS else "changed"
    found.sort(key=ORDERS[order][1])
    pages = max(1, -(-len(found) // PER_PAGE))
    number = asked.get("page", "1")
    at = min(max(int(number), 1), pages) if number.isascii() and number.isdigit() and len(number) < 9 else 1
    mixed = [each for each in mixtures(view.folders, [row.place for row in rows]) if _has(each, words)]
    shown = found[(at - 1) * PER_PAGE : at * PER_PAGE]
    return Shown(
        template="runs",
        title="Runs",
        values={
            "rows": shown,
            "mixtures": mixed,
            "found": len(found),
            "all": len(rows),
            "waiting": waiting,
            "left_out": left_out,
            "search": asked.get("search", "")[:200],
            "order": order,
            "orders": {name: title for name, (title, _) in ORDERS.items()},
            "at": at,
            "pages": pages,
            "mark": mark,
            "roots": [str(root) for root in view.folders.roots],
        },
        record={
            "runs": [row.to_record() for row in found],
            "mixtures": [each.to_record() for each in mixed],
            "waiting": waiting,
            "mark": mark,
        },
    )


def _has(mixture: MixtureRow, words: list[str]) -> bool:
    text = " ".join(("mixture", mixture.name, mixture.place, mixture.says)).lower()
    return all(word in text for word in words)


def _text(row: Row) -> str:
    return " ".join((row.name, row.kind, row.state, row.place, row.answer, *row.labels)).lower()
