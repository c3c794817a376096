"""Processors: how many, which, how long."""
