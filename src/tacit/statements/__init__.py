"""What was released, the guarantee that follows, and how people read it and a stranger checks it."""

from tacit.statements.count_facts import DiscoveryFacts, EvaluationFacts
from tacit.statements.ledger import Ledger, NoisedSum
from tacit.statements.local_releases import LocalReports
from tacit.statements.statement import Statement
from tacit.statements.train_facts import TrainingFacts

__all__ = ["DiscoveryFacts", "EvaluationFacts", "Ledger", "LocalReports", "NoisedSum", "Statement", "TrainingFacts"]
