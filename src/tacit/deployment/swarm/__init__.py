"""Thousands of light devices in one process, over real sockets: what a server is tried with before phones come.

`python -m tacit.deployment.swarm` from a command line, `Swarm` from Python.
"""

from tacit.deployment.swarm.faults import Fault, Faults
from tacit.deployment.swarm.log import Log, Part
from tacit.deployment.swarm.reports import Drawn, Reports, Trained
from tacit.deployment.swarm.swarm import Swarm, SwarmSettings

__all__ = ["Drawn", "Fault", "Faults", "Log", "Part", "Reports", "Swarm", "SwarmSettings", "Trained"]
