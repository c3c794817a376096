"""`tacit.serve`: what it refuses, and a run that it carries to its end while its processes are killed."""

import os
import signal
import threading
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from tests.server.child_processes import processes_of
from tests.support.training.tiny import tiny_cache, tiny_recipe
from tests.support.waiting import PATIENCE, until
from tests.swarm import Swarm, SwarmSettings

import tacit
from tacit.errors import CacheError, InputError
from tacit.protocol.operator_key import OperatorKey
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.server.jobs import job_of
from tacit.server.serve import Address, Serving
from tacit.server.store import round_states
from tacit.server.store.store import Store

PHONES = {"population": "phones", "devices": 40, "pause_minutes": 0.0, "over_selection": 2.0}
SEALED = {"decryptors": tuple(f"http://127.0.0.1:1 {each * 32} {each * 32}" for each in ("ab", "cd"))}
SERVERS_OWN = {"validation": 5, "test": 6}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    cache = tiny_cache(tmp_path_factory.mktemp("ours") / "cache", SERVERS_OWN)
    made = tiny_recipe(cache.path, deployment=PHONES, rounds={"rounds": 12})
    return made.model_copy(update={"run": made.run.model_copy(update={"seed": None})})  # or devices know the noise


def test_what_cannot_be_served_is_refused_and_leaves_nothing(recipe: Recipe, tmp_path: Path) -> None:
    simulated = recipe.model_copy(update={"deployment": None})
    unnamed = recipe.model_copy(update={"name": "a name with spaces"})
    seeded = recipe.model_copy(update={"run": recipe.run.model_copy(update={"seed": 3})})
    assert recipe.deployment is not None
    sealed = recipe.model_copy(update={"name": "sealed", "deployment": recipe.deployment.model_copy(update=SEALED)})
    elsewhere = Address(port=0)
    for recipes, more, match in (
        ([], {}, "no recipe to serve"),
        ([simulated], {}, r"has no section \[deployment\]"),
        ([seeded], {}, "run.seed=3"),
        ([unnamed], {}, "'a name with spaces' is none for that"),
        ([recipe, recipe], {}, "two runs are called 'tiny'"),
        ([recipe], {"workers": 0}, "give 1 to 64"),
        (
            [recipe, sealed],
            {},
            "decryptors open the sums of 'sealed'.*Give --enrolment-codes FILE.*--without-enrolment",
        ),
        ([sealed], {"enrolment_codes": "codes", "without_enrolment": True}, "contradict each other"),
        ([recipe], {"admin_token": "short"}, "draw a longer one"),
        ([recipe], {"store": "sqlite:////nowhere/at/all.db"}, "there is no folder"),
        ([recipe], {"blobs": "ftp://a"}, "is no place for blobs"),
        ([recipe], {"web": tmp_path / "none"}, "is no folder; give the one that the page was built into"),
        ([recipe], {"web_origins": ["https://*.example.org"]}, r"no pattern of names is taken"),
    ):
        with pytest.raises(InputError, match=match):
            tacit.serve(recipes, tmp_path / "out", address=elsewhere, **more)  # type: ignore[arg-type]
    with pytest.raises(CacheError):
        tacit.serve([recipe], tmp_path / "out", data=tmp_path / "none", address=elsewhere)
    with elsewhere.listening() as listener, pytest.raises(InputError, match="cannot be listened on"):
        tacit.serve([recipe], tmp_path / "out", address=Address(port=listener.getsockname()[1]))
    assert not list(tmp_path.iterdir())


def test_a_server_has_its_workers_serve_a_page_and_let_listed_pages_in(tmp_path: Path) -> None:
    page, out, stop = tmp_path / "page", tmp_path / "out", threading.Event()
    page.mkdir()
    (page / "index.html").write_text("<!doctype html><title>a keyboard</title>")
    OperatorKey.in_file(tmp_path / "operator.key")
    status: list[int] = []

    def serving(told: Serving) -> None:
        assert f"page {told.url}/ : the operator serves the page that reads the text" in str(told)
        (page / "index.html").write_text("another page")
        assert "a keyboard" in httpx.get(told.url).text
        for said in ("https://type.example.org", "https://evil.example", told.url):
            status.append(httpx.get(f"{told.url}/v1/key", headers={"Origin": said}).status_code)
        status.append(httpx.get(told.url, headers={"Host": "evil.example"}).status_code)
        stop.set()

    where = {"store": f"sqlite:///{tmp_path / 'store.db'}", "blobs": f"file://{tmp_path / 'blobs'}"}
    done = tacit.serve(
        [],
        out,
        **where,
        operator_key=tmp_path / "operator.key",
        workers=1,
        address=Address(port=0),
        web=page,
        web_origins=["https://type.example.org"],
        serving=serving,
        stop=stop,
    )
    assert not done.finished and status == [200, 403, 200, 421]


def released(store: Store) -> list[int]:
    """The rounds that are."""
    return [each.round for each in round_states.attempts(store, "tiny") if each.state == round_states.RELEASED]


@pytest.mark.long
def test_a_run_is_served_to_its_end_whatever_is_killed(recipe: Recipe, tmp_path: Path) -> None:
    told: list[Serving] = []
    stop, ready = threading.Event(), threading.Event()
    result: list[bool] = []

    def serve() -> None:
        done = tacit.serve(
            [recipe],
            tmp_path / "out",
            workers=2,
            address=Address(port=0),
            serving=lambda each: (told.append(each), ready.set()),  # type: ignore[func-returns-value]
            stop=stop,
        )
        result.append(done.finished)

    server = threading.Thread(target=serve)
    server.start()
    try:
        assert ready.wait(PATIENCE)
        (serving,) = told
        settings = SwarmSettings(
            server=serving.url, operator_key=serving.operator_key, population="phones", devices=40, waits=0.1
        )
        devices = threading.Thread(
            target=lambda: Swarm(settings).run(PATIENCE * 2, until=lambda: not server.is_alive())
        )
        devices.start()
        with closing(Store.open(f"sqlite:///{tmp_path / 'out' / 'store.db'}")) as store:
            for done, role in ((1, "coordinator"), (4, "worker"), (7, "coordinator")):
                until(lambda done=done: len(released(store)) >= done)  # type: ignore[misc]
                before = processes_of(role)
                os.kill(before[0], signal.SIGKILL)
                until(lambda role=role, before=before: set(processes_of(role)) - set(before))  # type: ignore[misc]
            until(lambda: not server.is_alive())
            assert released(store) == list(range(12))
        devices.join()
    finally:
        stop.set()
        server.join()
    assert result == [True]
    with Run.open(serving.runs[0]) as run:
        assert run.finished and len(reconciled(run).counts()) == 12 and reconciled(run).counts().min() >= 6


@pytest.mark.parametrize("kind", ['"discovery"', "3"])
def test_a_kind_that_is_not_served_is_named_with_those_that_are(kind: str) -> None:
    with pytest.raises(InputError, match="what is served is of kind discover, evaluate, personalize"):
        job_of(f"kind = {kind}\n", where="asked.toml")
