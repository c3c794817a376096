"""The command `tacit`; its sub-commands are listed in `commands.py`, each in the file named after its subject."""


def main() -> None:
    """The entry point of the `tacit` script: standard streams are there before a file is opened, Ctrl-C is answered
    before anything that takes time is loaded, and threads are limited before a library makes them.
    """
    from tacit.cli.streams import open_streams

    open_streams()
    from tacit.cli.interrupts import leave_at_once

    leave_at_once()
    from tacit.process_limits import one_thread

    one_thread()
    from tacit.cli.commands import app

    app(prog_name="tacit")
