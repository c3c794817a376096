"""What was released, what follows from it, and how people read it and a stranger checks it."""

from tacit.statements.ledger import Ledger, RoundRelease
from tacit.statements.statement import Statement, StatementFacts

__all__ = ["Ledger", "RoundRelease", "Statement", "StatementFacts"]
