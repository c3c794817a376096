"""Thousands of simulated devices in one process, over real sockets: what a server is tried with before phones come.

`python -m tests.swarm` from a command line, `Swarm` from Python.
"""

from tests.swarm.faults import Fault, Faults
from tests.swarm.log import Log, Part
from tests.swarm.reports import Drawn, Reports, Trained
from tests.swarm.swarm import Swarm, SwarmSettings

__all__ = ["Drawn", "Fault", "Faults", "Log", "Part", "Reports", "Swarm", "SwarmSettings", "Trained"]
