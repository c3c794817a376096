"""What tests ask a swarm for, over a server on real sockets."""

from typing import Any

from tests.support.server.documents import PARAMETERS
from tests.support.server.fleet import KEY, a_training_task
from tests.support.server.loopback import Loopback
from tests.swarm import DrawnReports, SwarmFaults, SwarmSettings

from tacit.privacy.encoding_choice import encoding_within
from tacit.protocol.messages import Separation
from tacit.server.http.pace_steering import LEAST_S
from tacit.training import TrainQuestion
from tacit.training.secure_updates import RoundEncoding

APART = 2  # rounds
SEPARATION = Separation(rounds=APART, timer_seconds=None, clock="start")
# A second, of all devices of a swarm: with more, those without work keep a busy machine from the reports of the others.
CHECK_INS = 200.0
LEAST_WAIT = 0.02  # of what the server asks


def a_task(round: int, goal: int, *, encoded: bool) -> TrainQuestion:
    secure = None
    if encoded:
        encoding = encoding_within(PARAMETERS, 1.0, goal)
        secure = RoundEncoding(
            encoding=encoding, signs=bytes([round]) * 32, clip_estimate=0.5, loss_bound=8.0, threshold=goal
        )
    return a_training_task(round, goal=goal, secure=secure)


def settings_of(server: Loopback, devices: int, faults: SwarmFaults, **changed: Any) -> SwarmSettings:
    """Devices that wait a fiftieth of what the server asks, or longer where they are many."""
    waits = max(LEAST_WAIT, devices / LEAST_S / CHECK_INS)
    fields: dict[str, Any] = {"seed": 7, "reports": DrawnReports(7), "waits": waits, "arrive_s": 0.2} | changed
    return SwarmSettings(
        server=server.url,
        operator_key=KEY.public,
        population=server.plan.population,
        devices=devices,
        faults=faults,
        **fields,
    )
