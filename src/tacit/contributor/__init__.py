"""What a decryptor adds to sums, so that no server knows their noise: of its own, as the signed plan of a run says.

It believes nothing but the plan. Strategy, scale and margin follow from that as a device's price does, and a round of
any others gets no noise.
"""

__all__: list[str] = []
