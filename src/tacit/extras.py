"""Packages that few need: which extra brings each, and how their absence is said.

`pip install tacit` leaves them out; `pip install 'tacit[NAME]'` brings those of an extra. Whoever uses one asks for it
here, at the moment of its use.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

from tacit.errors import InputError


class Extra(NamedTuple):
    """What `pip install 'tacit[NAME]'` brings."""

    module: str
    """What is imported of it."""
    package: str
    """As package indexes call it."""
    use: str
    """What needs it, as people would say it."""


EXTRAS: Mapping[str, Extra] = MappingProxyType(
    {
        "amplification": Extra("dp_accounting", "dp-accounting", "`tacit account amplified`"),
        "cluster": Extra("ray", "Ray", "--cluster"),
        "deployment": Extra("starlette", "Starlette", "`tacit view`, a server of real devices, or a device"),
        "export": Extra("onnxruntime", "onnxruntime", "a model as ONNX"),
        "gpu": Extra("jax_cuda12_plugin", "JAX's plugin for CUDA 12", "training on an NVIDIA GPU"),
        "mlflow": Extra("mlflow", "mlflow-skinny", "a log for MLflow"),
        "pandas": Extra("pandas", "pandas", "a table of pandas"),
    }
)


def of_extra(name: str, module: str | None = None) -> Any:
    """The module that the extra brings, or another that it brings beside, which its package is called by.

    Raises: InputError where it is not installed, with what brings it.
    """
    extra = EXTRAS[name] if module is None else EXTRAS[name]._replace(module=module, package=module)
    try:
        return import_module(extra.module)
    except ModuleNotFoundError as error:
        if error.name != extra.module:
            raise  # it is there, and lacks something itself
        raise InputError(
            f"{extra.use} needs {extra.package}, which is not installed; `pip install 'tacit[{name}]'` does."
        ) from error


class _WhenUsed:
    """Stands for a module until something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def when_used(module: str) -> Any:
    """A module that is loaded by its first use: one that takes a tenth of a second, and most commands do without."""
    return _WhenUsed(module)


def has_extra(name: str) -> bool:
    """Whether what the extra brings is installed; it is looked for and not loaded."""
    return find_spec(EXTRAS[name].module) is not None
