"""At the end of a training run: what its model is compared with, and what it would suggest, as notes of the run."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, TacitError
from tacit.evaluation.comparison_models import MODEL, START, TRIGRAM
from tacit.networks.metrics import SHOWN
from tacit.records import to_plain
from tacit.reports.summary import COMPARISON_MODELS, SUGGESTIONS
from tacit.runs import Run
from tacit.runs.metadata import PretrainingMetadata
from tacit.statements.accounts import trained

if TYPE_CHECKING:  # JAX comes with them
    from tacit.compute.cores import Cores
    from tacit.evaluation.accuracy import Evaluation
    from tacit.evaluation.held_out import HeldOut
    from tacit.evaluation.trigram import BackedOffTrigram
    from tacit.keyboard.suggest import Suggestion
    from tacit.networks.language_model import LanguageModel, Parameters
    from tacit.text.vocabulary import Vocabulary

MOST_WORDS = 5_000_000  # that the trigram counts: some seconds
FEW_WORDS = 10_000  # in a rehearsal


def note_baselines(
    run: Run,
    network: "LanguageModel",
    start: "Parameters",
    model: "Evaluation",
    held_out: "Mapping[str, HeldOut]",
    cores: "Cores",
    *,
    words: "Vocabulary",
    of_trigram: int = MOST_WORDS,
) -> None:
    """Count what the model is held against on the clients that it was evaluated on; hold the run's lock.

    start: the model before the first round. model: the released one, on the test clients. held_out: by split.
    words: of the network. of_trigram: how many words of public text a trigram counts.
    """
    from tacit.evaluation.accuracy import evaluate
    from tacit.evaluation.baselines import comparison_models_of

    trigram, of = _trigram(run, network.vocabulary, of_trigram)
    found: dict[str, Any] = {"trigram": of, "counted": trigram is not None}
    for split, clients in held_out.items():
        others = {} if trigram is None else {TRIGRAM: trigram.evaluate(clients)}
        if split == "test":
            others |= {MODEL: model, START: evaluate(network, start, clients, cores=cores)}
        found[split] = to_plain(comparison_models_of(clients, others, first_words=words.ranked))
    run.note(COMPARISON_MODELS, found)


def note_suggestions(run: Run) -> None:
    """Ask the released model to go on with a few public prompts; hold the run's lock."""
    from tacit.keyboard.model_folder import load_model
    from tacit.keyboard.prompts import prompts_for

    model = load_model(run.path)
    few = min(SHOWN, len(model.vocabulary.words))
    after: dict[str, tuple[Suggestion, ...]] = {}
    with suppress(InputError):  # scores that are no numbers suggest nothing, and the accuracies say the rest
        after = {prompt: model.next_words(prompt, few) for prompt in prompts_for(model.vocabulary)}
    run.note(SUGGESTIONS, [{"prompt": prompt, "words": words} for prompt, words in after.items()])


def _trigram(run: Run, vocabulary: int, words: int) -> "tuple[BackedOffTrigram | None, str]":
    """A trigram on the public text that the run's first model was made from, and that text; or why there is none."""
    from tacit.evaluation.trigram import BackedOffTrigram
    from tacit.jobs.run_start import same_cache

    first = trained(run).first_model
    if first is None:
        return None, "the run began from no model of public text, so it knows of no such text"
    made = Path(first.path)
    try:
        with Run.open(made.parent if made.name == "model" else made) as pretraining:
            metadata = pretraining.of_kind(PretrainingMetadata, "only that knows its text")
            cache = same_cache(pretraining, metadata.data)
        if cache.manifest.vocabulary.sha256 != trained(run).data.vocabulary_sha256:
            return None, f"the public text in '{cache.path}' was imported with another vocabulary"
        text = BackedOffTrigram.train(cache, cache.clients("train"), vocabulary=vocabulary, words=words)
    except TacitError as error:
        return None, f"the public text of the first model is not at hand: {error}"
    return text, metadata.data.source
