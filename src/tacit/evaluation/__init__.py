"""Does it help a user: accuracy on clients that were never trained on (`accuracy.py`), a trigram to hold it against
(`trigram.py`), a model of one's own (`personalization.py`), and what of it is released (`release.py`).

The door holds no names: what counts histograms and intervals needs none of JAX, which the networks load.
"""
