"""The networks of this package by name, one line each, and the names of the files that a model is kept in.

No network is loaded, nor JAX, before one is asked for. They are all that a device runs: a plan could name a class of
anybody's otherwise. Each has `examples`, the settings of small ones, which the contract test holds to everything that
is asked of a network.
"""

MODELS: dict[str, str] = {  # "module:class"
    "cifg": "tacit.networks.cifg.network:Cifg",
    "gru": "tacit.networks.gru:Gru",
}
# Models that were counted, not trained, by name: what makes of a folder's files a `keyboard.suggest.Reader`.
COUNTED: dict[str, str] = {  # "module:function"
    "mixture": "tacit.keyboard.mixture:mixture_reader",
    "ngram": "tacit.networks.ngram.reader:ngram_reader",
}
WEIGHTS, SETTINGS, WORDS, ORIGIN = "model.safetensors", "settings.json", "vocabulary.json", "origin.json"
PROMISE = "promise.json"  # of a model of several runs: their statements, and what they cost together
DEFAULT = "cifg"  # where a recipe names none: the network of papers 1 and 5
