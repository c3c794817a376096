"""What people read at the end of `tacit demo`: does private learning pay here, at what price, and what next."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Heading, Labels, Paragraph, Table
from tacit.statements.statement import SURPRISING, Statement

if TYPE_CHECKING:  # the models' readers would come with it
    from tacit.evaluation.ladder import Ladder
    from tacit.keyboard.suggest import Suggestion
    from tacit.planning.judgement import Judgement

SMALL = 1.5  # an epsilon up to which odds are worth printing: e^5000 is no number
NEXT = (
    ("ask the better model for next words", "tacit suggest {counts} 'how do I'"),
    ("check every line of what it promises, and of what the rounds do", "tacit verify {counts}; tacit verify {rounds}"),
    ("set noise beside none", "tacit compare {rounds} {plain} --out {rounds}-compared"),
    (
        "import text of your own, a Parquet file with columns client_id (who typed) and text (what), as "
        "docs/your-own-data.md makes one",
        "tacit data import FILE.parquet --out caches/mine",
    ),
)
HEAD = ("model", "epsilon", "top-1", "top-3", "top-1 over free")
# Measured: docs/results/demo.md and docs/results/people.md.
ELSEWHERE = (
    "How much it pays depends on how far public text is from what people type, and on how many they are: here both "
    "are in favour of private learning (novels to 1899 against a help channel of thousands). docs/results/people.md "
    "measures texts that are nearer, and fewer people."
)


class Together(Protocol):
    """What is promised of all releases together."""

    @property
    def epsilon(self) -> float:
        """At `delta`."""

    @property
    def delta(self) -> float:
        """Of that epsilon."""


def of_demo(
    ladder: "Ladder",
    *,
    clients: int,
    epsilons: Mapping[str, float],
    counts: str,
    rounds: str,
    plain: str,
    statement: Statement,
    together: Together,
    suggested: "Mapping[str, Sequence[tuple[str, Sequence[Suggestion]]]]",
    where: Sequence[Block],
    forecast: "Mapping[str, Judgement]",
) -> list[Block]:
    """The blocks. ladder: has the models `counts`, `rounds` and `plain` (without noise).

    clients: that they learned from. epsilons: of each rung, 0 where it is free, infinite where it protects nobody.
    statement: of the rounds. suggested: of the "public" and the "private" model, after the same prompts. forecast: of
    "counts" and "rounds".
    """
    figures = statement.figures
    realised = figures.get("in_all", figures)["realised"]
    return [
        Heading("Does private learning pay?"),
        Paragraph(answer(ladder, counts, clients=clients, epsilon=epsilons[counts])),
        Paragraph(forecast_and_measured(ladder, forecast, counts=counts, rounds=rounds)),
        models(ladder, epsilons, counts=counts, rounds=rounds, plain=plain),
        Paragraph(about(ladder, delta=figures["delta"])),
        Paragraph(ELSEWHERE),
        Heading("What it suggests (words of the novels only)"),
        beside_each_other(suggested),
        Heading("What epsilon 1 means"),
        Paragraph(meaning(realised["epsilon"], figures["delta"], clients)),
        Paragraph(
            "Each of the two private models has that promise by itself. Somebody whose text is in both is promised "
            f"epsilon {rounded_up(together.epsilon)} at delta {together.delta:g} of them together."
        ),
        Labels(tuple(label for label in statement.labels if label.name in SURPRISING)),
        Heading("Where it is, and what to try next"),
        *where,
        *(
            Paragraph(f"{what}:\n   {command.format(counts=counts, rounds=rounds, plain=plain)}")
            for what, command in NEXT
        ),
    ]


def answer(ladder: "Ladder", counts: str, *, clients: int, epsilon: float) -> str:
    """In a sentence, from the interval: it pays, it does not, or these people cannot tell."""
    points, low, high = (100 * each for each in ladder.gain(counts, what="top1", of="predicted"))
    who = f"private counts of {clients:,} people at epsilon {rounded_up(epsilon)}"
    said = f"{points:+.2f} points of top-1 ({low:+.2f} to {high:+.2f}) over the best model of public text alone"
    if low > 0:
        return f"Yes: {who} give {said}."
    if high < 0:
        return f"No: {who} are worse, {said}."
    return f"These test clients cannot tell: {who} give {said}."


def forecast_and_measured(ladder: "Ladder", forecast: "Mapping[str, Judgement]", *, counts: str, rounds: str) -> str:
    """In a line, of both private models: what the first lines said, and what came."""
    said = []
    for name, run in (("counts", counts), ("rounds", rounds)):
        gain = 100 * ladder.gain(run, what="top1", of="predicted")[0]
        said.append(f"{name} were forecast {forecast[name].in_brief()} and measured {gain:+.2f}")
    return f"In points of top-1 over the best free model: {'; '.join(said)}."


def models(ladder: "Ladder", epsilons: Mapping[str, float], *, counts: str, rounds: str, plain: str) -> Table:
    """A row for each: what is free, what is private, and what protects nobody."""
    from tacit.evaluation.comparison_models import CLIENTS, FREE, PUBLIC_NETWORK, PUBLIC_NGRAM

    called = {
        PUBLIC_NGRAM: "free: n-gram",
        PUBLIC_NETWORK: "free: network",
        FREE: "free: both mixed",
        rounds: "private: rounds",
        counts: "private: counts",
        plain: "no noise: rounds",
        CLIENTS: "no privacy: n-gram",
    }
    rows = []
    for name, says in called.items():
        sums, epsilon = ladder.sums(name), epsilons[name]
        top1, top3 = (sums[each].sum() / sums["predicted"].sum() for each in ("top1", "top3"))
        cost = "none" if math.isinf(epsilon) else rounded_up(epsilon) if epsilon else "0"
        gain = "" if name == ladder.free else _points(ladder.gain(name, what="top1", of="predicted"))
        rows.append((says, cost, f"{top1:.2%}", f"{top3:.2%}", gain))
    return Table(tuple(rows), HEAD)


def about(ladder: "Ladder", *, delta: float) -> str:
    """Who judged, and what was chosen by whom."""
    sums = ladder.sums(str(ladder.free))
    people, words, known = len(sums["words"]), sums["words"].sum(), sums["predicted"].sum()
    return (
        "Free models are of the novels alone. Counts bend both of them; rounds (DP-FTRL) train the network; the last "
        'row counts the people\'s own text, and "none" protects nobody. Epsilon is at delta '
        f"{delta:g}. Measured on {people:,} people whom no model saw; {1 - known / words:.0%} of their words are not "
        "words of the novels, and do not count. Intervals are 95%, over people. The best free model here: "
        f"{ladder.said(str(ladder.free))}, weights that validation people's text chose, in its favour. The forecast's "
        "weights were fitted on held-out public text. "
        "These are exact numbers of a simulation: no server would have them."
    )


def beside_each_other(suggested: "Mapping[str, Sequence[tuple[str, Sequence[Suggestion]]]]") -> Table:
    """A row for each prompt: what public text alone suggests, and what the private model does."""
    rows = tuple(
        (prompt, *(", ".join(each.word for each in words) for words in of))
        for (prompt, *of) in (
            (public[0], public[1], private[1])
            for public, private in zip(suggested["public"], suggested["private"], strict=True)
        )
    )
    return Table(rows, ("after", "network of the novels", "with private counts"))


def meaning(epsilon: float, delta: float, clients: int) -> str:
    """Two sentences on an epsilon that was promised to each of so many people."""
    odds = f"e^{rounded_up(epsilon)}"
    if epsilon <= SMALL:
        odds += f" = {rounded_up(math.exp(epsilon), 3)}"
    return (
        f"Somebody who knows what all other {clients - 1:,} people typed and sees all that is released learns little "
        f"of one person: the odds of any guess about their text change at most {odds} times, except with a probability "
        f"of at most {delta:g}. That holds whatever else is known, since what a person adds is bounded and noise that "
        "drowns it was drawn before anything was released."
    )


def _points(gain: Sequence[float]) -> str:
    value, low, high = (f"{100 * each:+.2f}" for each in gain)
    return f"{value} ({low} to {high})"
