"""`tacit serve words.toml` in processes of its own, and devices on sockets, while a coordinator is killed."""

import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.child_processes import processes_of
from tests.support.server.words import words_toml
from tests.support.training.tiny import tiny_cache
from tests.support.waiting import PATIENCE, until

import tacit
from tacit.runs import Run
from tacit.server.log.logged_run import verify_log
from tacit.server.serve import Address, Serving
from tacit.server.store import round_states
from tacit.server.store.store import Store

GROUPS, USERS = 3, 4


@pytest.mark.long
def test_devices_on_sockets_find_words_whoever_is_killed(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache", {"train": 30})
    file, out = tmp_path / "words.toml", tmp_path / "out"
    deployment = {"population": "keyboards", "devices": 30, "pause_minutes": 0.0, "over_selection": 1.0}
    changed = {"users_per_layer": USERS, "depth": 2, "counting_users": USERS, "deployment": deployment}
    file.write_text(words_toml(tmp_path / "files", **changed), encoding="utf-8")
    told: list[Serving] = []
    stop, ready = threading.Event(), threading.Event()
    finished: list[bool] = []

    def serve() -> None:
        def serving(each: Serving) -> None:
            told.append(each)
            ready.set()

        finished.append(tacit.serve([file], out, address=Address(port=0), serving=serving, stop=stop).finished)

    server = threading.Thread(target=serve)
    server.start()
    try:
        assert ready.wait(PATIENCE)
        reported = 0
        with closing(Store.open(f"sqlite:///{out / 'store.db'}")) as store:
            for client in range(GROUPS * USERS):
                if client == USERS + 1:  # in the second group
                    before = processes_of("coordinator")
                    os.kill(before[0], signal.SIGKILL)
                    until(lambda before=before: set(processes_of("coordinator")) - set(before))  # type: ignore[misc]
                until(
                    lambda: any(each.state == round_states.SELECTING for each in round_states.attempts(store, "words"))
                )
                reported += comes(told[0], cache.path, tmp_path / f"device-{client}", client)
        until(lambda: not server.is_alive())
    finally:
        stop.set()
        server.join()
    assert finished == [True] and reported == GROUPS * USERS
    run = out / "runs" / "words"
    with Run.open(run) as opened:
        assert opened.finished and opened.counts().tolist() == [USERS] * GROUPS
    assert tacit.verify(run).holds
    assert all(line.holds for line in verify_log(run, str(out / "operator.log")))


def comes(serving: Serving, data: Path, state: Path, client: int) -> int:
    """One device, until it took part."""
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last:
        turn = tacit.run_device(
            serving.url,
            data,
            state,
            population="keyboards",
            client=client,
            operator_key=serving.operator_key,
            first_time=True,
            once=True,
            probes=[],
            policy=tacit.Policy(send_after_s=0.0),
        )
        if turn.what == "reported":
            assert turn.zcdp == 2.0
            return 1
        assert turn.what in ("idle", "unanswered"), turn.says
        time.sleep(0.2)
    raise AssertionError("there was nothing to do")
