"""The report of a tuning: what its trials say, what is chosen, and what that costs in privacy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tacit.planning.tuning import METRIC, Choice, Measured, Setting, Trial
from tacit.plurals import quantity
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph, Table
from tacit.reports.figure import HUES, INK, RED, Axis, ErrorBars, Figure, Line, Mark, Panel, Points, Rule
from tacit.reports.page import Page
from tacit.reports.release import number_from
from tacit.statements.markdown import one_line

HEAD = ("trial", "server rate", "quantile", "accuracy", "cross-entropy", "clip estimate", "zCDP", "status")
ROUND_ABOUT = 1.5  # factor around the estimates that are to be read
TOLD = {True: "told apart", False: "not told apart", None: "not known"}
SHOWN: dict[Measured, str] = {"accuracy": "top-1 accuracy", "cross-entropy": "cross-entropy, nats"}


def page(record: Mapping[str, Any]) -> Page:
    """What a tuning found; nothing of it may be published.

    record: `tuning` is that of tuning.json; `clip_estimates` are those after each round of its trials, in their order;
    `failures` say why a trial may not be chosen, or None.
    """
    tuning = record["tuning"]
    trials, choice = _trials(record), _choice(tuning["chosen"])
    return Page(
        kind="report of a tuning",
        title="What the trials say",
        blocks=(
            Paragraph(answer(tuning)),
            Paragraph(_tried(tuning)),
            FigureOf(scores(trials, tuning)),
            FigureOf(estimates(trials, choice)),
            *_settings(tuning),
            Heading("The trials"),
            Table(tuple(map(_row, tuning["trials"])), HEAD),
            *(
                Paragraph(one_line(f"{each['trial']} failed: {each['reason']}"))
                for each in tuning["trials"]
                if each["reason"]
            ),
            *_chosen(tuning),
            Heading("What the tuning cost in privacy"),
            Paragraph(one_line(tuning["privacy_of_tuning"]["words"])),
        ),
        record=tuning,
    )


def _trials(record: Mapping[str, Any]) -> list[Trial]:
    """The trials as a choice sees them."""
    tuning = record["tuning"]
    measure = METRIC[tuning["chosen_by"]]
    return [
        Trial(
            setting=Setting(server_learning_rate=row["server_learning_rate"], quantile=row["quantile"]),
            score=number_from(row[measure]),
            clip_estimates=tuple(map(number_from, estimates)),
            failure=failure,
        )
        for row, estimates, failure in zip(tuning["trials"], record["clip_estimates"], record["failures"], strict=True)
    ]


def _choice(chosen: Mapping[str, Any] | None) -> Choice | None:
    if chosen is None:
        return None
    return Choice(
        setting=Setting(server_learning_rate=chosen["server_learning_rate"], quantile=chosen["quantile"]),
        score=chosen["score"],
        trials=chosen["trials"],
        clip_norm=chosen["clip_norm"],
        drift=chosen["clip_norm_drift"],
    )


def answer(record: Mapping[str, Any]) -> str:
    """What was chosen, and whether that is more than chance."""
    chosen, by = record["chosen"], record["chosen_by"]
    if chosen is None:
        return "Nothing is chosen: every trial failed."
    (ours,) = [each for each in record["settings"] if each["chosen"]]
    others = [each for each in record["settings"] if not each["chosen"]]
    said = (
        f"Chosen: server learning rate {chosen['server_learning_rate']:g} and quantile {chosen['quantile']:g}, with "
        f"{SHOWN[by]} {_score(by, ours['score'])}{_spread(by, ours['interval'])} on validation clients."
    )
    alike = [each for each in others if each["told_apart"] is False]
    if not others:
        return f"{said} No other setting could be chosen, so it is the best of one."
    if any(each["told_apart"] is None for each in others):
        return f"{said} Whether that is more than chance is not known: clients were not counted one by one."
    if not alike:
        return f"{said} It is told apart from every other setting."
    return (
        f"{said} {_these(alike, len(others))} not told apart from it: among these the choice is chance, and any may "
        "be as good."
    )


def _these(alike: Sequence[Mapping[str, Any]], others: int) -> str:
    if len(alike) == others:
        return "The only other setting is" if others == 1 else f"All {others} other settings are"
    return f"Of {others} other settings {len(alike)} {'is' if len(alike) == 1 else 'are'}"


def _score(by: Measured, value: float) -> str:
    return f"{value:.2%}" if by == "accuracy" else _nats(value)


def _spread(by: Measured, ends: Sequence[float] | None) -> str:
    return "" if ends is None else f" ({_score(by, ends[0])} to {_score(by, ends[-1])})"


def _settings(record: Mapping[str, Any]) -> list[Block]:
    """Each setting beside the chosen one, and what the intervals cover."""
    by = record["chosen_by"]
    rows = tuple(
        (
            f"{each['server_learning_rate']:g}",
            f"{each['quantile']:g}",
            f"{each['trials']:,}",
            _score(by, each["score"]) + _spread(by, each["interval"]),
            _difference(by, each["against_chosen"]),
            "chosen" if each["chosen"] else TOLD[each["told_apart"]],
        )
        for each in record["settings"]
    )
    if not rows:
        return []
    against = f"less the chosen one's, {'points' if by == 'accuracy' else 'nats'}"
    head = ("server rate", "quantile", "trials", SHOWN[by], against, "so it is")
    return [Heading("The settings"), Table(rows, head), *_covered(record["settings"])]


def _covered(settings: Sequence[Mapping[str, Any]]) -> list[Block]:
    known = [each for each in settings if each["interval"] is not None]
    if not known:
        return []
    over = f"Intervals are 95%, over {quantity(known[0]['clients'], 'validation client')}"
    if all(each["covers"] == "seeds and clients" for each in known):
        said = f"{over} and the trials of each setting."
    else:
        said = f"{over} alone: another seed may say otherwise, which three trials of each setting show (--seeds 3)."
    return [Paragraph(f"{said} None is adjusted for how many settings were compared.", soft=True)]


def _difference(by: Measured, ends: Sequence[float] | None) -> str:
    if ends is None:
        return ""
    low, value, high = (100 * each if by == "accuracy" else each for each in ends)
    form = "+.2f" if by == "accuracy" else "+.3f"
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def _tried(record: Mapping[str, Any]) -> str:
    noise = record["trial_noise_multiplier"]
    trials = (
        f"{quantity(len(record['trials']), 'trial')} with {quantity(record['trial_report_goal'], 'report')} a round, "
    )
    return trials + (f"noise multiplier {noise:g}." if noise else "no noise.")


def _row(trial: Mapping[str, Any]) -> tuple[str, ...]:
    accuracy, nats, estimate = trial["top1_accuracy"], trial["cross_entropy"], trial["clip_estimate"]
    return (
        trial["trial"],
        f"{trial['server_learning_rate']:g}",
        f"{trial['quantile']:g}",
        "–" if accuracy is None else f"{accuracy:.2%}",
        "–" if nats is None else _nats(number_from(nats)),
        "–" if estimate is None else f"{number_from(estimate):.3g}",
        rounded_up(number_from(trial["zcdp"])),
        trial["status"],
    )


def _nats(value: float) -> str:
    """Three decimals; of a model that was destroyed, its size only."""
    return f"{value:.3f}" if value < 1000 else f"{value:.0e}"


def _chosen(record: Mapping[str, Any]) -> list[Block]:
    """The chosen setting, and production with it."""
    chosen, production = record["chosen"], record["production"]
    if chosen is None:
        return []
    said = [
        f"Server learning rate {chosen['server_learning_rate']:g}, clip norm {chosen['clip_norm']:g} (the median of "
        f"its estimates over the last quarter of the rounds, quantile {chosen['quantile']:g})."
    ]
    if not chosen["clip_norm_settled"]:
        said.append(
            f"Its estimates still moved by a factor of {chosen['clip_norm_drift']:.3g} in those rounds: try more "
            "rounds before relying on it."
        )
    said += [
        f"It is {edge} that was tried: a better one may lie beyond; add some to the list."
        for edge in chosen["at_the_edge"]
    ]
    blocks: list[Block] = [Heading("Chosen"), *map(Paragraph, said)]
    if production is not None:
        planned = production["planned"]
        noise = (
            f"noise multiplier {production['noise_multiplier']:.4g}, {production['mechanism']}; planned zCDP "
            f"{rounded_up(planned['zcdp'])}, epsilon {rounded_up(planned['epsilon'])} at delta {planned['delta']:g}"
            if production["mechanism"] != "none"
            else "NON-PRIVATE, no noise"
        )
        blocks.append(
            Paragraph(
                f"Production (`production.toml`): {quantity(production['report_goal'], 'report')} a round, {noise}."
            )
        )
    return blocks


# -- the figure --------------------------------------------------------------------------------------------------------


def figures(trials: Sequence[Trial], choice: Choice | None, record: Mapping[str, Any]) -> tuple[Figure, Figure]:
    """The scores, and the estimates of the clip norm. record: as tuning.json has it."""
    return scores(trials, record), estimates(trials, choice)


def both(trials: Sequence[Trial], choice: Choice | None, record: Mapping[str, Any]) -> Figure:
    """Both in one, for a file that stands alone."""
    above, below = figures(trials, choice, record)
    return replace(above, name="tuning", alt=f"{above.alt} {below.alt}", panels=(*above.panels, *below.panels))


def scores(trials: Sequence[Trial], record: Mapping[str, Any]) -> Figure:
    """The score of each setting with its interval, side by side; failed trials are crosses at the foot."""
    by, hues = record["chosen_by"], _hues(trials)
    places = {setting: float(at) for at, setting in enumerate(sorted({each.setting for each in trials}))}
    found = [(_setting_of(each), each) for each in record["settings"]]
    marks: list[Mark] = []
    for quantile, hue in hues.items():
        of = [(places[setting], each) for setting, each in found if setting.quantile == quantile]
        ends = [each["interval"] or (each["score"],) for _, each in of]
        marks.append(
            ErrorBars(
                x=[at for at, _ in of],
                y=[each["score"] for _, each in of],
                low=[each[0] for each in ends],
                high=[each[-1] for each in ends],
                mark="o",
                hue=hue,
                label=f"quantile {quantile:g}",
            )
        )
    marks += [
        Points(x=[places[setting]], y=[each["score"]], size=13, hollow=True, hue=hues[setting.quantile], label="chosen")
        for setting, each in found
        if each["chosen"]
    ]
    several = {setting for setting, each in found if each["trials"] > 1}
    tries = [each for each in trials if each.setting in several]
    if tries:
        at, values = [places[each.setting] for each in tries], [each.score for each in tries]
        marks.append(Points(x=at, y=values, mark="D", size=5, hollow=True, hue=INK, label="a trial"))
    failed = sorted({places[each.setting] for each in trials if each.failure is not None})
    if failed:
        marks.append(Points(x=failed, y=[0.0] * len(failed), mark="x", hue=RED, label="failed", at_foot=True))
    label, ticks = _named(places, quantiles=len(hues))
    return Figure(
        name="scores",
        title="How good each setting is",
        alt=f"The {by} of validation clients for each setting, with 95% intervals. {answer(record)}",
        panels=(
            Panel(
                marks=tuple(marks),
                x=Axis(label, ticks=ticks, margin=0.12),
                y=Axis(f"{SHOWN[by]}, validation", percent=by == "accuracy", margin=0.15),
            ),
        ),
        legend="below",
    )


def _setting_of(row: Mapping[str, Any]) -> Setting:
    return Setting(server_learning_rate=row["server_learning_rate"], quantile=row["quantile"])


def _hues(trials: Sequence[Trial]) -> dict[float, int]:
    return {quantile: at % HUES for at, quantile in enumerate(sorted({each.setting.quantile for each in trials}))}


def _named(places: Mapping[Setting, float], *, quantiles: int) -> tuple[str, tuple[tuple[float, str], ...]]:
    """What stands along the axis, and at each setting: its rate, and its quantile where there are several."""
    if quantiles == 1:
        return "server learning rate", tuple((at, f"{each.server_learning_rate:g}") for each, at in places.items())
    words = ((at, f"{each.server_learning_rate:g},\n{each.quantile:g}") for each, at in places.items())
    return "server learning rate, quantile", tuple(words)


def estimates(trials: Sequence[Trial], choice: Choice | None) -> Figure:
    """The chosen setting's trials in full colour, the others lightly; and what becomes of them."""
    chosen, hues = None if choice is None else choice.setting, _hues(trials)
    marks: list[Mark] = []
    for each in sorted(trials, key=lambda trial: trial.setting == chosen):
        marked, failed = each.setting == chosen, each.failure is not None
        marks.append(
            Line(
                x=range(1, len(each.clip_estimates) + 1),
                y=each.clip_estimates,
                hue=RED if failed else hues[each.setting.quantile],
                faint=not marked,
                width=1.6 if marked else 1.0,
                label="failed" if failed else "chosen" if marked else "other trials",
                dots=False,
            )
        )
    low = high = None
    if choice is not None:
        marks.append(Rule(at=choice.clip_norm, stroke=1, width=1.2, label=f"fixed at {choice.clip_norm:g}"))
        held = [value for each in trials if each.failure is None for value in each.clip_estimates]
        low, high = min(held) / ROUND_ABOUT, max(held) * ROUND_ABOUT  # what exploded leaves the picture
    return Figure(
        name="clip_norm",
        title="The clip norm that the trials found",
        alt="The estimates of the clip norm over the rounds of each trial.",
        panels=(
            Panel(
                marks=tuple(marks),
                x=Axis("round", whole=True),
                y=Axis("clip norm estimate", log=True, low=low, high=high),
            ),
        ),
        legend="below",
    )
