"""What was released, what follows from it, and how people read it and a stranger checks it."""

from tacit.statements.facts import TrainingFacts
from tacit.statements.facts_analytics import DiscoveryFacts, EvaluationFacts
from tacit.statements.ledger import Ledger, NoisedSum
from tacit.statements.local_releases import LocalReports
from tacit.statements.statement import Statement

__all__ = ["DiscoveryFacts", "EvaluationFacts", "Ledger", "LocalReports", "NoisedSum", "Statement", "TrainingFacts"]
