"""What a server of real devices carries on one machine: `tacit serve`'s workers, loaded over loopback.

Workers and decryptors are started in the environment that this has: set nothing, as a user does (`allowed` says what is
set of threads). Rows, each one JSON line:

idle          check-ins a second that are told when to come back, over kept connections and over one each; 1 and 2
              workers, load generator included
assignments   tasks given out a second, on SQLite and on PostgreSQL (a server of its own in a throw-away folder)
round         a round of 500 devices of the 2.4 M network in the clear (each fetches 9.6 MB and sends 9.6 MB), beside
              its floor, network plus sum: a bare asyncio server without HTTP, TLS, store or digests that sends the same
              bytes to as many connections, 16 at a time, reads as many and adds them up, and a bare client; a second
              floor adds the CPU time of the protocol's three SHA-256 (of the model and the report by the device, of the
              report by the server). A round's time has the devices' work in it: they have the same two cores
encoded       the same round of integers
sealed        the same round of sealed reports, with four decryptors as processes: its reports sealed before it begins
              (so that the devices' CPU time is not in it), and sealed in it; both beside the round in the clear
memory        what a worker holds at most in rounds of 100, 1,000 and 5,000 devices, of which 100 come a second and
              64 send at a time
start         a worker until it serves; `tacit device --once` until it was told when to come back
flower        SuperLink with idle nodes that pull messages, with `--peer-python PY`, where PY has flwr

Wall-clock figures hold for a machine that does nothing else. `cores` figures are a quotient of work and CPU time, times
two: what two idle cores would do, measured on a busy machine as well. `load` is the machine's load average before,
`processor` its name and cores.

    python benchmarks/deployment/deployment_load.py                         all of it, some five minutes
    python benchmarks/deployment/deployment_load.py --only idle start       these rows
    python benchmarks/deployment/deployment_load.py --small                 a smoke test
    python benchmarks/deployment/deployment_load.py --only round --parameters 20000     rounds of a small network
"""

import argparse
import asyncio
import hashlib
import json
import os
import platform
import resource
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

CORES, CONNECTIONS, POPULATION, CLIP_NORM = 2, 64, "load", 1.0
CHECK_IN = {"version": 2, "population": POPULATION, "versions": {"train": 1}, "token": None}
ROWS = ("idle", "assignments", "round", "encoded", "sealed", "memory", "start", "flower")
TICKS = os.sysconf("SC_CLK_TCK")
DECRYPTORS = 4
ARRIVE = 100  # devices a second that come in rows of memory, where each connection that is open takes some
SPARE = 4  # devices more than a round needs: the place of a report that was lost is another's
# A process that plays 500 devices keeps the memory of one for the next, which each real one has of its own.
KEPT_MEMORY = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296:glibc.malloc.arena_max=1"
ALLOWED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # what a user may have set
DISTINCT = 1  # update for all devices of a round: drawing one each would take longer than the round


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    seconds: float  # of load
    parameters: int
    devices: int
    memory_parameters: int
    memory_devices: tuple[int, ...]
    codes: int  # devices that have tokens, 32 each


FULL = Sizes(5.0, 2_378_304, 500, 65_536, (100, 1_000, 5_000), 100)
SMALL = Sizes(1.0, 50_000, 40, 5_000, (20, 60), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--parameters", type=int, help="of the network of rounds, in place of 2.4 M")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite", help="of round and encoded")
    parser.add_argument("--peer-python", help="a Python that has flwr")
    parser.add_argument("--play", choices=tuple(PLAYED), help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[2]))  # swarms, a PostgreSQL and a tiny cache are those of the tests
    if given.play:
        print(json.dumps(PLAYED[given.play](**json.loads(sys.stdin.readline()))), flush=True)
        return
    sizes = SMALL if given.small else FULL
    if given.parameters is not None:
        sizes = replace(sizes, parameters=given.parameters)
    machine = {"processor": processor(), "allowed": {name: os.environ[name] for name in ALLOWED if name in os.environ}}
    rows: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "idle": lambda: idle_rows(sizes),
        "assignments": lambda: assignment_rows(sizes, given.workers),
        "round": lambda: round_rows(sizes, given.workers, given.store, encoded=False),
        "encoded": lambda: round_rows(sizes, given.workers, given.store, encoded=True),
        "sealed": lambda: sealed_rows(sizes, given.workers),
        "memory": lambda: memory_rows(sizes, given.workers),
        "start": start_rows,
        "flower": lambda: flower_rows(sizes, given.peer_python),
    }
    for name in given.only:
        load = os.getloadavg()[0]
        for row in rows[name]():
            print(json.dumps({"row": name, **row, "load": round(load, 1), **machine}), flush=True)


def processor() -> str:
    """This machine's, as Linux names it, and how many cores it has."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.machine())}, {os.cpu_count()} cores"


# -- a server ----------------------------------------------------------------------------------------------------------


@dataclass
class Server:
    """Workers over a store, and the run that they serve."""

    url: str
    key: Any
    plan: Any
    lease: Any
    store: Any
    blobs: Any
    workers: list[int]  # process ids
    ready_s: float  # from their start until they served
    decryptors: list["RunningDecryptor"]
    key_file: Path  # the operator's

    database: int | None = None  # process id of a PostgreSQL

    def cpu(self) -> float:
        """Seconds that the workers have spent, and the database."""
        return sum(map(cpu_of, [*self.workers, *([] if self.database is None else family_of(self.database))]))

    def open_round(self, *, most: int, parameters: int, round: int = 0) -> Any:
        """One that gives out so many tasks, of a model of zeros."""
        from tacit.protocol.served_bodies import model_body
        from tacit.server.store import round_states
        from tacit.server.store.blobs import model_name

        body = model_body(np.zeros(parameters, np.float32))
        name, now = hashlib.sha256(body).hexdigest(), time.time()
        self.blobs.put(model_name(name), body)
        task = a_task(self.plan, name, len(body), parameters, round, now)
        return round_states.open_round(
            self.store,
            self.lease,
            round_states.NewRound(
                task=task.task,
                round=round,
                attempt=0,
                signed_task=self.key.signed(task).to_json(),
                model_digest=name,
                goal=most,
                least=2,
                most=most,
                closes_selecting=now + 3000,
                deadline=now + 3600,
            ),
        )


@contextmanager
def serving(
    workers: int, *, store_url: str | None = None, decryptors: int = 0, enrols: bool = False, encoded: bool = False
) -> Iterator[Server]:
    """So many workers, started as `tacit serve` starts them; with decryptors, which listen, of a run of sealed rounds.

    encoded: devices of the run send integers.
    """
    from tacit.protocol.address import Address
    from tacit.protocol.log_proofs import plan_entry
    from tacit.protocol.operator_key import OperatorKey
    from tacit.protocol.signing import digest
    from tacit.server.log.transparency import TransparencyLog
    from tacit.server.store import round_states
    from tacit.server.store.blobs import BlobStore
    from tacit.server.store.store import Store
    from tacit.server.supervisor import Role, Supervisor

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tacit-load-")))
        listener = stack.enter_context(Address(port=0).listening())
        url, blobs_url, key = store_url or f"sqlite:///{folder / 'store.db'}", f"file://{folder / 'blobs'}", None
        store, blobs, key = Store.open(url), BlobStore.open(blobs_url), OperatorKey.in_file(folder / "key")
        running = [stack.enter_context(a_decryptor(folder / f"decryptor-{i}", key.public)) for i in range(decryptors)]
        plan = a_plan(running, encoded=encoded)
        said = {"population": plan.population, "kind": "train", "plan": key.plan(plan.to_json()).to_json()}
        round_states.enter_run(store, plan.run, **said, plan_digest=digest(plan.to_json()))
        log = TransparencyLog.beside(store, key, folder / "key")
        log.append(plan_entry(digest(plan.to_json())))  # as devices look for it
        lease = round_states.take_lease(store, plan.run, seconds=1000)
        told = {"store": url, "blobs": blobs_url, "key": str(folder / "key"), "socket": listener.fileno()}
        told["enrolment"] = enrols
        supervisor = Supervisor([Role("worker", f"worker {i}", told, (listener.fileno(),)) for i in range(workers)])
        stop, ready = threading.Event(), threading.Event()
        began = time.monotonic()
        thread = threading.Thread(target=supervisor.run, args=(stop,), kwargs={"ready": ready.set})
        thread.start()
        try:
            assert ready.wait(60), "the workers did not start"
            waited = time.monotonic() - began
            pids = [child.process.pid for child in supervisor._children if child.process is not None]
            yield Server(
                Address(port=0).url(listener), key, plan, lease, store, blobs, pids, waited, running, folder / "key"
            )
        finally:
            stop.set()
            thread.join()
            store.close()


@contextmanager
def serving_on(store: str, workers: int, *, encoded: bool = False) -> Iterator[Server | None]:
    """The same on SQLite, or on a PostgreSQL in a throw-away folder; None where none is installed."""
    from tests.support.server.stores import postgresql, postgresql_programs

    with ExitStack() as stack:
        if store == "sqlite":
            yield stack.enter_context(serving(workers, encoded=encoded))
        elif (programs := postgresql_programs()) is None:
            yield None
        else:
            database = stack.enter_context(postgresql(programs))
            server = stack.enter_context(serving(workers, store_url=database.new_database(), encoded=encoded))
            server.database = int((database._folder / "data" / "postmaster.pid").read_text().split()[0])
            yield server


@dataclass
class RunningDecryptor:
    """A process of `tacit decryptor`."""

    url: str
    identity: str
    box: str
    pid: int


@contextmanager
def a_decryptor(state: Path, operator: str) -> Iterator[RunningDecryptor]:
    """One that listens."""
    command = [sys.executable, "-m", "tacit", "decryptor", "--state", str(state), "--least-reports", "2"]
    command += ["--port", "0", "--operator-key", operator]
    environment = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            identity, box, url = (process.stderr.readline().split()[-1] for _ in range(3))
            yield RunningDecryptor(url, identity, box, process.pid)
        finally:
            process.kill()


def a_plan(decryptors: Sequence[RunningDecryptor] = (), *, encoded: bool = False) -> Any:
    """A run that nobody trains; of sealed rounds where it has decryptors."""
    from tacit.protocol.messages import UNATTESTED, AggregationSettings, Plan, Separation, TrainingPrivacy

    return Plan(
        version=2,
        kind="train",
        population=POPULATION,
        run="load",
        recipe=f'name = "load"\n[deployment]\npopulation = "{POPULATION}"\ndevices = 10000\n',
        code="00" * 32,
        privacy=TrainingPrivacy(
            kind="training",
            zcdp=None,
            epsilon=None,
            delta=1e-6,
            clip_norm=CLIP_NORM,
            noise_multiplier=0.0,
            mechanism="none",
            matrix=None,
            report_goal=500,
            rounds=100,
            max_participations=None,
        ),
        separation=Separation(rounds=1, timer_seconds=None, clock="start"),
        aggregation=AggregationSettings(
            kind="sealed" if decryptors else "encoded" if encoded else "plain",
            threshold=2,
            keepers=tuple(each.identity for each in decryptors),
            boxes=tuple(each.box for each in decryptors),
            corrupt=1 if decryptors else 0,
            contributors=(),
            honest=1,
        ),
        vocabulary="00" * 32,
        attestation=UNATTESTED,
        enrolment="none",
    )


def a_task(plan: Any, model: str, size: int, parameters: int, round: int, now: float) -> Any:
    """One that asks for updates in the clear."""
    from tacit.protocol.messages import Content, RoundTask
    from tacit.protocol.signing import digest
    from tacit.protocol.train import TrainDocument, Training

    return RoundTask(
        run=plan.run,
        plan=digest(plan.to_json()),
        round=round,
        attempt=0,
        task=secrets.token_hex(16),
        content=Content(sha256=model, bytes=size, path=f"/v1/models/{model}"),
        asks=TrainDocument(
            kind="train",
            parameters=parameters,
            client=Training(
                epochs=1, batch_size=16, learning_rate=0.5, sentences=64, words=20, proximal=0.0, precision="float32"
            ),
            clip_norm=CLIP_NORM,
            clip_estimate=None,
            loss_bound=None,
            encoded=None,
        ),
        sealed=None,
        opens=now,
        deadline=now + 3600,
    )


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has spent by now, and its children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def family_of(pid: int) -> list[int]:
    """A process and its children that live."""
    found = [pid]
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((each / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(each.name))
    return found


def peak_of(pid: int) -> float:
    """MB that a process held at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def play(role: str, **told: Any) -> dict[str, Any]:
    """Have another process of this file play a role; what it found."""
    command = [sys.executable, __file__, "--play", role]
    done = subprocess.run(command, input=json.dumps(told) + "\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# -- check-ins and assignments -----------------------------------------------------------------------------------------


def generated(
    url: str, seconds: float, kept: bool, connections: int, tokens: Sequence[str] | None = None
) -> dict[str, Any]:
    """Check-ins from so many devices at a time, one after another, for so long.

    tokens: each check-in is asked for one, and made again with one of these, until there are none.
    """
    import uvloop
    from tests.swarm.connection import Place, SwarmConnection

    body, place, counts = (
        json.dumps(CHECK_IN).encode(),
        Place.from_url(url),
        {"come_back": 0, "assignment": 0, "other": 0},
    )
    left = None if tokens is None else list(tokens)

    async def device(until: float) -> None:
        connection = await SwarmConnection.to(place)
        while time.monotonic() < until and left != []:
            if connection.closed or not kept:
                connection.close()
                connection = await SwarmConnection.to(place)
            answer = await connection.ask("POST", "/v1/check-in", body=body, seconds=30.0)
            if answer.status == 401 and left is not None:
                if not left:
                    break
                shown = json.dumps({**CHECK_IN, "token": left.pop()}).encode()
                answer = await connection.ask("POST", "/v1/check-in", body=shown, seconds=30.0)
            kind = answer.body[11:21].decode("latin-1").strip('",')  # {"answer":"come_back", ...
            counts[kind if answer.status == 200 and kind in counts else "other"] += 1
        connection.close()

    async def all_of_them() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(device(until) for _ in range(connections)))

    began, cpu = time.monotonic(), own_cpu()
    uvloop.run(all_of_them())
    return {**counts, "wall_s": time.monotonic() - began, "cpu_s": own_cpu() - cpu}


def loaded(
    server: Server, sizes: Sizes, *, kept: bool, what: str, tokens: Sequence[str] | None = None
) -> dict[str, Any]:
    """What the workers answered to a load generator."""
    told = {"url": server.url, "kept": kept, "connections": CONNECTIONS}
    play("generate", **told, seconds=0.5)  # once to be warm
    before = server.cpu()
    found = play("generate", **told, seconds=sizes.seconds, tokens=tokens)
    spent = server.cpu() - before
    assert not found["other"] and found[what] > 0, found
    return {
        "a_second": round(found[what] / found["wall_s"]),
        "a_second_by_cores": round(CORES * found[what] / (spent + found["cpu_s"])),
        "a_second_by_cores_server_alone": round(CORES * found[what] / spent),
        "server_us": round(1e6 * spent / found[what]),
        "generator_us": round(1e6 * found["cpu_s"] / found[what]),
        "answered": found[what],
    }


def idle_rows(sizes: Sizes) -> Iterator[dict[str, Any]]:
    for workers in (1, 2):
        with serving(workers) as server:
            for kept in (True, False):
                said = {"workers": workers, "connections": "kept" if kept else "one each", "goal": 3000}
                yield {**said, **loaded(server, sizes, kept=kept, what="come_back")}


def assignment_rows(sizes: Sizes, workers: int) -> Iterator[dict[str, Any]]:
    with serving(workers) as server:
        server.open_round(most=10**6, parameters=1000)
        time.sleep(0.5)  # workers look into the store
        found = loaded(server, sizes, kept=True, what="assignment")
        yield {"store": "SQLite", "workers": workers, "goal": 500, **found}
    with serving(workers, enrols=True) as server:
        server.open_round(most=10**6, parameters=1000)
        began = own_cpu()
        tokens = issued(server, sizes.codes)
        made = own_cpu() - began
        found = loaded(server, sizes, kept=True, what="assignment", tokens=tokens)
        said = {"store": "SQLite", "workers": workers, "what": "with tokens, each asked for by a check-in before"}
        yield {**said, **found, "issuing_ms_a_token_on_both_sides": round(1000 * made / len(tokens), 2)}
    with serving_on("postgresql", workers) as server:
        if server is None:
            yield {"store": "PostgreSQL", "left_out": "no PostgreSQL is installed"}
            return
        server.open_round(most=10**6, parameters=1000)
        time.sleep(0.5)
        found = loaded(server, sizes, kept=True, what="assignment")
        yield {"store": "PostgreSQL", "workers": workers, "goal": 1000, **found}


def issued(server: Server, codes: int) -> list[str]:
    """The tokens of so many devices, blinded, signed and unblinded in this process."""
    from tacit.protocol.blind_rsa import Blinded, prepare
    from tacit.protocol.messages import TokenKey, TokenRequest
    from tacit.protocol.token_format import message_of, public_key, token_of
    from tacit.server.store.tokens import Issuer, enrol

    issuer, found = Issuer(server.store, server.key, server.key_file), list[str]()
    enrol(server.store, listed := [secrets.token_hex(16) for _ in range(codes)])
    key = issuer.key().read(TokenKey)
    for code in listed:
        asked = [Blinded.from_prepared(public_key(key), prepare(message_of(key.epoch))) for _ in range(key.batch)]
        sent = tuple(each.sent.hex() for each in asked)
        got = issuer.sign(TokenRequest(code=code, epoch=key.epoch, blinded=sent, evidence=None))
        assert got is not None
        signed = zip(asked, map(bytes.fromhex, got.signatures), strict=True)
        found += [token_of(key.epoch, each.prepared, each.finalize(signature)) for each, signature in signed]
    return found


# -- rounds ------------------------------------------------------------------------------------------------------------


def round_rows(sizes: Sizes, workers: int, store: str, *, encoded: bool) -> Iterator[dict[str, Any]]:
    length = secure_updates(sizes.parameters, sizes.devices).length if encoded else sizes.parameters
    floor = floor_of(sizes.devices, sizes.parameters, length)
    with serving_on(store, workers, encoded=encoded) as server:
        if server is None:
            yield {"store": store, "left_out": "no PostgreSQL is installed"}
            return
        kind = "encoded" if encoded else "plain"
        found = one_round(server, sizes.devices, sizes.parameters, kind=kind, prepared=True)
    said = {"store": store, "workers": workers, "devices": sizes.devices, "parameters": sizes.parameters}
    digests = hashing(4 * sizes.parameters) + 2 * hashing(4 * length)  # a device of its model, both of the report
    hashed = floor["floor_cpu_s"] + sizes.devices * digests
    yield {
        **said,
        "report_bytes": 4 * length,
        **found,
        **floor,
        "over_floor": round(found["wall_s"] / floor["floor_wall_s"], 2),
        "cpu_over_floor": round((found["server_cpu_s"] + found["swarm_cpu_s"]) / floor["floor_cpu_s"], 2),
        "floor_and_sha256_cpu_s": round(hashed, 2),
        "cpu_over_floor_and_sha256": round((found["server_cpu_s"] + found["swarm_cpu_s"]) / hashed, 2),
        "server_cpu_over_floor": round(found["server_cpu_s"] / floor["floor_server_cpu_s"], 2),
        "goal": "over_floor at most 2",
    }


def hashing(size: int) -> float:
    """Seconds of CPU for a SHA-256 of so many bytes, which the protocol asks for and the floor does not have."""
    content, began = bytes(size), time.process_time()
    for _ in range(5):
        hashlib.sha256(content).digest()
    return (time.process_time() - began) / 5


def sealed_rows(sizes: Sizes, workers: int) -> Iterator[dict[str, Any]]:
    size: dict[str, Any] = {"devices": sizes.devices, "parameters": sizes.parameters}
    with serving(workers, decryptors=DECRYPTORS) as server:  # what is compiled once is kept then
        one_round(server, devices=4, parameters=1000, kind="sealed")
    with serving(workers) as server:
        plain = one_round(server, **size, kind="plain")
    yield {"what": "in the clear", **size, "workers": workers, **plain}
    for prepared in (True, False):
        with serving(workers, decryptors=DECRYPTORS) as server:
            found = one_round(server, **size, kind="sealed", prepared=prepared)
        device_s = found["swarm_cpu_s"] if prepared else found["swarm_cpu_s"] - plain["swarm_cpu_s"]
        work = {} if prepared else {"sealing_ms_a_device": round(1000 * device_s / sizes.devices, 1)}
        yield {
            "what": "sealed before" if prepared else "sealed in the round",
            **size,
            "decryptors": DECRYPTORS,
            **found,
            **work,
            "over_plain": round(found["wall_s"] / plain["wall_s"], 2),
            "server_cpu_over_plain": round(found["server_cpu_s"] / plain["server_cpu_s"], 2),
            "goal": "over_plain at most 1.3",
        }


def one_round(
    server: Server,
    devices: int,
    parameters: int,
    *,
    kind: str,
    prepared: bool = False,
    at_once: int = 16,
    arrive_s: float = 0.0,
) -> dict[str, Any]:
    """From the first assignment to the bound sum: one that needs a report of every device.

    kind: "plain", "encoded" or "sealed". prepared: whether reports are drawn, encoded and sealed before the round's
    time begins.
    """
    import jax.numpy as jnp

    from tacit.privacy.separation import DeviceSeparation
    from tacit.process_limits import products_by_one_thread
    from tacit.server.rounds.decryptors import HttpDecryptor
    from tacit.server.rounds.rounds import RoundTimes, ServedRounds
    from tacit.server.store import round_states
    from tacit.server.train import document
    from tacit.training import ClientTraining, TrainQuestion

    times = RoundTimes(over_selection=1.0, selecting=900.0, reporting=900.0, pause=0.0, poll=0.1, attempts=1)
    decryptors = [HttpDecryptor(each.url, bytes.fromhex(each.identity), server.key) for each in server.decryptors]
    collector = ServedRounds(
        server.store, server.blobs, server.key, document=document, times=times, decryptors=decryptors
    )
    collector.serve(server.key.plan(server.plan.to_json()), server.lease)
    task = TrainQuestion(
        round=0,
        model=jnp.zeros(parameters, jnp.float32),
        client=ClientTraining(),
        clip_norm=CLIP_NORM,
        clip_estimate=None,
        report_goal=devices,
        separation=DeviceSeparation(rounds=1),
        secure=None if kind == "plain" else secure_updates(parameters, devices),
    )
    got: list[Any] = []

    def coordinate() -> None:
        with products_by_one_thread():  # as in a coordinator's process
            got.append(collector.collect((), task, seed=bytes(32))[0])

    thread = threading.Thread(target=coordinate, daemon=True)
    thread.start()
    while not (opened := round_states.attempts(server.store, server.plan.run)):
        time.sleep(0.01)
    many = devices + SPARE
    played = prepared_swarm(server, many, at_once, opened[0]) if prepared else None
    swarm = played or swarm_of(server, many, at_once, arrive_s)
    while round_states.attempts(server.store, server.plan.run)[0].assigned == 0:
        time.sleep(0.005)
        assert swarm.poll() is None, "the swarm ended"
    others = {
        "coordinator": [os.getpid()],
        "decryptors": [each.pid for each in server.decryptors],
        "swarm": [swarm.pid],
    }
    before, began, cpu = {who: sum(map(cpu_of, pids)) for who, pids in others.items()}, time.monotonic(), server.cpu()
    thread.join()
    wall, workers = time.monotonic() - began, server.cpu() - cpu
    spent = {who: sum(map(cpu_of, pids)) - before[who] for who, pids in others.items()}
    swarm.send_signal(signal.SIGTERM)
    log = json.loads(swarm.communicate()[0])
    assert got and got[0].reports == devices, (got, log)
    server_s = workers + spent["coordinator"]
    attempts = round_states.attempts(server.store, server.plan.run)
    return {
        "reports": got[0].reports,
        "lost": sum(each.lost for each in attempts),
        "attempts": len(attempts),
        "wall_s": round(wall, 2),
        "server_cpu_s": round(server_s, 2),
        **{f"{who}_cpu_s": round(seconds, 2) for who, seconds in spent.items()},
        "server_ms_a_report": round(1000 * server_s / devices, 2),
        "device_ms_a_report": round(1000 * spent["swarm"] / devices, 2),
        "worker_peak_mb": [round(peak_of(pid)) for pid in server.workers],
    }


def secure_updates(parameters: int, devices: int) -> Any:
    from tacit.privacy.encoding_choice import encoding_within
    from tacit.training.secure_updates import RoundEncoding

    encoding = encoding_within(parameters, CLIP_NORM, devices)
    return RoundEncoding(encoding=encoding, signs=bytes(32), clip_estimate=None, loss_bound=None, threshold=devices)


def swarm_of(server: Server, devices: int, at_once: int, arrive_s: float = 0.0) -> "subprocess.Popen[str]":
    """Devices that come within so many seconds, as a process."""
    command = [sys.executable, "-m", "tests.swarm", "--server", server.url]
    command += ["--operator-key", server.key.public, "--population", POPULATION, "--devices", str(devices)]
    command += ["--distinct", str(DISTINCT), "--arrive", str(arrive_s), "--waits", "1", "--tasks", "1"]
    command += ["--at-once", str(at_once), "--json"]
    environment = {**os.environ, "GLIBC_TUNABLES": KEPT_MEMORY}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def prepared_swarm(server: Server, devices: int, at_once: int, opened: Any) -> "subprocess.Popen[str]":
    """The same, which begin with their reports of this task drawn, and sealed where it is."""
    command, environment = (
        [sys.executable, __file__, "--play", "prepared"],
        {**os.environ, "GLIBC_TUNABLES": KEPT_MEMORY},
    )
    swarm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    told = {"url": server.url, "key": server.key.public, "devices": devices, "at_once": at_once}
    assert swarm.stdin is not None
    swarm.stdin.write(json.dumps({**told, "plan": server.plan.to_json(), "task": opened.signed_task}) + "\n")
    swarm.stdin.flush()
    return swarm


def prepared_devices(url: str, key: str, devices: int, at_once: int, plan: str, task: str) -> dict[str, Any]:
    """Such a swarm; until SIGTERM."""
    from tests.swarm import DrawnReports, Swarm, SwarmSettings

    from tacit.device.report_body import body_of
    from tacit.process_limits import one_thread
    from tacit.protocol.messages import Plan, RoundTask, Signed

    one_thread()  # as each device's own process
    plan_, task_ = Plan.from_json(plan), Signed.from_json(task).read(RoundTask)
    drawn = DrawnReports(0, distinct=1)
    report = drawn.report(0, plan_, task_, np.zeros(0, np.float32))
    sealed = task_.sealed is not None
    bodies = [body_of(plan_, task_, report, "", draw=os.urandom) for _ in range(devices)] if sealed else []
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    swarm = Swarm(
        SwarmSettings(
            server=url,
            operator_key=key,
            population=POPULATION,
            devices=devices,
            reports=drawn,
            one_message=lambda device, task: bodies[device],
            arrive_s=0.0,
            tasks=1,
            at_once=at_once,
        )
    )
    return swarm.run(1e9, until=stop.is_set).to_record()


def floor_of(devices: int, parameters: int, length: int) -> dict[str, Any]:
    """Network plus sum: a bare server that sends so many bytes to each device, reads as many and adds them up."""
    with tempfile.TemporaryDirectory(prefix="tacit-floor-") as folder:
        path = f"{folder}/port"
        command = [sys.executable, __file__, "--play", "bare"]
        bare = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert bare.stdin is not None and bare.stdout is not None
        bare.stdin.write(
            json.dumps({"parameters": parameters, "length": length, "devices": devices, "port_file": path}) + "\n"
        )
        bare.stdin.flush()
        while not Path(path).exists():
            time.sleep(0.02)
        found = play("push", parameters=parameters, length=length, devices=devices, port=int(Path(path).read_text()))
        spent = json.loads(bare.stdout.readline())["cpu_s"]
        bare.wait()
    return {
        "floor_wall_s": round(found["wall_s"], 2),
        "floor_cpu_s": round(spent + found["cpu_s"], 2),
        "floor_server_cpu_s": round(spent, 2),
    }


def bare_server(parameters: int, length: int, devices: int, port_file: str) -> dict[str, Any]:
    """The floor's server."""
    import uvloop

    total, model, left = np.zeros(length, np.float32), bytes(4 * parameters), [devices]

    class Device(asyncio.BufferedProtocol):
        def connection_made(self, transport: Any) -> None:
            self._transport, self._body, self._at = transport, bytearray(4 * length), 0
            transport.write(model)

        def get_buffer(self, hint: int) -> memoryview:
            return memoryview(self._body)[self._at :]

        def buffer_updated(self, count: int) -> None:
            self._at += count
            if self._at == len(self._body):
                np.add(total, np.frombuffer(self._body, np.float32), out=total)
                self._transport.write(b"1")
                self._transport.close()
                left[0] -= 1

    async def served() -> float:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Device, "127.0.0.1", 0)
        began = own_cpu()
        Path(port_file + ".new").write_text(str(server.sockets[0].getsockname()[1]))
        os.replace(port_file + ".new", port_file)
        while left[0]:
            await asyncio.sleep(0.01)
        return own_cpu() - began

    return {"cpu_s": uvloop.run(served())}


def pushed(parameters: int, length: int, devices: int, port: int) -> dict[str, Any]:
    """The floor's devices, 16 at a time."""
    import uvloop

    size = 4 * parameters
    body, buffer = bytes(4 * length), bytearray(1 << 20)

    class Device(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.done, self._left = asyncio.get_running_loop().create_future(), size

        def connection_made(self, transport: Any) -> None:
            self._transport = transport

        def get_buffer(self, hint: int) -> bytearray:
            return buffer

        def buffer_updated(self, count: int) -> None:
            self._left -= count
            if self._left == 0:
                self._transport.write(body)
            elif self._left < 0 and not self.done.done():
                self.done.set_result(None)

    async def all_of_them() -> None:
        room, loop = asyncio.Semaphore(16), asyncio.get_running_loop()

        async def one() -> None:
            async with room:
                _, device = await loop.create_connection(Device, "127.0.0.1", port)
                await device.done

        await asyncio.gather(*(one() for _ in range(devices)))

    began, cpu = time.monotonic(), own_cpu()
    uvloop.run(all_of_them())
    return {"wall_s": time.monotonic() - began, "cpu_s": own_cpu() - cpu}


def memory_rows(sizes: Sizes, workers: int) -> Iterator[dict[str, Any]]:
    for devices in sizes.memory_devices:
        with serving(workers) as server:
            resting = [round(peak_of(pid)) for pid in server.workers]
            server_round = one_round(
                server, devices, sizes.memory_parameters, kind="plain", at_once=64, arrive_s=devices / ARRIVE
            )
        yield {
            "devices": devices,
            "parameters": sizes.memory_parameters,
            "worker_resting_mb": resting,
            "worker_peak_mb": server_round["worker_peak_mb"],
            "wall_s": server_round["wall_s"],
            "goal": "flat",
        }


# -- starts, and the peer ----------------------------------------------------------------------------------------------


def start_rows() -> Iterator[dict[str, Any]]:
    from tests.support.training.tiny import tiny_cache

    for _ in range(2):
        with serving(1) as server:
            yield {"what": "worker", "ready_s": round(server.ready_s, 2), "cpu_s": round(server.cpu(), 2), "goal": 2}
    with serving(1) as server, tempfile.TemporaryDirectory(prefix="tacit-load-") as folder:
        tiny_cache(Path(folder) / "cache", {"train": 1})
        command = [sys.executable, "-m", "tacit", "device", "--server", server.url, "--data", f"{folder}/cache"]
        command += ["--state", f"{folder}/state", "--operator-key", server.key.public, "--population", POPULATION]
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.monotonic()
            done = subprocess.run([*command, "--once"], capture_output=True, text=True)
            wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            assert "idle" in done.stdout, done.stdout + done.stderr
            yield {"what": "device", "ready_s": round(wall, 2), "cpu_s": round(spent, 2), "goal": 3}


FLOWER = """
import importlib.metadata, json, resource, sys, threading, time
from flwr.supernode.fleet_http_connection import http_request_response
address, seconds, nodes = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
counts, start, active = [0] * nodes, threading.Event(), threading.Barrier(nodes + 1)
def node(i):
    with http_request_response(address, insecure=True) as (_, receive, *others):
        active.wait()
        start.wait()
        while time.monotonic() < until:
            assert receive() is None
            counts[i] += 1
        active.wait()
threads = [threading.Thread(target=node, args=(i,)) for i in range(nodes)]
for thread in threads:
    thread.start()
active.wait()
print("ready", flush=True)
sys.stdin.readline()
until = time.monotonic() + seconds
began, cpu = time.monotonic(), time.process_time()
start.set()
active.wait()
found = {"answered": sum(counts), "wall_s": time.monotonic() - began, "cpu_s": time.process_time() - cpu}
print(json.dumps({**found, "version": importlib.metadata.version("flwr")}), flush=True)
sys.stdin.readline()
"""
NODES = 8


def flower_rows(sizes: Sizes, python: str | None) -> Iterator[dict[str, Any]]:
    """Idle nodes of the peer's own, in one process, each asking again as soon as it has its answer."""
    if python is None:
        yield {"left_out": "no --peer-python"}
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="tacit-flower-") as home:
        command = [str(Path(python).parent / "flower-superlink"), "--insecure", "--isolation", "process"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        link = subprocess.Popen(
            command, env={**os.environ, "HOME": home}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for_port(port)
            nodes = subprocess.Popen(
                [python, "-c", FLOWER, f"127.0.0.1:{port}", str(sizes.seconds), str(NODES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert nodes.stdin is not None and nodes.stdout is not None
            assert nodes.stdout.readline().strip() == "ready"
            before = cpu_of(link.pid)
            nodes.stdin.write("go\n")
            nodes.stdin.flush()
            found = json.loads(nodes.stdout.readline())
            spent = cpu_of(link.pid) - before
            nodes.kill()
            nodes.communicate()
        finally:
            link.kill()
            link.wait()
    yield {
        "what": "PullMessages without messages",
        "flwr": found["version"],
        "nodes": NODES,
        "a_second": round(found["answered"] / found["wall_s"], 1),
        "a_second_a_core_of_superlink": round(found["answered"] / spent, 1),
        "server_us": round(1e6 * spent / found["answered"]),
        "nodes_us": round(1e6 * found["cpu_s"] / found["answered"]),
        "answered": found["answered"],
    }


def wait_for_port(port: int) -> None:
    """Until somebody listens there."""
    last = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < last, "nobody listens"
            time.sleep(0.1)


PLAYED: dict[str, Callable[..., dict[str, Any]]] = {
    "generate": generated,
    "bare": bare_server,
    "push": pushed,
    "prepared": prepared_devices,
}

if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
