"""tacit: learning from what people type without seeing it."""

__version__ = "0.1.0"
