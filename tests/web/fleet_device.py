"""A device as a process, for a fleet: it takes part until it is ended, and says what it encodes, a line a report.

Told by a line of JSON on standard input. Its work is done in this process, so that it can be seen.
"""

import base64
import json
import sys
import time

import tacit
from tacit.device.policy import Policy
from tacit.device.session import Machine, Session
from tacit.device.turn import SessionOutcome
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask

LONGEST_REST = 0.5  # seconds


def say(what: str, **found: object) -> None:
    sys.stdout.write(json.dumps({"what": what, **found}) + "\n")
    sys.stdout.flush()


def main() -> None:
    told = json.loads(sys.stdin.readline())
    sealed = Session.body

    def body(self: Session, plan: Plan, task: RoundTask, report: ReportBody, assignment: str) -> bytes:
        made = sealed(self, plan, task, report, assignment)
        words = base64.b64encode(report.values.astype("<u4").tobytes()).decode()
        say("report", task=task.task, words=words, bytes=len(made))
        return made

    def heard(turn: SessionOutcome) -> None:
        if turn.what != "idle":
            say("turn", turn=str(turn))

    Session.body = body  # type: ignore[method-assign]
    tacit.run_device(
        told["address"],
        told["cache"],
        told["state"],
        journal=told["state"] + "-journal",
        population=told["population"],
        client=told["client"],
        operator_key=told["key"],
        first_time=True,
        probes=(),
        policy=Policy(**told["policy"]),
        machine=Machine(sleep=lambda seconds: time.sleep(min(seconds, LONGEST_REST))),
        told=heard,
        isolated=False,
    )


main()
