"""All of it as processes: a server, two decryptors and devices make a private model of sealed rounds on one machine."""

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.support.server.decryptor_process import decryptor
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.device.policy import Policy
from tacit.device.session import Machine
from tacit.protocol.address import Address
from tacit.protocol.operator_key import OperatorKey
from tacit.runs import Run
from tacit.server.serve import Serving

DEVICES, ROUNDS, GOAL = 12, 2, 3


@pytest.mark.long
@pytest.mark.parametrize("noise", [pytest.param("server", marks=pytest.mark.nightly), "decryptors"])
def test_devices_decryptors_and_a_server_make_a_private_model(tmp_path: Path, noise: str) -> None:
    operator = OperatorKey.in_file(tmp_path / "operator.key").public
    codes = [f"a-secret-code-of-device-{client:04}" for client in range(DEVICES)]
    (tmp_path / "codes").write_text("\n".join(codes))
    for client, code in enumerate(codes):
        (tmp_path / f"code-{client}").write_text(code)
    cache = tiny_cache(tmp_path / "cache", {"train": DEVICES, "validation": 5, "test": 6})
    with ExitStack() as stack:
        lines = []
        for number in range(2):
            line, process = stack.enter_context(decryptor(tmp_path / f"decryptor-{number}", operator, least=GOAL))
            lines.append(line)
        phones = {"population": "phones", "devices": 40, "decryptors": lines, "pause_minutes": 0.01, "noise": noise}
        recipe = tiny_recipe(
            cache.path,
            deployment=phones,
            aggregation={"kind": "secure"},
            rounds={"rounds": ROUNDS, "report_goal": GOAL, "min_separation": 1},
            privacy={"mechanism": {"name": "blt-b400"}, "noise_multiplier": 6.0},
        )
        recipe = recipe.model_copy(update={"run": recipe.run.model_copy(update={"seed": None})})
        process.send_signal(signal.SIGKILL)  # a decryptor that is killed comes again, at its address
        process.wait()
        port = int(lines[1].split()[0].rpartition(":")[2])
        stack.enter_context(decryptor(tmp_path / "decryptor-1", operator, port, least=GOAL))
        stop, there, told = threading.Event(), threading.Event(), list[Serving]()

        def serving(said: Serving) -> None:
            told.append(said)
            there.set()

        def rest(seconds: float) -> None:
            stop.wait(min(seconds, 1.0))

        def be(client: int) -> list[str]:
            assert there.wait(300)
            says: list[str] = []

            class Over(Exception):
                pass

            def heard(turn: object) -> None:
                says.append(str(turn))
                if stop.is_set():
                    raise Over

            with suppress(Over):
                tacit.run_device(
                    told[0].url,
                    cache.path,
                    tmp_path / f"device-{client}",
                    population="phones",
                    client=client,
                    enrolment_code=tmp_path / f"code-{client}",
                    operator_key=operator,
                    first_time=True,
                    probes=(),
                    policy=Policy(
                        largest_epsilon=1e6,
                        largest_zcdp=1e6,
                        budget_zcdp=1e6,
                        largest_delta=0.1,
                        send_after_s=0.0,
                        noise_by_decryptors=noise == "decryptors",
                    ),
                    machine=Machine(sleep=rest),
                    told=heard,
                )
            return says

        with ThreadPoolExecutor(DEVICES) as threads:
            devices = [threads.submit(be, client) for client in range(DEVICES)]
            try:
                result = tacit.serve(
                    [recipe],
                    tmp_path / "served",
                    operator_key=tmp_path / "operator.key",
                    enrolment_codes=tmp_path / "codes",
                    workers=1,
                    address=Address(port=0),
                    serving=serving,
                )
            finally:
                stop.set()
                there.set()
            said = [line for each in devices for line in each.result()]
    assert result.finished
    assert sum(line.startswith("reported") for line in said) >= ROUNDS * GOAL, said
    with Run.open(result.runs[0]) as run:
        assert run.steps_done == ROUNDS
        assert [each["reports"] for row in run.steps() for each in row.releases] == [GOAL] * ROUNDS
    text = tacit.statement(result.runs[0]).markdown()
    assert "which only 2 or more of 2 decryptors together can recover" in text
    assert ("2 decryptors each add the whole noise of the mechanism" in text) == (noise == "decryptors")
    assert ("the server is trusted to run the mechanism" in text) == (noise == "server")
    for number in range(2):
        given = list((tmp_path / f"decryptor-{number}" / "noise").glob("*/rounds.json"))
        assert [json.loads(file.read_text())["rounds"] for file in given] == ([ROUNDS] if noise == "decryptors" else [])
    assert tacit.verify(result.runs[0]).holds
    assert not list((tmp_path / "served" / "blobs").rglob("*-*"))
