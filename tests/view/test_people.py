"""Who fares worst: what was released, and exact numbers where they were asked for, never the one as the other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.reports.blocks import Paragraph, Table
from tacit.view.pages.people import EXACT, blocks

SECRET = 0.123456
UNKNOWN = [None, "-inf", "inf"]


def interval(value: float) -> list[float]:
    return [value, value - 0.01, value + 0.01]


def strategy(value: float) -> dict[str, Any]:
    quantiles = {at: interval(value) for at in ("0.1", "0.5")}
    return {"top1_accuracy": {"mean": interval(value), "quantiles": quantiles, "losing": {"0.0": interval(value)}}}


def record(*, released: bool, exact: bool = True) -> dict[str, Any]:
    """Of a run with two ways and a gate."""
    baseline = {"quantiles": {"0.1": interval(SECRET)}, "worst_decile": interval(SECRET)}
    return {
        "drawn": {"metric": "top1_accuracy"},
        "released": {
            "baseline_quantiles": {"0.1": interval(0.05)},
            "strategies": {"one": strategy(0.25), "two": strategy(0.5)},
            "policies": [{"name": "gate", "losing": {"0.0": interval(0.07)}}],
        }
        if released
        else None,
        "simulation_only": {
            "baseline": {"top1_accuracy": baseline},
            "strategies": {"one": strategy(SECRET), "two": strategy(SECRET)},
            "policies": [{"name": "gate", "harmed": interval(SECRET)}],
        }
        if exact
        else None,
    }


def text(found: list[Any]) -> str:
    said = [each.text for each in found if isinstance(each, Paragraph)]
    return " ".join(
        [*said, *(cell for each in found if isinstance(each, Table) for row in (each.head, *each.rows) for cell in row)]
    )


def test_what_was_released_stands_beside_the_gate() -> None:
    shown = blocks(None, record(released=True), simulation=False)
    (table,) = [each for each in shown if isinstance(each, Table)]
    assert table.head == ("", "worst decile changes by at most (released)", "accuracy falls for (released)")
    assert [row[0] for row in table.rows] == ["one", "two", "policy: gate"]
    assert table.rows[0][1].startswith("+0.2500") and table.rows[2] == ("policy: gate", "–", "7.0% (6.0% to 8.0%)")
    assert "at most 0.0500 (0.0400 to 0.0600) (released)." in text(shown)


def test_exact_numbers_are_named_so() -> None:
    shown = text(blocks(None, record(released=True), simulation=True))
    assert f"0.1235 (0.1135 to 0.1335) ({EXACT})" in shown and f"accuracy falls for ({EXACT})" in shown
    alone = blocks(None, record(released=False), simulation=True)
    assert "(released)" not in text(alone) and f"({EXACT})" in text(alone)


@pytest.mark.parametrize("released", [True, False])
def test_without_simulation_no_exact_number_is_shown(released: bool) -> None:
    assert "0.12" not in text(blocks(None, record(released=released), simulation=False))
    assert released or blocks(None, record(released=False), simulation=False) == []


@given(
    gone=st.sets(st.sampled_from(["one", "two"]), max_size=1),
    unknown=st.booleans(),
    policies=st.integers(0, 1),
)
def test_what_is_not_known_is_a_dash(gone: set[str], unknown: bool, policies: int) -> None:
    made = record(released=True)
    for name in gone:
        del made["simulation_only"]["strategies"][name]
    if unknown:
        made["released"]["strategies"]["one"]["top1_accuracy"]["quantiles"] = {"0.1": UNKNOWN}
    made["released"]["policies"] = made["released"]["policies"][:policies]
    (table,) = [each for each in blocks(None, made, simulation=True) if isinstance(each, Table)]
    assert all(len(row) == 5 and all(row) for row in table.rows)
    assert all(row[3] == "–" for row in table.rows if row[0] in gone)
