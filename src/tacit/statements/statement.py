"""The statement that people read and publish: arXiv:2305.18465, Appendix A (and 2408.08868, C), item by item.

Facts come in, sentences and a record go out; whatever weakens the guarantee stands first, in capitals. The record holds
facts and figures in full, so that `verify` can make it again. What differs from kind to kind is in `train.py`,
`discover.py` and `count.py`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tacit.federation.kinds import KINDS, loaded
from tacit.privacy.delta import DELTA_TOO_LARGE, publishing_warning
from tacit.privacy.strategy import Record
from tacit.statements.count_facts import DiscoveryFacts, EvaluationFacts
from tacit.statements.markdown import escaped, one_line, paragraphs
from tacit.statements.population import PopulationSpent
from tacit.statements.train_facts import SideRelease, TrainingFacts

Facts = TrainingFacts | DiscoveryFacts | EvaluationFacts


# arXiv:2303.00654, section 5.2, has epsilon <= 10 as its last tier with a meaningful guarantee; twice that is no longer
# a matter of taste.
PROTECTIVE_EPSILON = 20

FLOATING_POINT = (
    "the analysis is of real numbers. Noised sums are released on a grid that is chosen before the data; what floating "
    "point changes all the same is bounded in docs/floating-point.md, and not added here."
)

SECTIONS = {"2a": "2. Instantiating the DP definition", "3a": "3. Privacy accounting details"}


TITLES = {
    "1": "DP setting",
    "2a": "Data accesses covered",
    "2b": "Final mechanism output",
    "2c": "Unit of privacy",
    "2d": "Adjacency",
    "3a": "Type of accounting",
    "3b": "Accounting assumptions",
    "3c": "Formal DP statement",
    "3d": "Transparency and verifiability",
}


@dataclass(frozen=True)
class Label:
    """A warning that stands before everything else."""

    name: str
    meaning: str


WEAKER = Label("WEAKER THAN PLANNED", "clients came more often or sooner than planned; only the realised figures hold.")
SURPRISING = (WEAKER.name, DELTA_TOO_LARGE)  # labels that no setting announces
PLANNED = Label(
    "PLANNED",
    "nothing has been trained. These are the promises of a run that may never be made; the statement of the finished "
    "run replaces this one, and only what was realised there holds.",
)


@dataclass(frozen=True)
class Item:
    """One numbered item of the statement."""

    number: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The finished statement of a run of any kind, with the facts that it follows from."""

    facts: Facts = field(repr=False)
    labels: tuple[Label, ...]
    items: tuple[Item, ...] = field(repr=False)
    figures: Record = field(repr=False)
    title: str = "Privacy statement"

    def markdown(self) -> str:
        """The labels on the first lines, then the items under their headings."""
        lines = [f"**{label.name}: {escaped(label.meaning)}**\n" for label in self.labels]
        lines.append(f"# {self.title}\n")
        for item in self.items:
            if item.number in SECTIONS:
                lines.append(f"## {SECTIONS[item.number]}\n")
            depth = "###" if item.number[1:] else "##"
            lines.append(f"{depth} {item.number}. {item.title}\n" if item.number else f"## {item.title}\n")
            lines.append(paragraphs(item.text) + "\n")
        return "\n".join(lines)

    _repr_markdown_ = markdown  # what a notebook shows

    def to_record(self) -> Record:
        """Plain values for JSON: the facts with a checksum each, and everything that follows from them.

        Infinite figures are "inf". The checksums name the fact that was changed by hand; they are no signature.
        """
        facts = self.facts.to_record()
        return {
            "format": self.facts.format,
            "labels": [{"name": label.name, "meaning": label.meaning} for label in self.labels],
            "items": [{"number": item.number, "title": item.title, "text": item.text} for item in self.items],
            **self.figures,
            "facts": facts,
            "checksums": {name: checksum(name, value) for name, value in leaves(facts)},
        }

    def to_json(self) -> str:
        """The record as the text of a file: what `tacit verify` reads."""
        return json.dumps(self.to_record(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def statement(facts: Facts) -> Statement:
    """The statement of one run, with every item and every label that the facts call for."""
    said = _in_one_line(facts)  # what others wrote stands in sentences, and is none; the record has it as it is
    of_its_kind = formats()[facts.format]
    return Statement(
        facts=facts,
        labels=tuple(of_its_kind.labels(said)),
        items=tuple(of_its_kind.items(said)),
        figures=of_its_kind.figures(said),
        title=of_its_kind.title(said),
    )


def formats() -> dict[str, Any]:
    """The module of each kind of statement, by the format of its facts.

    It has the class `FACTS`; `facts` of a run; and of facts `items`, `labels`, `figures` and `title`.
    """
    modules = dict.fromkeys(kind.statement for kind in KINDS.values() if kind.statement is not None)
    return {module.FACTS.format: module for module in map(loaded, modules)}


def numbered(texts: Iterable[str]) -> tuple[Item, ...]:
    """The nine items that every statement has, by their texts in order."""
    return tuple(Item(number, title, text) for (number, title), text in zip(TITLES.items(), texts, strict=True))


def budget_label(budget: PopulationSpent | None) -> list[Label]:
    meaning = "of its population more was taken than is allowed, because clients came more often than planned."
    return [Label("BUDGET EXCEEDED", meaning)] if budget and budget.exceeded else []


def delta_label(delta: float, population: int) -> list[Label]:
    warning = publishing_warning(delta, population)
    return [] if warning is None else [Label(DELTA_TOO_LARGE, warning)]


def _in_one_line(facts: Facts) -> Facts:
    """The facts with every text of others in one line."""
    texts = {field.name: _said(getattr(facts, field.name)) for field in fields(facts)}
    return replace(facts, **{name: value for name, value in texts.items() if value is not None})


def _said(value: Any) -> Any:
    """A text, or several, or what goes by a name, in one line; None for what is none of these."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, SideRelease):
        return replace(value, what=one_line(value.what))
    if isinstance(value, PopulationSpent):
        return replace(value, population=one_line(value.population), clients=one_line(value.clients))
    if isinstance(value, tuple) and value and all(isinstance(each, str | SideRelease) for each in value):
        return tuple(map(_said, value))
    return None


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """(name, value) of all that stands in nested objects and lists; a list of plain values is one value.

    A name is the path with dots between; an item of a list goes by its number in the list.
    """
    nested: Mapping[Any, Any] = {}
    if isinstance(value, Mapping):
        nested = value
    elif isinstance(value, list) and any(isinstance(each, list | Mapping) for each in value):
        nested = dict(enumerate(value))
    if not nested:
        yield name, value
    for key, inner in nested.items():
        yield from leaves(inner, f"{name}.{key}" if name else str(key))


def checksum(name: str, value: Any) -> str:
    """What tells one fact from another of the same name, or from the same value under another name.

    Programs write a whole number with or without a point, so both have the same checksum.
    """
    written = json.dumps([name, _as_real(value)], sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def _as_real(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_real(each) for each in value]
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and abs(value) < 2**53 else value


def sealed(seal: str | None) -> str:
    """What ties a statement to its run, where the run has a seal."""
    if seal is None:
        return ""
    return f", and of the run folder that its facts are those of the ledger and log with the seal {seal}"
