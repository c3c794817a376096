"""Accuracy over devices of whatever reads word by word: a counted model, a mixture, an export."""

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.accuracy import Evaluation
from tacit.evaluation.held_out import HeldOut
from tacit.keyboard.suggest import Reader, Scores
from tacit.networks.language_model import kinds_of
from tacit.networks.metrics import Counts, Words, counts_of
from tacit.text.vocabulary import EOS, OOV, PAD, SPECIALS


def evaluate_reader(reader: Reader, held_out: HeldOut) -> Evaluation:
    """Count as `accuracy.evaluate` counts for a network: one step of the reader a token of the padded sentences."""
    each = tuple(counts_of(_words(reader, client), np).host() for client in held_out.sentences)
    return Evaluation(total=sum(each, Counts()), clients=each)


def nats_of(reader: Reader, held_out: HeldOut) -> NDArray[np.float64]:
    """(n,) -log of the probability of every target of all clients, ends and unknown words too."""
    return np.concatenate([_words(reader, client).nats for client in held_out.sentences])


def _words(reader: Reader, sentences: NDArray[np.int32]) -> Words:
    """Of one client's padded sentences (S, L+1)."""
    rows = []
    for sentence in sentences:
        state = reader.begin()
        for token, target in zip(sentence[:-1].tolist(), sentence[1:].tolist(), strict=True):
            if target == PAD:
                break
            state, scores = reader.step(state, token)
            rows.append((target, *_placed(scores, target)))
    targets, rank, nats, first = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Words(
        rank=np.array(rank, np.int64),
        nats=np.array(nats, np.float64),
        kind=kinds_of(np.array(targets, np.int64), np),
        first=np.array(first, np.bool_),
    )


def _placed(scores: Scores, target: int) -> tuple[int, float, bool]:
    """(the suggestions before the target, -log of its probability, whether no token is before it)."""
    own = scores[target]
    rank = int((scores[SPECIALS:] > own).sum() + (scores[SPECIALS:target] == own).sum())
    highest = scores.max()
    nats = float(highest + np.log(np.exp(scores - highest).sum(dtype=np.float64)) - own)
    before = [scores[id] > own or (scores[id] == own and id < target) for id in (EOS, OOV)]
    return rank, nats, rank == 0 and not any(before)
