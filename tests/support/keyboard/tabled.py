"""A reader whose every probability is written down by hand or drawn: what phrases and candidates are checked on."""

from typing import Any

import numpy as np

from tacit.text.vocabulary import SPECIALS, Provenance, Vocabulary

State = tuple[int, ...]


def words_of(*words: str, lowercase: bool = True) -> Vocabulary:
    return Vocabulary(words=words, provenance=Provenance(kind="public", description="for tests"), lowercase=lowercase)


class Tabled:
    """Its state are the tokens; the next word's probabilities depend on the last of them alone."""

    def __init__(self, table: Any) -> None:
        """table: (V, V) probabilities of the next token in rows, by the token before."""
        with np.errstate(divide="ignore"):
            self.logs = np.log(np.asarray(table, np.float64)).astype(np.float32)

    def begin(self) -> State:
        return ()

    def step(self, state: State, token: int) -> tuple[State, Any]:
        return (*state, token), self.logs[token]


def drawn(seed: int, ids: int, sharpness: float) -> Tabled:
    """Random rows; the sharper, the more of each row one word has. Padding and beginning are never next."""
    weights = np.random.default_rng(seed).gumbel(size=(ids, ids)) * sharpness
    weights[:, :2] = -np.inf
    powers = np.exp(weights - weights.max(axis=1, keepdims=True))
    return Tabled(powers / powers.sum(axis=1, keepdims=True))


def table_of(vocabulary: Vocabulary, rows: dict[str, dict[str, float]]) -> Tabled:
    """By words, "<bos>", "<eos>" and "<oov>"; what is left of a row goes to unknown words."""
    names = {vocabulary.word_of(id): id for id in range(vocabulary.size)}
    table = np.zeros((vocabulary.size, vocabulary.size))
    for before, row in rows.items():
        for word, share in row.items():
            table[names[before], names[word]] = share
    table[:, SPECIALS - 1] += 1.0 - table.sum(axis=1)
    return Tabled(table)
