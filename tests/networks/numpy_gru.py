"""The slow, obvious twin of `tacit.networks.gru`: one sentence, one word at a time, float64, every gate by itself.

Notation of one word: x its embedding, p the projection fed back, s the state; u, r the update and the reset gate, c the
candidate.
"""

from typing import Any

import numpy as np


def sigmoid(z: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-z))


def logits(weights: dict[str, Any], ids: Any) -> Any:
    """(L, V) scores after each word of a sentence; without an `output` the input embedding serves both ends."""
    w = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    units, width = w["projection"].shape
    of_word = [w["kernel"][:, at : at + units] for at in range(0, 3 * units, units)]
    of_past = [w["feedback"][:, at : at + units] for at in range(0, 3 * units, units)]
    b, d = np.split(w["bias"], 3), np.split(w["feedback_bias"], 3)
    table = w["output"].T if "output" in w else w["embedding"]
    s, p, scores = np.zeros(units), np.zeros(width), []
    for id in ids:
        x = w["embedding"][id]
        u = sigmoid(x @ of_word[0] + b[0] + p @ of_past[0] + d[0])
        r = sigmoid(x @ of_word[1] + b[1] + p @ of_past[1] + d[1])
        c = np.tanh(x @ of_word[2] + b[2] + r * (p @ of_past[2] + d[2]))
        s = (1.0 - u) * s + u * c
        p = s @ w["projection"]
        scores.append(table @ p + w["output_bias"])
    return np.array(scores)
