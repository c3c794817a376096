"""What an A/B test of typing is made of: two keyboards, and the sentences that are typed on both."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.data import Cache, Source, open_source
from tacit.data.manifest import MANIFEST
from tacit.data.sources import absolute
from tacit.data.typed_sentences import TypedSentences, cached_typed_sentences, read_typed_sentences
from tacit.errors import InputError
from tacit.evaluation.fairness import shared_vocabulary
from tacit.evaluation.type_ab.replay import Keyboard
from tacit.evaluation.type_ab.settings import EARLIER, WAYS, TypingSettings
from tacit.files import PathLike
from tacit.jobs.phone_models import TRIGRAM, phone_model
from tacit.jobs.run_start import checked_cache
from tacit.jobs.type_ab.more_words import MoreWords, read_more_words
from tacit.keyboard.decoder import LANGUAGE_WEIGHT, Decoder
from tacit.keyboard.exported import is_exported
from tacit.keyboard.lexicon import Lexicon
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.user_words import NO_WORDS, UserWords
from tacit.networks.model_files import is_counted
from tacit.progress import Progress
from tacit.text.vocabulary import SPECIALS, Vocabulary
from tacit.text.words import sentences

if TYPE_CHECKING:  # JAX comes with them
    from tacit.evaluation.personalize.own_model import OwnModels
    from tacit.keyboard.model_folder import TrainedModel

Model: TypeAlias = "PhoneModel | TrainedModel | PathLike"
Data: TypeAlias = str | Cache | Source | PathLike


@dataclass(frozen=True, kw_only=True)
class TypingTest:
    """Both keyboards have the same lexicon rule: each its own model's words, and B those that were discovered, too."""

    a: Keyboard
    b: Keyboard
    search: PhoneModel | None  # the trigram that searches, where the models do not
    more: MoreWords | None  # that B has beside its model's
    settings: TypingSettings
    typed: TypedSentences
    own: "OwnModels | None"  # that B has of its users' own
    place: str | None  # where the text is found from any folder; None where it stands in memory

    @property
    def layout(self) -> str:
        """The name of the keys' layout."""
        return self.settings.typist.touch.layout.name


def open_test(a: Model, b: Model, data: Data, settings: TypingSettings, progress: Progress) -> TypingTest:
    """Raises: InputError, SourceError, CacheError for models that cannot be read, a search over other words, more words
    of another vocabulary, text of which no word can be typed on the layout, or fewer than two users.
    """
    models = phone_model("a", a, progress=progress), phone_model("b", b, progress=progress)
    more = None if settings.more_words is None else read_more_words(settings.more_words, models[1])
    own = None if settings.personal is None else open_own_models(b, models[1], data, settings, progress)
    typed = sentences_of(data, settings, progress)
    check_typable(typed, settings)
    search = _search(data, settings, models, progress)
    if settings.search is not None and search is not None:
        settings = replace(settings, search=model_record(search)["path"])  # found from any folder
    settings = settings if more is None else replace(settings, more_words=more.path)
    return TypingTest(
        a=keyboard_of(models[0], search, settings, learns=settings.learns == "both"),
        b=keyboard_of(
            models[1],
            search,
            settings,
            NO_WORDS if more is None else more.words,
            learns=settings.learns is not None,
        ),
        search=search,
        more=more,
        settings=settings,
        typed=typed,
        own=own,
        place=_place_of(data),
    )


def sentences_of(data: Data, settings: TypingSettings, progress: Progress) -> TypedSentences:
    """What is typed: from a source in its own spelling, from a cache as far as its vocabulary spells it.

    Raises: SourceError, CacheError, InputError.
    """
    if _is_cache(data):
        cache = checked_cache(data, progress=progress)  # type: ignore[arg-type]
        spelled = [None] * SPECIALS + list(Vocabulary.from_json(cache.vocabulary_json).words)
        split = None if settings.personal is None else EARLIER
        return cached_typed_sentences(cache, spelled, settings.share, split=split)
    source = open_source(os.fspath(data)) if isinstance(data, str | os.PathLike) else data
    return read_typed_sentences(source, sentences, settings.share, progress=progress)  # type: ignore[arg-type]


def open_own_models(
    model: Model, phone: PhoneModel, data: Data, settings: TypingSettings, progress: Progress
) -> "OwnModels":
    """What fits a model of each user's own. Raises: InputError for text that is no cache, a cache of other words, or
    SGD asked of what was counted or exported.
    """
    from tacit.evaluation.personalize.own_model import OwnModels
    from tacit.keyboard.held_reader import HeldReader
    from tacit.networks.on_device import held

    assert settings.personal is not None  # or nobody would have one
    if not _is_cache(data):
        raise InputError(
            "a source does not say when each sentence was typed, and a model of one's own is fitted on earlier text; "
            "import it (tacit data import) and give the cache."
        )
    cache = checked_cache(data, progress=progress)  # type: ignore[arg-type]
    shared_vocabulary({phone.name: phone.vocabulary.sha256, str(cache.path): cache.manifest.vocabulary.sha256})
    how, network = WAYS[settings.personal], _network_of(model)
    if network is None and how.epochs:
        raise InputError(
            f"personal={settings.personal!r} moves parameters by SGD, and {phone.name} is counted, mixed or exported; "
            "give a run, a pre-training or a model folder of a network, or personal='cache' (--personal cache)."
        )
    start = HeldReader(phone.reader, phone.vocabulary.size) if network is None else held(*network)
    return OwnModels(
        start=start, reader=phone.reader, network=network, cache=cache, how=how, split=EARLIER, level=settings.gate
    )


def _network_of(model: Model) -> "tuple[Any, Any] | None":
    """The network and parameters of a model that SGD can move."""
    if isinstance(model, PhoneModel):
        return None
    if not isinstance(model, str | os.PathLike):
        return model.network, model.parameters
    if os.fspath(model).startswith(TRIGRAM) or is_exported(Path(model)) or is_counted(Path(model)):
        return None
    from tacit.keyboard.model_folder import load_model

    loaded = load_model(model)
    return loaded.network, loaded.parameters


def model_record(model: PhoneModel) -> dict[str, str]:
    """A model as the settings of a run name it: one that was counted with the digest of its cache, which is not to be
    published as that of trained weights is.
    """
    place = model.name.removeprefix(TRIGRAM)
    counted = place != model.name
    path = f"{TRIGRAM * counted}{Path(place).resolve()}"
    return {"path": path, "cache_sha256" if counted else "sha256": model.digest}


def _is_cache(data: Any) -> bool:
    return isinstance(data, Cache) or (isinstance(data, str | os.PathLike) and (Path(data) / MANIFEST).is_file())


def _place_of(data: Data) -> str | None:
    if isinstance(data, Cache):
        return str(data.path.resolve())
    return absolute(os.fspath(data)) if isinstance(data, str | os.PathLike) else None


def check_typable(typed: TypedSentences, settings: TypingSettings) -> None:
    """Raises: InputError for fewer than two users, or text of which no word can be typed on the layout."""
    if len(typed.users) < 2:
        raise InputError(
            f"{len(typed.users)} user of the {typed.split} split says nothing about many; give a source of more."
        )
    layout = settings.typist.touch.layout
    words = {word for user in typed.users for sentence in user.sentences for word in sentence if word is not None}
    if not any(layout.typed_form(word) for word in words):
        shown = f"not {min(words)!r}, for one" if words else "the cache spells none"
        raise InputError(
            f"no word of '{typed.description}' can be typed with the layout {layout.name!r} ({shown}); choose the "
            "layout of its script, or text of this one."
        )


def _search(
    data: Data, settings: TypingSettings, models: tuple[PhoneModel, ...], progress: Progress
) -> PhoneModel | None:
    """The trigram that searches. Raises: InputError where there is none, or it has other words than a model."""
    if settings.condition == "network":
        return None
    if settings.search is not None:
        found = phone_model("search", settings.search, progress=progress)
    elif _is_cache(data):
        path = data.path if isinstance(data, Cache) else data
        found = phone_model("search", f"{TRIGRAM}{path}", progress=progress)
    else:
        raise InputError(
            f"the condition {settings.condition} needs a trigram to search with, and a source counts none; name a "
            "cache with the models' vocabulary: search='trigram:CACHE' (--search trigram:CACHE)."
        )
    shared_vocabulary({each.name: each.vocabulary.sha256 for each in (found, *models)})
    return found


def keyboard_of(
    model: PhoneModel,
    search: PhoneModel | None,
    settings: TypingSettings,
    more: UserWords = NO_WORDS,
    *,
    learns: bool = False,
) -> Keyboard:
    """The keyboard with this model, another one that searches, and more words than the model knows.

    learns: see `Keyboard`.
    """
    weight = LANGUAGE_WEIGHT if settings.language_weight is None else settings.language_weight
    touch = settings.typist.touch
    lexicon = Lexicon.from_words(model.vocabulary.words, touch.layout)
    return Keyboard(
        model=model,
        decoder=Decoder(lexicon.with_words(more.words) if more.words else lexicon, touch, language_weight=weight),
        search=None if search is None else search.reader,
        ranks=settings.condition == "rescore",
        compose=settings.compose,
        more_words=more,
        learns=learns,
    )
