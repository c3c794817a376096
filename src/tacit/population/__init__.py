"""The devices: their text, and when they come.

A Source gives clients one at a time, `build_cache` tokenises each once, and a Cache is what everybody reads:
memory-mapped word ids, numbered clients, splits by client. `cohorts.py` draws who takes part in a round.
"""
