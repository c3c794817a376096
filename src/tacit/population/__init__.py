"""The phones: their text, and when they come.

A Source gives clients one at a time, `build_cache` tokenises each once, and a Cache is what everybody reads:
memory-mapped word ids, numbered clients, splits by client. `cohorts.py` draws who takes part in a round.
"""

from tacit.population.cache import Cache
from tacit.population.clients import ClientText, Source, split_of
from tacit.population.importing import ImportProgress, build_cache
from tacit.population.manifest import Manifest, VocabularyRecord
from tacit.population.sources import open_source

__all__ = [
    "Cache",
    "ClientText",
    "ImportProgress",
    "Manifest",
    "Source",
    "VocabularyRecord",
    "build_cache",
    "open_source",
    "split_of",
]
