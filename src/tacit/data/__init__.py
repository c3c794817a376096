"""Clients' text: every source gives clients one at a time, and a cache of it is tokenised once and mapped for ever."""

from tacit.data.cache import Cache
from tacit.data.clients import ClientText, Source
from tacit.data.importing import build_cache
from tacit.data.in_memory import TableOf, TextsOf
from tacit.data.manifest import Manifest, VocabularyRecord
from tacit.data.sources import open_source
from tacit.data.vocabulary_choice import VocabularyChoice

__all__ = [
    "Cache",
    "ClientText",
    "Manifest",
    "Source",
    "TableOf",
    "TextsOf",
    "VocabularyChoice",
    "VocabularyRecord",
    "build_cache",
    "open_source",
]
