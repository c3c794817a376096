"""The vectors of the protocol: made again they are the same bytes, and this program decides each as it is written."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.make_vectors import FILES, MOST_BYTES, PLACE, text_of
from tests.support.vectors import (
    documents,
    encodings,
    mutants,
    prices,
    randomizers,
    reports,
    sealed,
    signed,
    tokens,
    turns,
)
from tests.support.vectors.case import Case


@cache
def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PLACE / f"{name}.json").read_text(encoding="ascii"))
    return found


@pytest.mark.parametrize("name", FILES)
def test_made_again_they_are_the_same_bytes(name: str) -> None:
    assert text_of(name) == (PLACE / f"{name}.json").read_text(encoding="ascii"), "python -m tests.make_vectors"


def test_they_are_small_and_many() -> None:
    there = sorted(PLACE.glob("*"))
    assert [each.name for each in there] == sorted(f"{name}.json" for name in FILES)
    assert sum(each.stat().st_size for each in there) < MOST_BYTES


def ruled(value: Any) -> list[str]:
    """The rules that are named anywhere in a file."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value["rule"]] if isinstance(value, dict) and "rule" in value else []
    return own + [rule for each in inner for rule in ruled(each)]


def anchors(page: str) -> set[str]:
    """Of a page's headings, as its readers link to them."""
    lines = re.findall(r"^#+ (.+)$", (REPOSITORY / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("name", FILES)
def test_each_case_names_a_rule_that_is_there_and_the_page_names_the_file(name: str) -> None:
    said = read(name)
    rules = ruled(said)
    assert len(rules) >= len(said["cases"])
    for rule in sorted(set(rules)):
        page, _, section = rule.partition("#")
        assert (REPOSITORY / page).is_file() and (not section or section in anchors(page)), rule
    assert f"`{name}.json`" in (REPOSITORY / "docs/protocol.md").read_text(encoding="utf-8")


def test_there_are_about_a_thousand() -> None:
    assert sum(len(ruled(read(name))) for name in FILES) > 1000


CHECKS: dict[str, dict[str, Callable[[Case], None]]] = {
    "documents": {"cases": documents.check},
    "signatures": {"cases": signed.check_signature},
    "log": {
        "cases": signed.check_log,
        "trees": signed.check_tree,
        "proofs": signed.check_proof,
        "bundles": signed.check_bundle,
    },
    "rotation": {"cases": signed.check_rotation},
    "tokens": {
        "cases": tokens.check_blinding,
        "finished": tokens.check_finished,
        "shown": tokens.check_shown,
        "keys": tokens.check_key,
        "logged": tokens.check_logged,
    },
    "prices": {"cases": prices.check, "epsilons": prices.check_epsilon},
    "reports": {"cases": reports.check, "received": reports.check_received, "files": reports.check_file},
    "encodings": {
        "cases": encodings.check,
        "streams": encodings.check_stream,
        "rotations": encodings.check_rotation,
        "choices": encodings.check_choice,
        "behind": encodings.check_behind,
        "losses": encodings.check_loss,
        "received": encodings.check_received,
    },
    "sealed": {
        "cases": sealed.check,
        "functions": sealed.check_function,
        "rings": sealed.check_ring,
        "gaussians": sealed.check_gaussians,
        "slots": sealed.check_slots,
        "shares": sealed.check_shares,
        "settings": sealed.check_settings,
        "seeds": sealed.check_seed,
    },
    "randomizers": {
        "cases": randomizers.check_numbers,
        "lies": randomizers.check_lie,
        "votes": randomizers.check_votes,
        "answers": randomizers.check_answers,
        "choices": randomizers.check_choice,
    },
}


@pytest.mark.parametrize(("name", "part"), [(name, part) for name, parts in CHECKS.items() for part in parts])
def test_this_program_decides_each_as_it_is_written(name: str, part: str) -> None:
    for each in read(name)[part]:
        CHECKS[name][part](each)


def test_this_program_takes_each_turn_as_it_is_written() -> None:
    said = read("turns")
    for each in said["cases"]:
        turns.check(each, said["bodies"])


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_this_program_follows_no_mutant_and_reads_no_text_for_it(every: int) -> None:
    """Of the cases one in so many, for each is a turn of a device with its files."""
    said = read("mutants")
    for base in said["bases"]:
        mutants.check_base(base, said["bases"])
    for each in said["cases"][::every]:
        mutants.check(each, said["bases"])
