"""Clients' text: every source gives clients one at a time, and a cache of it is tokenised once and mapped for ever."""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.data.cache import Cache
    from tacit.data.clients import ClientText, Source
    from tacit.data.importing import build_cache
    from tacit.data.in_memory import TableOf, TextsOf
    from tacit.data.manifest import CacheManifest, VocabularyRecord
    from tacit.data.sources import open_source
    from tacit.data.vocabulary_choice import VocabularyChoice
else:
    __getattr__ = late(
        __name__,
        {
            "Cache": "cache",
            "ClientText": "clients",
            "CacheManifest": "manifest",
            "Source": "clients",
            "TableOf": "in_memory",
            "TextsOf": "in_memory",
            "VocabularyChoice": "vocabulary_choice",
            "VocabularyRecord": "manifest",
            "build_cache": "importing",
            "open_source": "sources",
        },
    )

__all__ = [
    "Cache",
    "CacheManifest",
    "ClientText",
    "Source",
    "TableOf",
    "TextsOf",
    "VocabularyChoice",
    "VocabularyRecord",
    "build_cache",
    "open_source",
]
