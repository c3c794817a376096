"""A model and the caches of one user's own text, mixed once, as a reader: what a device types with after fitting."""

from typing import Any

import numpy as np

from tacit.keyboard.own_text import OwnText
from tacit.keyboard.suggest import Reader, Scores
from tacit.keyboard.user_cache import Mix


class OwnTextReader:
    """See `suggest.Reader`; its scores are logarithms of probabilities. The text stays what it was."""

    def __init__(self, reader: Reader, own: OwnText, mix: Mix) -> None:
        """mix: the weights of both caches of `own`; the model has the rest."""
        self._reader, self._own, self._mix = reader, own, mix

    def begin(self) -> Any:
        """See Reader."""
        return self._reader.begin()

    def step(self, state: Any, token: int) -> tuple[Any, Scores]:
        """See Reader."""
        after, scores = self._reader.step(state, token)
        shares = np.exp(scores - scores.max())
        shares /= shares.sum(dtype=np.float64)
        with np.errstate(divide="ignore"):  # what neither knows has no logarithm
            return after, np.log(self._own.mixed(shares, token, self._mix))
