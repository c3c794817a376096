"""Masks that cancel in the sum (Bell et al. 2020): several messages a client."""
