"""A model trained on a device by ONNX Runtime alone: the graph of `networks/onnx/training.py`, and no JAX."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from tacit.errors import InputError
from tacit.extras import of_extra
from tacit.keyboard.exported import TRAIN, Exported
from tacit.keyboard.onnx_session import session_of
from tacit.networks.models import WEIGHTS

FloatArray = NDArray[np.float32]
GIVEN = ("sentences", "learning_rate")  # the inputs that are no parameters


class OnnxTrainer:
    """`train.onnx`: steps of SGD; parameters in, parameters out, and nothing is remembered."""

    def __init__(self, session: Any) -> None:
        """session: of the graph that `networks.onnx.training.training_graph` describes."""
        self._session = session
        self._shapes = {each.name: tuple(each.shape) for each in session.get_inputs() if each.name not in GIVEN}

    @classmethod
    def from_export(cls, exported: Exported, *, threads: int = 1, keeps: bool = True) -> "OnnxTrainer":
        """The trainer of an exported model. keeps: memory between steps. Raises: as `OnnxReader.from_export`."""
        return cls(session_of(exported, TRAIN, threads=threads, keeps=keeps))

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of the parameters, by name, in the order in which a vector of all has them."""
        return self._shapes

    def begin(self, exported: Exported) -> dict[str, FloatArray]:
        """The parameters that were exported, by name. Raises: InputError where they are another network's."""
        try:
            weights = load(exported.read(WEIGHTS))
        except (SafetensorError, KeyError) as error:  # KeyError: numbers that NumPy has not
            raise InputError(
                f"'{exported.folder / WEIGHTS}' holds no weights ({error}); export the model again."
            ) from error
        return self._checked({name: weights[name] for name in self._shapes if name in weights})

    def descend(
        self, parameters: Mapping[str, FloatArray], sentences: NDArray[np.integer[Any]], learning_rate: float
    ) -> tuple[dict[str, FloatArray], float]:
        """The parameters after one step, and the mean loss before it in nats a target.

        sentences: padded, (B, L+1), each BOS, words, EOS, then PAD. Raises: InputError where parameters or ids are not
        those of the network.
        """
        batch = np.asarray(sentences, np.int64)
        if batch.ndim != 2 or batch.shape[0] < 1 or batch.shape[1] < 2:
            raise InputError(
                f"sentences of the shape {batch.shape} are no batch; give (sentences, words + 1) ids, padded with 0."
            )
        fed = {"sentences": batch, "learning_rate": np.array(learning_rate, np.float32), **self._checked(parameters)}
        runtime = of_extra("export", "onnxruntime")
        wrong = InputError(
            f"the ids are {batch.min()} to {batch.max()}, and the model's vocabulary has not all of them; encode the "
            "text with the vocabulary of the same folder."
        )
        if batch.min() < 0:  # ONNX counts them from the end
            raise wrong
        try:
            loss, *after = self._session.run(["loss", *(f"{name}_after" for name in self._shapes)], fed)
        except runtime.capi.onnxruntime_pybind11_state.InvalidArgument as error:
            raise wrong from error
        return dict(zip(self._shapes, after, strict=True)), float(loss)

    def _checked(self, parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        found = {name: tuple(np.shape(value)) for name, value in parameters.items()}
        if found != self._shapes:
            odd = next(name for name in {**self._shapes, **found} if found.get(name) != self._shapes.get(name))
            raise InputError(
                f"the parameter {odd!r} has the shape {found.get(odd)} where the graph has {self._shapes.get(odd)}; "
                "give those of model.safetensors in the same folder."
            )
        return {name: np.ascontiguousarray(parameters[name], np.float32) for name in self._shapes}
