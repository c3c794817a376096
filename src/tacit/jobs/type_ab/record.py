"""What an A/B test of typing found, as a record: exact numbers, and those of released histograms alone; never mixed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.evaluation.counts.histograms import Histogram
from tacit.evaluation.type_ab.launch_rule import CAUTIOUS, DECIDING, RULE, decide, gains_of
from tacit.evaluation.type_ab.measures import MEASURES, Measure, Tally, total
from tacit.evaluation.type_ab.paired_bootstrap import Change, changes_of
from tacit.evaluation.type_ab.release import cautious_gains, mean_changes
from tacit.evaluation.type_ab.settings import Variant
from tacit.jobs.phone_models import TRIGRAM
from tacit.jobs.type_ab.more_words import MoreWords
from tacit.jobs.type_ab.setup import TypingTest
from tacit.keyboard.phone_model import PhoneModel

if TYPE_CHECKING:  # JAX comes with it
    from tacit.evaluation.personalize.own_model import OwnModels

EXACT = "SIMULATION ONLY: exact numbers of users' own text, typed again; no server would have them"
BY_VARIANT = 2_000  # resamples of each variant's intervals: enough for a figure


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What the same users did on both keyboards, in their order."""

    a: tuple[Tally, ...]
    b: tuple[Tally, ...]
    opened: tuple[bool, ...] = ()  # whose gates opened, where B is a model of each user's own


def about(test: TypingTest, seed: int) -> dict[str, Any]:
    """What was asked, which is public: the models, whose text, and how."""
    settings = test.settings
    models = [test.a.model, test.b.model, *([] if test.search is None else [test.search])]
    names = told_apart([*(each.name for each in models), *([] if test.more is None else [test.more.name])])
    return {
        "a": _model(test.a.model, names[0]),
        "b": _model(test.b.model, names[1]),
        "same_model": test.a.model.digest == test.b.model.digest,
        "shared_words": len(set(test.a.model.vocabulary.words) & set(test.b.model.vocabulary.words)),
        "source": test.typed.description,
        "split_name": test.typed.split,
        "clients": test.typed.clients,
        "of_split": test.typed.of_split,
        "split_by": test.typed.split_by,
        "asked": len(test.typed.users),
        "sentences": settings.share.sentences,
        "words": settings.share.words,
        "layout": test.layout,
        "condition": settings.condition,
        "search": None if test.search is None else names[2],
        "more_words": None if test.more is None else _more(test.more, names[-1]),
        "compose": settings.compose,
        "learns": settings.learns,
        "personal": None if test.own is None else _personal(test.own),
        "language_weight": test.a.decoder.language_weight,
        "seed": seed,
    }


def exact_record(test: TypingTest, typed: Typed, varied: Mapping[Variant, Typed]) -> dict[str, Any]:
    """What only a simulation knows: each measure on A and on B, what changes, and what the launch rule says of it."""
    changes = changes_of(typed.a, typed.b, cautious=CAUTIOUS)
    both = total(typed.a)
    return {
        "what": EXACT,
        "typed": {
            "sentences": both.sentences,
            "words": both.words,
            "untypable": both.untypable,
            "unspelled": test.typed.unspelled,
        },
        "measures": {name: _measured(change) for name, change in changes.items()},
        "decision": {**asdict(decide(gains_of(changes))), "rule": RULE},
        "own_models": _opened(typed) if typed.opened else None,
        "sensitivity": _sensitivity(test, typed, varied) if varied else None,
    }


def released_record(histograms: Mapping[str, Histogram]) -> dict[str, Any]:
    """All of it computed from the noised counts alone."""
    changes = mean_changes(histograms)
    return {
        "measures": {
            name: {**_defined(MEASURES[name]), "mean_change": change, "histogram": histograms[name].as_row()}
            for name, change in changes.items()
        },
        "decision": {**asdict(decide(cautious_gains(changes))), "rule": RULE},
    }


def told_apart(names: Sequence[str]) -> list[str]:
    """Names of models without the places of the machine: as much of the end of each path as tells them apart."""
    kinds = [TRIGRAM if name.startswith(TRIGRAM) else "" for name in names]
    paths = [Path(name.removeprefix(kind)).resolve().parts for kind, name in zip(kinds, names, strict=True)]
    different = len(set(zip(kinds, paths, strict=True)))
    for length in range(1, max(map(len, paths)) + 1):
        short = [kind + "/".join(parts[-length:]) for kind, parts in zip(kinds, paths, strict=True)]
        if len(set(short)) == different:
            break
    return short


def _model(model: PhoneModel, name: str) -> dict[str, Any]:
    """The digest of what is counted is one of text, by which guesses could be checked: it stays in the settings."""
    digest = None if model.name.startswith(TRIGRAM) else model.digest
    return {"name": name, "sha256": digest, "words": len(model.vocabulary.words)}


def _more(found: MoreWords, name: str) -> dict[str, Any]:
    words, share = len(found.words.words), 1.0 - found.words.others  # of all unknown words, by reports
    return {"name": name, "sha256": found.sha256, "words": words, "share": share, "origin": found.origin}


def _personal(own: "OwnModels") -> dict[str, Any]:
    """What is public of the models of users' own: how they are made, and how their text is cut."""
    split = own.split
    return {
        "way": str(own.how),
        "level": own.level,
        "split": str(split),
        "gate_share": split.gate,
        "least": split.least,
    }


def _opened(typed: Typed) -> dict[str, Any]:
    """How many gates opened, and what changed for those users alone."""
    rows = [pair for pair, opened in zip(zip(typed.a, typed.b, strict=True), typed.opened, strict=True) if opened]
    a, b = ([pair[side] for pair in rows] for side in (0, 1))
    changes = changes_of(a, b) if len(rows) > 1 else {}
    return {
        "users": len(typed.opened),
        "opened": len(rows),
        "measures": {name: _measured(change) for name, change in changes.items()},
    }


def _measured(change: Change) -> dict[str, Any]:
    numbers = {"a": change.a, "b": change.b, "difference": change.difference, "relative": change.relative}
    return {**_defined(change.measure), **numbers}


def _defined(measure: Measure) -> dict[str, str]:
    names = ("unit", "better", "definition", "source")
    return {name: getattr(measure, name) for name in names}


def _sensitivity(test: TypingTest, typed: Typed, varied: Mapping[Variant, Typed]) -> dict[str, Any]:
    """The deciding measures of the users who typed again, with the typist as it is and with each parameter changed."""
    few = test.settings.sensitivity
    base = Typed(a=typed.a[:few], b=typed.b[:few])
    return {
        "users": len(base.a),
        "as_it_is": _decided(base),
        "variants": [
            {"parameter": each.parameter, "factor": each.factor, "value": each.value, **_decided(found)}
            for each, found in varied.items()
        ],
    }


def _decided(typed: Typed) -> dict[str, Any]:
    measures = {name: MEASURES[name] for name in DECIDING}
    changes = changes_of(typed.a, typed.b, cautious=CAUTIOUS, measures=measures, resamples=BY_VARIANT)
    judgement = decide(gains_of(changes)).judgement
    return {"judgement": judgement, "measures": {name: _measured(change) for name, change in changes.items()}}
