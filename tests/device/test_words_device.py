"""A device that is asked for words reckons the price itself, answers once, and refuses what its plan does not say."""

import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tomli_w
from safetensors.numpy import load
from tests.support.device.operator import NOON, Operator, once
from tests.support.server.words import KNOWN, stream

from tacit.data import Cache
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.turn import SessionOutcome
from tacit.discovery.device_part import reports
from tacit.discovery.question import PrefixQuestion
from tacit.discovery.settings import LocalReportSettings
from tacit.jobs.discover.job import typed_by
from tacit.protocol.discover import DiscoverDocument, ListedWordsDocument, LocalReportsDocument, PrefixesDocument
from tacit.protocol.messages import UNATTESTED, AggregationSettings, Content, LocalPrivacy, Plan, RoundTask, Separation
from tacit.protocol.signing import digest
from tacit.randomizers import device_generator
from tacit.secure_aggregation.one_message.simulation import OneMessageParties
from tacit.text.alphabet import Alphabet
from tacit.text.vocabulary import Provenance, Vocabulary

SENT = {"local_epsilon": 1.0, "contributions": 2, "sampler": "random", "randomizer": "subset-selection"}
LETTERS = "abcdefghw"
ROUNDS = 4


@dataclass
class Asker(Operator):
    """Asks for words that these known ones lack."""

    known: Vocabulary = KNOWN

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/v1/models/"):
            return httpx.Response(200, content=self.known.to_json().encode())
        return super().__call__(request)


def plan_of(*, claims: dict[str, Any] | None = None, sent: dict[str, Any] | None = None, **changed: Any) -> Plan:
    privacy = {
        "kind": "local",
        "zcdp": 2.0,
        "local_epsilon": 2.0,
        "report_goal": 8,
        "rounds": ROUNDS,
        "max_participations": 1,
    }
    values: dict[str, Any] = {
        "version": 2,
        "kind": "discover",
        "population": "keyboards",
        "run": "words",
        "recipe": tomli_w.dumps({"reports": {**SENT, **(sent or {})}}),
        "code": "ab" * 32,
        "privacy": LocalPrivacy(**privacy | (claims or {})),
        "separation": Separation(rounds=ROUNDS, timer_seconds=None, clock="start"),
        "aggregation": AggregationSettings(
            kind="plain", threshold=8, keepers=(), boxes=(), corrupt=0, contributors=(), honest=1
        ),
        "vocabulary": KNOWN.sha256,
        "attestation": UNATTESTED,
        "enrolment": "none",
    }
    return Plan(**values | changed)


NUMBERS = itertools.count(1)
PREFIXES = PrefixesDocument(about="prefixes", prefixes=("",), alphabet=LETTERS, depth=4, found=())


def task_of(plan: Plan, round: int = 0, *, sent: dict[str, Any] | None = None, question: Any = PREFIXES) -> RoundTask:
    content = KNOWN.to_json().encode()
    name = hashlib.sha256(content).hexdigest()
    return RoundTask(
        run=plan.run,
        plan=digest(plan.to_json()),
        round=round,
        attempt=0,
        task=f"{next(NUMBERS):032x}",
        content=Content(sha256=name, bytes=len(content), path=f"/v1/models/{name}"),
        asks=DiscoverDocument(
            kind="discover", question=question, reports=LocalReportsDocument(**{**SENT, **(sent or {})})
        ),
        sealed=None,
        opens=NOON,
        deadline=NOON + 3600.0,
    )


def answered(asker: Asker, cache: Cache, state: Path, plan: Plan, task: RoundTask, **more: Any) -> SessionOutcome:
    asker.assign(plan, task)
    text = OwnText(cache.path, None, None)
    return once(asker, cache.path, state, text=text, **more)


def test_what_leaves_is_the_votes_of_its_own_reports_and_is_paid_for(cache: Cache, tmp_path: Path) -> None:
    asker, plan = Asker(), plan_of()
    turn = answered(asker, cache, tmp_path, plan, task_of(plan), draw=stream("a device"))
    assert turn.what == "reported", turn.says
    assert turn.zcdp == turn.spent == 2.0 == (1.0 * 2) ** 2 / 2
    question = PrefixQuestion(prefixes=("",), alphabet=Alphabet(LETTERS), depth=4)
    settings = LocalReportSettings(**SENT)  # type: ignore[arg-type]
    typed = typed_by(cache, KNOWN, split="train").of(0)
    assert typed == OwnText(cache.path, None, None).unknown_words(frozenset(KNOWN.words))
    draw = stream("a device")
    reports({}, question, settings, device_generator(draw))  # the one that says nothing is made first
    drawn = reports(typed, question, settings, device_generator(draw))
    ((_, body),) = asker.received
    np.testing.assert_array_equal(load(body)["words"], settings.randomizer_for(question.domain).votes(drawn))
    header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    assert set(header["__metadata__"]) == {"assignment", "usable"}


def test_it_answers_a_run_once(cache: Cache, tmp_path: Path) -> None:
    asker, plan = Asker(), plan_of()
    assert answered(asker, cache, tmp_path, plan, task_of(plan, 0)).what == "reported"
    for task in (task_of(plan, 0), task_of(plan, 1), task_of(plan, ROUNDS - 1)):
        turn = answered(asker, cache, tmp_path, plan, task)
        assert turn.what == "refused" and turn.spent == 2.0, turn.says
    assert len(asker.received) == 1
    other = plan_of(run="more-words")
    assert answered(asker, cache, tmp_path, other, task_of(other)).spent == 4.0
    third = plan_of(run="still-more")
    turn = answered(asker, cache, tmp_path, third, task_of(third))
    assert turn.what == "refused" and "budget_zcdp=4" in turn.says


def test_a_second_attempt_costs_what_it_reveals_whatever_decryptors_do(cache: Cache, tmp_path: Path) -> None:
    """What a device randomises itself is promised to hold without them, so each report is paid for: no second one."""
    shape, asker = task_of(plan_of()).asks.shape(), Asker()
    sizes = {"dimension": shape.length, "largest": shape.largest or 0, "seed": 1, "report_goal": 8}
    settings = OneMessageParties.from_settings(8, tmp_path / "decryptors", **sizes).settings
    said = AggregationSettings(
        kind="sealed",
        threshold=8,
        keepers=tuple(each.hex() for each in settings.decryptors),
        boxes=tuple(each.hex() for each in settings.boxes),
        corrupt=1,
        contributors=(),
        honest=1,
    )
    plan = plan_of(aggregation=said)
    attempts = [replace(settings, plan=bytes.fromhex(digest(plan.to_json())), seed=bytes([at]) * 32) for at in range(2)]
    tasks = [task_of(plan).model_copy(update={"sealed": each.to_bytes().hex()}) for each in attempts]
    first, second = (answered(asker, cache, tmp_path / "state", plan, each) for each in tasks)
    assert (first.what, first.spent) == ("reported", 2.0), first.says
    assert (second.what, second.spent) == ("refused", 2.0) and "took part in round 0" in second.says
    assert len(asker.received) == 1


OTHER = Vocabulary(words=("other",), provenance=Provenance(kind="public", description="another"))
REFUSED: dict[str, tuple[str, Callable[[], tuple[Plan, RoundTask]], dict[str, Any]]] = {}


def refused(name: str, why: str, of_plan: dict[str, Any], of_task: dict[str, Any], **more: Any) -> None:
    def made() -> tuple[Plan, RoundTask]:
        plan = plan_of(**of_plan)
        return plan, task_of(plan, **of_task)

    REFUSED[name] = why, made, more


refused("claims a smaller epsilon", "claims local epsilon 1.9", {"claims": {"local_epsilon": 1.9}}, {})
refused("claims a smaller price", "claims zCDP 1.9", {"claims": {"zcdp": 1.9}}, {})
refused("claims nothing", "claims zCDP None", {"claims": {"zcdp": None}}, {})
refused("lets it answer twice", "answer more than once", {"claims": {"max_participations": 2}}, {})
refused(
    "has rounds that it may come back in",
    "answer more than once",
    {"separation": Separation(rounds=2, timer_seconds=None, clock="start")},
    {},
)
refused("sends more by its recipe", "its own numbers give 3", {"sent": {"contributions": 3}}, {})
refused("has a randomizer that nobody knows", "'magic' is unknown", {"sent": {"randomizer": "magic"}}, {})
refused("says nothing of reports", "no section [reports]", {"recipe": "name = 'words'"}, {})
refused("randomises less in the round", "and its plan by", {}, {"sent": {"local_epsilon": 1.5}})
refused("wants more reports in the round", "and its plan by", {}, {"sent": {"contributions": 3}})
refused("wants another randomizer", "and its plan by", {}, {"sent": {"randomizer": "k-ary"}})
refused("chooses otherwise", "sampler greedy", {}, {"sent": {"sampler": "greedy"}})
refused("has other known words", "other known words", {"vocabulary": OTHER.sha256}, {})
refused(
    "costs more than the policy allows",
    "above largest_local_epsilon=1",
    {},
    {},
    policy=Policy(largest_local_epsilon=1.0),
)
refused("is of a kind that the policy forbids", "the policy allows to train", {}, {}, policy=Policy(kinds=("train",)))
refused(
    "asks for prefixes of several lengths",
    "asks nothing that can be answered",
    {},
    {"question": PREFIXES.model_copy(update={"prefixes": ("a", "bc")})},
)
refused(
    "lists a word twice",
    "asks nothing that can be answered",
    {},
    {"question": ListedWordsDocument(about="words", words=("a", "a"))},
)

MANY = {"local_epsilon": 1e-5, "contributions": 100_000}
WIDE = PREFIXES.model_copy(update={"alphabet": "".join(map(chr, range(0x4E00, 0x4E00 + 5_000)))})
refused(
    "asks for more reports than a device can draw",
    "support 250,100,000 of them together",
    {"sent": MANY},
    {"sent": MANY, "question": WIDE},
)


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_sent_where_it(name: str, cache: Cache, tmp_path: Path) -> None:
    why, made, more = REFUSED[name]
    asker, (plan, task) = Asker(), made()
    turn = answered(asker, cache, tmp_path, plan, task, **more)
    assert turn.what == "refused" and why in turn.says, turn.says
    assert not asker.received and turn.spent == 0


def test_who_counts_listed_words_chooses_at_random(cache: Cache, tmp_path: Path) -> None:
    """As `discover` asks them, whatever found the words."""
    asker, plan = Asker(), plan_of(sent={"sampler": "greedy"})
    task = task_of(plan, question=ListedWordsDocument(about="words", words=("waa", "wab")))
    assert answered(asker, cache, tmp_path, plan, task).what == "reported"
    assert len(load(asker.received[0][1])["words"]) == 4
