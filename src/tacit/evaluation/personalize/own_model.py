"""The model that a device would type with: fitted on its user's earlier text, and used where its gate opens.

The text is cut, ordered and trained on as in `outcomes`, of which only counts are left; here the model itself is kept.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.data.splits import Parts, TemporalSplit, Unsplit
from tacit.errors import InputError
from tacit.evaluation.personalize.deltas import Pairs
from tacit.evaluation.personalize.fine_tuning import FineTuning, fine_tune, steps_of
from tacit.evaluation.personalize.gate import chance_of_gains
from tacit.evaluation.personalize.outcomes import TOGETHER, WORDS, Ids
from tacit.keyboard.own_text import OwnText, fitted_to
from tacit.keyboard.own_text_reader import OwnTextReader
from tacit.keyboard.ranking import rank
from tacit.keyboard.suggest import HasReader, Reader, Rereader
from tacit.keyboard.user_cache import ALONE, UserCache
from tacit.networks.metrics import KNOWN
from tacit.networks.on_device import HeldModel
from tacit.text.vocabulary import BOS, EOS, PAD

if TYPE_CHECKING:  # JAX comes with them
    from tacit.data import Cache
    from tacit.networks.language_model import LanguageModel, Parameters


class OwnModel(NamedTuple):
    """One user's model, and what the gate saw of it: words of later text that only one of two models had right."""

    reader: Reader
    gained: int  # this model alone
    lost: int  # the model that it was made from alone
    opened: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnModels:
    """Makes each client's model from one that all have. Calls depend on the client alone.

    network and its parameters; None where `start` is counted, which `reader` reads. how: SGD, caches, or both.
    split: three parts, of which the last is never looked at here. level: of the gate, as in `gate`.
    """

    start: HeldModel
    reader: Reader
    network: "tuple[LanguageModel, Parameters] | None"
    cache: "Cache"
    how: FineTuning
    split: TemporalSplit
    level: float

    def parts(self, client: int) -> Parts | Unsplit:
        """Which of its sentences are learnt, looked at by the gate, and left for later."""
        return self.split.parts(self.cache.timestamps(client))

    def of(self, client: int) -> OwnModel:
        """Raises: InputError for a client whose text cannot be cut."""
        parts = self.parts(client)
        if isinstance(parts, Unsplit):
            raise InputError(f"client {client} has no model of its own: {parts.value}; choose another.")
        past = self.cache.padded(client, parts.train, WORDS + 1)
        mix = fitted_to(self.start, past) if self.how.fitted else self.how.mix
        model, sound = self._trained(past[np.random.default_rng(client).permutation(len(past))])
        later = self.start.batches(self.cache.padded(client, parts.gate, WORDS + 1), TOGETHER)
        own = UserCache.from_sentences(past, self.start.vocabulary)
        before, after = rank(self.start, later, own, [ALONE])[0], rank(model, later, own, [mix])[0]
        known = before.kind == KNOWN
        right, right_too = before.rank[known] == 0, after.rank[known] == 0
        gained, lost = int((~right & right_too).sum()), int((right & ~right_too).sum())
        chance = float(chance_of_gains(Pairs(gained=np.array(gained), lost=np.array(lost))))
        reader = self._reader(model)
        if mix != ALONE:
            reader = OwnTextReader(reader, _learnt(past, self.start.vocabulary), mix)
        return OwnModel(reader, gained, lost, sound and chance <= self.level)

    def _trained(self, sentences: Ids) -> tuple[HeldModel, bool]:
        """The model after SGD, where there is any, and whether all of it is finite."""
        if self.network is None or not self.how.epochs:
            return self.start, True
        batches = self.start.batches(sentences, self.how.batch_size)
        step, memory = self.how.step(self.network[0]), self.start.memory(batches)
        tuned = next(fine_tune(self.start, batches, [steps_of(self.how, batches)], step, memory))
        return tuned.model, not tuned.diverged

    def _reader(self, model: HeldModel) -> Reader:
        if self.network is None or model is self.start:
            return self.reader
        network, parameters = self.network
        if isinstance(network, HasReader):
            return network.reader(model.by_name())
        import jax

        return Rereader(network, jax.tree.unflatten(jax.tree.structure(parameters), list(model.by_name().values())))


def _learnt(sentences: Ids, vocabulary: int) -> OwnText:
    """The counts of all sentences, the same as those of `UserCache`."""
    own = OwnText.none(vocabulary)
    for sentence in sentences:
        own = own.learnt(sentence[(sentence != PAD) & (sentence != BOS) & (sentence != EOS)].tolist())
    return own
