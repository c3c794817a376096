"""New words without seeing anyone's text: each device answers once, at random, and only sums are looked at."""

from tacit.discovery.device import Terms
from tacit.discovery.rounds import Discovery, discover
from tacit.discovery.settings import Campaign

__all__ = ["Campaign", "Discovery", "Terms", "discover"]
