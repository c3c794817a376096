"""Where fingers land: the keys of a layout, and how touch points scatter around them.

Lengths are in key widths; x grows to the right and y downwards, from the upper left corner of the letters.

A word is typed letter by letter, with the probabilities of its `TouchModel`:

- `omission`: the letter is left out (never two in a row, and never the whole word);
- `transposition`: it is typed after its successor;
- else it is tapped: a Gaussian around the middle of its key, moved by an offset that all keys share;
- after each tapped letter, for as long as chance has it: the same key once more (`doubling`), or a tap anywhere on the
  letters (`stray`).

`decoder.py` searches over just these moves. Where the numbers come from:

| what | value | source |
| --- | --- | --- |
| letters wrong without decoding | 8.5% | 8 to 9%: Azenkot & Zhai, MobileHCI 2012, at second hand: we read its abstract
alone. Beside it: 38.4% of words wrong, Fowler et al., CHI 2015, abstract |
| offset | 0.08 each way | "pronounced and consistent touch offsets": Azenkot & Zhai, abstract; the size is assumed |
| omission, transposition, doubling, stray | 0.6, 0.3, 0.3, 0.2% | assumed: most slips are substitutions |
| deviation | 0.26 | what remains: solved for the first row (tests/keyboard/test_touch.py), alike in both directions |
| height of a row | 1.35 | Android's own keyboard: four rows in 205.6 dp, ten keys in 360 to 393 dp |
"""

import math
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError, conceivable

Points = NDArray[np.float64]  # (m, 2): x and y of each tap, in key widths
Keys = NDArray[np.int64]  # places in `KeyboardLayout.keys`

ROW_HEIGHT = 1.35
APOSTROPHES = "'\u2019\u02bc"  # no letter's key: they stand on another page, and keyboards put them in themselves
STRAY = -1  # a tap that is meant for no key


@dataclass(frozen=True)
class KeyboardLayout:
    """Rows of letter keys, each key one wide and `height` high; a row begins `indents` to the right."""

    name: str
    rows: tuple[str, ...]
    indents: tuple[float, ...]
    height: float = ROW_HEIGHT

    @cached_property
    def keys(self) -> str:
        """All letters, row by row; a key's id is its place here."""
        return "".join(self.rows)

    @cached_property
    def centres(self) -> Points:
        """(K, 2): the middle of each key."""
        return np.array(
            [
                (indent + place + 0.5, (row + 0.5) * self.height)
                for row, (letters, indent) in enumerate(zip(self.rows, self.indents, strict=True))
                for place in range(len(letters))
            ]
        )

    @cached_property
    def size(self) -> tuple[float, float]:
        """How wide and how high the letters are together."""
        ends = [indent + len(row) for row, indent in zip(self.rows, self.indents, strict=True)]
        return max(ends), len(self.rows) * self.height

    @cached_property
    def _places(self) -> dict[str, int]:
        return {letter: place for place, letter in enumerate(self.keys)}

    def typed_form(self, word: str) -> str | None:
        """The letters that are pressed for a word: lower case, without apostrophes, accents only where a key has them.

        None where a sign of it has no key here (another script, a digit), or where nothing would be pressed.
        """
        letters = word.lower()
        if letters.isascii() and letters.isalpha() and len(self._places) >= 26:
            return letters
        pressed = [self._pressed(sign) for sign in unicodedata.normalize("NFC", letters)]
        return None if None in pressed else "".join(filter(None, pressed)) or None

    def _pressed(self, sign: str) -> str | None:
        """The letters for one lower-case sign: none for apostrophes and marks, None where it has no key."""
        if sign in self._places:
            return sign
        if sign in APOSTROPHES or unicodedata.combining(sign):
            return ""
        bare = [part for part in unicodedata.normalize("NFD", sign) if not unicodedata.combining(part)]
        return "".join(bare) if all(part in self._places for part in bare) else None

    def key_ids(self, typed: str) -> Keys:
        """(n,) the ids of the keys of a typed form.

        Raises: InputError where a sign of it has no key.
        """
        try:
            return np.array([self._places[letter] for letter in typed], np.int64)
        except KeyError as error:
            raise InputError(
                f"{typed!r} has the sign {error.args[0]!r}, for which the layout {self.name!r} has no key; "
                "take its typed_form first."
            ) from error

    def nearest(self, points: ArrayLike) -> Keys:
        """(m,) the key that each tap hits; one beside the letters counts for the outermost of its row."""
        x, y = np.asarray(points, np.float64).reshape(-1, 2).T
        row = np.minimum(np.maximum(np.floor(y / self.height), 0), len(self.rows) - 1).astype(np.int64)
        indents, firsts, lasts = self._row_ends
        place = np.floor(x - indents[row]).astype(np.int64)
        return np.asarray(firsts[row] + np.minimum(np.maximum(place, 0), lasts[row]))

    @cached_property
    def _row_ends(self) -> tuple[NDArray[np.float64], Keys, Keys]:
        """(rows,) each: where it begins, the id of its first key, and how many keys follow that."""
        lengths = np.array([len(letters) for letters in self.rows])
        return np.array(self.indents), np.cumsum(lengths) - lengths, lengths - 1


LAYOUTS = {
    layout.name: layout
    for layout in (
        KeyboardLayout("qwerty", ("qwertyuiop", "asdfghjkl", "zxcvbnm"), (0.0, 0.5, 1.5)),
        KeyboardLayout("qwerty-es", ("qwertyuiop", "asdfghjklñ", "zxcvbnm"), (0.0, 0.0, 1.5)),
    )
}


class Moves(NamedTuple):
    """ln of the probabilities of the moves from letter to letter; a tap's density comes in addition."""

    tapped: float
    omitted: float
    transposed: float
    doubled: float
    stray: float  # with its density


@dataclass(frozen=True, kw_only=True)
class TouchModel:
    """How somebody taps on a layout; see the head of this file.

    Raises: InputError where a deviation is not positive, or probabilities leave none for what is meant.
    """

    layout: KeyboardLayout = LAYOUTS["qwerty"]
    deviation_x: float = 0.26
    deviation_y: float = 0.26
    offset_x: float = 0.08
    offset_y: float = 0.08
    omission: float = 0.006
    transposition: float = 0.003
    doubling: float = 0.003
    stray: float = 0.002

    def __post_init__(self) -> None:
        for name in ("deviation_x", "deviation_y", "offset_x", "offset_y"):
            conceivable(name, getattr(self, name))
        for name in ("deviation_x", "deviation_y"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name}={getattr(self, name)} key widths; it must be positive, 0.001 say for none.")
        for name, other in (("omission", "transposition"), ("doubling", "stray")):
            p, q = getattr(self, name), getattr(self, other)
            if not (p >= 0 and q >= 0 and p + q < 1):
                raise InputError(f"{name}={p} and {other}={q} must be probabilities whose sum is below 1.")

    @cached_property
    def means(self) -> Points:
        """(K, 2): where the taps for each key lie on average."""
        return np.asarray(self.layout.centres + np.array([self.offset_x, self.offset_y]))

    @cached_property
    def moves(self) -> Moves:
        """What each move costs."""
        width, height = self.layout.size
        again = math.log1p(-self.doubling - self.stray)  # no more taps after this letter
        return Moves(
            tapped=math.log1p(-self.omission - self.transposition) + again,
            omitted=_ln(self.omission),
            transposed=_ln(self.transposition) + again,
            doubled=_ln(self.doubling),
            stray=_ln(self.stray) - math.log(width * height),
        )

    def taps(self, keys: ArrayLike, random: np.random.Generator) -> Points:
        """(m, 2) the taps of somebody who means these keys (n,); at least one where n >= 1."""
        pressed = np.array(self._pressed(np.asarray(keys, np.int64).tolist(), random), np.int64)
        points = self.means[pressed] + random.standard_normal((len(pressed), 2)) * (self.deviation_x, self.deviation_y)
        strays = pressed == STRAY
        if strays.any():
            points[strays] = random.random((int(strays.sum()), 2)) * self.layout.size
        return points

    def _pressed(self, keys: list[int], random: np.random.Generator) -> list[int]:
        """The keys aimed at one after another, STRAY for none."""
        slips, extras = random.random((2, len(keys))).tolist()
        pressed: list[int] = []
        at, omitted = 0, False
        while at < len(keys):
            last = at + 1 == len(keys)
            if slips[at] < self.omission and not omitted and not (last and not pressed):
                omitted, at = True, at + 1
                continue
            if self.omission <= slips[at] < self.omission + self.transposition and not last:
                pressed.append(keys[at + 1])
                pressed.append(keys[at])
                at += 2
            else:
                pressed.append(keys[at])
                at += 1
            omitted, extra = False, extras[at - 1]
            while extra < self.doubling + self.stray:
                pressed.append(keys[at - 1] if extra < self.doubling else STRAY)
                extra = random.random()
        return pressed

    def log_densities(self, points: ArrayLike) -> NDArray[np.float32]:
        """(m, K) ln of the density of each tap (m, 2) if it was meant for each key, per square key width."""
        taps, means = np.asarray(points, np.float64).reshape(-1, 2), self.means
        x = (taps[:, :1] - means[:, 0]) / self.deviation_x
        y = (taps[:, 1:] - means[:, 1]) / self.deviation_y
        peak = math.log(2 * math.pi * self.deviation_x * self.deviation_y)
        return np.asarray(-0.5 * (x * x + y * y) - peak, np.float32)

    def confusion(self) -> NDArray[np.float64]:
        """(K, K) the probability that a tap meant for one key (row) hits another (column); rows sum to 1.

        Exact: the mass of the Gaussian over the rectangle of each key, outermost keys reaching on without end.
        """
        columns: list[NDArray[np.float64]] = []
        x, y = self.means.T
        for row, (letters, indent) in enumerate(zip(self.layout.rows, self.layout.indents, strict=True)):
            above = _below(row * self.layout.height, y, self.deviation_y, first=row == 0)
            last = row + 1 == len(self.layout.rows)
            until = _below((row + 1) * self.layout.height, y, self.deviation_y, last=last)
            edges = [
                _below(indent + place, x, self.deviation_x, first=place == 0, last=place == len(letters))
                for place in range(len(letters) + 1)
            ]
            columns += [(until - above) * (right - left) for left, right in pairwise(edges)]
        return np.stack(columns, axis=1)


def _below(
    edge: float, means: NDArray[np.float64], deviation: float, *, first: bool = False, last: bool = False
) -> NDArray[np.float64]:
    """The share of each Gaussian below an edge; the first edge is nowhere, and so is the last."""
    if first or last:
        return np.full(len(means), float(last))
    return np.array([0.5 * math.erfc((mean - edge) / (deviation * math.sqrt(2))) for mean in means])


def _ln(probability: float) -> float:
    """Natural logarithm; that of 0 is minus infinity."""
    return math.log(probability) if probability > 0 else -math.inf
