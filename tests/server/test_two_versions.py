"""A version and a later one, as two wheels: their devices and servers train together, and a run outlives an update."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests.support.training.tiny import tiny_cache, tiny_values
from tests.support.waiting import until
from tests.support.wheels import built_wheel

import tacit
from tacit.device.record import opened
from tacit.protocol.messages import Plan, SignedPlan
from tacit.runs import Run
from tacit.server.store import round_states
from tacit.server.store.store import Store

PATIENCE = 900.0  # seconds, on a busy machine
DEVICES = 3
# The owner of a phone of a test minds neither small cohorts nor little noise.
POLICY = {"largest_zcdp": 1e3, "budget_zcdp": 1e4, "largest_epsilon": 1e3, "largest_delta": 0.1, "send_after_s": 0.0}
DEPLOYMENT = {"population": "default", "devices": 40, "selecting_minutes": 30, "pause_minutes": 0.001}
CLOCK = '    clock: Literal["start", "finish"]  # of a participation, from which the timer runs\n'
SAYS_THE_CLOCK = 'timer_seconds=kept.timer_seconds, clock="start")'
WEEKDAYS = {CLOCK: f"{CLOCK}    weekdays: tuple[int, ...] = (6, 7)\n"}
# A kind more, a later version of another, and a key more in all that crosses the wire, deep inside as well.
LATER: Mapping[str, Mapping[str, str]] = {
    "protocol/dance.py": {
        "": "from typing import Literal\n\nfrom tacit.protocol.count import HistogramsDocument\n\n\n"
        'class DanceDocument(HistogramsDocument):\n    kind: Literal["dance"]\n'
    },
    "federation/kinds.py": {
        '            name="discover",\n': '            name="discover",\n            version=2,\n',
        '        Kind(\n            name="type",\n': """        FederatedKind(
            name="dance",
            metadata="tacit.runs.metadata:CountMetadata",
            resume="tacit.jobs.count.job:resume_count",
            page="tacit.reports.count",
            leaves="how it dances",
            question="tacit.protocol.dance:DanceDocument",
            device="tacit.device.count:StatisticHandler",
            server="tacit.server.count_files:ServedCount",
            statement="tacit.statements.count",
        ),
        Kind(
            name="type",
""",
    },
    "protocol/messages.py": {
        "    enrolment: Literal": "    pace: float = 1.5\n    enrolment: Literal",
        "    opens: Time\n    deadline: Time\n": "    opens: Time\n    deadline: Time\n    pace: float = 1.5\n",
        "    population: Name\n    # of the kinds": "    population: Name\n    pace: float = 1.5\n    # of the kinds",
        "    received: Yes\n": "    received: Yes\n    pace: float = 1.5\n",
        **WEEKDAYS,
    },
    "protocol/train.py": {"    client: Training\n": "    client: Training\n    pace: float = 1.5\n"},
}
CRITICAL: Mapping[str, Mapping[str, str]] = {
    "protocol/messages.py": WEEKDAYS,
    "server/train.py": {
        SAYS_THE_CLOCK: f'{SAYS_THE_CLOCK[:-1]}, weekdays=(6, 7), critical=("weekdays",))',
    },
}
MENDED: Mapping[str, Mapping[str, str]] = {
    "server/coordinator.py": {"LEASE_S = 30.0": "LEASE_S = 29.0"},
    "privacy/__init__.py": {"in double precision, no accelerator": "in double precision, and no accelerator"},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders into which wheels were unpacked, by what they are."""
    found = {}
    for name, changes in (("this", None), ("later", LATER), ("critical", CRITICAL), ("mended", MENDED)):
        found[name] = tmp_path_factory.mktemp(name)
        with built_wheel(tmp_path_factory.mktemp("wheel"), changes) as wheel:
            wheel.extractall(found[name])
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """With a recipe of two rounds, the server's own cache, and the devices' text."""
    tiny_cache(tmp_path / "cache", {"validation": 5, "test": 6})
    tiny_cache(tmp_path / "phones", {"train": DEVICES})
    values = tiny_values(
        tmp_path / "cache",
        rounds={"rounds": 2, "report_goal": 2, "min_separation": 1},
        privacy={"mechanism": {"name": "independent"}, "noise_multiplier": 0.5},
        deployment=DEPLOYMENT,
    )
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps({**values, "run": {}}))
    return tmp_path


class Machines:
    """Processes of several versions in one place."""

    def __init__(self, place: Path) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.place, self._begun = place, list[subprocess.Popen[str]]()

    def begin(self, wheel: Path, log: str, *command: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(wheel)}
        with (self.place / log).open("a") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "tacit", *command],
                stdout=said,
                stderr=said,
                cwd=self.place,
                env=environment,
                text=True,
            )
        self._begun.append(process)
        return process

    def serve(self, wheel: Path, log: str = "serve.log") -> "subprocess.Popen[str]":
        told = ["--out", "served", "--workers", "1", "--port", str(self.port)]
        server = self.begin(wheel, log, "serve", "recipe.toml", *told)
        until(lambda: f":{self.port} with 1 worker" in self.said(log), alive=server, patience=PATIENCE)
        return server

    def device(self, wheel: Path, client: int) -> "subprocess.Popen[str]":
        state = self.place / f"device-{client}"
        state.mkdir()
        (state / "policy.toml").write_text(tomli_w.dumps(POLICY))
        key = (self.place / "served" / "operator.pub").read_text().strip()
        where = ["--server", f"http://127.0.0.1:{self.port}", "--operator-key", key, "--data", "phones"]
        own = ["--client", str(client), "--state", state.name, "--first-time"]
        return self.begin(wheel, f"{state.name}.log", "device", *where, *own)

    def said(self, log: str) -> str:
        return (self.place / log).read_text()

    def end(self) -> None:
        for each in self._begun:
            each.terminate()
        for each in self._begun:
            each.wait(PATIENCE)


@contextmanager
def machines(place: Path) -> Iterator[Machines]:
    found = Machines(place)
    try:
        yield found
    finally:
        found.end()


def attempts(place: Path) -> list[Any]:
    with closing(Store.open(f"sqlite:///{place / 'served' / 'store.db'}")) as store:
        return round_states.attempts(store, "tiny")


def finished(place: Path) -> Path:
    """The run, which is done and verifies."""
    run = place / "served" / "runs" / "tiny"
    assert tacit.verify(run).holds
    with Run.open(run) as found:
        assert found.finished and found.steps_done == 2
    assert all(line.holds for line in tacit.verify_log(run, place / "served" / "operator.log"))
    return run


@pytest.mark.long
@pytest.mark.parametrize(
    ("server", "devices"), [("this", "later"), pytest.param("later", "this", marks=pytest.mark.nightly)]
)
def test_they_train_together(server: str, devices: str, installed: dict[str, Path], place: Path) -> None:
    with machines(place) as running:
        serving = running.serve(installed[server])
        for client in range(DEVICES):
            running.device(installed[devices], client)
        assert serving.wait(PATIENCE) == 0, running.said("serve.log")
        logs = [running.said(f"device-{client}.log") for client in range(DEVICES)]
    told = "".join(logs)
    assert told.count("the operator signed for it") >= 3 and "Traceback" not in told, told
    run = finished(place)  # by this version, whichever made it
    with Run.open(run) as found:
        text = found.notes["log"]["signed_plan"]["document"]
    assert ('"pace":1.5' in text) is (server == "later")
    kept = SignedPlan(document=text, signature="0" * 128, evidence=None).read(Plan)
    assert kept.to_json() in (text, text.replace('"pace":1.5,', "").replace(',"weekdays":[6,7]', ""))


@pytest.mark.long
def test_a_critical_key_is_refused_by_a_device_that_does_not_know_it(installed: dict[str, Path], place: Path) -> None:
    """And the place is given back, the participation not spent."""
    with machines(place) as running:
        running.serve(installed["critical"])
        device = running.device(installed["this"], 0)
        why = (
            "refused: the plan of run 'tiny' cannot be followed: separation: its key 'weekdays' is critical, and this "
            "version of tacit does not know it; a later one may."
        )
        until(lambda: why in running.said("device-0.log"), alive=device, patience=PATIENCE)
        (attempt,) = attempts(place)
        assert (attempt.assigned, attempt.received, attempt.counted) == (0, 0, 0)
        device.terminate()
        knowing = running.device(installed["critical"], 1)
        until(lambda: "reported: " in running.said("device-1.log"), alive=knowing, patience=PATIENCE)
    with opened(place / "device-0", now=0.0) as record:
        assert record.participations() == []


@pytest.mark.long
def test_a_run_goes_on_under_a_server_that_was_mended(installed: dict[str, Path], place: Path) -> None:
    """Another build, and other code of devices as well: the plan stays the text that devices know."""
    run = place / "served" / "runs" / "tiny"
    with machines(place) as running:
        serving = running.serve(installed["this"])
        for client in range(DEVICES):
            running.device(installed["this"], client)
        until(lambda: any(each.state == round_states.RELEASED for each in attempts(place)), alive=serving)
        serving.send_signal(signal.SIGTERM)
        serving.wait(PATIENCE)
        assert not (run / "report" / "statement.json").exists(), "it was done before it was mended"
        with Run.open(run) as found:
            begun, (first,) = found.notes["log"], found.notes["builds"]
        serving = running.serve(installed["mended"], "mended.log")
        assert serving.wait(PATIENCE) == 0, running.said("mended.log")
        assert all("had the plan" not in running.said(f"device-{client}.log") for client in range(DEVICES))
    finished(place)
    with Run.open(run) as found:
        assert found.notes["log"] == begun
        assert [found.notes["builds"][0], len(found.notes["builds"])] == [first, 2]
        assert found.notes["builds"][1] != first
    said = tacit.statement(run).markdown()
    assert f"The server ran the build {first['sha256']} of tacit {tacit.__version__}, then" in said
    told = [sys.executable, "-c", "from tacit.code_digest import code_digest; print(code_digest())"]
    codes = [
        subprocess.check_output(told, env={**os.environ, "PYTHONPATH": str(installed[each])}, text=True).strip()
        for each in ("this", "mended")
    ]
    assert Plan.from_json(begun["signed_plan"]["document"]).code == codes[0] != codes[1]
