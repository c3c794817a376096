"""Commands run in the tests' own process, which must keep its two workers whatever they ask for."""

import jax
import pytest


@pytest.fixture(scope="session", autouse=True)
def devices() -> list[jax.Device]:
    """JAX's devices, taken before `tacit train --workers 1` can have a say: they are fixed from then on."""
    return jax.local_devices()
