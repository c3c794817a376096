"""A simulated typist who types with two models, and what is measured of both."""
