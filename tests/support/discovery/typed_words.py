"""300 made-up clients with words to discover, and the discovery that they are asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.jobs.discover.job import discover
from tacit.jobs.discover.result import DiscoveryResult
from tacit.text.alphabet import Alphabet
from tacit.text.vocabulary import Provenance, Vocabulary

KNOWN = Vocabulary(words=("the", "of"), provenance=Provenance(kind="public", description="two words"))
SETTINGS = DiscoverySettings(
    reports=LocalReportSettings(local_epsilon=6.0),
    users_per_layer=3000,
    prefixes=40,
    depth=7,
    alphabet=Alphabet("abcdefghijklmnopqrstuvwxyz"),
    counting_users=3000,
    resample_users=True,
    seed=1,
)


def typed() -> dict[str, str]:
    """300 made-up clients: everybody types `the`, many `covid`, some `selfie`; one types `año` and a long word."""
    generator = np.random.default_rng(0)
    texts = {}
    for client in range(300):
        words = ["the"] * 5 + ["covid"] * (client % 2) + ["selfie"] * (client % 5 == 0) + ["año"] * (client == 0)
        texts[f"c{client:03d}"] = " ".join(generator.permutation(words)) + " incomprehensible" * (client == 1)
    return texts


def write_clients(folder: Path) -> Path:
    """The folder with the clients as typed.parquet and the vocabulary that their devices have."""
    names, texts = zip(*typed().items(), strict=True)
    pq.write_table(pa.table({"client_id": names, "text": texts}), folder / "typed.parquet")
    KNOWN.save(folder / "vocabulary.json")
    return folder


def asked(clients: Path, out: Path, settings: DiscoverySettings = SETTINGS, **changes: Any) -> DiscoveryResult:
    data, vocabulary = changes.pop("data", clients / "typed.parquet"), changes.pop("vocabulary", KNOWN)
    return discover(data, vocabulary, out, settings, **changes)
