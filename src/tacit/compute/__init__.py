"""Processors: how many (`Hardware`, `cores.py`), in how many digits (`precision.py`), how long (`profile.py`).

`Hardware` loads no JAX, so that a command may name it before it computes anything.
"""

from tacit.compute.hardware import Hardware

__all__ = ["Hardware"]
