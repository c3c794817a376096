"""The benchmark of secure sums plays its rounds: the sum is checked within, and figures are of what was sent."""

import pytest
from benchmarks.speed.secure_aggregation import DECRYPTORS, masked_formula, masked_row, sealed_formula, sealed_row


@pytest.mark.parametrize("contributors", [0, 2])
def test_a_small_round_of_one_message_in_full(contributors: int) -> None:
    found = sealed_row(600, 1, clients=12, contributors=contributors)
    parties = found["reports"] + contributors
    assert (found["clients"], found["reports"], found["decryptors"]) == (12, 10, DECRYPTORS)
    a_deposit = (found["decryptor_received_bytes"] - parties * 32) / parties
    a_box = 4 * 2048  # half a key's numbers
    assert 2 * a_box < a_deposit < 2 * (a_box + 2700), "a box twice, parts of its tests, signatures, a name in the set"
    assert found["slot_bits"] >= found["bits"] and found["client_bytes"] > found["plain_bytes"]


def test_formulas_are_of_what_the_rows_say() -> None:
    for row, formula in ((sealed_row, sealed_formula), (masked_row, masked_formula)):
        rows = [row(600, 1, clients=clients) for clients in (8, 12)]
        found = formula(rows)
        assert found["from_clients"] == [8, 12] and found["clients"] == 6500
        assert found["server_s"] > max(each["server_s"] for each in rows)
        assert found["server_bytes"] > max(each["server_bytes"] for each in rows)
