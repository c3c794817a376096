"""The folder of a campaign: what was asked, each finished layer, and at the end the words.

    RUN/
      campaign.toml        the settings, and digests of the population and the vocabulary
      steps/               one file a layer (`pass-1-layer-03.json`) and the count, with what was released; each
                           appears whole, none is ever changed: together they are the ledger
      words.csv            the words with their estimated counts and intervals
      result.json          the same with the figures and the guarantee
      report/              the statement, for people and for `tacit verify`
      lock                 held by the one process that asks

A process killed at any instant leaves a layer finished or not begun, and who is asked in which layer is fixed when the
folder is made; so going on asks nobody twice.
"""

import fcntl
import json
import os
import secrets
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from tacit.errors import RunError, UnknownRelease
from tacit.files import sweep_drafts, sync_folder, write_whole
from tacit.records import from_plain
from tacit.statements import Ledger, LocalReports

FORMAT = "tacit campaign 2"
SETTINGS = "campaign.toml"
MEASURED = ("population_sha256",)  # what is known of the settings only once all clients are read


class CampaignFolder:
    """An open folder; `assignment` decides who is asked in which layer."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.settings = settings
        self.assignment = int(settings["assignment"])

    @classmethod
    @contextmanager
    def opened(cls, path: Path, asked: Mapping[str, Any]) -> Iterator["CampaignFolder"]:
        """A new folder for these settings, or the one that was begun with them; locked while it is open.

        RunError when it is another's folder, was begun with other settings (naming them), or is in use.
        """
        _check_place(path)
        (path / "steps").mkdir(parents=True, exist_ok=True)
        with _locked(path):
            if not (path / SETTINGS).is_file():
                settings = {"format": FORMAT, "assignment": asked.get("seed", secrets.randbits(62)), **asked}
                write_whole(path / SETTINGS, tomli_w.dumps(settings).encode())
                sync_folder(path.parent)
            folder = cls.reading(path)
            folder._check(asked)
            sweep_drafts(path / "steps")
            yield folder

    @classmethod
    def check(cls, path: Path, asked: Mapping[str, Any]) -> None:
        """RunError where `opened` would refuse these settings, as far as they are known yet; nothing is written."""
        _check_place(path)
        if (path / SETTINGS).is_file():
            folder = cls.reading(path)
            not_yet = {name: folder.settings[name] for name in MEASURED if name in folder.settings}
            folder._check({**not_yet, **asked})

    @classmethod
    def reading(cls, path: Path) -> "CampaignFolder":
        """A folder to look at. RunError when it is none."""
        try:
            settings = tomllib.loads((path / SETTINGS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"'{path}' has no {SETTINGS}, so it is no campaign's folder; check the path.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RunError(f"'{path / SETTINGS}' is damaged ({error}); begin a new campaign.") from error
        if settings.get("format") != FORMAT:
            raise RunError(f"'{path}' has the format {settings.get('format')!r}, this version reads {FORMAT!r}.")
        return cls(path, settings)

    def _check(self, asked: Mapping[str, Any]) -> None:
        own = {name: value for name, value in self.settings.items() if name not in ("format", "assignment")}
        differ = [name for name in sorted(own.keys() | asked.keys()) if own.get(name) != asked.get(name)]
        if differ:
            changes = ", ".join(f"{name}={asked.get(name)!r} (it has {own.get(name)!r})" for name in differ)
            raise RunError(
                f"'{self.path}' was begun with other settings: {_shortened(changes)}; "
                "go on with its own, or give another --out."
            )

    def read(self, name: str) -> dict[str, Any] | None:
        """A finished step. RunError when its file is damaged."""
        try:
            record = json.loads((self.path / "steps" / f"{name}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise RunError(f"'{self.path}/steps/{name}.json' is damaged ({error}); begin a new campaign.") from error
        if not isinstance(record, dict):
            raise RunError(f"'{self.path}/steps/{name}.json' is damaged (no step); begin a new campaign.")
        return record

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Keep a step: whole and on disk when this returns."""
        write_whole(self.path / "steps" / f"{name}.json", json.dumps(record, ensure_ascii=False).encode())

    def ledger(self) -> Ledger:
        """What was released so far, by every step on disk, in the order of the users asked.

        UnknownRelease where a step does not say what it released; RunError where its file is damaged.
        """
        steps = [self.read(path.stem) or {} for path in (self.path / "steps").glob("*.json")]
        releases: list[LocalReports] = [
            from_plain(LocalReports, step.get("release"), error=UnknownRelease) for step in steps
        ]
        by_user = sorted(releases, key=lambda release: release.first_user)
        return Ledger(tuple(by_user))

    def write_result(self, name: str, content: str) -> None:
        """A file of the result, in the folder itself or in one of its own."""
        (self.path / name).parent.mkdir(exist_ok=True)
        write_whole(self.path / name, content.encode())


def _check_place(path: Path) -> None:
    """RunError where something else is already."""
    if path.exists() and not path.is_dir():
        raise RunError(f"'{path}' is a file; give another --out.")
    if path.is_dir() and any(path.iterdir()) and not (path / SETTINGS).is_file() and not (path / "lock").is_file():
        raise RunError(f"'{path}' exists and is no campaign's folder, so it is left alone; give another --out.")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One campaign at a time in a folder. The kernel frees it when the process dies, however it dies."""
    with open(path / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise RunError(f"'{path}' is in use by process {owner}; wait for it or stop it.") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _shortened(text: str, most: int = 400) -> str:
    return text if len(text) <= most else text[:most] + " ..."
