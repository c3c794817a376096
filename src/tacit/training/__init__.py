"""Federated learning of any model: clients train on their own text, the server sees one noised sum a round.

`client.py` is what a phone computes (`precision.py` in how many digits), `cohort.py` how many of them are simulated on
cores, `accelerator.py` on a GPU, `cluster.py` on several machines; `server.py` what the server makes of the sum,
`rounds.py` the round and the loop, `profile.py` where its time goes, `checkpoint.py` how a round survives kill -9,
`randomness.py` who draws what; `central.py` and `pretrain.py` train on text that may be pooled.
"""

from tacit.training.client import ClientTraining
from tacit.training.cohort import Cores, Hardware
from tacit.training.randomness import generator_for, key_from_seed
from tacit.training.rounds import Learner, RoundOutcome, RoundPlan, train
from tacit.training.server import ServerOptimizer

__all__ = [
    "ClientTraining",
    "Cores",
    "Hardware",
    "Learner",
    "RoundOutcome",
    "RoundPlan",
    "ServerOptimizer",
    "generator_for",
    "key_from_seed",
    "train",
]
