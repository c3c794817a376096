"""The device: it checks in by itself, decides for itself, and keeps its own record of what it sent.

`session.py` is a turn without I/O, which `device.py` drives over the network (`transport.py`) again and again.
`eligibility.py` says whether it may work now, `policy.py` what its owner accepts, `separation.py` when it may take part
again, `record.py` what it remembers. A kind of tasks is a `TaskHandler` (`train.py`, `discover.py`, `count.py`): what
its plans cost by their own numbers, and what is reported.
"""
