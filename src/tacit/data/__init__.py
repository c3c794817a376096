"""Clients' text: every source gives clients one at a time, and a cache of it is tokenised once and mapped for ever."""

from tacit.data.cache import Cache
from tacit.data.clients import ClientText, Source, split_of
from tacit.data.importing import ImportProgress, build_cache
from tacit.data.manifest import Manifest, VocabularyRecord
from tacit.data.sources import open_source

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
