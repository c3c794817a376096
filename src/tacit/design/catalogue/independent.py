"""Independent noise: what all the others are measured against."""

from tacit.design.mechanism import Mechanism
from tacit.privacy.strategy import Independent

INDEPENDENT = Mechanism.fixed(
    "independent",
    Independent(),
    "fresh noise every round",
    "Fresh noise every round: what all the others are measured against.",
    adapts=True,
    searched=True,
)
