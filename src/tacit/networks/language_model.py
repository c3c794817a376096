"""The seam between a network and all that trains, evaluates or personalises one.

A `LanguageModel` is the settings of a network, a frozen dataclass, with pure functions of its parameters: how they
begin, and which scores they give. This file has the loss and the step of SGD of any of them, from the scores alone. A
network that knows a faster way says so by a method more (`HasLoss`, `HasSgdStep`, `on_device.HasOnDeviceTraining`), and
the generic function is the slow reference that a test holds it against. JAX is loaded by what computes: a device asks
which network a name is, and how large, without it.

Shapes, once for the whole file: B sentences, L predicted words of each, V words in the vocabulary. Sentences are
(B, L+1) integers, each BOS, words, EOS, then PAD.
"""

import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

from tacit.errors import InputError
from tacit.networks.metrics import END, KNOWN, NO_TARGET, UNKNOWN, Counts, Words, counts_of
from tacit.networks.models import MODELS
from tacit.records import from_plain, to_plain
from tacit.text.vocabulary import EOS, OOV, PAD, SPECIALS

if TYPE_CHECKING:
    from jax import Array

Parameters = Any  # a pytree of float32 arrays: NamedTuples, dictionaries and tuples, whose leaves have names by it


@runtime_checkable
class LanguageModel(Protocol):
    """A network that predicts the next word: its settings, and pure functions of its parameters.

    A frozen dataclass, so that it can be compared, written in a recipe, and sent to another machine. It goes by its
    name in MODELS, and one that is not there by "package.module:Class".
    """

    @property
    def vocabulary(self) -> int:
        """How many ids there are, the four specials included; a field of that name, too."""
        ...

    def init(self, key: "Array") -> Parameters:
        """Fresh parameters, a function of the key alone."""
        ...

    def logits(self, parameters: Parameters, tokens: "Array") -> "Array":
        """Scores (B, L, V) of the word after each token (B, L), which may look at it and those before it only."""
        ...

    def __hash__(self) -> int:
        """Of equal networks the same: a program is compiled once for all of them."""
        ...

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """What fine-tuning may be restricted to: by name, the parameters' names (`leaves`); "all" is always one."""
        ...


@runtime_checkable
class HasLoss(Protocol):
    """A network with a loss of its own, whose derivatives are cheaper than those of `cross_entropy(logits)`."""

    def loss(self, parameters: Parameters, sentences: "Array") -> "Array":
        """As `NextWordLoss`, but for rounding."""
        ...


@runtime_checkable
class HasSgdStep(Protocol):
    """A network with a faster step of SGD on processors, in float32 and in bfloat16."""

    def sgd_step(
        self, parameters: Parameters, sentences: "Array", learning_rate: float, *, precision: str
    ) -> "tuple[Parameters, Array]":
        """As the function `sgd_step`, exact but for the rounding of the precision."""
        ...


@runtime_checkable
class HasNoiseCurve(Protocol):
    """A network of which it was measured how much noise it bears (`planning.noise_forecast`)."""

    noise_curve: ClassVar[str]  # where that is told


def model_class(kind: str) -> type[LanguageModel]:
    """The class of networks with this name, or of "package.module:Class".

    Raises: InputError where there is none.
    """
    module, _, name = MODELS.get(kind, kind).partition(":")
    if not name or not all(part.isidentifier() for part in module.split(".")):
        raise InputError(
            f"model.kind='{kind}' is unknown; it is one of {', '.join(MODELS)}, or a class of your own as "
            "'package.module:Class'."
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"model.kind='{kind}' cannot be loaded ({error}); put the module where Python finds it (PYTHONPATH)."
        ) from error
    missing = [each for each in ("init", "logits", "groups") if not callable(getattr(found, each, None))]
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)) or missing:
        lacks = f"lacks {', '.join(missing)}" if missing else "is no dataclass"
        raise InputError(f"model.kind='{kind}' {lacks}; a network is a frozen dataclass with init, logits and groups.")
    return cast(type[LanguageModel], found)


def model_of(kind: str, settings: Mapping[str, Any]) -> LanguageModel:
    """The network with these settings, `vocabulary` among them. Raises: InputError naming what is wrong."""
    return from_plain(model_class(kind), settings, where="model")


def kind_of(network: LanguageModel) -> str:
    """The name under which `model_class` finds the class of this network."""
    cls = type(network)
    name = f"{cls.__module__}:{cls.__qualname__}"
    return next((kind for kind, where in MODELS.items() if where == name), name)


def settings_of(network: LanguageModel) -> dict[str, Any]:
    """What is written of a network: its kind and its settings; `model_of` reads them."""
    return {"kind": kind_of(network), **{name: value for name, value in to_plain(network).items() if name != "kind"}}


def parameter_count(network: LanguageModel) -> int:
    """How many numbers the network has."""
    import jax

    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(network.init, jax.random.key(0))))


def leaves(parameters: Parameters) -> "dict[str, Array]":
    """The arrays of the parameters by name: fields, keys and places on the way to each, with points between."""
    import jax

    found, _ = jax.tree_util.tree_flatten_with_path(parameters)
    return {".".join(_step(key) for key in path): leaf for path, leaf in found}


def _step(key: Any) -> str:
    """One key of a path: the field of a NamedTuple, the key of a dictionary, or a place in a tuple."""
    return str(next(getattr(key, each) for each in ("name", "key", "idx") if hasattr(key, each)))


# -- for any network -----------------------------------------------------------------------------------------------


def cross_entropy(scores: "Array", targets: "Array") -> "Array":
    """Mean nats () of the targets (B, L) under the softmax of the scores (B, L, V); PAD is no target, nothing is 0."""
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    picked = jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
    there = (targets != PAD).astype(jnp.float32)
    return jnp.sum(there * (logsumexp(scores, axis=-1) - picked)) / jnp.maximum(there.sum(), 1.0)


@dataclass(frozen=True)
class NextWordLoss:
    """Mean cross-entropy in nats per predicted word of a batch of padded sentences.

    Every target but PAD counts, OOV and EOS too (the device must also learn that a sentence ends); a batch of nothing
    but padding has loss 0 and gradient 0.
    """

    network: LanguageModel

    def __call__(self, parameters: Parameters, sentences: "Array") -> "Array":
        """The loss, () float32."""
        if isinstance(self.network, HasLoss):
            return self.network.loss(parameters, sentences)
        return cross_entropy(self.network.logits(parameters, sentences[:, :-1]), sentences[:, 1:])


@dataclass(frozen=True)
class SteppingLoss(NextWordLoss):
    """The same loss, of a network that knows a fast step down its slope."""

    def descend(
        self, parameters: Parameters, sentences: "Array", learning_rate: float, *, precision: str = "float32"
    ) -> "tuple[Parameters, Array]":
        """(parameters - learning_rate * gradient, loss) as the function `sgd_step`, but for rounding."""
        assert isinstance(self.network, HasSgdStep)  # `next_word_loss` made this one for it
        return self.network.sgd_step(parameters, sentences, learning_rate, precision=precision)


def next_word_loss(network: LanguageModel) -> NextWordLoss:
    """The loss of a network, by its own fast paths where it has some; one for equal networks."""
    return SteppingLoss(network) if isinstance(network, HasSgdStep) else NextWordLoss(network)


def sgd_step(
    network: LanguageModel, parameters: Parameters, sentences: "Array", learning_rate: float
) -> "tuple[Parameters, Array]":
    """(parameters - learning_rate * gradient of the mean loss, the loss before it), from the scores alone."""
    import jax

    def mean(parameters: Parameters) -> "Array":
        return cross_entropy(network.logits(parameters, sentences[:, :-1]), sentences[:, 1:])

    value, gradient = jax.value_and_grad(mean)(parameters)
    return jax.tree.map(lambda p, g: p - learning_rate * g, parameters, gradient), value


def ranked(network: LanguageModel, parameters: Parameters, sentences: "Array", *, ends: bool = False) -> Words:
    """The rank and the surprise of every target of a padded batch (B, L+1), time-major. `ends` is static under jit.

    A target's rank is the number of suggestible words with a greater score; of equal scores the smaller id comes first.
    It needs one pass over the (B*L, V) scores, where finding the three best would need a sort.
    """
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    targets = sentences[:, 1:].T.reshape(-1)  # (W,) time-major
    scores = network.logits(parameters, sentences[:, :-1]).transpose(1, 0, 2).reshape(len(targets), -1)  # (W, V)
    picked = jnp.take_along_axis(scores, targets[:, None], axis=1)
    ids = jnp.arange(scores.shape[1], dtype=targets.dtype)[None, :]
    before = (scores > picked) | ((scores == picked) & (ids < targets[:, None]))
    suggestible = (ids >= SPECIALS) | (ids == EOS) if ends else ids >= SPECIALS
    rank = jnp.sum(before & suggestible, axis=1, dtype=jnp.int32)
    likelier = before[:, EOS] | before[:, OOV]
    return Words(
        rank=rank,
        nats=logsumexp(scores, axis=1) - picked[:, 0],
        kind=kinds_of(targets, jnp),
        first=(rank == 0) & ~likelier,
    )


def kinds_of(targets: Any, numbers: Any) -> Any:
    """The kind of each target id, of the same shape. numbers: `numpy` or `jax.numpy`."""
    special = numbers.where(targets == EOS, END, numbers.where(targets == OOV, UNKNOWN, NO_TARGET))
    return numbers.where(targets >= SPECIALS, KNOWN, special)


def count(network: LanguageModel, parameters: Parameters, sentences: "Array", *, ends: bool = False) -> Counts:
    """What METRICS sum up over a padded batch (B, L+1): BOS, words, EOS, PAD. `ends` is static under jit."""
    import jax.numpy as jnp

    return counts_of(ranked(network, parameters, sentences, ends=ends), jnp, ends=ends)
