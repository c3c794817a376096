"""The words that a decoder knows, as a trie of what is pressed for them, in flat arrays for compiled loops.

Nodes are numbered by depth, and within a depth in the order of their prefixes: the children of a node stand side by
side, and each comes after its parent, so that a maximum over all subtries is one pass from the last node to the first.
Several words may be pressed alike (`well`, `we'll`); they share a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, of_type
from tacit.keyboard.touch import KeyboardLayout
from tacit.text.vocabulary import SPECIALS

LONGEST = 64  # letters of a word, and taps

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Lexicon:
    """Words with ids, and the trie of their typed forms; `from_words` makes one."""

    layout: KeyboardLayout
    words: tuple[str, ...]  # all that were given; words[i] has the id first_id + i
    first_id: int
    left_out: int  # of them cannot be typed with this layout, and are never found
    # -- the trie: node 0 is the empty prefix
    keys: Ids  # (N,) the key that leads to each node; -1 for the root
    parents: Ids  # (N,) -1 for the root
    children: Ids  # (N + 1,) the children of n are children[n] .. children[n + 1] - 1
    endings: Ids  # (N + 1,) the words that end at n are ids[endings[n]:endings[n + 1]]
    ids: Ids  # (typable words,) by node
    ends: Ids  # (typable words,) where each of `ids` ends

    @classmethod
    def from_words(cls, words: Sequence[str], layout: KeyboardLayout, *, first_id: int = SPECIALS) -> Self:
        """The words of a vocabulary, in its order: words[i] has the id first_id + i, by default the vocabulary's.

        Raises: InputError where there are no words, a word needs more than LONGEST taps, or most of the words cannot be
        typed with this layout.
        """
        of_type("words", words, list, tuple)
        if not words:
            raise InputError("a lexicon of no words decodes nothing; give at least one word.")
        forms = [layout.typed_form(word) for word in words]
        typable = [place for place, form in enumerate(forms) if form is not None]
        if 2 * len(typable) < len(words):
            unknown = next(word for word, form in zip(words, forms, strict=True) if form is None)
            raise InputError(
                f"only {len(typable):,} of {len(words):,} words can be typed with the layout {layout.name!r} (not "
                f"{unknown!r}, for one); choose a layout of their script, or words of this one."
            )
        typed = [str(forms[place]) for place in typable]
        longest = max(typed, key=len)
        if len(longest) > LONGEST:
            raise InputError(
                f"{longest[:20]!r}... has {len(longest)} letters, and a word may have {LONGEST}; leave it out."
            )
        keys, parents, ends = _trie(typed, layout)
        order = np.argsort(ends, kind="stable")
        nodes = np.arange(len(keys) + 1)
        return cls(
            layout=layout,
            words=tuple(words),
            first_id=first_id,
            left_out=len(words) - len(typable),
            keys=keys,
            parents=parents,
            children=(1 + np.searchsorted(parents[1:], nodes)).astype(np.int32),
            endings=np.searchsorted(ends[order], nodes).astype(np.int32),
            ends=ends[order].astype(np.int32),
            ids=(first_id + np.array(typable)[order]).astype(np.int32),
        )

    def with_words(self, words: Sequence[str]) -> Self:
        """The same and a user's own words, whose ids follow: the caller's log probabilities have places for them.

        Words that are known already keep their ids. Raises: InputError as `from_words` does.
        """
        of_type("words", words, list, tuple)
        known = set(self.words)
        return type(self).from_words(
            [*self.words, *(word for word in dict.fromkeys(words) if word not in known)],
            self.layout,
            first_id=self.first_id,
        )

    @property
    def size(self) -> int:
        """How many log probabilities a decoder needs: one more than the largest id."""
        return self.first_id + len(self.words)

    def word_of(self, id: int) -> str:
        """The word of an id."""
        return self.words[id - self.first_id]


def _trie(typed: Sequence[str], layout: KeyboardLayout) -> tuple[Ids, Ids, NDArray[np.int64]]:
    """(the key of each node, its parent, the node where each typed form ends).

    Sorted forms, one a row: a node begins wherever a row's prefix is not that of the row before it.
    """
    forms, of_form = np.unique(np.array(typed), return_inverse=True)
    letters = forms.view(np.uint32).reshape(len(forms), -1)  # 0 behind the end
    there = letters > 0
    fresh = np.ones(letters.shape, bool)
    fresh[1:] = np.logical_or.accumulate(letters[1:] != letters[:-1], axis=1)
    fresh &= there
    numbered = np.cumsum(fresh.T.reshape(-1)).reshape(fresh.T.shape).T  # depth by depth, from 1: 0 is the root
    before = np.pad(numbered, ((0, 0), (1, 0)))[:, :-1]
    key_of = np.full(int(letters.max()) + 1, -1, np.int32)
    key_of[[ord(letter) for letter in layout.keys if ord(letter) < len(key_of)]] = [
        place for place, letter in enumerate(layout.keys) if ord(letter) < len(key_of)
    ]
    depth_first = fresh.T  # in the order of the numbers
    keys = np.concatenate([[-1], key_of[letters.T[depth_first]]]).astype(np.int32)
    parents = np.concatenate([[-1], before.T[depth_first]]).astype(np.int32)
    ends = numbered[np.arange(len(forms)), there.sum(axis=1) - 1]
    return keys, parents, ends[of_form.reshape(-1)]
