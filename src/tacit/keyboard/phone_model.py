"""A model as the phone holds it: what reads, the words, and nothing that trains.

Read in NumPy where the network has a reader of its own (`HasReader`), so that the first suggestion comes before an
accelerator's libraries would be loaded; any other network is read by JAX, which is loaded then. What was counted says
what reads it (`models.COUNTED`). What `tacit export` wrote is read by ONNX Runtime.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.files import PathLike, as_path
from tacit.keyboard.exported import is_exported
from tacit.keyboard.learning_session import LearningSession
from tacit.keyboard.suggest import HasReader, Reader, Suggestion, TypingSession
from tacit.keyboard.user_words import NO_WORDS, UserWords
from tacit.networks.metrics import SHOWN
from tacit.networks.model_files import ModelFiles, read_files
from tacit.networks.models import COUNTED
from tacit.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tacit.keyboard.model_folder import TrainedModel

# From the path of an exported folder to a `PhoneModel`; refuses where the package that reads it is not installed.
EXPORTED = "tacit.keyboard.onnx_reader:exported_phone_model"


@dataclass(frozen=True, kw_only=True, eq=False)
class PhoneModel:
    """A reader with its words, and where they came from."""

    name: str  # as tables name it: the path it was loaded from
    reader: Reader
    vocabulary: Vocabulary
    digest: str  # SHA-256 over everything that the answers depend on

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"PhoneModel({self.name!r}: {self.vocabulary.size:,} ids, {type(self.reader).__name__})"

    def typing(self, user_words: Mapping[str, int] | UserWords = NO_WORDS) -> TypingSession:
        """A session that suggests next words while somebody types; each has a state of its own.

        user_words: how often the user typed each word of their own dictionary. Raises: InputError where one is none.
        """
        return TypingSession(self.reader, self.vocabulary, user_words=user_words)

    def learning(self, user_words: Mapping[str, int] | UserWords = NO_WORDS) -> LearningSession:
        """The same, which learns what is typed, sentence by sentence, and mixes it in where that helped before."""
        return LearningSession(self.reader, self.vocabulary, user_words=user_words)

    def next_words(self, prompt: str, k: int = SHOWN) -> tuple[Suggestion, ...]:
        """The k likeliest words after a prompt of whole words, the likeliest first.

        Raises: InputError where `prompt` is no text, or the vocabulary has not so many words.
        """
        session = self.typing()
        session.commit(prompt)
        return session.next_words(k)


def phone_model_of(model: "TrainedModel") -> PhoneModel:
    """The same model as a phone holds it."""
    return PhoneModel(name=str(model), reader=model.reader, vocabulary=model.vocabulary, digest=model.digest)


def load_phone_model(path: PathLike) -> PhoneModel:
    """The model of a finished run, a pre-training or a model folder, a counted one, or one that `tacit export` wrote.

    Raises: InputError when there is none, its files do not belong together, or what reads it is not installed.
    """
    path = as_path("path", path)
    if is_exported(path):
        exported: PhoneModel = _named(EXPORTED)(path)
        return exported
    files = read_files(path)
    if files.kind in COUNTED:
        counted: Reader = _named(COUNTED[files.kind])(files)
        return PhoneModel(name=str(path), reader=counted, vocabulary=files.vocabulary, digest=files.digest)
    network = files.network()
    if not isinstance(network, HasReader):
        from tacit.keyboard.model_folder import load_model

        return phone_model_of(load_model(path))
    vocabulary = files.vocabulary
    reader = numpy_reader(files, network, vocabulary.size)
    return PhoneModel(name=str(path), reader=reader, vocabulary=vocabulary, digest=files.digest)


def numpy_reader(files: ModelFiles, network: HasReader, vocabulary: int) -> Reader:
    """The reader of a network with these weights and so many ids. Raises: InputError where they are another's."""
    if files.shapes() != {name: (shape, "float32") for name, shape in network.shapes().items()}:
        raise files.apart()
    if vocabulary != files.network().vocabulary:
        raise files.apart()
    return network.reader(files.weights)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
