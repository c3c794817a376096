"""Requests to the store in batches: those that arrive while it answers wait, and go in one transaction.

Group commit: the price of a transaction (round trips, locks, the commit) is shared by all that waited for the one
before; nobody waits for others to come.
Gawlick and Kinkade, "Varieties of concurrency control in IMS/VS Fast Path", 1985.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
MOST = 256  # questions in one transaction


class Batching(Generic[Q, A]):
    """Of one event loop; `ask` is never called again before it is done."""

    def __init__(self, ask: Callable[[Sequence[Q]], Awaitable[Sequence[A]]], *, most: int = MOST) -> None:
        """ask: the answers to at most so many questions, in their order."""
        self._ask, self._most, self._one_at_a_time = ask, most, asyncio.Lock()
        self._questions: list[Q] = []  # that are asked next
        self._answers: asyncio.Task[Sequence[A]] | None = None  # to them

    async def answer(self, question: Q) -> A:
        """The answer to one question. Raises: what `ask` raises, for every question of the same batch."""
        if self._answers is None or len(self._questions) >= self._most:
            self._questions = []
            self._answers = asyncio.create_task(self._batch(self._questions))
        place, answers = len(self._questions), self._answers
        self._questions.append(question)
        return (await asyncio.shield(answers))[place]  # whoever leaves takes nobody's answer away

    async def _batch(self, questions: list[Q]) -> Sequence[A]:
        async with self._one_at_a_time:
            if self._questions is questions:
                self._answers = None  # whoever comes now is asked about next time
            return await self._ask(questions)
