"""Models under simulated typists: a row each, as in the papers' tables, and how often a test of nothing finds nothing.

    python benchmarks/typing_ab.py --null --base trigram:caches/chat --data DATA/chat-en.test.parquet
    python benchmarks/typing_ab.py --base trigram:caches/chat --models runs/first runs/second \
        --data DATA/chat-en.test.parquet --seeds 0,1,2 --out runs/typed

`--null` has the same users type on the same keyboard twice with other slips (and other habits) each time, for with the
same ones every change is exactly zero; so it may be zero by chance only. It prints, for each measure, in how many of
the tests the 95% interval of the change covers zero, and what the launch rule says of a model against itself.
The other call makes a run for each model and each seed (`tacit.type_ab`), and prints the papers' row of each. Both say
how many words a CPU-second are typed.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tacit
from tacit.data.typed_sentences import Share, TypingUser
from tacit.evaluation.launch import CAUTIOUS, decide, gains_of
from tacit.evaluation.paired_bootstrap import Change, changes_of
from tacit.evaluation.typing import Keyboard, type_sentences
from tacit.evaluation.typing_settings import TypingSettings
from tacit.evaluation.typist import Typist
from tacit.jobs.typing_test import open_test
from tacit.progress import silent
from tacit.reports.typing import ROW, papers_row

RESAMPLES = 2_000
PROMISED = (0.93, 0.97)  # shares of 200 tests between which 95% lies by chance, but for about one measure in five


def nothing_changes(
    keyboard: Keyboard, typist: Typist, users: Sequence[TypingUser], tests: int
) -> Iterator[Mapping[str, Change]]:
    """The changes of each test of a keyboard against itself, with other random numbers on either side."""
    for test in range(tests):
        a, b = (
            [type_sentences(keyboard, typist, user.sentences, seed=seed, user=user.name) for user in users]
            for seed in (2 * test, 2 * test + 1)
        )
        yield changes_of(a, b, cautious=CAUTIOUS, resamples=RESAMPLES, seed=test)


def coverage(found: Sequence[Mapping[str, Change]]) -> dict[str, float]:
    """In which share of the tests each measure's interval covers zero; measures that never had a value are left out."""
    covered = {}
    for name in found[0]:
        ends = [changes[name].difference for changes in found if changes[name].a == changes[name].a]
        if ends:
            covered[name] = sum(low <= 0 <= high for _, low, high in ends) / len(ends)
    return covered


def say_null(given: argparse.Namespace, settings: TypingSettings) -> None:
    """Prints the share of tests whose interval covers zero, by measure, and the verdicts."""
    test = open_test(given.base, given.base, given.data, settings, silent)
    words = sum(len(sentence) for user in test.typed.users for sentence in user.sentences)
    begun = time.process_time()
    found = list(nothing_changes(test.a, settings.typist, test.typed.users, given.tests))
    taken = time.process_time() - begun
    print(f"{given.tests} tests of {given.base} against itself: {len(test.typed.users)} users, {words:,} words a side")
    print(f"{'':24}{'covers zero':>12}{'width of the interval':>24}")
    for name, share in coverage(found).items():
        widths = sorted(changes[name].difference.high - changes[name].difference.low for changes in found)
        far = "" if PROMISED[0] <= share <= PROMISED[1] else "  outside of 93% to 97%"
        print(f"{name:24}{share:12.1%}{widths[len(widths) // 2]:24.4f}{far}")
    verdicts = Counter(decide(gains_of(changes)).verdict for changes in found)
    print(
        f"launch rule: {', '.join(f'{verdict} {count / given.tests:.1%}' for verdict, count in verdicts.most_common())}"
    )
    print(f"{2 * given.tests * words / taken:,.0f} words a CPU-second, the bootstrap included")


def say_models(given: argparse.Namespace, settings: TypingSettings) -> None:
    """Prints a row for each model and seed, against the base."""
    print(f"against {given.base}, in percent, signs so that more is better")
    print(f"{'model':28}{'seed':>5}{''.join(f'{head:>13}' for head in ROW)}  verdict")
    begun, words = time.process_time(), 0.0
    for model in given.models:
        for seed in map(int, given.seeds.split(",")):
            out = given.out / f"{Path(model).name}-{seed}"
            result = tacit.type_ab(given.base, model, given.data, out, settings=settings, seed=seed)
            measures = result.exact["measures"]
            cells = "".join(f"{cell:>13}" for cell in papers_row(measures))
            print(f"{model[-27:]:28}{seed:5}{cells}  {result.verdict}", flush=True)
            for name in ROW.values():
                relative = measures[name[0]]["relative"]
                if relative is not None:
                    print(f"{'':33}{name[0]:24} {relative.value:+.2%} ({relative.low:+.2%} to {relative.high:+.2%})")
            words += 2 * result.exact["typed"]["words"]
    print(f"{words / (time.process_time() - begun):,.0f} words a CPU-second, loading and reports included")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="The model that others are compared with: A.")
    parser.add_argument("--models", nargs="*", default=[], help="Those that may take its place: B.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/typed"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--users", type=int, default=40)
    parser.add_argument("--sentences", type=int, default=5)
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--layout", default="qwerty")
    parser.add_argument("--condition", default="network")
    parser.add_argument("--search")
    parser.add_argument("--compose", type=float)
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--tests", type=int, default=200)
    given = parser.parse_args()
    share = Share(users=given.users, sentences=given.sentences, words=given.words)
    settings = TypingSettings.on(
        given.layout, share=share, condition=given.condition, search=given.search, compose=given.compose
    )
    (say_null if given.null else say_models)(given, settings)


if __name__ == "__main__":
    main()
