"""The benchmark of secure sums plays its rounds: the sum is checked within, and figures are of what was sent."""

import pytest
from benchmarks.speed.secure_aggregation import DECRYPTORS, sealed_row


@pytest.mark.parametrize("contributors", [0, 2])
def test_a_small_round_of_one_message_in_full(contributors: int) -> None:
    found = sealed_row(600, 1, clients=12, contributors=contributors)
    parties = found["reports"] + contributors
    assert (found["clients"], found["reports"], found["decryptors"]) == (12, 10, DECRYPTORS)
    a_deposit = (found["keeper_received_bytes"] - parties * 32) / parties
    assert 4 * 2048 < a_deposit < 4 * 2048 + 1000, "a box of half a key's numbers, signatures, and a name in the set"
    assert found["slot_bits"] >= found["bits"] and found["client_bytes"] > found["plain_bytes"]
