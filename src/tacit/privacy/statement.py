"""The privacy statement that people read and publish: every item of arXiv:2305.18465, Appendix A, in its
order.

Nothing is decided here: facts come in, sentences and a record go out, and whatever weakens the guarantee
stands on the first lines, in capitals. Figures in sentences are rounded up, never down; the record has them
in full.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context

from tacit.privacy.facts import ADJACENCIES, OPERATING_SYSTEM, UNITS, Extrapolation, StatementFacts
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Blt, Independent, Record, Strategy, Toeplitz, Tree

__all__ = ["Extrapolation", "Item", "Label", "Statement", "StatementFacts", "account_command", "statement"]


@dataclass(frozen=True)
class Label:
    """A warning that stands before everything else."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Item:
    """One numbered item of the statement."""

    number: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The finished statement."""

    labels: tuple[Label, ...]
    items: tuple[Item, ...]
    figures: Record

    def markdown(self) -> str:
        """The labels on the first lines, then the items under their headings."""
        lines = [f"**{label.name}: {label.meaning}**\n" for label in self.labels]
        lines.append("# Privacy statement\n")
        for item in self.items:
            if item.number in SECTIONS:
                lines.append(f"## {SECTIONS[item.number]}\n")
            depth = "###" if item.number[1:] else "##"
            lines.append(f"{depth} {item.number}. {item.title}\n" if item.number else f"## {item.title}\n")
            lines.append(item.text + "\n")
        return "\n".join(lines)

    def to_record(self) -> Record:
        """Plain values for JSON; infinite figures as "inf"."""
        return {
            "labels": [{"name": label.name, "meaning": label.meaning} for label in self.labels],
            "items": [{"number": item.number, "title": item.title, "text": item.text} for item in self.items],
            **self.figures,
        }


# arXiv:2303.00654, section 5.2, has epsilon <= 10 as its last tier with a meaningful guarantee; twice that is no longer
# a matter of taste.
PROTECTIVE_EPSILON = 20

SECTIONS = {"2a": "2. Instantiating the DP definition", "3a": "3. Privacy accounting details"}


def statement(facts: StatementFacts) -> Statement:
    """The statement of one run, with every item and every label that the facts call for."""
    items = [
        Item("1", "DP setting", _setting(facts)),
        Item("2a", "Data accesses covered", _accesses(facts)),
        Item("2b", "Final mechanism output", _output(facts)),
        Item("2c", "Unit of privacy", UNITS[facts.unit]),
        Item("2d", "Adjacency", ADJACENCIES[facts.adjacency]),
        Item("3a", "Type of accounting", _accounting(facts)),
        Item("3b", "Accounting assumptions", _assumptions(facts)),
        Item("3c", "Formal DP statement", _formal(facts)),
        Item("3d", "Transparency and verifiability", _verifiability(facts)),
    ]
    figures: Record = {
        "delta": facts.delta,
        "unit": facts.unit,
        "adjacency": facts.adjacency,
        "key_source": facts.key_source,
        "private": facts.planned.private,
        "planned": _figures(facts.planned, facts.delta),
        "realised": _figures(facts.realised, facts.delta),
    }
    if facts.extrapolation:
        items.append(Item("", "EXTRAPOLATED: not a guarantee of this run", _extrapolated(facts)))
        figures["extrapolated"] = {
            "report_goal": facts.extrapolation.report_goal,
            "planned": _figures(_larger(facts, facts.planned), facts.delta),
            "realised": _figures(_larger(facts, facts.realised), facts.delta),
        }
    return Statement(labels=_labels(facts), items=tuple(items), figures=figures)


def account_command(guarantee: Guarantee, delta: float) -> str | None:
    """The `tacit account` command line that re-derives a guarantee's figures; None where there is none."""
    match guarantee.strategy:
        case Independent():
            mechanism = "gaussian"
        case Tree(restarts=restarts):
            mechanism = "tree" + (f" --restarts {','.join(map(str, restarts))}" if restarts else "")
        case Blt(theta=theta, omega=omega):
            mechanism = f"blt --theta {','.join(map(repr, theta))} --omega {','.join(map(repr, omega))}"
        case _:
            return None
    served = guarantee.participation
    return (
        f"tacit account {mechanism} --rounds {served.rounds} --min-separation {served.min_separation} "
        f"--max-participations {served.max_participations} --noise-multiplier {guarantee.noise_multiplier!r} "
        f"--delta {delta!r}"
    )


def _labels(facts: StatementFacts) -> tuple[Label, ...]:
    labels = []
    if not facts.planned.private:
        labels.append(Label("NON-PRIVATE", "no noise was added, so this run promises nothing to anybody."))
    if facts.vocabulary_kind == "private":
        meaning = "the list of words was counted in clients' own text; there is no guarantee for the vocabulary."
        labels.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    if facts.key_source != OPERATING_SYSTEM:
        meaning = f"randomness came from {facts.key_source}; whoever knows the seed can take the noise away."
        labels.append(Label("FIXED SEED", meaning))
    if facts.realised.zcdp > facts.planned.zcdp * (1 + 1e-9):
        meaning = "clients came more often or sooner than planned; only the realised figures hold."
        labels.append(Label("WEAKER THAN PLANNED", meaning))
    epsilon = facts.realised.epsilon(facts.delta)
    if facts.realised.private and epsilon > PROTECTIVE_EPSILON:
        figure = _rounded_up(epsilon)
        meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; this run's is {figure}."
        labels.append(Label("VERY LARGE EPSILON", meaning))
    if facts.extrapolation:
        goal = facts.extrapolation.report_goal
        meaning = f"the last section speaks of {goal:,} reports a round, a run that was not made."
        labels.append(Label("EXTRAPOLATED", meaning))
    return tuple(labels)


def _setting(facts: StatementFacts) -> str:
    kind = (
        "A central guarantee: the server is trusted to run the mechanism as described."
        if facts.planned.private
        else "None: no noise was added. A central guarantee would be the setting."
    )
    return f"{kind} Aggregation of clients' updates: {facts.aggregation}."


def _accesses(facts: StatementFacts) -> str:
    promise = "The guarantee applies to" if facts.planned.private else "There is no guarantee for"
    lines = [
        f"{promise} the use of clients' text in a single training run over a population of "
        f"{facts.population:,} "
        "clients, for every client that keeps the participation limits; one that does not keep them does "
        "not weaken "
        "the guarantee of the others.",
        "",
        f"Vocabulary ({facts.vocabulary_kind}): {facts.vocabulary_description}.",
        "Public data: " + ("; ".join(facts.public_data) or "none") + ".",
        "Looked at without any guarantee: " + ("; ".join(facts.looked_at) or "nothing else") + ".",
    ]
    if facts.vocabulary_kind == "private":
        lines.append("The vocabulary itself was taken from private text and has no guarantee.")
    return "\n\n".join(line for line in lines if line)


def _output(facts: StatementFacts) -> str:
    sums = "privatised sums" if facts.planned.private else "sums, un-noised,"
    return (
        f"Released: {facts.released}. Technically the mechanism's output is the full sequence of {sums} of "
        "all "
        f"{facts.realised.participation.rounds:,} rounds, so what is said here holds for every intermediate "
        "model too, "
        "those sent to devices included."
    )


def _accounting(facts: StatementFacts) -> str:
    if not facts.planned.private:
        return "None; there is nothing to account."
    return (
        "zCDP of the whole sequence of rounds as one Gaussian mechanism, "
        f"{_describe(facts.planned.strategy)}, by its exact "
        "worst-case sensitivity over all participation patterns; converted to (epsilon, delta) exactly by "
        "the Gaussian "
        "mechanism's own privacy curve (arXiv:1805.06530, Theorem 8), which is what PLD accounting "
        "approximates."
    )


def _assumptions(facts: StatementFacts) -> str:
    guarantee = facts.planned
    noise = (
        f"Gaussian seeds of standard deviation {guarantee.noise_multiplier:.6g} x "
        f"{guarantee.clip_norm:.6g}, with keys from "
        f"{facts.key_source}; the analysis is of real numbers, and the rounding of floating-point noise is "
        "not covered."
        if guarantee.private
        else f"No noise; randomness of the simulation came from {facts.key_source}."
    )
    return "\n".join(
        (
            f"- Planned: {_limits(guarantee.participation)}.",
            f"- Realised, measured from the log of the run: {_limits(facts.realised.participation)}. It "
            "counts under the "
            "assumption that when a client comes does not depend on what anyone typed.",
            f"- Participation is enforced by the cohort rule: {facts.cohort_rule}.",
            f"- A client's update of a round has norm at most {guarantee.clip_norm:.6g} (clipped as one "
            "vector) and weight "
            f"one; the mean divides by the constant report goal {facts.report_goal:,}, whatever number came.",
            f"- {noise}",
        )
    )


def _formal(facts: StatementFacts) -> str:
    if not facts.planned.private:
        return f"None: zCDP is infinite, and epsilon is infinite at every delta (delta = {facts.delta:g})."
    text = (
        f"As planned, the run is {_promise(facts.planned, facts.delta)}. "
        f"As realised, it is {_promise(facts.realised, facts.delta)}. Figures are rounded up."
    )
    if facts.vocabulary_kind == "private":
        text += " Neither covers the vocabulary."
    return text


def _verifiability(facts: StatementFacts) -> str:
    commands = [facts.verify_command]
    for guarantee in dict.fromkeys((facts.planned, facts.realised)):
        commands.append(account_command(guarantee, facts.delta) or "")
    listing = "\n".join(f"    {command}" for command in commands if command)
    return f"Every figure is re-derived from the ledger or from the parameters alone by\n\n{listing}"


def _extrapolated(facts: StatementFacts) -> str:
    larger = facts.extrapolation
    if larger is None:
        return ""
    return (
        f"This run had {facts.report_goal:,} reports a round and noise multiplier "
        f"{facts.planned.noise_multiplier:.6g}. The same run with {larger.report_goal:,} reports a round "
        "and noise "
        f"multiplier {larger.noise_multiplier:.6g} has the same noise on the mean; if its model were as "
        "good and its "
        f"participation the same, it would be {_promise(_larger(facts, facts.planned), facts.delta)} as "
        "planned and "
        f"{_promise(_larger(facts, facts.realised), facts.delta)} as realised. That run was not made."
    )


def _larger(facts: StatementFacts, guarantee: Guarantee) -> Guarantee:
    """`guarantee` with the extrapolated noise multiplier."""
    noise = facts.extrapolation.noise_multiplier if facts.extrapolation else guarantee.noise_multiplier
    return Guarantee(
        participation=guarantee.participation,
        strategy=guarantee.strategy,
        clip_norm=guarantee.clip_norm,
        noise_multiplier=noise,
    )


def _figures(guarantee: Guarantee, delta: float) -> Record:
    served = guarantee.participation
    figures = {
        "sensitivity_squared": guarantee.sensitivity_squared,
        "noise_multiplier": guarantee.noise_multiplier,
        "clip_norm": guarantee.clip_norm,
        "zcdp": guarantee.zcdp,
        "mu": guarantee.mu,
        "epsilon": guarantee.epsilon(delta),
    }
    return {
        "strategy": guarantee.strategy.to_record() if guarantee.strategy else None,
        "rounds": served.rounds,
        "min_separation": served.min_separation,
        "rounds_between": served.rounds_between,
        "max_participations": served.max_participations,
        **{name: "inf" if math.isinf(value) else value for name, value in figures.items()},
        "delta": delta,
    }


def _describe(strategy: Strategy | None) -> str:
    match strategy:
        case Tree(restarts=restarts, variance_reduced=reduced):
            begun = f", restarted at rounds {', '.join(map(str, restarts))}" if restarts else ", without restarts"
            return "tree aggregation" + begun + (", variance-reduced estimate" if reduced else "")
        case Blt(theta=theta, omega=omega):
            return f"a BLT with theta {theta} and omega {omega}"
        case Toeplitz(coefficients=coefficients):
            return f"a Toeplitz strategy of {len(coefficients)} coefficients"
        case _:
            return "independent noise every round"


def _limits(participation: Participation) -> str:
    return (
        f"{participation.rounds:,} rounds, each client in at most {participation.max_participations:,} of "
        "them (MaxP), two "
        f"of them at least {participation.min_separation:,} rounds apart (MinS = "
        f"{participation.rounds_between:,} rounds "
        "in between)"
    )


def _promise(guarantee: Guarantee, delta: float) -> str:
    return (
        f"rho-zCDP with rho = {_rounded_up(guarantee.zcdp)}, hence (epsilon, delta)-DP with epsilon = "
        f"{_rounded_up(guarantee.epsilon(delta))} at delta = {delta:g}"
    )


def _rounded_up(figure: float) -> str:
    """Six significant digits, never below the figure (but for the last bits of its own floating-point "
    "error)."""
    kept = Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(figure * (1 - 1e-12))
    return f"{float(kept):.6g}"
