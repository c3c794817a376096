"""One judgement: over what is free, and never WORKS of what gains nothing, or of what nothing was measured for."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.planning.judgement import (
    OF_PUBLIC,
    FreeModel,
    Gains,
    from_public,
    from_random,
    judged,
    judged_counts,
    share_to_gain,
)

SHARES = st.floats(0.0, 1.0)
TOP1 = st.floats(0.001, 0.9)


def free_of(top1: float, network: float | None) -> FreeModel:
    return FreeModel(made_of="the public n-gram", text="manuals", top1=top1, network=network, passages=200)


@given(kept=SHARES, network=TOP1, more=st.floats(1.0, 2.0), public=st.booleans())
def test_works_is_said_of_what_gains_and_of_nothing_else(
    kept: float, network: float, more: float, public: bool
) -> None:
    """In accuracies, which is the slow way: what it will have, less what the best free model has."""
    free = free_of(network * more, network)
    start = from_public(kept) if public else from_random(kept)
    found = judged(start, free)
    least, _, most = (network * (1 + gain) - free.top1 for gain in start)
    if found.word == "works":
        assert least >= -1e-9
    if found.word == "gains nothing":
        assert most <= 1e-9
    if found.word == "costly":
        assert least < 1e-9 < most + 2e-9
    assert found.word in ("works", "costly", "gains nothing") and found.says().startswith(f"{found.word.upper()}: ")
    assert "the public n-gram, of manuals (top-1" in found.expected


@given(kept=SHARES, public=st.booleans(), clients=st.integers(1, 10**7), epsilon=st.floats(0.01, 100.0))
def test_where_nothing_was_measured_it_is_over_nothing(kept: float, public: bool, clients: int, epsilon: float) -> None:
    start = from_public(kept) if public else from_random(kept)
    for found in (judged(start, None), judged(None, None), judged_counts(clients, epsilon, None)):
        assert found.word == "over nothing" and found.gains is None and "--public CACHE" in found.expected
    assert judged(start, None, hopeless=True).word == "cannot work"


@given(st.floats(0.01, 1.0), st.floats(1.0, 3.0))
def test_the_share_to_gain_is_where_random_weights_begin_to(kept: float, more: float) -> None:
    free = free_of(0.1 * more, 0.1)
    over = from_random(kept).over(free)
    assert (over.alike > 1e-12) <= (kept > share_to_gain(free) - 1e-9)
    assert (over.alike < -1e-12) <= (kept < share_to_gain(free) + 1e-9)
    assert share_to_gain(None) == OF_PUBLIC == share_to_gain(free_of(0.1, None))


def test_counts_are_judged_by_who_gained() -> None:
    free = free_of(0.2, None)
    words = {clients: judged_counts(clients, 1.0, free).word for clients in (499, 500, 6_130, 6_131)}
    assert words == {499: "gains nothing", 500: "costly", 6_130: "costly", 6_131: "works"}
    assert judged_counts(100, 8.0, free).word == "costly"


def test_gains_without_a_network_are_over_the_n_gram() -> None:
    assert Gains(0.0, 0.1, 0.2).over(free_of(0.2, None)) == Gains(0.0, 0.10000000000000009, 0.19999999999999996)
