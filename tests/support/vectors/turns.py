"""Vectors of turns: a server's answers in order, and what a device asks, writes and comes to; with a death anywhere."""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.vectors.case import Case, case, file_of
from tests.support.vectors.prices import shortened, training_plan
from tests.support.vectors.scripted_turn import CODE, NOON, UPDATE, Scripted, Steps, driven, standing
from tests.support.vectors.sealed import DECRYPTORS, sealed_settings
from tests.support.vectors.signed import OTHER, OURS, shown_log
from tests.support.vectors.tokens import EPOCH, signer, token_key

from tacit.privacy.encoding_choice import encoding_within
from tacit.protocol.bodies import ReportBody, report_body
from tacit.protocol.key_rotation import signed_key_rotation
from tacit.protocol.log_proofs import key_rotation_entry, plan_entry
from tacit.protocol.messages import Plan, Receipt, RoundTask
from tacit.protocol.one_message_shape import seed_of
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import model_body
from tacit.protocol.signing import digest
from tacit.protocol.token_format import token_key_entry
from tacit.secure_aggregation.secrets import seeded

RULE = "#what-a-device-asks"
SEALED = "docs/secure-aggregation-protocols.md#attempts-at-one-round"
REFUSES, TEXT, FINAL = "#what-a-device-checks", "#what-text-decides", "#what-is-final"
HOUR = 3600.0
MOST_SHOWN = 1 << 14  # bytes of a body; a sealed report follows from its draws
MEMORY = Path("/dev/shm")  # Linux's: two hundred records are flushed to it at once, and a disk takes a minute
MODEL = model_body(np.array([0.5, -0.5, 0.25, 0.0], np.float32))
PROBLEM = {"title": "It is so.", "detail": "A test."}
STATUS = {"late": 410, "refused": 422, "other-report": 409, "busy": 503, "too-slow": 408, "failed": 500, "token": 401}
STATUS |= {"not-found": 404, "credential": 401, "malformed": 400}
COME_BACK = Scripted(200, b'{"answer": "come_back", "after_s": 60, "before_s": 120}')
NO_CONTENT = Scripted(204)


def problem(kind: str) -> Scripted:
    """An error in the protocol's form."""
    said = {"type": f"tacit:{kind}", **PROBLEM, "status": STATUS[kind]}
    return Scripted(STATUS[kind], json.dumps(said).encode())


def a_plan(**changed: Any) -> Plan:
    """Independent noise: each participation costs 1/72."""
    plan, _ = training_plan({"name": "independent"}, rounds=40, apart=5)
    return Plan.from_json(json.dumps({**json.loads(plan.to_json()), **changed}))


def _merged(said: Any, changed: Mapping[str, Any]) -> Any:
    found = dict(said)
    for key, value in changed.items():
        found[key] = (
            _merged(found[key], value) if isinstance(value, Mapping) and isinstance(found.get(key), dict) else value
        )
    return found


def changed_plan(**changed: Any) -> Plan:
    """The plan with other values at some places."""
    return Plan.from_json(json.dumps(_merged(json.loads(a_plan().to_json()), changed)))


def a_task(of: Plan, /, round: int = 0, attempt: int = 0, **changed: Any) -> RoundTask:
    """Opens two hours a round after noon, and ends an hour later."""
    number = hashlib.sha256(f"{of.run} {round} {attempt}".encode()).hexdigest()[:32]
    sha256 = hashlib.sha256(MODEL).hexdigest()
    client = {"epochs": 1, "batch_size": 4, "learning_rate": 0.5, "sentences": 8, "words": 6}
    asks = {"kind": "train", "parameters": 4, "client": {**client, "proximal": 0.0, "precision": "float32"}}
    asks |= {"clip_norm": 0.2, "clip_estimate": None, "loss_bound": None, "encoded": None}
    said = {
        **{"run": of.run, "plan": digest(of.to_json()), "round": round, "attempt": attempt, "task": number},
        **{"content": {"sha256": sha256, "bytes": len(MODEL), "path": f"/v1/models/{sha256}"}, "asks": asks},
        **{"sealed": None, "opens": NOON + 2 * HOUR * round, "deadline": NOON + 2 * HOUR * round + HOUR},
    }
    return RoundTask.from_json(json.dumps(_merged(said, changed)))


def assignment_of(task: RoundTask) -> str:
    """The place's identifier."""
    return hashlib.sha256(f"place {task.task}".encode()).hexdigest()[:32]


def assigned(task: RoundTask, *, by: OperatorKey = OURS) -> Scripted:
    """A place in this task."""
    text = task.to_json()
    signed = {"document": text, "signature": by.signature("task", text)}
    said = {"answer": "assignment", "assignment": assignment_of(task), "secret": "78" * 32, "signed_task": signed}
    return Scripted(200, json.dumps(said).encode())


def planned(plan: Plan, *, by: OperatorKey = OURS, evidence: str | None = None) -> Scripted:
    """The signed plan."""
    text = plan.to_json()
    said = {"document": text, "signature": by.signature("plan", text), "evidence": evidence}
    return Scripted(200, json.dumps(said).encode())


def logs(*entries: str, by: OperatorKey = OURS, **head: Any) -> Scripted:
    """The log of these lines."""
    return Scripted(200, json.dumps(shown_log(entries, by, **head)).encode())


def log_of(*plans: Plan) -> Scripted:
    """The log with these plans."""
    return logs(*(plan_entry(digest(plan.to_json())) for plan in plans))


FILE = Scripted(200, MODEL)


def body_of(task: RoundTask, update: Sequence[float] = UPDATE) -> bytes:
    """The report that leaves."""
    return report_body(ReportBody(np.array(update, np.float32), True, None, None), assignment_of(task))


def receipt(task: RoundTask, *, by: OperatorKey = OURS, update: Sequence[float] = UPDATE, **changed: str) -> Scripted:
    """For its report."""
    sha256 = hashlib.sha256(body_of(task, update)).hexdigest()
    said = {"assignment": assignment_of(task), "sha256": sha256, "received": True, **changed}
    text = Receipt.from_json(json.dumps(said)).to_json()
    signed = {"document": text, "signature": by.signature("receipt", text)}
    return Scripted(200, json.dumps(signed).encode())


def whole(plan: Plan, task: RoundTask, *behind: Scripted) -> list[Scripted]:
    """All answers of a turn in which a device takes part."""
    return [assigned(task), planned(plan), log_of(plan), FILE, *(behind or (receipt(task),))]


@dataclass
class Turn:
    """One turn of a scenario."""

    answers: Sequence[Scripted]
    now: float = NOON
    trainer: str = "trains"
    code: str | None = None
    dies_after: int | None = None
    first_time: bool = True


@dataclass
class Bodies:
    """Texts and files by a short name, each once."""

    found: dict[bytes, str] = field(default_factory=dict)

    def name(self, body: bytes) -> str:
        if len(body) > MOST_SHOWN:
            return f"{len(body)} bytes with the SHA-256 {hashlib.sha256(body).hexdigest()}"
        return self.found.setdefault(body, f"b{len(self.found)}")

    def to_plain(self) -> dict[str, Any]:
        def shown(body: bytes) -> dict[str, str]:
            try:
                return {"text": body.decode("ascii")} if b"\0" not in body else {"hex": body.hex()}
            except UnicodeDecodeError:
                return {"hex": body.hex()}

        return {name: shown(body) for body, name in self.found.items()}


def _played(turns: Sequence[Turn], policy: Mapping[str, Any], bodies: Bodies) -> list[dict[str, Any]]:
    """What happens, turn by turn, in one state folder."""
    found = []
    draw = seeded(b"tacit vectors of turns".ljust(32))
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        folder = Path(place)
        for number, turn in enumerate(turns):
            steps = Steps(turn.dies_after)
            outcome = driven(
                folder,
                turn.answers,
                steps,
                now=turn.now,
                key=OURS.public,
                policy=policy,
                trainer=turn.trainer,
                first_time=turn.first_time and number == 0,
                code=turn.code,
                draw=draw,
                name=bodies.name,
            )
            said: dict[str, Any] = {"now": turn.now, "trainer": turn.trainer, "code": turn.code, "steps": steps.said}
            if number == 0:
                said["first_time"] = turn.first_time
            if steps.draws:
                said["draws"] = steps.draws
            if outcome is None:
                said["died"] = True
            else:
                said["outcome"] = {"what": outcome.what, "wait": list(outcome.wait), "says": outcome.says}
            said["record"] = standing(folder, turn.now, policy)
            found.append(_shortened(said))
    return found


def _shortened(said: Any) -> Any:
    """Costs to twelve digits: other numbers here have fewer."""
    if isinstance(said, float):
        return shortened(said) if said < 1e6 else said
    if isinstance(said, dict):
        return {key: _shortened(value) for key, value in said.items()}
    return [_shortened(value) for value in said] if isinstance(said, list) else said


Scenario = tuple[str, str, dict[str, Any], Sequence[Turn]]  # name, rule, policy, turns


def _sent() -> list[Scenario]:
    """What a server may answer to a check-in and to a report."""
    plan = a_plan()
    task = a_task(plan)
    html, other = Scripted(200, b"<h1>Sign in</h1>"), {"sha256": "ab" * 32}
    gone = Scripted(410, json.dumps({"type": "tacit:gone", **PROBLEM, "status": 410}).encode())
    twice = Scripted(401, json.dumps({"type": "tacit:late", **PROBLEM, "status": 410}).encode())
    broke, nobody = Scripted(None), Scripted(None, unsent=True)
    good = receipt(task)
    reports: dict[str, list[Scripted]] = {
        "a receipt": [good],
        "a receipt by another key, then a good one": [receipt(task, by=OTHER), good],
        "a receipt of another report, then a good one": [receipt(task, **other), good],
        "a receipt for another place, then a good one": [receipt(task, assignment="ab" * 16), good],
        "a page in HTML, then a receipt": [html, good],
        "an error in HTML, then a receipt": [Scripted(502, html.body), good],
        "a redirect, then a receipt": [Scripted(302), good],
        "an unknown type, then a receipt": [gone, good],
        "another status than the document's, then a receipt": [twice, good],
        "busy, then a receipt": [problem("busy"), good],
        "too slow, then a receipt": [problem("too-slow"), good],
        "failed, then a receipt": [problem("failed"), good],
        "no connection, then a receipt": [nobody, good],
        "a broken connection, then a receipt": [broke, good],
        "four that are not final, then a receipt": [broke, html, problem("busy"), nobody, good],
        "too late": [problem("late")],
        "refused": [problem("refused")],
        "another report counts": [problem("other-report")],
        "the place is unknown": [problem("credential")],
        "malformed": [problem("malformed")],
    }
    found: list[Scenario] = [
        (f"to a report: {name}", FINAL, {}, [Turn(whole(plan, task, *answers))]) for name, answers in reports.items()
    ]
    short = a_task(plan, deadline=NOON + 14)  # held back a quarter of it
    for name, one in (("no connection", nobody), ("a broken connection", broke)):
        answers = [assigned(short), planned(plan), log_of(plan), FILE, *([one] * 4)]
        found.append((f"to a report: {name}, until the round is over", "#what-is-final", {}, [Turn(answers)]))
    answers = [assigned(short), planned(plan), log_of(plan), FILE, nobody, broke, nobody, nobody]
    found.append(("to a report: one broken connection among none, until it is over", FINAL, {}, [Turn(answers)]))
    check_ins: dict[str, list[Scripted]] = {
        "come back": [COME_BACK],
        "come back in a year": [Scripted(200, b'{"answer": "come_back", "after_s": 31536000, "before_s": 31536001}')],
        "come back before after": [Scripted(200, b'{"answer": "come_back", "after_s": 60, "before_s": 6}')],
        "no connection": [nobody],
        "HTML": [html],
        "busy": [problem("busy")],
        "a token is needed, and there is no code": [problem("token"), *_token_answers(plan)[1:3]],
    }
    found += [(f"to a check-in: {name}", "#documents", {}, [Turn(each)]) for name, each in check_ins.items()]
    waits = [Turn([Scripted(None, unsent=True)], NOON + 10 * number) for number in range(3)]
    found.append(("to check-ins: nothing, each by a process of its own", "#documents", {}, waits))
    for name, trainer in (("text cannot be read", "fails"), ("the update is not finite", "not finite")):
        zeros = receipt(task, update=[0.0] * 4)
        found.append((f"{name}: the zero update", TEXT, {}, [Turn(whole(plan, task, zeros), trainer=trainer)]))
    at_once = [Turn(whole(plan, task))]
    return [*found, ("sent at once, as the owner likes", TEXT, {"send_after_s": 0.0}, at_once)]


def _refusals() -> list[Scenario]:
    """What a device refuses, and how far it asks before."""
    plan = a_plan()
    name = digest(plan.to_json())
    good, line = a_task(plan), plan_entry(name)
    gives_back, none = [NO_CONTENT], problem("not-found")
    fetched = [planned(plan), log_of(plan)]
    found: list[Scenario] = []

    def refuses(title: str, *answers: Scripted, rule: str = REFUSES, **policy: Any) -> None:
        found.append((f"gives its place back: {title}", rule, policy, [Turn(answers)]))

    refuses("a task that another key signed", assigned(good, by=OTHER), *gives_back, none)
    refuses("a plan that another key signed", assigned(good), planned(plan, by=OTHER), *gives_back)
    refuses("another plan than the task's", assigned(good), planned(changed_plan(run="r2")), *gives_back)
    refuses("no plan", assigned(good), none, *gives_back)
    refuses("the plan is not in the log", assigned(good), planned(plan), logs("plan " + "ab" * 32), *gives_back)
    refuses("the log has another root", assigned(good), planned(plan), logs(line, root="ab" * 32), *gives_back)
    refuses("another key signed the log's head", assigned(good), planned(plan), logs(line, by=OTHER), *gives_back)
    refuses("no log", assigned(good), planned(plan), none, *gives_back)
    refuses("no answer for the log", assigned(good), planned(plan), Scripted(None), *gives_back)
    plans: dict[str, dict[str, Any]] = {
        "another population": {"population": "en"},
        "other words": {"vocabulary": "ab" * 32},
        "an unknown kind": {"kind": "dance"},
        "a server that something attests": {"attestation": {"server": "tpm"}},
        "devices that something attests": {"attestation": {"devices": "tpm"}},
        "a zCDP that is too low": {"privacy": {"zcdp": 0.1}},
        "a seed that everybody knows": {"recipe": a_plan().recipe + "\n[run]\nseed = 7\n"},
        "no separation": {"separation": {"rounds": None}, "privacy": {"zcdp": 1.0, "epsilon": 100.0}},
        "encoded sums, where the recipe has none": {"aggregation": {"kind": "encoded"}},
        "a key of an object that is critical": {"separation": {"weekdays": [6], "critical": ["weekdays"]}},
    }
    for title, changed in plans.items():
        text = json.dumps(_merged(json.loads(plan.to_json()), changed))
        signed = {"document": text, "signature": OURS.signature("plan", text), "evidence": None}
        served, listed = Scripted(200, json.dumps(signed).encode()), logs(plan_entry(digest(text)))
        asked = a_task(plan, plan=digest(text))
        refuses(f"a plan of {title}", assigned(asked), served, listed, *gives_back)
    tasks: dict[str, dict[str, Any]] = {
        "beyond the plan's rounds": {"round": 40},
        "of another run": {"run": "r2"},
        "that is over": {"opens": NOON - 2 * HOUR, "deadline": NOON - HOUR},
        "that ends now": {"opens": NOON - HOUR, "deadline": NOON},
        "that opens in eleven minutes": {"opens": NOON + 660, "deadline": NOON + HOUR},
        "of 25 hours": {"deadline": NOON + 25 * HOUR},
        "that clips above its plan": {"asks": {"clip_norm": 0.3}},
        "that clips at almost nothing": {"asks": {"clip_norm": 1e-31}},
        "that asks for a bit": {"asks": {"clip_estimate": 0.1}},
        "that asks for the loss": {"asks": {"loss_bound": 10.0}},
        "of too many words": {"asks": {"client": {"epochs": 100_000, "sentences": 100_000}}},
        "of too large a model": {"content": {"bytes": 100_000_001}},
    }
    for title, changed in tasks.items():
        refuses(f"a task {title}", assigned(a_task(plan, **changed)), *fetched, *gives_back)
    opens_soon = a_task(plan, opens=NOON + 600, deadline=NOON + HOUR)
    found.append(("a task that opens in ten minutes", REFUSES, {}, [Turn(whole(plan, opens_soon))]))
    owners: dict[str, dict[str, Any]] = {
        "cheaper runs": {"largest_zcdp": 0.1},
        "a smaller epsilon": {"largest_epsilon": 2.0},
        "a smaller delta": {"largest_delta": 1e-7},
        "more noise": {"smallest_noise_multiplier": 6.5},
        "a smaller clip norm": {"largest_clip_norm": 0.1},
        "larger cohorts": {"smallest_cohort": 7},
        "sealed sums alone": {"aggregation": ("sealed",)},
        "noise of decryptors": {"noise_by_decryptors": True},
        "a smaller budget": {"budget_zcdp": 0.01},
        "a smaller budget a week": {"budget_zcdp_week": 0.01},
        "smaller models": {"largest_model_mb": 1e-6},
        "smaller reports": {"largest_report_mb": 1e-6},
        "less memory": {"largest_memory_mb": 1e-3},
        "less work": {"largest_operations": 10.0},
        "shorter rounds": {"longest_round_hours": 0.5},
    }
    for title, policy in owners.items():
        refuses(
            f"the owner wants {title}",
            assigned(good),
            *fetched,
            *gives_back,
            rule="docs/device.md#the-policy",
            **policy,
        )
    refuses("another model than its digest", assigned(good), *fetched, Scripted(200, MODEL[:-1] + b"\1"), *gives_back)
    refuses("no model", assigned(good), *fetched, none, *gives_back)
    for title, body in (
        ("a model that is not finite", model_body(np.array([np.nan, 0, 0, 0], np.float32))),
        ("a model of another length", model_body(np.zeros(3, np.float32))),
    ):
        sha256 = hashlib.sha256(body).hexdigest()
        content = {"sha256": sha256, "bytes": len(body), "path": f"/v1/models/{sha256}"}
        refuses(title, assigned(a_task(plan, content=content)), *fetched, Scripted(200, body), *gives_back)
    refuses("and no answer to the place given back", assigned(a_task(plan, round=40)), *fetched, Scripted(None))
    return found


def _records() -> list[Scenario]:
    """Several turns of a device, and what its record says to the later ones."""
    plan = a_plan()

    def at(round: int) -> float:
        return NOON + 2 * HOUR * round

    def took(round: int, of: Plan = plan) -> Turn:
        return Turn(whole(of, a_task(of, round)), at(round))

    def refused(round: int, of: Plan = plan, *, now: float | None = None, **changed: Any) -> Turn:
        answers = [assigned(a_task(of, round, **changed)), planned(of), log_of(of), NO_CONTENT]
        return Turn(answers, at(round) if now is None else now)

    second, rule = changed_plan(run="r2"), "docs/device.md#when-it-takes-part-again"
    both = [plan_entry(digest(each.to_json())) for each in (plan, second)]
    timer = changed_plan(separation={"timer_seconds": 86400.0})
    ahead = refused(5, timer, now=NOON + 25 * HOUR, deadline=at(5) + 23 * HOUR)
    ended = changed_plan(separation={"timer_seconds": 86400.0, "clock": "finish"})
    most = changed_plan(privacy={"max_participations": 2})
    anew = changed_plan(code="12" * 32)  # of the same run
    dear = Turn([assigned(a_task(second)), planned(second), logs(*both), NO_CONTENT], NOON + 60)
    cheap = a_task(second, opens=NOON + 192 * HOUR, deadline=NOON + 193 * HOUR)
    answers = [assigned(cheap), planned(second), logs(*both), FILE, receipt(cheap)]
    affordable = Turn(answers, NOON + 192 * HOUR)
    task = a_task(second)
    elsewhere = Turn([assigned(task), planned(second), logs(*both), FILE, receipt(task)], NOON + 60)
    again = [assigned(a_task(plan, 5)), planned(plan), logs(both[1], both[0]), NO_CONTENT]
    new = Turn([assigned(a_task(plan, 3)), planned(plan), log_of(plan), NO_CONTENT], at(3), first_time=False)
    rotation = signed_key_rotation(OURS, OTHER)
    handed = [*both[:1], key_rotation_entry(digest(rotation.document))]
    later = a_task(plan, 5)
    by_other = [assigned(later, by=OTHER), NO_CONTENT]
    by_other += [Scripted(200, rotation.to_json().encode()), logs(*handed, by=OTHER)]
    then = a_task(second, 5)
    after = [assigned(then, by=OTHER), planned(second, by=OTHER), logs(*handed, both[1], by=OTHER), FILE]
    after.append(receipt(then, by=OTHER))
    by_old = [
        assigned(a_task(plan, 10)),
        NO_CONTENT,
        Scripted(200, rotation.to_json().encode()),
        logs(*handed, by=OTHER),
    ]
    return [
        ("a round too soon, and one in time", rule, {}, [took(0), refused(4), took(5)]),
        ("the same round, another attempt", RULE, {}, [took(0), refused(0, attempt=1)]),
        ("rounds further apart, as the owner likes", rule, {"rounds_apart": 7}, [took(0), refused(6), took(7)]),
        ("hours apart in anything, as the owner likes", rule, {"hours_apart": 11.0}, [took(0), refused(5), took(6)]),
        ("a timer from the start", rule, {}, [took(0, timer), refused(11, timer), took(12, timer)]),
        ("a timer from the finish", rule, {}, [took(0, ended), refused(12, ended), took(13, ended)]),
        ("a timer, by a clock that runs ahead", rule, {}, [took(0, timer), ahead]),
        ("as often as the plan allows", rule, {}, [took(0, most), took(5, most), refused(10, most)]),
        ("the clock was set back", rule, {}, [took(0), refused(5, now=NOON - 1.0, opens=NOON, deadline=NOON + HOUR)]),
        ("a second run", RULE, {}, [took(0), elsewhere]),
        ("another plan for a run", RULE, {}, [took(0), _again(plan, anew, at(5))]),
        (
            "the budget is spent",
            "docs/device.md#what-it-spends",
            {"budget_zcdp": 0.03},
            [took(0), took(5), refused(10)],
        ),
        (
            "the week's budget is spent, and a week later it is not",
            "docs/device.md#what-it-spends",
            {"budget_zcdp_week": 0.02},
            [took(0), dear, affordable],
        ),
        (
            "the log was written anew: it is asked no more",
            "#the-log",
            {},
            [took(0), Turn(again, at(5)), Turn([], at(6))],
        ),
        ("a shorter log than before", "#the-log", {}, [took(0), elsewhere, took(5)]),
        ("a new record, in a run that was under way", "docs/device.md#when-its-state-is-lost", {}, [new]),
        (
            "another key, by a hand-over, and no way back",
            "#another-key-of-the-operator",
            {},
            [took(0), Turn(by_other, at(5)), Turn(after, at(5) + 60), Turn(by_old, at(10))],
        ),
    ]


def _again(first: Plan, anew: Plan, now: float) -> Turn:
    lines = [plan_entry(digest(each.to_json())) for each in (first, anew)]
    return Turn([assigned(a_task(anew, 5)), planned(anew), logs(*lines), NO_CONTENT], now)


def _token_answers(plan: Plan) -> list[Scripted]:
    """401, the key, the log with it."""
    text = token_key()
    key = {"document": text, "signature": OURS.signature("token-key", text)}
    entries = [plan_entry(digest(plan.to_json())), token_key_entry(EPOCH, text)]
    return [problem("token"), Scripted(200, json.dumps(key).encode()), logs(*entries)]


def _tokens() -> list[Scenario]:
    """A turn in which tokens are asked for, and one in which the last of them is shown."""
    plan = a_plan()
    asks = _token_answers(plan)
    # What the device sends follows from its draws: the signer's answer is of the requests of a first play.
    first = Turn([*asks, Scripted(503, b"")], code=CODE)
    (played,) = _played([first], {}, Bodies())
    sent = next(
        step["ask"]["body"]["blinded"] for step in played["steps"] if step.get("ask", {}).get("path") == "/v1/tokens"
    )
    signed = [signer().sign(bytes.fromhex(each)).hex() for each in sent]
    given = Scripted(200, json.dumps({"epoch": EPOCH, "signatures": signed}).encode())
    task = a_task(plan)
    shows = [*asks, assigned(task), planned(plan), asks[2], FILE, receipt(task)]
    wrong = Scripted(200, json.dumps({"epoch": EPOCH, "signatures": signed[::-1]}).encode())
    turns = [Turn([*asks, given], code=CODE), Turn(shows, NOON + 300, code=CODE)]
    lost = [Turn([*asks, Scripted(None)], code=CODE), Turn([*asks, given], NOON + 60, code=CODE)]
    bad = [Turn([*asks, wrong], code=CODE), Turn([*asks, given], NOON + 60, code=CODE)]
    again = [*turns[:1], Turn([*asks, problem("token")], NOON + 300, code=CODE)]
    return [
        ("tokens: asked for, and shown in the next turn", "#tokens", {}, turns),
        ("tokens: no answer, so the same request again", "#tokens", {}, lost),
        ("tokens: signatures that are none", "#tokens", {}, bad),
        ("tokens: one that was not taken is not shown again", "#tokens", {}, again),
    ]


def sealed_plan() -> Plan:
    """The plan, of sealed sums with three decryptors."""
    plan, _ = training_plan({"name": "independent"}, rounds=40, apart=5, encoded={"kind": "secure"})
    keys = {"keepers": [identity.public.hex() for identity, _ in DECRYPTORS[:3]]}
    keys["boxes"] = [box.public.hex() for _, box in DECRYPTORS[:3]]
    aggregation = {"kind": "sealed", "threshold": 2, "corrupt": 1, **keys}
    return Plan.from_json(json.dumps(_merged(json.loads(plan.to_json()), {"aggregation": aggregation})))


def sealed_task(of: Plan, attempt: int = 0, *, series: int = 0, **changed: Any) -> RoundTask:
    """A task of round 0, with the settings of its round. changed: of these."""
    encoding = encoding_within(len(UPDATE), 0.2, 6)
    names = ("parameters", "dimension", "clip_norm", "scale", "report_goal", "sigmas", "margin", "margin_each")
    encoded = {name: getattr(encoding, name) for name in names}
    encoded |= {"signs": "ef" * 32, "length": encoding.dimension + 1, "threshold": 2}
    task = a_task(of, 0, attempt, asks={"encoded": encoded})
    settings = sealed_settings(
        b"willow-4096",
        encoding.dimension + 1,
        2 * encoding.largest,
        **{"seed": seed_of(task), "plan": bytes.fromhex(task.plan), "round_index": 0, "series": series, **changed},
    )
    return a_task(of, 0, attempt, asks={"encoded": encoded}, sealed=settings.to_bytes().hex())


def _sealed() -> list[Scenario]:
    """Attempts at a sealed round: of one series all cost what one costs, and of another none is taken part in."""
    plan = sealed_plan()
    first, second, other = sealed_task(plan), sealed_task(plan, 1), sealed_task(plan, 2, series=1)
    given_back = [planned(plan), log_of(plan), NO_CONTENT]

    def told(turns: Sequence[Turn]) -> list[Turn]:
        """The same with receipts, which are of bodies that follow from the draws before."""
        played = _played(turns, {}, Bodies())
        found = []
        for turn, said in zip(turns, played, strict=True):
            sent = [step["ask"]["body"] for step in said["steps"] if "/reports/" in step.get("ask", {}).get("path", "")]
            task = first if turn is turns[0] else second
            sha256 = sent[0].rpartition(" ")[2] if sent else ""
            answers = [*turn.answers[:-1], receipt(task, sha256=sha256)] if sent else turn.answers
            found.append(Turn(answers, turn.now))
        return found

    takes = Turn(whole(plan, first, problem("late")))
    again = Turn(whole(plan, second, problem("late")), NOON + 60)
    anew, same = (Turn([assigned(task), *given_back], NOON + 60) for task in (other, first))
    strange = sealed_task(plan, boxes=tuple(box.public for _, box in DECRYPTORS[1:4]))
    elsewhere = sealed_task(plan, plan=bytes(32))
    in_clear = a_task(plan)
    found: list[Scenario] = [
        ("sealed: two attempts of one series", SEALED, {}, told([takes, again])),
        ("sealed: an attempt of another series", SEALED, {}, [*told([takes]), anew]),
        ("sealed: the same round again", SEALED, {}, [*told([takes]), same]),
    ]
    for title, task in (
        ("boxes that are not the plan's", strange),
        ("another plan's settings", elsewhere),
        ("a report in the clear", in_clear),
    ):
        found.append((f"sealed: {title}", "#a-sealed-report", {}, [Turn([assigned(task), *given_back])]))
    return found


def _deaths() -> list[Scenario]:
    """A device that dies after each step of a turn, and its next turn: at another attempt, and five rounds later."""
    plan = a_plan()
    task, found = a_task(plan), []
    (played,) = _played([Turn(whole(plan, task))], {}, Bodies())
    steps = played["steps"]
    spent_from = next(number for number, step in enumerate(steps) if step.get("write") == "participation") + 1
    for many in range(1, len(steps)):
        dies = Turn(whole(plan, task), dies_after=many)
        attempt = a_task(plan, 0, 1)
        answers = [assigned(attempt), planned(plan), log_of(plan), NO_CONTENT]
        if many < spent_from:
            answers = whole(plan, attempt)
        later = a_task(plan, 5)
        found += [
            (f"dies after step {many}, then another attempt", TEXT, {}, [dies, Turn(answers, NOON + 60)]),
            (
                f"dies after step {many}, then five rounds later",
                TEXT,
                {},
                [dies, Turn(whole(plan, later), NOON + 10 * HOUR)],
            ),
        ]
    return found


def check(each: Case, bodies: Mapping[str, Mapping[str, str]]) -> None:
    """That this program, told the answers of a case, does as it says."""
    named = {name: _bytes(said) for name, said in bodies.items()}
    names = Bodies({body: name for name, body in named.items()})
    turns = []
    for turn in each["turns"]:
        answers = [_scripted(step["answer"], named) for step in turn["steps"] if "answer" in step]
        dies_after = len(turn["steps"]) if turn.get("died") else None
        if dies_after is not None and "ask" in turn["steps"][-1]:
            answers.append(NO_CONTENT)  # of which the device hears no more
        more = {name: turn[name] for name in ("now", "trainer", "code")}
        turns.append(Turn(answers, dies_after=dies_after, first_time=turn.get("first_time", True), **more))
    policy = {name: tuple(value) if isinstance(value, list) else value for name, value in each["policy"].items()}
    assert _played(turns, policy, names) == each["turns"], each["name"]


def _bytes(said: Mapping[str, str]) -> bytes:
    return said["text"].encode() if "text" in said else bytes.fromhex(said["hex"])


def _scripted(said: Mapping[str, Any], bodies: Mapping[str, bytes]) -> Scripted:
    if "no answer" in said:
        return Scripted(None, unsent=said["no answer"] == "no connection")
    return Scripted(said["status"], bodies[said["body"]])


def file() -> dict[str, Any]:
    """The content of `turns.json`."""
    bodies, cases = Bodies(), []
    for name, rule, policy, turns in [*_sent(), *_refusals(), *_records(), *_tokens(), *_sealed(), *_deaths()]:
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in policy.items()}
        cases.append(case(name, rule, policy=plain, turns=_played(turns, policy, bodies)))
    return file_of(
        "A device of the population `es`, which has pinned the operator, has the words of the vocabulary, and trains "
        "to `update` (or `fails`, or its update is `not finite`). Each case is its turns, one after another with one "
        "record, under a `policy` (docs/device.md; what is left out has its default). A turn begins at `now`; the "
        "clock then stands but for waits, which take their longest. `steps`: what it asks, each with the answer; what "
        "it writes to disk, before the next step; the seconds that it waits, from and to. Bodies are named and stand "
        "in `bodies`. `first_time`: the owner says that the new device took part nowhere. `died`: the device ended "
        "after the last step. `outcome`: `what` (idle, refused, unanswered, reported, lost), the `wait` until the "
        "next turn, and what this program says of it, which is its own. `record`: what the device knows after the "
        "turn; costs agree to the relative 1e-9. `draws`: its random bytes, in order. Of a sealed update these are 32 "
        "for the report that says nothing, which is made first; 32 "
        "of which, with `rounding ` before and 8 zero bytes behind them, SHA-256 is the key of its rounding; its "
        "identity; and the seed of its report. A body that is too long to stand here goes by its SHA-256. A program "
        "that writes the header of a report otherwise has another digest, and the key of signatures.json signs its "
        "receipts. Each turn is a process of its own, which had no fruitless turn before.",
        cases,
        operator=OURS.public,
        population="es",
        vocabulary="cd" * 32,
        update=list(UPDATE),
        bodies=bodies.to_plain(),
    )
