"""Names of people as pseudonyms that nobody can take back: an HMAC under a key that exists only during one import.

So two imports give one person different names, and possibly another split; within one import, whatever it reads, a
person is one client.
"""

import hmac
import secrets


class Pseudonyms:
    """The names of one import."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(32)

    def of(self, name: bytes) -> str:
        """What a person is called; the same for the same bytes."""
        return "a" + hmac.digest(self._salt, name, "sha256").hex()[:16]
