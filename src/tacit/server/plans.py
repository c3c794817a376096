"""A run's plan, as devices get it: the guarantee in its folder, in one document that never changes."""

from tacit.errors import InputError
from tacit.federation.kinds import FEDERATED, loaded
from tacit.protocol.messages import Plan
from tacit.runs import Run
from tacit.server.served import Enrolment


def plan_of(run: Run, enrolment: Enrolment = "none") -> Plan:
    """The plan of a run for real devices. Raises: InputError for a run that asks none."""
    if run.kind not in FEDERATED:
        raise InputError(f"'{run.path}' is a run of `tacit {run.kind}`, which asks no devices; give one that does.")
    plan: Plan = loaded(FEDERATED[run.kind].server).plan(run, enrolment)
    return plan
