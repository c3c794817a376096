"""What `tacit tune` left for `tacit strategy`: the noise that the trials bore, a learning rate, a clip norm."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError
from tacit.planning.scenario import Record

FORMAT = "tacit tuning 1"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The setting that a tuning chose. `price` is what the trials cost in privacy, in the words of the tuning."""

    folder: Path
    server_learning_rate: float
    clip_norm: float
    report_goal: int
    noise_multiplier: float
    price: str

    @classmethod
    def read(cls, folder: Path) -> "Tuned":
        """From the folder's tuning.json; InputError where there is none, or where nothing was chosen."""
        path = folder / "tuning.json"
        try:
            record: Any = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"there is no '{path}'; `tacit tune RECIPE --out {folder}` writes it.") from None
        except ValueError as error:
            raise InputError(f"'{path}' is not JSON ({error}); tune again.") from error
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise InputError(f"'{path}' is not of the format {FORMAT!r}; use the version that wrote it.")
        if record.get("chosen") is None:
            raise InputError(f"'{path}' chose nothing, because every trial failed; tune again with other settings.")
        try:
            return cls(
                folder=folder,
                server_learning_rate=_above_zero(record["chosen"]["server_learning_rate"]),
                clip_norm=_above_zero(record["chosen"]["clip_norm"]),
                report_goal=int(_above_zero(record["trial_report_goal"])),
                noise_multiplier=float(record["trial_noise_multiplier"]),
                price=str(record["privacy_of_tuning"]["words"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"'{path}' lacks or misnames a value ({error}); use the version that wrote it.") from error

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {
            "tuning": str(self.folder),
            "server_learning_rate": self.server_learning_rate,
            "clip_norm": self.clip_norm,
            "privacy_of_tuning": self.price,
        }


def _above_zero(value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{value!r} is not above 0")
    return number
