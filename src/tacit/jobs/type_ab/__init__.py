"""Two models, one simulated typist, a paired test."""
