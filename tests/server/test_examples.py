"""The files of examples/deployment, as far as they can be tried without what reads them (docs/deploy.md)."""

import hashlib
import os
import re
import shlex
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import typer
import yaml
from tests.conftest import REPOSITORY
from tests.support.certificates import certificate
from tests.support.server.documents import PARAMETERS
from tests.support.server.fleet import a_training_task
from tests.support.server.loopback import loopback
from tests.support.server.served import check_in
from tests.support.waiting import until

from tacit.cli.commands import app
from tacit.device.transport import held
from tacit.protocol import requests
from tacit.protocol.address import Address
from tacit.protocol.bodies import ReportBody, report_body
from tacit.protocol.bounded_http import Server, connected
from tacit.protocol.messages import CheckIn, ComeBack, Receipt, RoundTask
from tacit.protocol.requests import NamedFile
from tacit.server.metrics import Metrics
from tacit.server.supervisor import ENDING_S

FOLDER = REPOSITORY / "examples" / "deployment"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
KUBERNETES = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8")))
UNIT = (FOLDER / "tacit.service").read_text("utf-8")


def pods() -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in KUBERNETES if each["kind"] in ("StatefulSet", "Deployment")]


def commands() -> dict[str, list[str]]:
    """What follows `tacit` in each of them."""
    found = {name: shlex.split(COMPOSE["services"][name]["command"]) for name in ("coordinator", "workers")}
    (start,) = re.findall(r"^ExecStart=\S+/tacit (.*?[^\\])$", UNIT, re.MULTILINE | re.DOTALL)
    found["unit"] = shlex.split(start.replace("\\\n", " "))
    for number, pod in enumerate(pods()):
        (container,) = pod["containers"]
        found[f"pod {number}"] = shlex.split(container["args"][0].partition("exec tacit ")[2])
    return found


@pytest.mark.parametrize("name", commands())
def test_its_command_is_one_that_tacit_serve_takes(name: str) -> None:
    group: Any = typer.main.get_command(app)
    said, *given = commands()[name]
    assert said == "serve"
    made = group.made("serve")
    made.make_context("serve", list(given))
    with pytest.raises(Exception, match="No such option"):
        made.make_context("serve", [*given, "--worker-count", "2"])


def test_what_is_scaled_by_is_what_is_counted() -> None:
    shown = Metrics()
    shown.check_ins.labels("come_back").inc()
    counters = set(re.findall(r"tacit_\w+_total", (FOLDER / "kubernetes.yaml").read_text("utf-8")))
    assert counters == {"tacit_check_ins_total"} and b"tacit_check_ins_total{" in shown.text()
    (scaler,) = [each["spec"] for each in KUBERNETES if each["kind"] == "HorizontalPodAutoscaler"]
    (deployment,) = [each for each in KUBERNETES if each["kind"] == "Deployment"]
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"], "a file that is applied again would undo the scaling"


def test_whoever_ends_has_the_time_for_it() -> None:
    graces = [pod["terminationGracePeriodSeconds"] for pod in pods()]
    graces += [
        int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s")) for name in ("coordinator", "workers")
    ]
    graces += [int(each) for each in re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)]
    assert len(graces) == 5 and min(graces) > ENDING_S


def test_secrets_mounts_and_ports_are_those_that_are_declared() -> None:
    for service in COMPOSE["services"].values():
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys()
        assert set(service.get("depends_on", {})) <= COMPOSE["services"].keys()
    for pod in pods():
        (container,) = pod["containers"]
        volumes = {each["name"] for each in pod["volumes"]} | {"work"}
        assert {each["name"] for each in container["volumeMounts"]} <= volumes
        assert container["ports"] == [{"name": "http", "containerPort": 8470}]
        assert container["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}


def free_port() -> int:
    with Address(port=0).listening() as listener:
        return int(listener.getsockname()[1])


@contextmanager
def nginx(folder: Path, behind: str) -> Iterator[tuple[Server, Path]]:
    """The file as it is, but for addresses and paths, before the server at `behind`; its address and certificate."""
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("nginx is not installed")
    believed, secret = certificate(folder)
    port, text = free_port(), (FOLDER / "nginx.conf").read_text("utf-8")
    for old, new in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("server 127.0.0.1:8470;", f"server {behind.removeprefix('http://')};"),
        ("/etc/nginx/cert.pem", str(believed)),
        ("/etc/nginx/key.pem", str(secret)),
        ("/var/cache/nginx/tacit", str(folder / "kept")),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    temporary = "".join(
        f"{each}_temp_path {folder / each}; " for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root; " if os.geteuid() == 0 else ""  # or its workers may not write here
    head = f"{user}daemon off; pid {folder / 'pid'}; error_log {folder / 'errors'}; events {{}}\n"
    (folder / "conf").write_text(f"{head}http {{ {temporary}\n{text}\n}}\n")
    tested = subprocess.run([program, "-t", "-c", str(folder / "conf")], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr
    process = subprocess.Popen([program, "-c", str(folder / "conf")], stderr=subprocess.DEVNULL)
    try:
        until(lambda: (folder / "pid").exists() and (folder / "pid").read_text() != "")
        yield Server.from_url(f"https://127.0.0.1:{port}"), believed
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.long
def test_devices_take_part_through_nginx(tmp_path: Path) -> None:
    with loopback(tmp_path, workers=1) as server, nginx(tmp_path, server.url) as (address, believed):
        found: list[Any] = []
        asked = a_training_task(0, goal=2, clip_estimate=None, loss_bound=None)
        collecting = threading.Thread(
            target=lambda: found.append(server.collector.collect((), asked, seed=bytes(32))[0])
        )
        collecting.start()
        came = 0
        while came < 2:
            with connected(address, certificates=believed) as connection:
                answer = connection.held(requests.check_in(CheckIn(**check_in())))
                if isinstance(answer, ComeBack):
                    continue
                content = answer.signed_task.read(RoundTask).content
                file = NamedFile(what="model", sha256=content.sha256, size=content.bytes)
                held(requests.named_file(content.path, file), connection, time.sleep)
                body = report_body(
                    ReportBody(np.full(PARAMETERS, 0.1, np.float32), True, None, None), answer.assignment
                )
                sending = requests.report(answer.assignment, answer.secret, body, hashlib.sha256(body).hexdigest())
                assert connection.held(sending).read(Receipt).received
                came += 1
        collecting.join()
        assert found[0].reports == 2 and found[0].total == pytest.approx(np.full(PARAMETERS, 0.2))
        assert any((tmp_path / "kept").rglob("*")), "the model was kept"
        context = ssl.create_default_context(cafile=believed)
        for path, status in (("/metrics", 403), ("/admin/runs", 403), ("/healthz", 200)):
            assert httpx.get(address.url + path, verify=context).status_code == status
