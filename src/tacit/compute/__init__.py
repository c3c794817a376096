"""Processors: how many (`Hardware`, `cores.py`), in how many digits (`precision.py`), how long (`profile.py`).

`Hardware` loads no JAX, so that a command may name it before it computes anything.
"""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.compute.hardware import Hardware
else:
    __getattr__ = late(__name__, {"Hardware": "hardware"})

__all__ = ["Hardware"]
