"""`python -m tests.jobs.killed_at N COMMAND...`: a command of tacit that is killed at the N-th change to a disk.

A change is a file that is opened to be written, a rename, a folder made, or something removed; and a file that is
brought to the disk, of which the second half is missing then. N = 0 kills nothing. The number of changes is said at
the end.
"""

import os
import signal
import sys
from typing import Any

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link"}


def main() -> None:
    at, command = int(sys.argv[1]), sys.argv[2:]
    seen = 0

    def changes() -> bool:
        nonlocal seen
        seen += 1
        return seen == at

    def dies() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hears(event: str, given: tuple[Any, ...]) -> None:
        written = event == "open" and bool(int(given[2] or 0) & (os.O_WRONLY | os.O_RDWR))
        here = written and isinstance(given[0], str) and not given[0].startswith(("/dev", "/proc"))
        if (here or event in CHANGES) and changes():
            dies()

    synced = os.fsync

    def torn(descriptor: int) -> None:
        if os.path.isfile(f"/proc/self/fd/{descriptor}") and changes():
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            dies()
        synced(descriptor)

    from tacit.cli.commands import app

    os.fsync = torn
    sys.addaudithook(hears)
    try:
        app(command)
    finally:
        sys.stderr.write(f"changes: {seen}\n")


if __name__ == "__main__":
    main()
