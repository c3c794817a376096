"""What was released, the guarantee that follows, and how people read it and a stranger checks it."""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.statements.count_facts import DiscoveryFacts, EvaluationFacts
    from tacit.statements.ledger import Ledger, NoisedSum
    from tacit.statements.local_releases import LocalReports
    from tacit.statements.statement import Statement
    from tacit.statements.train_facts import TrainingFacts
else:
    __getattr__ = late(
        __name__,
        {
            "DiscoveryFacts": "count_facts",
            "EvaluationFacts": "count_facts",
            "Ledger": "ledger",
            "LocalReports": "local_releases",
            "NoisedSum": "ledger",
            "Statement": "statement",
            "TrainingFacts": "train_facts",
        },
    )

__all__ = ["DiscoveryFacts", "EvaluationFacts", "Ledger", "LocalReports", "NoisedSum", "Statement", "TrainingFacts"]
