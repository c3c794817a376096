"""An operator in the device's own process: it answers by its strategy, and notes whatever comes.

It stands where a device's network is (`bounded_http.connected`), so that what it sees is what crosses a network.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.audit.device.questions import Asked
from tacit.audit.device.strategies import Strategy
from tacit.audit.device.transcript import Request
from tacit.audit.device.virtual_clock import NOON, VirtualClock
from tacit.errors import InputError
from tacit.extras import of_extra
from tacit.protocol.log_proofs import leaf_of, plan_entry, root_of
from tacit.protocol.messages import Assignment, ComeBack, Problem, RoundTask, ShownLog, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.problem_kinds import PREFIX
from tacit.protocol.served_bodies import read_report
from tacit.protocol.signing import digest

ELSEWHERE = ("plan " + "12" * 32, "plan " + "34" * 32)  # entries of a log before the plan's, and after it
PAYLOAD = "x-content-sha256"  # a header of the report's own bytes
KEY = OperatorKey(bytes(range(32)))
STRANGER = OperatorKey(bytes(range(1, 33)))


@dataclass
class Operator:
    """An httpx transport: what a device's requests come to."""

    asked: Asked
    strategy: Strategy
    clock: VirtualClock
    seen: list[Request] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    accepted: list[bool] = field(default_factory=list)
    _times_asked: Counter[str] = field(default_factory=Counter)

    def __enter__(self) -> "Operator":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """The device hangs up."""

    def handle_request(self, request: Any) -> Any:
        """An httpx response to an httpx request; raises what a broken network does."""
        what, body, path = _what(request.method, request.url.path), request.read(), request.url.path
        headers = tuple((name, said) for name, said in sorted(request.headers.items()) if name != PAYLOAD)
        self.seen.append(Request(request.method, path, headers, len(body) if what == "report" else body))
        self.times.append(self.clock.steady())
        nth = self._times_asked[what]
        self._times_asked[what] += 1
        if what == "report":
            self.accepted.append(self._is_one(path.rpartition("/")[2], body))
        faults = self.strategy.faults.get(what, ())
        return self._fault(faults[nth], request) if nth < len(faults) else self._answer(what, request, nth)

    def _fault(self, fault: str, request: Any) -> Any:
        httpx = of_extra("deployment", "httpx")
        if fault == "cut":
            raise httpx.ReadError("the connection broke")
        if fault == "unsent":
            raise httpx.ConnectError("there is no connection")
        if fault == "half":
            content = self.asked.content
            return _response(200, content[: len(content) // 2], length=len(content))
        if fault == "forged":
            return self._receipt(request, by=STRANGER)
        status, _, kind = fault.partition(" ")
        if not kind:
            return _response(int(status), b"nothing of the protocol")
        problem = Problem(type=PREFIX + kind, title=kind, status=int(status), detail="as the strategy says.")
        return _response(int(status), problem.to_json().encode())

    def _answer(self, what: str, request: Any, nth: int) -> Any:
        match what:
            case "check-in":
                return _response(200, self._task_of(nth))
            case "plan":
                return _response(200, KEY.plan(self.asked.plan.to_json()).model_dump_json().encode())
            case "log":
                return _response(200, self._log(nth).to_json().encode())
            case "file":
                return self._file(request)
            case "report":
                return self._receipt(request, by=KEY)
            case "given back":
                return _response(204, b"")
        nothing = Problem(type=PREFIX + "not-found", title="none", status=404, detail="there is none.")
        return _response(404, nothing.to_json().encode())

    def task(self, turn: int) -> RoundTask:
        """Of the first turn, and of the second."""
        said = self.strategy
        round = 0 if turn == 0 else self.asked.next_round
        return self.asked.task(round, opens=NOON - said.opened + said.begins(turn), lasts=said.lasts)

    def _task_of(self, turn: int) -> bytes:
        if turn > 1:
            return ComeBack(answer="come_back", after_s=60.0, before_s=60.0).to_json().encode()
        given = Assignment(
            answer="assignment",
            assignment=f"{turn + 1:032x}",
            secret="ab" * 32,
            signed_task=KEY.signed(self.task(turn)),
        )
        return given.to_json().encode()

    def _log(self, nth: int) -> ShownLog:
        plan = plan_entry(digest(self.asked.plan.to_json()))
        entries: Sequence[str] = (ELSEWHERE[0], plan, *ELSEWHERE[1:])
        match self.strategy.log:
            case "no plan":
                entries = ELSEWHERE
            case "anew" if nth:
                entries = (plan, *ELSEWHERE)
            case "stale" if nth:
                entries = entries[:2]
        root = root_of(map(leaf_of, entries)).hex() if self.strategy.log != "another root" else "56" * 32
        return ShownLog(head=KEY.signed(TreeHead(size=len(entries), root=root)), entries=tuple(entries))

    def _file(self, request: Any) -> Any:
        content = self.asked.content
        begins = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if not begins:
            return _response(200, content)
        said = f"bytes {begins}-{len(content) - 1}/{len(content)}"
        return _response(206, content[begins:], headers={"Content-Range": said})

    def _receipt(self, request: Any, *, by: OperatorKey) -> Any:
        assignment = request.url.path.rpartition("/")[2]
        return _response(200, by.receipt(assignment, request.headers[PAYLOAD]).to_json().encode())

    def _is_one(self, assignment: str, body: bytes) -> bool:
        """Whether a report is added to the sum: text would decide who else is in it. Of sealed ones nobody can say."""
        if self.asked.sealed is not None:
            return True
        try:
            return read_report(body, self.asked.question.shape(), assignment).usable
        except InputError:
            return False


def _what(method: str, path: str) -> str:
    """What is asked, as faults name it."""
    if path.startswith("/v1/reports/"):
        return "report" if method == "POST" else "given back"
    named = {"/v1/check-in": "check-in", "/v1/log": "log"}
    beginnings = {"/v1/plans/": "plan", "/v1/models/": "file"}
    found = next((what for begin, what in beginnings.items() if path.startswith(begin)), "unknown")
    return named.get(path, found)


def _response(status: int, content: bytes, *, length: int | None = None, headers: dict[str, str] | None = None) -> Any:
    """As from a network: its bytes are there when they are read."""
    httpx = of_extra("deployment", "httpx")
    said = {"Content-Length": str(len(content) if length is None else length), **(headers or {})}
    return httpx.Response(status, headers=said, stream=httpx.ByteStream(content))
