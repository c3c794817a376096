"""What of a training run may be published: the page of `report/`, which says only what follows from released sums.

Allowed here are settings, the accounting (the plan, and what follows from who took part when), and what is computed
from noised sums, such as clip norms that follow the updates, or what the released model suggests after sentences that
are no client's. A loss, a share of clipped updates, a count of dropped
clients, an accuracy of held-out clients, a time or a digest of clients' text is none of that: each is an exact function
of text, and stands in `simulation/`, which `train.py` writes. `tests/support/reports/publishable.py` lists
every field.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.plurals import quantity
from tacit.privacy.rounding import rounded_up
from tacit.records import to_plain
from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, StatementOf, Table, Tiles
from tacit.reports.figure import BLUE, ORANGE, Axis, Figure, Line, Mark, Panel, Points, Steps
from tacit.reports.judgement import cost
from tacit.reports.page import Page
from tacit.reports.promise_terms import promise_terms
from tacit.reports.suggestions import suggestion_table
from tacit.reports.summary import RunSummary
from tacit.runs.metadata import SecureSumUsed, TrainingMetadata

KIND = "report of a training run"
FIGURES = {
    "rounds": "rounds",
    "rounds_between": "MinS: rounds between two participations of a client, at least",
    "min_separation": "min separation (MinS + 1)",
    "max_participations": "MaxP: participations of a client, at most",
    "sensitivity_squared": "squared sensitivity, in squared clip norms",
    "noise_multiplier": "noise multiplier",
    "clip_norm": "clip norm (planned: the first; realised: the last)",
    "zcdp": "zCDP",
    "epsilon": "epsilon",
    "delta": "delta",
}
# Of the metadata: what was asked, by whom and with what. Its other fields stay in the run folder, the cache's digest
# among them, with which a guess at one client's text could be checked by whoever knows the rest.
ASKED = (
    "versions",
    "created",
    "key_source",
    "asked",
    "recipe",
    "vocabulary",
    "population",
    "report_goal",
    "participation",
    "guarantee",
    "also_released",
    "delta",
    "parameters",
    "first_model",
    "extrapolate_to",
    "simulated",
    "evaluation",
    "hooks",
    "why_mechanism",
    "secure",
    "foreseen",
)
DATA_ASKED = ("cache", "source", "vocabulary_sha256", "vocabulary_size")
SMOOTH_FROM = 40  # rounds, from twice so many on a curve is smoothed
NOTHING_STATED = (Heading("Privacy statement"), Paragraph("Nothing was released, so there is nothing to state."))
PUBLISHABLE = "This page may be published: it says nothing of clients' text but what follows from released sums."
BARE = (
    "This page says what follows from released sums, and they had no noise: to publish it promises nothing to anybody."
)
ELSEWHERE = (
    " How well the model predicts is not among that. Accuracies of validation and test clients, losses, dropped "
    "clients and times are exact; they stand in the run's folder `simulation`, which is not to be published. "
    "`tacit evaluate` releases accuracies with a guarantee of their own."
)


def page(summary: RunSummary) -> Page:
    """What may be published of a run, whatever state it is in."""
    shown = figures(summary)
    return Page(
        kind=f"{KIND}, released",
        title=summary.name,
        when=when(summary),
        blocks=(
            *([Labels(summary.labels)] if summary.labels else []),
            Paragraph(cost(summary)),
            *noise_forecast(summary),
            Tiles(tuple(tiles(summary).items())),
            *map(FigureOf, shown),
            Paragraph((PUBLISHABLE if summary.private else BARE) + ELSEWHERE),
            *(suggested(summary) if may_suggest(summary) else ()),
            *_released(summary),
            *promised(summary),
            *settings_blocks(summary),
        ),
        record=record(summary, shown),
        headline=headline(summary),
    )


def when(summary: RunSummary) -> str:
    """Under the title."""
    return f"begun {summary.created}{', finished' if summary.finished else ''}"


def headline(summary: RunSummary) -> dict[str, Any]:
    """What one wants to know first, as plain values; realised figures are None while nothing is released."""
    return {
        "run": summary.path,
        "name": summary.name,
        "finished": summary.finished,
        "private": summary.private,
        "rounds": summary.released,
        "rounds_planned": summary.planned_rounds,
        "labels": [label.name for label in summary.labels],
        "planned": summary.planned,
        "realised": summary.realised,
        "extrapolated": summary.statement.figures.get("extrapolated") if summary.statement else None,
    }


def tiles(summary: RunSummary) -> dict[str, str]:
    """The headline for people: a name and a figure each. Privacy figures are rounded up."""
    shown = {"rounds": f"{summary.released:,} of {summary.planned_rounds:,}"}
    if summary.holds is not None:
        which, prices = summary.holds
        shown[f"zCDP, {which}"] = rounded_up(prices["zcdp"])
        shown[f"epsilon at delta {summary.delta:g}, {which}"] = rounded_up(prices["epsilon"])
    return shown


def record(summary: RunSummary, shown: tuple[Figure, ...]) -> dict[str, Any]:
    """The page as one JSON object: the headline, and everything that it shows."""
    rounds, metadata = summary.rounds, to_plain(summary.metadata)
    return {
        **headline(summary),
        "metadata": {
            **{name: metadata[name] for name in ASKED},
            "data": {name: metadata["data"][name] for name in DATA_ASKED},
        },
        "settings": dict(summary.settings),
        "spent": [asdict(each) for each in summary.spent],
        "per_round": {  # index 0 is the first round
            "clip_norm": rounds.clip_norm.tolist(),
            **({} if rounds.clip_estimate is None else {"clip_estimate": rounds.clip_estimate.tolist()}),
            **({} if rounds.private_loss is None else {"private_loss": rounds.private_loss.tolist()}),
        },
        "warnings": [{"name": label.name, "meaning": label.meaning} for label in summary.labels],
        "opening": cost(summary),
        **({"suggestions": suggestions_record(summary)} if may_suggest(summary) else {}),
        "statement": summary.statement.to_record() if summary.statement else None,
        "figures": [f"{figure.name}.png" for figure in shown],
    }


# -- sections ----------------------------------------------------------------------------------------------------------


def promised(summary: RunSummary) -> list[Block]:
    """Planned beside realised, then the statement."""
    planned, realised = summary.planned, summary.realised or {}
    rows = [
        (shown, figure_text(name, planned.get(name)), figure_text(name, realised.get(name)))
        for name, shown in FIGURES.items()
    ]
    for at, share in enumerate(planned.get("sequences", ())):  # what the zCDP of everything together is made of
        happened = realised["sequences"][at] if realised else {}
        for name in ("noise_multiplier", "zcdp"):
            title = f"{FIGURES[name]}, {share['what']} alone"
            rows.append((title, figure_text(name, share[name]), figure_text(name, happened.get(name))))
    stated: list[Block] = [StatementOf(summary.statement)] if summary.statement else [*NOTHING_STATED]
    return [
        Heading("Planned and realised"),
        Table(tuple(rows), ("", "planned", "realised")),
        *promise_terms(summary),
        *stated,
    ]


def noise_forecast(summary: RunSummary) -> list[Block]:
    """What was expected of the run before its first round, by its plan alone."""
    said = summary.metadata.foreseen
    return [] if said is None else [Paragraph(f"Forecast before the first round: {said.removesuffix('.')}.", soft=True)]


def may_suggest(summary: RunSummary) -> bool:
    """Whether what the model suggests may be published: it was released with noise, and its words are no client's.

    It is post-processing of the model then, and asked with sentences that are the same for every run.
    """
    return summary.private and summary.metadata.vocabulary["kind"] != "private" and bool(summary.suggestions)


def suggested(summary: RunSummary) -> list[Block]:
    """What the released model goes on with, after sentences that are no client's."""
    if not summary.suggestions:
        return []
    how = (
        "The likeliest next words after beginnings of sentences that are the same for every run; words of the "
        f'vocabulary alone. More: `tacit suggest {summary.path} "..."`.'
    )
    return [
        Heading("What it suggests"),
        suggestion_table(tuple(summary.suggestions.items())),
        Paragraph(how, soft=True),
    ]


def suggestions_record(summary: RunSummary) -> list[dict[str, Any]]:
    """The same as plain values, in the shape of `tacit suggest --json`."""
    return [
        {"prompt": prompt, "words": [{"word": word, "probability": share} for word, share in words]}
        for prompt, words in summary.suggestions.items()
    ]


def settings_blocks(summary: RunSummary, *rows: tuple[str, str]) -> list[Block]:
    """The settings, and where model, words and numbers come from; `rows` besides."""
    return [
        Heading("What was asked"),
        Table(tuple((key, setting_text(value)) for key, value in summary.settings.items()), ("setting", "value")),
        Heading("Where it comes from"),
        Table((*_origin(summary), *rows)),
    ]


def _released(summary: RunSummary) -> list[Block]:
    """Of a run that releases more of its rounds than their models."""
    rows = released_rows(summary)
    return [Heading("The rounds"), Table(rows)] if rows else []


def released_rows(summary: RunSummary) -> tuple[tuple[str, str], ...]:
    """What noised sums besides the updates say: clip norms and training losses; none where there are no such sums."""
    rounds, rows = summary.rounds, []
    if rounds.clip_estimate is not None:
        in_force = f"{rounds.clip_norm[0]:.4g} → {rounds.clip_norm[-1]:.4g}"
        rows.append(("clip norm in force, first round → last", in_force))
        rows.append(("estimate of the clip norm, last round", f"{rounds.clip_estimate[-1]:.4g}"))
    if rounds.private_loss is not None:
        some = max(1, len(rounds.private_loss) // 10)
        first, last = (float(part.mean()) for part in (rounds.private_loss[:some], rounds.private_loss[-some:]))
        which = "first tenth of the rounds → last" if some > 1 else "first round → last"
        rows.append((f"training loss as released, with noise, {which}", f"{first:.3f} → {last:.3f}"))
    return tuple(rows)


def figure_text(name: str, value: Any) -> str:
    """One of FIGURES for people; None is a dash, privacy figures are rounded up."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return rounded_up(value, 6) if name in {"zcdp", "epsilon"} else f"{value:.6g}"


def setting_text(value: Any) -> str:
    """A value of settings.toml as people read it."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _origin(summary: RunSummary) -> tuple[tuple[str, str], ...]:
    training = summary.metadata
    data, versions = training.data, training.versions
    chosen = () if training.why_mechanism is None else (("mechanism", training.why_mechanism),)
    return (
        ("run folder", summary.path),
        ("begun", summary.created),
        *_whose_text(training),
        ("vocabulary", f"{data.vocabulary_size:,} words ({training.vocabulary['kind']})"),
        ("vocabulary from", training.vocabulary["description"]),
        ("model parameters", f"{training.parameters:,}"),
        *chosen,
        *_sums(training.secure, simulated=training.deployment is None),
        ("keys from", training.key_source),
        ("vocabulary digest", data.vocabulary_sha256),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    )


def _whose_text(training: TrainingMetadata) -> tuple[tuple[str, str], ...]:
    """Whose text it was trained on; of real devices the operator knows about how many there are."""
    deployed = training.deployment
    if deployed is None:
        return (("clients' text", training.data.source), ("training clients", f"{training.population:,}"))
    return (
        ("devices", f"about {deployed.devices:,} that check in as {deployed.population!r}"),
        ("text of the server's own clients", training.data.source),
    )


def _sums(secure: SecureSumUsed | None, *, simulated: bool) -> tuple[tuple[str, str], ...]:
    """How updates were encoded for sums that nobody can open; the statement says the rest."""
    if secure is None:
        return ()
    protocol = (
        "the protocol that hides the summands was not run"
        if secure.protocol is None
        else f"{secure.protocol_clients:,} clients of each round played the protocol {secure.protocol!r}"
        + (f", each vanishing with a chance of {secure.protocol_dropout:g}" if secure.protocol_dropout else "")
    )
    said = (
        f"of integers, {secure.dimension:,} coordinates of {secure.bits} bits; encoding lengthens an update by a "
        f"factor of at most {rounded_up(secure.inflation, 6)}; no sum of fewer than {secure.threshold:,} reports is "
        f"decoded, and {protocol}"
    )
    if not secure.decryptors:
        return (("sums of updates", said),)
    honest, played = secure.honest_decryptors, ", simulated" if simulated else ""
    each = (
        "each adds the noise that is accounted"
        if honest == 1
        else f"any {honest:,} of them together add the noise that is accounted"
    )
    noise = (
        f"{secure.decryptors:,} decryptors{played}; {each}, and the model has that of all, "
        f"{(secure.decryptors / honest) ** 0.5:.3g} times the standard deviation"
    )
    return (("sums of updates", said), ("noise added by", noise))


# -- figures -----------------------------------------------------------------------------------------------------------


def figures(summary: RunSummary) -> tuple[Figure, ...]:
    """The figures that a run has data for; none of an empty run."""
    shown: list[Figure] = []
    if summary.private and summary.released:
        shown.append(_spent(summary))
    if summary.rounds.clip_estimate is not None:
        shown.append(clip_norm(summary, summary.rounds.clip_estimate))
    if summary.rounds.private_loss is not None:
        shown.append(private_loss(summary.rounds.private_loss))
    return tuple(shown)


def _spent(summary: RunSummary) -> Figure:
    at = [each.rounds for each in summary.spent]
    rounds = Axis("rounds", whole=True)
    zcdp = Points(
        x=at, y=[each.zcdp for each in summary.spent], hue=BLUE, size=4
    )  # no line: between them it is unknown
    epsilon = Points(x=at, y=[each.epsilon for each in summary.spent], hue=ORANGE, size=4)
    return Figure(
        name="privacy_spent",
        title="Privacy spent over rounds",
        alt=f"The zCDP and the epsilon spent after so many of {quantity(summary.released, 'round')}, as realised.",
        same_x=True,
        height=2,
        panels=(
            Panel(marks=(zcdp,), x=rounds, y=Axis("zCDP", low=0)),
            Panel(marks=(epsilon,), x=rounds, y=Axis(f"epsilon, delta {summary.delta:g}", low=0)),
        ),
    )


def private_loss(losses: NDArray[np.float64]) -> Figure:
    """losses: (rounds,) as they were released."""
    return Figure(
        name="training_loss",
        title="Training loss as released",
        alt="Mean training loss of each round's cohort, with the noise under which it was released.",
        panels=(Panel(marks=per_round(losses, BLUE), x=Axis("round", whole=True), y=Axis("loss with noise, nats")),),
    )


def per_round(values: NDArray[np.float64], hue: int) -> tuple[Mark, ...]:
    """Each round lightly, and the mean of its neighbours where there are many rounds."""
    at = np.arange(1, values.size + 1)
    window = max(values.size // SMOOTH_FROM, 1)
    each = Line(x=at, y=values, hue=hue, width=1, faint=window > 1)
    if window == 1:
        return (each,)
    smooth = np.convolve(values, np.ones(window) / window, mode="valid")
    return each, Line(x=at[window // 2 : window // 2 + smooth.size], y=smooth, hue=hue, width=1.8, dots=False)


def clip_norm(summary: RunSummary, estimate: NDArray[np.float64]) -> Figure:
    """estimate: (rounds,) after each round."""
    at = range(1, len(estimate) + 1)
    in_force = summary.rounds.clip_norm
    return Figure(
        name="clip_norm",
        title="Clip norm that follows the updates",
        alt="The clip norm in force in each round, and its estimate after the round.",
        panels=(
            Panel(
                marks=(
                    Steps(x=at, y=in_force, label="in force", hue=BLUE),
                    Line(x=at, y=estimate, label="estimate", hue=ORANGE, width=1, dots=False),
                ),
                x=Axis("round", whole=True),
                y=Axis("clip norm", log=True),
            ),
        ),
    )
