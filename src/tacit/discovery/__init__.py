"""New words without seeing anyone's text: each device answers once, at random, and only sums are looked at."""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.discovery.rounds import Discovery, discover
    from tacit.discovery.settings import DiscoverySettings
else:
    __getattr__ = late(__name__, {"Discovery": "rounds", "DiscoverySettings": "settings", "discover": "rounds"})

__all__ = ["Discovery", "DiscoverySettings", "discover"]
