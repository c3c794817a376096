"""At the end of a training run: what its model is compared with, and what it would suggest, as notes of the run."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.errors import InputError, TacitError
from tacit.evaluation.comparison_models import CLIENTS, FREE, MODEL, PUBLIC_NETWORK, PUBLIC_NGRAM, START
from tacit.networks.metrics import SHOWN
from tacit.records import to_plain
from tacit.reports.summary import COMPARISON_MODELS, SUGGESTIONS
from tacit.runs import Run
from tacit.statements.accounts import trained

if TYPE_CHECKING:  # JAX comes with them
    from tacit.compute.cores import Cores
    from tacit.data import Cache
    from tacit.evaluation.accuracy import Evaluation
    from tacit.evaluation.held_out import HeldOut
    from tacit.evaluation.ladder import CountedText, Ladder
    from tacit.keyboard.suggest import Suggestion
    from tacit.networks.language_model import LanguageModel, Parameters
    from tacit.recipe import Recipe
    from tacit.text.vocabulary import Vocabulary

MOST_WORDS = 5_000_000  # of public text, and of clients', that n-grams count: some seconds
FEW_WORDS = 10_000  # in a rehearsal
ORDERS = (3, 4)
NOT_WANTED = "the recipe wants no baselines (evaluation.baselines)"


class OfRun(NamedTuple):
    """What a run's model is held against is made of."""

    network: "LanguageModel"
    start: "Parameters"  # before the first round
    released: "Parameters"
    words: "Vocabulary"
    cache: "Cache"
    recipe: "Recipe"


def note_baselines(
    run: Run,
    of: OfRun,
    model: "Evaluation",
    held_out: "Mapping[str, HeldOut]",
    cores: "Cores",
    *,
    most_words: int = MOST_WORDS,
) -> None:
    """Climb the ladder on the clients that the model was evaluated on; hold the run's lock.

    model: the released one, on the test clients. held_out: by split; validation clients choose. most_words: of a text
    that is counted. Where the recipe wants no baselines, the model is held against its start alone.
    """
    from tacit.evaluation.accuracy import evaluate
    from tacit.evaluation.baselines import comparison_models_of
    from tacit.evaluation.ladder import ladder as climbed
    from tacit.evaluation.predictors import NetworkRows

    first_words = of.words.ranked

    def noted(split: str, of_each: "Mapping[str, Evaluation]") -> Any:
        return to_plain(comparison_models_of(held_out[split], of_each, first_words=first_words))

    validation = held_out["validation"]
    of_model = {MODEL: evaluate(of.network, of.released, validation, cores=cores)}
    exact = {MODEL: model, START: evaluate(of.network, of.start, held_out["test"], cores=cores)}
    if not of.recipe.evaluation.baselines:
        start_alone = {"trigram": NOT_WANTED, "counted": False, "rungs": {CLIENTS: NOT_WANTED}}
        run.note(
            COMPARISON_MODELS,
            {**start_alone, "test": noted("test", exact), "validation": noted("validation", of_model)},
        )
        return
    public, said = _public_ngrams(run, of, validation, most_words)
    clients, why = _clients_ngrams(run, of, validation, most_words)
    found = climbed(
        held_out["test"],
        validation,
        public=[] if public is None else [public],
        public_network=None if public is None else NetworkRows(network=of.network, parameters=of.start),
        clients=clients,
        models={MODEL: NetworkRows(network=of.network, parameters=of.released)},
    )
    of_test = {name: each for name, each in found.rungs.items() if name != PUBLIC_NETWORK} | exact
    of_validation = of_model | ({} if found.free is None else {FREE: found.on(validation, found.free)})
    ladder = {"trigram": said, "counted": public is not None, "rungs": _chosen(found, public, clients, why)}
    run.note(
        COMPARISON_MODELS, {**ladder, "test": noted("test", of_test), "validation": noted("validation", of_validation)}
    )


def _chosen(found: "Ladder", public: "CountedText | None", clients: "CountedText | None", why: str) -> dict[str, str]:
    """What validation clients chose, by rung; of the clients' n-gram that there is not, why."""
    said = {
        name: ", ".join(f"{share:.2f} of the {of}" for of, share in each.items())
        for name, each in found.weights.items()
    }
    if found.free is not None:
        said[FREE] = said[FREE] if found.free == FREE else f"the {found.free} alone"
    orders = {PUBLIC_NGRAM: public, CLIENTS: clients}
    said |= {name: f"order {each.order}" for name, each in orders.items() if each is not None}
    return said if clients is not None else said | {CLIENTS: why}


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


def _public_ngrams(run: Run, of: OfRun, validation: "HeldOut", words: int) -> "tuple[CountedText | None, str]":
    """N-grams of the public text that the run's first model was made from, and that text; or why there are none."""
    from tacit.evaluation.ladder import counted
    from tacit.evaluation.trigram import text_of
    from tacit.jobs.ladder import public_text_of

    first = trained(run).first_model
    if first is None:
        return None, "the run began from no model of public text, so it knows of no such text"
    try:
        cache = public_text_of(Path(first.path))
        if cache.manifest.vocabulary.sha256 != trained(run).data.vocabulary_sha256:
            return None, f"the public text in '{cache.path}' was imported with another vocabulary"
        text = text_of(cache, cache.clients("train"), words)
    except TacitError as error:
        return None, f"the public text of the first model is not at hand: {error}"
    return counted(text, validation, vocabulary=of.network.vocabulary, orders=ORDERS), cache.manifest.source


def _clients_ngrams(run: Run, of: OfRun, validation: "HeldOut", words: int) -> "tuple[CountedText | None, str]":
    """N-grams of what the rounds may have read of the clients of a simulation; or why there are none."""
    import numpy as np

    from tacit.evaluation.ladder import counted, training_text
    from tacit.jobs.ladder import visits_of

    if trained(run).deployment is not None:
        return None, "the clients are real devices, whose text nobody has"
    clients, client, visits = (
        of.cache.clients("train"),
        of.recipe.client,
        visits_of(of.recipe, len(of.cache.clients("train"))),
    )
    most = client.sentences * client.words * visits
    many = int(np.minimum(of.cache.words_per_client()[clients], most).sum())
    if many > words:
        return None, f"{many:,} words of the clients are more than the {words:,} that cost seconds; ask `tacit ladder`"
    text = training_text(of.cache, clients, sentences=client.sentences, words=client.words, visits=visits)
    return counted(text, validation, vocabulary=of.network.vocabulary, orders=ORDERS), ""
