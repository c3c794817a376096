"""Questions of word discovery as documents, and back: what `discovery.rounds.discover` asks, and devices are asked."""

import dataclasses

from tacit.deployment.messages import ListedWordsAsked, LocalReportsAsked, PrefixesAsked, WordsAsked
from tacit.discovery.alphabet import Alphabet
from tacit.discovery.question import PrefixQuestion, Question, WordQuestion
from tacit.discovery.settings import LocalReportSettings
from tacit.errors import InputError


def asks_of(question: Question, settings: LocalReportSettings) -> WordsAsked:
    """The question to a group as its devices get it."""
    return WordsAsked(
        kind="discover", question=_document_of(question), reports=LocalReportsAsked(**dataclasses.asdict(settings))
    )


def _document_of(question: Question) -> PrefixesAsked | ListedWordsAsked:
    if isinstance(question, WordQuestion):
        return ListedWordsAsked(about="words", words=question.words)
    assert isinstance(question, PrefixQuestion)  # there are no others
    return PrefixesAsked(
        about="prefixes",
        prefixes=question.prefixes,
        alphabet=question.alphabet.characters,
        depth=question.depth,
        found=tuple(sorted(question.found)),
    )


def question_of(asks: WordsAsked) -> Question:
    """The question that a document asks. Raises: InputError for one that contradicts itself."""
    said = asks.question
    if isinstance(said, ListedWordsAsked):
        _check_different("words", said.words)
        return WordQuestion(words=said.words)
    _check_different("prefixes", said.prefixes)
    if len(set(map(len, said.prefixes))) != 1:
        raise InputError("the prefixes of one question have several lengths.")
    return PrefixQuestion(
        prefixes=said.prefixes, alphabet=Alphabet(said.alphabet), depth=said.depth, found=frozenset(said.found)
    )


def settings_of(asks: WordsAsked) -> LocalReportSettings:
    """How answers are hidden. Raises: InputError for a randomizer or an epsilon that cannot be."""
    return LocalReportSettings(**asks.reports.model_dump())


def _check_different(name: str, listed: tuple[str, ...]) -> None:
    if len(set(listed)) < len(listed):
        raise InputError(f"the {name} of a question are not different from each other.")
