"""A process of a server: `python -m tacit.deployment.process ROLE`, told its settings on standard input.

One line of JSON, so that no secret is on a command line. The input stays open for as long as the supervisor lives; its
end is the order to end. What a process has to tell goes to standard output, a line each: `ready`, or `refused` and why.
"""

import json
import logging
import sys
import threading
from typing import Any

from tacit.deployment.worker import WorkerSettings, end_this_process
from tacit.errors import TacitError
from tacit.records import from_plain

READY, REFUSED = "ready", "refused "
REFUSES = 2  # its exit code
FORMAT = "%(asctime)s %(levelname)s %(message)s"


def main() -> int:
    """Be what the command line says. Returns the exit code."""
    role = sys.argv[1]
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=f"{FORMAT} [{sys.argv[2]}]")
    logging.getLogger("tacit").setLevel(logging.INFO)
    told = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_supervisor, daemon=True).start()
    try:
        run(role, told)
    except TacitError as error:
        tell(REFUSED + str(error))
        return REFUSES
    return 0


def run(role: str, told: dict[str, Any]) -> None:
    """Be a worker, or a coordinator; what each needs is loaded here: a worker has no JAX."""
    if role == "worker":
        from tacit.deployment import worker

        worker.serve(from_plain(WorkerSettings, told), ready=lambda: tell(READY))
    else:
        from tacit.deployment import coordinator

        coordinator.coordinate(from_plain(coordinator.CoordinatorSettings, told))


def tell(line: str) -> None:
    """The supervisor, in a line."""
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def _end_with_the_supervisor() -> None:
    sys.stdin.read()
    end_this_process()


if __name__ == "__main__":
    sys.exit(main())
