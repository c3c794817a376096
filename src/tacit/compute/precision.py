"""Which precision a processor computes in: bfloat16 where it has units for it, float32 elsewhere."""

import logging
from functools import cache
from pathlib import Path
from typing import Literal

Precision = Literal["float32", "bfloat16"]  # of the operands of products; parameters and sums are float32 always
# What JAX calls products of operands rounded to bfloat16 whose sums are float32. Its "bfloat16" is another thing: the
# fastest products that there are, which on NVIDIA's are those of TF32 (github.com/jax-ml/jax/issues/39869).
BFLOAT16 = "BF16_BF16_F32"
# What Linux calls units that multiply bfloat16: XLA uses either kind, and without one computes in float32 anyway.
UNITS = frozenset({"amx_bf16", "avx512_bf16"})


@cache
def usable_precision(requested: Precision) -> Precision:
    """The requested precision where this machine's processors have units for it, else float32, with one warning.

    It changes a run's result (0.3% of an update), so a run records this precision, not the requested one.
    """
    if requested == "float32" or has_bfloat16_units():
        return requested
    logging.getLogger(__name__).warning(
        "precision=bfloat16 was asked for, but this processor has neither of %s; float32 is used.",
        " and ".join(sorted(UNITS)),
    )
    return "float32"


def has_bfloat16_units() -> bool:
    return not UNITS.isdisjoint(processor_features())


def processor_features(listing: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The features that Linux lists of the first processor; empty elsewhere."""
    try:
        lines = listing.read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    flags = (line.partition(":")[2] for line in lines if line.startswith("flags"))
    return frozenset(next(flags, "").split())
