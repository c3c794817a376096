"""What the folder of a run that makes a mixture says of itself, in whatever state it is: promise, account, pages."""

from pathlib import Path
from typing import Any

from tacit.errors import InputError, RunError
from tacit.files import check_folder
from tacit.jobs.open_run import opened
from tacit.jobs.statement import statement
from tacit.jobs.train.mixture import finished_record, promise_in, write_pages
from tacit.jobs.train.mixture_folder import (
    COUNTS,
    MIXED,
    NETWORK,
    RECIPE,
    TRAINING,
    WORDS_OF_A_SENTENCE,
    Begun,
    counted_models,
)
from tacit.networks.model_files import read_files
from tacit.networks.models import PROMISE
from tacit.parsing import parsed_json, parsed_toml
from tacit.recipe.mixture import MixtureRecipe
from tacit.reports.mixture import MixtureSummary
from tacit.reports.page import ReportFiles
from tacit.reports.summary import flattened
from tacit.runs import Run
from tacit.runs.journal import DATABASE
from tacit.statements.composed import ComposedPromise

PARTS = {"counts": COUNTS, "network": TRAINING}  # the folder of each part's run, by its name in a promise


def promise_of(out: Path, delta: float | None = None) -> ComposedPromise:
    """What was released so far, at `delta` (left out: the run's own); of a run with a model, that of the model.

    Raises: RunError where a part, or the promise, is not what was written.
    """
    if delta is None and (out / MIXED / PROMISE).is_file():
        return promise_in(out)
    begun, statements = Begun.read(out), {}
    for part, name in PARTS.items():
        if (out / name / DATABASE).is_file():
            with opened(out / name) as run:
                if run.steps_done:
                    statements[part] = parsed_json(statement(run, delta=delta).to_json())
    public = {"n-grams": "; ".join(dict.fromkeys(_text_of(each) for each in counted_models(out)))}
    if "network" not in statements and (out / NETWORK).is_dir() and begun.weight != 0:
        public["network"] = _text_of(out / NETWORK)
    return ComposedPromise(statements=statements, public=public)


def mixture_summary(out: Path) -> MixtureSummary:
    """All that its account and a comparison read of it. Raises: as `promise_of`."""
    begun, recipe = Begun.read(out), MixtureRecipe.load(out / RECIPE)
    finished = finished_record(out)
    training = out / TRAINING if (out / TRAINING / DATABASE).is_file() else None
    return MixtureSummary(
        path=str(out),
        name=recipe.name,
        finished=finished is not None,
        promise=promise_of(out),
        folders={part: str(out / name) for part, name in PARTS.items()},
        rounds=0 if training is None else _steps_done(training),
        planned_rounds=int((recipe.training or {}).get("rounds", {}).get("rounds", 0)),
        settings=flattened(parsed_toml(recipe.to_toml())),
        clients=begun.clients,
        delta=begun.delta,
        cache_digest=begun.cache_digest,
        vocabulary=read_files(counted_models(out)[0]).vocabulary.sha256,
        evaluation={
            "test_clients": recipe.evaluation.test_clients,
            "sentences": recipe.evaluation.sentences,
            "words": WORDS_OF_A_SENTENCE,
        },
        exact=None if finished is None else finished["simulation_only"],
        **_of_counts(out),
    )


def report_of_mixture(out: Path, *, to: Path | None = None) -> ReportFiles:
    """Write the pages of a finished run again. Raises: InputError where it is not finished, or cannot be written."""
    record = finished_record(out)
    if record is None:
        raise InputError(
            f"'{out}' is not finished, and its page says what each part added; `tacit resume {out}` makes the rest, "
            f"`tacit account run {out}` says what it cost so far."
        )
    if to is not None:
        check_folder("out", to)
    try:
        return write_pages(out if to is None else to, record, promise_in(out))
    except PermissionError as error:
        raise InputError(f"'{error.filename}' cannot be written; say where the report goes (--out FOLDER).") from error


def _steps_done(path: Path) -> int:
    with Run.open(path, read_only=True) as run:
        return run.steps_done


def _text_of(model: Path) -> str:
    """The public text that a model was made from."""
    found = read_files(model).public_text
    if found is None:
        raise RunError(f"'{model}' does not say its text, as it did when the run began; restore a copy.")
    return found


def _of_counts(out: Path) -> dict[str, Any]:
    """What the run of the counts knows of clients and program; before it has begun, nobody."""
    if not (out / COUNTS / DATABASE).is_file():
        return {"source": "–", "key_source": "–", "versions": {}}
    with Run.open(out / COUNTS, read_only=True) as run:
        metadata = run.metadata
        return {
            "source": getattr(metadata, "source", "–"),
            "key_source": metadata.key_source,
            "versions": metadata.versions,
        }
