"""The run folder: the only format in which a run of any kind is written, and all that others may read of it.

    runs/NAME/
      settings.toml   what was asked: kind = "train" | "discover" | "evaluate" | ..., then the settings
      strategy.json   the strategy matrix, where the recipe asks for one: rows of the ledger name it by its digest
      run.db          SQLite (WAL): the journal of all that was written, each entry sealed with those before it
      head            how long the journal is, and its last seal
      steps/          the state or the output after the last steps, one file a step
      model/          the released model and its vocabulary
      report/         what may be published
      simulation/     what only a simulation knows: exact numbers of clients' text, and the page with everything
      noise.key       the key of the noise while the run is unfinished; destroyed when it ends
      lock            held by the one process that works on it

A step is a training round, a layer of a discovery, a released set of histograms, or an evaluation of a pre-training.
It is done when its row is committed, and its row is committed after the file it names is on disk: a process killed at
any instant leaves the step either done or not begun. One row holds the ledger entries and the digest of the file, so
the state and what was released can never disagree. Only its owner may enter the folder.
"""

import fcntl
import functools
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, RunError
from tacit.files import PathLike, as_path, sweep_drafts, sync_folder
from tacit.folders import folder_beside, place_of, sweep_dead_folders, write_over
from tacit.parsing import parsed_json, parsed_toml
from tacit.records import from_plain
from tacit.runs.draft import NOISE_KEY, SETTINGS, STEPS, STRATEGY, commitment_to, first_change, write_draft
from tacit.runs.entries import Kept, Measured, MetricEntry, NoteEntry, RunBegunEntry, StepEntry, check_clock, is_below
from tacit.runs.journal import RESTORE, Journal, done_by, writing
from tacit.runs.metadata import Metadata, metadata_class

M = TypeVar("M", bound=Metadata)

NOBODY: NDArray[np.int64] = np.zeros(0, np.int64)
KEY_DESTROYED = "noise key destroyed"  # a note of a run that ended unfinished
MISSING = "missing"  # a note: what failed after releases, by its name, with the reason and how it is made later
_KIND = re.compile(r'\Akind = "([a-z]+)"\n')


class Run:
    """An open run folder. Reading needs nothing; writing needs `locked()`."""

    def __init__(self, path: Path, journal: Journal) -> None:
        self.path = path
        self._journal = journal

    # -- birth and opening -----------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, path: Path, settings: str, metadata: Metadata, noise_key: bytes, *, strategy: str | None = None
    ) -> Self:
        """A new run folder; all of it exists when this returns, or none of it under its name.

        settings: in TOML. metadata: what the run records of itself; its class is the kind of run. noise_key: empty
        where nothing is drawn from it (devices randomise, or text is public). strategy: the JSON of a strategy that the
        settings do not say in numbers.

        Raises: RunError when `path` is there already.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(
                f"'{path}' exists already and a run never overwrites another; choose another --out, "
                f"or continue it with `tacit resume {path}`."
            )
        path = place_of(path)
        with folder_beside(path) as draft, writing(path):
            write_draft(draft, f'kind = "{metadata.kind}"\n{settings}', metadata, noise_key, strategy)
            if path.exists():
                path.rmdir()  # empty, as checked above
            draft.rename(path)
        sync_folder(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Self:
        """An existing run folder, its journal checked. What a process that was killed at a run's end had no time to
        destroy is destroyed now, where the folder may be written.

        read_only: the run as it is now; nothing in the folder is written, made, locked or destroyed, whoever opens it.
        Raises: RunError when it is not one, one of another version, or not what was written.
        """
        run = cls(path, Journal.open(path, read_only=read_only))
        try:
            if run.finished and run.writable and run._dangerous():
                with suppress(RunError), run.locked():  # whoever works on it does so itself
                    run.tidy()
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The right to write. The kernel frees it when the process dies, however it dies."""
        if not self.writable:
            raise RunError(f"'{self.path}' cannot be written; copy it to where it can, or give the right to write.")
        with open(self.path / "lock", "a+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                owner = file.read().strip() or "unknown"
                raise RunError(
                    f"'{self.path}' is being worked on by process {owner}, and a run has one process at a time; "
                    "wait for it, or stop it and run `tacit resume` again."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            self._sweep()
            yield

    def _sweep(self) -> None:
        """Remove what killed processes left: steps half written, and beside the folder what a rehearsal played in."""
        sweep_drafts(self.path / STEPS)
        with suppress(OSError):  # what lies beside it may be another's
            sweep_dead_folders(place_of(self.path))

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows of a run."""
        state = "finished" if self.finished else "unfinished"
        return (
            f"<table><tr><th>run</th><td><code>{escape(str(self.path))}</code></td></tr>"
            f"<tr><th>kind</th><td>{self.kind}</td></tr>"
            f"<tr><th>steps done</th><td>{self.steps_done:,} ({state})</td></tr></table>"
        )

    # -- writing ---------------------------------------------------------------------------------------------------

    def commit(
        self,
        step: StepEntry,
        *,
        clients: NDArray[np.int64] | int = NOBODY,
        finished: float | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Make a step done: its ledger entries, the name of its file and who took part, in one transaction.

        clients: (participants,) numbers of the clients; how many, where they have no identities. finished: Unix seconds
        (left out: now). Raises: RunError when the step is not the next one, when the clock was set back and devices
        without identities are counted by it, or when it cannot be written (a full disk, say).
        """
        if not isinstance(clients, int) and len(np.unique(clients)) < len(clients):
            raise RunError(f"a client is twice in step {step.step} of '{self.path}'; each takes part once.")
        finished = time.time() if finished is None else finished
        done, numbers = done_by(clients, step=step, finished=finished, seconds=seconds)
        with self._journal.writing():
            if isinstance(clients, int):
                check_clock(self._journal.read(), finished, str(self.path))
            if step.step != self.steps_done:
                raise RunError(
                    f"step {step.step} of '{self.path}' cannot be released: step {self.steps_done} is the next; "
                    "two processes wrote to one run, resume it with one."
                )
            self._journal.append(done)
            self._journal.put_participants(step.step, numbers)

    def record_metrics(self, metrics: list[MetricEntry]) -> None:
        """Write an evaluation; measuring the same model twice replaces the same numbers by themselves."""
        with self._journal.writing():
            self._journal.append(Measured(metrics=tuple(metrics)))

    def note(self, name: str, value: Any) -> None:
        """Keep what was learnt after the run began: JSON under a name, in place of what was there."""
        with self._journal.writing():
            self._journal.append(NoteEntry(name=name, value=value))

    def keep_files(self, *places: str) -> None:
        """Record what was written for others to read: the SHA-256 of each file at or below `places`, in the folder."""
        files = {name: hashlib.sha256((self.path / name).read_bytes()).hexdigest() for name in self.files_at(*places)}
        if files != {name: sha for name, sha in self.files.items() if is_below(name, places)}:
            with self._journal.writing():
                self._journal.append(Kept(of=places, files=files))

    def finish(self) -> None:
        """Nothing of it is left to be done."""
        if not self.finished:
            self.note("finished", True)

    def tidy(self) -> None:
        """Destroy what could take the noise away again: the key, and states with the noise buffers in them."""
        if not self.finished and (self.path / NOISE_KEY).exists():
            self.note(KEY_DESTROYED, True)
        for file in self._dangerous():
            if file.name == NOISE_KEY:
                write_over(file)
            file.unlink()

    def _dangerous(self) -> list[Path]:
        """What `tidy` destroys."""
        states = self.path.glob(f"{STEPS}/*.safetensors") if self.metadata.steps_hold_states else ()
        return [file for file in (self.path / NOISE_KEY, *sorted(states)) if file.exists()]

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """Of run: a name of `federation.kinds.KINDS`."""
        return self.metadata.kind

    @property
    def settings(self) -> str:
        """The settings of the run, as TOML. Raises: RunError where the file is gone or was changed, naming the first
        line.
        """
        path = self.path / SETTINGS
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"'{path}' cannot be read ({error}); restore it from a copy of the run.") from error
        if text != self._begun.settings:
            raise RunError(
                f"'{path}' was changed since the run began ({first_change(self._begun.settings, text)}), and a run has "
                "one record of what was asked from its first step to its last; undo that, or begin another run."
            )
        found = _KIND.match(text)
        if found is None or found[1] != self.kind:
            raise RunError(f"'{path}' does not begin with kind = \"{self.kind}\"; {RESTORE}.")
        return text[found.end() :]

    @functools.cached_property
    def metadata(self) -> Metadata:
        """What the run recorded of itself when it began. Raises: RunError (damaged, or of another version)."""
        record = self._begun.metadata
        kind = record.get("kind")
        cls = metadata_class(kind)
        if cls is None:
            raise RunError(f"'{self.path}' is of the unknown kind {kind!r}; use the version that wrote it.")
        return from_plain(cls, record, error=RunError, where=f"the metadata of '{self.path}'")

    def of_kind(self, cls: type[M], otherwise: str) -> M:
        """The metadata, where the run is of the kind of `cls`.

        otherwise: what to do with a run of another kind, in words of its `{command}` and `{run}`. Raises: InputError.
        """
        if isinstance(self.metadata, cls):
            return self.metadata
        advice = otherwise.format(command=f"tacit {self.kind}", run=self.path)
        raise InputError(f"'{self.path}' is a run of `tacit {self.kind}` and not of `tacit {cls.kind}`; {advice}.")

    @property
    def writable(self) -> bool:
        """Whether the folder could be written when it was opened."""
        return self._journal.writable

    @property
    def finished(self) -> bool:
        return bool(self.notes.get("finished", False))

    @property
    def notes(self) -> dict[str, Any]:
        """What was learnt after the run began, by name."""
        return dict(sorted(self._journal.read().notes.items()))

    @property
    def settings_table(self) -> dict[str, Any]:
        """`settings`, read. Raises: RunError, also where they are no TOML, or more than is meant."""
        try:
            return parsed_toml(self.settings)
        except ValueError as error:
            raise RunError(f"'{self.path / SETTINGS}' cannot be read ({error}); {RESTORE}.") from error

    @property
    def strategy_digest(self) -> str | None:
        """SHA-256 of strategy.json as the run began with it; None where there was none."""
        return self._begun.strategy

    @property
    def strategy(self) -> dict[str, Any] | None:
        """The record of the strategy matrix; None where the recipe says the strategy. Raises: RunError (damaged)."""
        path, digest = self.path / STRATEGY, self.strategy_digest
        if digest is None:
            return None
        try:
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != digest:
                raise RunError(f"'{path}' is not the strategy that the run began with; {RESTORE}.")
            return dict(parsed_json(content))
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"'{path}' is damaged ({error}); {RESTORE}.") from error

    @property
    def noise_key(self) -> bytes:
        """The key of an unfinished run. Raises: RunError when the run has ended and its key is gone, or when what is
        there is not the key that the run began with: two noises for one run could be subtracted from each other.
        """
        try:
            key = (self.path / NOISE_KEY).read_bytes()
        except FileNotFoundError:
            lost = f"is not finished and has lost its noise key ({NOISE_KEY} was removed)"
            what = lost if self.key_lost else "is finished and its noise key destroyed"
            raise RunError(
                f"'{self.path}' {what}: no further round can be released from it; start a new run."
            ) from None
        if commitment_to(key) != self._begun.noise_key:
            raise RunError(
                f"'{self.path / NOISE_KEY}' is not the noise key that the run began with; {RESTORE}, or begin anew."
            )
        return key

    @property
    def seal(self) -> str:
        """Of everything that the account of the steps done follows from: what began, each step, who took part."""
        return self._journal.read().step_seals[-1]

    @property
    def seals(self) -> list[str]:
        """`seal` after each number of steps, 0 included."""
        return list(self._journal.read().step_seals)

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 by path from the folder, of each file that `keep_files` recorded last."""
        return dict(self._journal.read().files)

    def kept(self, name: str) -> bytes:
        """What `keep_files` recorded of a file. Raises: FileNotFoundError where it did not, or the file is not there;
        RunError where it is another.
        """
        if name not in self.files:
            raise FileNotFoundError(name)
        content = (self.path / name).read_bytes()
        if self.files[name] != hashlib.sha256(content).hexdigest():
            raise RunError(f"'{self.path / name}' is not what the run wrote (its SHA-256 differs); {RESTORE}.")
        return content

    def files_at(self, *places: str) -> list[str]:
        """Files at or below places of the folder, as paths from it; hidden ones (drafts) are left out."""
        found: list[Path] = []
        for place in (self.path / each for each in places):
            found += [place] if place.is_file() else sorted(each for each in place.rglob("*") if each.is_file())
        return [each.relative_to(self.path).as_posix() for each in found if not each.name.startswith(".")]

    @property
    def key_lost(self) -> bool:
        """Whether the noise key is gone though the run has not ended: removed, or the end of the journal was."""
        ended = self.finished or KEY_DESTROYED in self.notes or self._begun.noise_key is None
        return not ended and not (self.path / NOISE_KEY).exists()

    @property
    def steps_done(self) -> int:
        return len(self._journal.read().done)

    def steps(self) -> list[StepEntry]:
        return [each.step for each in self._journal.read().done]

    def participations(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(steps, clients), each (participations,), ordered by step: the log that post-hoc accounting measures.

        Raises: RunError naming the first step whose participants are not those that took part, or were only counted.
        """
        return self._journal.participants()

    def check_counted(self) -> None:
        """Raises: RunError where the log names who took part, of a run that counts devices only."""
        self._journal.check_counted()

    def counts(self) -> NDArray[np.int64]:
        """(steps,) how many took part in each step, whether or not it is known who."""
        return np.array([each.clients for each in self._journal.read().done], np.int64)

    def metrics(self) -> list[MetricEntry]:
        found = self._journal.read().metrics
        return [found[at] for at in sorted(found)]

    def times(self) -> list[tuple[int, float, float]]:
        """(step, when it finished in Unix seconds, its seconds) of each step."""
        return [(each.step.step, each.finished, each.seconds) for each in self._journal.read().done]

    @property
    def last_file(self) -> Path | None:
        """The file that the last done step names; None before the first step."""
        done = self._journal.read().done
        return self.path / STEPS / done[-1].step.file if done else None

    @property
    def _begun(self) -> RunBegunEntry:
        begun = self._journal.read().begun
        assert begun is not None  # `Journal.open` refuses one without
        return begun


def open_run(path: PathLike) -> Run:
    """A run folder of any kind, to be read; close it, or use it in a `with`. Raises: RunError where it is none.

    path: its folder.
    """
    return Run.open(as_path("path", path))
