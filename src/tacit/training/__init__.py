"""Federated learning of any model: clients train on their own text, the server sees one noised sum a round.

`device_part.py` is what a device computes (`client.py`: its training; `report_encoding.py`: what it says), `collect.py`
who asks the devices for a bounded sum (`sampling.py`: whom; `cohort.py`: in fixed shards; `workers_*.py`: on cores, an
accelerator, a cluster; `one_by_one.py`: each by itself); `server.py` what the server makes of the sum, `rounds.py` the
round, `loop.py` how rounds survive kill -9 by `checkpoint.py`, `randomness.py` who draws what; `central.py` and
`pretrain.py` train on text that may be pooled.
"""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.training.client import ClientTraining
    from tacit.training.collect import Learner, SimulatedCollector, TrainQuestion
    from tacit.training.randomness import generator_for, key_from_seed
    from tacit.training.rounds import RoundPlan
    from tacit.training.server import ServerOptimizer
else:
    __getattr__ = late(
        __name__,
        {
            "ClientTraining": "client",
            "Learner": "collect",
            "RoundPlan": "rounds",
            "ServerOptimizer": "server",
            "SimulatedCollector": "collect",
            "TrainQuestion": "collect",
            "generator_for": "randomness",
            "key_from_seed": "randomness",
        },
    )

__all__ = [
    "ClientTraining",
    "Learner",
    "RoundPlan",
    "ServerOptimizer",
    "SimulatedCollector",
    "TrainQuestion",
    "generator_for",
    "key_from_seed",
]
