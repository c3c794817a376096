"""Rounds of many devices in one process."""

from collections.abc import Iterator
from functools import cache

import pytest

from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked import messages
from tacit.secure_aggregation.secrets import KeyPair


@pytest.fixture(scope="module")
def computed_once() -> Iterator[None]:
    """What follows from the same bytes is remembered, most of a round's time: everybody checks the same signatures, and
    many rounds begin with the same keys. What fails fails again.
    """
    agreed, chosen = KeyPair.agreed, cache(messages.chosen)

    @cache
    def of_pair(private: bytes, own: bytes, public: bytes, purpose: str, *context: bytes) -> bytes:
        pair = KeyPair(private)
        pair.public = own
        return agreed(pair, public, purpose, *context)

    def remembered(self: KeyPair, public: bytes, purpose: str, *context: bytes) -> bytes:
        return of_pair(self.private, self.public, public, purpose, *context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "check_signature", cache(secrets.check_signature))
        patch.setattr(KeyPair, "agreed", remembered)
        patch.setattr(messages, "chosen", lambda *whose: list(chosen(*whose)))
        yield
