"""The statement that people read and publish: arXiv:2305.18465, Appendix A (and 2408.08868, C), item by item.

Facts come in, sentences and a record go out; whatever weakens the guarantee stands first, in capitals. The record holds
facts and figures in full, so that `verify` can make it again. The sentences are in the files `*_text.py`.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from tacit.privacy.composition import Composition
from tacit.privacy.delta import DELTA_TOO_LARGE, publishing_warning
from tacit.privacy.guarantee import OPERATING_SYSTEM, Guarantee
from tacit.privacy.local_guarantee import RESAMPLED, SEEDED, LocalGuarantee
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.statements import count_text, discover_text, train_text
from tacit.statements.count_facts import DiscoveryFacts, EvaluationFacts
from tacit.statements.ledger import NoisedSum
from tacit.statements.local_releases import PREFIX_VOTES
from tacit.statements.markdown import escaped, one_line, paragraphs
from tacit.statements.population import PopulationSpent
from tacit.statements.train_facts import ADJACENCIES, UNITS, SideRelease, TrainingFacts

Facts = TrainingFacts | DiscoveryFacts | EvaluationFacts
P = TypeVar("P")


# arXiv:2303.00654, section 5.2, has epsilon <= 10 as its last tier with a meaningful guarantee; twice that is no longer
# a matter of taste.
PROTECTIVE_EPSILON = 20

SECTIONS = {"2a": "2. Instantiating the DP definition", "3a": "3. Privacy accounting details"}


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
    if isinstance(said, TrainingFacts):
        made = _of_training(said)
    else:
        made = _of_discovery(said) if isinstance(said, DiscoveryFacts) else _of_evaluation(said)
    return replace(made, facts=facts)


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


# -- training ----------------------------------------------------------------------------------------------------------


def _of_training(facts: TrainingFacts) -> Statement:
    text = train_text
    items = [
        Item("1", "DP setting", text.setting(facts)),
        Item("2a", "Data accesses covered", text.accesses(facts)),
        Item("2b", "Final mechanism output", text.output(facts)),
        Item("2c", "Unit of privacy", UNITS[facts.unit]),
        Item("2d", "Adjacency", ADJACENCIES[facts.adjacency]),
        Item("3a", "Type of accounting", text.accounting(facts)),
        Item("3b", "Accounting assumptions", text.assumptions(facts)),
        Item("3c", "Formal DP statement", text.formal(facts)),
        Item("3d", "Transparency and verifiability", text.verifiability(facts)),
    ]
    figures: Record = {
        "delta": facts.delta,
        "unit": facts.unit,
        "adjacency": facts.adjacency,
        "key_source": facts.key_source,
        "private": facts.planned_in_all.private,
        **_planned_and_realised(facts),
    }
    if facts.extrapolation:
        items.append(Item("", "EXTRAPOLATED: not a guarantee of this run", text.extrapolated(facts)))
        figures["extrapolated"] = {
            "report_goal": facts.extrapolation.report_goal,
            **_planned_and_realised(facts.at_larger_cohort()),
        }
    if facts.simulated:
        figures["simulated"] = asdict(facts.simulated)
    title = "Privacy statement" if facts.realised else "Privacy statement, planned"
    return Statement(facts=facts, labels=_training_labels(facts), items=tuple(items), figures=figures, title=title)


def _training_labels(facts: TrainingFacts) -> tuple[Label, ...]:
    labels = [] if facts.realised else [PLANNED]
    planned, holds = facts.planned_in_all, facts.realised_in_all or facts.planned_in_all
    if not facts.planned.private:
        labels.append(Label("NON-PRIVATE", "no noise was added, so this run promises nothing to anybody."))
    elif not planned.private:
        bare = ", ".join(each.what for each in planned.sequences if not each.guarantee.private)
        labels.append(Label("NON-PRIVATE", f"released without noise: {bare}; so nothing is promised to anybody."))
    if facts.vocabulary_kind == "private":
        meaning = "the list of words was counted in clients' own text; there is no guarantee for the vocabulary."
        labels.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    if facts.key_source != OPERATING_SYSTEM:
        meaning = f"randomness came from {facts.key_source}; whoever knows the seed can take the noise away."
        labels.append(Label("FIXED SEED", meaning))
    if holds.zcdp > planned.zcdp * (1 + 1e-9):
        labels.append(WEAKER)
    if holds.private:
        labels.extend(_delta_label(facts.delta, facts.population))
    epsilon = holds.epsilon(facts.delta)
    if holds.private and epsilon > PROTECTIVE_EPSILON:
        figure = rounded_up(epsilon, 6)
        meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; this run's is {figure}."
        labels.append(Label("VERY LARGE EPSILON", meaning))
    labels.extend(_budget_label(facts.budget))
    if facts.extrapolation:
        goal = facts.extrapolation.report_goal
        meaning = f"the last section speaks of {goal:,} reports a round, a run that was not made."
        labels.append(Label("EXTRAPOLATED", meaning))
    return tuple(labels)


def _budget_label(budget: PopulationSpent | None) -> list[Label]:
    meaning = "of its population more was taken than is allowed, because clients came more often than planned."
    return [Label("BUDGET EXCEEDED", meaning)] if budget and budget.exceeded else []


def _delta_label(delta: float, population: int) -> list[Label]:
    warning = publishing_warning(delta, population)
    return [] if warning is None else [Label(DELTA_TOO_LARGE, warning)]


def _planned_and_realised(facts: TrainingFacts) -> Record:
    """The figures of the model updates; where other sequences were released, theirs, and those of all together."""
    delta = facts.delta
    figures: Record = _both(facts.planned, facts.realised, lambda each: _figures(each, delta))
    if facts.also_released:
        figures["also_released"] = [
            {"what": each.what, **_both(each.planned, each.realised, lambda each: _figures(each, delta))}
            for each in facts.also_released
        ]
        figures["in_all"] = _both(facts.planned_in_all, facts.realised_in_all, lambda each: _promised(each, delta))
    return figures


def _both(planned: P, realised: P | None, figures: Callable[[P], Record]) -> Record:
    """As planned, and as realised where anything is."""
    return {"planned": figures(planned), **({"realised": figures(realised)} if realised else {})}


def _figures(guarantee: Guarantee, delta: float) -> Record:
    limits = guarantee.participation
    return {
        "strategy": guarantee.strategy.kind if guarantee.strategy else None,
        "rounds": limits.rounds,
        "min_separation": limits.min_separation,
        "rounds_between": limits.rounds_between,
        "max_participations": limits.max_participations,
        "sensitivity_squared": guarantee.sensitivity_squared,
        "exact": guarantee.exact,
        "noise_multiplier": guarantee.noise_multiplier,
        "clip_norm": _finite(guarantee.clip_norm),
        "clip_inflation": guarantee.clip_inflation,
        **_promised(guarantee, delta),
    }


def _promised(guarantee: Guarantee | Composition, delta: float) -> Record:
    figures = {"zcdp": guarantee.zcdp, "mu": guarantee.mu, "epsilon": guarantee.epsilon(delta)}
    return {**{name: _finite(value) for name, value in figures.items()}, "delta": delta}


def _finite(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


# -- discovery ---------------------------------------------------------------------------------------------------------


def _of_discovery(facts: DiscoveryFacts) -> Statement:
    text = discover_text
    layers = [release for release in facts.releases if release.what == PREFIX_VOTES]
    items = (
        Item("1", "DP setting", text.setting(facts)),
        Item("2a", "Data accesses covered", text.accesses(facts)),
        Item("2b", "Final mechanism output", text.output(facts, layers)),
        Item("2c", "Unit of privacy", text.unit(facts)),
        Item("2d", "Adjacency", text.ADJACENCY),
        Item("3a", "Type of accounting", text.accounting(facts.guarantee)),
        Item("3b", "Accounting assumptions", "\n".join(f"- {each}" for each in text.assumptions(facts))),
        Item("3c", "Formal DP statement", "\n".join(f"- {each}" for each in text.formal(facts))),
        Item("3d", "Transparency and verifiability", text.verifiability(facts)),
    )
    figures: Record = {
        "users": facts.users,
        "layers": len(layers),
        "passes": len({release.turn for release in layers}),
        "words": sum(release.words for release in layers),
        "guarantee": facts.guarantee.to_record(),
        "anonymity": {"k": facts.anonymity.k, "delta": facts.anonymity.delta, "delta_of_thresholds": facts.rare_output}
        if facts.anonymity
        else None,
    }
    title = "Privacy statement of a discovery of new words"
    return Statement(facts=facts, labels=_discovery_labels(facts), items=items, figures=figures, title=title)


def _discovery_labels(facts: DiscoveryFacts) -> tuple[Label, ...]:
    labels, guarantee = [], facts.guarantee
    if facts.key_source != OPERATING_SYSTEM:
        labels.append(Label("FIXED SEED", f"randomness came from {facts.key_source}. {SEEDED}"))
    if facts.resampled:
        labels.append(Label("RESAMPLED USERS", RESAMPLED))
    if facts.vocabulary_kind == "private":
        meaning = "the list of known words was counted in clients' own text; there is no guarantee for it."
        labels.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    labels.extend(_delta_label(facts.central_delta, facts.population))
    labels.extend(_budget_label(facts.budget))
    levels = (
        ("LOCAL", "without trust in whoever sums the reports", guarantee.item_epsilon),
        ("CENTRAL", "even where nobody sees single reports", guarantee.central_user_epsilon),
    )
    for level, where, epsilon in levels:
        if epsilon > PROTECTIVE_EPSILON:
            meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; {where}, this discovery's is "
            labels.append(Label(f"VERY LARGE {level} EPSILON", meaning + f"{rounded_up(epsilon)}."))
    return tuple(labels)


# -- evaluation --------------------------------------------------------------------------------------------------------


def _of_evaluation(facts: EvaluationFacts) -> Statement:
    text = count_text
    items = (
        Item("1", "DP setting", text.setting(facts)),
        Item("2a", "Data accesses covered", text.accesses(facts)),
        Item("2b", "Final mechanism output", text.output(facts)),
        Item("2c", "Unit of privacy", UNITS[facts.unit]),
        Item("2d", "Adjacency", text.adjacency(facts)),
        Item("3a", "Type of accounting", text.accounting(facts)),
        Item("3b", "Accounting assumptions", text.assumptions(facts)),
        Item("3c", "Formal DP statement", text.formal(facts)),
        Item("3d", "Transparency and verifiability", text.verifiability(facts)),
    )
    title = f"Privacy statement of an evaluation of {facts.of}"
    figures = evaluation_figures(facts)
    return Statement(facts=facts, labels=_evaluation_labels(facts), items=items, figures=figures, title=title)


def evaluation_figures(facts: EvaluationFacts) -> Record:
    """What an evaluation promises as plain values: of central releases with the noise of a count, step by step."""
    local = isinstance(facts.guarantee, LocalGuarantee)
    figures: Record = {
        "kind": "local" if local else "central",
        "unit": facts.unit,
        "adjacency": "replace-one" if local else "zero-out",
        "key_source": facts.key_source,
        "aggregation": facts.aggregation,
    }
    figures |= {"zcdp": facts.guarantee.zcdp} if isinstance(facts.guarantee, Composition) else {}
    steps = count_text.steps_of(facts)
    figures |= {
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "steps": len(steps),
        "histograms": [count_text.histograms_in(step) for step in steps],
    }
    if not local:
        sums = (each for each in facts.releases if isinstance(each, NoisedSum))
        figures["stddev_of_a_count"] = list(map(count_text.stddev_of_a_count, sums))
    return figures


def _evaluation_labels(facts: EvaluationFacts) -> tuple[Label, ...]:
    labels = []
    if facts.key_source != OPERATING_SYSTEM:
        meaning = f"randomness came from {facts.key_source}; whoever knows the seed can take the noise away."
        labels.append(Label("FIXED SEED", meaning))
    if facts.delta > 0:
        labels.extend(_delta_label(facts.delta, facts.asked))
    labels.extend(_budget_label(facts.budget))
    if facts.epsilon > PROTECTIVE_EPSILON:
        meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; this evaluation's is "
        labels.append(Label("VERY LARGE EPSILON", meaning + f"{rounded_up(facts.epsilon, 6)}."))
    return tuple(labels)
