"""Checks of a machine that `tacit doctor` runs, each in a process of its own: what is broken may end it.

Each gives plain values; what does not work raises, and the last line of what was raised is shown.
"""

from typing import Any

from tacit.errors import TacitError
from tacit.process_limits import limit_memory


def machine_code() -> dict[str, Any]:
    """Whether a loop is compiled by numba and runs, and where its machine code is kept."""
    import numpy as np

    from tacit.mechanisms.ziggurat import place

    words, numbers = np.zeros(4, np.uint64), np.empty(4)
    place(words, numbers, *np.empty((2, 4), np.intp))
    if not np.isfinite(numbers).all():
        raise TacitError("a compiled loop gave what is no number.")
    stats = place.stats  # type: ignore[attr-defined]  # numba's
    place_of = stats.cache_path
    if place_of is None:
        return {"kept": "nowhere: let NUMBA_CACHE_DIR name a folder that can be written", "kept_before": False}
    beside = place_of.endswith("__pycache__")
    return {"kept": "beside the code" if beside else "in a folder of its own", "kept_before": bool(stats.cache_hits)}


def noise() -> dict[str, Any]:
    """Whether noise is what it is meant to be (mechanisms/self_test.py)."""
    from tacit.mechanisms.self_test import noise_fault

    if fault := noise_fault():
        raise TacitError(f"{fault}: train nothing private here.")
    return {"cipher": "gives the published vector", "numbers": "are those of the loops interpreted"}


def accelerator() -> dict[str, Any]:
    """What JAX computes on, whether it does, and whether it keeps what it compiles."""
    import jax
    import jax.numpy as jnp

    kinds = [device.device_kind for device in jax.devices()]
    product = jax.jit(lambda matrix: matrix @ matrix)(jnp.eye(64) * 3.0)
    if float(product.sum()) != 64 * 9.0:
        raise TacitError(f"a product of matrices sums to {float(product.sum())} and not to {64 * 9.0}.")
    folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    return {
        "devices": ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds)),
        "compiled_programs": "kept" if folder else "made anew by every process",
    }


def linear_algebra() -> dict[str, Any]:
    """The BLAS that NumPy and SciPy multiply with, and with how many threads."""
    import numpy as np
    import scipy.linalg
    import threadpoolctl

    matrix = np.tri(50)
    solved = scipy.linalg.solve_triangular(matrix, matrix.sum(axis=1), lower=True)
    if not np.allclose(solved, 1.0):
        raise TacitError("a triangular system is solved wrongly.")
    found = [library for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]
    libraries = [f"{each['internal_api']} {each['version']} with {each['num_threads']} threads" for each in found]
    return {"libraries": ", ".join(sorted(libraries))}


def memory_limit() -> dict[str, Any]:
    """Whether the system holds a process to a limit of memory, as `tacit device` gives one to the work of a task."""
    if not limit_memory(1 << 26):
        return {"limit": "not on this system: a device's work may take all memory"}
    try:
        taken = bytearray(1 << 28)
    except MemoryError:
        return {"limit": "is held to"}
    raise TacitError(f"a process got {len(taken):,} bytes, four times its limit; let no device work here.")


CHECKS = {
    "loops compiled by numba": machine_code,
    "noise": noise,
    "JAX": accelerator,
    "BLAS": linear_algebra,
    "limit of memory": memory_limit,
}
