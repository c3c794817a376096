"""`tacit.discover`: the words that clients type and a vocabulary lacks, as a run that goes on where it was stopped."""

import csv
import hashlib
import io
import os
import secrets
import time
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import Any

import tomli_w

from tacit.data import Cache, Source, open_source
from tacit.data.manifest import MANIFEST
from tacit.data.sources import absolute
from tacit.data.unknown_words import TypedWords, cached_typed_words, read_typed_words
from tacit.discovery.collect import AtOnce, SecurelySummed, SimulatedCollector
from tacit.discovery.rounds import discover as discover_rounds
from tacit.discovery.rounds import step_content
from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError, RunError, UnknownRelease, of_type
from tacit.federation.collector import Collector
from tacit.files import PathLike, as_path, write_whole
from tacit.jobs import run_start
from tacit.jobs.account import budget
from tacit.jobs.devices import KEYS, DevicesCollector, RealDevices, check_served
from tacit.jobs.discover.result import COLUMNS, DiscoveryResult
from tacit.jobs.made_up_answers import MadeUpAnswers
from tacit.jobs.rehearsal import REHEARSING, RELEASE, REPORT, STATEMENT, kept_open, refused, scratch_run
from tacit.parsing import parsed_json
from tacit.privacy.delta import default_delta
from tacit.progress import Progress, StageBegan, StageEnded, Warned, silent
from tacit.records import from_plain, to_plain
from tacit.reports.discover import RESULT
from tacit.reports.page import FOR_READERS, PUBLISHED, ReportFiles, to_json, write_files
from tacit.reports.record_files import Records, write_run
from tacit.runs import Run, StepEntry
from tacit.runs.budget import PopulationBudget
from tacit.runs.budget_book import Cost
from tacit.runs.folder import NOBODY
from tacit.runs.metadata import DiscoveryMetadata
from tacit.statements import LocalReports, Statement
from tacit.statements.run_facts import statement_of
from tacit.text.counted_words import count_words
from tacit.text.vocabulary import SPECIALS, Vocabulary

WORDS = "words.csv"
DIGESTS = ("vocabulary_sha256", "population_sha256")  # in settings.toml beside the settings


@dataclass(frozen=True, kw_only=True)
class _People:
    """Who is asked: clients whose text is at hand, or real devices."""

    clients: int  # of real devices about so many
    typed: TypedWords | None
    devices: RealDevices | None
    collector_class: str | None  # the class of the devices' collector
    data: str | None  # what names the clients from any folder; None where they stand in memory


def discover(
    data: str | Cache | Source | PathLike | None,
    vocabulary: Vocabulary | PathLike,
    out: PathLike,
    settings: DiscoverySettings,
    *,
    delta: float | None = None,
    population: PathLike | None = None,
    collector: type[SimulatedCollector] | DevicesCollector = AtOnce,
    progress: Progress = silent,
) -> DiscoveryResult:
    """Ask the training clients of `data` for words that `vocabulary` lacks, and leave a run folder at `out`.

    data: a source, the line of text that names one, or a cache with a larger vocabulary; None of real devices, whom a
    collector of `tacit serve` asks. If `out` holds a run with the same arguments, that run is resumed; nobody is asked
    twice.
    vocabulary: the words that are known, or their file.
    out: the run folder to make.
    settings: epsilon, layers of the trie and users of each.
    delta: where the central epsilon is stated, and nothing else; by default that of so many clients (`privacy.delta`).
    population: its budget pays for the run, before anybody is asked.
    collector: how clients are asked; `UsersOneByOne` has each make its reports, as a device does, and gives sums of the
    same law as the quick `AtOnce`; settings with a `secure_sum` are asked by `SecurelySummed`, whatever is named here.

    Raises: InputError, SourceError, CacheError, ParticipationError (too few clients), all before anything is written;
    RunError where `out` was begun with other settings or is another thing; what the collector raises.
    """
    of_type("settings", settings, DiscoverySettings)
    known, place = _known(vocabulary), as_path("out", out)
    people = _people(data, known, place, settings, delta, population, collector, progress)
    for warning in discovery_warnings(settings, people.clients, known):
        progress(warning)
    with _begun(people, vocabulary, known, place, settings, delta, population, progress) as run, run.locked():
        return _to_the_end(run, settings, people, known, delta, collector, progress)


def begun(
    vocabulary: Vocabulary | PathLike,
    out: PathLike,
    settings: DiscoverySettings,
    collector: DevicesCollector,
    *,
    delta: float | None = None,
    progress: Progress = silent,
) -> Run:
    """The run folder of `discover` with the same arguments: new, before any device is asked, or resumed. Raises: as
    `discover`.
    """
    known, place = _known(vocabulary), as_path("out", out)
    people = _people(None, known, place, settings, delta, None, collector, progress)
    return _begun(people, vocabulary, known, place, settings, delta, None, progress)


def resume(run: Run, *, progress: Progress = silent) -> DiscoveryResult:
    """Go on with a run of words from what its folder says. Raises: InputError where it was given values, not places."""
    metadata, settings = metadata_of(run), settings_of(run)
    if metadata.deployment is not None:
        raise InputError(f"'{run.path}' asks real devices; start `tacit serve` with its file, which goes on with it.")
    if metadata.data is None or metadata.vocabulary is None:
        raise InputError(
            f"'{run.path}' was begun with clients or a vocabulary that stood in memory; go on with tacit.discover and "
            "the same arguments."
        )
    return discover(
        metadata.data,
        metadata.vocabulary,
        run.path,
        settings,
        delta=metadata.delta,
        population=None if metadata.budget is None else metadata.budget.path,
        progress=progress,
    )


def settings_of(run: Run) -> DiscoverySettings:
    """What the run was asked to do. Raises: InputError where it is of another kind, RunError where it is damaged."""
    metadata_of(run)
    own = (*DIGESTS, *KEYS)
    table = {name: value for name, value in run.settings_table.items() if name not in own}
    return from_plain(DiscoverySettings, table, error=RunError, where=f"the settings of '{run.path}'")


def devices_of(run: Run) -> RealDevices:
    """The real devices that the run asks. Raises: InputError where it asks none, or is of another kind."""
    metadata_of(run)
    return RealDevices.from_table(run.settings_table, where=f"the settings of '{run.path}'")


def vocabulary_digest(run: Run) -> str:
    """The SHA-256 of the vocabulary that the run started from. Raises: InputError where it is of another kind."""
    metadata_of(run)
    return str(run.settings_table.get("vocabulary_sha256", ""))


def metadata_of(run: Run) -> DiscoveryMetadata:
    """What the run recorded of itself. Raises: InputError where it is of another kind."""
    return run.of_kind(DiscoveryMetadata, "only `tacit discover` finds words; give the folder of one")


def typed_by(
    data: str | Cache | Source | PathLike, known: Vocabulary, *, split: str, progress: Progress = silent
) -> TypedWords:
    """What a split's clients typed beyond a vocabulary, cut as the keyboard cuts.

    From a source, or from a cache as far as the cache's own vocabulary spells it. Raises: SourceError, CacheError.
    """
    words = frozenset(known.words)
    if isinstance(data, Cache) or (isinstance(data, str | os.PathLike) and (Path(data) / MANIFEST).is_file()):
        cache = run_start.checked_cache(data, progress=progress)
        spelled = [None] * SPECIALS + list(Vocabulary.from_json(cache.vocabulary_json).words)
        return cached_typed_words(cache, spelled, words, split=split)
    source = open_source(os.fspath(data)) if isinstance(data, str | os.PathLike) else data
    return read_typed_words(
        source, lambda texts: count_words(texts, known.writing), words, split=split, progress=progress
    )


def planned_cost(settings: DiscoverySettings, population: PathLike | None) -> Cost:
    """What a run takes from each client, who answers once. Raises: InputError where a client may answer more often."""
    if settings.resample_users and population is not None:
        raise InputError(
            f"users drawn with replacement are promised nothing, so there is nothing to enter in '{population}'; drop "
            "resample_users, or the population."
        )
    return Cost(local_epsilon=settings.reports.user_epsilon)


# -- steps of a run ----------------------------------------------------------------------------------------------------


class RunJournal:
    """The steps of a run folder: a layer is kept once its row is committed, which names its file and its release."""

    def __init__(self, run: Run, *, of_devices: bool = False) -> None:
        """of_devices: without identities, whose number the log has; clients are in no log."""
        self._run, self._of_devices = run, of_devices
        self._steps = {step.file: step for step in run.steps()}
        self._began = time.perf_counter()

    def read(self, name: str) -> tuple[LocalReports, dict[str, Any]] | None:
        """A finished step. RunError when its file is damaged, UnknownRelease when its release is not understood."""
        step = self._steps.get(f"{name}.json")
        if step is None:
            return None
        path = self._run.path / "steps" / step.file
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RunError(f"'{path}' cannot be read ({error}); restore it from a copy, or begin a new run.") from error
        if hashlib.sha256(content).hexdigest() != step.digest:
            raise RunError(f"'{path}' is damaged (its SHA-256 differs); restore it from a copy, or begin a new run.")
        return from_plain(LocalReports, step.releases[0], error=UnknownRelease), parsed_json(content)

    def write(self, name: str, release: LocalReports, output: dict[str, Any], participants: int) -> None:
        """Keep a step: its file is on disk, and then its row, which makes it done."""
        content = step_content(output)
        write_whole(self._run.path / "steps" / f"{name}.json", content)
        now = time.perf_counter()
        step = StepEntry(
            step=self._run.steps_done,
            file=f"{name}.json",
            digest=hashlib.sha256(content).hexdigest(),
            releases=(to_plain(release),),
        )
        clients = participants if self._of_devices else NOBODY
        self._run.commit(step, clients=clients, seconds=now - self._began)
        self._began = now


def _to_the_end(
    run: Run,
    settings: DiscoverySettings,
    people: _People,
    known: Vocabulary,
    delta: float | None,
    collector: type[SimulatedCollector] | DevicesCollector,
    progress: Progress,
) -> DiscoveryResult:
    """Ask what is left to be asked, and write what was found."""
    if isinstance(collector, type):
        asking: Collector = _simulated(run, settings, people.typed, collector)
        journal = RunJournal(run)
    else:
        asking = collector
        journal = RunJournal(run, of_devices=True)
    budget.recheck(run)
    found = discover_rounds(
        settings, asking, journal, population=people.clients, known=frozenset(known.words), progress=progress
    )
    budget.commit(run)
    with kept_open(run, STATEMENT):
        stated = statement_of(run, delta)
    with kept_open(run, REPORT, lambda: _leave_statement(run, stated)):
        result = DiscoveryResult.from_run(Run.open(run.path), settings, found, people.typed, stated)
        files = _write(run.path, result)
    run.keep_files(*FOR_READERS, WORDS, RESULT)
    run.finish()
    return replace(result, report=files)


def _leave_statement(run: Run, stated: Statement) -> None:
    """What was released has its statement, whatever becomes of the pages."""
    write_files(run.path / PUBLISHED, {"statement.json": to_json(stated.to_record())})
    run.keep_files(f"{PUBLISHED}/statement.json")


def _rehearse(
    out: Path,
    written: str,
    metadata: DiscoveryMetadata,
    settings: DiscoverySettings,
    people: _People,
    known: Vocabulary,
    progress: Progress,
) -> None:
    """Play all of the run with made-up answers; see `jobs/rehearsal.py`. Raises: InputError naming what fails."""
    progress(StageBegan(REHEARSING))
    with scratch_run(out, written, metadata, b"") as run:
        of_devices = people.devices is not None
        with refused(RELEASE):
            found = discover_rounds(
                settings,
                MadeUpAnswers(of_devices=of_devices),
                RunJournal(run, of_devices=of_devices),
                population=people.clients,
                known=frozenset(known.words),
            )
        with refused(STATEMENT):
            stated = statement_of(run, metadata.delta)
        with refused(REPORT):
            _write(run.path, DiscoveryResult.from_run(run, settings, found, people.typed, stated))
    progress(StageEnded(REHEARSING))


def _simulated(
    run: Run, settings: DiscoverySettings, typed: TypedWords | None, kind: type[SimulatedCollector]
) -> SimulatedCollector:
    """Clients whose text is at hand, asked as devices would be."""
    assignment = metadata_of(run).assignment
    assert typed is not None and assignment is not None  # `_people` and `_begun` saw to it
    arguments: dict[str, Any] = {
        "typed": typed,
        "assignment": assignment,
        "resampled": settings.resample_users,
        "seed": settings.seed,
    }
    return kind(**arguments) if settings.secure_sum is None else SecurelySummed(**arguments, secure=settings.secure_sum)


def _write(folder: Path, result: DiscoveryResult) -> ReportFiles:
    """The words, what was found, the statement and the report, in the run's folder."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(result.rows())
    write_whole(folder / WORDS, text.getvalue().encode())
    found = result.found()
    write_whole(folder / RESULT, to_json({**found["figures"], "found": found["found"]}))
    kind = result.run.kind
    return write_run(folder, kind, Records.from_everything(kind, found, simulated=result.simulation is not None))


# -- before it begins --------------------------------------------------------------------------------------------------


def _known(vocabulary: Vocabulary | PathLike) -> Vocabulary:
    return vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary.load(as_path("vocabulary", vocabulary))


def _people(
    data: str | Cache | Source | PathLike | None,
    known: Vocabulary,
    out: Path,
    settings: DiscoverySettings,
    delta: float | None,
    population: PathLike | None,
    collector: type[SimulatedCollector] | DevicesCollector,
    progress: Progress,
) -> _People:
    """Who is to be asked, once everything that can be refused before was. Raises: as `discover`."""
    of_type("delta", delta, Real, NoneType)
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"--delta {delta:g} is not between 0 and 1; 1e-10 is usual.")
    planned_cost(settings, population)
    if population is not None:
        PopulationBudget.open(as_path("population", population))
    devices, kind = (None, None) if isinstance(collector, type) else (collector.devices, type(collector))
    _refuse_others(out, settings, known, devices)  # before clients are read
    if data is None and devices is not None and kind is not None:
        check_served(settings)
        by = f"{kind.__module__}.{kind.__qualname__}"
        people = _People(clients=devices.deployment.devices, typed=None, devices=devices, collector_class=by, data=None)
    elif data is not None and devices is None:
        typed = typed_by(data, known, split="train", progress=progress)
        people = _People(clients=typed.clients, typed=typed, devices=None, collector_class=None, data=_place_of(data))
    else:
        raise InputError(
            "clients of a source or a cache are asked by a kind of SimulatedCollector, and real devices, for whom data "
            "is None, by the collector of a server: start `tacit serve` with a file of kind 'discover'."
        )
    settings.check_population(people.clients)  # before there is a folder
    return people


def _begun(
    people: _People,
    vocabulary: Vocabulary | PathLike,
    known: Vocabulary,
    out: Path,
    settings: DiscoverySettings,
    delta: float | None,
    population: PathLike | None,
    progress: Progress,
) -> Run:
    """The open run folder, new or as it stands; a new one is rehearsed first. Raises: RunError; BudgetError."""
    drawn = secrets.randbits(62) if settings.seed is None else settings.seed
    metadata = DiscoveryMetadata(
        **run_start.of_this_process(settings.seed),
        assignment=drawn if people.devices is None else None,
        delta=default_delta(people.clients) if delta is None else delta,
        population=people.clients,
        data=people.data,
        vocabulary=None if isinstance(vocabulary, Vocabulary) else str(Path(vocabulary).resolve()),
        vocabulary_kind=known.provenance.kind,
        vocabulary_description=known.provenance.description,
        deployment=None if people.devices is None else people.devices.used(settings.groups),
        asked_by=people.collector_class,
    )
    text = None if people.typed is None else people.typed.sha256
    written = settings_toml(settings, known.sha256, population_sha256=text, devices=people.devices)
    if not (out / "run.db").is_file():
        _rehearse(out, written, metadata, settings, people, known, progress)
    request = budget.BudgetRequest.from_options(population, people.clients, planned_cost(settings, population))
    return run_start.begin(out, written, metadata, b"", request=request)


def settings_toml(
    settings: DiscoverySettings,
    vocabulary_sha256: str,
    *,
    population_sha256: str | None = None,
    devices: RealDevices | None = None,
) -> str:
    """The settings, and of which vocabulary and which clients or devices they are."""
    digests = dict(zip(DIGESTS, (vocabulary_sha256, population_sha256), strict=True))
    who = {} if devices is None else devices.to_plain()
    return tomli_w.dumps(_given({**digests, **who, **to_plain(settings)}))


def _given(table: dict[str, Any]) -> dict[str, Any]:
    """The table without what is None, which TOML cannot say."""
    return {name: value for name, value in table.items() if value is not None}


def _refuse_others(out: Path, settings: DiscoverySettings, known: Vocabulary, devices: RealDevices | None) -> None:
    """RunError where `out` cannot be a run of these settings, as far as they are known before the clients are read."""
    if not (out / "run.db").is_file():
        run_start.check_place(out)
        return
    with Run.open(out) as run:
        population = run.settings_table.get("population_sha256")
        written = settings_toml(settings, known.sha256, population_sha256=population, devices=devices)
        run_start.refuse_others(run, DiscoveryMetadata.kind, written)


def _place_of(data: str | Cache | Source | PathLike) -> str | None:
    """What names the clients from any folder; None where they stand in memory."""
    if isinstance(data, Cache):
        return str(data.path.resolve())
    return absolute(os.fspath(data)) if isinstance(data, str | os.PathLike) else None


# -- what is warned of before anybody is asked -------------------------------------------------------------------------

MANY_UNSPELLED = 0.02  # of the vocabulary's words: none of 2,000 English ones, 19% of 5,000 Spanish ones
NAMED = 40  # characters at most; more is another script, and wants an alphabet of its own


def discovery_warnings(settings: DiscoverySettings, clients: int, known: Vocabulary) -> list[Warned]:
    """Warnings for a run over so many clients whose devices have the vocabulary."""
    warnings = []
    if settings.resample_users:
        message = (
            f"SIMULATED POPULATION: {settings.users:,} users with the texts of {clients:,} clients, drawn with "
            "replacement; nothing is promised to those clients."
        )
        warnings.append(Warned("simulated-population", message))
    if settings.seed is not None:
        message = f"FIXED SEED {settings.seed}: a simulation; its randomness protects nobody."
        warnings.append(Warned("fixed-seed", message))
    unspelled = sum(not settings.alphabet.spells(word) for word in known.words) / len(known.words)
    if unspelled > MANY_UNSPELLED:
        lacked = settings.alphabet.lacked_by(known.words)
        way = f"--more-characters {lacked}" if len(lacked) <= NAMED else "--alphabet with those of that script"
        message = (
            f"{unspelled:.0%} of the vocabulary's words have characters that the alphabet lacks, and no new word that "
            f"has one will be found; give {way}."
        )
        warnings.append(Warned("narrow-alphabet", message))
    return warnings
