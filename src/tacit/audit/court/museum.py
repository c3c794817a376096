"""Twelve historic faults, re-made: what an auditor must find, and must not find in the mended versions."""

from tacit.audit.court.accounts import ACCOUNTS
from tacit.audit.court.correlated import CORRELATED
from tacit.audit.court.exhibit import Exhibit
from tacit.audit.court.federations import FEDERATIONS
from tacit.audit.court.own import OWN
from tacit.audit.court.randomizers import RANDOMIZERS

EXHIBITS: tuple[Exhibit, ...] = tuple(
    sorted((*CORRELATED, *ACCOUNTS, *RANDOMIZERS, *FEDERATIONS, *OWN), key=lambda exhibit: exhibit.number)
)
