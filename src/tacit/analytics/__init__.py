"""New words without seeing anyone's text: each device answers once, at random, and only sums are looked at.

`randomizers.py` is what a device runs and what the sum of its answers estimates; `contributions.py` is what it answers;
`trie.py` grows prefixes from the votes, layer by layer; `discovery.py` is the campaign, from nothing to counted words.
"""

from tacit.analytics.campaign import Campaign
from tacit.analytics.contributions import Terms
from tacit.analytics.discovery import Discovery, discover
from tacit.analytics.projective_geometry import ProjectiveGeometryResponse
from tacit.analytics.randomizers import KaryRandomizedResponse, Randomizer, SubsetSelection, device_generator
from tacit.privacy.anonymity import Anonymity

__all__ = [
    "Anonymity",
    "Campaign",
    "Discovery",
    "KaryRandomizedResponse",
    "ProjectiveGeometryResponse",
    "Randomizer",
    "SubsetSelection",
    "Terms",
    "device_generator",
    "discover",
]
