"""Who types what on both keyboards: each user by itself, on whichever core is free."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from threadpoolctl import threadpool_limits

from tacit.compute import Hardware
from tacit.compute.processes import Processes
from tacit.data.typed_sentences import TypingUser
from tacit.evaluation.type_ab.replay import Both, OnBoth
from tacit.evaluation.type_ab.typist import Typist
from tacit.jobs.type_ab.setup import TypingTest
from tacit.keyboard.suggest import Rereader

if TYPE_CHECKING:  # JAX comes with it
    from tacit.evaluation.personalize.own_model import OwnModels

Who: TypeAlias = tuple[Typist, TypingUser]
Typing: TypeAlias = Callable[[Iterable[Who]], Iterator[Both]]  # in the same order
WORTH = 5_000  # words, of both keyboards each: three seconds, for which another process takes one to start


@contextmanager
def typing_workers(test: TypingTest, seed: int, hardware: Hardware) -> Iterator[Typing]:
    """Who types, while the block lasts. A product of matrices is one thread's wherever it is computed, for its last bit
    depends on how many share it: so any number of workers types the same.
    """
    work = OnBoth(a=test.a, b=test.b, seed=seed)
    for keyboard in (test.a, test.b):
        keyboard.decoder.prepare()  # compiled here, once, and found by the others
    with threadpool_limits(1, user_api="blas"):
        workers = min(hardware.workers or cores_here(), len(test.typed.users), 1 + words_of(test) // WORTH)
        if test.own is not None:
            yield _with_own_models(test, test.own, seed, hardware)
        elif any(isinstance(reader, Rereader) for reader in readers_of(test)):
            yield _by_threads(work, hardware)
        elif workers == 1 or not all(type(reader).__module__.startswith("tacit.") for reader in readers_of(test)):
            yield lambda users: map(
                work, map(_told, users)
            )  # a caller's own reader is perhaps one that no other process can import
        else:
            with Processes(workers, work) as processes:
                yield lambda users: processes.stream(map(_told, users))


def _by_threads(work: OnBoth, hardware: Hardware) -> Typing:
    """Of a network that JAX reads: it does most of the work, and lets Python's lock go meanwhile."""
    from tacit.compute.cores import Cores

    hardware.apply(processor_only=True)
    cores = Cores(hardware)
    return lambda users: cores.stream(lambda device, who: work(_told(who)), list(users))


def _with_own_models(test: TypingTest, own: "OwnModels", seed: int, hardware: Hardware) -> Typing:
    """Each user's model is fitted, typed with where its gate opens, and let go."""
    from tacit.compute.cores import Cores

    def work(device: Any, who: Who) -> Both:
        user = who[1]
        fitted = own.of(user.number)
        model = replace(test.b.model, reader=fitted.reader) if fitted.opened else test.b.model
        typed = OnBoth(a=test.a, b=replace(test.b, model=model), seed=seed)(_told(who))
        return typed._replace(opened=fitted.opened)

    hardware.apply(processor_only=True)
    cores = Cores(hardware)
    return lambda users: cores.stream(work, list(users))


def _told(who: Who) -> tuple[Typist, Any, str]:
    """A user as `OnBoth` takes it."""
    typist, user = who
    return typist, user.sentences, user.name


def cores_here() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def readers_of(test: TypingTest) -> list[Any]:
    """How the models of both keyboards read."""
    return [reader for each in (test.a, test.b) for reader in (each.model.reader, each.search) if reader is not None]


def words_of(test: TypingTest) -> int:
    """That each keyboard is to type, by all users."""
    return sum(len(sentence) for user in test.typed.users for sentence in user.sentences)
