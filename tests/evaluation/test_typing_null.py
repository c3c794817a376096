"""A keyboard against itself, with other slips on either side, as benchmarks/typing_ab.py asks it 200 times."""

import pytest
from benchmarks.typing_ab import coverage, nothing_changes
from tests.evaluation.scripted import WORDS, keyboard

from tacit.data.typed_sentences import TypingUser
from tacit.evaluation.launch import decide, gains_of
from tacit.evaluation.typist import POPULATION


@pytest.mark.parametrize(
    ("users", "tests"), [(12, 12), pytest.param(30, 200, marks=pytest.mark.long)], ids=["small", "long"]
)
def test_intervals_of_no_change_cover_zero(users: int, tests: int) -> None:
    """The share that they cover is within what chance allows of 95%, less a point for few users."""
    typing = [TypingUser(n, f"user {n}", (WORDS[n % 5 :],)) for n in range(users)]
    found = list(nothing_changes(keyboard(), POPULATION, typing, tests))
    shares = coverage(found)
    assert {"words a minute", "words modified ratio", "uncorrected characters"} <= set(shares)
    assert "compose picked rate" not in shares, "no phrase was offered"
    least = 0.94 - 3 * (0.94 * 0.06 / tests) ** 0.5
    assert all(share >= least for share in shares.values()), shares
    assert tests < 200 or shares["words a minute"] < 1, "an interval that always covers is too wide"
    verdicts = [decide(gains_of(changes)).verdict for changes in found]
    assert verdicts.count("neutral") >= least * tests
