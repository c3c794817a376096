"""Vectors of prices: what plans cost a device that takes part in some rounds, and plans that claim too little."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import tomli_w
from tests.support.privacy.random_matrices import random_banded, random_dense
from tests.support.vectors.case import Case, case, file_of

from tacit.device.count import count_cost
from tacit.device.discover import local_cost
from tacit.device.train_cost import planned_updates, train_cost, train_matrix
from tacit.errors import TaskRefused
from tacit.federation.cost import ROUNDING, Cost
from tacit.privacy.gaussian import epsilon
from tacit.privacy.strategy import Matrix
from tacit.protocol.messages import Plan
from tacit.protocol.served_bodies import matrix_file

DELTA = 1e-6
RULE = "#what-a-plan-to-train-costs"
COUNTS = "#documents"
MUCH = 1e9  # zCDP that a plan claims until its own is known


def shortened(number: float) -> float:
    """To twelve digits, which are the same on every machine, and nearer than the tolerance."""
    return float(f"{number:.12g}")


def a_plan(privacy: Mapping[str, Any], recipe: Mapping[str, Any], kind: str, **changed: Any) -> Plan:
    aggregation = {"kind": "plain", "threshold": 2, "keepers": [], "boxes": [], "corrupt": 0}
    said = {
        **{"version": 2, "kind": kind, "population": "es", "run": "r", "recipe": tomli_w.dumps(recipe)},
        **{"code": "ab" * 32, "privacy": privacy, "separation": {"rounds": 1, "timer_seconds": None, "clock": "start"}},
        **{"aggregation": {**aggregation, "contributors": [], "honest": 1}, "vocabulary": "cd" * 32},
        **{"attestation": {"devices": "none", "server": "none"}, "enrolment": "none"},
    }
    return Plan.from_json(json.dumps({**said, **changed}))


def training_plan(
    mechanism: Mapping[str, Any],
    *,
    rounds: int = 40,
    apart: int | None = 5,
    most: int | None = None,
    noise: float = 6.0,
    encoded: Mapping[str, Any] | None = None,
    matrix: Matrix | None = None,
    timer: float | None = None,
    recipe: Mapping[str, Any] | None = None,
    **claims: Any,
) -> tuple[Plan, bytes | None]:
    """A plan to train and the file of its matrix. claims: in place of what follows from its numbers."""
    file, body = (None, None) if matrix is None else matrix_file(matrix)
    privacy: dict[str, Any] = {
        **{"kind": "training", "zcdp": MUCH, "epsilon": 2 * MUCH, "delta": DELTA, "clip_norm": 0.2},
        **{"noise_multiplier": noise, "mechanism": mechanism["name"], "report_goal": 6, "rounds": rounds},
        **{"matrix": None if file is None else file.model_dump(), "max_participations": most},
    }
    said: dict[str, Any] = {
        "rounds": {"rounds": rounds, "report_goal": 6},
        "privacy": {"mechanism": dict(mechanism)},
        **(recipe or {}),
    }
    more: dict[str, Any] = {"separation": {"rounds": apart, "timer_seconds": timer, "clock": "start"}}
    if encoded is not None:
        said["aggregation"] = dict(encoded)
        more["aggregation"] = {"kind": "encoded", "threshold": 3, "keepers": [], "boxes": [], "corrupt": 0}
        more["aggregation"] |= {"contributors": [], "honest": 1}
    if noise and "zcdp" not in claims:
        cost = train_cost(a_plan(privacy, said, "train", **more), body)
        bounded = apart is not None or most is not None
        claims["zcdp"] = shortened(planned_updates(cost).zcdp if bounded else cost.spent(range(0, rounds, 7)))
    if claims.get("zcdp") is not None and "epsilon" not in claims:
        claims["epsilon"] = shortened(epsilon(claims["zcdp"], DELTA))
    return a_plan({**privacy, **claims}, said, "train", **more), body


THETA, OMEGA = [0.999, 0.9, 0.4], [0.05, 0.1, 0.2]
MECHANISMS: Mapping[str, dict[str, Any]] = {
    "independent": {"name": "independent"},
    "a tree": {"name": "tree"},
    "a tree with restarts": {"name": "tree", "restarts": [16, 25]},
    "a tree, variance reduced": {"name": "tree-variance-reduced"},
    "BLT": {"name": "blt", "theta": THETA, "omega": OMEGA},
    "BLT of one buffer": {"name": "blt", "theta": [1.0], "omega": [0.25]},
    "blt-b400": {"name": "blt-b400"},
    "blt-b1000": {"name": "blt-b1000"},
    "banded Toeplitz": {"name": "banded-toeplitz", "coefficients": [1.0, 0.5, 0.375, 0.3125, 0.25]},
    "banded Toeplitz, scaled": {"name": "banded-toeplitz", "coefficients": [2.0, 0.5, 0.25]},
    "the square root, as many bands as the separation": {"name": "square-root"},
    "the square root of 3 bands": {"name": "square-root", "bands": 3},
    "the inverse of the square root": {"name": "inverse-square-root"},
    "the inverse of the square root, 4 bands": {"name": "inverse-square-root", "bands": 4},
    "a banded inverse": {"name": "banded-inverse", "coefficients": [1.0, -0.5, -0.125, -0.0625]},
    "lambda-CGD": {"name": "lambda-cgd", "coefficients": [1.0, -0.75]},
}
SHAPES: Mapping[str, dict[str, Any]] = {
    "": {},
    "three times": {"most": 3},
    "once": {"apart": 40, "most": 1},
    "every round": {"rounds": 12, "apart": 1},
    "many rounds": {"rounds": 1000, "apart": 90},
}
WITH_ALL = ("independent", "a tree", "BLT", "a banded inverse", "lambda-CGD", "banded Toeplitz")


def _matrices() -> dict[str, tuple[dict[str, Any], Matrix, dict[str, Any]]]:
    return {
        "a banded matrix": ({"name": "banded"}, random_banded(12, 3, 7, 0.0), {"rounds": 12, "apart": 3}),
        "a banded matrix of more bands": ({"name": "banded"}, random_banded(12, 5, 8, 0.1), {"rounds": 12, "apart": 3}),
        "a dense matrix": ({"name": "dense"}, random_dense(8, 3, 0.1), {"rounds": 8, "apart": 3}),
        "a dense matrix with numbers below 0": ({"name": "dense"}, random_dense(8, 4, -0.9), {"rounds": 8, "apart": 3}),
        "a dense matrix, twice": ({"name": "dense"}, random_dense(8, 5, 0.1), {"rounds": 8, "apart": 2, "most": 2}),
        "a dense matrix, once": ({"name": "dense"}, random_dense(8, 6, 0.1), {"rounds": 8, "apart": 8, "most": 1}),
    }


def _patterns(plan: Plan, seed: int) -> list[list[int]]:
    """Lists of rounds that the plan allows, the first one empty."""
    draw, rounds = np.random.default_rng(seed), plan.privacy.rounds
    apart = plan.separation.rounds or 1
    most = plan.privacy.max_participations or 6
    found: list[list[int]] = [[], [0], [rounds - 1], list(range(0, rounds, apart))[: min(most, 6)]]
    for _ in range(2):
        at, pattern = int(draw.integers(apart)), []
        while at < rounds and len(pattern) < most:
            pattern.append(at)
            at += apart + int(draw.integers(max(2, rounds // 6)))
        found.append(pattern)
    return [list(each) for each, _ in itertools.groupby(sorted(map(tuple, found)))]


def cost_of(plan: Plan, body: bytes | None) -> Cost:
    """What this program makes of a plan of any kind. Raises: TaskRefused."""
    if plan.kind == "train":
        assert (train_matrix(plan) is None) == (body is None)
        return train_cost(plan, body)
    return local_cost(plan) if plan.kind == "discover" else count_cost(plan)


def _priced(name: str, rule: str, plan: Plan, body: bytes | None = None, patterns: Any = None) -> Case:
    file = {} if body is None else {"matrix": body.hex()}
    given = {"plan": plan.to_json(), **file}
    try:
        cost = cost_of(plan, body)
    except TaskRefused as refusal:
        return case(name, rule, **given, accepted=False, says=str(refusal))
    spent = [[each, shortened(cost.spent(each))] for each in patterns or []]
    names = ("zcdp", "epsilon", "delta", "local_epsilon")
    costs = {name: None if (said := getattr(cost, name)) is None else shortened(said) for name in names}
    return case(name, rule, **given, accepted=True, costs=costs, spent=spent)


def _of_training() -> list[Case]:
    found = []
    for number, (name, mechanism) in enumerate(MECHANISMS.items()):
        for shape, changed in SHAPES.items() if name in WITH_ALL else [("", {})]:
            plan, _ = training_plan(mechanism, **changed)
            title = f"{name}, {shape}" if shape else name
            found.append(_priced(title, RULE, plan, None, _patterns(plan, number)))
    for number, (name, (mechanism, matrix, changed)) in enumerate(_matrices().items()):
        plan, body = training_plan(mechanism, matrix=matrix, **changed)
        found.append(_priced(name, RULE, plan, body, _patterns(plan, number)))
    others: dict[str, dict[str, Any]] = {
        "encoded, lengthened by 1% where the recipe does not say": {"encoded": {"kind": "encoded"}},
        "encoded, lengthened by 5%": {"encoded": {"kind": "encoded", "inflation": 1.05}},
        "a timer alone": {"apart": None, "timer": 86400.0},
        "a timer alone, three times": {"apart": None, "timer": 86400.0, "most": 3},
        "a separation beyond the rounds": {"apart": 60},
        "more participations than rounds apart allow": {"most": 30},
        "little noise": {"noise": 0.25},
        "much noise": {"noise": 1000.0},
        "a claim that is higher": {"zcdp": 40.0},
    }
    for number, (title, changed) in enumerate(others.items()):
        for name in ("independent", "BLT", "a tree") if number < 4 else ("BLT",):
            plan, _ = training_plan(MECHANISMS[name], **changed)
            found.append(_priced(f"{name}, {title}", RULE, plan, None, _patterns(plan, number)))
    return found


def _refused() -> list[Case]:
    blt, found = MECHANISMS["BLT"], []
    honest = training_plan(blt)[0].privacy
    assert honest.zcdp is not None
    for name, mechanism in MECHANISMS.items():
        plan, _ = training_plan(mechanism)
        assert plan.privacy.zcdp is not None
        low = plan.privacy.zcdp * (1 - 1e-6)
        found.append((f"{name}: a zCDP that is too low by a millionth", training_plan(mechanism, zcdp=low)))
    for name, (mechanism, matrix, changed) in _matrices().items():
        plan, _ = training_plan(mechanism, matrix=matrix, **changed)
        assert plan.privacy.zcdp is not None
        low = plan.privacy.zcdp * (1 - 1e-6)
        found.append((f"{name}: the same", training_plan(mechanism, matrix=matrix, zcdp=low, **changed)))
    zcdp, rule = honest.zcdp, {"zcdp": honest.zcdp}
    of_rounds = {"rounds": {"rounds": 41, "report_goal": 6}}
    others: dict[str, dict[str, Any]] = {
        "an epsilon that is too low by a millionth": {**rule, "epsilon": epsilon(zcdp, DELTA) * (1 - 1e-6)},
        "no noise": {"noise": 0.0, "zcdp": 1.0},
        "no promise": {"zcdp": None, "epsilon": None},
        "no epsilon": {**rule, "epsilon": None},
        "a recipe of other rounds": {**rule, "recipe": of_rounds},
        "a recipe of another goal": {**rule, "recipe": {"rounds": {"rounds": 40, "report_goal": 7}}},
        "a recipe of another mechanism": {**rule, "recipe": {"privacy": {"mechanism": {"name": "tree"}}}},
        "a recipe without a mechanism": {**rule, "recipe": {"privacy": {}}},
        "a seed that everybody knows": {**rule, "recipe": {"run": {"seed": 7}}},
        "a recipe of encoded sums, and a plan in the clear": {**rule, "recipe": {"aggregation": {"kind": "encoded"}}},
        "an inflation that is no number": {**rule, "encoded": {"inflation": "1.01"}},
        "an inflation below 1": {**rule, "encoded": {"inflation": 0.5}},
        "too many rounds": {"zcdp": 1e6, "rounds": 10_001},
    }
    found += [(f"BLT: {title}", training_plan(blt, **changed)) for title, changed in others.items()]
    mechanisms: dict[str, dict[str, Any]] = {
        "a mechanism that nobody knows": {"name": "magic"},
        "a mechanism of the operator's own code": {"name": "their.package:Mechanism"},
        "a mechanism that is still to be designed": {"name": "blt", "buffers": 3},
        "BLT without weights": {"name": "blt", "theta": [0.9]},
        "BLT of a decay above 1": {"name": "blt", "theta": [1.1], "omega": [0.1]},
        "BLT with a key of another mechanism": {"name": "blt", "theta": [0.9], "omega": [0.1], "restarts": [3]},
        "a banded matrix without its file": {"name": "banded"},
        "coefficients that begin with 0": {"name": "banded-toeplitz", "coefficients": [0.0, 1.0]},
        "coefficients that are none": {"name": "banded-toeplitz", "coefficients": []},
        "lambda-CGD of three coefficients": {"name": "lambda-cgd", "coefficients": [1.0, -0.5, -0.1]},
        "a tree that begins again beyond the run": {"name": "tree", "restarts": [40]},
    }
    found += [(title, training_plan(each, zcdp=100.0)) for title, each in mechanisms.items()]
    return [_priced(f"claims: {title}", RULE, plan, body) for title, (plan, body) in found]


def _of_counts() -> list[Case]:
    rho = 1 / (2 * 5.0**2)
    goal = {"report_goal": 100, "rounds": 1, "max_participations": 1}
    noised: dict[str, Any] = {**goal, "zcdp": rho, "epsilon": shortened(epsilon(rho, DELTA)), "delta": DELTA}
    histograms = {**noised, "kind": "histograms", "histograms": [3], "noise_multiplier": 5.0}
    sums = {**noised, "kind": "sums", "clip_norm": 20.0, "noise_multiplier": 5.0}
    local = {**goal, "kind": "local", "zcdp": 2.0, "local_epsilon": 2.0}
    plans: dict[str, tuple[dict[str, Any], str]] = {
        "histograms": (histograms, "count"),
        "histograms of a personalization": (histograms, "personalize"),
        "histograms, too low a zCDP": ({**histograms, "zcdp": rho * (1 - 1e-6)}, "count"),
        "histograms, too low an epsilon": ({**histograms, "epsilon": noised["epsilon"] * (1 - 1e-6)}, "count"),
        "histograms, no zCDP": ({**histograms, "zcdp": None}, "count"),
        "histograms, twice": ({**histograms, "max_participations": 2}, "count"),
        "histograms, of two steps in one round": ({**histograms, "histograms": [3, 1]}, "count"),
        "histograms in two steps": ({**histograms, "histograms": [3, 1], "rounds": 2}, "personalize"),
        "sums": (sums, "count"),
        "sums, too low a zCDP": ({**sums, "zcdp": rho * (1 - 1e-6)}, "count"),
        "sums, as often as one likes": ({**sums, "max_participations": None}, "count"),
        "local": (local, "evaluate"),
        "local, too low a zCDP": ({**local, "zcdp": 2.0 * (1 - 1e-6)}, "evaluate"),
        "local, a higher claim of zCDP": ({**local, "zcdp": 3.0}, "evaluate"),
        "local, an epsilon that nothing hides": ({**local, "zcdp": 5e5, "local_epsilon": 1000.0}, "evaluate"),
        "a promise to train": ({**training_plan(MECHANISMS["BLT"])[0].privacy.model_dump(), **goal}, "count"),
    }
    found = []
    for name, (privacy, kind) in plans.items():
        apart = {"separation": {"rounds": privacy["rounds"], "timer_seconds": None, "clock": "start"}}
        plan = a_plan(privacy, {}, kind, **apart)
        found.append(_priced(f"counts: {name}", COUNTS, plan, None, [[], [0]]))
    found.append(_priced("counts: sums without a separation", COUNTS, a_plan({**sums, "rounds": 5}, {}, "count")))
    return found + _of_words(local)


def _of_words(local: Mapping[str, Any]) -> list[Case]:
    found = []
    reports: dict[str, Any] = {"local_epsilon": 2.0, "contributions": 3, "sampler": "random"}
    rho = 6.0**2 / 2
    asked: dict[str, tuple[Any, dict[str, Any]]] = {
        "words": (reports, {"zcdp": rho, "local_epsilon": 6.0}),
        "words, by default settings": ({"local_epsilon": 2.0}, {"zcdp": 2.0, "local_epsilon": 2.0}),
        "words, too low a local epsilon": (reports, {"zcdp": rho, "local_epsilon": 5.9}),
        "words, too low a zCDP": (reports, {"zcdp": rho * (1 - 1e-6), "local_epsilon": 6.0}),
        "words, twice": (reports, {"zcdp": rho, "local_epsilon": 6.0, "max_participations": 2}),
        "words, no settings of reports": (None, {"zcdp": rho, "local_epsilon": 6.0}),
        "words, another randomizer": ({**reports, "randomizer": "magic"}, {"zcdp": rho, "local_epsilon": 6.0}),
    }
    for name, (settings, claims) in asked.items():
        recipe = {} if settings is None else {"reports": settings}
        plan = a_plan({**local, **claims}, recipe, "discover")
        found.append(_priced(f"discovery: {name}", "#a-report", plan, None, [[], [0]]))
    return found


def _epsilons() -> list[Case]:
    grid = itertools.product((1e-4, 0.01, 0.1, 0.5, 2.0, 20.0), (1e-3, 1e-6, 1e-10))
    rule = "docs/accounting.md"
    return [
        case(f"zCDP {rho:g}, delta {delta:g}", rule, zcdp=rho, delta=delta, epsilon=shortened(epsilon(rho, delta)))
        for rho, delta in grid
    ]


def file() -> dict[str, Any]:
    """The content of `prices.json`."""
    return file_of(
        "`plan` is the text of a plan, `matrix` its file in hexadecimal digits. Accepted: `costs` is what the device "
        "reckons with, and `spent` has lists of rounds and what a device has spent of zCDP that took part in these. "
        "Refused: the plan promises less than it says, or nothing; `says` is how this program tells its owner. "
        "`epsilons`: what follows from a zCDP. Numbers agree to the relative `tolerance`.",
        _of_training() + _refused() + _of_counts(),
        tolerance=ROUNDING,
        epsilons=_epsilons(),
    )


def _near(found: float | None, said: float | None) -> bool:
    if found is None or said is None:
        return found is said
    return abs(found - said) <= ROUNDING * abs(said)


def check(each: Case) -> None:
    """That this program decides a case of the file as it says."""
    body = bytes.fromhex(each["matrix"]) if "matrix" in each else None
    try:
        cost = cost_of(Plan.from_json(each["plan"]), body)
    except TaskRefused:
        assert not each["accepted"], each["name"]
        return
    assert each["accepted"], each["name"]
    for name, said in each["costs"].items():
        assert _near(getattr(cost, name), said), (each["name"], name)
    for rounds, said in each["spent"]:
        assert _near(cost.spent(rounds), said), (each["name"], rounds)


def check_epsilon(each: Case) -> None:
    """The same."""
    assert _near(epsilon(each["zcdp"], each["delta"]), each["epsilon"]), each["name"]
