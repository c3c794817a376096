"""What a statement says of the audit of its run: first that its model is of no use, then what was shown."""

from dataclasses import replace
from typing import Any

import pytest
from tests.statements.every_training import AUDITED, FACTS, STATEMENTS

from tacit.errors import InputError
from tacit.statements.statement import statement


def said(**changes: Any) -> str:
    return statement(replace(FACTS, audited=replace(AUDITED, **changes))).markdown()


def test_what_was_shown_stands_beside_the_claim() -> None:
    promised = FACTS.planned_in_all.mu
    text = said()
    assert text.startswith("**CANARIES: 626 of the clients were canaries of an audit")
    shown = "mu is at least 0.25 with confidence 0.95, by 500 canaries in the view of all released models"
    assert f"{shown}, against {promised:.4g} as planned (not refuted)" in text
    assert "(not refuted), by `tacit audit RECIPE --canaries 500` of tacit 0.1.0" in text
    assert "(REFUTED)" in said(mu_shown=promised * 1.01)
    assert "the last model alone" in said(sees="last")
    assert "has found nothing yet" in said(mu_shown=None)
    assert "126 users with random sentences took part" in said(mu_shown=None, canaries=0)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"canaries": 0, "users": 0}, "canaries=0, users=0"),
        ({"canaries": -1}, "canaries=-1"),
        ({"sees": "none"}, "sees='none'"),
        ({"mu_shown": -0.1}, "no lower bound"),
        ({"confidence": 2.0}, "confidence=2"),
        ({"canaries": 0}, "mu_shown=0.25 was shown by no canaries"),
    ],
)
def test_an_audit_that_cannot_be_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        replace(AUDITED, **changes)


def test_more_canaries_than_clients_or_a_bound_without_noise_is_refused() -> None:
    with pytest.raises(InputError, match="626 canaries of 600 clients, people too"):
        replace(FACTS, population=600, participations=600, audited=AUDITED)
    with pytest.raises(InputError, match=r"audited\.mu_shown=0\.25 is of a run without noise"):
        replace(STATEMENTS["without noise"], audited=AUDITED)
