"""What a device's owner gives it, checked: an operator's public key, an enrolment code, a model to train by."""

from pathlib import Path

from tacit.device.own_text import OwnText
from tacit.device.train import Trainer
from tacit.errors import InputError
from tacit.files import PathLike
from tacit.protocol.token_format import CODE


def enrolment_code_in(file: Path) -> str:
    """An enrolment's, from a file: others see what is on a command line. Raises: InputError for a file without one."""
    try:
        code = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise InputError(f"--enrolment-code '{file}' cannot be read ({error}); give a file with the code.") from None
    if not CODE.fullmatch(code):
        raise InputError(f"--enrolment-code '{file}' has no code, which is 20 to 200 characters without spaces.")
    return code


def operator_key_of(said: str) -> str:
    """An Ed25519 public key. Raises: InputError for what is none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        if len(said) != 64:
            raise ValueError
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(said))
    except ValueError:
        raise InputError(f"--operator-key {said!r} is no Ed25519 public key; give its 64 hexadecimal digits.") from None
    return said.lower()


def unpinned(state: Path) -> str:
    """What is said of a state folder that has no operator's key yet."""
    return (
        f"'{state}' has pinned no operator; give --operator-key, the 64 hexadecimal digits that the operator "
        "publishes, once."
    )


def by_onnx(text: OwnText, onnx: PathLike) -> Trainer:
    """What trains by an exported model. Raises: InputError."""
    from tacit.device.train_onnx import ByOnnx  # ONNX Runtime is an extra

    return ByOnnx(text, onnx)
