"""`tacit serve` and `tacit device` in two network namespaces, through a line that delays, loses and goes down."""

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise
from pathlib import Path

import jax
import pytest
from tests.server.bad_network import NEAR, BadNetwork, bad_network, missing
from tests.support.certificates import certificate
from tests.support.training.tiny import MECHANISMS, SETTINGS, tiny_cache, tiny_recipe
from tests.support.waiting import until

import tacit
from tacit.keyboard.model_folder import write_model
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.server.store import round_states
from tacit.server.store.store import Store

PATIENCE = 600.0  # seconds, after which something hangs
ROUNDS, GOAL, APART, DEVICES = 6, 3, 2, 10
PHONES = {
    "population": "phones",
    "devices": DEVICES,
    "pause_minutes": 0.0,
    "selecting_minutes": 0.5,
    "reporting_minutes": 0.5,
}
DOWN_S = 8.0


@contextmanager
def running(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process, told to end at the end of the block."""
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def rounds_of(state: Path) -> list[int]:
    """Those that a device's own record holds, in the order in which it took part."""
    with closing(sqlite3.connect(state / "device.db")) as record:
        return [round for (round,) in record.execute("SELECT round FROM participations ORDER BY id")]


def goes_down(network: BadNetwork, released: threading.Event) -> None:
    """The line, for seconds, once a round was released, and so while another is asked for."""
    assert released.wait(PATIENCE)
    network.line.down = True
    threading.Event().wait(DOWN_S)
    network.line.down = False


@pytest.mark.nightly
def test_a_run_is_trained_through_a_line_that_delays_loses_and_goes_down(tmp_path: Path) -> None:
    if (why := missing()) is not None:
        pytest.skip(why)
    ours = tiny_cache(tmp_path / "ours", {"validation": 5, "test": 6})
    theirs = tiny_cache(tmp_path / "theirs", {"train": DEVICES})
    recipe = tiny_recipe(
        ours.path,
        deployment=PHONES,
        rounds={"rounds": ROUNDS, "report_goal": GOAL, "min_separation": APART},
        privacy={**MECHANISMS["blt"], "noise_multiplier": 4.0},
    )
    recipe = recipe.model_copy(update={"run": recipe.run.model_copy(update={"seed": None})})
    (tmp_path / "devices.toml").write_text(recipe.to_toml())
    write_model(tmp_path / "model", SETTINGS, SETTINGS.init(jax.random.key(1)), ours.vocabulary_json.encode())
    tacit.export(tmp_path / "model", tmp_path / "phone")
    believed, secret = certificate(tmp_path, NEAR)
    program, out = str(Path(sys.executable).parent / "tacit"), tmp_path / "served"
    serve = [program, "serve", str(tmp_path / "devices.toml"), "--out", str(out), "--workers", "2", "--host", NEAR]
    serve += ["--tls-cert", str(believed), "--tls-key", str(secret)]
    device = [program, "device", "--server", f"https://{NEAR}:8470", "--certificates", str(believed)]
    device += ["--data", str(theirs.path), "--onnx", str(tmp_path / "phone"), "--population", "phones", "--first-time"]
    states_of = [tmp_path / f"device-{number}" for number in range(DEVICES)]
    with bad_network(delay=0.04, loss=0.03) as network, ExitStack() as stack:
        server = stack.enter_context(running(network.inside(network.server, *serve), tmp_path / "serve.log"))
        until((out / "operator.pub").exists, alive=server, patience=PATIENCE)
        for number, state in enumerate(states_of):
            own = ["--client", str(number), "--state", str(state), "--operator-key", pinned(out)]
            command = network.inside(network.devices, *device, *own)
            stack.enter_context(running(command, state.with_suffix(".log")))
        with closing(Store.open(f"sqlite:///{out / 'store.db'}")) as store:
            first = threading.Event()
            falls = threading.Thread(target=goes_down, args=(network, first))
            falls.start()
            until(lambda: len(released(store)) >= 2, alive=server, patience=PATIENCE)
            first.set()
            falls.join()
            assert server.wait(PATIENCE) == 0, (tmp_path / "serve.log").read_text()
            rounds = released(store)
        line = network.line
    assert line.lost > 50 and line.lost_down > 0 and line.passed > 1000, line
    assert [each.round for each in rounds] == list(range(ROUNDS)), "each round was released once"
    assert all(each.reports is not None and each.reports >= GOAL for each in rounds)
    took_part = [rounds_of(state) for state in states_of]
    assert all(later - earlier >= APART for each in took_part for earlier, later in pairwise(each)), took_part
    for attempt in rounds:
        assert sum(each.count(attempt.round) for each in took_part) >= (attempt.reports or 0)
    said = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert "Traceback" not in said, said
    run = out / "runs" / "tiny"
    with Run.open(run) as opened:
        assert opened.finished and reconciled(opened).counts().tolist() == [each.assigned for each in rounds]
    assert tacit.verify(run).holds


def released(store: Store) -> list[round_states.Attempt]:
    return [each for each in round_states.attempts(store, "tiny") if each.state == round_states.RELEASED]


def pinned(out: Path) -> str:
    return (out / "operator.pub").read_text().strip()
