"""What typists would feel of models on real text, beside the one in use; and how often a test of nothing finds nothing.

    python benchmarks/keyboard/typing_ab.py --null --base trigram:caches/chat --data DATA/chat-en.test.parquet
    ... --base trigram:caches/public --data DATA/chat-en.test.parquet --runs runs/typing \\
        --name chat --arms start=runs/start blt=runs/chat-blt-{seed} --seeds 3
    ... --foreseen --base trigram:caches/public --data DATA/chat-en --arms start=runs/start

`--null` has the same users type on the same keyboard twice with other slips (and other habits) each time, for with the
same ones every change is exactly zero; so it may be zero by chance only. It prints, for each measure, in how many of
the tests the 95% interval of the change covers zero, what the launch rule says of a model against itself, and how many
words a CPU-second are typed.

With arms every pair is a run of `tacit type`, made or gone on with where it was stopped, or read where it is finished.
The users are the same in all; a seed is that of the training, where a path has {seed}, and of the typists' slips. It
prints one JSON line a pair, one an arm and column (the mean over seeds of the relative change with its 95% interval by
Student's t, and in how many seeds the interval over users was wholly above or below 0), and the papers' rows.

`--foreseen` types nothing: it has the base and each arm read the same text without slips, and prints of each
its cross-entropy, in nats a word that the model knows, and how often such a word is its first or among its first three;
a better cross-entropy may come with worse ranks.
"""

import argparse
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

import tacit
from tacit.compute import Hardware
from tacit.data.typed_sentences import Share, TypingUser
from tacit.evaluation.type_ab.launch_rule import CAUTIOUS, decide, gains_of
from tacit.evaluation.type_ab.paired_bootstrap import Change, changes_of
from tacit.evaluation.type_ab.replay import UNSPELLED, Keyboard, type_sentences
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.evaluation.type_ab.typist import Typist
from tacit.jobs.phone_models import phone_model
from tacit.jobs.type_ab.setup import open_test, sentences_of
from tacit.keyboard.phone_model import PhoneModel
from tacit.progress import silent
from tacit.text.vocabulary import OOV, SPECIALS

RESAMPLES = 2_000
PROMISED = (0.93, 0.97)  # shares of 200 tests between which 95% lies by chance, but for about one measure in five
Measures = dict[str, Any]  # by name, as a run's record has them

COLUMNS = {  # of the papers' tables: the measure, and the sign that makes more better
    "PRate(+%)": ("picked rate", 1),
    "Acc(+%)": ("accuracy", 1),
    "SC trig(+%)": ("compose trigger rate", 1),
    "SC PRate(+%)": ("compose picked rate", 1),
    "WMR(-%)": ("words modified ratio", -1),
    "WPM(+%)": ("words a minute", 1),
    "saved(+%)": ("keystrokes saved", 1),
}


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
    judgements = Counter(decide(gains_of(changes)).judgement for changes in found)
    print(
        f"launch rule: "
        f"{', '.join(f'{judgement} {count / given.tests:.1%}' for judgement, count in judgements.most_common())}"
    )
    print(f"{2 * given.tests * words / taken:,.0f} words a CPU-second, the bootstrap included")


def say_arms(given: argparse.Namespace, settings: TypingSettings) -> None:
    """Prints a line a pair, a line an arm and measure, and the papers' rows."""
    seeds = range(1, given.seeds + 1)
    rows = []
    for arm in given.arms:
        name, _, model = arm.partition("=")
        rows.append((name, summary(name, [typed(given, settings, name, model, seed) for seed in seeds])))
    print(f"| against {given.base} | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name, cells in rows:
        print(f"| {name} | " + " | ".join(cells) + " |")


def typed(given: argparse.Namespace, settings: TypingSettings, name: str, model: str, seed: int) -> Measures:
    """The measures of one pair; its run is made, or gone on with, or read."""
    out = given.runs / f"{given.name}-{name}-{seed}"
    result = tacit.type_ab(
        given.base.format(seed=seed),
        model.format(seed=seed),
        given.data,
        out,
        settings=settings,
        seed=seed,
        hardware=Hardware(workers=1),
    )
    exact = result.to_record()["simulation_only"]
    said = {
        key: [round(each, 6) for each in (of["a"], of["b"], *(of["relative"] or ()))]
        for key, of in exact["measures"].items()
        if of["a"] is not None
    }
    figure("pair", arm=name, seed=seed, words=exact["typed"]["words"], judgement=result.judgement, **said)
    return dict(exact["measures"])


def say_foreseen(given: argparse.Namespace, settings: TypingSettings) -> None:
    """Prints what each model foresees of the text that the arms are typed on, where an arm has seeds of each."""
    typed = sentences_of(given.data, settings, silent)
    print("| reads | words | not known | cross-entropy, nats | top-1 | top-3 |")
    print("|---|--:|--:|--:|--:|--:|")
    for arm in [f"base={given.base}", *given.arms]:
        name, _, model = arm.partition("=")
        for seed in range(1, given.seeds + 1) if "{seed}" in model else [None]:
            said = name if seed is None else f"{name}, seed {seed}"
            phone = phone_model(name, model.format(seed=seed))
            found = np.array(list(foreseen(phone, typed.users)))
            known = found[~np.isnan(found[:, 0])]
            nats, rank = known[:, 0], known[:, 1]
            shares = f"{nats.mean():.3f} | {np.mean(rank < 1):.2%} | {np.mean(rank < 3):.2%}"
            print(f"| {said} | {len(found):,} | {1 - len(known) / len(found):.1%} | {shares} |", flush=True)


def foreseen(model: PhoneModel, users: Sequence[TypingUser]) -> Iterator[tuple[float, float]]:
    """(nats, how many words are likelier) of every word; nan of one that the model does not know."""
    for user in users:
        for sentence in user.sentences:
            session = model.typing()
            for word in sentence:
                written = UNSPELLED if word is None else word.lower() if model.vocabulary.lowercase else word
                id = model.vocabulary.id_of(written)
                if id == OOV:
                    yield math.nan, math.nan
                else:
                    logs = session.log_probabilities
                    yield -float(logs[id]), float(np.sum(logs[SPECIALS:] > logs[id]))
                session.commit(written)


def figure(kind: str, **values: Any) -> None:
    """One JSON line."""
    print(json.dumps({"figure": kind, **values}, ensure_ascii=False), flush=True)


def summary(arm: str, pairs: Sequence[Measures]) -> list[str]:
    """A cell for each column: the mean over seeds, its interval, and how many seeds tell it from 0."""
    cells = []
    for column, (measure, sign) in COLUMNS.items():
        changes = [pair[measure]["relative"] for pair in pairs]
        if None in changes:  # where A has none of it, as of composed phrases without --compose
            figure("arm", arm=arm, column=column, mean=None)
            cells.append("")
            continue
        found = [sign * 100 * np.array(change) for change in changes]  # middle, then both ends
        middle = [float(each[0]) for each in found]
        mean, half = statistics.mean(middle), math.nan
        if len(middle) > 1:
            half = float(student.ppf(0.975, len(middle) - 1)) * statistics.stdev(middle) / len(middle) ** 0.5
        better, worse = sum(each.min() > 0 for each in found), sum(each.max() < 0 for each in found)
        told = [f"{count} of {len(found)} {word}" for count, word in ((better, "better"), (worse, "worse")) if count]
        figure(
            "arm",
            arm=arm,
            column=column,
            mean=round(mean, 3),
            half=round(half, 3),
            better=int(better),
            worse=int(worse),
        )
        cells.append(f"{mean:+.1f} ± {half:.1f} ({', '.join(told) or 'not told'})")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="The model in use: A.")
    parser.add_argument("--arms", nargs="*", default=[], metavar="NAME=MODEL", help="Those that may take its place: B.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/typing"), help="Where the run folders are made.")
    parser.add_argument("--name", default="typed", help="What their names begin with.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--users", type=int, default=40)
    parser.add_argument("--sentences", type=int, default=5)
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--layout", default="qwerty")
    parser.add_argument("--condition", default="network")
    parser.add_argument("--search")
    parser.add_argument("--more-words", help="A discovery run, whose words every B has.")
    parser.add_argument("--compose", type=float)
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--foreseen", action="store_true")
    given = parser.parse_args()
    share = Share(users=given.users, sentences=given.sentences, words=given.words)
    settings = TypingSettings.on(
        given.layout,
        share=share,
        condition=given.condition,
        search=given.search,
        more_words=given.more_words,
        compose=given.compose,
    )
    say = say_null if given.null else say_foreseen if given.foreseen else say_arms
    say(given, settings)


if __name__ == "__main__":
    main()
