"""Populations with few words, and the trigram that is counted in them."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

from tacit.data import Cache
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.text.vocabulary import BOS, EOS, OOV

V = 9  # four specials and five words, so that ties and unseen contexts abound
Sentence = list[int]


def cache_of(clients: list[list[Sentence]]) -> Cache:
    """What `train` asks of a cache, in memory."""

    def sentences(client: int) -> tuple[Any, Any]:
        text = clients[client]
        return np.array([w for s in text for w in s], np.uint16), np.array([len(s) for s in text], np.int64)

    return cast(Cache, SimpleNamespace(sentences=sentences))


sentences = st.lists(st.integers(OOV, V - 1), max_size=6).map(lambda words: [BOS, *words, EOS])

populations = st.lists(st.lists(sentences, min_size=1, max_size=8), min_size=1, max_size=4)


def trained(clients: list[list[Sentence]], words: int | None = None) -> BackedOffTrigram:
    return BackedOffTrigram.train(cache_of(clients), np.arange(len(clients)), vocabulary=V, words=words)
