"""A first model from public text, for private training to begin with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from tacit.compute import Hardware
from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.jobs.result import JobResult
from tacit.progress import Progress, StageBegan, StageEnded, silent
from tacit.records import from_plain, json_ready, to_plain
from tacit.runs import Run
from tacit.runs.history import History
from tacit.runs.metadata import PretrainingMetadata

if TYPE_CHECKING:  # what these need is loaded when something is trained
    from tacit.data import Cache
    from tacit.keyboard.model_folder import TrainedModel
    from tacit.networks.language_model import LanguageModel, Parameters
    from tacit.reports.blocks import Block
    from tacit.training.pretrain import HeldOutEvaluation, Pretraining

PASSAGE = 200  # sentences of a held-out passage that are looked at


@dataclass(frozen=True, kw_only=True)
class PretrainingResult(JobResult):
    """A finished pre-training, read from its folder."""

    run: Run

    @property
    def evaluations(self) -> "tuple[HeldOutEvaluation, ...]":
        """On held-out public text, in order; the first is of the initial model."""
        from tacit.training.pretrain import evaluations_of

        return evaluations_of(self.run)

    @property
    def best(self) -> "HeldOutEvaluation":
        """That of the model that was kept."""
        from tacit.training.pretrain import best_of

        return best_of(self.evaluations)

    @property
    def stopped_early(self) -> bool:
        """Whether training ended because held-out text no longer gained."""
        planned: int = self.run.settings_table["pretraining"]["sentences"]
        return self.evaluations[-1].sentences < planned

    @property
    def held_out(self) -> Mapping[str, float]:
        """The metrics of the kept model on held-out text."""
        return {metric.name: metric.value for metric in self.run.metrics()}

    @property
    def source(self) -> str:
        """The public text; where it has clients, that it was declared public."""
        return _metadata(self.run).data.source

    def model(self) -> "TrainedModel":
        """The model that did best on held-out text."""
        from tacit.keyboard.model_folder import load_model

        return load_model(self.run.path)

    def history(self) -> History:
        """A row for each evaluation: `sentences` trained on before it, `loss` then, `held_out`."""
        columns = zip(*self.evaluations, strict=True)
        return History(dict(zip(("sentences", "loss", "held_out"), map(np.array, columns), strict=True)))

    def blocks(self) -> "list[Block]":
        """What people read of it in a few lines: how well the kept model does, and how to begin from it."""
        from tacit.reports.blocks import Paragraph

        best, found, path = self.best, self.held_out, self.run.path
        ended = "stopped early: held-out text no longer gained" if self.stopped_early else "all sentences seen"
        kept = f"best after {best.sentences:,} sentences of {self.source} ({ended})"
        measured = f"held-out top-1 {found['top1_accuracy']:.2%}, cross-entropy {best.held_out:.3f} nats"
        way = f"model: {path / 'model'}; begin a private run from it: tacit train RECIPE --init {path}"
        return [Paragraph(f"{kept}: {measured}"), Paragraph(way)]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit pretrain --json` prints."""
        record: dict[str, Any] = json_ready(
            {
                "schema": "tacit.pretraining",
                "version": 1,
                "run": str(self.run.path),
                "model": str(self.run.path / "model"),
                "source": self.source,
                "best": self.best._asdict(),
                "stopped_early": self.stopped_early,
                "held_out": dict(self.held_out),
                "evaluations": [each._asdict() for each in self.evaluations],
            }
        )
        return record

    def _repr_html_(self) -> str:
        from tacit.reports.page import to_html_fragment
        from tacit.reports.pretrain import records_of, released_page

        released = records_of(self.run).released
        assert released is not None  # public text: all of it may be published
        return to_html_fragment(released_page(released).blocks)


def pretrain(
    data: "Cache | PathLike",
    out: "PathLike",
    *,
    model: "LanguageModel | Mapping[str, Any] | None" = None,
    settings: "Pretraining | None" = None,
    held_out: int = 50,
    seed: int = 0,
    declared_public: bool = False,
    progress: Progress = silent,
) -> PretrainingResult:
    """Train a model on a cache of public text, into a run folder at `out`; `train(init=out)` begins from it.

    If `out` holds a run with the same settings, that run is resumed.

    data: the cache, or its path.
    out: the run folder to make.
    model: the network, or a table like a recipe's [model] (kind and settings), by default the papers'; the cache
    determines its number of words.
    settings: how long, and when to stop.
    held_out: clients of the validation part that evaluate.
    seed: of the initial model and of the order of the text; nothing is private.
    declared_public: the text has clients and is public all the same, which every statement of a run that begins from
    the model repeats.

    Raises: InputError when there is nothing to train on, or the text is clients' and not declared public; RunError
    where `out` was begun with other settings; TrainingError when training diverges.
    """
    from tacit.jobs.run_start import (
        begin,
        cache_used,
        check_place,
        key_for,
        of_this_process,
        public_cache,
        public_source,
    )
    from tacit.networks.language_model import parameter_count, settings_of
    from tacit.training.pretrain import Pretraining

    Hardware().apply()  # it needs one device; a training in the same process, as in the demo, needs one a core
    if min(seed, held_out - 1) < 0:
        raise InputError(f"--seed {seed} must be 0 or more and --held-out {held_out} at least 1.")
    cache = public_cache(data, declared_public=declared_public, progress=progress)
    network = _with_words(model or {}, cache)
    plan = _in_precision(settings or Pretraining(), network)
    written = {
        "data": cache.manifest.digest,
        "seed": seed,
        "held_out": held_out,
        "model": settings_of(network),
        "pretraining": to_plain(plan),
    }
    used = replace(cache_used(cache), source=public_source(cache))
    metadata = PretrainingMetadata(**of_this_process(seed), data=used, parameters=parameter_count(network))
    place, asked = as_path("out", out), tomli_w.dumps(written)
    if not (place / "run.db").is_file():
        check_place(place)
        _rehearse(place, asked, metadata, cache, progress)
    return _to_the_end(begin(place, asked, metadata, key_for(seed)), progress)


def resume_pretraining(
    run: Run,
    *,
    progress: Progress = silent,
) -> PretrainingResult:
    """Resume a pre-training; a finished one is read."""
    Hardware().apply()
    return _to_the_end(run, progress)


def _to_the_end(run: Run, progress: Progress) -> PretrainingResult:
    from tacit.reports.page import PUBLISHED
    from tacit.reports.record_files import RECORD

    with run.locked():
        if not run.finished:
            _train(run, progress)
        if f"{PUBLISHED}/{RECORD}" not in run.files:
            _report(run)
        run.tidy()
    return PretrainingResult(run=run)


def _train(run: Run, progress: Progress) -> None:
    """What the run lacks, then its model and what that is worth."""
    from tacit.jobs.run_start import same_cache
    from tacit.networks.gradients import central_loss
    from tacit.training.pretrain import Pretraining, best_of, pretrain

    cache = same_cache(run, _metadata(run).data, progress=progress)
    settings, metrics = run.settings_table, _measuring(run, cache)
    network = _network(settings)
    trained = pretrain(
        run,
        central_loss(network),
        _first(run, network),
        cache,
        cache.clients("train"),
        plan=from_plain(Pretraining, settings["pretraining"], where="pretraining"),
        measure=lambda parameters: metrics(parameters)["cross_entropy"],
        progress=progress,
    )
    _write_model(run, network, trained.model, cache)
    at = trained.evaluations.index(best_of(trained.evaluations))
    _end(run, at, metrics(trained.model))


def _network(settings: Mapping[str, Any]) -> "LanguageModel":
    """That the settings of a run name."""
    from tacit.networks.language_model import model_of

    own = dict(settings["model"])
    return model_of(own.pop("kind"), own)


def _first(run: Run, network: "LanguageModel") -> "Parameters":
    """The random model that training begins with."""
    import jax

    from tacit.training import generator_for

    return network.init(jax.random.key(int(generator_for(run.noise_key, "initial model").integers(2**31))))


def _measuring(run: Run, cache: "Cache") -> "Callable[[Parameters], Mapping[str, float]]":
    """What gives the metrics of a model on the held-out text. Raises: InputError where there is none."""
    from tacit.compute.cores import Cores
    from tacit.evaluation.accuracy import evaluate
    from tacit.evaluation.held_out import HeldOut
    from tacit.training.pretrain import Pretraining

    settings = run.settings_table
    plan = from_plain(Pretraining, settings["pretraining"], where="pretraining")
    clients = cache.clients("validation")[: settings["held_out"]]
    validation = HeldOut.read(cache, clients, sentences=PASSAGE, words=plan.central.words)
    network, cores = _network(settings), Cores(Hardware(workers=1))
    return lambda parameters: evaluate(network, parameters, validation, cores=cores).metrics()


def _write_model(run: Run, network: "LanguageModel", model: "Parameters", cache: "Cache") -> None:
    from tacit.keyboard.model_folder import write_model
    from tacit.networks.model_files import write_origin

    write_model(run.path / "model", network, model, cache.vocabulary_json.encode())
    write_origin(run.path / "model", _metadata(run).data.source)
    run.keep_files("model")


def _end(run: Run, at: int, worth: Mapping[str, float]) -> None:
    """at: the evaluation of the model that was kept. worth: its metrics on held-out text."""
    from tacit.runs import MetricEntry

    run.record_metrics(
        [MetricEntry(step=at, split="validation", name=name, value=value) for name, value in worth.items()]
    )
    run.finish()


def _report(run: Run) -> None:
    """The records alone: the page is drawn when it is asked for."""
    from tacit.reports.page import PUBLISHED
    from tacit.reports.pretrain import records_of
    from tacit.reports.record_files import write_records

    write_records(run.path, records_of(run))
    run.keep_files(PUBLISHED)


def _rehearse(out: Path, settings: str, metadata: PretrainingMetadata, cache: "Cache", progress: Progress) -> None:
    """Play what comes after training, with a random model: see `jobs/rehearsal.py`. Raises: InputError."""
    from tacit.jobs.rehearsal import MODEL, REHEARSING, REPORT, VALIDATION, refused, scratch_run
    from tacit.jobs.run_start import key_for
    from tacit.runs import StepEntry
    from tacit.training.loop import checked_metrics
    from tacit.training.pretrain import HeldOutEvaluation

    progress(StageBegan(REHEARSING))
    with scratch_run(out, settings, metadata, key_for(None)) as run:
        network = _network(run.settings_table)
        model = _first(run, network)
        with refused(VALIDATION):
            worth = checked_metrics(0, "validation", _measuring(run, cache)(model))
        evaluation = HeldOutEvaluation(0, float("nan"), worth["cross_entropy"])
        run.commit(StepEntry(step=0, file="none", digest="", measures=evaluation.measures))
        with refused(MODEL):
            _write_model(run, network, model, cache)
        _end(run, 0, worth)
        with refused(REPORT):
            _report(run)
    progress(StageEnded(REHEARSING))


def _with_words(model: "LanguageModel | Mapping[str, Any]", cache: "Cache") -> "LanguageModel":
    """The network with the words of the cache."""
    from tacit.networks.language_model import model_of, settings_of
    from tacit.networks.models import DEFAULT

    own = dict(model) if isinstance(model, Mapping) else settings_of(model)
    return model_of(own.pop("kind", DEFAULT), {**own, "vocabulary": cache.manifest.vocabulary.size})


def _in_precision(plan: "Pretraining", network: "LanguageModel") -> "Pretraining":
    """The same in the precision that this machine computes it in, which is what the run records."""
    import jax

    from tacit.compute.precision import usable_precision
    from tacit.networks.gradients import HasGradient

    if jax.default_backend() != "cpu":
        return plan
    asked = plan.central.precision
    computed = usable_precision(asked) if isinstance(network, HasGradient) else "float32"
    return replace(plan, central=replace(plan.central, precision=computed))


def _metadata(run: Run) -> PretrainingMetadata:
    return run.of_kind(PretrainingMetadata, "`{command}` goes on with it")
