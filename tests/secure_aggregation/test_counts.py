"""Counts summed as nobody can open them: equal to the plain sum, to the bit."""

import re
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.aggregation import merged
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.errors import InputError, RoundAborted
from tacit.evaluation.release_cost import ReleaseCost
from tacit.secure_aggregation.counts import FEWEST, SENDS_VECTOR, CountEncoding, Protocol, play, secure_total
from tacit.secure_aggregation.masked.graph import graph_plan
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol


@given(data=st.data(), cells=st.integers(1, 12), devices=st.integers(0, 8), most=st.integers(1, 2**31))
def test_words_add_up_to_the_plain_sum(data: st.DataObject, cells: int, devices: int, most: int) -> None:
    """Whatever masks make of the words on the way: what is added modulo 2^b and taken away again leaves nothing."""
    each = most // max(1, devices)
    counts = [
        np.array(data.draw(st.lists(st.integers(0, each), min_size=cells, max_size=cells)), np.int64)
        for _ in range(devices)
    ]
    encoding = CountEncoding(cells=cells, most=most)
    assert encoding.bits == most.bit_length()
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    mask = generator.integers(0, 2**encoding.bits, cells, dtype=np.uint32)
    back = (-mask.astype(np.int64) % 2**encoding.bits).astype(np.uint32)
    total = merged(encoding.sums, [mask, *map(encoding.encode, counts), back])
    assert np.array_equal(encoding.decode(encoding.sums.finish(total)), sum(counts, np.zeros(cells, np.int64)))


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 255, 256, 2**32 - 1])
def test_the_modulus_is_the_least_that_holds_the_sum(most: int) -> None:
    bits = CountEncoding(cells=1, most=most).bits
    assert 2 ** (bits - 1) <= most < 2**bits


@settings(max_examples=6)
@given(
    seed=st.integers(0, 999),
    devices=st.integers(3, 8),
    cells=st.integers(1, 40),
    others=st.integers(0, 50),
    each=st.integers(1, 5),
    protocol=st.sampled_from(["masks", "one-message"]),
)
def test_a_protocols_total_is_the_plain_sum(
    seed: int, devices: int, cells: int, others: int, each: int, protocol: Any
) -> None:
    generator = np.random.default_rng(seed)
    counts = list(generator.integers(0, each, (devices, cells), endpoint=True))
    rest = generator.integers(0, others + 1, cells)
    total = secure_total(
        SimulatedProtocol(protocol=protocol, devices=devices), counts, rest, most=each * devices + others, each=each
    )
    assert total.dtype == np.int64 and np.array_equal(total, np.sum(counts, axis=0) + rest)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32 - 1),
    devices=st.integers(3, 6),
    contributors=st.integers(0, 4),
    bits=st.integers(10, 26),
    edge=st.booleans(),
)
def test_both_protocols_give_the_sum_with_noise(
    seed: int, devices: int, contributors: int, bits: int, edge: bool
) -> None:
    """Modulo 2^bits, as plain integers say; `edge`: every number as far from 0 as it may be."""
    draw, cells, each = np.random.default_rng(seed), 40, 100
    most = (2**bits - 1 - each * devices) // 2
    margin = int(draw.integers(1, min(most, 2**23) + 1))
    own = draw.choice([0, each] if edge else np.arange(each + 1), (devices, cells)).astype(np.uint32)
    ends = [-margin, margin]
    noise = draw.choice(ends, (contributors, cells)) if edge else draw.integers(*ends, (contributors, cells))
    words = [(one & (2**bits - 1)).astype(np.uint32) for one in noise]
    expected = (own.sum(axis=0, dtype=np.int64) + noise.sum(axis=0)) % 2**bits
    for protocol in get_args(Protocol):
        played = play(protocol, list(own), bits=bits, each=each, noise=words, margin=margin)
        assert played.total.tolist() == expected.tolist()
        assert played.included == tuple(range(devices))


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), devices=st.integers(3, 9), share=st.sampled_from([0.1, 0.3, 0.6]))
def test_a_sum_is_of_those_who_reported_before_they_vanished(seed: int, devices: int, share: float) -> None:
    """Or there is none, where too few are left."""
    draw = np.random.default_rng(seed)
    own = draw.integers(0, 5, (devices, 7)).astype(np.uint32)
    vanishing = {place: int(draw.integers(5)) for place in range(devices) if draw.random() < share}
    there = tuple(place for place in range(devices) if vanishing.get(place, 5) > SENDS_VECTOR)
    staying = devices - len(vanishing)
    enough = {
        "masks": staying >= graph_plan(devices, dropout=100, corruption=100).quorum,
        "one-message": len(there) >= FEWEST,
    }
    for protocol in get_args(Protocol):
        if enough[protocol]:
            played = play(protocol, list(own), bits=10, each=4, vanishing=vanishing)
            assert played.included == there
            assert played.total.tolist() == own[list(there)].sum(axis=0).tolist()
        else:
            with pytest.raises(RoundAborted, match=r"of .* clients|too many vanished|no sum of fewer than 3"):
                play(protocol, list(own), bits=10, each=4, vanishing=vanishing)


def test_noise_that_does_not_fit_is_refused() -> None:
    own, noise = [np.ones(4, np.uint32)] * 3, [np.array([0, 1, 50, 2**16 - 51], np.uint32)]
    with pytest.raises(InputError, match=r"noise beyond margin=50 does not fit.*a larger margin"):
        play("one-message", own, bits=16, each=1, noise=noise, margin=50)
    found = play("one-message", own, bits=16, each=1, noise=noise, margin=51)
    assert found.total.tolist() == [3, 4, 53, 2**16 - 48]
    with pytest.raises(InputError, match=r"sum to 33 bits.*less noise"):
        play("one-message", own, bits=32, each=1, noise=noise, margin=2**31)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: SimulatedProtocol(devices="8"), "devices='8' is of the type str; give int"),  # type: ignore[arg-type]
        (lambda: SimulatedProtocol(devices=8.5), "devices=8.5 is of the type float; give int"),  # type: ignore[arg-type]
        (lambda: ReleaseCost(zcdp=1.0, secure_sum="one-message"), "give SimulatedProtocol(protocol='one-message') of"),  # type: ignore[arg-type]
        (
            lambda: asking(secure_sum="masks"),
            "secure_sum='masks' is of the type str; give SimulatedProtocol(protocol='masks'",
        ),
        (
            lambda: asking(secure_sum={"protocol": "masks"}),
            "is of the type dict; give SimulatedProtocol(protocol='masks')",
        ),
        (lambda: asking(secure_sum=True), "secure_sum=True is of the type bool; give"),
    ],
)
def test_a_protocol_that_is_none_says_what_to_give(made: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        made()


def asking(**settings: Any) -> DiscoverySettings:
    return DiscoverySettings(reports=LocalReportSettings(local_epsilon=8.0), users_per_layer=100, **settings)


def test_what_no_sum_can_be_is_refused() -> None:
    encoding = CountEncoding(cells=2, most=10)
    with pytest.raises(InputError, match="0 to 10"):
        encoding.encode(np.array([3, 11]))
    with pytest.raises(InputError, match="0 to 10"):
        encoding.encode(np.array([3, -1]))
    with pytest.raises(InputError, match="2 whole numbers"):
        encoding.encode(np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="2 whole numbers"):
        encoding.encode(np.array([1]))
    with pytest.raises(InputError, match="spoilt"):
        encoding.decode(np.array([3, 11], np.uint32))
    with pytest.raises(InputError, match="2 words"):
        encoding.decode(np.array([3], np.uint32))
    with pytest.raises(InputError, match="33 bits"):
        CountEncoding(cells=2, most=2**32)
    with pytest.raises(InputError, match="count nothing"):
        CountEncoding(cells=0, most=1)
    with pytest.raises(InputError, match="masks, one-message"):
        SimulatedProtocol(protocol="mask")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="hide nothing"):
        SimulatedProtocol(devices=2)
    for number in ("8", 8.5):
        with pytest.raises(InputError, match=f"devices={number!r} is of the type"):
            SimulatedProtocol(devices=number)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"most={number!r} is of the type"):
            CountEncoding(cells=1, most=number)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="group of 2"):
        secure_total(SimulatedProtocol(), [np.array([1])] * 2, np.array([0]), most=2)
