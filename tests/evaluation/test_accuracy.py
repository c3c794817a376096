"""Accuracy over devices against counting one sentence after another."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.support.keyboard.counting import counted, nats, whole
from tests.support.training.tiny import tiny_cache

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import GROUP, Evaluation, evaluate
from tacit.evaluation.held_out import HeldOut
from tacit.networks.cifg.network import Cifg, CifgParameters
from tacit.networks.language_model import count
from tacit.networks.metrics import Counts


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("cache") / "tiny", {"train": 3, "validation": 11, "test": 2})


NETWORK = Cifg(vocabulary=60, embedding=6, units=8)


@pytest.fixture(scope="module")
def parameters() -> CifgParameters:
    return NETWORK.init(jax.random.key(2))


def test_every_client_counts_its_own_sentences(cache: Cache, parameters: CifgParameters) -> None:
    clients = cache.clients("validation")
    assert len(clients) % GROUP, "the last group has empty places"
    held_out = HeldOut.read(cache, clients, sentences=3, words=6)
    of_one = jax.jit(partial(count, NETWORK))  # one compilation for all sentences
    found = evaluate(NETWORK, parameters, held_out, cores=Cores(Hardware(workers=1)))
    assert len(found.clients) == len(clients)
    for padded, counts in zip(held_out.sentences, found.clients, strict=True):
        slow = Counts()
        for sentence in padded:
            slow = slow + of_one(parameters, jnp.asarray(sentence[None])).host()
        assert whole(counts) == whole(slow)
        assert nats(counts) == pytest.approx(nats(slow), rel=1e-5)
    assert found.total.words == sum(counts.words for counts in found.clients) > 0


def test_workers_change_nothing(cache: Cache, parameters: CifgParameters) -> None:
    held_out = HeldOut.read(cache, cache.clients("validation"), sentences=3, words=6)
    one, two = (evaluate(NETWORK, parameters, held_out, cores=Cores(Hardware(workers=n))) for n in (1, 2))
    assert one == two


def test_sentences_are_spread_over_a_clients_text_and_cut(cache: Cache) -> None:
    client = max(cache.clients("validation"), key=lambda c: cache.sentence_count(int(c)))
    ids, lengths = cache.sentences(int(client))
    held_out = HeldOut.read(cache, np.array([client]), sentences=2, words=3)
    first, last = ids[: lengths[0]][:4], ids[-lengths[-1] :][:4]
    assert held_out.sentences.shape == (1, 2, 4)
    assert held_out.sentences[0, 0, : len(first)].tolist() == first.tolist()
    assert held_out.sentences[0, 1, : len(last)].tolist() == last.tolist()


def test_nobody_to_evaluate_on_is_refused(cache: Cache) -> None:
    with pytest.raises(InputError, match="no held-out client"):
        HeldOut.read(cache, np.zeros(0, np.int64), sentences=2, words=3)


def test_metrics_are_shares_of_words_and_quartiles_of_clients() -> None:
    accuracies = (0, 1, 2, 3, 4)
    clients = tuple(counted(words=5, oov=1, predicted=4, top1=hits, top3=4, nats=8.0) for hits in accuracies)
    metrics = Evaluation(total=sum(clients, Counts()), clients=clients).metrics()
    assert metrics["top1_accuracy"] == 0.5
    assert metrics["cross_entropy"] == 2.0
    assert [metrics[f"client_accuracy_q{q}"] for q in (25, 50, 75)] == [0.25, 0.5, 0.75]
    assert (metrics["oov_rate"], metrics["words"], metrics["clients"]) == (0.2, 25, 5)


def test_text_of_unknown_words_alone_cannot_be_evaluated() -> None:
    strangers = counted(words=5, oov=5)
    with pytest.raises(InputError, match="none of the 5 words"):
        Evaluation(total=strangers, clients=(strangers,)).metrics()
