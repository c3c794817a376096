"""What every test shares: JAX on the CPU, reproducible properties, and text that only some machines have."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"  # before anything imports JAX; the same numbers on every machine
os.environ["JAX_NUM_CPU_DEVICES"] = "2"  # two workers, even on one core
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"  # a worker is one thread, as in `tacit train`
os.environ.setdefault("NO_COLOR", "1")  # what the command prints is compared as plain text

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"  # papers, reference tables and corpora beside the checkout, if any

# Derandomized: a red run is red for everybody. No deadline: two busy cores are slow, not wrong.
settings.register_profile(
    "tacit", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tacit")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of corpora and reference tables; a test that asks for it is skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the folder {SHARED.name}/ beside the checkout")
    return SHARED
