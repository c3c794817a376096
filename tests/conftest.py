"""What every test shares: JAX on the CPU, what was compiled kept, two kinds of properties, text that only some have."""

import gc
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # before anything imports JAX; the same numbers on every machine
os.environ["JAX_NUM_CPU_DEVICES"] = "2"  # two workers, even on one core
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"  # a worker is one thread, as in `tacit train`
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # its threads wait for work by turning, on cores that the other tests need
os.environ.setdefault("NO_COLOR", "1")  # what the command prints is compared as plain text
# All that XLA compiles is kept, for the next run and for the processes that tests start: it is most of a slow test.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).resolve().parent.parent / ".jax_cache"))
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import pytest
from hypothesis import HealthCheck, settings

from tacit.data.formats import manuals
from tacit.jobs.rehearsal import REHEARSING
from tacit.progress import StageBegan, StageEnded
from tacit.reports import drawing
from tacit.reports.figure import Figure

# What Python compiles is kept beside the sources, for the next run and for the processes that tests start, whatever the
# environment says: pytest rewriting the assertions of all tests anew is half of a collection.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

OPTIMIZED = os.environ["XLA_FLAGS"]  # for a process whose programs are to be those of users
# What XLA leaves undone, since tests compile thousands of programs to run each for milliseconds.
CHEAPLY = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes"
if version("jaxlib").startswith("0.10."):  # an unknown flag stops XLA, and flags come and go
    CHEAPLY += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
FEW = 200  # files of manuals, of the thousands that an environment with every extra has
BLANK = {"png": b"\x89PNG", "svg": b"<?xml version='1.0'?><svg></svg>"}

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"  # papers, reference tables and corpora beside the checkout, if any

# `quick` is derandomized: a red run is red for everybody. `full` (`make long`, `make nightly`) looks elsewhere.
# No deadline: two busy cores are slow, not wrong.
ANY = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", ANY, max_examples=15, derandomize=True)
# In CI nothing but the change may turn a run red, and the same examples need not be many: nights bring others.
CI = bool(os.environ.get("CI"))
settings.register_profile("full", ANY, max_examples=50 if CI else 200, print_blob=True, derandomize=CI)
settings.load_profile("quick")

# Of the processes of `make test`, none is left with one of these at the end: they take longest and begin first.
# The very first compiles the loops that simulate a population (20 s), before another process needs them too.
LONGEST_FIRST = (
    "server/test_quick_start.py",  # in `make long` these two wait for devices, which hold their reports back
    "server/test_count.py",
    "test_pages.py",
    "population/test_devices.py",
    "test_docs.py",
    "test_kill_and_resume.py",
    "training/test_workers_ray_run.py",
    "training/test_workers_ray.py",
    "contracts/test_jobs.py",
    "jobs/test_train.py",
    "contracts/test_models.py",
    "contracts/test_noise_streams.py",
    "design/test_blt.py",
    "cli/test_plan_production.py",
    "privacy/test_amplification.py",
    "randomizers/test_subset_sums.py",
    "jobs/test_train_api.py",
    "cli/test_tune.py",
    "jobs/test_personalize.py",
)


def as_users(config: pytest.Config) -> bool:
    """Of `make long` and `make nightly`: figures are printed and disks waited for as users have it."""
    return bool(config.getoption("--hypothesis-profile") == "full")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until tests begin
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # begun in the background: those who test Ctrl-C would wait
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if CI or not as_users(config):  # in CI `make long` finds what `make check` compiled
        os.environ["XLA_FLAGS"] += f" {CHEAPLY}"  # before JAX is imported, and of the processes that tests start too


def pytest_sessionstart() -> None:
    """An empty entry of the compilation cache goes: a test killed the process that was to fill it."""
    for entry in Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).glob("*-cache"):
        if entry.stat().st_size == 0:
            entry.unlink(missing_ok=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {f"tests/{name}": number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


def pytest_collection_finish() -> None:
    """Garbage is sought among what tests make, and more rarely: not again and again in the million objects of imports
    and collected tests, to each passage through which JAX adds work. That was half of a collection, a fifth of a test.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each file in one process; those that start a cluster in the same one, for two clusters are too many here."""
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "clusters" if "_ray" in file else file

    config.option.loadscopereorder = False  # in the order of LONGEST_FIRST, not of how many tests they have
    return Files(config, log)


@pytest.fixture(scope="module", autouse=True)
def printed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every figure of a test is composed, once and not for each form; matplotlib's printing, most of a short run's
    time, is left to tests `drawn`.
    """
    draw, composed = drawing._draw, set[Figure]()

    def compose(canvas: Any, figure: Figure) -> None:
        if figure not in composed:
            draw(canvas, figure)
            composed.add(figure)  # one that cannot be is tried again, and fails again

    with pytest.MonkeyPatch.context() as patch:
        if not as_users(request.config) and request.node.get_closest_marker("drawn") is None:
            patch.setattr("tacit.reports.drawing._draw", compose)
            patch.setattr("tacit.reports.drawing.printed", lambda canvas, form: BLANK[form])
            yield
            drawing.render.cache_clear()
        else:
            yield


def kind_of_run(metadata: Any, settings: str) -> Any:
    """What two runs share whose settings differ in numbers and paths alone."""
    own = (getattr(metadata, "asked_by", None), *getattr(metadata, "hooks", {}).items())
    return metadata.kind, re.sub(r'"[^"\n]*/[^"\n]*"|[\d.]+', "", settings), own


@pytest.fixture(scope="module", autouse=True)
def rehearsed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of runs of a kind the first in a module rehearses how it ends, which is a third of a short training; the others
    end by the same functions. All do in modules marked `rehearsed`, and in `make nightly`.
    """
    played = set[Any]()

    def unless_played(real: Any, run: Any, *given: Any) -> None:
        if kind_of_run(run.metadata, run.settings) not in played:
            real(run, *given)

    @contextmanager
    def scratch_run(real: Any, *given: Any, **named: Any) -> Iterator[Any]:
        with real(*given, **named) as run:
            yield run
            kind = kind_of_run(run.metadata, run.settings)
        played.add(kind)

    def rehearse(real: Any, analytics: Any, out: Any, settings: str, metadata: Any, known: Any, progress: Any) -> None:
        kind = kind_of_run(metadata, settings)
        if kind in played:
            progress(StageBegan(REHEARSING))
            progress(StageEnded(REHEARSING))
        else:
            real(analytics, out, settings, metadata, known, progress)
            played.add(kind)

    instead = {
        "jobs.train.rehearsal.release": unless_played,
        "jobs.train.rehearsal.write_reports": unless_played,
        "jobs.train.rehearsal.rehearse_export": unless_played,
        "jobs.train.rehearsal.scratch_run": scratch_run,
        "jobs.analytics_run._rehearse": rehearse,
    }
    with pytest.MonkeyPatch.context() as patch:
        if request.config.option.markexpr and request.node.get_closest_marker("rehearsed") is None:
            for place, of_tests in instead.items():
                module, _, name = f"tacit.{place}".rpartition(".")
                if loaded := sys.modules.get(module):  # JAX comes with them, for which most tests have no use
                    patch.setattr(loaded, name, partial(of_tests, getattr(loaded, name)))
        yield


@pytest.fixture(scope="session", autouse=True)
def two_devices() -> None:
    """JAX has its two devices before a test trains with one: a process keeps those that it began with."""
    if jax := sys.modules.get("jax"):
        jax.local_devices()


@pytest.fixture(scope="session", autouse=True)
def few_manuals(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of what this Python and its packages ship, public text is the first FEW files of each root alone."""
    with pytest.MonkeyPatch.context() as patch:
        if not as_users(request.config):
            files = manuals._files
            patch.setattr(manuals, "_files", lambda root: files(root)[:FEW])
        yield


class Hasty(sqlite3.Connection):
    """A database that waits for no disk, whatever it is asked for."""

    def execute(self, statement: str, *given: Any) -> sqlite3.Cursor:
        if statement.startswith("PRAGMA journal_mode"):  # a change of it is waited for too
            super().execute("PRAGMA synchronous = OFF")
        waits = statement.startswith("PRAGMA synchronous = ")
        return super().execute("PRAGMA synchronous = OFF" if waits else statement, *given)


@pytest.fixture(scope="session", autouse=True)
def no_power_cut(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nobody cuts the power of a test, and a process that is killed loses nothing that it has written: disks, for which
    a run and a device wait dozens of times, are not waited for.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not as_users(request.config):
            patch.setattr(os, "fsync", lambda descriptor: None)
            patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Hasty))
        yield


@pytest.fixture(scope="session", autouse=True)
def own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where users have their data, and devices their journals, is of this session alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of corpora and reference tables; a test that asks for it is skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the folder {SHARED.name}/ beside the checkout")
    return SHARED
