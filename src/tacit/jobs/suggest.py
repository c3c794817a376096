"""What a model would suggest after a few prompts: the quickest look at what it has learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, of_type
from tacit.files import PathLike
from tacit.jobs.result import JobResult
from tacit.records import json_ready

if TYPE_CHECKING:
    from tacit.keyboard.model_folder import TrainedModel
    from tacit.keyboard.phone_model import PhoneModel
    from tacit.keyboard.suggest import Suggestion
    from tacit.reports.blocks import Block

SUGGESTED = 3  # as many as a keyboard's strip shows


@dataclass(frozen=True, kw_only=True)
class Suggestions(JobResult):
    """The likeliest next words after each prompt, the likeliest first."""

    model: str  # the path it was loaded from
    after: "tuple[tuple[str, tuple[Suggestion, ...]], ...]"  # (prompt, words)

    def blocks(self) -> "list[Block]":
        """What people read of it: a row for each prompt, with each word's probability."""
        from tacit.reports.suggestions import suggestion_table

        return [suggestion_table(self.after)]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit suggest --json` prints."""
        after = [{"prompt": prompt, "words": [each._asdict() for each in words]} for prompt, words in self.after]
        record: dict[str, Any] = json_ready(
            {"schema": "tacit.suggestions", "version": 1, "model": self.model, "after": after}
        )
        return record


def suggest(
    model: "PhoneModel | TrainedModel | PathLike", prompts: Sequence[str], *, k: int = SUGGESTED
) -> Suggestions:
    """The k likeliest next words after each prompt, which is whole words; "" asks for the first of a sentence.

    model: a finished run, a pre-training, a model folder, an exported one, "trigram:CACHE" for the trigram of a cache's
    training clients, or what `load_model` gave. Suggested are words of the vocabulary alone.
    prompts: texts of whole words.
    k: words for each prompt.

    Raises: InputError where there is no model, no prompt, or the vocabulary has not so many words.
    """
    from tacit.jobs.phone_models import phone_model

    of_type("prompts", prompts, list, tuple)
    if not prompts:
        raise InputError('there is no prompt; give at least one, as "I will see".')
    loaded = phone_model("model", model)
    after = tuple((prompt, loaded.next_words(prompt, k)) for prompt in prompts)
    return Suggestions(model=str(loaded), after=after)
