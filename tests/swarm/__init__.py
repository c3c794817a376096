"""Thousands of simulated devices in one process, over real sockets: what a server is tried with before phones come.

`python -m tests.swarm` from a command line, `Swarm` from Python.
"""

from tests.swarm.faults import Fault, SwarmFaults
from tests.swarm.log import SwarmLog, TaskOutcome
from tests.swarm.reports import DrawnReports, Reports, Trained
from tests.swarm.swarm import Swarm, SwarmSettings

__all__ = [
    "DrawnReports",
    "Fault",
    "Reports",
    "Swarm",
    "SwarmFaults",
    "SwarmLog",
    "SwarmSettings",
    "TaskOutcome",
    "Trained",
]
