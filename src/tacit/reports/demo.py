"""What people read at the end of `tacit demo`: three models side by side, what the epsilon means, what to do next."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Heading, Labels, Paragraph, Table
from tacit.reports.suggestions import suggestion_table
from tacit.statements.statement import SURPRISING, Statement

if TYPE_CHECKING:  # the models' readers would come with it
    from tacit.keyboard.suggest import Suggestion

SMALL = 1.5  # an epsilon up to which odds are worth printing: e^5000 is no number
NEXT = (
    ("ask it for next words", "tacit suggest {run} 'Return the'"),
    ("check every line of what is promised", "tacit verify {run}/report/statement.json"),
    ("set noise beside none", "tacit compare {run} {plain} --out {run}-compared"),
    (
        "import text of your own, a Parquet file with columns client_id (who typed) and text (what), as "
        "docs/your-own-data.md makes one",
        "tacit data import FILE.parquet --out caches/mine",
    ),
)
# Measured: docs/results/demo.md, "What to expect elsewhere".
WHY_SO_LITTLE = (
    "Private training adds little to the public model here, with noise or without: the same hands wrote both texts, so "
    "that model knows most of it already. How much it adds to text that is less alike has to be tried: to blogs, from "
    "models of other public text, 1.0 points in 400 rounds and nothing in 10."
)


def of_demo(
    tested: Mapping[str, Mapping[str, float]],
    *,
    kept: float,
    clients: int,
    statement: Statement,
    suggested: "Sequence[tuple[str, Sequence[Suggestion]]]",
    where: Sequence[Block],
    run: str,
    plain: str,
) -> list[Block]:
    """The blocks. tested: the metrics on test clients of the "public", "private" and "without noise" models.

    clients: that trained. statement: of the private run, `run`; `plain` is the run without noise.
    """
    figures = statement.figures
    realised = figures.get("in_all", figures)["realised"]
    cost = f"{rounded_up(realised['epsilon'])} at delta {figures['delta']:g}"
    costs = {"public": "0: no client's text was used", "private": cost, "without noise": "none: it protects nobody"}
    says = {
        "public": "public text alone: the start",
        "private": "trained on clients, privately",
        "without noise": "the same without noise",
    }
    rows = tuple(
        (says[name], f"{of['top1_accuracy']:.2%}", f"{of['top3_accuracy']:.2%}", costs[name])
        for name, of in tested.items()
    )
    private = tested["private"]
    return [
        Heading("What the model can do, and what that cost"),
        Table(rows, ("model", "top-1", "top-3", "epsilon")),
        Paragraph(
            f"{kept:.1%} of the accuracy without noise is kept: measured by training once more with other cohorts and "
            f"no noise. All three on {private['clients']:.0f} modules that none was trained on "
            f"({private['oov_rate']:.0%} of their words are not in the public vocabulary, and do not count)."
        ),
        Paragraph(WHY_SO_LITTLE),
        Heading("What this epsilon means"),
        Paragraph(meaning(realised["epsilon"], figures["delta"], clients)),
        Labels(tuple(label for label in statement.labels if label.name in SURPRISING)),
        Heading("What it suggests (words of the public vocabulary only)"),
        suggestion_table(suggested),
        Heading("Where it is, and what to try next"),
        *where,
        *(Paragraph(f"{what}:\n   {command.format(run=run, plain=plain)}") for what, command in NEXT),
    ]


def meaning(epsilon: float, delta: float, clients: int) -> str:
    """Two sentences on an epsilon that was promised to each of so many modules."""
    odds = f"e^{rounded_up(epsilon)}"
    if epsilon <= SMALL:
        odds += f" = {rounded_up(math.exp(epsilon), 3)}"
    return (
        f"Somebody who knows all other {clients - 1:,} modules and sees every model of the training learns little of "
        f"one module: the odds of any guess about its docstrings change at most {odds} times, except with a "
        f"probability of at most {delta:g}. That holds whatever else is known, since what a module adds to a round is "
        "bounded and noise that drowns it was drawn before any model was released."
    )
