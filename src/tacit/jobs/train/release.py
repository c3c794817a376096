"""After the last round: the model is tested, compared with others and written, and the run is finished.

The same is played before the first round, with the first model and few clients (`rehearsal.py`).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacit.compute.cores import Cores
from tacit.compute.profile import phase
from tacit.data import Cache
from tacit.evaluation.accuracy import GROUP, Evaluation, evaluate
from tacit.evaluation.held_out import HeldOut
from tacit.jobs.account.budget import commit
from tacit.jobs.rehearsal import COMPARISON, MODEL, REPORT, STATEMENT, SUGGESTIONS, TEST, Trying
from tacit.jobs.train.baselines import FEW_WORDS, MOST_WORDS, OfRun, note_baselines, note_suggestions
from tacit.jobs.train.learner import network_of
from tacit.keyboard.model_folder import write_model
from tacit.networks.language_model import LanguageModel, kinds_of
from tacit.networks.metrics import KNOWN
from tacit.progress import Progress
from tacit.recipe import Recipe
from tacit.reports.page import FOR_READERS, PUBLISHED, ReportFiles, to_json, write_files
from tacit.reports.train import write_report
from tacit.runs import Run
from tacit.statements.run_facts import statement_of
from tacit.text.vocabulary import Vocabulary
from tacit.training import Learner
from tacit.training.loop import checked_metrics, record_evaluation


class HeldOutClients(NamedTuple):
    """The clients that models are evaluated on: the first of their split, read anew each time."""

    recipe: Recipe
    cache: Cache
    learner: Learner
    cores: Cores
    few: bool = False  # of the test clients only a group that has something to count, where any has

    @property
    def network(self) -> LanguageModel:
        """That is trained."""
        return network_of(self.recipe, self.cache)

    def read(self, split: str) -> HeldOut:
        """The text of a split."""
        evaluation = self.recipe.evaluation
        clients = self.cache.clients(split)[
            : {"validation": evaluation.clients, "test": evaluation.test_clients}[split]
        ]
        read = HeldOut.read(self.cache, clients, sentences=evaluation.sentences, words=self.recipe.client.words)
        if not self.few or split != "test":
            return read
        counts = (kinds_of(read.sentences[:, :, 1:], np) == KNOWN).any(axis=(1, 2))
        return HeldOut(sentences=read.sentences[np.argsort(~counts, kind="stable")[:GROUP]])

    def evaluated(self, split: str, model: Array) -> Evaluation:
        """How a flat model does on the clients of a split."""
        return evaluate(self.network, self.learner.unravel(model), self.read(split), cores=self.cores)


def release(run: Run, held_out: HeldOutClients, model: Array, trying: Trying, progress: Progress) -> None:
    """After the last round: test the model, hold it against others, write it; then nothing is left to be done.

    trying: says what becomes of a piece that fails.
    """
    learner, network = held_out.learner, held_out.network
    tested: Evaluation | None = None
    with phase("evaluation"):
        with trying(TEST):
            found = held_out.evaluated("test", model)
            metrics = checked_metrics(run.steps_done, "test", found.metrics())
            tested = found
        if tested is not None:
            record_evaluation(run, run.steps_done, "test", metrics, progress)
            with trying(COMPARISON):
                note_baselines(
                    run,
                    OfRun(
                        network=network,
                        start=learner.unravel(jnp.asarray(learner.start)),
                        released=learner.unravel(model),
                        words=Vocabulary.from_json(held_out.cache.vocabulary_json),
                        cache=held_out.cache,
                        recipe=held_out.recipe,
                    ),
                    tested,
                    {split: held_out.read(split) for split in ("validation", "test")},
                    held_out.cores,
                    most_words=FEW_WORDS if held_out.few else MOST_WORDS,
                )
    with phase("release"):
        with trying(MODEL):
            write_model(run.path / "model", network, learner.unravel(model), held_out.cache.vocabulary_json.encode())
            run.keep_files("model")
        with trying(SUGGESTIONS):
            note_suggestions(run)
    commit(run)
    run.finish()
    run.tidy()


def write_reports(run: Run, trying: Trying) -> ReportFiles | None:
    """Write the report of a run that ends, and record its files; where that fails the statement alone, and None."""
    report: ReportFiles | None = None
    with trying(REPORT):
        report = write_report(run)
    if report is None:
        with trying(STATEMENT):
            write_files(run.path / PUBLISHED, {"statement.json": to_json(statement_of(run).to_record())})
    run.keep_files(*FOR_READERS)
    return report
