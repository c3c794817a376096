"""Run folders as jobs are given them: by their path or open, with what their records need to be read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.errors import RunError
from tacit.files import as_path
from tacit.parsing import parsed_toml
from tacit.runs import Run, TrainingMetadata
from tacit.runs.reconciliation import reconciled


@contextmanager
def opened(run: Run | str | os.PathLike[str]) -> Iterator[Run]:
    """The run, if its ledger and its log agree; one that was given by its path is closed again.

    Where its recipe names a mechanism of one's own (`package.module:NAME`), that module is imported: the ledger holds
    its strategy. Raises: RunError where there is no run or what it says cannot be true, InputError where the module is
    not there.
    """
    if isinstance(run, Run):
        _know_its_mechanism(run)
        yield reconciled(run)
        return
    with Run.open(as_path("run", run)) as found:
        _know_its_mechanism(found)
        yield reconciled(found)


def _know_its_mechanism(run: Run) -> None:
    """From what the run recorded when it began, so that ledger and log are enough whatever became of its settings."""
    if not isinstance(run.metadata, TrainingMetadata):
        return
    try:
        privacy = parsed_toml(run.metadata.recipe).get("privacy")
    except ValueError as error:
        raise RunError(f"what '{run.path}' recorded as its recipe is no TOML ({error}); restore a copy.") from error
    mechanism = privacy.get("mechanism") if isinstance(privacy, dict) else None
    name = mechanism.get("name") if isinstance(mechanism, dict) else None
    if isinstance(name, str) and ":" in name:
        from tacit.design.mechanism import imported  # the catalogue is loaded where it is needed

        imported(name)
