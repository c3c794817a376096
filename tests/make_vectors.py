"""The vectors of the protocol, `tests/vectors/*.json`: `python -m tests.make_vectors` makes them again.

They are for whoever writes another device or server: each case has what goes in, what comes out, and the `rule` of the
page that says so. The same bytes come of every run. `tests/protocol/test_vectors.py` reads them.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.vectors import (
    documents,
    encodings,
    mutants,
    prices,
    randomizers,
    reports,
    sealed,
    signed,
    tokens,
    turns,
)

PLACE = Path(__file__).parent / "vectors"
MOST_BYTES = 2 << 20  # of all files together
FILES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "documents": documents.file,
    "signatures": signed.signatures_file,
    "log": signed.log_file,
    "rotation": signed.rotation_file,
    "tokens": tokens.tokens_file,
    "prices": prices.file,
    "reports": reports.file,
    "encodings": encodings.file,
    "sealed": sealed.file,
    "randomizers": randomizers.file,
    "turns": turns.file,
    "mutants": mutants.file,
}


def text_of(name: str) -> str:
    """The content of a file of vectors: a line for each case, and for each entry of what they share."""
    parts = (f" {_line(key)}: {_lines(value)}" for key, value in FILES[name]().items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {_line(each)}" for each in value) + "\n ]"
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"  {_line(key)}: {_line(each)}" for key, each in value.items()) + "\n }"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def main() -> None:
    PLACE.mkdir(exist_ok=True)
    for name in FILES:
        (PLACE / f"{name}.json").write_text(text_of(name), encoding="ascii")


if __name__ == "__main__":
    main()
