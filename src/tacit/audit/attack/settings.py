"""How the attack is played: how many people, how large a network, how much noise."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tacit.errors import InputError
from tacit.privacy.empirical.samples import check_delta, error_of

if TYPE_CHECKING:  # JAX comes with it, and a command line needs none
    from tacit.training.client import ClientTraining

MOST = 100_000  # people and words: more than any such attack needs
SUMS = (2, 10, 100, 1_000)  # people; besides the cohort
LEAST_CLIENTS = 20  # of whom a mean has an interval that is worth anything


@dataclass(frozen=True, kw_only=True)
class AttackSettings:
    """Everything but the text. Cohort and noise are paper 1's; the network is small, so that two cores need minutes."""

    clients: Annotated[int, "People who are attacked; as many more take no part."] = 100
    cohort: Annotated[int, "People in the largest sum and in a release, the attacked ones among them."] = 6_500
    noise_multiplier: Annotated[float, "Noise of a release, in clip norms."] = 7.0  # [paper 1, tables 1 and 2]
    sentence_clients: Annotated[int, "So many of the attacked have their sentences reconstructed, too."] = 16
    tied: Annotated[bool, "One embedding serves both ends of the network; then sentences are not tried."] = False
    sentences: int = 16  # of a client, in one batch: one step of SGD
    words: int = 20  # predicted words of a sentence
    learning_rate: float = 0.5
    vocabulary: int = 4_000  # ids, where no clients are given; else theirs
    embedding: int = 32
    units: int = 64
    pretraining: int = 10_000  # public sentences that the network has learnt when clients get it
    confidence: float = 0.99  # of all findings together: promises are met so closely that chance would break some
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
        check_delta(self.delta)
        error_of(self.confidence)
        if not (self.learning_rate > 0 and 0 < self.noise_multiplier < 1e6):
            raise InputError(
                f"noise_multiplier={self.noise_multiplier} and learning_rate={self.learning_rate} must be above 0; the "
                "views without noise are there anyway."
            )

    @property
    def sums(self) -> tuple[int, ...]:
        """The sizes of the sums that are looked at."""
        return (*(size for size in SUMS if size < self.cohort), self.cohort)

    @property
    def client(self) -> "ClientTraining":
        """What a client does with its text: one step, as the paper's FedSGD."""
        from tacit.training.client import ClientTraining

        return ClientTraining(
            batch_size=self.sentences, sentences=self.sentences, words=self.words, learning_rate=self.learning_rate
        )
