"""Questions that come while others are answered are asked together; each gets its own answer, and its own error."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.server.store.batching import Batching


class Store:
    """Answers a number with its double, a turn of the event loop later; 13 it cannot."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.busy = False

    async def doubles(self, numbers: Sequence[int]) -> list[int]:
        assert not self.busy
        self.busy = True
        self.asked.append(list(numbers))
        await asyncio.sleep(0)
        self.busy = False
        if 13 in numbers:
            raise ValueError("13")
        return [2 * each for each in numbers]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), max_size=20), st.integers(1, 5))
def test_each_gets_the_answer_that_it_would_have_alone(comes: list[tuple[int, int]], most: int) -> None:
    """comes: (number, turns of the event loop before it asks). An error is that of those asked with 13."""
    store = Store()

    async def one(gathered: Batching[int, int], number: int, turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await gathered.answer(number)

    async def all_of_them() -> list[int | BaseException]:
        gathered = Batching(store.doubles, most=most)
        return await asyncio.gather(*(one(gathered, *each) for each in comes), return_exceptions=True)

    answers = asyncio.run(all_of_them())
    assert sorted(number for each in store.asked for number in each) == sorted(number for number, _ in comes)
    assert all(len(each) <= most for each in store.asked)
    spoilt = [number for each in store.asked if 13 in each for number in each]
    for (number, _), answer in zip(comes, answers, strict=True):
        assert answer == 2 * number or (isinstance(answer, ValueError) and number in spoilt)
    assert sum(isinstance(each, ValueError) for each in answers) == len(spoilt)


def test_who_waits_goes_together_and_who_left_spoils_nothing() -> None:
    store = Store()

    async def asked() -> list[int]:
        gathered = Batching(store.doubles)
        first = asyncio.create_task(gathered.answer(1))
        while not store.busy:
            await asyncio.sleep(0)
        rest = [asyncio.create_task(gathered.answer(each)) for each in (2, 3, 4)]
        await asyncio.sleep(0)
        rest[1].cancel()
        return [await first, await rest[0], await rest[2], await gathered.answer(5)]

    assert asyncio.run(asked()) == [2, 4, 8, 10]
    assert store.asked == [[1], [2, 3, 4], [5]]
