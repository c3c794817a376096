"""After the last round: the model is tested, compared with others and written, and the run is finished."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from tacit.compute.cores import Cores
from tacit.compute.profile import phase
from tacit.data import Cache
from tacit.evaluation.accuracy import Evaluation, evaluate
from tacit.evaluation.held_out import HeldOut
from tacit.jobs.account.budget import commit
from tacit.jobs.train.baselines import note_baselines, note_suggestions
from tacit.jobs.train.learner import network_of
from tacit.keyboard.model_folder import write_model
from tacit.networks.language_model import LanguageModel
from tacit.progress import Progress
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.text.vocabulary import Vocabulary
from tacit.training import Learner
from tacit.training.loop import record_evaluation


class HeldOutClients(NamedTuple):
    """The clients that models are evaluated on: the first of their split, read anew each time."""

    recipe: Recipe
    cache: Cache
    learner: Learner
    cores: Cores

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
        return HeldOut.read(self.cache, clients, sentences=evaluation.sentences, words=self.recipe.client.words)

    def evaluated(self, split: str, model: Array) -> Evaluation:
        """How a flat model does on the clients of a split."""
        return evaluate(self.network, self.learner.unravel(model), self.read(split), cores=self.cores)


def release(run: Run, held_out: HeldOutClients, model: Array, progress: Progress) -> None:
    """After the last round: test the model, hold it against others, write it; then nothing is left to be done."""
    learner, network = held_out.learner, held_out.network
    with phase("evaluation"):
        tested = held_out.evaluated("test", model)
        record_evaluation(run, run.steps_done, "test", tested.metrics(), progress)
        clients = {split: held_out.read(split) for split in ("validation", "test")}
        start, words = learner.unravel(jnp.asarray(learner.start)), held_out.cache.vocabulary_json
        listed = Vocabulary.from_json(words)
        note_baselines(run, network, start, tested, clients, held_out.cores, words=listed)
    with phase("release"):
        write_model(run.path / "model", network, learner.unravel(model), words.encode())
        run.keep_files("model")
        note_suggestions(run)
    commit(run)
    run.finish()
    run.tidy()
