"""The quick start of docs/deploy.md: its own commands, in processes of their own, from recipe to verified statement."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.support.jobs.few_shipped import small_demo
from tests.support.pages import commands
from tests.support.training.tiny import tiny_cache, tiny_recipe
from tests.support.waiting import until

import tacit
from tacit.errors import InputError
from tacit.recipe import Recipe
from tacit.recipe.shipped_recipes import shipped

PAGE = REPOSITORY / "docs" / "deploy.md"
PATIENCE = 900.0  # seconds, on a busy machine
RUN = "chat-devices"


def of_the_page(begins: str) -> str:
    """Its command that begins so."""
    return next(each.text for each in commands(PAGE) if each.text.startswith(begins))


def test_the_recipe_of_the_quick_start_promises_something_that_its_devices_can_compute() -> None:
    asked = Recipe.load(Path(RUN))
    assert asked.deployment is not None and asked.deployment.devices == 16
    assert asked.matrix() is None and asked.designed().plan().guarantee.epsilon(1e-5) <= 8
    assert shipped()[RUN].count("\n") > 20


def test_a_seed_that_every_device_would_get_is_refused(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache", {"validation": 5, "test": 6})
    asked = tiny_recipe(cache.path, deployment={"population": "phones", "devices": 40})
    assert asked.run.seed is not None
    with pytest.raises(InputError, match=r"run\.seed=3 .* goes to every device .*drop \[run\] seed"):
        tacit.serve([asked], tmp_path / "served")
    assert not (tmp_path / "served").exists()


def test_without_a_recipe_it_is_told_whose_rounds_workers_answer_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give one or more, or --store, --blobs and --operator-key"):
        tacit.serve([], tmp_path / "served", store=f"sqlite:///{tmp_path / 'store.db'}")


@pytest.mark.long
def test_the_commands_of_the_page_lead_to_a_verified_statement(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    where = {"cwd": tmp_path, "env": os.environ | {"PATH": path}, "text": True}

    def done(command: str) -> str:
        return subprocess.run(["bash", "-c", command], check=True, capture_output=True, **where).stdout  # type: ignore[call-overload,no-any-return]

    with pytest.MonkeyPatch.context() as patch:
        small_demo(patch, tmp_path_factory.mktemp("shipped"))
        tacit.demo(tmp_path / "runs" / "demo", quick=True)
    for begins in ("tacit recipe show", "tacit export"):
        done(of_the_page(begins))
    with (tmp_path / "serve.log").open("w") as said, (tmp_path / "devices.log").open("w") as heard:
        server = subprocess.Popen(shlex.split(of_the_page("tacit serve")), stderr=said, stdout=said, **where)  # type: ignore[call-overload]
        devices = None
        try:
            until((tmp_path / "served" / "operator.pub").exists, alive=server, patience=PATIENCE)
            loop = ["bash", "-c", of_the_page("for client")]
            devices = subprocess.Popen(loop, stderr=heard, stdout=heard, start_new_session=True, **where)  # type: ignore[call-overload]
            assert server.wait(PATIENCE) == 0, (tmp_path / "serve.log").read_text()
        finally:
            if devices is not None:
                os.killpg(devices.pid, signal.SIGTERM)
                devices.wait(PATIENCE)
            server.terminate()
            server.wait(PATIENCE)
    told = (tmp_path / "devices.log").read_text()
    assert "Traceback" not in told and told.count("the operator signed for it") >= 12, told
    for begins in ("tacit verify served", "tacit account run served"):
        done(of_the_page(begins))
