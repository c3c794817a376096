"""How one client's model is made of everybody's: a few steps of SGD on its device [paper 5, section 3.3], a cache of
its own text beside the network (`keyboard.user_cache`), or both.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, product, repeat
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tacit.errors import InputError
from tacit.keyboard.user_cache import ALONE, Mix
from tacit.records import to_plain

if TYPE_CHECKING:  # JAX would come with them
    from tacit.networks.language_model import LanguageModel
    from tacit.networks.on_device import HeldModel, SgdStep

PAPER_TOKENS = 5000  # paper 5, section 4


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """A way to personalise: batch size B, learning rate L, and when to stop, whichever comes first; and the weights of
    caches, which count the whole text that is trained on.
    """

    batch_size: int = 5  # sentences
    learning_rate: float = 0.1
    max_tokens: int = PAPER_TOKENS  # T: stop before the batch that follows once so many words and ends were seen
    epochs: int = 1  # E; 0: no SGD, the cache alone
    layers: str = "all"  # one of the network's groups: the CIFG's are all, output, biases, recurrent and embeddings
    proximal: float = 0.0  # mu: the loss gains mu/2 * |theta - global|^2
    unigram: float = 0.0  # weight of the cache of the client's words
    bigram: float = 0.0  # weight of the cache of its pairs of words; the model has the rest
    fitted: bool = False  # both weights are fitted to the client's own earlier text, by itself (`own_weights`)

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"strategy {name}={getattr(self, name)} must be at least 1.")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(f"strategy learning_rate={self.learning_rate} must be a positive number, such as 0.1.")
        if not (self.proximal >= 0 and math.isfinite(self.proximal)):
            raise InputError(f"strategy proximal={self.proximal} must be 0 (none) or a positive number.")
        if not (self.unigram >= 0 and self.bigram >= 0 and self.unigram + self.bigram < 1):
            raise InputError(
                f"strategy unigram={self.unigram}, bigram={self.bigram}: the weights of caches are 0 or more and "
                "together less than 1, for the model has the rest; give for example bigram=0.1."
            )
        if self.fitted and (self.epochs or self.mix != ALONE):
            raise InputError(
                f"strategy fitted=True with epochs={self.epochs}, unigram={self.unigram}, bigram={self.bigram}: fitted "
                "are the weights of caches beside the model as it is; leave those out, with epochs=0."
            )
        if self.epochs < 0 or (self.epochs == 0 and self.mix == ALONE and not self.fitted):
            raise InputError(
                f"strategy epochs={self.epochs} must be at least 1; 0, which is no SGD, only with a cache, such as "
                "bigram=0.1."
            )

    @property
    def mix(self) -> Mix:
        """The weights of the caches, where they are the same for every client."""
        return Mix(self.unigram, self.bigram)

    @property
    def most_tokens(self) -> int:
        """How many words and ends it trains on at most, but for the rest of a batch."""
        return self.max_tokens if self.epochs else 0

    @property
    def batches(self) -> str:
        """As tables and figures name what goes together: `B=5`, or `no SGD`."""
        return f"B={self.batch_size}" if self.epochs else "no SGD"

    def to_plain(self) -> dict[str, Any]:
        """For TOML; weights that are not fitted are not spoken of, so that settings of before stay the same."""
        return {name: value for name, value in to_plain(self).items() if (name, value) != ("fitted", False)}

    def __str__(self) -> str:
        """As tables and figures name it: `B=5, L=0.1`, and what differs from one epoch of the whole model, stopping at
        paper 5's T, without proximal term and cache.

        Strategies that do not do the same have different names.
        """
        if self.fitted:
            return "fitted cache"
        caches = [f"{name} cache {in_full(weight)}" for name, weight in self.mix._asdict().items() if weight]
        sgd = [
            f"L={in_full(self.learning_rate)}",
            *([f"E={self.epochs}"] if self.epochs > 1 else []),
            *([f"T={self.max_tokens}"] if self.max_tokens != PAPER_TOKENS else []),
            *([f"{self.layers} only"] if self.layers != "all" else []),
            *([f"mu={in_full(self.proximal)}"] if self.proximal else []),
        ]
        return ", ".join([self.batches, *sgd, *caches] if self.epochs else caches)

    def step(self, network: "LanguageModel") -> "SgdStep":
        """How each step is taken. Raises: InputError where the network has no such group of parameters."""
        from tacit.networks.on_device import SgdStep

        groups = network.groups()
        if self.layers not in groups:
            raise InputError(f"strategy layers={self.layers!r} is unknown; it is one of {', '.join(groups)}.")
        return SgdStep(frozenset(groups[self.layers]), self.learning_rate, self.proximal)


FITTED = FineTuning(epochs=0, fitted=True)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is tried: each way of SGD, each cache without any, and where they go together each way with each cache.

    The defaults are those of paper 5, Table 1.
    """

    batch_size: Annotated[tuple[int, ...], "Sentences a step, several with commas."] = (5, 10, 20)
    learning_rate: Annotated[tuple[float, ...], "Learning rates, several with commas.", "0.1,1.0"] = (0.01, 0.1, 1.0)
    max_tokens: Annotated[tuple[int, ...], "It stops at so many words and ends, several with commas."] = (PAPER_TOKENS,)
    epochs: Annotated[tuple[int, ...], "Or after so many passes over the text, several with commas."] = (1,)
    layers: Annotated[str, "What is fine-tuned: all, output, biases, recurrent or embeddings."] = "all"
    proximal: Annotated[float, "Weight of the pull to the global model; 0 is none."] = 0.0
    unigram: Annotated[
        tuple[float, ...], "Weights of a cache of the user's words, with commas; no SGD.", "0.05,0.1"
    ] = ()
    bigram: Annotated[tuple[float, ...], "The same of a cache of the user's pairs of words.", "0.05,0.1"] = ()
    fitted: Annotated[bool, "Both caches with weights that each device fits to its own earlier text; no SGD."] = False
    cache_with_sgd: Annotated[bool, "Every way of SGD with every cache, too."] = False

    def strategies(self) -> tuple[FineTuning, ...]:
        """All of them, each once as long as no value is given twice."""
        return (*self._sgd, *self._caches, *self._both)

    def of_counted(self) -> tuple[FineTuning, ...]:
        """Those for a model that was counted, which SGD cannot move: the caches, the fitted one where none is named.

        Raises: InputError where something of SGD is asked for.
        """
        plain = Grid(unigram=self.unigram, bigram=self.bigram, fitted=self.fitted)
        if self != plain:
            raise InputError(
                "a counted model has no parameters that SGD could move, so a device adds caches alone; leave batch "
                "sizes, learning rates, epochs, tokens, layers and the rest of SGD out (--fitted, --bigram 0.1)."
            )
        return self._caches or (FITTED,)

    @property
    def _sgd(self) -> tuple[FineTuning, ...]:
        return tuple(
            FineTuning(
                batch_size=size,
                learning_rate=rate,
                epochs=passes,
                max_tokens=most,
                layers=self.layers,
                proximal=self.proximal,
            )
            for size, rate, passes, most in product(self.batch_size, self.learning_rate, self.epochs, self.max_tokens)
        )

    @property
    def _mixes(self) -> tuple[Mix, ...]:
        return (*(Mix(unigram=each) for each in self.unigram), *(Mix(bigram=each) for each in self.bigram))

    @property
    def _caches(self) -> tuple[FineTuning, ...]:
        return (*(FineTuning(epochs=0, **mix._asdict()) for mix in self._mixes), *((FITTED,) * self.fitted))

    @property
    def _both(self) -> tuple[FineTuning, ...]:
        pairs = product(self._sgd, self._mixes) if self.cache_with_sgd else ()
        return tuple(replace(how, **mix._asdict()) for how, mix in pairs)


def in_full(number: float) -> str:
    """The shortest text that reads as this very number: 1 for 1.0, 0.1, 0.1000001."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


class FineTuned(NamedTuple):
    """One client's model, without its cache, and how it came about."""

    model: "HeldModel"
    tokens: int  # words and ends that it was trained on, repeats counted
    loss: float  # nats per token, of each batch before its own step; 0 of none, inf if it diverged
    diverged: bool  # a loss or a parameter is not finite; training ended there


def steps_of(how: FineTuning, batches: Sequence[Any]) -> int:
    """How many batches it trains on."""
    taken = tokens = 0
    for batch in chain.from_iterable(repeat(batches, how.epochs)):
        if tokens >= how.max_tokens:
            break
        taken, tokens = taken + 1, tokens + batch.tokens
    return taken


def fine_tune(
    start: "HeldModel", batches: Sequence[Any], stops: Sequence[int], step: "SgdStep", memory: Any
) -> Iterator[FineTuned]:
    """SGD from the global model `start`, which is left as it is, over the batches (`start.batches`) in their order,
    again and again; the model after so many steps, for each of `stops`, which increase.

    It is one model that goes on: look at it before you ask for the next. memory: `start.memory(batches)`, overwritten.
    """
    model = start.copy()
    nats, tokens = 0.0, 0
    for begin, end in pairwise([0, *stops]):
        for number in range(begin, end):
            if not math.isfinite(nats):
                break
            batch = batches[number % len(batches)]
            loss = model.descend(batch, start, step, memory)
            nats += batch.tokens * loss
            tokens += batch.tokens
        diverged = not (math.isfinite(nats) and model.finite)
        yield FineTuned(model, tokens, math.inf if diverged else nats / max(tokens, 1), diverged)
