"""A plan under sliders: what a budget buys, by closed forms, and the recipe of it to take away."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tacit.errors import InputError
from tacit.reports.blocks import Block, FigureOf, Paragraph, Table
from tacit.view.closed_forms import SLIDERS, Asked, outcomes, over_epsilon, sentence
from tacit.view.shown import Shown, View

REASONS = {
    "data.cache": "made by: tacit data import clients.parquet --out caches/mine",
    "rounds.rounds": "as planned",
    "rounds.report_goal": "as planned",
    "rounds.min_separation": "as planned; the report goal times this many clients are busy at any time",
    "privacy.epsilon": "as planned; the noise multiplier follows from it",
    "privacy.delta": "min(1e-5, n^-1.1) of so many clients",
    "privacy.mechanism.name": "the least error for this participation, found when the run begins",
    "privacy.clip_norm": "below the norm of most updates, so that each counts the same",
    "evaluation.every": "eight looks on the way; no guarantee covers them",
}


def page(view: View, request: Request) -> Shown:
    """The numbers as a GET form: `?population=&rounds=&report_goal=&min_separation=&epsilon=&parameters=`.

    What is out of range is said beside the form, which keeps what was given.
    """
    query, complaint = request.query_params, ""
    try:
        asked = Asked.from_query(query)
        said, blocks, record = sentence(asked), _blocks(asked), _record(asked)
    except InputError as error:
        asked, said, blocks, record = Asked.from_query({}), "", [], {"error": str(error)}
        complaint = str(error)
    given = {each.name: query.get(each.name, "")[:40] or f"{getattr(asked, each.name):g}" for each in SLIDERS}
    return Shown(
        template="planning",
        title="Planning",
        values={
            "sliders": SLIDERS,
            "given": given,
            "answer": said,
            "complaint": complaint,
            "blocks": blocks,
            "query": "&".join(f"{name}={value}" for name, value in asked.to_record().items()),
            "possible": not complaint and not asked.complaint(),
        },
        record=record,
        status=422 if complaint else 200,
    )


def recipe(view: View, request: Request) -> Response:
    """The plan as a recipe, an attachment: nothing is written here. Raises: InputError where it cannot be had."""
    asked = Asked.from_query(request.query_params)
    if complaint := asked.complaint():
        raise InputError(complaint)
    named = 'attachment; filename="plan.toml"'
    return Response(_toml(asked), media_type="application/toml", headers={"content-disposition": named})


def _toml(asked: Asked) -> str:
    from tacit.recipe import Recipe  # JAX comes with it
    from tacit.recipe.annotated import annotated_toml

    made = Recipe.model_validate(
        {
            "name": "plan",
            "data": {"cache": "caches/mine"},
            "rounds": {
                "rounds": asked.rounds,
                "report_goal": asked.report_goal,
                "min_separation": asked.min_separation,
            },
            "privacy": {
                "epsilon": asked.epsilon,
                "delta": asked.delta,
                "clip_norm": 0.5,
                "mechanism": {"name": "best"},
            },
            "evaluation": {"every": max(1, asked.rounds // 8)},
        }
    )
    head = (
        f"Planned with `tacit view` for {asked.population:,} training clients; nothing that they typed was looked at.",
        "Every value may be changed: docs/recipes.md says what else there is.",
    )
    return annotated_toml(made, REASONS, head)


def _blocks(asked: Asked) -> list[Block]:
    rows = tuple(
        (
            each.mechanism,
            f"{each.noise_multiplier:.4g}",
            f"{each.sensitivity:.4g}",
            f"{each.share:.1%}",
            f"{each.least:.0%} to {each.most:.0%}",
        )
        for each in outcomes(asked)
    )
    head = ("mechanism", "noise multiplier", "sensitivity, clip norms", "accuracy kept", "nine runs in ten")
    return [
        FigureOf(over_epsilon(asked)),
        Table(rows, head),
        Paragraph(
            "Closed forms of public numbers; nothing is designed or simulated. The share kept is an estimate from "
            "small runs that began from random weights (docs/results/noise-forecast.md), and no promise; `tacit recipe "
            "new` plans for the clients of a cache.",
            soft=True,
        ),
    ]


def _record(asked: Asked) -> Mapping[str, Any]:
    return {
        "asked": {**asked.to_record(), "delta": asked.delta},
        "possible": not asked.complaint(),
        "answer": sentence(asked),
        "mechanisms": [
            {
                "mechanism": each.mechanism,
                "noise_multiplier": each.noise_multiplier,
                "sensitivity": each.sensitivity,
                "share_kept": [each.share, each.least, each.most],
            }
            for each in outcomes(asked)
        ],
    }
