"""Secure aggregation: a server learns the sum of many vectors modulo 2^b, and nothing else of any of them.

`wire` is how a message becomes bytes, `secrets` the cryptography that others wrote, `shares` Shamir's secret sharing.
Sums of one message from each client, opened by keepers, rest on `lattice`: `ring` is its arithmetic, `slots` puts
coordinates into coefficients.
"""

from tacit.secure_aggregation.secrets import Identity
from tacit.secure_aggregation.wire import Message

__all__ = ["Identity", "Message"]
