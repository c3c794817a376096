"""Privacy, utility, computation and days of a run before any is spent: forwards from a configuration, backwards
from a target, and the seven steps from a scenario to a plan (arXiv:2305.18465, Section 2.5). NumPy only.
"""

from tacit.design.catalogue import mechanism_named
from tacit.planning.clients import Clients
from tacit.planning.scenario import AccountedPlan, ParticipationCost, Scenario, Utility
from tacit.planning.targets import Goal, report_goal_for, rounds_for, timer_for

__all__ = [
    "AccountedPlan",
    "Clients",
    "Goal",
    "ParticipationCost",
    "Scenario",
    "Utility",
    "mechanism_named",
    "report_goal_for",
    "rounds_for",
    "timer_for",
]
