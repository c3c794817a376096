"""ONNX Runtime and one graph of an exported model: how it is opened, and what it says where it refuses one."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tacit.errors import InputError
from tacit.extras import of_extra
from tacit.keyboard.exported import MANIFEST, Exported
from tacit.keyboard.onnx_flow import flow_refused

ELSEWHERE = b"location"  # the key by which a graph names a file beside it; the word is in none of ours
NO_ENTRIES: Mapping[str, str] = MappingProxyType({})


def session_of(
    exported: Exported, name: str, *, threads: int = 1, entries: Mapping[str, str] = NO_ENTRIES, keeps: bool = True
) -> Any:
    """A session of one of its graphs. entries: of its configuration. keeps: memory, from one run of it to the next, so
    that they are faster. Raises: InputError for a graph that this runtime cannot run, or that is not all in its file.
    """
    runtime = of_extra("export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = keeps
    options.log_severity_level = 4  # what it says is raised, too
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    path = exported.file(name)
    if _has(path, ELSEWHERE):
        raise InputError(f"'{path}' takes weights from files that {MANIFEST} has no digest of; export the model again.")
    try:
        refused = flow_refused(path)
    except ValueError as error:
        raise InputError(f"'{path}' is no graph of ONNX ({error}); export the model again.") from error
    if refused is not None:
        raise InputError(f"'{path}' {refused}, and no export of tacit's does; export the model again.")
    try:
        return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except refusals(runtime) as error:
        raise InputError(
            f"ONNX Runtime {runtime.__version__} cannot run '{path}', which is of opset "
            f"{exported.manifest.opset} ({one_line(error)}); install a newer one (pip install --upgrade onnxruntime), "
            "or export the model again."
        ) from error


def refusals(runtime: Any) -> tuple[type[Exception], ...]:
    """What the runtime raises where it refuses a graph; they have no class in common."""
    binding = runtime.capi.onnxruntime_pybind11_state
    return (
        *(binding.Fail, binding.InvalidGraph, binding.InvalidProtobuf),
        *(binding.InvalidArgument, binding.NotImplemented, binding.RuntimeException),
    )


def _has(path: Path, word: bytes) -> bool:
    """Whether a file has these bytes, a part in memory at a time: a phone's first words come with little of it."""
    with path.open("rb") as file:
        seen = b""
        while part := file.read(1 << 16):
            seen = seen[-len(word) :] + part
            if word in seen:
                return True
    return False


def one_line(error: Exception) -> str:
    """What an error says, without its line breaks."""
    return " ".join(str(error).split())
