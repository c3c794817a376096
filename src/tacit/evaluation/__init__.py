"""Does it help a user: accuracy on clients that were never trained on, and a trigram to hold it against."""

from tacit.evaluation.accuracy import Evaluation, HeldOut, evaluate
from tacit.evaluation.trigram import BackedOffTrigram

__all__ = ["BackedOffTrigram", "Evaluation", "HeldOut", "evaluate"]
