"""Choosing a strategy: what a mechanism costs for given participations, and the parameters that cost least.

A loss is the error of the prefix sums times the sensitivity: what decides between mechanisms at equal privacy.
NumPy and SciPy in double precision, no accelerator. `catalogue` knows every mechanism by its name and loads a
search when it is asked to design, so this door has no names: taking one would load them all.
"""
