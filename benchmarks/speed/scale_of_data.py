"""342,000 clients with 135 million sentences open at once, and cohorts of 6,500 are read in the disk's order in 3 GB.

Writes a synthetic cache of StackOverflow's size (a lognormal number of sentences a client, 12 ids a sentence, times),
then, in a fresh process each: opens it and reads cohorts, from a cold page cache and a warm one, with and without
reading ahead in the order of the disk; and trains rounds with a small network, whose checkpoint and participation clock
have the population's size. One JSON line per figure.

    python benchmarks/speed/scale_of_data.py

Needs 6 GB of disk in the temporary folder (TMPDIR) and some minutes, most of them to write the cache.
`--scale 0.01` tries it all on a hundredth.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import Cache, CacheManifest, VocabularyRecord
from tacit.data.importing import BlockDigests
from tacit.data.manifest import BLOCK, SPLITS, FileRecord

CLIENTS, SENTENCES, IDS_PER_SENTENCE = 342_477, 135_818_730, 12  # the StackOverflow dataset of TFF, training split
HELD_OUT = 1_000  # further clients in validation and in test
VOCABULARY, BOS, EOS, OOV = 10_000, 1, 2, 3
AT_ONCE = 1_000_000  # sentences written at once
REPORT_GOAL = 6_500
SETTINGS: dict[str, Any] = {"sentences": 64, "words": 20, "batch_size": 16}


def write_cache(out: Path, scale: float) -> None:
    """The arrays of `population/cache.py`, written as they are."""
    draw = np.random.default_rng(0)
    owned = draw.lognormal(0.0, 1.0, int(CLIENTS * scale) + 2 * HELD_OUT)
    counts = np.maximum((owned * (SENTENCES * scale / owned.sum())).astype(np.int64), 1)
    splits = np.zeros(len(counts), np.uint8)
    splits[-2 * HELD_OUT :] = np.repeat([SPLITS.index("validation"), SPLITS.index("test")], HELD_OUT)
    names = [f"client-{number:06d}" for number in range(len(counts))]
    out.mkdir()
    arrays: dict[str, Any] = {
        "client_offsets": np.concatenate([[0], np.cumsum(counts)]).astype("<i8"),
        "splits": splits,
        "names": np.frombuffer("".join(names).encode(), np.uint8),
        "name_offsets": np.arange(len(names) + 1, dtype="<i8") * len(names[0]),
    }
    for name, array in arrays.items():
        array.tofile(out / name)
    sentences, end, oov = int(counts.sum()), 0, 0
    words = draw.integers(EOS + 1, VOCABULARY, 4_000_000, dtype=np.uint16)
    with (
        (out / "ids").open("wb") as ids_file,
        (out / "sentence_offsets").open("wb") as offsets_file,
        (out / "timestamps").open("wb") as times_file,
    ):
        np.zeros(1, "<i8").tofile(offsets_file)
        for start in range(0, sentences, AT_ONCE):
            lengths = 3 + draw.poisson(IDS_PER_SENTENCE - 3, min(AT_ONCE, sentences - start))
            ends = np.cumsum(lengths)
            ids = np.roll(np.resize(words, ends[-1]), draw.integers(len(words)))
            ids[ends - lengths], ids[ends - 1] = BOS, EOS
            oov += int((ids == OOV).sum())
            ids.astype("<u2").tofile(ids_file)
            (end + ends).astype("<i8").tofile(offsets_file)
            (1_500_000_000 + 60 * (start + np.arange(len(lengths)))).astype("<i8").tofile(times_file)
            end += int(ends[-1])
    (out / "vocabulary.json").write_text("{}\n")
    dtypes = {"ids": "<u2", "splits": "|u1", "names": "|u1", "vocabulary.json": "|u1"}
    CacheManifest(
        source="synthetic, of StackOverflow's size",
        tokenizer="none",
        vocabulary=VocabularyRecord(
            size=VOCABULARY, sha256="0" * 64, lowercase=False, kind="word list", description="synthetic", oov_id=OOV
        ),
        clients=len(counts),
        sentences=sentences,
        words=end - 2 * sentences,
        oov_words=oov,
        splits={name: int((splits == number).sum()) for number, name in enumerate(SPLITS)},
        clients_without_sentences=0,
        left_out={},
        files={
            file.name: FileRecord(dtype=dtypes.get(file.name, "<i8"), bytes=file.stat().st_size, blocks=blocks_of(file))
            for file in sorted(out.iterdir())
        },
    ).save(out)


def blocks_of(file: Path) -> tuple[str, ...]:
    """The SHA-256 of each block, as a manifest lists them."""
    digests = BlockDigests()
    with file.open("rb") as opened:
        while content := opened.read(BLOCK):
            digests.update(content)
    return digests.hexdigests()


def memory() -> dict[str, int]:
    """Megabytes of this process: the most it ever had, and what it has that is its own (anonymous) or mapped files."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    now = {line[0]: int(line[1]) // 1024 for line in lines if line[0] in ("RssAnon:", "RssFile:")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"peak_megabytes": peak, "anonymous_megabytes": now["RssAnon:"], "file_megabytes": now["RssFile:"]}


def forget_pages(cache: Path) -> None:
    """Take the cache's files out of the page cache, as after a restart; a virtual disk may still keep them."""
    for file in cache.iterdir():
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def opening(path: Path) -> dict[str, Any]:
    """Open, identify, and number the training clients."""
    forget_pages(path)
    began = time.perf_counter()
    cache = Cache.open(path)
    digest, clients = cache.manifest.digest, cache.clients("train")
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 4),
        "training_clients": len(clients),
        "sentences": cache.manifest.sentences,
        "words": cache.manifest.words,
        "gigabytes": round(sum(file.bytes for file in cache.manifest.files.values()) / 1e9, 2),
        "digest": digest[:12],
        **memory(),
    }


def reading(path: Path, *, cold: bool, ahead: bool, cohorts: int = 5) -> dict[str, Any]:
    """Read cohorts as training reads them; medians of seconds a cohort."""
    from tacit.training import ClientTraining
    from tacit.training.client import gather

    cache, draw = Cache.open(path), np.random.default_rng(2)
    population, settings = cache.clients("train"), ClientTraining(**SETTINGS)
    wall, processor, words = [], [], 0
    for number in range(cohorts):
        clients = draw.choice(population, min(REPORT_GOAL, len(population)), replace=False)
        if cold:
            forget_pages(path)
        began, cpu = time.perf_counter(), time.process_time()
        if ahead:
            cache.read_ahead(clients)
        for shard in np.array_split(clients, -(-len(clients) // 64)):
            words += int((gather(cache, shard, settings, bytes([number])).sentences > EOS).sum())
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - cpu)
    return {
        "pages": "cold" if cold else "warm",
        "read_ahead": ahead,
        "cohort": len(clients),
        "seconds": round(float(np.median(wall)), 3),
        "cpu_seconds": round(float(np.median(processor)), 3),
        "words_per_second": round(words / sum(wall)),
        **memory(),
    }


def cheap_loss(model: Any, sentences: Any) -> Any:
    """Costs next to nothing: what is left of a round is reading, the clock and the noise."""
    return (model[sentences] ** 2).mean()


def training(path: Path, rounds: int = 3) -> dict[str, Any]:
    """Rounds over the whole population, with the state that is carried and saved."""
    from jax.flatten_util import ravel_pytree

    from tacit.compute import Hardware
    from tacit.compute.cores import Cores
    from tacit.population.cohorts import draw_cohort
    from tacit.privacy import Guarantee, Participation, Tree
    from tacit.training import ClientTraining, Learner, RoundPlan, ServerOptimizer, SimulatedCollector
    from tacit.training.checkpoint import leaves
    from tacit.training.rounds import initial_state, run_round
    from tacit.training.sampling import Cohorts, UniformCohorts
    from tacit.training.workers_cores import CoreWorkers

    Hardware().apply()
    cache = Cache.open(path)
    clients = cache.clients("train")
    goal = min(REPORT_GOAL, len(clients) // 50)
    start, unravel = ravel_pytree(np.ones((VOCABULARY, 4), np.float32))
    learner = Learner(start=np.asarray(start), unravel=unravel, loss=cheap_loss, cache=cache, clients=clients)
    participation = Participation.worst_case(rounds=2000, min_separation=50)
    plan = RoundPlan(
        guarantee=Guarantee.for_zcdp(1.0, participation=participation, strategy=Tree(), clip_norm=0.5),
        report_goal=goal,
        client=ClientTraining(**SETTINGS),
        server=ServerOptimizer(),
    )
    cohorts = Cohorts(clients, UniformCohorts(participation), report_goal=goal, key=bytes(16))
    collector = SimulatedCollector(learner, cohorts, CoreWorkers(Cores(Hardware())))
    state, seconds, drawing = initial_state(learner.start, plan, collector), [], []
    for number in range(rounds):
        generator = np.random.default_rng(number)
        began = time.perf_counter()
        draw_cohort(state.clock, participation, round=number, report_goal=goal, generator=generator)
        drawing.append(time.perf_counter() - began)
        began = time.perf_counter()
        state, _ = run_round(state, number, plan=plan, key=bytes(16), collector=collector)
        seconds.append(time.perf_counter() - began)
    saved = {name: array.nbytes for name, array in leaves(state).items()}
    return {
        "cohort": goal,
        "draw_seconds": round(float(np.median(drawing)), 4),
        "round_seconds": round(float(np.median(seconds)), 2),
        "clock_megabytes_in_a_checkpoint": round(sum(size for name, size in saved.items() if "clock" in name) / 1e6, 2),
        **memory(),
    }


PARTS = {
    "open": opening,
    "read_cold_ahead": lambda path: reading(path, cold=True, ahead=True),
    "read_cold": lambda path: reading(path, cold=True, ahead=False),
    "read_warm": lambda path: reading(path, cold=False, ahead=True),
    "train": training,
}


def main() -> None:
    """Write the cache once, and measure each part in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of clients and sentences")
    parser.add_argument("--cache", type=Path, help="keep the cache there, or use the one that is there")
    parser.add_argument("--part", choices=PARTS, help="measure only this, in this process")
    options = parser.parse_args()
    if options.part:
        print(json.dumps({"benchmark": "scale_of_data", "part": options.part, **PARTS[options.part](options.cache)}))
        return
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder) / "cache"
        if not cache.exists():
            write_cache(cache, options.scale)
        for part in PARTS:
            subprocess.run([sys.executable, __file__, "--part", part, "--cache", str(cache)], check=True)


if __name__ == "__main__":
    main()
