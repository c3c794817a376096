"""The size of the keyboard's own network and what its parameters are, for whatever computes with them.

JAX is not loaded here: a phone's reader (`cifg_reader`) has none.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tacit.errors import InputError

if TYPE_CHECKING:
    from jax import Array

WIDEST = 2**16  # a hundred times the papers' networks


class CifgParameters(NamedTuple):
    """The parameters, float32. Gates stand in the order input, candidate, output along the 3H axis."""

    embedding: "Array"  # (V, E)
    kernel: "Array"  # (2E, 3H): rows of the word first, rows of the fed-back projection after
    bias: "Array"  # (3H,)
    projection: "Array"  # (H, E)
    output: "Array"  # (E, V), or (E, 0) when tied: the embedding serves both ends
    output_bias: "Array"  # (V,)


@dataclass(frozen=True, kw_only=True)
class CifgSize:
    """The size of a next-word model; the defaults are the papers' (10k words: 2.4 M parameters, tied 1.4 M)."""

    vocabulary: int = 10_000
    embedding: int = 96  # papers 1 and 5
    units: int = 670  # papers 1 and 5
    tied: bool = False  # paper 1's 2.4 M parameters are those of separate embeddings

    def __post_init__(self) -> None:
        for name in ("embedding", "units"):
            if not 1 <= getattr(self, name) <= WIDEST:
                raise InputError(
                    f"model.{name}={getattr(self, name)} must be 1 to {WIDEST:,}; the papers use 96 and 670."
                )
        if self.vocabulary < 5:
            raise InputError(
                f"model.vocabulary={self.vocabulary} must be at least 5: four special tokens and one word."
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each parameter, by the names and in the order of `CifgParameters`."""
        v, e, h = self.vocabulary, self.embedding, self.units
        return dict(
            embedding=(v, e),
            kernel=(2 * e, 3 * h),
            bias=(3 * h,),
            projection=(h, e),
            output=(e, 0 if self.tied else v),
            output_bias=(v,),
        )
