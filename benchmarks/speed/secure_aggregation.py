"""What a sum that nobody can open costs: encoding, masks, one message, decryptors, beside plain sums and beside Flower.

Every figure is CPU time of one process with one thread. Rows, each in a process of its own:

encode      an update of 2.38 million parameters to residues, and a sum of them back; a plain sum beside it
cipher      the stream cipher that masks are made of, in blocks that stay in a core's cache: bytes a second as
            masks are made, and of OpenSSL's counter mode alone
shares      a secret of 32 bytes for 50 neighbours, and rebuilt from 27 shares
masked      the server of a round of n real clients, 10% of whom vanish after they shared their secrets, beside its
            floor (bytes of masks to take off / speed of the stream cipher), a client's part, what the server holds
sealed      one message: a client's report, the server, a decryptor, and what each holds, for n real clients; with
            `--contributors K` the noise of K decryptors is in the sum, in slots that hold it
noise       a decryptor's noise of one round
formula     both servers and a decryptor at 6,500 clients, 10% of whom vanish, from n = the first two sizes, held
against
            the third
full        with `--full-round 6500`, and nothing else then: the row `sealed` at that size, where the formula's figures
            are measured. Clients come one by one, 0.07 s each, so it takes eight minutes
flower      SecAgg+ functions of Flower: the mask of one seed, shares of one secret. Its masks come from seeds that are
            folded to 32 bits and drawn by a Mersenne twister, which hides nothing from who can try 2^32 of them.

    python benchmarks/speed/secure_aggregation.py --peer-python PY      PY has flwr; without it, no row of Flower's
    python benchmarks/speed/secure_aggregation.py --parameters 2000 --clients 8 12 20 --turns 1      a smoke test

Prints one JSON line a row. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

CLIP_NORM, REPORT_GOAL, VANISHED, DECRYPTORS = 5.0, 6_500, 0.1, 4
NOISE, ROUNDS = 7, 2_000  # decryptors' noise multiplier, and for how many rounds no coordinate leaves the modulus
SHARES, THRESHOLD = 50, 27  # of one secret, as at 1,000 clients
SIZES = (100, 500, 1_000)
GOALS = {
    "encode": "encode_s and decode_s at most 0.15",
    "masked": "over_floor at most 1.5",
    "sealed": "client_s at most 0.3, client_bytes at most 1.3 times plain_bytes",
    "full": "server_s at most 15, decryptor_s at most 10, decryptor_bytes at most 50 MB",
    "formula": "one message at most 15, a decryptor at most 10, where masks have a floor of 87 and all pairs 5,782",
}


class Stopwatch:
    """CPU seconds by what they were spent on."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def __call__(self, what: str, work: Callable[..., Any], *arguments: Any) -> Any:
        began = time.process_time()
        done = work(*arguments)
        self.spent[what] = self.spent.get(what, 0.0) + time.process_time() - began
        return done


def median_of(turns: int, work: Callable[[], Any]) -> float:
    """Seconds, after once to compile."""
    work()
    spent = []
    for _ in range(turns):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return statistics.median(spent)


def held_by(value: Any, seen: set[int] | None = None) -> int:
    """Bytes of an object and of all that it alone leads to: arrays, bytes, containers, attributes."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type | int | float | bool | None):
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, bytes | str):
        return sys.getsizeof(value)
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = [*value]
    inside += [*getattr(value, "__dict__", {}).values()]
    return sys.getsizeof(value) + sum(held_by(each, seen) for each in inside)


def encoding_of(parameters: int) -> Any:
    from tacit.privacy.encoding_choice import encoding_within

    return encoding_within(parameters, CLIP_NORM, REPORT_GOAL)


# -- rows --------------------------------------------------------------------------------------------------------------


def encode_row(parameters: int, turns: int) -> dict[str, Any]:
    from tacit.secure_aggregation.decoding import decode
    from tacit.secure_aggregation.encoding import encode
    from tacit.secure_aggregation.packing import pack, unpack

    encoding, signs = encoding_of(parameters), bytes(32)
    update = np.random.default_rng(0).normal(0, 1e-3, parameters).astype(np.float32)
    words = encode(update, encoding, signs=signs, rounding=os.urandom(32))
    packed, summed = pack(words, encoding.bits), np.zeros(parameters, np.float32)
    return {
        "dimension": encoding.dimension,
        "bits": encoding.bits,
        "encode_s": median_of(turns, lambda: encode(update, encoding, signs=signs, rounding=os.urandom(32))),
        "decode_s": median_of(turns, lambda: decode(words, encoding, signs=signs, reports=1)),
        "pack_s": median_of(turns, lambda: pack(words, encoding.bits)),
        "unpack_s": median_of(turns, lambda: unpack(packed, encoding.bits, encoding.dimension)),
        "bytes": len(packed),
        "plain_sum_s": median_of(turns, lambda: np.add(summed, update, out=summed)),
        "plain_bytes": update.nbytes,
    }


def shares_row(parameters: int, turns: int) -> dict[str, Any]:
    from tacit.secure_aggregation.masked.secret_shares import rebuilt_secret, split_secret

    secret, points = os.urandom(32), list(range(1, SHARES + 1))
    shares = split_secret(secret, points, THRESHOLD, os.urandom)
    return {
        "shares": SHARES,
        "threshold": THRESHOLD,
        "share_s": median_of(turns, lambda: split_secret(secret, points, THRESHOLD, os.urandom)),
        "combine_s": median_of(turns, lambda: rebuilt_secret(shares[:THRESHOLD], points[:THRESHOLD])),
    }


def cipher_row(parameters: int, turns: int) -> dict[str, Any]:
    from tacit.secure_aggregation import secrets
    from tacit.secure_aggregation.masked import masks

    return {
        "bytes_per_s": cipher_speed(masks.after_head, turns),
        "counter_mode_bytes_per_s": cipher_speed(secrets.counter_mode, turns),
    }


def cipher_speed(cipher: Callable[[bytes], Any], turns: int) -> float:
    """Bytes a second of a keystream, made in blocks that stay in a core's cache, and added to nothing."""
    from tacit.secure_aggregation.masked import masks

    zeros, room = bytes(4 * masks.BLOCK), memoryview(bytearray(4 * masks.BLOCK + 16))
    stream, blocks = cipher(bytes(32)), 512

    def make() -> None:
        for _ in range(blocks):
            stream.update_into(zeros, room)

    return blocks * len(zeros) / median_of(turns, make)


def masked_row(parameters: int, turns: int, clients: int) -> dict[str, Any]:
    with tempfile.TemporaryFile(buffering=0) as spool:
        return masked_round_row(parameters, turns, clients, spool)


def masked_round_row(parameters: int, turns: int, clients: int, spool: Any) -> dict[str, Any]:
    from tacit.secure_aggregation import secrets
    from tacit.secure_aggregation.masked.client import DevicePolicy, MaskedClient
    from tacit.secure_aggregation.masked.masks import after_head
    from tacit.secure_aggregation.masked.messages import Advertise, RoundSettings
    from tacit.secure_aggregation.masked.server import MaskedServer
    from tacit.secure_aggregation.secrets import Identity

    encoding, spent = encoding_of(parameters), Stopwatch()
    identities, private = [Identity(os.urandom(32)) for _ in range(clients)], os.urandom(32)
    settings = RoundSettings.from_cohort(
        [each.public for each in identities],
        dimension=encoding.dimension,
        bits=encoding.bits,
        most_reports=encoding.most_reports,
        fewest=2,
        server_key=secrets.public_key(private),
        nonce=os.urandom(32),
        dropout=VANISHED,
    )
    server = spent(
        "open", partial(MaskedServer, storage=spool), settings, [each.public for each in identities], private
    )
    vector = np.random.default_rng(0).integers(0, encoding.modulus, encoding.dimension, dtype=np.uint32)
    invitation = server.invitation  # all devices have the same vector, which each copies when it masks it
    device = partial(MaskedClient, policy=DevicePolicy(fewest=2, corruption=0.1))
    devices = [spent("clients", device, invitation, each, vector) for each in identities]
    vanished = set(range(0, clients, round(1 / VANISHED)))
    held = 0

    def answers(step: str, sent: Mapping[int, bytes]) -> Iterator[bytes]:
        for client in sent:
            data = spent(step, sent.__getitem__, client)
            if step != "share" or client not in vanished:
                yield spent("clients", devices[client].receive, data)

    advertised = [spent("clients", device.advertise) for device in devices]
    waiting: Iterator[bytes] = iter(advertised)
    for step in ("advertise", "share", "add", "consent", "unmask"):
        for message in waiting:
            spent(step, server.receive, message)
        held = max(held, held_by(server))
        sent = spent("open" if step == "unmask" else step, server.advance)
        waiting = answers(step, sent)
    survivors = clients - len(vanished)
    expected = vector.astype(np.uint64) * survivors & np.uint64(encoding.modulus - 1)
    assert np.array_equal(server.total, expected), "the sum is not the sum"
    choices = [Advertise.from_bytes(device).choice for device in advertised]
    chosen = [set(settings.chosen(client, choice)) for client, choice in enumerate(choices)]
    stayed = set(range(clients)) - vanished
    masks = survivors + sum(other in chosen[gone] or gone in chosen[other] for gone in vanished for other in stayed)
    floors = [
        masks * 4 * encoding.dimension / cipher_speed(cipher, turns) for cipher in (after_head, secrets.counter_mode)
    ]
    of_server = sum(seconds for what, seconds in spent.spent.items() if what != "clients")
    return {
        "clients": clients,
        "vanished": len(vanished),
        "chosen": settings.plan().degree,
        "neighbours": round(settings.plan().mean_neighbours, 1),
        "masks": masks,
        "server_s": of_server,
        "floor_s": floors[0],
        "over_floor": of_server / floors[0],
        "counter_mode_floor_s": floors[1],
        "over_counter_mode_floor": of_server / floors[1],
        "by_step_s": {what: round(seconds, 3) for what, seconds in spent.spent.items() if what != "clients"},
        "client_s": spent.spent["clients"] / clients,
        "client_bytes": settings.vector_bytes(),
        "server_bytes": held,
        "spool_bytes": spool.seek(0, os.SEEK_END),
        "sum_bytes": 4 * encoding.dimension,
    }


def sealed_row(parameters: int, turns: int, clients: int, contributors: int = 0) -> dict[str, Any]:
    """A whole round: of each client its own numbers, under keys of its own; one client at a time in memory.

    What the server keeps for decryptors until the set is agreed lies in a file for each of them. A client that vanishes
    sends nothing, and costs nothing. The peak is of one process that is every client, the server and all decryptors.
    """
    from tacit.privacy.encoding_choice import encoding_with_noise
    from tacit.secure_aggregation import secrets
    from tacit.secure_aggregation.one_message.client import one_message_report
    from tacit.secure_aggregation.one_message.server import OneMessageServer
    from tacit.secure_aggregation.secrets import Identity

    encoding, spent, reports = encoding_of(parameters), Stopwatch(), clients - len(range(0, clients, 10))
    if contributors:
        encoding = encoding_with_noise(encoding, NOISE * CLIP_NORM, decryptors=contributors, rounds=ROUNDS)
    noise, private = [Identity(os.urandom(32)) for _ in range(contributors)], os.urandom(32)
    with tempfile.TemporaryDirectory() as folder:
        decryptors = decryptors_in(Path(folder), always=[each.public for each in noise])
        settings = sealed_settings(encoding, decryptors, noise, secrets.public_key(private))
        server, expected, sent = OneMessageServer(settings, private), np.zeros(encoding.dimension, np.int64), 0
        files = [Path(folder) / f"deposits-{index}" for index in range(DECRYPTORS)]
        with ExitStack() as open_files:
            kept = [open_files.enter_context(file.open("wb")) for file in files]
            for party in range(reports + contributors):
                own, vector = numbers_of(party, party >= reports, encoding)
                expected += own
                identity = noise[party - reports] if party >= reports else Identity(os.urandom(32))
                data = spent("client", one_message_report, settings, identity, vector).to_bytes()
                for file, deposit in zip(kept, spent("server", server.receive, data), strict=True):
                    spent("deposits", lambda file, deposit: file.write(deposit.to_bytes()), file, deposit)
                sent = len(data)
        opening, size = server.opening().to_bytes(), files[0].stat().st_size // (reports + contributors)
        for index, decryptor in enumerate(decryptors):
            decryptor.receive(opening)
            with files[index].open("rb") as deposited:
                while deposit := spent("deposits", deposited.read, size):
                    finding = spent(f"decryptor {index}", decryptor.receive, deposit).to_bytes()
                    spent("server", server.answer, finding)
        assert len(server.checked) == DECRYPTORS and not server.wrong, "all reports fit"
        proposal = spent("server", server.propose).to_bytes()
        for index, decryptor in enumerate(decryptors):
            server.answer(spent(f"decryptor {index}", decryptor.receive, proposal).to_bytes())
        agreement, held = server.agreement().to_bytes(), 0
        received = 2 * len(opening) + len(proposal) + len(agreement) + 2 * files[0].stat().st_size
        for index, decryptor in enumerate(decryptors):
            spent(f"decryptor {index}", decryptor.receive, agreement)
            held = max(held, held_by(decryptor))  # it waits for all of the set
            with files[index].open("rb") as deposited:
                while deposit := spent("deposits", deposited.read, size):
                    answer = spent(f"decryptor {index}", decryptor.receive, deposit)
            held = max(held, held_by(decryptor))
            server.answer(answer.to_bytes())
        total = spent("open", server.opened)
    assert np.array_equal(total, (expected % 2**32).astype(np.uint32)), "the sum is not the sum"
    return {
        "clients": clients,
        "reports": reports,
        "contributors": contributors,
        "parameters_of": settings.parameters.decode(),
        "bits": encoding.bits,
        "slot_bits": settings.slots.width,
        "slots_of_a_coefficient": settings.slots.per_coefficient,
        "polynomials": settings.slots.polynomials,
        "client_s": spent.spent["client"] / (reports + contributors),
        "client_bytes": sent,
        "bytes_a_coordinate": sent / encoding.dimension,
        "plain_bytes": -(-encoding.dimension * encoding.bits // 8),
        "server_s": spent.spent["server"] + spent.spent["deposits"] + spent.spent["open"],
        "deposits_s": spent.spent["deposits"],
        "open_s": spent.spent["open"],
        "server_bytes": held_by(server),
        "decryptors": DECRYPTORS,
        "decryptor_s": max(spent.spent[f"decryptor {index}"] for index in range(DECRYPTORS)),
        "decryptors_s": sum(spent.spent[f"decryptor {index}"] for index in range(DECRYPTORS)),
        "decryptor_received_bytes": received,
        "decryptor_bytes": held,
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,  # kilobytes, on Linux
    }


def decryptors_in(folder: Path, *, always: list[bytes]) -> list[Any]:
    from tacit.secure_aggregation.one_message.decryptor import Decryptor, make_decryptor

    for index in range(DECRYPTORS):
        make_decryptor(folder / str(index))
    return [Decryptor(folder / str(index), least_reports=2, always=always) for index in range(DECRYPTORS)]


def sealed_settings(encoding: Any, decryptors: list[Any], noise: list[Any], server: bytes) -> Any:
    """A round that could hold REPORT_GOAL reports, however many come."""
    from tacit.secure_aggregation.one_message.messages import OneMessageRound
    from tacit.secure_aggregation.one_message.server import smallest_parameters

    margin, sizes = encoding.margin_each, (encoding.dimension, 2 * encoding.largest, REPORT_GOAL)
    return OneMessageRound(
        parameters=smallest_parameters(*sizes, contributors=len(noise), margin=margin),
        dimension=encoding.dimension,
        largest=2 * encoding.largest,
        report_goal=2,
        most_reports=REPORT_GOAL,
        corrupt=1,
        decryptors=tuple(each.identity for each in decryptors),
        boxes=tuple(each.box for each in decryptors),
        server=server,
        seed=os.urandom(32),
        plan=os.urandom(32),
        round_index=0,
        series=0,
        contributors=tuple(each.public for each in noise),
        margin=margin,
    )


def numbers_of(party: int, noise: bool, encoding: Any) -> tuple[Any, Any]:
    """What a party adds, and the vector that it sends for it."""
    from tacit.secure_aggregation.noise import contribution

    draw = np.random.default_rng(party)
    if not noise:
        own = draw.integers(0, 2 * encoding.largest, encoding.dimension, np.uint16, endpoint=True)
        return own, own.astype(np.uint32)
    own = draw.integers(-encoding.margin_each, encoding.margin_each, encoding.dimension, np.int32, endpoint=True)
    words = own.view(np.uint32) & np.uint32(encoding.modulus - 1)
    return own, contribution(words, bits=encoding.bits, margin=encoding.margin_each)


def noise_row(parameters: int, turns: int) -> dict[str, Any]:
    from tacit.mechanisms import stream_for
    from tacit.mechanisms.all_rounds import DecryptorNoiseStream
    from tacit.privacy.strategy import PUBLISHED_BLT
    from tacit.secure_aggregation.noise import NoiseDecryptor

    encoding = encoding_of(parameters).with_noise(NOISE * CLIP_NORM, decryptors=3, rounds=ROUNDS)
    stream = stream_for(PUBLISHED_BLT["b400"])
    own = DecryptorNoiseStream(stream=stream, stddev=NOISE * CLIP_NORM * encoding.scale, dimension=encoding.dimension)
    with tempfile.TemporaryDirectory() as folder:
        decryptor = NoiseDecryptor(Path(folder), own, encoding)
        rounds = iter(range(turns + 1))
        seconds = median_of(turns, lambda: decryptor.noise(next(rounds), name=os.urandom(32), signs=bytes(32)))
        on_disk = max(path.stat().st_size for path in Path(folder).iterdir())
    return {"mechanism": "b400", "bits": encoding.bits, "decryptor_s": seconds, "state_bytes": on_disk}


def flower_row(parameters: int, turns: int) -> dict[str, Any]:
    """Runs where flwr is installed, and imports nothing else that is not there."""
    from importlib.metadata import version

    from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
    from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

    seed, dimensions = os.urandom(32), [(parameters,)]
    summed = pseudo_rand_gen(seed, 1 << 22, dimensions)[0]

    def mask() -> None:
        np.subtract(summed, pseudo_rand_gen(seed, 1 << 22, dimensions)[0], out=summed)

    shares = create_shares(seed, THRESHOLD, SHARES)
    return {
        "version": version("flwr"),
        "mask_s": median_of(turns, mask),
        "share_s": median_of(turns, lambda: create_shares(seed, THRESHOLD, SHARES)),
        "combine_s": median_of(turns, lambda: combine_shares(shares[:THRESHOLD])),
        "seeds": "folded to 32 bits, numpy.random.RandomState",
        "mask_bytes_held": 8 * parameters,
    }


ROWS: dict[str, Callable[..., dict[str, Any]]] = {
    "encode": encode_row,
    "cipher": cipher_row,
    "shares": shares_row,
    "masked": masked_row,
    "sealed": sealed_row,
    "full": sealed_row,
    "noise": noise_row,
    "flower": flower_row,
}


# -- the formula -------------------------------------------------------------------------------------------------------


def sealed_formula(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """seconds = opening + a reports, of a decryptor a reports alone: from two sizes, held against the third."""

    def seconds_of(who: str, reports: float) -> float:
        opening = statistics.fmean(row["open_s"] for row in rows[:2]) if who == "server" else 0.0
        own = [(row[f"{who}_s"] - (row["open_s"] if who == "server" else 0.0)) / row["reports"] for row in rows[:2]]
        return opening + statistics.fmean(own) * reports

    reports = REPORT_GOAL * (1 - VANISHED)
    found: dict[str, Any] = {
        "protocol": "one message",
        "from_clients": [row["clients"] for row in rows[:2]],
        "clients": REPORT_GOAL,
        "decryptor_received_bytes": rows[0]["decryptor_received_bytes"] / rows[0]["reports"] * reports,
    }
    for who in ("server", "decryptor"):
        held = [row[f"{who}_bytes"] for row in rows[:2]]
        each = (held[1] - held[0]) / (rows[1]["reports"] - rows[0]["reports"])
        found[f"{who}_bytes"] = held[0] + each * (reports - rows[0]["reports"])
        found[f"{who}_s"] = seconds_of(who, reports)
        if len(rows) > 2:
            found["checked_at"] = rows[2]["clients"]
            found[f"{who}_predicted_over_measured"] = seconds_of(who, rows[2]["reports"]) / rows[2][f"{who}_s"]
    return found


def masked_formula(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """seconds = a reports + b masks, of a report what comes before masks are taken off: from two sizes, held against
    the third, and said of REPORT_GOAL.
    """
    from tacit.secure_aggregation.masked.graph import graph_plan

    def before(row: dict[str, Any]) -> float:
        return float(row["server_s"] - row["by_step_s"]["open"])

    of_report = statistics.fmean(before(row) / (row["clients"] - row["vanished"]) for row in rows[:2])
    of_mask = statistics.fmean(row["by_step_s"]["open"] / row["masks"] for row in rows[:2])
    plan = graph_plan(REPORT_GOAL, dropout=round(1000 * VANISHED), corruption=100)
    gone = round(VANISHED * REPORT_GOAL)
    masks = REPORT_GOAL - gone + gone * plan.mean_neighbours * (1 - VANISHED)
    found: dict[str, Any] = {
        "protocol": "masks",
        "from_clients": [row["clients"] for row in rows[:2]],
        "report_s": of_report,
        "mask_s": of_mask,
        "clients": REPORT_GOAL,
        "chosen": plan.degree,
        "neighbours": round(plan.mean_neighbours, 1),
        "server_s": of_report * (REPORT_GOAL - gone) + of_mask * masks,
        "all_pairs_masks": REPORT_GOAL - gone + gone * (REPORT_GOAL - gone),
    }
    each = (rows[1]["server_bytes"] - rows[0]["server_bytes"]) / (rows[1]["clients"] - rows[0]["clients"])
    found["server_bytes"] = rows[0]["server_bytes"] + each * (REPORT_GOAL - rows[0]["clients"])
    a_choice = rows[0]["spool_bytes"] / (rows[0]["clients"] * rows[0]["chosen"])
    found["spool_bytes"] = a_choice * REPORT_GOAL * plan.degree
    found["all_pairs_s"] = of_report * (REPORT_GOAL - gone) + of_mask * found["all_pairs_masks"]
    if len(rows) > 2:
        found["checked_at"] = rows[2]["clients"]
        predicted = of_report * (rows[2]["clients"] - rows[2]["vanished"]) + of_mask * rows[2]["masks"]
        found["predicted_over_measured"] = predicted / rows[2]["server_s"]
    return found


FORMULAS = {"masked": masked_formula, "sealed": sealed_formula}


# -- all of it ---------------------------------------------------------------------------------------------------------


def row_of(name: str, options: argparse.Namespace, *, clients: int | None = None) -> dict[str, Any]:
    """A row, computed in a process of its own with one thread."""
    python = options.peer_python if name == "flower" else sys.executable
    command = [python, __file__, "--row", name, "--parameters", str(options.parameters), "--turns", str(options.turns)]
    command += [] if clients is None else ["--clients", str(clients), "--contributors", str(options.contributors)]
    one = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env={**os.environ, **one}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the row {name} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(name: str, figures: dict[str, Any], options: argparse.Namespace) -> None:
    about = {"row": name, "parameters": options.parameters, **({"goal": GOALS[name]} if name in GOALS else {})}
    rounded = {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in figures.items()}
    machine = {"processor": processor(), "date": datetime.now(UTC).strftime("%Y-%m-%d")}
    print(json.dumps({**about, **rounded, **machine}), flush=True)


def processor() -> str:
    """As the kernel calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=2_380_000)
    parser.add_argument("--clients", type=int, nargs="+", default=SIZES)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--peer-python", help="an interpreter that has flwr")
    parser.add_argument("--contributors", type=int, default=0, help="of noise, in rounds of one message")
    parser.add_argument("--full-round", type=int, metavar="CLIENTS", help="one round of one message in full, alone")
    parser.add_argument("--only", nargs="+", help="these rows alone")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        sizes = {"clients": options.clients[0]} if options.row in ("masked", "sealed", "full") else {}
        sizes |= {"contributors": options.contributors} if options.row in ("sealed", "full") else {}
        if sizes:
            ROWS[options.row](500, 1, **{**sizes, "clients": 8})  # compiles
        print(json.dumps(ROWS[options.row](options.parameters, options.turns, **sizes)))
        return
    if options.full_round:
        told("full", row_of("full", options, clients=options.full_round), options)
        return
    wanted = options.only or [*ROWS, "formula"]
    for name in [each for each in ROWS if each in wanted and each != "full"]:
        if name == "flower" and not options.peer_python:
            continue
        if name not in FORMULAS:
            told(name, row_of(name, options), options)
            continue
        rows = []
        for clients in options.clients:
            rows.append(row_of(name, options, clients=clients))
            told(name, rows[-1], options)
        if "formula" in wanted and len(rows) > 1:
            told("formula", FORMULAS[name](rows), options)


if __name__ == "__main__":
    main()
