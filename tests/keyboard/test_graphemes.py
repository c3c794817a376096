"""Characters as people count them, by Unicode's own test; its version is 14, before rule GB9c."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

from tacit.keyboard.graphemes import graphemes

LINES = (REPOSITORY / "tests" / "golden" / "GraphemeBreakTest.txt").read_text(encoding="utf-8").splitlines()
CASES = [line for line in LINES if not line.startswith("#")]


def test_unicodes_own_test() -> None:
    assert len(CASES) == 602
    for case in CASES:
        clusters = [part.replace("×", " ").split() for part in case.strip("÷ ").split("÷")]
        wanted = ["".join(chr(int(point, 16)) for point in cluster) for cluster in clusters]
        assert graphemes("".join(wanted)) == wanted, case


@pytest.mark.parametrize(
    "clusters",
    [
        ["👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "🇫🇷", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "❤️"],  # joined, of a skin, flags, a keycap, of tags, a variant
        ["e\u0301", "각", "நி", "می\u200c"[:1], "ی\u200c"],
        ["क्", "षि"],  # a conjunct, one consonant at a time: the exception of GB9c
    ],
)
def test_what_people_take_for_one(clusters: list[str]) -> None:
    assert graphemes("".join(clusters)) == clusters


@given(st.text(max_size=20))
def test_together_they_are_the_text(text: str) -> None:
    assert "".join(graphemes(text)) == text and "" not in graphemes(text)
