"""Doors that open when somebody goes in: a room's `__init__` names what it offers, and loads a name with its first use.

Whoever imports one file of a room, a phone say, does not get all others with it.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def late(room: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A room's `__getattr__` (PEP 562). room: its dotted name; homes: the file of the room that each name is in."""

    def name_of(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        value = getattr(importlib.import_module(f"{room}.{home}"), name)
        setattr(sys.modules[room], name, value)
        return value

    return name_of
