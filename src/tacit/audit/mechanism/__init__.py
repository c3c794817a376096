"""Mechanisms: the worst client of each plays a million runs through the code that training uses, in seconds.

What makes that fast: noise is drawn for each coordinate of a vector alike and by itself, so a vector of a million
coordinates is a million runs. `patterns` finds the rounds in which the client comes, `linear` the one number of all
that is released which tells most of it, `case` is a promise with the code that is to keep it, and `scores` plays it.
"""
