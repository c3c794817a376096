"""The settings of an A/B test of typing that change its result, as a frozen value."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias, get_args

from tacit.data.splits import TemporalSplit
from tacit.data.typed_sentences import Share
from tacit.errors import InputError, conceivable, of_type
from tacit.evaluation.personalize.fine_tuning import FITTED, FineTuning
from tacit.evaluation.personalize.gate import GateRule
from tacit.evaluation.type_ab.misspelling import Language
from tacit.evaluation.type_ab.typist import POPULATION, TIMES, Typist
from tacit.keyboard.touch import LAYOUTS
from tacit.records import from_plain, to_plain

Condition: TypeAlias = Literal["search", "rescore", "network"]
Learns: TypeAlias = Literal["b", "both"]
Personal: TypeAlias = Literal["sgd", "cache", "both"]
WAYS: Mapping[Personal, FineTuning] = {  # as docs/results/personalization.md found them
    "sgd": FineTuning(),
    "cache": FITTED,
    "both": FineTuning(bigram=0.1),
}
EARLIER = TemporalSplit(gate=0.125, least=4)  # 70% to fit, 10% for the gate, 20% to type; too short a text is left out
LANGUAGES: Mapping[str, Language] = {"qwerty": "en", "qwerty-es": "es"}  # of misspellings, by layout


def typist_on(layout: str) -> Typist:
    """The fitted population on another layout, with the misspellings of its language. Raises: InputError."""
    if layout not in LAYOUTS:
        raise InputError(f"the layout {layout!r} is unknown; choose one of {', '.join(LAYOUTS)}.")
    touch = replace(POPULATION.touch, layout=LAYOUTS[layout])
    return replace(POPULATION, touch=touch, language=LANGUAGES[layout])


@dataclass(frozen=True, kw_only=True)
class TypingSettings:
    """Who types what, on which keyboard."""

    share: Share = field(default_factory=lambda: Share(sentences=20, words=40))
    typist: Typist = POPULATION
    condition: Annotated[
        Condition,
        "network: the model is in the decoder's search; rescore: a trigram searches and the model ranks anew; "
        "search: a trigram does both and the model only suggests.",
    ] = "network"
    search: Annotated[str | None, "That trigram, as trigram:CACHE; left out, that of the cache in --data."] = None
    more_words: Annotated[str | None, "A finished discovery run, whose words keyboard B knows beside its model's."] = (
        None
    )
    compose: Annotated[float | None, "Offer phrases in the line from this probability on; left out, none."] = None
    learns: Annotated[Learns | None, "b: keyboard B learns what its user types; both: A, too; left out, none."] = None
    personal: Annotated[
        Personal | None,
        "B is a model of each user's own, fitted on earlier text: by sgd, by a cache, or by both; left out, it is not.",
    ] = None
    gate: Annotated[float, "Of that model: the level of its gate. 0.5 uses it where it was better, 1 always."] = 0.5
    language_weight: Annotated[float | None, "Of the model against the taps; left out, the decoder's own."] = None
    sensitivity: Annotated[int, "So many users type again with every parameter of the typist halved and doubled."] = 0

    def __post_init__(self) -> None:
        of_type("share", self.share, Share)
        of_type("typist", self.typist, Typist)
        of_type("more_words", self.more_words, str, NoneType)
        if self.condition not in get_args(Condition):
            conditions = ", ".join(get_args(Condition))
            raise InputError(f"the condition {self.condition!r} is unknown; choose one of {conditions}.")
        if self.learns is not None and self.learns not in get_args(Learns):
            raise InputError(f"learns={self.learns!r} is unknown; choose b or both, or leave it out.")
        if self.personal is not None and self.personal not in get_args(Personal):
            raise InputError(f"personal={self.personal!r} is unknown; choose sgd, cache or both, or leave it out.")
        if self.personal is not None and (self.learns or self.sensitivity):
            raise InputError(
                f"personal={self.personal!r} fits models once, before anything is typed; leave out learns and "
                "sensitivity."
            )
        GateRule(strategy=0, level=self.gate)  # refuses here
        if self.search is not None and self.condition == "network":
            raise InputError(
                f"search={self.search!r} is for the conditions search and rescore; in the condition network each model "
                "searches itself."
            )
        if self.compose is not None and not 0 < self.compose <= 1:
            raise InputError(f"compose={self.compose:g} is no probability above 0; leave it out to offer no phrases.")
        if self.language_weight is not None:
            conceivable("language_weight", self.language_weight)
            if self.language_weight < 0:
                raise InputError(f"language_weight={self.language_weight:g} must be 0 or more.")
        if self.sensitivity < 0 or self.sensitivity == 1:
            raise InputError(f"sensitivity={self.sensitivity} must be 0 (not asked) or at least two users.")

    @classmethod
    def on(cls, layout: str, **others: Any) -> Self:
        """With the fitted population on this layout. Raises: InputError."""
        return cls(typist=typist_on(layout), **others)

    def to_plain(self) -> dict[str, Any]:
        """For TOML, which has no null; without a model of one's own nothing is said of its gate."""
        plain = {name: value for name, value in to_plain(self).items() if value is not None}
        return plain if self.personal else {name: value for name, value in plain.items() if name != "gate"}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """What `to_plain` gave."""
        return from_plain(cls, plain)


# -- sensitivity -------------------------------------------------------------------------------------------------------

FACTORS = (0.5, 2.0)
UNBOUNDED = ("spread_", "deviation_", "offset_")  # beginnings of names of what is no probability, beside times


class Variant(NamedTuple):
    """The typist with one parameter changed."""

    parameter: str  # as "look" or "touch.deviation_x"
    factor: float
    value: float
    typist: Typist


def variants(typist: Typist) -> Iterator[Variant]:
    """Every number that a typist is made of, halved and doubled, one at a time; a probability doubles to 1 at most.

    What is 0 has no variant. Raises: InputError where two probabilities would add up to more than 1.
    """
    owners: list[tuple[str, Any]] = [("", typist), ("touch.", typist.touch)]
    for prefix, owner in owners:
        for each in fields(owner):
            was = getattr(owner, each.name)
            if not isinstance(was, float) or not was:
                continue
            for factor in FACTORS:
                bounded = each.name not in TIMES and not each.name.startswith(UNBOUNDED)
                value = min(factor * was, 1.0) if bounded else factor * was
                changed = replace(owner, **{each.name: value})
                other = replace(typist, touch=changed) if prefix else changed
                yield Variant(f"{prefix}{each.name}", factor, value, other)
