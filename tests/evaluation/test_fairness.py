"""How accuracy is spread over users: one model, and two side by side."""

import numpy as np
import pytest
from tests.support.keyboard.counting import counted

from tacit.errors import InputError
from tacit.evaluation.counts.histograms import UNCHANGED, mean_from, share_from
from tacit.evaluation.counts.model_queries import accuracy_query, change_query, queries_about
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.fairness import advantage_of, shared_vocabulary, spread_of
from tacit.networks.metrics import Counts


def typists(accuracies: list[float], words: int = 200) -> list[Counts]:
    return [counted(words=words, predicted=words, top1=round(a * words), top3=words, nats=1.0) for a in accuracies]


def test_a_spread_names_quantiles_and_the_worst_tenth() -> None:
    accuracies = [k / 100 for k in range(100)]
    found = spread_of([*typists(accuracies), counted(words=3, oov=3)])
    assert (found.clients, found.unmeasured) == (100, 1)
    assert found.pooled == pytest.approx(0.495) and found.mean.value == pytest.approx(0.495)
    assert found.worst_decile.value == pytest.approx(np.mean(accuracies[:10]))
    assert found.quantiles[0.5].low < 0.495 < found.quantiles[0.5].high


def test_models_are_compared_client_by_client() -> None:
    draw = np.random.default_rng(1)
    old = draw.uniform(0.1, 0.5, 200).round(2).tolist()
    new = [a + 0.01 for a in old]
    found = advantage_of(typists(new), typists(old))
    assert found.mean.low > 0.009 and found.better.value == 1.0 and found.worse.value == 0.0
    apart = spread_of(typists(new)).mean
    assert apart.high - apart.low > 10 * (found.mean.high - found.mean.low), "pairing is what makes it sharp"


def test_questions_say_what_the_counts_say() -> None:
    draw = np.random.default_rng(2)
    mute = counted(words=3, oov=3)
    models = [[*typists(draw.uniform(0.1, 0.5, 200).round(2).tolist()), mute] for _ in range(3)]
    asked = queries_about(models)
    assert len(asked) == 2 * 3 - 1 and {each.chosen.size for each in asked} == {201}
    found = exactly(asked)
    assert all(each.silent == 1 and each.reporting == 200 for each in found.values())
    for at, clients in enumerate(models):
        assert abs(mean_from(found[accuracy_query(at)]).value - spread_of(clients).mean.value) < 0.0051
    change, slow = found[change_query(2)], advantage_of(models[2][:-1], models[0][:-1])
    assert share_from(change, UNCHANGED).value == slow.better.value
    assert 1 - share_from(change, 0.0).value == pytest.approx(slow.worse.value)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="different words"):
        advantage_of(typists([0.1, 0.2]), typists([0.1, 0.2], words=100))
    with pytest.raises(InputError, match="a spread needs two"):
        spread_of([counted(words=3, oov=3), *typists([0.2])])
    shared_vocabulary({"a": "x" * 64, "b": "x" * 64})
    with pytest.raises(InputError, match="b has the vocabulary y"):
        shared_vocabulary({"a": "x" * 64, "b": "y" * 64})
