"""That the ladder is fair: the same clients, sentences, cut and words, and nothing chosen by those who judge."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.training.tiny import tiny_cache

from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.comparison_models import BOTH, CLIENTS, FREE, PUBLIC_NETWORK, PUBLIC_NGRAM, WITH_NGRAM
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.ladder import CountedText, counted, ladder, training_text, tuned
from tacit.evaluation.predictors import probabilities
from tacit.evaluation.trigram import text_of
from tacit.networks.ngram.rows import NGramRows
from tacit.text.vocabulary import BOS, EOS, OOV
from tacit.training.client import ClientTraining, gather

V = 12


def text(seed: int, sentences: int = 200) -> NDArray[np.int64]:
    """Of people with favourite words that follow from the seed."""
    random = np.random.default_rng(seed)
    share = random.dirichlet(np.ones(V - OOV))
    rows = random.choice(np.arange(OOV, V), (sentences, 5), p=share)
    return np.concatenate([[BOS, *row, EOS] for row in rows])


def people(seed: int, many: int = 6) -> HeldOut:
    return HeldOut(sentences=text(seed, many * 3).reshape(many, 3, 7).astype(np.int32))


def of(seed: int, validation: HeldOut, order: int = 2) -> CountedText:
    return counted(text(seed), validation, vocabulary=V, orders=(order,))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.mark.parametrize(("sentences", "words", "visits"), [(3, 4, 1), (3, 4, 2), (100, 50, 1)])
def test_what_is_counted_is_what_devices_read(cache: Cache, sentences: int, words: int, visits: int) -> None:
    """Of each client as many sentences as one report reads, cut as it cuts them: never its whole text."""
    clients = cache.clients("train")
    training = ClientTraining(sentences=sentences, words=words, batch_size=1)
    reports = gather(cache, clients, training, seed=b"a round").sentences
    for client, read in zip(clients, reports, strict=True):
        own = training_text(cache, client[None], sentences=sentences, words=words, visits=visits)
        told = [row[row > 0].tolist() for row in read if row.any()]
        found = [sentence.tolist() for sentence in np.split(own, np.flatnonzero(own == BOS))[1:]]
        assert all(len(each) <= words + 1 for each in found)
        assert len(told) <= len(found) <= visits * len(told)
        everything = cache.padded(int(client), np.arange(cache.sentence_count(int(client))), words + 1)
        whole = [row[row > 0].tolist() for row in everything]
        assert all(each in whole for each in found)
        if sentences >= len(whole):
            assert sorted(found) == sorted(told) == sorted(whole)


def test_whole_clients_are_not_what_a_run_reads(cache: Cache) -> None:
    """The plant: the text that an unfair baseline would count is longer."""
    clients = cache.clients("train")
    fair = training_text(cache, clients, sentences=2, words=3)
    assert len(fair) < len(text_of(cache, clients))
    assert (fair == BOS).sum() == sum(min(cache.sentence_count(int(each)), 2) for each in clients)


def test_nobody_leaves_nothing_to_count(cache: Cache) -> None:
    with pytest.raises(InputError, match="0 clients leave no sentence"):
        training_text(cache, np.zeros(0, np.int64), sentences=2, words=3)


@given(seed=st.integers(0, 50))
@settings(max_examples=10)
def test_nothing_is_chosen_by_those_who_judge(seed: int) -> None:
    """Other test clients, the same choices; other validation clients, other ones."""
    validation, parts = people(seed), {"public": (of(1, people(seed)),), "clients": of(2, people(seed))}
    models = {"model": of(3, people(seed)).rows}
    one, other = (ladder(people(100 + at), validation, models=models, **parts) for at in (1, 2))  # type: ignore[arg-type]
    assert one.weights == other.weights and one.validation == other.validation and one.free == other.free
    swapped = ladder(people(101), people(200), models=models, **parts)  # type: ignore[arg-type]
    assert swapped.weights != one.weights


def test_test_clients_are_not_validation_clients() -> None:
    everybody = people(1)
    with pytest.raises(InputError, match="those who judge"):
        ladder(everybody, HeldOut(sentences=everybody.sentences[:3]), public=[of(1, everybody)])


def test_no_model_stands_in_for_a_rung() -> None:
    validation = people(1)
    public = of(1, validation)
    with pytest.raises(InputError, match="'best free model', as a rung of the ladder is"):
        ladder(people(2), validation, public=[public], models={FREE: public.rows})


def test_what_is_typed_refuses_nobody() -> None:
    """A refusal is a release: clients who typed what the validation clients typed are judged like any others."""
    everybody = people(1)
    alike = HeldOut(sentences=everybody.sentences.copy())
    assert ladder(everybody, alike, public=[of(1, everybody)]).free == PUBLIC_NGRAM


def test_the_order_is_the_validation_clients_choice() -> None:
    """Of a text in which the word before says what comes, and one in which nothing does."""
    cycle = np.concatenate([[BOS, *(4 + (start + np.arange(6)) % 5), EOS] for start in range(40)])
    judge = HeldOut(sentences=cycle[:64].reshape(2, 4, 8).astype(np.int32))
    by_order = {order: counted(cycle, judge, vocabulary=V, orders=(order,)).nats for order in (2, 3, 4)}
    best = counted(cycle, judge, vocabulary=V, orders=(2, 3, 4))
    assert best.nats == min(by_order.values()) and best.order == min(by_order, key=lambda each: by_order[each])


@given(seed=st.integers(0, 50))
@settings(max_examples=10)
def test_weights_are_those_that_make_validation_likeliest(seed: int) -> None:
    validation = people(seed)
    found = list(probabilities({str(at): of(at, validation).rows for at in (1, 2, 3)}, validation).values())
    weights, nats = tuned(found)
    assert sum(weights) == pytest.approx(1)
    for other in np.random.default_rng(seed).dirichlet(np.ones(3), 50):
        assert nats <= -np.log(other @ np.stack(found)).mean() + 1e-4


def test_every_rung_is_there_and_judged_on_the_same_words() -> None:
    validation = people(7)
    public, clients = of(1, validation), of(2, validation)
    network = of(5, validation).rows
    found = ladder(
        people(8), validation, public=[public], public_network=network, clients=clients, models={"run": network}
    )
    assert {PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, CLIENTS, "run", "run" + WITH_NGRAM} <= found.rungs.keys()
    assert BOTH in found.rungs and found.free in (PUBLIC_NGRAM, PUBLIC_NETWORK, FREE)
    sums = {name: found.sums(name) for name in found.rungs}
    for each in sums.values():
        assert (each["words"] == sums[FREE]["words"]).all() and (each["predicted"] == sums[FREE]["predicted"]).all()
        assert (each["top1"] <= each["top3"]).all() and (each["predicted"] <= each["words"]).all()
    gain = found.gain("run")
    assert gain.value == pytest.approx(
        (sums["run"]["top3"] - sums[found.free]["top3"]).sum() / sums[FREE]["words"].sum()
    )
    for name in (BOTH, CLIENTS, FREE):
        assert found.on(people(8), name).total == found.rungs[name].total
    assert ladder(people(8), validation, clients=clients).free is None
    with pytest.raises(InputError, match="no free model"):
        ladder(people(8), validation, clients=clients).gain(CLIENTS)


def test_several_public_texts_are_one_model_whose_shares_validation_sets() -> None:
    validation = people(3)
    found = ladder(people(9), validation, public=[of(1, validation), of(2, validation), of(4, validation)])
    assert found.free == PUBLIC_NGRAM and PUBLIC_NGRAM in found.rungs
    alone = [of(at, validation).nats for at in (1, 2, 4)]
    assert found.validation[PUBLIC_NGRAM] <= min(alone) + 1e-3
    assert isinstance(found.parts.get(PUBLIC_NGRAM, found.parts.get("public text 1")), NGramRows)


def test_the_job_measures_a_cache(cache: Cache, tmp_path: Path) -> None:
    import tacit
    from tacit.jobs.ladder import LadderSettings

    how = LadderSettings(sentences=4, words=6, judged=8, orders=(2, 3))
    found = tacit.ladder(cache, settings=how)
    record = found.to_record()
    assert record["best_free_model"] is None and set(record["rungs"]) == {CLIENTS}
    assert not record["rungs"][CLIENTS]["private"] and "without privacy" in str(found)
    assert record["clients"] == len(cache.clients("train"))
    with pytest.raises(InputError, match="sentences=0"):
        LadderSettings(sentences=0)
