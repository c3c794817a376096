"""`tacit.serve`: everything that a server of real devices is, on one machine, started and watched.

A coordinator for each recipe makes its rounds, workers answer devices; both share a store and blobs. Whichever of them
is killed is started again and goes on where it was.
"""

import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path, check_folder, read_bounded
from tacit.plurals import quantity
from tacit.protocol.address import Address
from tacit.protocol.key_rotation import previous_key, signed_once
from tacit.protocol.log_proofs import key_rotation_entry
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest
from tacit.recipe import Recipe
from tacit.records import to_plain
from tacit.server.jobs import jobs_of
from tacit.server.log.pinned_key import check_key
from tacit.server.log.transparency import TransparencyLog
from tacit.server.metrics import SHARED
from tacit.server.rounds.round_progress import goes_on
from tacit.server.rounds.who_could_come import too_few_codes
from tacit.server.served import ServedJob
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store
from tacit.server.store.tokens import enrol
from tacit.server.supervisor import Role, Supervisor
from tacit.server.web_settings import WebSettings

MOST_WORKERS = 64
PUBLIC_KEY = "operator.pub"  # in the folder, for whoever starts devices
LEAST_TOKEN = 16  # characters


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A server that runs: what whoever gives devices out, or watches it, has to know."""

    url: str  # where it listens
    operator_key: str  # 64 hexadecimal digits: what devices pin
    runs: tuple[Path, ...]  # the run folders of its recipes
    workers: int
    warnings: tuple[str, ...] = ()  # of rounds that cannot fill
    goes_on: tuple[str, ...] = ()  # with runs that were served before: which round, and how many reports are there
    web: tuple[str, ...] = ()  # of the page that it serves, and of pages elsewhere that may be devices

    def __str__(self) -> str:
        """As people read it."""
        before = "".join([*(f"{each}\n" for each in self.goes_on), *(f"warning: {each}\n" for each in self.warnings)])
        web = "".join(f"{each}\n" for each in self.web)
        names = ", ".join(run.name for run in self.runs) or "the rounds of coordinators elsewhere"
        return (
            f"{before}serving {names} at {self.url} with {quantity(self.workers, 'worker')}\n"
            f"{web}operator key {self.operator_key}\n"
            f"a device: tacit device --server {self.url} --operator-key {self.operator_key} --data CACHE --state FOLDER"
        )


@dataclass(frozen=True, kw_only=True)
class ServeResult:
    """A server that was ended, or whose runs are all done."""

    runs: tuple[Path, ...]
    finished: bool  # whether every run is done

    def __str__(self) -> str:
        """As people read it."""
        if self.finished:
            return "\n".join(f"{run} is done; `tacit report {run}` shows it" for run in self.runs)
        return "the server was ended; the same command goes on where it was"

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit serve --json` prints."""
        runs = [str(each) for each in self.runs]
        return {"schema": "tacit.serve", "version": 1, "runs": runs, "finished": self.finished}


@dataclass(frozen=True, kw_only=True)
class SharedResources:
    """What all processes of a server share."""

    store: str
    blobs: str
    key: Path
    enrolment: bool  # whether devices show tokens

    def checked(self, upgrade: bool, codes: Sequence[str], runs: Iterable[Path]) -> str:
        """The operator's public key, once all of it can be used. runs: the run folders, those that are there already.

        Refused here, once, rather than by every process. Raises: InputError; StoreError; RunError.
        """
        opened = Store.open(self.store, upgrade=upgrade)
        try:
            check_key(self.key, opened, runs)
            BlobStore.open(self.blobs)
            key = OperatorKey.in_file(self.key)
            if (before := previous_key(self.key)) is not None:
                signed = signed_once(self.key, before, key)
                TransparencyLog.beside(opened, key, self.key).append(key_rotation_entry(digest(signed.document)))
            if self.enrolment:
                enrol(opened, codes)
        finally:
            opened.close()
        return key.public


def serve(
    recipes: Sequence[PathLike | Recipe],
    out: PathLike,
    *,
    store: str | None = None,
    blobs: str | None = None,
    operator_key: PathLike | None = None,
    data: PathLike | None = None,
    workers: int = 2,
    address: Address = Address(),  # noqa: B008  (frozen)
    admin_token: str | None = None,
    enrolment_codes: PathLike | None = None,
    without_enrolment: bool = False,
    web: PathLike | None = None,
    web_origins: Sequence[str] = (),
    upgrade_store: bool = False,
    serving: Callable[[Serving], None] = lambda each: None,
    stop: threading.Event | None = None,
) -> ServeResult:
    """Serve devices until every run is done, or until `stop` is set (SIGTERM and Ctrl-C set it too).

    recipes: of training, or files of other kinds of runs (`jobs.py`). Without any, only workers start, for the rounds
    of coordinators elsewhere that share store, blobs and key.
    out: a folder for what is not given otherwise: `runs/NAME`, the run folder of each recipe, resumed where it exists;
    `store.db`; `blobs`; `operator.key`, made where there is none, and `operator.pub`, which devices pin.
    store: the address of a database that workers share.
    blobs: where models lie, a folder or an address.
    operator_key: the file of the secret key that signs plans.
    data: a cache that replaces the recipes' own.
    workers: processes that answer devices.
    address: where the server listens.
    admin_token: whoever has it may pause and resume runs by HTTP; without it nobody may.
    enrolment_codes: a file with a secret code for each device, a line each: whoever has one may take part, and nobody
    else; left out, all may.
    without_enrolment: let all take part even where decryptors open the sums, and nobody sees which report spoilt one.
    web: the folder of a built page that the server serves itself, read once. Whoever uses it trusts the operator with
    the page that reads the text, so it is for demonstrations.
    web_origins: origins whose pages may be devices, such as "https://type.example.org"; no other page may.
    upgrade_store: bring an older store to this version.
    serving: told once, when devices can come.
    stop: an event that ends it.

    Raises: InputError for what contradicts itself or cannot be used; StoreError for a store or blobs that cannot, and
    with the words of a coordinator that refuses its recipe.
    """
    of_type("recipes", recipes, list, tuple)
    _check_workers(workers, admin_token)
    folder = as_path("out", out).absolute()
    check_folder("out", folder)
    jobs = jobs_of(recipes, None if data is None else as_path("data", data).absolute())
    _check_rounds(jobs, elsewhere=None not in (store, blobs, operator_key))
    _check_enrolment(jobs, enrolled=enrolment_codes is not None, without=without_enrolment)
    pages = WebSettings.checked(web, web_origins, address)
    codes = [] if enrolment_codes is None else _codes(as_path("enrolment_codes", enrolment_codes))
    shared = SharedResources(
        store=store or f"sqlite:///{folder / 'store.db'}",
        blobs=blobs or f"file://{folder / 'blobs'}",
        key=folder / "operator.key" if operator_key is None else as_path("operator_key", operator_key).absolute(),
        enrolment=enrolment_codes is not None,
    )
    runs = {name: folder / "runs" / name for name in jobs}
    ended = threading.Event() if stop is None else stop
    with (
        address.listening() as listener,
        _made(folder),
        _counts_shared(),
        pages.told() as of_web,
        _ends_by_signal(ended),
    ):
        public = shared.checked(upgrade_store, codes, runs.values())
        (folder / PUBLIC_KEY).write_text(public + "\n", encoding="ascii")
        told = {"socket": listener.fileno(), "admin_token": admin_token, **address.tls, **of_web, **vars(shared)}
        roles = [Role("worker", f"worker {each + 1}", to_plain(told), (listener.fileno(),)) for each in range(workers)]
        roles += [_coordinator(name, job, runs[name], shared) for name, job in jobs.items()]
        said = Serving(
            url=address.url(listener),
            operator_key=public,
            runs=tuple(runs.values()),
            workers=workers,
            warnings=_too_few(jobs, codes) if enrolment_codes is not None else (),
            goes_on=_going_on(shared.store, jobs),
            web=pages.lines(address.url(listener)),
        )
        finished = Supervisor(roles).run(ended, ready=lambda: serving(said))
    return ServeResult(runs=tuple(runs.values()), finished=finished)


def _check_workers(workers: int, admin_token: str | None) -> None:
    """Raises: InputError."""
    of_type("workers", workers, int)
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"--workers {workers}: give 1 to {MOST_WORKERS}; for more, several machines share a store.")
    if admin_token is not None and len(admin_token) < LEAST_TOKEN:
        raise InputError(f"the administrator's token has fewer than {LEAST_TOKEN} characters; draw a longer one.")


def _check_rounds(jobs: Mapping[str, ServedJob], *, elsewhere: bool) -> None:
    """elsewhere: whether everything is named that coordinators elsewhere share. Raises: InputError."""
    if not jobs and not elsewhere:
        raise InputError(
            "there is no recipe to serve; give one or more, or --store, --blobs and --operator-key of a server "
            "elsewhere, whose rounds workers here are to answer for."
        )


def _coordinator(name: str, job: ServedJob, out: Path, shared: SharedResources) -> Role:
    """One owner of its lease for all that are started here, one after another: each ends before the next begins."""
    told = {"job": job.to_toml(), "out": out, "owner": secrets.token_hex(16), **vars(shared)}
    return Role("coordinator", f"coordinator of {name}", to_plain(told), ends=True)


def _check_enrolment(jobs: Mapping[str, ServedJob], *, enrolled: bool, without: bool) -> None:
    """Raises: InputError where sealed sums are anybody's by default, or codes are given and not wanted."""
    if enrolled and without:
        raise InputError("--enrolment-codes and --without-enrolment contradict each other; drop one of them.")
    sealed = next((name for name, job in jobs.items() if job.deployment.decryptors), None)
    if sealed is not None and not enrolled and not without:
        raise InputError(
            f"decryptors open the sums of {sealed!r}, so nobody sees which report spoilt one, and without enrolment "
            "whoever reaches the server reports as often as they like. Give --enrolment-codes FILE with a secret code "
            "for each device, or --without-enrolment where all may take part."
        )


def _too_few(jobs: Mapping[str, ServedJob], codes: Sequence[str]) -> tuple[str, ...]:
    """What to say of runs for which fewer devices are enrolled than their rounds need."""
    enrolled = sum(bool(each.strip()) for each in codes)
    said = (too_few_codes(name, codes=enrolled, needs=job.needs[0], goal=job.needs[1]) for name, job in jobs.items())
    return tuple(each for each in said if each is not None)


def _going_on(store: str, names: Iterable[str]) -> tuple[str, ...]:
    """Where the runs go on that were served before. Raises: StoreError."""
    with closing(Store.open(store)) as opened:
        said = [goes_on(opened, name) for name in names]
    return tuple(each for each in said if each is not None)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The folder, its owner's alone; one that was not there before is not left where nothing could begin."""
    before = folder.exists()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        yield
    except InputError:
        if not before:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _codes(path: Path) -> list[str]:
    """Raises: InputError where they cannot be read."""
    try:
        return read_bounded(path).decode("ascii").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"--enrolment-codes '{path}' cannot be read ({error}); give a file of codes.") from None


@contextmanager
def _counts_shared() -> Iterator[None]:
    """A folder in which workers share what they count."""
    with tempfile.TemporaryDirectory(prefix="tacit-metrics-") as folder:
        os.environ[SHARED] = folder
        try:
            yield
        finally:
            del os.environ[SHARED]


@contextmanager
def _ends_by_signal(ended: threading.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C set the event, where this is the thread that may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda *_: ended.set()) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
