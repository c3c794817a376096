"""A cohort trained on a cluster has the bits of one trained here, whoever is lost on the way."""

import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tests.support.training.tiny import (
    LOSS,
    MECHANISMS,
    collector_of,
    cores,
    first_state,
    tiny_cache,
    tiny_learner,
    tiny_recipe,
)
from tests.support.waiting import PATIENCE
from tests.training.ray_nodes import Nodes

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import CacheError, InputError, TrainingError
from tacit.privacy.encoding_choice import encoding_within
from tacit.progress import Event, Progress, Warned, silent
from tacit.training import ClientTraining, client
from tacit.training import workers_ray as cluster
from tacit.training.cohort import CohortSum, Workers, train_cohort
from tacit.training.ray_worker import NodeInfo, _work_of, job_of, versions
from tacit.training.rounds import run_round
from tacit.training.secure_updates import RoundEncoding
from tacit.training.workers_ray import RayWorkers, _Member, open_cluster

# Read when Ray is imported. With a token, as on a real cluster; this one is not written to anybody's home.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = "."  # as `open_cluster` has it, when it is the first to import Ray
pytest.importorskip("ray")

SETTINGS = ClientTraining(batch_size=4, sentences=8, words=6)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    running = Nodes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "STARTS_WITHIN", PATIENCE)
        yield running
    running.stop()


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


def heard(lines: list[str]) -> Progress:
    """Keeps the messages of all warnings."""

    def keep(event: Event) -> None:
        assert isinstance(event, Warned)
        lines.append(event.message)

    return keep


@pytest.fixture(scope="module")
def workers(nodes: Nodes, said: list[str]) -> Iterator[RayWorkers]:
    with open_cluster(nodes.address, progress=heard(said)) as opened:
        yield opened


@pytest.fixture
def lines(said: list[str]) -> list[str]:
    """What `workers` say during this test."""
    said.clear()
    return said


def cohort_sum(cache: Cache, workers: Workers, *, secure: RoundEncoding | None = None) -> CohortSum:
    learner = tiny_learner(cache)
    return train_cohort(
        learner.work(SETTINGS),
        jnp.asarray(learner.start),
        learner.clients,
        seed=b"seed",
        clip_norm=0.2,
        workers=workers,
        secure=secure,
    )


def assert_same(one: CohortSum, other: CohortSum) -> None:
    for a, b in zip(one[:-1], other[:-1], strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert (one.opened is None) == (other.opened is None)
    if one.opened is not None and other.opened is not None:
        assert one.opened[1:] == other.opened[1:]


def test_a_cluster_gives_the_bits_of_this_machine(cache: Cache, workers: RayWorkers, lines: list[str]) -> None:
    assert_same(cohort_sum(cache, workers), cohort_sum(cache, cores(2)))
    assert len(workers.nodes) == 1 and lines == []


def test_a_cluster_adds_the_same_integers(cache: Cache, workers: RayWorkers) -> None:
    learner = tiny_learner(cache)
    encoding = encoding_within(len(learner.start), 0.2, len(learner.clients))
    how = RoundEncoding(encoding=encoding, signs=bytes(32), clip_estimate=0.2, loss_bound=10.0)
    encoded = cohort_sum(cache, workers, secure=how)
    assert_same(encoded, cohort_sum(cache, cores(1), secure=how))
    assert not np.array_equal(encoded.total, cohort_sum(cache, cores(1)).total)


def test_decryptors_noise_on_a_cluster_is_that_of_this_machine(cache: Cache, workers: RayWorkers) -> None:
    learner = tiny_learner(cache)
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["tree"], aggregation={"kind": "secure", "decryptors": 2})
    plan, models = recipe.plan(), []
    for each in (workers, cores(1)):
        state, collector = first_state(learner, plan), collector_of(learner, plan, each, bytes(16))
        for round in range(2):
            state, _ = run_round(state, round, plan=plan, key=bytes(16), collector=collector)
        models.append(np.asarray(state.model))
    np.testing.assert_array_equal(*models)


@pytest.mark.long
def test_a_killed_worker_is_replaced_within_the_round(cache: Cache, workers: RayWorkers, lines: list[str]) -> None:
    here = cohort_sum(cache, cores(2))
    assert_same(cohort_sum(cache, workers), here)
    lines.clear()
    # A process that is stopped keeps the shards that it was given, until it is killed.
    victim = workers.nodes[0].process
    os.kill(victim, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
    assert_same(cohort_sum(cache, workers), here)
    assert len(workers.nodes) == 1 and workers.nodes[0].process != victim
    (line,) = lines
    assert f"the worker {victim} on {socket.gethostname()} was lost" in line and "trained again" in line


@pytest.mark.nightly
def test_nodes_come_and_go(cache: Cache, nodes: Nodes, workers: RayWorkers, lines: list[str]) -> None:
    here = cohort_sum(cache, cores(2))
    nodes.add()
    while len(workers.nodes) < 2:  # the second one starts while the first one works
        assert_same(cohort_sum(cache, workers), here)
    assert_same(cohort_sum(cache, workers), here)
    assert lines == []
    stopped = [machine.process for machine in workers.nodes]
    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    threading.Timer(0.5, nodes.remove).start()
    threading.Timer(2.0, go_on, (stopped,)).start()
    assert_same(cohort_sum(cache, workers), here)
    assert len(workers.nodes) == 1 and len(lines) == 1


def go_on(processes: list[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def test_a_round_that_was_given_up_leaves_nothing_to_the_next(cache: Cache, workers: RayWorkers) -> None:
    learner = tiny_learner(cache)
    shards = [learner.clients[at : at + 1] for at in range(9)]
    begun = workers.shard_sums(learner.work(SETTINGS), jnp.asarray(learner.start), shards, seed=b"other", clip_norm=0.2)
    next(begun)
    assert_same(cohort_sum(cache, workers), cohort_sum(cache, cores(1)))


def test_rounds_on_a_cluster_are_rounds_on_this_machine(cache: Cache, workers: RayWorkers) -> None:
    """Three rounds with noise, from who is drawn to the server's step."""
    plan, learner = tiny_recipe(cache.path).designed().plan(), tiny_learner(cache)
    models = []
    for whose in (cores(2), workers):
        state, collector = first_state(learner, plan), collector_of(learner, plan, whose, bytes(16))
        for round in range(3):
            state, _ = run_round(state, round, plan=plan, key=bytes(16), collector=collector)
        models.append(np.asarray(state.model))
    np.testing.assert_array_equal(*models)
    assert not np.array_equal(models[0], learner.start)


# -- what is refused -----------------------------------------------------------------------------------------------


def test_a_node_without_the_cache_is_named(cache: Cache, workers: RayWorkers, tmp_path: Path) -> None:
    gone = tiny_cache(tmp_path / "gone")
    assert len(gone.clients("train")) == 40  # mapped here, and so readable here when it is gone
    gone.path.rename(tmp_path / "elsewhere")
    where = f"on the node {socket.gethostname()}: there is no cache at {tmp_path / 'gone'}"
    with pytest.raises(CacheError, match=re.escape(where)):
        cohort_sum(gone, workers)
    tiny_cache(tmp_path / "gone", {"train": 41, "validation": 1, "test": 1})
    with pytest.raises(CacheError, match="is not the cache of this run"):
        cohort_sum(gone, workers)
    assert_same(cohort_sum(cache, workers), cohort_sum(cache, cores(1)))  # nothing is broken by it


def machine(node: str, **changes: Any) -> NodeInfo:
    return NodeInfo(name=node, process=1, versions=versions(), processor="one kind")._replace(**changes)


def welcome(told: list[str], *machines: NodeInfo) -> None:
    """Workers that start on these machines, one after another."""
    workers = RayWorkers(heard(told), Hardware())
    for started in machines:
        workers._welcome(_Member(actor=None, starts=None), started)


def test_other_versions_are_refused() -> None:
    old = machine("b", versions={**versions(), "jax": "0.0.7"})
    with pytest.raises(InputError, match=r"the node b has jax 0\.0\.7, and training was started with .*; install"):
        welcome([], machine("a"), old)


@pytest.mark.parametrize("units_here", [True, False])
def test_a_worker_that_computes_in_another_precision_is_refused(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, units_here: bool
) -> None:
    """The start of training and a worker, of which one has units for the bfloat16 of the recipe."""
    learner, computes = tiny_learner(cache), {True: "bfloat16", False: "float32"}
    monkeypatch.setattr(client, "usable_precision", lambda asked: computes[units_here])
    job = job_of(learner.work(replace(SETTINGS, precision="bfloat16")), len(learner.start))
    assert _work_of(job).settings.precision == "bfloat16"
    monkeypatch.setattr(client, "usable_precision", lambda asked: computes[not units_here])
    said = (
        f"the node {socket.gethostname()} computes this recipe in {computes[not units_here]}, .* {computes[units_here]}"
    )
    with pytest.raises(InputError, match=said):
        _work_of(job)


def test_other_processors_are_told_once() -> None:
    told: list[str] = []
    welcome(told, machine("a"), machine("b"), machine("c", processor="other"), machine("d", processor="other"))
    (line,) = told
    assert "the processors differ (other on c, one kind elsewhere)" in line


def test_a_cluster_that_starts_nobody_is_not_waited_for(
    cache: Cache, workers: RayWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort_sum(cache, workers)  # which takes the cluster's one core, whatever test came before
    assert workers.nodes
    monkeypatch.setattr(cluster, "STARTS_WITHIN", 0.4)
    with pytest.raises(TrainingError, match=r"no worker started within 0 s on a cluster with .*'CPU'"):
        cohort_sum(cache, RayWorkers(silent, Hardware()))


@pytest.mark.nightly
def test_a_shard_that_kills_its_workers_ends_the_round(
    cache: Cache, workers: RayWorkers, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "LOSSES", 1)
    learner = replace(tiny_learner(cache), loss=fatal_loss)
    with pytest.raises(TrainingError, match="after 1 others with the same clients; if memory ran out"):
        train_cohort(
            learner.work(SETTINGS),
            jnp.asarray(learner.start),
            learner.clients,
            seed=b"s",
            clip_norm=0.2,
            workers=workers,
        )
    assert len(lines) == 1 and "trained again elsewhere" in lines[0]


def fatal_loss(model: Any, sentences: Any) -> Any:
    """Ends the process that trains with it."""
    os._exit(1)


def test_a_loss_that_other_processes_cannot_import_is_refused(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = tiny_learner(cache, lambda model, sentences: LOSS(model, sentences))
    with pytest.raises(InputError, match="define it at the top level of a module"):
        job_of(learner.work(SETTINGS), len(learner.start))
    monkeypatch.setattr(sys.modules["__main__"], "fatal_loss", fatal_loss, raising=False)
    monkeypatch.setattr(fatal_loss, "__module__", "__main__")
    with pytest.raises(InputError, match="it is defined in the script that was started"):
        job_of(tiny_learner(cache, fatal_loss).work(SETTINGS), len(learner.start))


@pytest.mark.parametrize("address", ["ray://10.0.0.1:10001", "somewhere", "10.0.0.1", "local"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="must be auto or HOST:PORT"), open_cluster(address):
        pass


def test_an_address_where_nobody_listens_is_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    silence = pytest.raises(InputError, match=rf"no cluster answers at '127\.0\.0\.1:{port}'")
    with silence, open_cluster(f"127.0.0.1:{port}"):
        pass


def test_an_address_that_listens_and_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWERS_WITHIN", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        patience = pytest.raises(InputError, match="within 2 s; start one with `ray start --head`")
        with patience, open_cluster(f"127.0.0.1:{port}"):
            pass
