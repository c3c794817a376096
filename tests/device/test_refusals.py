"""What a device will not do, whoever asks: each refusal is a sentence, and nothing has left the device."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.device.operator import (
    CLIENT,
    ENCODED,
    HOUR,
    NOON,
    SECURE,
    Operator,
    a_plan,
    encoded_sum,
    once,
    recipe_text,
)

from tacit.data import Cache
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.train import ByJax
from tacit.device.turn import SessionOutcome
from tacit.privacy import Guarantee, Independent, Participation
from tacit.protocol.discover import DiscoverDocument, ListedWordsDocument, LocalReportsDocument
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import AggregationSettings, Plan, RoundTask, Separation, Signed
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import read_report
from tacit.protocol.signing import digest
from tacit.protocol.train import TrainDocument

Changes = dict[str, Any]
SEALED = AggregationSettings(
    kind="sealed",
    threshold=3,
    keepers=("ab" * 32, "cd" * 32),
    boxes=("12" * 32, "34" * 32),
    corrupt=1,
    contributors=(),
    honest=1,
)
OF_THREE = AggregationSettings(
    kind="sealed",
    threshold=3,
    keepers=("ab" * 32, "cd" * 32, "ef" * 32),
    boxes=("12" * 32, "34" * 32, "56" * 32),
    corrupt=1,
    contributors=("ab" * 32, "cd" * 32, "ef" * 32),
    honest=2,
)
A_QUESTION = DiscoverDocument(
    kind="discover",
    question=ListedWordsDocument(about="words", words=("pizza",)),
    reports=LocalReportsDocument(local_epsilon=1.0, contributions=1, sampler="random", randomizer="k-ary"),
)


def refused(operator: Operator, turn: SessionOutcome, why: str) -> None:
    assert turn.what == "refused" and why in turn.says, str(turn)
    assert turn.says[0].islower() and turn.says.endswith(".") and turn.spent == 0
    assert not operator.received and all(not each.content for each in operator.asked if each.method != "POST")
    assert len(operator.given_back) == len({*operator.given_back}) > 0  # another device gets the place
    assert [each.url.path for each in operator.asked if each.method == "POST"][-1] == "/v1/check-in"


# -- who signed --------------------------------------------------------------------------------------------------------


def test_a_plan_of_another_operator(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan, other = a_plan(words), OperatorKey(bytes(32))
    operator.assign(plan, operator.task(plan, 0), by=other)
    refused(operator, once(operator, cache.path, tmp_path), "not signed by the operator whose key is pinned")
    operator.give(other.plan(plan.to_json()), operator.key.signed(operator.task(plan, 0)))
    refused(operator, once(operator, cache.path, tmp_path), "the plan of run 'run-1' is not signed")
    operator.give(operator.key.plan(plan.to_json()), other.signed(operator.task(plan, 0)))
    refused(operator, once(operator, cache.path, tmp_path), "a task is not signed")


def test_a_plan_that_was_changed_on_its_way(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(words)
    weaker = plan.model_copy(update={"separation": Separation(rounds=1, timer_seconds=None, clock="start")})
    signed = operator.key.plan(plan.to_json()).model_copy(update={"document": weaker.to_json()})
    operator.give(signed, operator.key.signed(operator.task(plan, 0)))
    refused(operator, once(operator, cache.path, tmp_path), "is not signed by the operator")


def test_a_task_of_another_plan(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan, other = a_plan(words), a_plan(words, run="run-2")
    operator.assign(other, operator.task(plan, 0))
    refused(operator, once(operator, cache.path, tmp_path), "belongs to another plan than the one that came for it")


def test_a_task_whose_plan_is_not_to_be_had(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    operator.plans.clear()
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "unanswered" and "no run has this plan" in turn.says
    assert not operator.received and len(operator.given_back) == 1


def test_a_run_has_one_plan_for_ever(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    first, second = a_plan(words), a_plan(words, separation=Separation(rounds=6, timer_seconds=None, clock="start"))
    operator.assign(first, operator.task(first, 0))
    assert once(operator, cache.path, tmp_path).what == "reported"
    operator.assign(second, operator.task(second, 9))
    turn = once(operator, cache.path, tmp_path, now=NOON + 18 * HOUR)
    assert turn.what == "refused" and "a run has one plan for ever" in turn.says
    assert len(operator.received) == 1


def test_an_operator_that_is_pinned_does_not_speak_for_another(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    once(operator, cache.path, tmp_path)
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    turn = once(operator, cache.path, tmp_path, key=OperatorKey(bytes(32)).public)
    assert turn.what == "refused" and "is not signed by the operator whose key is pinned" in turn.says
    assert not operator.received


# -- what a plan promises ----------------------------------------------------------------------------------------------


def better(plan: Plan, **claims: float) -> Plan:
    return plan.model_copy(update={"privacy": plan.privacy.model_copy(update=claims)})


BAD_PLANS: dict[str, tuple[str, Callable[[str], Plan]]] = {
    "claims less zCDP than its numbers give": (
        "an operator who claims too much is not to be believed",
        lambda words: better(a_plan(words), zcdp=a_plan(words).privacy.zcdp * 0.999),  # type: ignore[operator]
    ),
    "claims a smaller epsilon": (
        "its zCDP gives",
        lambda words: better(a_plan(words), epsilon=a_plan(words).privacy.epsilon * 0.999),  # type: ignore[operator]
    ),
    "says more noise than it adds": (
        "its own numbers give",
        lambda words: a_plan(words, privacy={"noise_multiplier": 5.0}),
    ),
    "lets devices come more often than it counts": (
        "its own numbers give",
        lambda words: a_plan(
            words,
            separation=Separation(rounds=1, timer_seconds=None, clock="start"),
            privacy={"max_participations": None},
        ),
    ),
    "counts one round fewer": ("contradicts its own recipe", lambda words: a_plan(words, privacy={"rounds": 39})),
    "names another mechanism": ("contradicts its own", lambda words: a_plan(words, privacy={"mechanism": "tree"})),
    "counts a larger cohort": ("contradicts its own recipe", lambda words: a_plan(words, privacy={"report_goal": 600})),
    "promises nothing": ("promises nothing", lambda words: a_plan(words, privacy={"zcdp": None, "epsilon": None})),
    "has no separation": (
        "lets a device come in every round",
        lambda words: a_plan(
            words,
            text=recipe_text(rounds={"rounds": 4, "report_goal": 6, "min_separation": 1}),
            separation=Separation(rounds=None, timer_seconds=None, clock="start"),
        ),
    ),
    "would have code of anybody's imported": (
        "is code of somebody's own",
        lambda words: a_plan(
            words,
            text=recipe_text().replace('"blt-b400"', '"antigravity:MECHANISM"'),
            privacy={"guarantee": honest(), "mechanism": "antigravity:MECHANISM"},
        ),
    ),
    "tells everybody the seed of its noise": (
        "whoever has it takes the noise away",
        lambda words: a_plan(words, text=recipe_text(run={"seed": 3})),
    ),
    "has its mechanism still to be designed": (
        "not there in numbers",
        lambda words: a_plan(
            words,
            text=recipe_text().replace('"blt-b400"', '"blt"'),
            privacy={"guarantee": honest(), "mechanism": "blt"},
        ),
    ),
    "is no recipe": ("is no TOML", lambda words: a_plan(words).model_copy(update={"recipe": "name ="})),
    "is of another population": ("is of 'keyboards'", lambda words: a_plan(words, population="others")),
    "is of another vocabulary": ("has other words", lambda words: a_plan("ab" * 32)),
    "is longer than anybody's": ("a device reckons with", lambda words: a_plan(words, privacy={"rounds": 10**6})),
}


def honest() -> Guarantee:
    """That of the recipe, for plans whose recipe cannot be read as one."""
    limits = Participation.worst_case(40, 5)
    return Guarantee(participation=limits, strategy=Independent(), clip_norm=0.2, noise_multiplier=6.0)


@pytest.mark.parametrize("name", BAD_PLANS)
def test_a_plan_that(name: str, operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    why, made = BAD_PLANS[name]
    plan = made(words)
    operator.assign(plan, operator.task(plan, 0))
    refused(operator, once(operator, cache.path, tmp_path), why)


# -- what the owner does not accept ------------------------------------------------------------------------------------

STRICT: dict[str, tuple[str, Changes, Changes]] = {
    "kinds": ("the policy allows to evaluate", {"kinds": ("evaluate",)}, {}),
    "aggregation": ("the policy allows sealed", {"aggregation": ("sealed",)}, {}),
    "zcdp": ("above largest_zcdp=0.01", {"largest_zcdp": 0.01}, {}),
    "epsilon": ("above largest_epsilon=0.5", {"largest_epsilon": 0.5}, {}),
    "delta": ("above largest_delta=1e-10", {"largest_delta": 1e-10}, {}),
    "noise": ("below smallest_noise_multiplier=7", {"smallest_noise_multiplier": 7.0}, {}),
    "clip norm": ("above largest_clip_norm=0.1", {"largest_clip_norm": 0.1}, {}),
    "cohort": ("below smallest_cohort=7", {"smallest_cohort": 7}, {}),
    "model": ("above largest_model_mb=0.001", {"largest_model_mb": 0.001}, {}),
    "report": ("above largest_report_mb=0.001", {"largest_report_mb": 0.001}, {}),
    "memory": ("above largest_memory_mb=0.001", {"largest_memory_mb": 0.001}, {}),
    "operations": ("above largest_operations=1000", {"largest_operations": 1000.0}, {}),
    "length of a round": ("above longest_round_hours=0.5", {"longest_round_hours": 0.5}, {}),
    "budget": ("and budget_zcdp=0.001", {"budget_zcdp": 0.001}, {}),
    "decryptors": (
        "none of the policy's decryptors",
        {"decryptors": ("ef" * 32,)},
        {"text": recipe_text(**SECURE), "aggregation": SEALED},
    ),
    "noise of the operator": ("has the operator add the noise", {"noise_by_decryptors": True}, {}),
    "noise of the operator in sealed sums": (
        "has the operator add the noise",
        {"noise_by_decryptors": True},
        {"text": recipe_text(**SECURE), "aggregation": SEALED},
    ),
    "many that have to be honest": (
        "relies on 2 honest decryptors, above honest_decryptors=1",
        {"noise_by_decryptors": True},
        {"text": recipe_text(**SECURE), "aggregation": OF_THREE},
    ),
    "corrupt decryptors": (
        "below corrupt_decryptors=2",
        {"corrupt_decryptors": 2},
        {"text": recipe_text(**SECURE), "aggregation": SEALED},
    ),
}


@pytest.mark.parametrize("name", STRICT)
def test_the_owner_does_not_accept(name: str, operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    why, rules, of_plan = STRICT[name]
    plan = a_plan(words, **of_plan)
    operator.assign(plan, operator.task(plan, 0))
    refused(operator, once(operator, cache.path, tmp_path, policy=Policy(**rules)), why)


# -- what a task asks --------------------------------------------------------------------------------------------------

BAD_TASKS: dict[str, tuple[str, Changes]] = {
    "clips above its plan": ("clips at 0.3, and its plan at 0.2", {"clip_norm": 0.3}),
    "is beyond the plan's rounds": ("is beyond the 40 rounds", {"round": 40, "opens": NOON}),
    "is over": ("ended", {"opens": NOON - 2 * HOUR}),
    "is of tomorrow": ("opens in", {"opens": NOON + HOUR}),
    "lasts a month": ("above longest_round_hours=24", {"opens": NOON, "deadline": NOON + 700 * HOUR}),
    "is of another run": ("is for another run", {"run": "run-9"}),
    "is of another kind": ("is for another run", {"asks": A_QUESTION}),
    "asks for a bit that its plan does not": ("asks for a bit", {"clip_estimate": 0.1}),
    "asks for the loss": ("asks for the training loss", {"loss_bound": 10.0}),
    "clips below all digits": ("which float32 does not resolve", {"clip_norm": 1e-44}),
    "trains on more than fits": (
        "above 10,000,000",
        {"client": CLIENT.model_copy(update={"sentences": 100_000, "words": 100_000})},
    ),
    "trains for ever": ("above 10,000,000", {"client": CLIENT.model_copy(update={"epochs": 100_000, "words": 100})}),
    "takes the memory of many machines": (  # JAX asked for 112 GB
        "GB of memory in a step, above largest_memory_mb=1000",
        {"client": CLIENT.model_copy(update={"batch_size": 100_000, "sentences": 100_000, "words": 99})},
    ),
    "wants it encoded": ("wants a encoded report, and its plan plain ones", {"encoded": encoded_sum()}),
}


def test_a_task_that_clips_the_loss_elsewhere_than_its_plan(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    """The noise is made for the plan's bound; what is sent is the loss less half of what is asked."""
    plan = a_plan(words, text=recipe_text(training_loss={"bound": 4.0, "stddev": 40.0}))
    for bound in (4.5, 1e6):
        operator.assign(plan, operator.task(plan, 0, loss_bound=bound))
        refused(operator, once(operator, cache.path, tmp_path), "and its plan at 4.0")


@pytest.mark.parametrize("name", BAD_TASKS)
def test_a_task_that(name: str, operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    why, changed = BAD_TASKS[name]
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, changed.pop("round", 0), **changed))
    refused(operator, once(operator, cache.path, tmp_path), why)


BAD_ENCODINGS: dict[str, tuple[str, Changes]] = {
    "wants it in the clear": ("wants a plain report, and its plan encoded ones", {"encoded": None}),
    "opens sums of fewer": ("opens sums of 2, and its plan of 3", {"encoded": encoded_sum(threshold=2)}),
    "encodes for another clip norm": ("encodes for 0.1", {"encoded": encoded_sum(0.1)}),
    "rounds more coarsely": ("lengthens updates by the factor", {"encoded": encoded_sum(scale=100.0)}),
}


@pytest.mark.parametrize("name", BAD_ENCODINGS)
def test_an_encoded_task_that(name: str, operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    why, changed = BAD_ENCODINGS[name]
    plan = a_plan(words, text=recipe_text(**SECURE), aggregation=ENCODED)
    operator.assign(plan, operator.task(plan, 0, **changed))
    refused(operator, once(operator, cache.path, tmp_path), why)


def test_a_round_that_comes_too_soon(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan, whats = a_plan(words), []
    for round in (0, 4, 5):
        operator.assign(plan, operator.task(plan, round))
        turn = once(operator, cache.path, tmp_path, now=NOON + 2 * round * HOUR)
        whats.append(turn.what)
        assert turn.what == "reported" or "wait for round 5" in turn.says
    assert whats == ["reported", "refused", "reported"]


def test_an_old_task_again(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    """Replayed, and with its time made new by an operator who signs anything."""
    plan = a_plan(words)
    operator.assign(plan, task := operator.task(plan, 7))
    assert once(operator, cache.path, tmp_path, now=task.opens).what == "reported"
    operator.assign(plan, task)
    again = once(operator, cache.path, tmp_path, now=task.opens + 60)
    assert again.what == "refused" and "took part in round 7, and two of its rounds are 5 apart" in again.says
    operator.assign(plan, operator.task(plan, 1, opens=task.opens))
    backwards = once(operator, cache.path, tmp_path, now=task.opens + 60)
    assert backwards.what == "refused" and "took part in round 7, and two of its rounds are 5 apart" in backwards.says
    assert len(operator.received) == 1


def test_a_model_that_is_another(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(words)
    task = operator.task(plan, 0)
    operator.model = operator.model + 1  # another file than the task was signed for
    operator.assign(plan, task)
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "unanswered" and "its SHA-256 differs" in turn.says and turn.spent == 0
    assert len(operator.given_back) == 1


def test_a_model_of_another_size(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(words)
    task = operator.task(plan, 0)
    smaller = task.question(TrainDocument).model_copy(
        update={"parameters": task.question(TrainDocument).parameters - 1}
    )
    operator.assign(plan, task.model_copy(update={"asks": smaller}))
    refused(operator, once(operator, cache.path, tmp_path), "the file is not one tensor")


def test_its_own_answers_are_read_strictly(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    for answer, why in (
        ({"answer": "come_back", "after_s": 1.0}, "before_s"),
        ({"answer": "come_back", "after_s": -1.0, "before_s": 1.0}, "greater than or equal to 0"),
        ({"answer": "run", "command": "rm"}, "answer"),
        ([], "the document: "),
    ):
        operator.answers.append(httpx.Response(200, content=json.dumps(answer)))
        turn = once(operator, cache.path, tmp_path)
        assert turn.what == "unanswered" and why in turn.says, turn.says


def test_a_newer_plan_is_none_of_this_version(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(words)
    task = operator.task(plan, 0)
    for other in (0, 1, 3):
        newer = operator.key.plan(plan.to_json().replace('"version":2', f'"version":{other}'))
        operator.give(newer, operator.key.signed(task.model_copy(update={"plan": digest(newer.document)})))
        why = "the plan of run 'run-1' cannot be followed: version: "
        refused(operator, once(operator, cache.path, tmp_path), why)


# -- what later versions say -------------------------------------------------------------------------------------------


def later(document: Plan | RoundTask, change: Callable[[dict[str, Any]], Any]) -> str:
    """Its text as another version writes it."""
    said = json.loads(document.to_json())
    change(said)
    return json.dumps(said, indent=1).replace('"run "', '"run"')


def gives(operator: Operator, plan: str, task: RoundTask, change: Callable[[dict[str, Any]], Any]) -> None:
    """A plan and a task, texts of another version that the operator signed."""
    text = later(task.model_copy(update={"plan": digest(plan)}), change)
    signed = Signed(document=text, signature=operator.key.signature("task", text))
    answer = {"answer": "assignment", "assignment": "ab" * 16, "secret": "ab" * 32, "signed_task": signed.model_dump()}
    operator.plans[digest(plan)] = operator.key.plan(plan)
    operator.log.append(plan_entry(digest(plan)))
    operator.answers.append(httpx.Response(200, json=answer))


NOTHING_MORE: Callable[[dict[str, Any]], Any] = lambda said: None  # noqa: E731
STRANGE: dict[str, tuple[Callable[[dict[str, Any]], Any], Callable[[dict[str, Any]], Any], str]] = {
    "a critical key of the plan": (
        lambda said: said.update(pace=1, critical=["pace"]),
        NOTHING_MORE,
        "the plan of run 'run-1' cannot be followed: the document: its key 'pace' is critical, and this version of "
        "tacit does not know it; a later one may.",
    ),
    "one deep inside": (
        lambda said: said["privacy"].update(unit="sentence", critical=["unit"]),
        NOTHING_MORE,
        "cannot be followed: privacy.training: its key 'unit' is critical, and this version of tacit does not know it",
    ),
    "one of the task's question": (
        NOTHING_MORE,
        lambda said: said["asks"]["client"].update(noise=0, critical=["noise"]),
        "a task of the operator cannot be followed: asks.train.client: its key 'noise' is critical",
    ),
    "a kind of promise": (
        lambda said: said["privacy"].update(kind="renyi"),
        NOTHING_MORE,
        "privacy: it is of the kind 'renyi', and this version of tacit does not know it; a later one may",
    ),
    "a kind of plan": (
        lambda said: said.update(kind="dance"),
        NOTHING_MORE,
        "run 'run-1' is to dance, which this device does not know",
    ),
    "a kind of task": (
        NOTHING_MORE,
        lambda said: said.update(asks={"kind": "dance", "steps": 3}),
        "a task of the operator cannot be followed: asks: it is of the kind 'dance'",
    ),
    "a key twice": (
        NOTHING_MORE,
        lambda said: said.update({"run ": said["run"]}),
        "a task of the operator cannot be followed: the document: an object has the key 'run' twice",
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_a_device_does_not_know_and_must_is_refused(
    name: str, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    of_plan, of_task, why = STRANGE[name]
    plan = a_plan(words)
    gives(operator, later(plan, of_plan), operator.task(plan, 0), of_task)
    refused(operator, once(operator, cache.path, tmp_path), why)


ANY = st.none() | st.booleans() | st.floats(0, 1) | st.text("abc") | st.lists(st.integers(0, 9), max_size=2)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_it_need_not_know_changes_nothing_that_it_does(
    data: st.DataObject, words: str, cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def more(said: dict[str, Any]) -> None:
        """Other keys at any depth, weaker ones among them."""
        for each in (said, *(inner for inner in said.values() if isinstance(inner, dict))):
            each.update(data.draw(st.dictionaries(st.sampled_from(["zcdp_", "noise", "Epsilon", "critical_"]), ANY)))

    plan, traces = a_plan(words), []
    for change in (NOTHING_MORE, more):
        operator = Operator()
        gives(operator, later(plan, change), operator.task(plan, 0), change)
        turn = once(operator, cache.path, tmp_path_factory.mktemp("state"))
        paths = [(each.method, each.url.path.split("/")[2]) for each in operator.asked]
        traces.append((turn.what, turn.spent, operator.received, paths))
    assert traces[0] == traces[1] and traces[0][0] == "reported"


def test_what_is_held_back_for_judging_is_not_trained_on(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    """The cache has no times, so that with a split nothing is known to be old enough. Who asks does not learn that."""
    plan = a_plan(words)
    operator.assign(plan, task := operator.task(plan, 0))
    kept = Policy(split="time:0.8")
    text = OwnText(cache.path, None, kept.temporal_split)
    turn = once(operator, cache.path, tmp_path, policy=kept, text=text, trainer=ByJax(text))
    assert turn.what == "reported" and turn.spent > 0, turn.says
    ((assignment, body),) = operator.received
    assert not read_report(body, task.asks.shape(), assignment).values.any()
