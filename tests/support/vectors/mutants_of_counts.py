"""Hostile questions whose reports are counts: to count, to discover and to evaluate, in plan, task and content."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tomli_w
from tests.support.vectors.case import Case
from tests.support.vectors.changes import CHECKS, DOCUMENTS, OWN, SHAPE, TOO_CHEAP, Change, Said, made, of_each_place
from tests.support.vectors.mutants_of_sums import BOXES, KEEPERS, sealed_base
from tests.support.vectors.prices import DELTA, a_plan, shortened
from tests.support.vectors.sealed import sealed_settings
from tests.support.vectors.turns import a_task

from tacit.evaluation.counts.cell_list import CellList, CellSum
from tacit.evaluation.in_plan import QuestionOfPlan
from tacit.networks.language_model import parameter_count
from tacit.privacy.gaussian import epsilon
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.served_bodies import model_body
from tacit.text.vocabulary import Provenance, Vocabulary

COUNTING, REPORT = "#what-a-recipe-to-count-or-to-evaluate-says", "#a-report"
WORDS = Vocabulary(words=("one", "two", "three"), provenance=Provenance(kind="public", description="made up"))
NETWORK = {"kind": "cifg", "embedding": 1, "units": 1, "tied": False}
RHO = 0.02
ONCE: Said = {"report_goal": 3, "rounds": 1, "max_participations": 1}
NOISED: Said = {**ONCE, "zcdp": RHO, "epsilon": shortened(epsilon(RHO, DELTA)), "delta": DELTA, "noise_multiplier": 5.0}
HISTOGRAMS: Said = {**NOISED, "kind": "histograms", "histograms": [2]}
SUMS: Said = {**NOISED, "kind": "sums", "clip_norm": 5.0}
LOCAL: Said = {**ONCE, "kind": "local", "zcdp": 2.0, "local_epsilon": 2.0}
STATISTICS = [{"statistic": "words", "cuts": [5.0, 9.0]}, {"statistic": "unknown_share", "cuts": [0.1]}]
LIST = CellList(
    norm=4, ngrams=(("one",), ("one", "two")), units=(1, 2), provenance=Provenance(kind="public", description="made up")
)
COUNTS = {"kind": "count", "cells": [4, 3], "local_epsilon": None, "norms": None}
REPORTS: Said = {"local_epsilon": 1.0, "contributions": 2, "sampler": "greedy", "randomizer": "subset-selection"}
PREFIXES: Said = {"about": "prefixes", "prefixes": ["a", "b"], "alphabet": "abc", "depth": 4, "found": []}
LISTED: Said = {"about": "words", "words": ["four", "five"]}


def recipe_to_evaluate(*networks: Mapping[str, Any], **settings: Any) -> str:
    return tomli_w.dumps({"models": [{"name": "m", "network": each} for each in networks], "settings": settings})


def numbers() -> int:
    """Parameters of the network."""
    recipe = recipe_to_evaluate(NETWORK)
    (network,) = QuestionOfPlan(kind="evaluate", recipe=recipe, words=WORDS.size).networks
    return parameter_count(network)


def base(kind: str, privacy: Said, recipe: Mapping[str, Any] | str, asks: Said, content: bytes) -> Said:
    """A plan of one round, its task and the content."""
    table = {} if isinstance(recipe, str) else recipe
    plan = a_plan(privacy, table, kind, vocabulary=WORDS.sha256)
    if isinstance(recipe, str):
        plan = plan.model_copy(update={"recipe": recipe})
    task = json.loads(a_task(plan).to_json())
    task["asks"] = asks
    sha256 = hashlib.sha256(content).hexdigest()
    task["content"] = {"sha256": sha256, "bytes": len(content), "path": f"/v1/models/{sha256}"}
    return {"plan": json.loads(plan.to_json()), "task": task, "content": content.hex()}


def bases() -> dict[str, Said]:
    """What a device follows as it is."""
    counts = base("count", HISTOGRAMS, {"settings": {"statistics": STATISTICS}}, COUNTS, b"none")
    sealed = json.loads(json.dumps(counts))
    sealed["plan"]["aggregation"] |= {"kind": "sealed", "keepers": KEEPERS, "boxes": BOXES, "corrupt": 1}
    settings = sealed_settings(b"willow-4096", 7, 1, round_index=0)
    plan, task = (of.from_json(json.dumps(sealed[name])) for name, of in (("plan", Plan), ("task", RoundTask)))
    sums = [{"statistic": "word_counts", "words": 2, "norm": 3.0}, CellSum.of(LIST).to_plain()]
    summed = {**COUNTS, "cells": [2, 2], "norms": [3.0, 4.0]}
    randomised = {**COUNTS, "local_epsilon": 2.0}
    models = [numbers()] * 2
    judged = {"kind": "evaluate", "cells": [63, 63, 44], "local_epsilon": None, "parameters": models}
    zeros = model_body(np.zeros(sum(models), np.float32))
    known = WORDS.to_json().encode()
    return {
        "count": counts,
        "sealed count": sealed_base(plan, task, settings, b"none"),
        "sums": base("count", SUMS, {"settings": {"sums": sums}}, summed, LIST.text.encode()),
        "randomised": base("count", LOCAL, {"settings": {"statistics": STATISTICS}}, randomised, b"none"),
        "discover": base("discover", LOCAL, {"reports": REPORTS}, discovers(PREFIXES), known),
        "list": base("discover", LOCAL, {"reports": REPORTS}, discovers(LISTED, sampler="random"), known),
        "evaluate": base(
            "evaluate", {**HISTOGRAMS, "histograms": [3]}, recipe_to_evaluate(NETWORK, NETWORK), judged, zeros
        ),
    }


def discovers(question: Said, **reports: Any) -> Said:
    return {"kind": "discover", "question": question, "reports": {**REPORTS, **reports}}


# -- changes -----------------------------------------------------------------------------------------------------------

TWICE, LESS = "a device would answer twice", "reports would be hidden less"
OTHER, UNKNOWN = "it asks for others than its plan", "no device knows it"
CANNOT = "nothing can be answered to it"


def recipe(**table: Any) -> dict[str, Any]:
    return {"set": {"recipe": tomli_w.dumps(table)}}


def statistics(*said: Said) -> dict[str, Any]:
    return recipe(settings={"statistics": list(said)})


def sums_of(**changed: Any) -> dict[str, Any]:
    first = {"statistic": "word_counts", "words": 2, "norm": 3.0, **changed}
    return recipe(settings={"sums": [first, CellSum.of(LIST).to_plain()]})


ONE_PLAN: tuple[Change, ...] = (
    ("claims less zCDP than its noise gives", TOO_CHEAP, {"set": {"privacy.zcdp": 0.0199}}),
    ("claims a smaller epsilon", TOO_CHEAP, {"set": {"privacy.epsilon": 0.5}}),
    ("claims the epsilon of a larger delta", TOO_CHEAP, {"set": {"privacy.delta": 1e-9}}),
    ("adds less noise than it claims", TOO_CHEAP, {"set": {"privacy.noise_multiplier": 4.9}}),
    ("adds hardly any noise", "the owner's policy", {
        "set": {"privacy.noise_multiplier": 0.05, "privacy.zcdp": 200.0, "privacy.epsilon": 400.0}}),
    ("promises nothing", "a plan promises something", {"set": {"privacy.zcdp": None, "privacy.epsilon": None}}),
    ("asks a device twice", TWICE, {"set": {"privacy.max_participations": 2}}),
    ("asks a device as often as it likes", TWICE, {"set": {"privacy.max_participations": None}}),
    ("has two rounds, and a device in both", TWICE, {"set": {"privacy.rounds": 2}}),
    ("has no separation", TWICE, {"set": {"separation.rounds": None}}),
    ("has no separation but a timer", TWICE, {"set": {"separation.rounds": None, "separation.timer_seconds": 1.0}}),
    ("counts one", "the owner's policy", {"set": {"privacy.report_goal": 1}}),
    ("opens the sum of one", "the owner's policy", {"set": {"aggregation.threshold": 1}}),
    ("sums what nobody encodes", "it is not as its plan says", {"set": {"aggregation.kind": "encoded"}}),
    ("has the noise of a stranger", "it has no decryptors", {"set": {"aggregation.contributors": [KEEPERS[0]]}}),
    ("relies on two whose noise nobody adds", "nobody adds it", {"set": {"aggregation.honest": 2}}),
    ("seals, and its task does not", "it is not as its plan says", {"set": {"aggregation.kind": "sealed"}}),
    ("is to train", "its promise is of another kind", {"set": {"kind": "train"}}),
    ("is to discover", "its promise is of another kind", {"set": {"kind": "discover"}}),
    ("is to personalize", OTHER, {"set": {"kind": "personalize"}}),
    ("has no recipe", "nothing says what is asked", {"set": {"recipe": ""}}),
    ("has a recipe that is no TOML", "the recipe cannot be read", {"set": {"recipe": "settings = ["}}),
    ("is about other words", "it is for others", {"set": {"vocabulary": "ab" * 32}}),
)  # fmt: skip
HISTOGRAM_PLANS: tuple[Change, ...] = (
    ("makes noise for one histogram", TOO_CHEAP, {"set": {"privacy.histograms": [1]}}),
    ("makes noise for three histograms", OTHER, {"set": {"privacy.histograms": [3]}}),
    ("makes noise for no round", SHAPE, {"set": {"privacy.histograms": []}}),
    ("makes noise for two rounds", OWN, {"set": {"privacy.histograms": [2, 2]}}),
    ("counts a statistic of nobody", UNKNOWN, statistics({"statistic": "secrets", "cuts": [1.0]}, STATISTICS[1])),
    ("counts a word of the language", UNKNOWN, statistics({"statistic": "constructor", "cuts": [1.0]}, STATISTICS[1])),
    ("counts by a statistic of nobody", UNKNOWN, statistics(
        {"statistic": "words", "cuts": [5.0, 9.0], "by": "secrets", "slices": [1.0]}, STATISTICS[1])),
    ("counts one statistic twice", CANNOT, statistics(STATISTICS[0], STATISTICS[0])),
    ("counts one statistic", OTHER, statistics(STATISTICS[0])),
    ("counts three", OTHER, statistics(*STATISTICS, {"statistic": "sentences", "cuts": [1.0]})),
    ("counts none", CANNOT, statistics()),
    ("has cuts that fall", CANNOT, statistics({"statistic": "words", "cuts": [9.0, 5.0]}, STATISTICS[1])),
    ("has a cut twice", CANNOT, statistics({"statistic": "words", "cuts": [5.0, 5.0]}, STATISTICS[1])),
    ("has no cuts", CANNOT, statistics({"statistic": "words", "cuts": []}, STATISTICS[1])),
    ("has cuts that are none", CANNOT, statistics({"statistic": "words", "cuts": ["5", "9"]}, STATISTICS[1])),
    ("has a cut at NaN", CANNOT, statistics({"statistic": "words", "cuts": [5.0, float("nan")]}, STATISTICS[1])),
    ("has a cut beyond all numbers", CANNOT, statistics(
        {"statistic": "words", "cuts": [5.0, float("inf")]}, STATISTICS[1])),
    ("has a cut more than its task has cells", OTHER, statistics(
        {"statistic": "words", "cuts": [5.0, 9.0, 20.0]}, STATISTICS[1])),
    ("has slices of nothing", CANNOT, statistics(
        {"statistic": "words", "cuts": [5.0, 9.0], "slices": [1.0]}, STATISTICS[1])),
    ("has a statistic with a strange key", UNKNOWN, statistics({**STATISTICS[0], "luck": 7}, STATISTICS[1])),
    ("has statistics that are no list", CANNOT, recipe(settings={"statistics": STATISTICS[0]})),
    ("names sums, too", CANNOT, recipe(settings={"statistics": STATISTICS, "sums": []})),
    ("has no settings", CANNOT, recipe(statistics=STATISTICS)),
)  # fmt: skip
COUNT_TASKS: tuple[Change, ...] = (
    ("has other cells", OTHER, {"set": {"asks.cells": [5, 3]}}),
    ("has its cells turned round", OTHER, {"set": {"asks.cells": [3, 4]}}),
    ("asks for one histogram", OTHER, {"set": {"asks.cells": [4]}}),
    ("asks for three", OTHER, {"set": {"asks.cells": [4, 3, 3]}}),
    ("asks for none", SHAPE, {"set": {"asks.cells": []}}),
    ("has a histogram of one cell", SHAPE, {"set": {"asks.cells": [4, 1]}}),
    ("has more cells than a report holds", SHAPE, {"set": {"asks.cells": [10**7, 10**7]}}),
    ("has reports randomised, and the plan none", OTHER, {"set": {"asks.local_epsilon": 2.0}}),
    ("asks for sums", OTHER, {"set": {"asks.norms": [1.0, 1.0]}}),
    ("asks for sums of no norms", OTHER, {"set": {"asks.norms": []}}),
    ("is to evaluate", OTHER, {"set": {"asks.kind": "evaluate", "asks.parameters": [4]}}),
    ("is to train", OTHER, {"set": {"asks.kind": "train"}}),
    ("is of the second round", "the plan ends before", {"set": {"round": 1}}),
    ("is sealed", "it is not as its plan says", {"set": {"sealed": "ab" * 40}}),
)
SUM_PLANS: tuple[Change, ...] = (
    ("makes noise for a smaller norm", TOO_CHEAP, {"set": {"privacy.clip_norm": 4.9}}),
    ("makes noise for histograms", OWN, {"set": {"privacy": {**HISTOGRAMS}}}),
    ("sums what nobody knows", UNKNOWN, sums_of(statistic="word_triples")),
    ("sums a word of the language", UNKNOWN, sums_of(statistic="constructor")),
    ("sums what is a statistic", UNKNOWN, sums_of(statistic="words")),
    ("sums one word", CANNOT, sums_of(words=1)),
    ("sums more words than its task", OTHER, sums_of(words=3)),
    ("sums more words than a report holds", CANNOT, sums_of(words=10**9)),
    ("sums half a word", CANNOT, sums_of(words=2.5)),
    ("sums a smaller norm than its task", OTHER, sums_of(norm=2.5)),
    ("sums a larger norm than its noise is for", TOO_CHEAP, sums_of(norm=3.5)),
    ("sums no norm", CANNOT, sums_of(norm=0.0)),
    ("sums a norm that is none", CANNOT, sums_of(norm=float("nan"))),
    ("sums a norm beyond all", CANNOT, sums_of(norm=1e6)),
    ("sums units of nothing", CANNOT, sums_of(unit=0)),
    ("sums larger units than its noise is for", TOO_CHEAP, sums_of(unit=2)),
    ("has a sum with a strange key", UNKNOWN, sums_of(luck=7)),
    ("sums one thing twice", CANNOT, recipe(settings={"sums": [
        {"statistic": "word_counts", "words": 2, "norm": each} for each in (3.0, 4.0)]})),
    ("sums nothing", CANNOT, recipe(settings={"sums": []})),
)  # fmt: skip
SUM_TASKS: tuple[Change, ...] = (
    ("has other norms", OTHER, {"set": {"asks.norms": [3.0, 4.5]}}),
    ("has smaller norms", OTHER, {"set": {"asks.norms": [2.0, 4.0]}}),
    ("has a norm less", OTHER, {"set": {"asks.norms": [3.0]}}),
    ("has no norm above 0", SHAPE, {"set": {"asks.norms": [3.0, 0.0]}}),
    ("asks for histograms", OTHER, {"set": {"asks.norms": None}}),
    ("has other cells", OTHER, {"set": {"asks.cells": [2, 3]}}),
    ("has reports randomised", OTHER, {"set": {"asks.local_epsilon": 2.0}}),
)
LOCAL_PLANS: tuple[Change, ...] = (
    ("claims less zCDP than its epsilon gives", TOO_CHEAP, {"set": {"privacy.zcdp": 1.99}}),
    ("claims an epsilon of nobody's policy", "the owner's policy", {
        "set": {"privacy.local_epsilon": 2.1, "privacy.zcdp": 2.205}}),
    ("claims an epsilon that hides nothing", TOO_CHEAP, {
        "set": {"privacy.local_epsilon": 1000.0, "privacy.zcdp": 5e5}}),
    ("promises nothing", "a plan promises something", {"set": {"privacy.zcdp": None}}),
    ("asks a device twice", TWICE, {"set": {"privacy.max_participations": 2}}),
    ("has two rounds, and a device in both", TWICE, {"set": {"privacy.rounds": 2}}),
)  # fmt: skip
LOCAL_TASKS: tuple[Change, ...] = (
    ("has reports randomised less", LESS, {"set": {"asks.local_epsilon": 2.5}}),
    ("has reports randomised more", OTHER, {"set": {"asks.local_epsilon": 1.5}}),
    ("has reports that nobody randomises", LESS, {"set": {"asks.local_epsilon": None}}),
    ("has no epsilon above 0", SHAPE, {"set": {"asks.local_epsilon": 0.0}}),
    ("asks for sums", OTHER, {"set": {"asks.norms": [1.0, 1.0], "asks.local_epsilon": None}}),
)


def reports_of(**changed: Any) -> dict[str, Any]:
    return recipe(reports={**REPORTS, **changed})


DISCOVER_PLANS: tuple[Change, ...] = (
    ("claims a smaller epsilon than its reports", TOO_CHEAP, {"set": {"privacy.local_epsilon": 1.9}}),
    ("promises noise", "its promise is of another kind", {"set": {"privacy": HISTOGRAMS}}),
    ("has no reports", CANNOT, recipe(settings={})),
    ("has a report more", TOO_CHEAP, reports_of(contributions=3)),
    ("has a report less than its task", OTHER, reports_of(contributions=1)),
    ("has no report", CANNOT, reports_of(contributions=0)),
    ("hides reports less", TOO_CHEAP, reports_of(local_epsilon=1.1)),
    ("hides reports more than its task", OTHER, reports_of(local_epsilon=0.9)),
    ("hides nothing", CANNOT, reports_of(local_epsilon=0.0)),
    ("hides reports by what nobody knows", UNKNOWN, reports_of(randomizer="coin")),
    ("hides reports by a word of the language", UNKNOWN, reports_of(randomizer="constructor")),
    ("hides reports otherwise than its task", OTHER, reports_of(randomizer="k-ary")),
    ("chooses otherwise than its task", OTHER, reports_of(sampler="random")),
    ("chooses as nobody does", UNKNOWN, reports_of(sampler="best")),
    ("has reports with a strange key", UNKNOWN, reports_of(luck=7)),
)
DISCOVER_TASKS: tuple[Change, ...] = (
    ("asks for a report more", LESS, {"set": {"asks.reports.contributions": 3}}),
    ("hides reports less", LESS, {"set": {"asks.reports.local_epsilon": 1.1}}),
    ("hides reports more", OTHER, {"set": {"asks.reports.local_epsilon": 0.9}}),
    ("hides reports by what nobody knows", UNKNOWN, {"set": {"asks.reports.randomizer": "coin"}}),
    ("hides reports by a word of the language", UNKNOWN, {"set": {"asks.reports.randomizer": "constructor"}}),
    ("hides reports otherwise", OTHER, {"set": {"asks.reports.randomizer": "k-ary"}}),
    ("chooses otherwise", OTHER, {"set": {"asks.reports.sampler": "random"}}),
    ("asks for a prefix twice", CANNOT, {"set": {"asks.question.prefixes": ["a", "a"]}}),
    ("asks for prefixes of two lengths", CANNOT, {"set": {"asks.question.prefixes": ["a", "ab"]}}),
    ("asks for no prefix", SHAPE, {"set": {"asks.question.prefixes": []}}),
    ("has a letter twice", CANNOT, {"set": {"asks.question.alphabet": "aba"}}),
    ("has no letters", SHAPE, {"set": {"asks.question.alphabet": ""}}),
    ("has the end as a letter", CANNOT, {"set": {"asks.question.alphabet": "ab\n"}}),
    ("has a letter that is not composed", CANNOT, {"set": {"asks.question.alphabet": "ab\u212b"}}),
    ("has a depth of one", SHAPE, {"set": {"asks.question.depth": 1}}),
    ("is about nothing", SHAPE, {"set": {"asks.question.about": "secrets"}}),
)
LIST_TASKS: tuple[Change, ...] = (
    ("asks for a word twice", CANNOT, {"set": {"asks.question.words": ["four", "four"]}}),
    ("asks for numbers", SHAPE, {"set": {"asks.question.words": [4, 5]}}),
    ("asks for a word of a thousand letters and one", SHAPE, {"set": {"asks.question.words": ["a" * 1001]}}),
)


def evaluates(*networks: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    return {"set": {"recipe": recipe_to_evaluate(*networks, **settings)}}


EVALUATE_PLANS: tuple[Change, ...] = (
    ("judges one model", OTHER, evaluates(NETWORK)),
    ("judges three", OTHER, evaluates(NETWORK, NETWORK, NETWORK)),
    ("judges none", CANNOT, evaluates()),
    ("judges a network of nobody", UNKNOWN, evaluates(NETWORK, {**NETWORK, "kind": "os:system"})),
    ("judges a wider network", OTHER, evaluates(NETWORK, {**NETWORK, "units": 2})),
    ("judges a network with a strange key", UNKNOWN, evaluates(NETWORK, {**NETWORK, "luck": 7})),
    ("has settings of a strange key", UNKNOWN, evaluates(NETWORK, NETWORK, luck=7)),
    ("reads no sentence", CANNOT, evaluates(NETWORK, NETWORK, sentences=0)),
    ("reads sentences without end", CANNOT, evaluates(NETWORK, NETWORK, words=1001)),
    ("reads half a sentence", CANNOT, evaluates(NETWORK, NETWORK, sentences=2.5)),
    ("makes noise for one histogram", TOO_CHEAP, {"set": {"privacy.histograms": [1]}}),
)


def evaluate_tasks() -> Iterator[Change]:
    count = numbers()
    yield "judges one model", OTHER, {"set": {"asks.parameters": [count]}}
    yield "judges none", SHAPE, {"set": {"asks.parameters": []}}
    yield "judges larger models", OTHER, {"set": {"asks.parameters": [count + 1, count - 1]}}
    yield "has other cells", OTHER, {"set": {"asks.cells": [63, 63, 45]}}
    yield "has a histogram less", OTHER, {"set": {"asks.cells": [63, 63]}}
    yield "has reports randomised", OTHER, {"set": {"asks.local_epsilon": 2.0}}


def models() -> Iterator[Change]:
    count = 2 * numbers()
    for value in (float("nan"), float("inf")):
        numbers_ = np.zeros(count, np.float32)
        numbers_[-1] = value
        yield f"has {value}", "a number that is none", _content(model_body(numbers_))
    for other in (count - 1, count + 1, 0):
        yield f"has {other} numbers", "it is of other networks", _content(model_body(np.zeros(other, np.float32)))
    yield "is no file", SHAPE, _content(b"none")


def _content(said: bytes) -> dict[str, Any]:
    return {"set": {"content": said.hex()}}


def lists() -> Iterator[Change]:
    """Of the digest that the task says, and the plan does not."""
    text = LIST.text
    yield "has another unit", "another list than the plan's", _content(text.replace("2\t", "3\t").encode())
    yield "has a cell less", "another list than the plan's", _content(text[: text.rindex("\n", 0, -1) + 1].encode())
    yield "is no list", SHAPE, _content(b"none")
    yield "is no text", SHAPE, _content(b"\xff\xfe")


def known_words() -> Iterator[Change]:
    other = Vocabulary(words=("one", "two"), provenance=WORDS.provenance)
    yield "has other words", "another vocabulary than the plan's", _content(other.to_json().encode())
    yield "is no list of words", SHAPE, _content(b"{}")
    yield "is no text", SHAPE, _content(b"\xff\xfe")
    yield "is cut", SHAPE, _content(WORDS.to_json().encode()[:-2])


def within(said: Said, *names: str) -> Iterator[Change]:
    """The changes of each place that are below these keys of a document."""
    part: Any = said
    for name in names:
        part = part[name]
    before = ".".join(names)
    for title, reason, change in of_each_place(part):
        moved = {
            how: {f"{before}.{path}": value for path, value in paths.items()}
            if isinstance(paths, dict)
            else [f"{before}.{path}" for path in paths]
            for how, paths in change.items()
        }
        yield f"{title} of {before}", reason, moved


def cases(known: Mapping[str, Said]) -> Sequence[Case]:
    """Of the bases here."""
    plans = {name: known[name]["plan"] for name in ("count", "sums", "randomised")}
    return [
        *made("count", "plan", DOCUMENTS, within(plans["count"], "privacy")),
        *made("sums", "plan", DOCUMENTS, (("has no clip norm", SHAPE, {"remove": ["privacy.clip_norm"]}),)),
        *made("randomised", "plan", DOCUMENTS, within(plans["randomised"], "privacy")),
        *made("count", "task", DOCUMENTS, within(known["count"]["task"], "asks")),
        *made("discover", "task", DOCUMENTS, within(known["discover"]["task"], "asks")),
        *made("count", "plan", CHECKS, ONE_PLAN),
        *made("count", "plan", COUNTING, HISTOGRAM_PLANS),
        *made("count", "task", COUNTING, COUNT_TASKS),
        *made("sums", "plan", COUNTING, SUM_PLANS),
        *made("sums", "task", COUNTING, SUM_TASKS),
        *made("sums", "content", REPORT, lists()),
        *made("randomised", "plan", CHECKS, LOCAL_PLANS),
        *made("randomised", "task", CHECKS, LOCAL_TASKS),
        *made("discover", "plan", REPORT, DISCOVER_PLANS),
        *made("discover", "task", REPORT, DISCOVER_TASKS),
        *made("discover", "content", REPORT, known_words()),
        *made("list", "task", REPORT, LIST_TASKS),
        *made("evaluate", "plan", COUNTING, EVALUATE_PLANS),
        *made("evaluate", "task", COUNTING, evaluate_tasks()),
        *made("evaluate", "content", REPORT, models()),
    ]
