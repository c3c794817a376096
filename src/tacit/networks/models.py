"""The networks of this package by name: one line each. None is loaded, nor JAX, before one is asked for."""

from collections.abc import Mapping

MODELS: Mapping[str, str] = {"cifg": "tacit.networks.cifg.network:Cifg"}  # "module:class"
SHIPPED = tuple(MODELS)  # all that a device runs: a plan could name a class of anybody's otherwise
