"""Locally private tries find most of what can be found, and a threshold keeps out what nobody typed.

Six experiments, one JSON line per figure (`--only` chooses):

- `corpora`: words beyond a public vocabulary of 10,000 ids (counted on public text) in real clients' text, users drawn
  with replacement to reach the population that is needed, since the corpora have thousands of clients and not
  millions. GS/RS x one/two passes (the same number of users in all) x epsilon, beside no privacy. Paper 2, Table 1,
  on its own users: GS 77.1%, RS 83.1%, RS two passes 92.1%.
- `independent`: every report one word drawn from the words that make the bottom 5% of a public text's tokens: the shape
  of the table `trie_simulation` of the reference folder's local_dp.json, on other text, so with other numbers.
- `allocation`: the same users, as many in each layer or more in the middle ones, over three seeds.
- `threshold`: words that nobody typed, output with and without the absolute threshold of (k, delta)-anonymity.
- `multiplicities`: a made population in which nobody is drawn twice: words of which it is known how many users typed
  them, half a hundred common ones and thousands of rare ones that begin like them. Which share of those that 1, 19,
  20, ... users typed is output, with and without the threshold?
- `production`: paper 2's production run, 60 words a user, greedy, two passes of 15 layers, central (0.315, 1e-10): as
  many users as `tacit account populations --central-epsilon 0.315` says at each local epsilon, and no more. Of a
  corpus' own clients drawn with replacement; and of `drawn` users, no two of whom are one person: each types 60
  unknown words by the corpus' law, one a day, so that it is known of each word how many typed it.

`coverage` is the share of the unknown words' occurrences that the found words account for, `coverage_of_shared` that of
those found words that at least 20 of the corpus' own clients typed, `rare_words` are found words that fewer typed;
`false_words` were typed by nobody. "No privacy" is a local epsilon of 30, at which a report is its answer but with
probability 1e-8. Only counts and rates are printed. `--figure FILE` draws the corpora's lines, read from a file of JSON
lines.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import open_source
from tacit.data.formats.parquet import read_texts
from tacit.data.unknown_words import TypedWords, read_typed_words
from tacit.discovery.collect import AtOnce
from tacit.discovery.rounds import Discovery, discover
from tacit.discovery.settings import DiscoverySettings
from tacit.planning.discovery import DiscoveryPlan, population_for
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.rounding import rounded_up
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.statements import LocalReports
from tacit.statements.local_releases import local_guarantee
from tacit.text.counted_words import count_words, most_frequent
from tacit.text.vocabulary import Provenance, Vocabulary

NO_PRIVACY = 30.0
PUBLIC = ("public-forum-en.parquet", "public-novels-en.parquet")
CORPORA = ("blogs-en", "chat-en")
SHARED = 20  # clients of the corpus itself: below, a word is rare, however many simulated users typed it
HOLDERS = (1, 5, 10, 19, 20, 40, 80, 160, 320, 640, 1280)  # of the words of a made population
WORDS_OF_EACH = 1_000  # rare ones, of each number of holders, as far as there are users for them
CENTRAL, WORDS_A_USER = (0.315, 1e-10), 60  # paper 2, section 4.1, for one word; over 60 days, the size of its store
ANONYMITY = Anonymity(k=20, delta=1e-6)
OTHER_WAYS = 6.0  # the local epsilon at which a production run is made in other ways, too
PAPER = {("greedy", 1): 0.771, ("random", 1): 0.831, ("random", 2): 0.921}  # Table 1, other users and epsilon


class Nowhere:
    """A journal that keeps nothing."""

    def read(self, name: str) -> None:
        return None

    def write(self, name: str, release: LocalReports, output: dict[str, Any], participants: int) -> None:
        pass


def figures(found: Discovery, typed: TypedWords) -> dict[str, Any]:
    """Coverage of occurrences, words, and words that nobody typed."""
    totals = dict(zip(typed.words, typed.totals.tolist(), strict=True))
    holders = dict(zip(typed.words, typed.holders.tolist(), strict=True))
    shared = [word for word in found.words if holders.get(word, 0) >= SHARED]
    everything, counts = int(typed.totals.sum()), found.counts
    words = len(found.words)
    return {
        "coverage": round(sum(totals.get(word, 0) for word in found.words) / everything, 4),
        "coverage_of_shared": round(sum(totals[word] for word in shared) / everything, 4),
        "words": words,
        "precision": round(sum(word in totals for word in found.words) / words, 4) if words else None,
        "precision_of_shared": round(len(shared) / words, 4) if words else None,
        "rare_words": sum(0 < holders.get(word, 0) < SHARED for word in found.words),
        "false_words": sum(word not in totals for word in found.words),
        "coverage_estimated": round(counts.coverage.value, 4) if counts and counts.coverage else None,
    }


def promised(found: Discovery) -> dict[str, Any]:
    """What the ledger of all layers promises, and what the clones' bound would."""
    made = local_guarantee([layer.release for layer in found.layers], central_delta=CENTRAL[1])
    return {
        "central_epsilon": rounded_up(made.central.epsilon_upper),
        "central_epsilon_refuted": round(made.central.epsilon_lower, 4),
        "central_epsilon_of_clones": rounded_up(replace(made, randomizer="any").central.epsilon_upper),
        "central_epsilon_user": rounded_up(made.central_user_epsilon),
        "users": sum(layer.release.users for layer in found.layers),
    }


def measure(experiment: str, settings: DiscoverySettings, typed: TypedWords, **facts: Any) -> None:
    """Ask for words and print the line."""
    wall, cpu = time.perf_counter(), time.process_time()
    collector = AtOnce(
        typed=typed, assignment=settings.seed or 0, resampled=settings.resample_users, seed=settings.seed
    )
    found = discover(settings, collector, Nowhere(), population=typed.clients)
    line = {
        "benchmark": "word_discovery",
        "experiment": experiment,
        **facts,
        "local_epsilon": settings.reports.local_epsilon,
        "sampler": settings.reports.sampler,
        "passes": settings.passes,
        "contributions": settings.reports.contributions,
        "users_per_layer": settings.users_per_layer,
        "prefixes": settings.prefixes,
        "seed": settings.seed,
        **figures(found, typed),
        **(promised(found) if experiment == "production" else {}),
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }
    print(json.dumps(line), flush=True)


def public_counts(data: Path) -> dict[str, int]:
    """Words of the public text."""
    return count_words(text for name in PUBLIC for text in read_texts(data / name))


def beyond_public(data: Path, corpus: str, size: int = 10_000) -> TypedWords:
    """What a corpus' training clients typed beyond the most frequent public words."""
    origin = Provenance(kind="public", description="public text")
    vocabulary: Vocabulary = most_frequent(public_counts(data), size=size, provenance=origin)
    return read_typed_words(open_source(str(data / corpus)), count_words, frozenset(vocabulary.words))


def corpora(data: Path, names: Sequence[str], users: int, prefixes: int, epsilons: list[float], seed: int) -> None:
    """`users` a layer with one pass, half of them with two."""
    for corpus in names:
        typed = beyond_public(data, corpus)
        for epsilon in [*epsilons, NO_PRIVACY]:
            for sampler, passes in (("greedy", 1), ("greedy", 2), ("random", 1), ("random", 2)):
                settings = DiscoverySettings(
                    reports=LocalReportSettings(local_epsilon=epsilon, sampler=sampler),  # type: ignore[arg-type]
                    users_per_layer=users // passes,
                    passes=passes,
                    prefixes=prefixes,
                    resample_users=True,
                    counting_users=users // 2,
                    seed=seed,
                )
                measure("corpora", settings, typed, corpus=corpus, paper=PAPER.get((sampler, passes)))


def bottom(data: Path, share: float = 0.05) -> TypedWords:
    """One client for each occurrence of the public text's rare words, which make this share of all its occurrences."""
    counts = public_counts(data)
    rare: dict[str, int] = {}
    left = share * sum(counts.values())
    for word in sorted(counts, key=lambda word: (counts[word], word)):
        if left < counts[word]:
            break
        rare[word] = counts[word]
        left -= counts[word]
    words = sorted(rare)
    word_of = np.repeat(np.arange(len(words), dtype=np.int32), [rare[word] for word in words])
    clients = len(word_of)
    return TypedWords(
        words=tuple(words),
        offsets=np.arange(clients + 1, dtype=np.int64),
        word_of=word_of,
        counts=np.ones(clients, np.int32),
        typed=np.ones(clients, np.int64),
    )


def independent(data: Path, reports: list[int], epsilons: list[float], seed: int) -> None:
    """Reports a layer x prefixes x epsilon, K = 1."""
    typed = bottom(data)
    for count in reports:
        for prefixes in (1000, 10_000):
            for epsilon in [*epsilons, NO_PRIVACY]:
                settings = DiscoverySettings(
                    reports=LocalReportSettings(local_epsilon=epsilon),
                    users_per_layer=count,
                    prefixes=prefixes,
                    resample_users=True,
                    seed=seed,
                )
                measure("independent", settings, typed, different_words=len(typed.words))


def allocation(data: Path, names: Sequence[str], users: int, epsilons: list[float], seed: int) -> None:
    """Even against middle, in turn."""
    for corpus in names:
        typed = beyond_public(data, corpus)
        for epsilon in epsilons:
            for own_seed in range(seed, seed + 3):
                even = DiscoverySettings(
                    reports=LocalReportSettings(local_epsilon=epsilon),
                    users_per_layer=users,
                    resample_users=True,
                    seed=own_seed,
                )
                for settings in (even, replace(even, allocation="middle")):
                    measure("allocation", settings, typed, corpus=corpus, allocation=settings.allocation)


def threshold(data: Path, users: int, epsilons: list[float], seed: int) -> None:
    """With and without it, at two numbers of prefixes."""
    typed = beyond_public(data, "blogs-en")
    for prefixes in (1000, 10_000):
        for epsilon in epsilons:
            plain = DiscoverySettings(
                reports=LocalReportSettings(local_epsilon=epsilon),
                users_per_layer=users,
                prefixes=prefixes,
                resample_users=True,
                seed=seed,
            )
            for anonymity in (None, Anonymity(k=20, delta=1e-3), Anonymity(k=20, delta=1e-6)):
                named = f"k={anonymity.k}, delta={anonymity.delta:g}" if anonymity else None
                settings = replace(plain, anonymity=anonymity)
                measure("threshold", settings, typed, corpus="blogs-en", anonymity=named)


def production(data: Path, names: Sequence[str], epsilons: list[float], seed: int) -> None:
    """Each local epsilon with and without the threshold, and 6 in other ways."""
    plan = DiscoveryPlan(
        domain=100_001, groups=30, contributions=WORDS_A_USER, anonymity=ANONYMITY, central_delta=CENTRAL[1]
    )
    for corpus in names:
        typed = beyond_public(data, corpus)
        for epsilon in epsilons:
            settings = DiscoverySettings(
                reports=LocalReportSettings(local_epsilon=epsilon, contributions=WORDS_A_USER, sampler="greedy"),
                users_per_layer=population_for(CENTRAL[0], epsilon, plan) // plan.groups,
                passes=2,
                resample_users=True,
                seed=seed,
            )
            private = replace(settings, anonymity=ANONYMITY)
            for own in (settings, private):
                measure("production", own, typed, corpus=corpus, threshold=own.anonymity is not None)
            if epsilon != OTHER_WAYS:
                continue
            points = replace(settings, reports=replace(settings.reports, randomizer="projective-geometry"))
            measure("production", points, typed, corpus=corpus, threshold=False, randomizer="projective-geometry")
            one = replace(settings, reports=replace(settings.reports, contributions=1))
            measure("production", one, typed, corpus=corpus, threshold=False)
            people = drawn(typed, settings.users, seed)
            for own in (settings, private):
                own = replace(own, resample_users=False)
                measure("production", own, people, corpus=f"{corpus}, drawn", threshold=own.anonymity is not None)


def drawn(typed: TypedWords, users: int, seed: int) -> TypedWords:
    """Different users with WORDS_A_USER unknown words each, drawn one by one as often as the corpus has them."""
    generator = np.random.default_rng(seed)
    law = np.cumsum(typed.totals) / typed.totals.sum()
    word_of = np.sort(np.searchsorted(law, generator.random((users, WORDS_A_USER)), side="right"), axis=1)
    first = np.diff(word_of, axis=1, prepend=-1) != 0  # of each word of a user
    starts = np.flatnonzero(first)
    return TypedWords(
        words=typed.words,
        offsets=np.append(0, np.cumsum(first.sum(axis=1))).astype(np.int64),
        word_of=word_of[first].astype(np.int32),
        counts=np.diff(np.append(starts, word_of.size)).astype(np.int32),
        typed=np.full(users, WORDS_A_USER, np.int64),
    )


def made(seed: int, users: int) -> TypedWords:
    """A population of users with one word each: (number of holders, words), and common words for all the others.

    Rare words are a common one and three letters more, so that their prefixes are kept to the end and the last layer
    alone decides.
    """
    generator = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    common = ["".join(generator.choice(letters, 4)) for _ in range(50)]
    holders: dict[str, int] = {}
    for count in HOLDERS:
        for _ in range(min(WORDS_OF_EACH, users // (4 * len(HOLDERS) * count))):
            holders[str(generator.choice(common)) + "".join(generator.choice(letters, 3))] = count
    for word in common:
        holders[word] = (users - sum(holders.values())) // (len(common) - common.index(word))
    words = sorted(holders)
    word_of = generator.permutation(np.repeat(np.arange(len(words), dtype=np.int32), [holders[word] for word in words]))
    return TypedWords(
        words=tuple(words),
        offsets=np.arange(len(word_of) + 1, dtype=np.int64),
        word_of=word_of,
        counts=np.ones(len(word_of), np.int32),
        typed=np.ones(len(word_of), np.int64),
    )


def multiplicities(users: int, epsilons: list[float], seed: int) -> None:
    """How many of the words that so many users typed are output; a layer asks `users`, and nobody is drawn twice."""
    for epsilon in [*epsilons, NO_PRIVACY]:
        for anonymity in (None, Anonymity(k=20, delta=1e-2), Anonymity(k=20, delta=1e-6)):
            settings = DiscoverySettings(
                reports=LocalReportSettings(local_epsilon=epsilon),
                users_per_layer=users,
                depth=8,
                prefixes=20_000,
                anonymity=anonymity,
                seed=seed,
            )
            typed = made(seed, users * settings.depth)
            collector = AtOnce(typed=typed, assignment=seed, seed=seed)
            found = discover(settings, collector, Nowhere(), population=typed.clients)
            of = {word: int(count) for word, count in zip(typed.words, typed.holders, strict=True)}
            line = {
                "benchmark": "word_discovery",
                "experiment": "multiplicities",
                "local_epsilon": epsilon,
                "anonymity": f"k={anonymity.k}, delta={anonymity.delta:g}" if anonymity else None,
                "users_per_layer": users,
                "seed": seed,
                "found_of_typed_by": {
                    str(count): f"{sum(of.get(word) == count for word in found.words)} of "
                    f"{sum(each == count for each in of.values())}"
                    for count in HOLDERS
                },
                "false_words": sum(word not in of for word in found.words),
            }
            print(json.dumps(line), flush=True)


def draw(lines: Iterator[dict[str, Any]], out: Path) -> None:
    """Coverage against epsilon for both corpora; no privacy as the dashed ceiling, as in Figure 1 of paper 2."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [line for line in lines if line["experiment"] == "corpora"]
    figure, panels = pyplot.subplots(1, len(CORPORA), figsize=(10, 3.8), layout="constrained")
    colours = {"greedy": "tab:orange", "random": "tab:blue"}
    for panel, corpus in zip(panels, CORPORA, strict=True):
        for sampler, passes in (("greedy", 1), ("greedy", 2), ("random", 1), ("random", 2)):
            own = [r for r in rows if (r["corpus"], r["sampler"], r["passes"]) == (corpus, sampler, passes)]
            private = sorted((r["local_epsilon"], r["coverage"]) for r in own if r["local_epsilon"] < NO_PRIVACY)
            ceiling = [r["coverage"] for r in own if r["local_epsilon"] == NO_PRIVACY]
            style = {"color": colours[sampler], "alpha": 0.5 if passes == 1 else 1.0}
            panel.plot(
                *zip(*private, strict=True), "o-", label=f"{sampler}, {passes} pass{'es' * (passes - 1)}", **style
            )
            panel.axhline(ceiling[0], linestyle="--", linewidth=1, **style)
        panel.set(title=f"{corpus}: words beyond a public 10k vocabulary", xlabel="local epsilon of a report")
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("share of unknown words' occurrences found")
    panels[0].legend(frameon=False, fontsize=8, title="dashed: no privacy", title_fontsize=8)
    figure.savefig(out, dpi=110)


def main() -> None:
    """Measure and print, or draw what was printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of blogs-en, chat-en and the public text")
    experiments = ["corpora", "independent", "allocation", "threshold", "multiplicities", "production"]
    parser.add_argument("--only", choices=experiments, help="one experiment")
    parser.add_argument("--corpus", action="append", choices=CORPORA, help="one of them; repeatable")
    parser.add_argument("--users", type=int, default=1_000_000, help="users in each layer of one pass")
    parser.add_argument("--prefixes", type=int, default=1000, help="prefixes kept, in `corpora`")
    parser.add_argument("--epsilons", default="2,4,6,8,10", help="local epsilons")
    parser.add_argument("--reports", default="1000000,10000000", help="reports a layer, in `independent`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figure", type=Path, help="draw --lines into this file and measure nothing")
    parser.add_argument("--lines", type=Path, help="a file of lines that were printed")
    arguments = parser.parse_args()
    if arguments.figure:
        text = arguments.lines.read_text(encoding="utf-8").splitlines()
        draw((json.loads(line) for line in text), arguments.figure)
        return
    epsilons = [float(epsilon) for epsilon in arguments.epsilons.split(",")]
    if arguments.only in (None, "corpora"):
        corpora(
            arguments.data, arguments.corpus or CORPORA, arguments.users, arguments.prefixes, epsilons, arguments.seed
        )
    if arguments.only in (None, "independent"):
        reports = [int(count) for count in arguments.reports.split(",")]
        independent(arguments.data, reports, epsilons, arguments.seed)
    if arguments.only in (None, "allocation"):
        allocation(arguments.data, arguments.corpus or CORPORA, arguments.users, epsilons, arguments.seed)
    if arguments.only in (None, "threshold"):
        threshold(arguments.data, arguments.users, epsilons, arguments.seed)
    if arguments.only in (None, "multiplicities"):
        multiplicities(arguments.users, epsilons, arguments.seed)
    if arguments.only in (None, "production"):
        production(arguments.data, arguments.corpus or CORPORA, epsilons, arguments.seed)


if __name__ == "__main__":
    main()
