"""Of taps that hit 8.5% wrong letters the decoder has 95% of the intended words among its first three, in 5 ms a word.

Words: the most frequent of public text. Taps: of `TouchModel` for the words of test clients, those that are no word of
the vocabulary or have a digit left out. The language weight is tuned on validation clients. One JSON line per figure
(`--only` chooses):

- `speed`: CPU microseconds of a word, of completions and of a context, for a beam and a size of the lexicon;
- `accuracy`: intended words first and among the first three, by what is in the search: no language, unigram of the
  public text, trigram of the training clients; and the trigram as rescorer of the unigram's first ten. Beside them on
  the same taps: the letters that were hit; the trigram alone, without taps; SymSpell over the same words, given the
  letters that were hit, and judged by what is typed for a word (so `well` may stand for `we'll`). The decoder knows the
  fingers that tap; "by another touch model" it takes them for blunter, and knows of no offset;
- `misspellings`: the middles of the keys of real misspellings as taps, which is not what the model is for: most are of
  sound and not of touch. English ones over the public words, Spanish ones over those of the training essays.

    python benchmarks/keyboard/decoder.py ../shared/data --caches DIR
    PYTHONPATH=src:PEERS python benchmarks/keyboard/decoder.py ...  PEERS: a folder with symspellpy, to have it beside
    python benchmarks/keyboard/decoder.py ../shared/data --figure docs/results/touch-confusion.png
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as parquet

import tacit
from tacit.data import Cache, VocabularyChoice
from tacit.data.formats.parquet import read_texts
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.evaluation.trigram_reader import TrigramReader
from tacit.keyboard.decoder import BEAM, MARGIN, Decoder
from tacit.keyboard.lexicon import Lexicon
from tacit.keyboard.touch import LAYOUTS, TouchModel
from tacit.text.counted_words import count_words
from tacit.text.vocabulary import BOS, SPECIALS, Vocabulary
from tacit.text.words import Writing

PUBLIC = ("public-forum-en.parquet", "public-novels-en.parquet")
CORPORA = ("chat-en", "blogs-en")
WEIGHTS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
SPELLER: dict[str, Any] = {
    "omission": 0.05,
    "transposition": 0.02,
    "doubling": 0.03,
    "stray": 0.05,
}  # of who cannot spell
BLUNT: dict[str, Any] = {
    "offset_x": 0.0,
    "offset_y": 0.0,
    "deviation_x": 0.35,
    "deviation_y": 0.35,
}  # knows less of the fingers
TEN = 10  # candidates that are rescored


class Typed(NamedTuple):
    """A word that somebody typed, and what the trigram knew before it."""

    id: int
    points: Any
    trigram: Any  # (V,) ln p


@cache
def word_counts(data: Path, names: Sequence[str] = PUBLIC) -> dict[str, int]:
    return count_words((text for name in names for text in read_texts(data / name)), writing=Writing(lowercase=True))


def lexicon_of(counts: dict[str, int], size: int, layout: str = "qwerty") -> tuple[Lexicon, Any]:
    """The most frequent words, and ln of their frequencies by id."""
    words = sorted(counts, key=lambda word: (-counts[word], word))[:size]
    return Lexicon.from_words(words, LAYOUTS[layout]), log_frequencies(words, counts)


def log_frequencies(words: Sequence[str], counts: dict[str, int]) -> Any:
    """(V,) float32; half a word for what has none."""
    numbers = np.array([0.5] * SPECIALS + [counts.get(word, 0) or 0.5 for word in words])
    return np.log(numbers / numbers.sum()).astype(np.float32)


def opened(data: Path, corpus: str, caches: Path, size: int) -> Cache:
    """The corpus by the public words, made where it is not there."""
    place = caches / f"{corpus}-{size}"
    if not place.exists():
        choice = VocabularyChoice(public=tuple(str(data / name) for name in PUBLIC))
        tacit.import_data(str(data / corpus), place, vocabulary=choice, vocabulary_size=size + SPECIALS, lowercase=True)
    return Cache.open(place)


def typed_words(
    cached: Cache, split: str, lexicon: Lexicon, trigram: BackedOffTrigram, count: int, seed: int
) -> Iterator[Typed]:
    """The first words of clients in random order, at most 200 of each."""
    random, touch, reader = np.random.default_rng(seed), TouchModel(), TrigramReader(trigram)
    left = count
    for client in random.permutation(cached.clients(split)):
        ids, lengths = cached.sentences(int(client))
        state, words, scores = reader.begin(), 0, None
        for id in ids[: int(lengths.cumsum()[min(len(lengths), 40) - 1])].tolist():
            form = lexicon.layout.typed_form(lexicon.word_of(id)) if id >= SPECIALS else None
            if form and words < 200:
                yield Typed(id, touch.taps(lexicon.layout.key_ids(form), random), scores)
                words, left = words + 1, left - 1
                if not left:
                    return
            state, scores = reader.step(reader.begin() if id == BOS else state, id)


def shares(found: Sequence[Sequence[Any]], wanted: Sequence[Any]) -> dict[str, float]:
    """Of the wanted, how many are first and among the first three."""
    first = np.mean([list(each[:1]) == [want] for each, want in zip(found, wanted, strict=True)])
    three = np.mean([want in each[:3] for each, want in zip(found, wanted, strict=True)])
    return {"first": round(float(first), 4), "first_three": round(float(three), 4)}


def ids_of(candidates: Sequence[Any]) -> list[int]:
    return [each.id for each in candidates]


def distance(meant: str, hit: str) -> int:
    """Edit distance of two strings."""
    row = list(range(len(hit) + 1))
    for at, letter in enumerate(meant, 1):
        diagonal, row[0] = row[0], at
        for place, other in enumerate(hit, 1):
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, diagonal + (letter != other))
    return row[-1]


def symspell(lexicon: Lexicon, unigram: Any) -> Callable[[str], list[str]] | None:
    """SymSpell's best three typed forms for letters, by distance and then frequency; None where it is not installed."""
    try:
        from symspellpy import SymSpell, Verbosity
    except ImportError:
        return None
    speller = SymSpell(max_dictionary_edit_distance=2)
    for id, word in enumerate(lexicon.words, lexicon.first_id):
        if form := lexicon.layout.typed_form(word):
            speller.create_dictionary_entry(form, max(1, round(float(np.exp(unigram[id])) * 1e9)))
    return lambda letters: [each.term for each in speller.lookup(letters, Verbosity.ALL)[:3]]


def line(experiment: str, **facts: Any) -> None:
    print(json.dumps({"benchmark": "decoder", "experiment": experiment, **facts}), flush=True)


def tuned(decoder: Decoder, typed: Sequence[Typed], language: Callable[[Typed], Any]) -> tuple[float, dict[str, float]]:
    """The weight at which most words are first, and the shares at each."""
    first = {}
    for weight in WEIGHTS:
        weighted = Decoder(decoder.lexicon, decoder.touch, language_weight=weight)
        found = [ids_of(weighted.decode(each.points, language(each), 1)) for each in typed]
        first[weight] = shares(found, [each.id for each in typed])["first"]
    best = max(first, key=lambda weight: (first[weight], -abs(weight - 1)))
    return best, {str(weight): share for weight, share in first.items()}


def accuracy(data: Path, corpus: str, caches: Path, size: int, words: int, seed: int) -> None:
    """All that is said at the head of this file of one corpus."""
    cached = opened(data, corpus, caches, size)
    vocabulary = Vocabulary.from_json(cached.vocabulary_json)
    lexicon = Lexicon.from_words(vocabulary.words, LAYOUTS["qwerty"])
    unigram = log_frequencies(vocabulary.words, word_counts(data))
    trigram = BackedOffTrigram.train(cached, cached.clients("train"), vocabulary=vocabulary.size)
    decoder = Decoder(lexicon, TouchModel())
    tests = list(typed_words(cached, "test", lexicon, trigram, words, seed))
    wanted = [each.id for each in tests]
    forms = [str(lexicon.layout.typed_form(lexicon.word_of(id))) for id in wanted]
    letters = [decoder.literal(each.points) for each in tests]
    wrong = sum(map(distance, forms, letters)) / sum(map(len, forms))
    facts = {"corpus": corpus, "words": len(lexicon.words), "typed": len(tests), "seed": seed}
    facts["letters_wrong"] = round(wrong, 4)
    line("accuracy", search="letters that were hit", **shares([[each] for each in letters], forms), **facts)
    if speller := symspell(lexicon, unigram):
        begin = time.process_time()
        spelled = [speller(each) for each in letters]
        cost = round((time.process_time() - begin) / len(tests) * 1e6)
        line("accuracy", search="SymSpell", **shares(spelled, forms), cpu_us=cost, **facts)
    alone = [np.argsort(-each.trigram[SPECIALS:], kind="stable")[:3] + SPECIALS for each in tests]
    line("accuracy", search="trigram without taps", **shares([each.tolist() for each in alone], wanted), **facts)
    validation = list(typed_words(cached, "validation", lexicon, trigram, words // 2, seed + 1))
    searches: dict[str, Callable[[Typed], Any]] = {
        "no language": lambda each: unigram,
        "unigram": lambda each: unigram,
        "trigram": lambda each: each.trigram,
    }
    for name, language in searches.items():
        weight, tried = (0.0, {}) if name == "no language" else tuned(decoder, validation, language)
        weighted = Decoder(lexicon, decoder.touch, language_weight=weight)
        found = [ids_of(weighted.decode(each.points, language(each))) for each in tests]
        line("accuracy", search=name, weight=weight, validation=tried, **shares(found, wanted), **facts)
        if name == "unigram":
            ten = [(each, weighted.decode(each.points, unigram, TEN)) for each in tests]
            again = [weighted.rescored(some, [each.trigram[at.id] for at in some]) for each, some in ten]
            search = "unigram, first ten rescored by the trigram"
            line("accuracy", search=search, weight=weight, **shares([ids_of(some) for some in again], wanted), **facts)
    blunt = Decoder(lexicon, replace(decoder.touch, **BLUNT))
    found = [ids_of(blunt.decode(each.points, each.trigram)) for each in tests]
    line("accuracy", search="trigram, by another touch model", weight=1.0, **shares(found, wanted), **facts)


def speed(data: Path, sizes: Sequence[int], words: int, seed: int) -> None:
    """Of words drawn by their public frequency."""
    for size in sizes:
        lexicon, unigram = lexicon_of(word_counts(data), size)
        begin = time.thread_time()
        Lexicon.from_words(lexicon.words, lexicon.layout)
        built = time.thread_time() - begin
        random = np.random.default_rng(seed)
        weights = np.exp(unigram[lexicon.ids].astype(np.float64))
        ids = random.choice(lexicon.ids, words, p=weights / weights.sum()).tolist()
        forms = [str(lexicon.layout.typed_form(lexicon.word_of(id))) for id in ids]
        points = [TouchModel().taps(lexicon.layout.key_ids(form), random) for form in forms]
        for beam, margin in ((BEAM, MARGIN), (20, MARGIN), (200, 20.0)):
            decoder = Decoder(lexicon, TouchModel(), beam=beam, margin=margin)
            context = decoder.context(unigram)
            costs = {
                "decode_us": cpu_us(decoder.decode, points, unigram),
                "decode_in_context_us": cpu_us(decoder.decode, points, context),
                "completions_in_context_us": cpu_us(decoder.completions, [taps[:2] for taps in points], context),
            }
            found = [ids_of(decoder.decode(taps, context)) for taps in points]
            facts = {"words": size, "nodes": len(lexicon.keys), "build_s": round(built, 3), "beam": beam}
            line("speed", **facts, margin=margin, **costs, **shares(found, ids), typed=words, seed=seed)


def cpu_us(call: Callable[[Any, Any], Any], given: Sequence[Any], language: Any) -> float:
    """CPU microseconds of a call with the language, the best of three rounds; the first call compiles."""
    call(given[0], language)
    rounds = []
    for _ in range(3):
        begin = time.thread_time()
        for each in given:
            call(each, language)
        rounds.append((time.thread_time() - begin) / len(given) * 1e6)
    return round(min(rounds), 1)


def misspellings(data: Path, language: str, size: int, words: int, seed: int) -> None:
    """Pairs whose intended word is known; `typed_alike` of them differ by no key, and are left out."""
    names, keyboard = (PUBLIC, "qwerty") if language == "en" else (("essays-es.train.parquet",), "qwerty-es")
    lexicon, unigram = lexicon_of(word_counts(data, names), size, keyboard)
    layout, touch = lexicon.layout, TouchModel(layout=lexicon.layout)
    ids = {word: id for id, word in enumerate(lexicon.words, lexicon.first_id)}
    rows = parquet.read_table(data / f"typos-{language}.parquet").to_pylist()
    known = [(layout.typed_form(row["typed"]), ids.get(row["intended"].lower())) for row in rows]
    spelt = [(typed, id, layout.typed_form(lexicon.word_of(id))) for typed, id in known if typed and id]
    pairs = sorted((typed, id) for typed, id, form in spelt if form and typed != form)
    chosen = np.random.default_rng(seed).choice(len(pairs), min(words, len(pairs)), replace=False)
    some = [pairs[at] for at in chosen]
    wanted = [id for _, id in some]
    forms = [str(layout.typed_form(lexicon.word_of(id))) for id in wanted]
    facts: dict[str, Any] = {"language": language, "words": len(lexicon.words), "pairs": len(some), "of": len(pairs)}
    facts |= {"typed_alike": len(spelt) - len(pairs), "seed": seed}
    words_typed = {layout.typed_form(word) for word in lexicon.words}  # learners' essays have their misspellings too
    facts["typed_another_word"] = round(float(np.mean([typed in words_typed for typed, _ in some])), 3)
    if speller := symspell(lexicon, unigram):
        line("misspellings", search="SymSpell", **shares([speller(typed) for typed, _ in some], forms), **facts)
    for name, model, margin in (
        ("the touch model", touch, MARGIN),
        ("more of all slips", replace(touch, **SPELLER), MARGIN),
        ("more of all slips, a wide beam", replace(touch, **SPELLER), 40.0),
    ):
        decoder = Decoder(lexicon, model, beam=BEAM if margin == MARGIN else 1000, margin=margin)
        found = [ids_of(decoder.decode(model.means[layout.key_ids(typed)], unigram)) for typed, _ in some]
        line("misspellings", search=name, **shares(found, wanted), **facts)


def figure(out: Path) -> None:
    """The confusion matrix: which key is hit for which letter, and where the taps lie."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    touch, random = TouchModel(), np.random.default_rng(0)
    layout = touch.layout
    drawing, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2), width_ratios=(1.25, 1))
    for key, (x, y) in enumerate(layout.centres):
        corner = (x - 0.5, y - layout.height / 2)
        left.add_patch(Rectangle(corner, 1, layout.height, fill=False, color="0.6", linewidth=0.8))
        taps = touch.taps([key] * 60, random)
        hits = layout.nearest(taps) == key
        left.plot(*taps[hits].T, ".", color="C0", markersize=3)
        left.plot(*taps[~hits].T, ".", color="C3", markersize=3)
        left.text(x, y, layout.keys[key], ha="center", va="center", fontsize=15)
    left.set(
        aspect="equal",
        ylim=(layout.size[1] + 0.3, -0.3),
        xlim=(-0.4, 10.4),
        title="60 taps for each letter; red: another key",
    )
    left.axis("off")
    order = np.argsort(list(layout.keys))
    percent = 100 * touch.confusion()[np.ix_(order, order)]
    shown = right.imshow(np.where(percent >= 0.05, percent, np.nan), norm="log", cmap="viridis", vmin=0.05, vmax=100)
    letters = [layout.keys[at] for at in order]
    right.set(
        xticks=range(len(letters)), yticks=range(len(letters)), xlabel="key that is hit", ylabel="letter that is meant"
    )
    right.set_xticklabels(letters, fontsize=8)
    right.set_yticklabels(letters, fontsize=8)
    right.set_title("percent of taps")
    drawing.colorbar(shown, ax=right, shrink=0.85)
    drawing.tight_layout()
    drawing.savefig(out, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--caches", type=Path, default=Path("decoder-caches"))
    parser.add_argument("--only", choices=("speed", "accuracy", "misspellings"))
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--words", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    if options.figure:
        figure(options.figure)
        return
    if options.only in (None, "speed"):
        speed(options.data, (10_000, 30_000), options.words // 2, options.seed)
    if options.only in (None, "misspellings"):
        for language in ("en", "es"):
            misspellings(options.data, language, 30_000, options.words, options.seed)
    for corpus in options.corpora if options.only in (None, "accuracy") else ():
        accuracy(options.data, corpus, options.caches, 30_000, options.words, options.seed)


if __name__ == "__main__":
    main()
