"""How the attack is played: how many people, how large a network, how much noise."""

from dataclasses import dataclass

from tacit.errors import InputError
from tacit.training.client import ClientTraining

MOST = 100_000  # people and words: more than any such attack needs
SUMS = (2, 10, 100, 1_000)  # people; besides the cohort
LEAST_CLIENTS = 20  # of whom a mean has an interval that is worth anything


@dataclass(frozen=True, kw_only=True)
class AttackSettings:
    """Everything but the text. The defaults are the papers' where a minute or two of two cores allow it."""

    clients: int = 100  # attacked, and as many who took no part
    cohort: int = 6_500  # the largest sum, attacked clients included [paper 1: report goal]
    noise_multiplier: float = 7.0  # of a release [paper 1, tables 1 and 2]
    sentence_clients: int = 20  # whose sentences are reconstructed, too: a second for each and view
    sentences: int = 16  # of a client, in one batch: one step of SGD
    words: int = 20  # predicted words of a sentence
    learning_rate: float = 0.5
    vocabulary: int = 4_000  # ids, where no clients are given; else theirs
    embedding: int = 32
    units: int = 64
    tied: bool = False
    pretraining: int = 20_000  # public sentences that the network has learnt when clients get it
    confidence: float = 0.95
    delta: float = 1e-5

    def __post_init__(self) -> None:
        least = {"clients": LEAST_CLIENTS, "sentence_clients": 2, "embedding": 2, "units": 2, "vocabulary": 100}
        for name in ("clients", "cohort", "sentence_clients", "sentences", "words", "vocabulary", "pretraining"):
            if not least.get(name, 1) <= getattr(self, name) <= MOST:
                raise InputError(
                    f"{name}={getattr(self, name)} must be at least {least.get(name, 1)} and at most {MOST:,}."
                )
        if self.cohort < self.clients:
            raise InputError(f"cohort={self.cohort} is below clients={self.clients}, who are all in it; give more.")
        if not 0 < self.noise_multiplier < 1e6:
            raise InputError(
                f"noise_multiplier={self.noise_multiplier} must be above 0; the views without noise are there anyway."
            )

    @property
    def sums(self) -> tuple[int, ...]:
        """The sizes of the sums that are looked at."""
        return (*(size for size in SUMS if size < self.cohort), self.cohort)

    @property
    def client(self) -> ClientTraining:
        """What a client does with its text: one step, as the paper's FedSGD."""
        return ClientTraining(
            batch_size=self.sentences, sentences=self.sentences, words=self.words, learning_rate=self.learning_rate
        )
