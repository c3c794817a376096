"""A process of a server: `python -m tacit.server.process ROLE`, told its settings on standard input.

One line of JSON, so that no secret is on a command line. The input stays open for as long as the supervisor lives; its
end is the order to end. What a process has to tell goes to standard output, a line each: `ready`, or `refused` and why.
"""

import logging
import signal
import sys
import threading
from typing import Any

from tacit.errors import LeaseLost, StoreError, TacitError
from tacit.parsing import parsed_json
from tacit.process_limits import no_core_dumps, one_thread
from tacit.records import from_plain
from tacit.server.worker import WorkerSettings, end_this_process

READY, REFUSED = "ready", "refused "
FAILS, REFUSES, TERMINATED = 1, 2, 143  # exit codes; what fails or was terminated is started again
FORMAT = "%(asctime)s %(levelname)s %(message)s"


def main() -> int:
    """Be what the command line says. Returns the exit code."""
    one_thread()
    no_core_dumps()
    role = sys.argv[1]
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=f"{FORMAT} [{sys.argv[2]}]")
    logging.getLogger("tacit").setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # strangers must not fill a disk with their bad requests
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # as the supervisor reads, whatever the locale
    told = parsed_json(sys.stdin.readline())
    threading.Thread(target=_end_with_the_supervisor, daemon=True).start()
    signal.signal(signal.SIGTERM, _terminated)  # uvicorn takes it over in a worker
    try:
        run(role, told)
    except TacitError as error:
        if may_pass(error):
            logging.getLogger("tacit.server").error("%s", error)
            return FAILS
        tell(REFUSED + str(error))
        return REFUSES
    return 0


def may_pass(error: TacitError) -> bool:
    """Whether it may be otherwise at another time: the run was taken over, or database or disk complained."""
    return isinstance(error, LeaseLost) or (isinstance(error, StoreError) and error.__cause__ is not None)


def run(role: str, told: dict[str, Any]) -> None:
    """Be a worker, or a coordinator; what each needs is loaded here: a worker has no JAX."""
    if role == "worker":
        from tacit.server import worker

        worker.serve(from_plain(WorkerSettings, told), ready=lambda: tell(READY))
    else:
        from tacit.server import coordinator

        coordinator.coordinate(from_plain(coordinator.CoordinatorSettings, told))


def tell(line: str) -> None:
    """The supervisor, in a line."""
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def _terminated(*_: object) -> None:
    """What is held (the lease of a run) is given back on the way out, which nobody cuts short by asking again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(TERMINATED)


def _end_with_the_supervisor() -> None:
    sys.stdin.read()
    end_this_process()


if __name__ == "__main__":
    sys.exit(main())
