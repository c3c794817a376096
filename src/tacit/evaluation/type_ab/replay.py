"""What a model changes for somebody who types: a simulated typist, the same text and the same slips on every keyboard.

`type_sentences` replays a user's sentences word by word, as docs/typing.md describes. Nothing that is drawn depends on
what the keyboard shows: the random numbers of a word follow from the seed, the user and the word's place in the text.
The context that the model sees is what stands in the text, errors included.

Words are compared without regard to case. Signs that the layout has no key for count as put in by hand where the typist
keeps the letters as typed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, of_type
from tacit.evaluation.type_ab.intended_words import IntendedWords, with_lapses
from tacit.evaluation.type_ab.measures import MEASURES as MEASURES  # also asked for here
from tacit.evaluation.type_ab.measures import Tally as Tally
from tacit.evaluation.type_ab.misspelling import misspellings
from tacit.evaluation.type_ab.typist import Typist, generator, key_of
from tacit.keyboard.correction import Correction, at_space
from tacit.keyboard.decoder import Context, Decoder, Taps
from tacit.keyboard.learning_session import LearningSession
from tacit.keyboard.lexicon import LONGEST
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import Reader, TypingSession
from tacit.keyboard.touch import KeyboardLayout
from tacit.keyboard.user_words import NO_WORDS, UserWords
from tacit.networks.metrics import SHOWN

LONGEST_TYPED = LONGEST // 2  # letters between two spaces: doublings and strays still fit in what a decoder takes
UNSPELLED = "<unspelled>"  # stands in the context for a word of which only the place is known

# A word's first random numbers, in this order; those of its letters and taps follow.
FORGETS_SPACE, MISSPELLS, WHICH_MISSPELLING, LOOKS, READS, CATCHES, NOTICES, REREADS = range(8)
SLOTS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Keyboard:
    """What is under test: a model, and how it is used.

    search: what the decoder searches with where that is another model, over the same vocabulary; `model` ranks its
    candidates anew, or only suggests where it does not rank. compose: the least probability of an inline phrase; None
    offers none. Raises: InputError where the parts do not belong together.
    """

    model: PhoneModel
    decoder: Decoder
    search: Reader | None = None
    ranks: bool = True
    compose: float | None = None
    shown: int = SHOWN  # words in the strip
    more_words: UserWords = NO_WORDS  # that the model lacks and the lexicon has, and their shares of unknown words
    learns: bool = False  # mixes in what its user has typed, where that helped before (`learning_session`)

    def __post_init__(self) -> None:
        of_type("shown", self.shown, int)
        words = len(self.model.vocabulary.words)
        if not 1 <= self.shown <= words:
            raise InputError(f"shown={self.shown} words do not fit the strip; show 1 to {words:,}, all that there are.")
        if self.decoder.lexicon.words != self.model.vocabulary.words + self.more_words.words:
            raise InputError(
                f"the decoder's lexicon is not the vocabulary of {self.model.name}; make it with "
                "Lexicon.from_words(model.vocabulary.words, layout), and more words with "
                "Lexicon.with_words(more_words.words)."
            )

    def hands(self, person: Typist, key: NDArray[np.uint64]) -> "Hands":
        """One user at it. key: of the random numbers, `key_of`."""
        return Hands(self, person, key)


class TypedOn(Protocol):
    """A keyboard that somebody types on."""

    @property
    def decoder(self) -> Decoder:
        """What says which letters were hit."""
        ...

    def hands(self, person: Typist, key: NDArray[np.uint64]) -> "Hands":
        """See `Keyboard`."""
        ...


def type_sentences(
    keyboard: TypedOn, typist: Typist, sentences: Iterable[Sequence[str | None]], *, seed: int, user: str
) -> Tally:
    """What happens when one user, drawn from `typist`, types these sentences; the same for the same arguments.

    A word that is None, or that the layout cannot type, or of more than LONGEST_TYPED letters is not typed but stands
    in the text, and is counted as untypable. Raises: InputError where typist and keyboard have different layouts.
    """
    if typist.touch.layout != keyboard.decoder.lexicon.layout:
        raise InputError(
            f"the typist taps on the layout {typist.touch.layout.name!r} and the keyboard has "
            f"{keyboard.decoder.lexicon.layout.name!r}; give both the same one."
        )
    hands = keyboard.hands(typist.person(seed, user), key_of(seed, user))
    for place, sentence in enumerate(sentences):
        hands.type(place, sentence)
    sums = hands.sums
    return Tally(**sums)._replace(saved=sums["needed"] - sums["keystrokes"])


class Both(NamedTuple):
    """What a user did on A and on B."""

    a: Tally
    b: Tally
    opened: bool | None = None  # whether B was the user's own model; None where nobody has one


@dataclass(frozen=True, kw_only=True, eq=False)
class OnBoth:
    """What one user does on A and on B, with the same random numbers.

    It stands here and not with the run, since other processes import what they are sent: this module without JAX.
    """

    a: Keyboard
    b: Keyboard
    seed: int

    def __call__(self, who: tuple[Typist, Sequence[Sequence[str | None]], str]) -> Both:
        """who: a typist, and the sentences and the name of a user."""
        typist, sentences, user = who
        on_a, on_b = (
            type_sentences(keyboard, typist, sentences, seed=self.seed, user=user) for keyboard in (self.a, self.b)
        )
        return Both(on_a, on_b)


# -- one user at one keyboard --------------------------------------------------------------------------------------


class _Standing(NamedTuple):
    """A wrong word that the typist has not noticed yet."""

    intended: IntendedWords
    correction: Correction
    strip: frozenset[str]
    modified: bool  # before the space


class Hands:
    """What one person does, word after word, and the sums of it."""

    def __init__(self, keyboard: Keyboard, person: Typist, key: NDArray[np.uint64]) -> None:
        self.keyboard, self.person, self.key = keyboard, person, key
        self.decoder, self.layout = keyboard.decoder, person.touch.layout
        self.sums: dict[str, float] = dict.fromkeys(Tally._fields, 0)
        model = keyboard.model
        self.model = self.beginning = (model.learning if keyboard.learns else model.typing)(keyboard.more_words)
        words, more = keyboard.model.vocabulary, keyboard.more_words
        self.search_beginning = keyboard.search and TypingSession(keyboard.search, words, user_words=more)

    def type(self, place: int, sentence: Sequence[str | None]) -> None:
        """One sentence, and what is repaired when it is read again."""
        self._begin()
        forms = [_typed_form(self.layout, word) for word in sentence]
        standing: list[_Standing] = []
        at = 0
        while at < len(sentence):
            if forms[at] is None:
                self.sums["untypable"] += 1
                self._commit(sentence[at] or UNSPELLED)
                at += 1
            else:
                at += self._word(place, at, sentence, forms, standing)
        for wrong in standing:
            self._read_again(wrong)
        self.sums["sentences"] += 1

    def _word(
        self,
        place: int,
        at: int,
        sentence: Sequence[str | None],
        forms: Sequence[str | None],
        standing: list[_Standing],
    ) -> int:
        """The next word, or the next few; how many."""
        random = generator(self.key, place, at)
        slots = tuple(random.random(SLOTS).tolist())
        word, form, rest = str(sentence[at]), str(forms[at]), sentence[at:]
        strip = frozenset(word.lower() for word in self._next_words())
        self.sums["strips"] += 1
        brings = self._composed("", rest, slots[READS])
        if brings:
            return self._take_phrase(rest[:brings], strip)
        if slots[LOOKS] < self.person.look_before:
            self._look()
            if word.lower() in strip:
                return self._pick("picked", word, form, strip)
        intended = self._intended(random, slots, word, form)
        intended = self._with_forgotten_spaces(intended, place, at, sentence, forms)
        taps = self.decoder.taps(intended.points)
        if len(intended.words) == 1:
            written = self._letters(intended, taps, rest, brings is None, strip)
            if written:
                return written
        else:
            self._press(len(intended.points))
        self._space(intended, taps, strip, standing)
        return len(intended.words)

    # -- what is meant

    def _intended(self, random: np.random.Generator, slots: tuple[float, ...], word: str, form: str) -> IntendedWords:
        """How a word is typed this time: its spelling, its lapses, its taps."""
        person, belief = self.person, form
        variants = misspellings(form, person.language) if slots[MISSPELLS] < person.misspelling else ()
        if variants:
            belief = variants[int(slots[WHICH_MISSPELLING] * len(variants))]
        keys = with_lapses(self.layout.key_ids(belief), random.random(len(belief)), person)
        points = person.touch.taps(keys, random)[:LONGEST]
        looks = tuple((random.random(len(points)) < person.look_while).tolist())
        return IntendedWords((word,), (form,), (belief,), points, looks, slots)

    def _with_forgotten_spaces(
        self, intended: IntendedWords, place: int, at: int, sentence: Sequence[str | None], forms: Sequence[str | None]
    ) -> IntendedWords:
        """The next words too, as long as the space before them is forgotten and all of it fits."""
        last = intended
        while last.slots[FORGETS_SPACE] < self.person.forgotten_space:
            following = at + len(intended.words)
            form = forms[following] if following < len(forms) else None
            if form is None or sum(map(len, intended.forms)) + len(form) > LONGEST_TYPED:
                break
            random = generator(self.key, place, following)
            slots = tuple(random.random(SLOTS).tolist())
            last = self._intended(random, slots, str(sentence[following]), form)
            if len(intended.points) + len(last.points) > LONGEST:  # so many letters typed twice
                break
            intended = intended.then(last)
        return intended

    # -- letters, picks, phrases

    def _letters(
        self, intended: IntendedWords, taps: Taps, rest: Sequence[str | None], may_compose: bool, strip: frozenset[str]
    ) -> int:
        """Tap after tap, until something that is shown makes the others needless; how many words that writes, or 0."""
        word = intended.words[0]
        for tapped, looks in enumerate(intended.looks, 1):
            self._press(1)
            brings = self._composed(taps.letters[:tapped], rest, intended.slots[READS]) if may_compose else None
            if brings:
                return self._take_phrase(rest[:brings], strip)
            may_compose = may_compose and brings is None
            if looks:
                self._look()
                if word.lower() in {each.lower() for each in self._completions(taps.first(tapped))}:
                    return self._pick("completed", word, intended.forms[0], strip)
        return 0

    def _pick(self, how: str, word: str, form: str, strip: frozenset[str]) -> int:
        """A word of the strip; the keyboard puts the space after it."""
        self._press(1)
        self.sums[how] += 1
        self._commit(word)
        self._count((word,), (form,), word, strip)
        return 1

    def _composed(self, prefix: str, rest: Sequence[str | None], slot: float) -> int | None:
        """Whether a phrase appears in the line: how many words it writes where it is read and right, 0 where it does
        not help; None where none appears. It is offered once a word, and stays.
        """
        if self.keyboard.compose is None:
            return None
        reads = slot < self.person.read_composed
        brings = self.model.words_brought(prefix, rest if reads else (), threshold=self.keyboard.compose)
        if brings is not None:
            self.sums["triggered"] += 1
            if reads:
                self._look()
        return brings

    def _take_phrase(self, phrase: Sequence[str | None], strip: frozenset[str]) -> int:
        words = tuple(str(word) for word in phrase)
        self._press(1)
        self.sums["composed"] += 1
        self.sums["composed_words"] += len(words)
        self._commit(" ".join(words))
        self._count(words, tuple(_typed_form(self.layout, word) or word for word in words), " ".join(words), strip)
        return len(words)

    # -- the space, and repairs

    def _space(self, intended: IntendedWords, taps: Taps, strip: frozenset[str], standing: list[_Standing]) -> None:
        """The word is finished: what stands there then, and what is done about it at once."""
        modified = False
        if intended.slots[CATCHES] < self.person.catch:
            letters, pressed = taps.letters, "".join(intended.beliefs)
            if letters != pressed:
                modified, taps = True, self.decoder.taps(self.person.touch.means[self.layout.key_ids(pressed)])
                self._look()
                self._retype(letters, pressed)
        self._press(1)
        correction = self._corrected(taps)
        self.sums["corrected"] += not correction.kept and correction.text.lower() != correction.letters
        text = intended.standing(correction)
        if text != intended.text and text != intended.belief:
            if intended.slots[NOTICES] < self.person.notice:
                modified, text = True, self._repair(intended, correction, spaces=1)
            else:
                self._commit(text)
                standing.append(_Standing(intended, correction, strip, modified))
                return
        self._commit(text)
        self._count(intended.words, intended.forms, text, strip, modified=modified)

    def _read_again(self, wrong: _Standing) -> None:
        """The sentence stands there: a wrong word is repaired, or stays."""
        intended, text, modified = wrong.intended, wrong.intended.standing(wrong.correction), wrong.modified
        if intended.slots[REREADS] < self.person.reread:
            self.sums["seconds"] += self.person.reach
            modified, text = True, self._repair(intended, wrong.correction, spaces=0)
        self._count(intended.words, intended.forms, text, wrong.strip, modified=modified)

    def _repair(self, intended: IntendedWords, correction: Correction, *, spaces: int) -> str:
        """What stands there after it: picked where it is shown, else typed with care, and right as the typist knows it.

        The first key press is a backspace that takes the space away, or a tap on the word; both show the candidates.
        """
        self._look()
        self._press(1)
        if intended.offered(correction):
            self._press(1)
            return intended.text
        self._retype(correction.text.lower(), " ".join(intended.beliefs))
        self._press(spaces)
        return intended.belief

    def _retype(self, text: str, letters: str) -> None:
        """Backspaces up to the first wrong letter, and the letters from there."""
        wrong = (at for at, (one, other) in enumerate(zip(text, letters, strict=False)) if one != other)
        same = next(wrong, min(len(text), len(letters)))
        self._press(len(text) - same + len(letters) - same)

    # -- sums

    def _press(self, keys: int) -> None:
        self.sums["keystrokes"] += keys
        self.sums["seconds"] += keys * self.person.interval

    def _look(self) -> None:
        self.sums["looks"] += 1
        self.sums["seconds"] += self.person.look

    def _count(
        self,
        words: tuple[str, ...],
        forms: tuple[str, ...],
        text: str,
        strip: frozenset[str],
        *,
        modified: bool = False,
    ) -> None:
        """These words are written, and so they stand in the end."""
        sums, count, wanted, found = self.sums, len(words), " ".join(words).lower(), text.lower()
        sums["words"] += count
        sums["characters"] += len(wanted) + 1
        sums["needed"] += sum(map(len, forms)) + count
        sums["accurate"] += found.partition(" ")[0] in strip
        sums["modified"] += count * modified
        if found != wanted:
            sums["wrong_words"] += count
            sums["wrong_characters"] += distance(found, wanted)

    # -- what the keyboard does

    def _begin(self) -> None:
        """Before the first word of a sentence; what learns has learnt the one before."""
        if isinstance(self.model, LearningSession):
            self.model.end()
            self.beginning = self.model
        self.model = self.beginning.fork()
        self.search = self.search_beginning.fork() if self.search_beginning else None
        self.context: Context | None = None

    def _commit(self, text: str) -> None:
        """This stands in the text."""
        self.model.commit(text)
        if self.search:
            self.search.commit(text)
        self.context = None

    def _next_words(self) -> Sequence[str]:
        """The strip before a word is begun."""
        return [each.word for each in self.model.next_words(self.keyboard.shown)]

    def _completions(self, taps: Taps) -> Sequence[str]:
        """The strip while a word is typed."""
        found = self.decoder.completions(taps, self._expected(), self.keyboard.shown)
        if self.search is not None and self.keyboard.ranks:
            found = self.decoder.rescored(found, self.model.rescore([each.word for each in found]))
        return [each.word for each in found]

    def _corrected(self, taps: Taps) -> Correction:
        """What the space writes, and what else could have been."""
        rescorer = self.model if self.search and self.keyboard.ranks else None
        return at_space(self.decoder, taps, self._expected(), rescorer=rescorer)

    def _expected(self) -> Context:
        """The next words as the searching model predicts them, computed once a word."""
        if self.context is None:
            self.context = self.decoder.context((self.search or self.model).with_own_words)
        return self.context


@lru_cache(maxsize=1 << 16)
def _typed_form(layout: KeyboardLayout, word: str | None) -> str | None:
    """What is pressed for it; None where it cannot be typed, or is too long."""
    form = None if word is None else layout.typed_form(word)
    return form if form is not None and len(form) <= LONGEST_TYPED else None


def distance(one: Sequence[object], other: Sequence[object]) -> int:
    """Insertions, deletions and substitutions from one to the other (Levenshtein), a row of the table at a time."""
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        above, row = row, [place]
        for at, wanted in enumerate(other, 1):
            row.append(min(above[at] + 1, row[-1] + 1, above[at - 1] + (letter != wanted)))
    return row[-1]
