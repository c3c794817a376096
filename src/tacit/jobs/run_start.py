"""What every run records when it begins, and how an existing run is found again."""

import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tacit.data import Cache
from tacit.errors import CacheError, InputError, RunError, of_type
from tacit.files import PathLike, check_folder
from tacit.jobs.account.budget import BudgetRequest, refuse_another, reserved
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.train.mixture_run import is_mixture_run
from tacit.parsing import parsed_toml
from tacit.progress import Progress, silent
from tacit.records import first_difference
from tacit.runs import Metadata, Run
from tacit.runs.metadata import CacheUsed
from tacit.runs.reconciliation import reconciled
from tacit.text.vocabulary import Vocabulary

DECIDE_A_BIT = ("tacit", "jax", "numpy")  # packages of which a run's bits depend


def of_this_process(seed: int | None) -> dict[str, Any]:
    """The metadata that every run has: versions, time, and who draws the noise key."""
    return {
        "versions": {**{name: version(name) for name in DECIDE_A_BIT}, "python": platform.python_version()},
        "created": time.time(),
        "key_source": "operating system" if seed is None else f"fixed seed {seed}",
    }


def cache_used(cache: Cache) -> CacheUsed:
    """The cache as a run records it."""
    return CacheUsed(
        cache=str(cache.path.resolve()),
        source=cache.manifest.source,
        vocabulary_sha256=cache.manifest.vocabulary.sha256,
        vocabulary_size=cache.manifest.vocabulary.size,
        clients=cache.manifest.clients,
        cache_digest=cache.manifest.digest,
    )


def checked_cache(data: Cache | PathLike, *, progress: Progress = silent) -> Cache:
    """A cache, all of which was read and is what was imported: nothing else is trained on, or asked about.

    Raises: CacheError where there is none, or a bit of it differs from what its digest says.
    """
    cache = open_cache(data)
    cache.verify(progress)
    words, listed = Vocabulary.from_json(cache.vocabulary_json), cache.manifest.vocabulary
    held = (words.sha256, words.size, words.provenance.kind, words.provenance.description)
    if held != (listed.sha256, listed.size, listed.kind, listed.description):
        raise CacheError(f"{cache.path} lists another vocabulary than it holds; import the source again.")
    return cache


def public_cache(data: Cache | PathLike, *, declared_public: bool, progress: Progress = silent) -> Cache:
    """A checked cache whose text a model may be made of that private runs begin from, or that is shipped.

    Raises: InputError where it has clients and nobody declared their text public; as `checked_cache`.
    """
    of_type("declared_public", declared_public, bool)
    cache = checked_cache(data, progress=progress)
    if not (cache.manifest.public or declared_public):
        raise InputError(
            f"the text in '{cache.path}' is clients' ({cache.manifest.source}), and a model of it carries what they "
            "typed into every private run that begins from it, at a price that no statement knows; import public text "
            "(`tacit data import public:FILE.parquet`, or `manuals`), or, if this text is public though it has "
            "clients, say --declared-public (in Python declared_public=True), which the statements repeat."
        )
    return cache


def public_source(cache: Cache) -> str:
    """The text of a `public_cache`, as whatever is made of it names it."""
    source = cache.manifest.source
    return source if cache.manifest.public else f"{source}, whose clients' text was declared public"


def same_cache(run: Run, used: CacheUsed, *, progress: Progress = silent) -> Cache:
    """The cache that a run began with, checked. Raises: as `checked_cache`; RunError where its text is another."""
    cache = Cache.open(Path(used.cache))
    if cache.manifest.digest != used.cache_digest:
        raise RunError(
            f"the cache '{cache.path}' is not the one that '{run.path}' began with (its text differs); "
            "put the old cache back, or start a new run."
        )
    return checked_cache(cache, progress=progress)


def check_place(out: Path) -> None:
    """RunError where no run folder can be at `out`: a file, or a folder of something else."""
    check_folder("--out", out)
    if is_mixture_run(out):
        raise RunError(
            f"'{out}' is a run of `tacit train` that makes a mixture, so it is left alone; give another --out, or go "
            f"on with it: `tacit resume {out}`."
        )
    if out.is_dir() and any(out.iterdir()) and not (out / "run.db").is_file():
        raise RunError(f"'{out}' exists and is no run folder, so it is left alone; give another --out.")


def key_for(seed: int | None) -> bytes:
    """The noise key of a new run: from the operating system, or of a fixed seed, which the metadata then says.

    Raises: InputError for a seed below 0.
    """
    if seed is not None and seed < 0:
        raise InputError(f"seed={seed} must be 0 or more; leave it out for a key from the operating system.")
    from tacit.mechanisms import fresh_key  # JAX is loaded here
    from tacit.training import key_from_seed

    return fresh_key() if seed is None else key_from_seed(seed)


def begin(out: Path, settings: str, metadata: Metadata, key: bytes, *, request: BudgetRequest | None = None) -> Run:
    """A new run folder, or the one at `out` where it has the same settings.

    request: what the run may spend of which population's budget, or None. Raises: RunError where `out` was begun with
    other settings, naming the first that differs, or is another thing; BudgetError where the population's budget is
    spent.
    """
    if not (out / "run.db").is_file():
        return reserved(request, out, metadata, lambda known: Run.create(out, settings, known, key))
    run = Run.open(out)
    try:
        refuse_others(run, metadata.kind, settings)
        refuse_another(run, None if request is None else request.population)
        reconciled(run)
    except RunError:
        run.close()
        raise
    return run


def refuse_others(run: Run, kind: str, settings: str) -> None:
    """RunError where the run is of another kind, or was begun with other settings (TOML), naming the first."""
    if run.kind != kind:
        raise RunError(f"'{run.path}' is a run of `tacit {run.kind}`, so it is left alone; give another --out.")
    if difference := difference_of(run, kind, settings):
        raise RunError(f"'{run.path}' was begun with other settings ({difference}); give those, or another --out.")


def difference_of(run: Run, kind: str, settings: str) -> str | None:
    """What was another when the run began, as `name was X and is now Y`; None where nothing was. settings: TOML."""
    begun, now = {"kind": run.kind, **run.settings_table}, {"kind": kind, **parsed_toml(settings)}
    return first_difference(begun, now)
