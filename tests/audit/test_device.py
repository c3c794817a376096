"""The audit of the device finds nothing in the shipped one, and every leak that was found here, planted again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.audit.device.auditor import Auditor
from tacit.audit.device.device_findings import SEEN, DeviceFindings
from tacit.audit.device.distinguisher import check_enough, epsilon_between
from tacit.audit.device.questions import QUESTIONS
from tacit.audit.device.strategies import STRATEGIES, Strategy
from tacit.audit.device.texts import EVERY_PAIR, ONE_WORD, TEXTS, Pair
from tacit.audit.device.transcript import Request, Transcript
from tacit.audit.device.watched import TimedSession
from tacit.audit.finding import Finding
from tacit.data.splits import Parts
from tacit.device import session
from tacit.device.own_text import OwnText
from tacit.device.turn import Pause
from tacit.errors import InputError, TaskRefused
from tacit.protocol import bodies, requests
from tacit.secure_aggregation.one_message import messages

RUNS, ALONE = 17, 0.95  # of one comparison alone


def audited(folder: Path, name: str | Strategy, question: str, made_of: type[TimedSession] = TimedSession) -> Finding:
    """One strategy and one question. name: in STRATEGIES, or a strategy of the test's own."""
    auditor = Auditor(folder, seed=1, runs=RUNS, confidence=ALONE, session=made_of)
    if isinstance(name, Strategy):
        return auditor.finding("own", name, question)
    return auditor.finding(name, STRATEGIES[name], question)


def lengths(pair: Pair = ("another word", "3,000 sentences")) -> Strategy:
    return replace(STRATEGIES["nothing unusual"], pairs=(pair,))


# -- the shipped device ------------------------------------------------------------------------------------------------


def test_nothing_of_the_shipped_device_tells_which_text_it_has() -> None:
    found = tacit.audit_device(
        questions=["statistics", "new words"],
        strategies=["nothing unusual", "an owner's split", "endless reading", "clock set back", "stale log", "no file"],
    )
    seen = [each for each in found.findings if each.claim == 0]
    assert len(seen) == 12 and not found.broken
    assert all(each.lower == 0 and not each.figures["differs"] for each in seen)
    assert {each.figures["ended"][0][0] for each in seen} == {"reported", "unanswered"}
    assert "12 ways were tried, and none showed a text." in str(found)


def test_a_retry_at_a_random_time_is_told_from_one_that_follows_the_text(tmp_path: Path) -> None:
    found = audited(tmp_path, "busy", "statistics")
    assert found.figures["differs"] == ["times"] and found.samples == 4 + 2 * RUNS
    assert found.lower == 0 and not found.broken


@pytest.mark.nightly
def test_every_way_of_every_strategy() -> None:
    found = tacit.audit_device()
    assert not found.broken, [each.subject for each in found.broken]
    assert len(found.findings) > 150


def test_every_question_and_text_is_in_some_strategy() -> None:
    assert {question for each in STRATEGIES.values() for question in each.questions} == set(QUESTIONS)
    assert {name for pair in EVERY_PAIR for name in pair} == set(TEXTS)
    assert EVERY_PAIR[0] == ONE_WORD


# -- leaks that were found in this repository, planted again -----------------------------------------------------------


class AsItWas(TimedSession):
    """The end of a participation before it was mended: sealed before the wait, which follows the clock of the wall."""

    def assigned(self, assignment: Any) -> Any:
        task = self._task(assignment.signed_task)
        accepted = yield from self._accepted_plan(task)
        self._allowed(accepted, task)
        prepared = yield from self._prepared(accepted.plan, task)
        zcdp, now, attempt = self._allowed(accepted, task)
        self.record.take_part(task, assignment=assignment.assignment, at=now, zcdp=zcdp, attempt=attempt)
        report, why = session.report_or_nothing(prepared, task, draw=self.machine.draw)
        body = self.body(accepted.plan, task, report, assignment.assignment)
        held_back = self._policy.report_after_s(task, now, self._handler(accepted.plan).reading_s(task))
        rest = min(held_back, now + held_back - self.machine.clock())
        if rest > 0:
            yield Pause(rest)
        return (yield from self._sent(task, assignment, body, why, zcdp))


class GivesBack(TimedSession):
    """Refuses after text was read, and gives its place back."""

    def assigned(self, assignment: Any) -> Any:
        try:
            return (yield from super().assigned(assignment))
        except TaskRefused as refusal:
            yield from requests.give_back(assignment.assignment, assignment.secret)
            return self._turned("refused", str(refusal))


class TriesLess(TimedSession):
    """Sends a report that says nothing once."""

    def _sent(self, task: Any, assignment: Any, body: bytes, adds: str, zcdp: float) -> Any:
        if adds:
            task = task.model_copy(update={"deadline": self.machine.clock() + 0.1})
        return (yield from super()._sent(task, assignment, body, adds, zcdp))


def test_a_refusal_of_what_is_not_finite_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealed round in which a device gave its place back where its update overflowed: no price, and a word told."""

    def refuses(prepared: Any, task: Any, *, draw: Any) -> Any:
        report = prepared.read(draw)
        if not report.usable:
            raise TaskRefused("its update is not finite.")
        return report, ""

    monkeypatch.setattr(session, "report_or_nothing", refuses)
    found = audited(tmp_path, "overflow on a word", "sealed updates", GivesBack)
    assert found.broken and {"requests", "ended"} <= set(found.figures["differs"])


def test_an_overflow_on_a_word_is_the_owners_to_know(tmp_path: Path) -> None:
    """The attack works: of two reports one says nothing. And nobody sees which."""
    found = audited(tmp_path, "overflow on a word", "sealed updates")
    assert found.figures["silent"] == [2, 0] and not found.figures["differs"]


def test_a_key_of_small_order_that_is_noticed_after_text_was_read_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device ended when it came to seal: when it is back shows when reading ended."""
    monkeypatch.setattr(messages, "anybody_agrees", lambda key: False)
    found = audited(tmp_path, "server key of small order", "sealed updates", AsItWas)
    assert found.broken and "times" in found.figures["differs"]
    assert found.figures["ended"][0][0].startswith("ended by")


def test_a_header_whose_length_says_what_is_in_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "HEADER", 0)
    found = audited(tmp_path, lengths(("3,000 sentences", "one word")), "updates")
    assert found.broken and "requests" in found.figures["differs"]


def test_a_reader_whose_end_ends_the_device_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was before a child read text: whatever went wrong there was the device's end."""
    monkeypatch.setattr(session, "report_or_nothing", lambda prepared, task, *, draw: (prepared.read(draw), ""))
    found = audited(tmp_path, "endless reading", "statistics")
    assert found.broken and "ended" in found.figures["differs"]


def test_a_split_that_is_refused_by_when_text_was_typed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: OwnText, split: Any) -> None:
        if not isinstance(split.parts(self._cache.timestamps(self.client)), Parts):
            raise TaskRefused("there is too little text.")

    monkeypatch.setattr(OwnText, "check_split", refuses)
    dated = replace(STRATEGIES["an owner's split"], pairs=(("another word", "one word"),))
    found = audited(tmp_path, dated, "personalization")
    assert found.broken and {"requests", "record"} <= set(found.figures["differs"])


def test_a_retry_that_follows_the_text_is_found(tmp_path: Path) -> None:
    endless = Strategy(says="busy, and reading does not end", slowly=1e9, faults=STRATEGIES["busy"].faults)
    found = audited(tmp_path, endless, "statistics", TriesLess)
    assert found.broken and "requests" in found.figures["differs"]
    assert not audited(tmp_path, endless, "statistics").broken


def test_a_report_that_leaves_when_it_is_made_is_found(tmp_path: Path) -> None:
    """What an owner may ask for, and is warned of (docs/device.md)."""
    at_once = replace(STRATEGIES["nothing unusual"], pairs=(ONE_WORD,), policy={"send_after_s": 0.0})
    found = audited(tmp_path, at_once, "sums")
    assert found.broken and found.figures["differs"] == ["times"]


@pytest.mark.parametrize("name", ["clock set back", "clock set forward"])
def test_a_report_that_waits_by_a_clock_that_is_set_is_found(name: str, tmp_path: Path) -> None:
    found = audited(tmp_path, name, "statistics", AsItWas)
    assert found.broken and "times" in found.figures["differs"]


def test_a_report_that_is_sealed_before_it_waits_is_found(tmp_path: Path) -> None:
    slow = replace(STRATEGIES["slow sealing"], questions=("statistics",))
    assert audited(tmp_path, slow, "statistics", AsItWas).broken
    assert not audited(tmp_path, slow, "statistics").figures["differs"]


def test_text_that_is_counted_before_a_participation_is_on_disk_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init = OwnText.__init__

    def counts(self: OwnText, *given: Any) -> None:
        init(self, *given)
        self.sentence_count(self.client)

    monkeypatch.setattr(OwnText, "__init__", counts)
    found = audited(tmp_path, lengths(), "statistics")
    assert found.broken and "times" in found.figures["differs"]


# -- the distinguisher -------------------------------------------------------------------------------------------------


def transcript(
    chance: np.random.Generator, *, later: float = 0.0, length: int = 99, retried: float = 0.5
) -> Transcript:
    request = Request("POST", "/v1/reports", (), length)
    times = (0.0, 10.0, 10.0 + later + float(chance.uniform(1, 3)))
    return Transcript((request,) * (3 if chance.random() < retried else 2), times, (), (True,), ())


def shown(other: Callable[[np.random.Generator], Transcript], runs: int, seed: int) -> float:
    chance = np.random.default_rng(seed)
    one, two = ([each(chance) for _ in range(runs)] for each in (transcript, other))
    return epsilon_between(one, two, confidence=0.95)


def test_texts_that_look_alike_are_seldom_told_apart() -> None:
    """With 95%: 400 times a bound above nothing is seen at most 20 times and what chance adds."""
    assert sum(shown(transcript, 30, seed) > 0 for seed in range(400)) <= 30


LEAKS: Mapping[str, Callable[[np.random.Generator], Transcript]] = {
    "a length": lambda chance: transcript(chance, length=98),
    "a time": lambda chance: transcript(chance, later=1.8),
    "how often": lambda chance: transcript(chance, retried=1.0),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_texts_that_differ_in(leak: str) -> None:
    assert min(shown(LEAKS[leak], 200, seed) for seed in range(5)) > 0.5


def test_fewer_runs_than_show_anything_are_refused() -> None:
    check_enough(RUNS, ALONE)
    with pytest.raises(InputError, match=r"runs=3 of each text.*give 17 or more"):
        check_enough(3, ALONE)
    with pytest.raises(InputError, match=r"runs=17 of each text.*give 3\d or more"):
        tacit.audit_device(runs=RUNS)


@pytest.mark.parametrize(("named", "given"), [("strategies", "none"), ("questions", "nothing")])
def test_an_unknown_name_is_refused_with_those_there_are(named: str, given: str) -> None:
    with pytest.raises(InputError, match=f"{named} has '{given}', which is none of: "):
        tacit.audit_device(**{named: [given]})
    with pytest.raises(InputError, match="none of these strategies asks any of these questions"):
        tacit.audit_device(strategies=["huge steps"], questions=["statistics"])


def test_what_is_broken_stands_first() -> None:
    figures = {"question": "statistics", "differs": ["times"], "repeated": 1}
    broken = Finding(
        subject="statistics: busy",
        measure="epsilon",
        claim=0.0,
        lower=0.7,
        confidence=0.95,
        samples=82,
        samples_of=SEEN,
        threat_model="all",
        figures=figures,
    )
    said = str(DeviceFindings(audit="text", findings=[broken], command="tacit audit device"))
    assert "BROKEN: statistics: busy: times show the text." in said and "none showed" not in said
