"""Questions of word discovery as documents, and back: what `discovery.rounds.discover` asks, and devices are asked."""

import dataclasses

from tacit.discovery.alphabet import Alphabet
from tacit.discovery.question import PrefixQuestion, Question, WordQuestion
from tacit.discovery.settings import LocalReportSettings
from tacit.errors import InputError
from tacit.protocol.messages import ListedWordsAsked, LocalReportsAsked, PrefixesAsked, WordsAsked

MOST_SUPPORTED = 1 << 26  # answers that all reports of a device support together: a second, a quarter of a gigabyte


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


def check_effort(settings: LocalReportSettings, domain: int) -> None:
    """That a device can draw its reports over so many answers. Raises: InputError."""
    supported = settings.contributions * settings.randomizer_for(domain).most_supported
    if supported > MOST_SUPPORTED:
        raise InputError(
            f"{settings.contributions:,} reports over {domain:,} answers support {supported:,} of them together, and a "
            f"device counts {MOST_SUPPORTED:,}; ask for fewer reports, prefixes or characters."
        )


def check_no_sum_wraps(settings: LocalReportSettings, users: int) -> None:
    """That votes of so many users stay what they are: sums are modulo 2^32. Raises: InputError."""
    if users * settings.contributions >= 1 << 32:
        raise InputError(
            f"{users:,} devices that send {settings.contributions:,} reports each may give one answer "
            f"{users * settings.contributions:,} votes, and sums are counted up to {(1 << 32) - 1:,}; ask fewer in "
            "each layer, or for fewer reports."
        )


def _check_different(name: str, listed: tuple[str, ...]) -> None:
    if len(set(listed)) < len(listed):
        raise InputError(f"the {name} of a question are not different from each other.")
