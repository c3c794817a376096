"""New words without seeing anyone's text: each device answers once, at random, and only sums are looked at."""

from tacit.discovery.rounds import Discovery, discover
from tacit.discovery.settings import DiscoverySettings
from tacit.randomizers.local_reports import LocalReportSettings

__all__ = ["Discovery", "DiscoverySettings", "LocalReportSettings", "discover"]
