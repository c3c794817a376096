"""Does personalization help, which users, and when should a device use it; exact, and released."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any

from tacit.compute import Hardware
from tacit.errors import of_type
from tacit.files import PathLike, as_path
from tacit.jobs.exact_and_released import ExactAndReleased
from tacit.progress import Progress, silent
from tacit.records import json_ready
from tacit.runs import Run
from tacit.runs.metadata import PersonalizationMetadata

if TYPE_CHECKING:  # JAX comes with them
    from tacit.data import Cache
    from tacit.evaluation.personalize.fine_tuning import FineTuning, Grid
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.settings import PersonalizationSettings
    from tacit.federation.collector import Collector
    from tacit.jobs.personalize.record import Found
    from tacit.keyboard.model_folder import TrainedModel
    from tacit.keyboard.phone_model import PhoneModel
    from tacit.reports.blocks import Block

NOT_SETTINGS = (
    "model",
    "data",
    "release",
    "seed",
    "name",
    "deployment",
    "vocabulary",
    "networks",
)  # of a run's settings.toml


@dataclass(frozen=True, kw_only=True)
class PersonalizationResult(ExactAndReleased):
    """What fine-tuning changed for each client: exactly, which only a simulation can, and as it was released; never
    mixed.
    """

    found: "Found" = field(repr=False)  # client by client where they are simulated, and the histograms

    @property
    def policies(self) -> tuple[Mapping[str, Any], ...]:
        """Whether a device should use its own model, by policies that the exact numbers of half the clients chose, and
        what they do to the others; none without a gate. Of real devices, those that the released histograms chose.
        """
        exact = self.record["simulation_only"]
        return tuple((self.record["released"] if exact is None else exact)["policies"])

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit personalize --json` prints."""
        return {"schema": "tacit.personalization", "version": 1, **self.plain()}

    def blocks(self) -> "list[Block]":
        """What people read of it in a few lines."""
        from tacit.reports import summary_lines

        return [*summary_lines.of_personalization(json_ready(self.record)), *self.report.where()]

    def _repr_html_(self) -> str:
        """What a notebook shows: the promise, then the tables."""
        from tacit.reports.blocks import FigureOf
        from tacit.reports.page import to_html_fragment

        return to_html_fragment(
            [block for block in self.report.everything.page.blocks if not isinstance(block, FigureOf)]
        )


def personalize(
    model: "TrainedModel | PhoneModel | PathLike",
    data: "Cache | PathLike | None",
    out: PathLike,
    *,
    settings: "PersonalizationSettings | None" = None,
    release: "ReleaseCost | None" = None,
    population: PathLike | None = None,
    seed: int | None = None,
    collector: "Collector | None" = None,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> PersonalizationResult:
    """Fine-tune a model on each client's own text, count who gains and loses, and release that at a price.

    model: a finished run, a model folder, or what `load_model` gave, with the vocabulary of `data`; of a counted one or
    a mixture a device adds its own caches and moves nothing by SGD, and clients have to be simulated. If `out` holds a
    run with the same settings, that run is resumed after its last client.
    data: a cache with held-out clients.
    out: the run folder to make.
    settings: how a device fine-tunes, and whose text is read.
    release: the privacy cost at which histograms leave the simulation.
    population: its budget pays for the release, before anything is released.
    seed: fixes the noise, which then is not private.
    collector: asks real devices instead (`tacit.evaluation.counts.collect`), with `data` None; only what is released is
    known of them.
    hardware: changes the speed, never the result.
    progress: gets events in this thread.

    Raises: InputError before anything is written, or where too few clients could be evaluated; RunError where `out` is
    another run or was changed; what the collector does.
    """
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.settings import PersonalizationSettings
    from tacit.jobs.personalize.run import personalized

    settings = PersonalizationSettings() if settings is None else settings
    of_type("settings", settings, PersonalizationSettings)
    of_type("release", release, ReleaseCost, NoneType)
    found, record, report = personalized(
        model,
        data,
        as_path("out", out),
        settings,
        release,
        population=population,
        seed=seed,
        collector=collector,
        hardware=hardware,
        progress=progress,
    )
    return PersonalizationResult(run=Run.open(as_path("out", out)), report=report, found=found, record=record)


def strategies_for(model: PathLike, grid: "Grid") -> "tuple[FineTuning, ...]":
    """What of a grid is tried with the model of a path: of a counted one caches alone.

    Raises: InputError where something of SGD is asked of a counted one.
    """
    from tacit.networks.model_files import is_counted

    return grid.of_counted() if is_counted(as_path("model", model)) else grid.strategies()


def settings_of(run: Run) -> "PersonalizationSettings":
    """What a run was asked to do, but for whose text it is."""
    return settings_from(run.settings_table)


def settings_from(record: Mapping[str, Any]) -> "PersonalizationSettings":
    """The same from what settings.toml says."""
    from tacit.evaluation.settings import PersonalizationSettings

    return PersonalizationSettings.from_plain({name: record[name] for name in record if name not in NOT_SETTINGS})


def resume_personalization(
    run: Run | PathLike,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> PersonalizationResult:
    """Go on with a run of `personalize`, or write the report of a finished one again. Raises: as `personalize`."""
    from tacit.jobs.analytics_run import begun_with

    begun = begun_with(run, PersonalizationMetadata)
    (data, split, collector), settings = begun.clients_or_devices(), begun.settings
    return personalize(
        settings["model"]["path"],
        data,
        settings=replace(settings_from(settings), **split),
        seed=settings.get("seed"),
        collector=collector,
        hardware=hardware,
        progress=progress,
        **begun.given,
    )
