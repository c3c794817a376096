"""The typist types as 37,370 people did: 36.2 words a minute, and 2.3% of the characters left wrong.

Fitted are two numbers, in this order: by how much the log odds of catching, noticing and rereading errors (`NOTICING`)
are moved from what was assumed for them, so that characters left wrong are Palin's; then the interval from key to key,
so that words a minute are. Both targets are means over people (Palin et al., MobileHCI 2019, abstract). What the study
found beside them, and Quinn & Zhai (CHI 2016) too, is not fitted but must come out: who looks at the suggestions more
presses fewer keys and is slower.

    tacit data import DATA/blogs-en --out caches/blogs --vocabulary-size 5000 --vocabulary-from PUBLIC.parquet
    python benchmarks/keyboard/typist_fit.py --cache caches/blogs --data DATA/blogs-en
    ... --misspellings DATA/typos-en.parquet --language en      which share of real misspellings the rules make

The keyboard is the trigram counted on the cache's training clients; the text is that of validation clients, as they
spelled it. About two CPU-minutes.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow.parquet as parquet
from scipy.optimize import brentq

from tacit.data import Cache
from tacit.data.sources import open_source
from tacit.data.typed_sentences import Share, TypingUser, read_typed_sentences
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.evaluation.trigram_reader import TrigramReader
from tacit.evaluation.type_ab.measures import MEASURES, total
from tacit.evaluation.type_ab.misspelling import SHORTEST, Language, misspellings
from tacit.evaluation.type_ab.replay import Keyboard, Tally, distance, type_sentences
from tacit.evaluation.type_ab.typist import NOTICING, POPULATION, Typist, shifted
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.lexicon import Lexicon
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.touch import LAYOUTS, TouchModel
from tacit.text.vocabulary import Vocabulary
from tacit.text.words import sentences

WORDS_A_MINUTE, LEFT_WRONG = 36.2, 0.023  # Palin et al. 2019: means over 37,370 people
LETTERS = 5  # a word in words a minute, its blank included: the custom in studies of text entry, and Palin's
ASSUMED: dict[str, Any] = {"catch": 0.2, "notice": 0.5, "reread": 0.3}  # before they are moved together
LOOKING = {"never": 0.0, "half as often": 0.5, "as fitted": 1.0, "twice as often": 2.0, "four times": 4.0}

Typed = Callable[[Typist], Sequence[Tally]]  # everybody's tally


class Speeds(NamedTuple):
    """What a change of the interval changes, and what it does not."""

    words: np.ndarray  # (users,) of LETTERS characters
    pressing: np.ndarray  # (users,) seconds, in proportion to the interval
    other: np.ndarray  # (users,) seconds

    def at(self, times: float) -> float:
        """Mean words a minute over users where the interval is so many times as long."""
        return float(np.mean(60 * self.words / (times * self.pressing + self.other)))


def fit(assumed: Typist, typed: Typed, interval_of: Callable[[Typist], np.ndarray]) -> Typist:
    """`assumed` with noticing moved and the interval set so that both of Palin's means come out.

    interval_of: each user's own interval, (users,). Raises: ValueError where no noticing leaves that much wrong.
    """

    def too_much(move: float) -> float:
        tallies = typed(moved(assumed, move))
        return float(np.mean([each.wrong_characters / each.characters for each in tallies])) - LEFT_WRONG

    noticing = moved(assumed, float(brentq(too_much, -6, 4, xtol=0.02)))
    tallies = typed(noticing)
    pressing = np.array([each.keystrokes for each in tallies]) * interval_of(noticing)
    speeds = Speeds(
        np.array([each.characters / LETTERS for each in tallies]),
        pressing,
        np.array([each.seconds for each in tallies]) - pressing,
    )
    times = float(brentq(lambda times: speeds.at(times) - WORDS_A_MINUTE, 0.05, 20))
    return replace(noticing, interval=assumed.interval * times)


def moved(typist: Typist, log_odds: float) -> Typist:
    """With all of noticing so much likelier."""
    likelier: dict[str, Any] = {name: shifted(getattr(typist, name), log_odds) for name in NOTICING}
    return replace(typist, **likelier)


def looking(typist: Typist, times: float) -> Typist:
    """Who looks at the strip so many times as often."""
    return replace(typist, look_before=typist.look_before * times, look_while=typist.look_while * times)


def keyboard_of(cache: Cache) -> Keyboard:
    """The trigram of its training clients."""
    vocabulary = Vocabulary.load(cache.vocabulary_path)
    trigram = BackedOffTrigram.train(cache, cache.clients("train"), vocabulary=vocabulary.size)
    model = PhoneModel(name="trigram", reader=TrigramReader(trigram), vocabulary=vocabulary, digest="")
    return Keyboard(model=model, decoder=Decoder(Lexicon.from_words(vocabulary.words, LAYOUTS["qwerty"]), TouchModel()))


def rows_of(typed: Mapping[str, Sequence[Tally]]) -> Iterable[str]:
    """A line for each: means over people of speed and what is left wrong, and some measures of all together."""
    yield f"{'':16}{'words/min':>10}{'left wrong':>12}{'modified':>10}{'keys/char':>11}{'looks/word':>12}"
    for name, tallies in typed.items():
        everybody = total(tallies)
        speed = np.mean([60 * each.characters / LETTERS / each.seconds for each in tallies])
        wrong = np.mean([each.wrong_characters / each.characters for each in tallies])
        modified = MEASURES["words modified ratio"].of(everybody)
        keys, looks = MEASURES["keystrokes a character"].of(everybody), everybody.looks / everybody.words
        yield f"{name:16}{speed:10.1f}{wrong:12.2%}{modified:10.1%}{keys:11.3f}{looks:12.2f}"


def reached(path: Path, language: Language) -> tuple[int, float]:
    """(real misspellings of one or two letters, the share of them that the rules make)."""
    layout = LAYOUTS["qwerty-es" if language == "es" else "qwerty"]
    rows = parquet.read_table(path, columns=["typed", "intended"]).to_pylist()
    pairs = [(layout.typed_form(row["typed"]), layout.typed_form(row["intended"])) for row in rows]
    near = [
        (wrong, right)
        for wrong, right in pairs
        if wrong and right and wrong != right and len(right) >= SHORTEST and distance(wrong, right) <= 2
    ]
    return len(near), sum(wrong in misspellings(right, language) for wrong, right in near) / len(near)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--misspellings", type=Path)
    parser.add_argument("--language", choices=get_args(Language), default="en")
    given = parser.parse_args()
    if given.misspellings:
        count, share = reached(given.misspellings, given.language)
        print(f"{share:.1%} of {count:,} real misspellings of one or two letters are made by one rule")
        return
    read = Share(split="validation", users=given.users, sentences=given.sentences, words=25)
    users = read_typed_sentences(open_source(given.data), sentences, read).users
    board = keyboard_of(Cache.open(given.cache))

    def typed(typist: Typist) -> list[Tally]:
        return [type_sentences(board, typist, user.sentences, seed=given.seed, user=user.name) for user in users]

    def intervals(typist: Typist) -> np.ndarray:
        return np.array([typist.person(given.seed, user.name).interval for user in users])

    fitted = fit(replace(POPULATION, **ASSUMED), typed, intervals)
    said(fitted, users, typed)


def said(fitted: Typist, users: Sequence[TypingUser], typed: Typed) -> None:
    """Prints what was fitted against what, and what came out besides."""
    words = sum(len(sentence) for user in users for sentence in user.sentences)
    print(
        f"{len(users)} people, {words:,} words; targets: {WORDS_A_MINUTE} words a minute, {LEFT_WRONG:.1%} left wrong"
    )
    for name in ("interval", *NOTICING):
        print(f"fitted {name:9} {getattr(fitted, name):.3f}   in use {getattr(POPULATION, name):.3f}")
    begun = time.process_time()
    rows = {name: typed(looking(fitted, times)) for name, times in LOOKING.items()}
    taken = time.process_time() - begun
    print("\nhow often they look at the strip, everything else as fitted:")
    print("\n".join(rows_of(rows)))
    print(f"\n{sum(total(each).words for each in rows.values()) / taken:,.0f} words a CPU-second")


if __name__ == "__main__":
    main()
