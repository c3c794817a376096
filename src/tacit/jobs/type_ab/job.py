"""What a model changes for somebody who types: two keyboards, the same simulated users and the same slips."""

from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any

from tacit.compute import Hardware
from tacit.errors import InputError, conceivable, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.exact_and_released import ExactAndReleased
from tacit.jobs.run_start import check_place
from tacit.progress import Progress, silent
from tacit.records import json_ready
from tacit.runs import Run
from tacit.runs.metadata import TypingMetadata

if TYPE_CHECKING:  # numba and JAX come with them
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.type_ab.settings import TypingSettings
    from tacit.jobs.type_ab.setup import Data, Model
    from tacit.reports.blocks import Block

NOT_SETTINGS = (
    "models",
    "data",
    "typed_sha256",
    "searched_with",
    "more_words_sha256",
    "release",
    "seed",
    "noise_seed",
)  # of a run's settings.toml


@dataclass(frozen=True, kw_only=True)
class TypingResult(ExactAndReleased):
    """What changes from A to B: exactly, which only a simulation can know, and as it was released; never mixed."""

    @property
    def judgement(self) -> str:
        """ "improved", "neutral", "worse" or "unknown", by the exact numbers and the rule of `evaluation.launch`."""
        return str(self.exact["decision"]["judgement"])

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit type --json` prints."""
        return {"schema": "tacit.typing", "version": 1, **self.plain()}

    def blocks(self) -> "list[Block]":
        """What people read of it: what was released, then the papers' row, every measure, and the judgement."""
        from tacit.reports.type_ab import summary_lines

        return [*summary_lines(json_ready(self.record)), *self.report.where()]


def type_ab(
    a: "Model",
    b: "Model",
    data: "Data",
    out: PathLike,
    *,
    settings: "TypingSettings | None" = None,
    release: "ReleaseCost | None" = None,
    population: PathLike | None = None,
    seed: int = 0,
    noise_seed: int | None = None,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> TypingResult:
    """Have simulated users type held-out text on two keyboards, and say what B changes against A.

    a, b: a finished run, a pre-training, a model folder, an exported folder, "trigram:CACHE", or what `load_model`
    gave; a model may be compared with itself.
    data: a source or the line of text that names one, or a cache, as far as its vocabulary spells the words. If `out`
    holds a run with the same settings, that run is resumed after its last user.
    out: the run folder to make.
    settings: whose text is typed, the typists and the conditions.
    release: the privacy cost at which histograms of users' changes leave the simulation.
    population: its budget pays for the release, before anything is released.
    seed: of users and their slips, the same ones on A and on B.
    noise_seed: fixes the noise of the release, which then is not private.
    hardware: changes the speed, never the result.
    progress: gets events in this thread.

    Raises: InputError, SourceError, CacheError before anything is written; RunError where `out` is another run or was
    changed.
    """
    from tacit.data import Cache, Source
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.type_ab.settings import TypingSettings
    from tacit.jobs.type_ab.run import typed_both
    from tacit.jobs.type_ab.setup import open_test

    settings = TypingSettings() if settings is None else settings
    of_type("settings", settings, TypingSettings)
    of_type("release", release, ReleaseCost, NoneType)
    of_type("seed", seed, int)
    conceivable("seed", seed)
    if seed < 0:
        raise InputError(f"seed={seed} must be 0 or more.")
    if not isinstance(data, Cache | Source):
        as_path("data", data)
    out = as_path("out", out)
    check_place(out)  # before anything is read
    test = open_test(a, b, data, settings, progress)
    record, report = typed_both(
        test,
        release,
        out,
        population=population,
        seed=seed,
        noise_seed=noise_seed,
        hardware=hardware,
        progress=progress,
    )
    return TypingResult(run=Run.open(out), report=report, record=record)


def resume_typing(
    run: Run | PathLike,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> TypingResult:
    """Go on with a run of `type_ab`, or write the report of a finished one again. Raises: as `type_ab`."""
    from tacit.evaluation.type_ab.settings import TypingSettings
    from tacit.jobs.analytics_run import begun_with

    begun = begun_with(run, TypingMetadata)
    assert isinstance(begun.metadata, TypingMetadata)  # as it was asked for
    data = begun.metadata.data
    if data is None:
        raise InputError(
            f"'{begun.path}' was begun with text that stood in memory; go on with tacit.type_ab and the same arguments."
        )
    settings = begun.settings
    own = {name: value for name, value in settings.items() if name not in NOT_SETTINGS}
    a, b = (each["path"] for each in settings["models"])
    return type_ab(
        a,
        b,
        data,
        settings=TypingSettings.from_plain(own),
        seed=settings["seed"],
        noise_seed=settings.get("noise_seed"),
        hardware=hardware,
        progress=progress,
        **begun.given,
    )
