"""The transparency log, and what a run's folder keeps of it."""
