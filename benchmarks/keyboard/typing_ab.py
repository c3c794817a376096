"""What typists would feel of models on real text, beside the one in use; and how often a test of nothing finds nothing.

    python benchmarks/keyboard/typing_ab.py --null --base trigram:caches/chat --data DATA/chat-en.test.parquet
    ... --base trigram:caches/public --data DATA/chat-en.test.parquet --runs runs/typing \\
        --name chat --arms start=runs/start blt=runs/chat-blt-{seed} --seeds 3
    ... --null --base runs/start --arms same=runs/same-{seed} --seeds 6 --data DATA/chat-en.test.parquet
    ... --foreseen --base trigram:caches/public --data DATA/chat-en --arms start=runs/start

`--null` has the same users type on the same keyboard twice with other slips (and other habits) each time, for with the
same ones every change is exactly zero; so it may be zero by chance only. It prints, for each measure, in how many of
the tests the 95% interval of the change covers zero, what the launch rule says of a model against itself, and how many
words a CPU-second are typed.

`--null` with one arm, whose trainings differ in nothing but their seed, is the null of the pairing that `tacit type`
has: the same users with the same slips on both sides. It types each training once. Every two of them are an A and a B,
and no recipe is better than itself: it prints how often an interval over users, and the launch rule, say otherwise.
The same is printed of two halves of the trainings, with intervals over users and trainings.

With arms every pair is a run of `tacit type`, made or gone on with where it was stopped, or read where it is finished.
The users are the same in all; a seed is that of the training, where a path has {seed}, and of the typists' slips. It
prints one JSON line a pair, one an arm and column, and the papers' rows: the relative change over all seeds together
with its 95% interval, and what the launch rule says of all of them once. Of three trainings and more an interval covers
other users and other trainings (`evaluation/crossed.py`). Of fewer, and where seeds are of slips alone, it covers other
users; it says which. Pairs of the same users are no tests of their own, so nothing counts in how many of them a measure
was told.

`--foreseen` types nothing: it has the base and each arm read the same text without slips, and prints of each
its cross-entropy, in nats a word that the model knows, and how often such a word is its first or among its first three;
a better cross-entropy may come with worse ranks.
"""

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.compute import Hardware
from tacit.data.typed_sentences import Share, TypingUser
from tacit.evaluation.type_ab.crossed_changes import CrossedChanges, crossed_changes
from tacit.evaluation.type_ab.launch_rule import CAUTIOUS, decide, gains_of
from tacit.evaluation.type_ab.measures import total
from tacit.evaluation.type_ab.paired_bootstrap import Change, changes_of
from tacit.evaluation.type_ab.replay import UNSPELLED, Both, Keyboard, type_sentences
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.evaluation.type_ab.typist import Typist
from tacit.jobs.count_steps import Lines
from tacit.jobs.phone_models import phone_model
from tacit.jobs.type_ab.run import TALLIES, read, typed_once
from tacit.jobs.type_ab.setup import open_test, sentences_of
from tacit.keyboard.phone_model import PhoneModel
from tacit.progress import silent
from tacit.text.vocabulary import OOV, SPECIALS

RESAMPLES = 2_000
PROMISED = (0.93, 0.97)  # shares of 200 tests between which 95% lies by chance, but for about one measure in five

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


def say_trainings(given: argparse.Namespace, settings: TypingSettings) -> None:
    """Prints how often two trainings of one recipe, and two halves of them all, are told apart."""
    name, _, model = given.arms[0].partition("=")
    typed_by = []
    for seed in range(1, given.seeds + 1):
        test = open_test(model.format(seed=seed), given.base, given.data, settings, silent)
        users = test.typed.users
        typed_by.append([type_sentences(test.a, settings.typist, u.sentences, seed=0, user=u.name) for u in users])
    pairs = [changes_of(a, b, cautious=CAUTIOUS, resamples=RESAMPLES) for a, b in combinations(typed_by, 2)]
    print(f"{len(typed_by)} trainings of {name}, {len(users)} users, {total(typed_by[0]).words:,.0f} words a training")
    say_told(f"{len(pairs)} pairs of trainings, over users", pairs)
    first, *others = range(len(typed_by))
    halves = [(first, *more) for more in combinations(others, len(typed_by) // 2 - 1)]
    crossed = [
        crossed_changes(
            [typed_by[at] for at in half],
            [each for at, each in enumerate(typed_by) if at not in half],
            trained=True,
            cautious=CAUTIOUS,
        )
        for half in halves
    ]
    covers = sorted({each.covers for each in crossed})
    say_told(f"{len(halves)} ways to halve them, over {' or '.join(covers)}", [each.changes for each in crossed])


def say_told(which: str, found: Sequence[Mapping[str, Change]]) -> None:
    """Prints in how many an interval is wholly on one side of 0, by measure, and what the launch rule says."""
    for name, share in coverage(found).items():
        ends = [changes[name].relative for changes in found]
        widths = sorted(each.high - each.low for each in ends if each is not None)
        half = 100 * widths[len(widths) // 2] / 2 if widths else math.nan
        print(f"{which}: {name}: {round((1 - share) * len(found))} told, the median interval is ± {half:.2f}%")
    judgements = Counter(decide(gains_of(changes)).judgement for changes in found)
    print(f"{which}: launch rule: {', '.join(f'{count} {each}' for each, count in judgements.most_common())}")


def say_arms(given: argparse.Namespace, settings: TypingSettings) -> None:
    """Prints a line a pair, a line an arm and measure, and the papers' rows."""
    seeds = range(1, given.seeds + 1)
    rows = []
    for arm in given.arms:
        name, _, model = arm.partition("=")
        pairs = [typed(given, settings, name, model, seed) for seed in seeds]
        found = of_all_seeds(pairs, trained="{seed}" in given.base + model)
        rows.append((name, summary(name, found, len(pairs))))
        if given.remember:
            remember(given, name, found)
    print(f"| against {given.base} | " + " | ".join([*COLUMNS, "the rule", "covers"]) + " |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for name, cells in rows:
        print(f"| {name} | " + " | ".join(cells) + " |")


def typed(given: argparse.Namespace, settings: TypingSettings, name: str, model: str, seed: int) -> list[Both]:
    """What each user did in one pair; its run is made, or gone on with, or read."""
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
    by_user = dict(read(Lines(out / TALLIES), typed_once))
    return [by_user[user] for user in sorted(by_user)]


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


def of_all_seeds(pairs: Sequence[Sequence[Both]], *, trained: bool) -> CrossedChanges:
    """What changes from A to B over all seeds together."""
    a, b = [[each.a for each in pair] for pair in pairs], [[each.b for each in pair] for pair in pairs]
    return crossed_changes(a, b, trained=trained, cautious=CAUTIOUS)


def remember(given: argparse.Namespace, arm: str, found: CrossedChanges) -> None:
    """A row of the arm: keystrokes saved in points, every relative change in words, and the launch rule's judgement;
    and the level of A, whose row is "A".
    """
    sys.path.insert(0, str(Path(__file__).parents[1] / "utility"))
    from remembered_rows import remember_row

    changes = found.changes
    saved = changes["keystrokes saved"]
    remember_row(given.remember, given.name, "A", None, {"saved": saved.a})
    relative = {
        name: f"{value:+.1f}% ({low:+.1f} to {high:+.1f})"
        for name, each in changes.items()
        if each.relative is not None
        for value, low, high in [(100 * part for part in each.relative)]
    }
    facts = {"saved_less_a": [*saved.difference], **relative, "rule": decide(gains_of(changes)).judgement}
    remember_row(given.remember, given.name, arm, None, facts)


def summary(arm: str, found: CrossedChanges, seeds: int) -> list[str]:
    """A cell for each column, the launch rule's judgement of all seeds together, and what the intervals cover."""
    cells = []
    for column, (measure, sign) in COLUMNS.items():
        relative = found.changes[measure].relative
        if relative is None:  # where A has none of it, as of composed phrases without --compose
            figure("arm", arm=arm, column=column, value=None)
            cells.append("")
            continue
        ends = sorted(100 * sign * end for end in relative[1:])
        said = [round(each, 3) for each in (100 * sign * relative.value, *ends)]
        figure("arm", arm=arm, column=column, value=said[0], low=said[1], high=said[2], covers=found.covers)
        cells.append(f"{said[0]:+.1f} ({said[1]:+.1f} to {said[2]:+.1f})")
    covers = {"clients": "users", "seeds and clients": f"users and {seeds} trainings"}[found.covers]
    return [*cells, decide(gains_of(found.changes)).judgement, covers]


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
    parser.add_argument("--remember", metavar="FILE", help="Of remembered/, for rows of the experiment --name.")
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
    say = (say_trainings if given.arms else say_null) if given.null else say_foreseen if given.foreseen else say_arms
    say(given, settings)


if __name__ == "__main__":
    main()
