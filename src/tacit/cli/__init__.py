"""The command `tacit`; its sub-commands are listed in `commands.py`, each in the file named after its subject."""


def main() -> None:
    """The entry point of the `tacit` script: Ctrl-C is answered before anything that takes time is loaded, and threads
    are limited before a library makes them.
    """
    from tacit.cli.interrupts import leave_at_once

    leave_at_once()
    from tacit.process_limits import one_thread

    one_thread()
    from tacit.cli.commands import app

    app(prog_name="tacit")
