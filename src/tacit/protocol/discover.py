"""The question for words as a document, and the shape of its reports."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from tacit.errors import InputError
from tacit.federation.report_shape import ReportShape, counts_shape
from tacit.protocol.fields import MOST_LETTERS, MOST_LISTED, Document, QuestionDocument, Text
from tacit.text.alphabet import Alphabet

if TYPE_CHECKING:
    from tacit.randomizers.local_reports import LocalReportSettings


class LocalReportsDocument(Document):
    """How a device hides its answers: the fields of `discovery.settings.LocalReportSettings`."""

    local_epsilon: Annotated[float, Field(gt=0, le=700)]  # of one report
    contributions: Annotated[int, Field(ge=1, le=100_000)]  # reports, no more and no fewer
    sampler: Literal["random", "greedy"]
    randomizer: Annotated[str, StringConstraints(min_length=1, max_length=100)]  # its name


class PrefixesDocument(Document):
    """Which prefixes, a character longer, do your unknown words have? Fields of `discovery.question.PrefixQuestion`."""

    about: Literal["prefixes"]
    prefixes: Annotated[tuple[Text, ...], Field(min_length=1, max_length=MOST_LISTED)]  # all of one length
    alphabet: Annotated[str, StringConstraints(min_length=1, max_length=MOST_LISTED)]  # each character once
    depth: Annotated[int, Field(ge=2, le=MOST_LETTERS)]
    found: Annotated[tuple[Text, ...], Field(max_length=MOST_LISTED)]

    @property
    def domain(self) -> int:
        """How many answers there are: every symbol after every prefix, and none. Raises: InputError."""
        _check_different("prefixes", self.prefixes)
        if len(set(map(len, self.prefixes))) != 1:
            raise InputError("the prefixes of one question have several lengths.")
        return len(self.prefixes) * Alphabet(self.alphabet).size + 1


class ListedWordsDocument(Document):
    """Which of these words are among your unknown ones? Fields of `discovery.question.WordQuestion`."""

    about: Literal["words"]
    words: Annotated[tuple[Text, ...], Field(max_length=MOST_LISTED)]

    @property
    def domain(self) -> int:
        """How many answers there are: the words, another word, and none. Raises: InputError."""
        _check_different("words", self.words)
        return len(self.words) + 2


class DiscoverDocument(QuestionDocument):
    """How many of your randomised reports support each answer; the content is the list of words that are known."""

    kind: Literal["discover"]
    question: Annotated[PrefixesDocument | ListedWordsDocument, Field(discriminator="about")]
    reports: LocalReportsDocument

    @property
    def settings(self) -> "LocalReportSettings":
        """How answers are hidden. Raises: InputError for a randomizer or an epsilon that cannot be."""
        from tacit.randomizers.local_reports import LocalReportSettings  # whoever trains needs nothing of it

        return LocalReportSettings(**self.reports.model_dump())

    def shape(self) -> ReportShape:
        """See QuestionDocument: a report is how many of the device's own reports support each answer."""
        settings, domain = self.settings, self.question.domain
        most = settings.contributions
        return counts_shape(domain, most=most, together=most * settings.randomizer_for(domain).most_supported)


def _check_different(name: str, listed: tuple[str, ...]) -> None:
    if len(set(listed)) < len(listed):
        raise InputError(f"the {name} of a question are not different from each other.")
