"""Secure aggregation: a server learns the sum of many vectors modulo 2^b, and nothing else of any of them.

`encode` makes such a vector of an update, and `decode` the sum of updates of their sum; `packing` is how few bytes it
takes. `wire` is how a message becomes bytes, `secrets` the cryptography that others wrote, `shares` Shamir's secret
sharing. In the masked protocol (`masked.client`, `masked.server`; `masked.graph` chooses the pairs) masks of pairs
cancel in the sum; `simulate` runs it in memory, with whatever goes wrong on the way. Sums of one message from each
client (`one_message.client`, `one_message.server`), opened by decryptors (`one_message.decryptor`), rest on `lattice`:
`ring` is its arithmetic, `slots` puts coordinates into coefficients, `ring_inverse` and `opened_slots` take them out
again; `one_message.simulation` runs them in memory.
"""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.secure_aggregation.decoding import decode
    from tacit.secure_aggregation.encoding import encode
    from tacit.secure_aggregation.secrets import Identity
    from tacit.secure_aggregation.wire import Message
else:
    __getattr__ = late(__name__, {"Identity": "secrets", "Message": "wire", "decode": "decoding", "encode": "encoding"})

__all__ = ["Identity", "Message", "decode", "encode"]
