"""What was learned, at what price, and whether that is good: the first sentences of a page, and the table behind them.

`price` may be published. The rest are exact functions of held-out clients' text and stand in `simulation/` alone.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.evaluation.comparison_models import (
    BOTH,
    BOTH_AND_NETWORK,
    CLIENTS,
    FIRST_WORDS,
    FREE,
    MODEL,
    PUBLIC_NGRAM,
    START,
    TRIGRAM,
    WITH_NGRAM,
    WITHOUT_PRIVACY,
)
from tacit.networks.metrics import OF_KNOWN, SHOWN, TOP1
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Heading, Paragraph, Table
from tacit.reports.summary import RunSummary
from tacit.statements.statement import Label
from tacit.text.vocabulary import SPECIALS

if TYPE_CHECKING:  # Numba and SciPy would come with it
    from tacit.evaluation.intervals import Estimate
    from tacit.reports.release import Interval

TOP3 = "top3_accuracy"
WORSE, NO_BETTER = "WORSE THAN ITS START", "NO BETTER THAN ITS START"
NOISE_DOMINATES = "NOISE DOMINATES"  # of `runs.diagnostics`
# The tiers of arXiv:2303.00654, section 5.2: strong up to 1, reasonable up to 10, weak to none above.
TIERS = ((1.0, "which is a strong promise"), (10.0, "which is a reasonable promise"))
WEAK = "which promises little"
IN_WORDS = {
    FREE: "the best free model, public n-grams mixed with its start",
    START: "its start",
    TRIGRAM: "a trigram on the same public text",
    FIRST_WORDS: "the vocabulary's first words",
}
# Rungs of the ladder that a table shows besides; only a simulation knows those of clients' text.
RUNGS = {
    TRIGRAM: "a trigram on the same public text",
    PUBLIC_NGRAM: "n-grams of the same public text",
    FREE: "the best free model: these mixed with its start",
    MODEL + WITH_NGRAM: "the model mixed with these n-grams",
    CLIENTS: "n-grams of the clients' same sentences",
    BOTH: "n-grams of both texts",
    BOTH_AND_NETWORK: "these mixed with its start",
}


def opening(summary: RunSummary) -> str:
    """What was learned at what price: one sentence, then whether that is good."""
    top1, top3 = (_final(summary, metric) for metric in (TOP1, TOP3))
    if top1 is None or top3 is None or not summary.released:
        return cost(summary)
    whose = "test clients" if summary.test else "validation clients, so far"
    learned = (
        f"After {summary.released:,} rounds of {summary.metadata.report_goal:,} clients the model suggests the next "
        f"word first in {top1:.1%} {OF_KNOWN} and among {SHOWN} suggestions in {top3:.1%}, on {whose} that it never "
        f"learned from; {_promise(summary)}."
    )
    return f"{learned} {judged(summary)}".rstrip()


def cost(summary: RunSummary) -> str:
    """What was trained at what price, without a word on how good it is."""
    training = summary.metadata
    if not summary.released:
        return "Nothing is trained yet, and nothing was spent."
    many = f"{training.population:,}"
    clients = f"about {many} devices" if summary.deployed else f"{many} clients"
    return (
        f"A next-word model of {training.parameters:,} parameters and {training.data.vocabulary_size - SPECIALS:,} "
        f"words was trained on the text of {clients}, in {summary.released:,} rounds of "
        f"{training.report_goal:,}; {_promise(summary)}."
    )


def _promise(summary: RunSummary) -> str:
    holds, delta = summary.holds, summary.delta
    if not summary.private or holds is None:
        return "no noise was added, so nothing is promised to anybody"
    epsilon = holds[1]["epsilon"]
    tier = next((said for most, said in TIERS if epsilon <= most), WEAK)
    return f"the price is epsilon {rounded_up(epsilon)} at delta {delta:g} for all that one client typed, {tier}"


def judged(summary: RunSummary) -> str:
    """Whether the accuracy is good, beside what else could have been had; empty where nothing is known."""
    better: list[str] = []
    worse: list[str] = []
    for name, called in IN_WORDS.items():
        gain = _gain(summary, name)
        if gain is not None:
            sided = better if gain.low > 0 else worse if gain.high < 0 else None
            if sided is not None:
                sided.append(f"{called} ({points(gain)})")
    unclear = [called for name, called in IN_WORDS.items() if _undecided(_gain(summary, name))]
    parts = [("better than", better), ("no different, as far as these clients tell, from", unclear)]
    said = [f"{word} {_listed(those)}" for word, those in [*parts, ("worse than", worse)] if those]
    return f"Its top-1 accuracy is {'; '.join(said)}." if said else ""


def judgement_labels(summary: RunSummary) -> tuple[Label, ...]:
    """A warning where one had better kept the model that training began with."""
    first, now = summary.start(TOP1), _final(summary, TOP1)
    if first is None or now is None or not summary.released:
        return ()
    gain, start = _gain(summary, START), _start(summary)
    low, high = (now - first, now - first) if gain is None else (gain.low, gain.high)
    figures = f"top-1 {now:.2%} after {summary.released:,} rounds, and {first:.2%} before the first ({start})"
    if high < 0:
        advice = "training destroyed what the model knew: keep the start, and give more clients, less noise, or both"
        return (Label(WORSE, f"{figures}; {advice}."),)
    if low <= 0:
        return (Label(NO_BETTER, f"{figures}; the start would have done as well, at no price."),)
    return ()


def failures(summary: RunSummary) -> tuple[Label, ...]:
    """Every warning that exact numbers speak, each said once: by the accuracy, else by the loss.

    A drowned model is worse than its start in everything, and that is the stronger word.
    """
    ours = judgement_labels(summary)
    theirs = [each for each in summary.failed if each.name not in {label.name for label in ours}]
    stronger = any(each.name in (WORSE, NOISE_DOMINATES) for each in theirs)
    return (*(() if stronger else ours), *theirs)


def beside(summary: RunSummary) -> list[Block]:
    """The section that holds the model against what could be had without its training."""
    found = summary.tested
    if found is None:
        return []
    rows = [
        _row(
            f"the model, after {summary.released:,} rounds",
            _said(found.estimate(MODEL, TOP1)),
            _said(found.estimate(MODEL, TOP3)),
            _nats(found.value(MODEL, "cross_entropy")),
            "",
        )
    ]
    for name, called in _others(summary).items():
        gain = _gain(summary, name)
        rows.append(
            _row(
                called,
                _said(found.estimate(name, TOP1)),
                _said(found.estimate(name, TOP3)),
                _nats(found.value(name, "cross_entropy")),
                "" if gain is None else points(gain),
            )
        )
    words = summary.metadata.data.vocabulary_size - SPECIALS
    few = min(SHOWN, words)
    rows.append(
        _row(f"a guess among {words:,} words", f"{1 / words:.2%}", f"{few / words:.2%}", _nats(math.log(words)), "")
    )
    head = (f"on test clients, {OF_KNOWN}", "top-1", "top-3", "nats a word", "the model's gain, top-1")
    return [Heading("Is that good?"), Table(tuple(rows), head), Paragraph(_read(summary), soft=True)]


def beside_record(summary: RunSummary) -> dict[str, Any] | None:
    """The same as plain values: by comparison model, value and interval of each metric and of the model's gain."""
    found = summary.tested
    if found is None:
        return None
    of_each = {
        name: {
            **{metric: found.estimate(name, metric) for metric in sums},
            "gain": None if name == MODEL else found.gain(MODEL, name, TOP1),
        }
        for name, sums in found.sums.items()
    }
    return {"public_text": summary.public_text, **of_each}


def summary_lines(summary: RunSummary) -> str:
    """The top-1 accuracy of what the model is held against, in a line; empty where it is not known."""
    found = summary.tested
    if found is None:
        return ""
    values = {called: found.value(name, TOP1) for name, called in IN_WORDS.items()}
    return f"top-1 {OF_KNOWN}: " + ", ".join(
        f"{called} {value:.2%}" for called, value in values.items() if value is not None
    )


def counted_how(summary: RunSummary, test: float) -> str:
    """Why `tacit evaluate` says another accuracy of the same model."""
    evaluation = summary.metadata.evaluation
    return (
        f"counted by word (who types more counts more) over the first {test:,.0f} clients of the test split, at most "
        f"{evaluation['sentences']:,} sentences of each; `tacit evaluate` counts by client, over all of the split, and "
        "so says another figure of the same model"
    )


def _read(summary: RunSummary) -> str:
    none = "" if summary.trigram else f" There are no n-grams of public text beside it: {summary.public_text}."
    missing = summary.rungs.get(CLIENTS, "") if summary.tested is None or CLIENTS not in summary.tested.sums else ""
    none += f" There are none of the clients' text: {missing}." if missing else ""
    if summary.private and not summary.deployed:
        none += (
            " Private counts would be a release of their own: `tacit ladder RUN --model COUNTED` sets them beside it."
        )
    return (
        "In brackets: 95% intervals over clients; a gain's is of the difference on the same words, which is sharper "
        "than the difference of two intervals. N-grams are interpolated Kneser-Ney models, whose order and weights "
        "validation clients chose." + none
    )


def _others(summary: RunSummary) -> dict[str, str]:
    """What the model is held against, by comparison model: as people call it."""
    found = {START: f"its start ({_start(summary)})"}
    there = {} if summary.tested is None else summary.tested.sums
    for name, called in RUNGS.items():
        if name in there:
            found[name] = f"{called}, WITHOUT PRIVACY" if name in WITHOUT_PRIVACY else called
    if FIRST_WORDS in there:
        found[FIRST_WORDS] = "no training: the vocabulary's first words, always"
    return found


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _start(summary: RunSummary) -> str:
    first = summary.metadata.first_model
    return "random" if first is None else "the model of public text"


def _final(summary: RunSummary, metric: str) -> float | None:
    """Of test clients at the end, of validation clients before."""
    return summary.test.get(metric, summary.last_validation.get(metric))


def _gain(summary: RunSummary, over: str) -> "Estimate | None":
    return None if summary.tested is None else summary.tested.gain(MODEL, over, TOP1)


def _undecided(gain: "Estimate | None") -> bool:
    return gain is not None and gain.low <= 0 <= gain.high


def _row(*cells: str) -> tuple[str, ...]:
    return cells


def points(gain: "Estimate | Interval") -> str:
    """A difference of accuracies in percentage points, with its interval."""
    value, low, high = (f"{100 * each:+.1f}".replace("-", "\N{MINUS SIGN}") for each in gain)
    return f"{value} points, {low} to {high}"


def _said(found: "Estimate | None") -> str:
    """A share with its interval, of which only what is between nothing and all can be."""
    return "–" if found is None else f"{found.value:.1%} ({max(found.low, 0):.1%} to {min(found.high, 1):.1%})"


def _nats(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
