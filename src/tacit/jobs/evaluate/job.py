"""How one or several models do on clients' text, client by client; exact, and released at a privacy cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any

from tacit.compute import Hardware
from tacit.errors import of_type
from tacit.files import PathLike, as_path
from tacit.jobs.account.run import RunAccount, account_run
from tacit.jobs.exact_and_released import known_exactly
from tacit.jobs.result import JobResult
from tacit.progress import Progress, silent
from tacit.records import json_ready
from tacit.runs import Run
from tacit.runs.metadata import EvaluationMetadata

if TYPE_CHECKING:  # JAX comes with them
    from tacit.data import Cache
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.settings import EvaluationSettings
    from tacit.federation.collector import Collector
    from tacit.keyboard.model_folder import TrainedModel
    from tacit.reports.blocks import Block
    from tacit.reports.page import ReportFiles


@dataclass(frozen=True, kw_only=True)
class EvaluationResult(JobResult):
    """What was found about each model: exactly, which only a simulation can, and as it was released; never mixed."""

    run: Run | None  # None: it was kept nowhere
    report: "ReportFiles | None"
    found: Mapping[str, Any] = field(repr=False)  # the report's record; numbers with their intervals are `Estimate`s

    @property
    def exact(self) -> Mapping[str, Any]:
        """By model and against the first, without noise: nothing is promised for it. Raises: InputError for a run with
        real devices, whose exact results nobody has.
        """
        return known_exactly(self.found)

    @property
    def released(self) -> Mapping[str, Any] | None:
        """The same from the released histograms alone; None where nothing was released."""
        part: Mapping[str, Any] | None = self.found["released"]
        return part

    @property
    def account(self) -> RunAccount | None:
        """What the release promises to each asked client, by the run's ledger; None without a run."""
        return None if self.run is None else account_run(self.run)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit evaluate --json` prints.

        Every share is of known words. `mean`, `worst_decile` and `quantiles` are over clients, each counting alike;
        `pooled`, `top3` and `cross_entropy` over words: who types more counts more.
        """
        return {"schema": "tacit.evaluation", "version": 1, **json_ready(self.found)}

    def blocks(self) -> "list[Block]":
        """What people read of it in a few lines."""
        from tacit.reports import summary_lines

        where = [] if self.report is None else self.report.where()
        return [*summary_lines.of_evaluation(json_ready(self.found)), *where]

    def _repr_html_(self) -> str:
        """What a notebook shows: the promise, then the tables."""
        from tacit.reports.evaluate import shown
        from tacit.reports.page import to_html_fragment

        return to_html_fragment(shown(json_ready(self.found)))


def evaluate(
    models: "Sequence[TrainedModel | PathLike]",
    data: "Cache | PathLike | None" = None,
    *,
    settings: "EvaluationSettings | None" = None,
    release: "ReleaseCost | None" = None,
    out: PathLike | None = None,
    population: PathLike | None = None,
    seed: int | None = None,
    collector: "Collector | None" = None,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> EvaluationResult:
    """Count how well each model predicts the text of held-out clients: quantiles, the worst decile, and who gains from
    one model over the first.

    models: finished runs, model folders, counted ones where clients are simulated, "trigram:CACHE" for that of a
    cache's training text, or what `load_model` gave; all with the vocabulary of `data`.
    data: the clients' cache; None where a collector asks real devices.
    settings: which clients, and how much of their text.
    release: the privacy cost at which histograms leave the simulation; they are written to the run folder `out`, with
    their row of the ledger. If `out` holds a run with the same settings, that run is resumed.
    out: the run folder to make, of a release.
    population: its budget pays for the release, before anything is released.
    seed: fixes the noise, which then is not private.
    collector: asks real devices instead of the clients of `data` (`tacit.evaluation.counts.collect`); only what is
    released is known of them.
    hardware: changes the speed, never the result.
    progress: gets events in this thread.

    Raises: InputError before anything is written; RunError where `out` is another run or was changed; what the
    collector does.
    """
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.settings import EvaluationSettings
    from tacit.jobs.evaluate.run import evaluated

    settings = EvaluationSettings() if settings is None else settings
    of_type("settings", settings, EvaluationSettings)
    of_type("release", release, ReleaseCost, NoneType)
    of_type("models", models, list, tuple)
    found, report = evaluated(
        models,
        data,
        settings,
        release,
        out=None if out is None else as_path("out", out),
        population=population,
        seed=seed,
        collector=collector,
        hardware=hardware,
        progress=progress,
    )
    return EvaluationResult(run=None if out is None else Run.open(as_path("out", out)), report=report, found=found)


def resume_evaluation(
    run: Run | PathLike,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> EvaluationResult:
    """Go on with a run of `evaluate`, or write the report of a finished one again. Raises: as `evaluate`."""
    from tacit.evaluation.settings import EvaluationSettings
    from tacit.jobs.analytics_run import begun_with

    begun = begun_with(run, EvaluationMetadata)
    (data, split, collector), settings = begun.clients_or_devices(), begun.settings
    return evaluate(
        [each["path"] for each in settings["models"]],
        data,
        settings=EvaluationSettings(
            **split, clients=settings["clients"], sentences=settings["sentences"], words=settings["words"]
        ),
        seed=settings.get("seed"),
        collector=collector,
        hardware=hardware,
        progress=progress,
        **begun.given,
    )
