"""The clients that several benchmarks train: vocabulary 10k, the papers' network, 64 sentences of 20 words a client.

Words have Zipf's frequencies, each sentence begins with BOS and ends with EOS; batches of 16, one epoch of SGD, clip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from tacit.compute.precision import Precision
from tacit.data import Cache, VocabularyRecord
from tacit.data.clients import ClientText
from tacit.data.importing import build_cache
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import next_word_loss
from tacit.text.vocabulary import Provenance, Vocabulary
from tacit.training import Learner, RoundPlan, SimulatedCollector
from tacit.training.cohort import Workers
from tacit.training.sampling import Cohorts, UniformCohorts

VOCABULARY = 10_000
SENTENCES, WORDS, BATCH, RATE, CLIP = 64, 20, 16, 0.5, 0.2
BOS, EOS, OOV, SPECIALS = 1, 2, 3, 4
HELD_OUT = 8  # clients in validation and in test


@dataclass
class _Clients:
    train: int
    sentences: int
    description: str = "the fixed workload"
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def expected_clients(self) -> int:
        return self.train + 2 * HELD_OUT

    def clients(self) -> Iterator[ClientText]:
        for split, count in {"train": self.train, "validation": HELD_OUT, "test": HELD_OUT}.items():
            for number in range(count):
                yield ClientText(client_id=f"{split}-{number}", texts=("",) * self.sentences, split=split)


@dataclass(frozen=True)
class _Encoded:
    ids: np.ndarray
    lengths: np.ndarray
    text_of: np.ndarray


def fixed_cache(path: Path, clients: int, sentences: int = SENTENCES) -> Cache:
    """So many training clients of the fixed workload, on disk; an existing folder is opened as it is."""
    if path.exists():
        return Cache.open(path)
    draw = np.random.default_rng(0)
    zipf = 1.0 / np.arange(1, VOCABULARY - SPECIALS + 1)

    def encode(texts: Sequence[str]) -> _Encoded:
        ids = np.empty((len(texts), WORDS + 1), np.int32)
        ids[:, 0], ids[:, -1] = BOS, EOS
        ids[:, 1:-1] = SPECIALS + draw.choice(len(zipf), (len(texts), WORDS - 1), p=zipf / zipf.sum())
        return _Encoded(ids.reshape(-1), np.full(len(texts), WORDS + 1, np.int32), np.arange(len(texts)))

    words = tuple(f"w{number}" for number in range(VOCABULARY - SPECIALS))
    vocabulary = Vocabulary(words=words, provenance=Provenance(kind="word list", description="none"), lowercase=False)
    record = VocabularyRecord(
        size=VOCABULARY, sha256=vocabulary.sha256, lowercase=False, kind="word list", description="none", oov_id=OOV
    )
    return build_cache(
        _Clients(clients, sentences),
        encode,
        path,
        vocabulary=record,
        vocabulary_json=vocabulary.to_json(),
        tokenizer="none",
    )


def uniform_collector(learner: Learner, plan: RoundPlan, workers: Workers) -> SimulatedCollector:
    """Cohorts drawn uniformly from the learner's clients, by a key of zeros."""
    uniform = UniformCohorts(plan.guarantee.participation)
    cohorts = Cohorts(learner.clients, uniform, report_goal=plan.report_goal, key=bytes(16))
    return SimulatedCollector(learner, cohorts, workers)


def fixed_learner(cache: Cache) -> Learner:
    """The papers' network, freshly drawn, and who trains it."""
    network = Cifg(vocabulary=VOCABULARY)
    start, unravel = ravel_pytree(network.init(jax.random.key(0)))
    return Learner(
        start=np.asarray(start),
        unravel=unravel,
        loss=next_word_loss(network),
        cache=cache,
        clients=cache.clients("train"),
    )


def fixed_recipe(
    cache: Path, *, rounds: int, report_goal: int, sentences: int = SENTENCES, precision: Precision = "float32"
) -> str:
    """A recipe over it: DP-FTRL with a published BLT; every client may take part in every round."""
    return f"""
name = "fixed workload"
data.cache = '{cache}'
client.precision = "{precision}"
client.sentences = {sentences}
client.words = {WORDS}
client.batch_size = {BATCH}
client.learning_rate = {RATE}
rounds = {{ rounds = {rounds}, report_goal = {report_goal}, min_separation = 1 }}
evaluation = {{ every = {rounds}, clients = {HELD_OUT}, test_clients = {HELD_OUT}, sentences = 8 }}
privacy = {{ mechanism = {{ name = "blt-b400" }}, noise_multiplier = 1.0, clip_norm = {CLIP} }}
run.seed = 1
"""
