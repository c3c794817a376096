"""What the parameters of the CIFG are, for whatever computes with them; JAX is not loaded."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jax import Array


class CifgParameters(NamedTuple):
    """The parameters, float32. Gates stand in the order input, candidate, output along the 3H axis."""

    embedding: "Array"  # (V, E)
    kernel: "Array"  # (2E, 3H): rows of the word first, rows of the fed-back projection after
    bias: "Array"  # (3H,)
    projection: "Array"  # (H, E)
    output: "Array"  # (E, V), or (E, 0) when tied: the embedding serves both ends
    output_bias: "Array"  # (V,)
