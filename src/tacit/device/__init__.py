"""The device: it comes by itself, decides for itself, and keeps its own record of what it gave.

`device.py` is the loop; `eligibility.py` says whether it may work now, `policy.py` what its owner accepts, `price.py`
what a plan promises by its own numbers, `separation.py` when it may take part again, `record.py` what it remembers,
`transport.py` how it speaks to a server that it does not trust, and `training.py` what it computes.
"""
