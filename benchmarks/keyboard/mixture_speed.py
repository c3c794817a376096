r"""One suggestion of a mixture, its start and its memory, in CPU time of one core, beside its parts.

    python benchmarks/keyboard/mixture_speed.py --models pb runs/bent runs/mixture

A suggestion is one step of the reader, the softmax of the session and the three best words; of a session that learns,
the judging of the word and both caches, too. Words are drawn from the vocabulary by a fixed seed, in sentences of
twelve. Each figure is the median of its steps, and the least such median of the repeats. The start is a fresh Python
that loads the model, suggests once and ends: CPU seconds of user and system, and the largest memory in use.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

STEPS, LENGTH, REPEATS, STARTS = 480, 12, 5, 5
GOALS = "goals: a suggestion in 0.5 ms, a start in 0.3 s, 90 MB"


def main() -> None:
    if sys.argv[1:2] == ["--start"]:
        started(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, nargs="+", required=True, help="what `tacit ngram` or `tacit mix` wrote")
    asked = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print(f"{GOALS}\n\n| model | words | a suggestion, ms | that learns, ms | start, CPU-s | most memory, MB |")
    print("|---|---|---|---|---|---|")
    for path in asked.models:
        starts = [start(path) for _ in range(STARTS)]
        words, plain, learning = suggestions(path)
        cpu, memory = min(each[0] for each in starts), max(each[1] for each in starts)
        print(f"| {path.name} | {words:,} | {plain:.3f} | {learning:.3f} | {cpu:.2f} | {memory:.0f} |", flush=True)


def start(path: Path) -> tuple[float, float]:
    """(CPU seconds, megabytes) of a Python that says them itself."""
    done = subprocess.run([sys.executable, __file__, "--start", path], capture_output=True, text=True, check=True)
    cpu, memory = json.loads(done.stdout)
    return float(cpu), float(memory)


def started(path: Path) -> None:
    from tacit.keyboard.phone_model import load_phone_model

    assert load_phone_model(path).next_words("")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3]))


def suggestions(path: Path) -> tuple[int, float, float]:
    """(words of the vocabulary, milliseconds of a suggestion, and of one by a session that learns)."""
    from tacit.keyboard.phone_model import load_phone_model

    model = load_phone_model(path)
    words = model.vocabulary.words
    drawn = (np.random.default_rng(0).zipf(1.3, STEPS) % len(words)).tolist()
    typed = [words[at] + ("\n" if n % LENGTH == LENGTH - 1 else "") for n, at in enumerate(drawn)]

    def median(learns: bool) -> float:
        session = model.learning() if learns else model.typing()
        taken = []
        for text in typed:
            begun = time.process_time_ns()
            session.commit(text)
            session.next_words(3)
            taken.append(time.process_time_ns() - begun)
        return float(np.median(taken)) / 1e6

    plain, learning = (min(median(learns) for _ in range(REPEATS)) for learns in (False, True))
    return len(words), plain, learning


if __name__ == "__main__":
    main()
