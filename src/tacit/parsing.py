"""TOML and JSON that others wrote, parsed within bounds: nesting, digits, keys, the parts of a key, and bytes.

Python's own parsers take whatever comes: a dotted key of 60 kB costs tomllib 3.7 GB, a number of 5,000 digits and
10,000 lists in one another are errors of their own kinds. Here each is a ValueError that says what is too much, before
its memory is spent. Nothing else in tacit calls those parsers.
"""

import json
import math
import re
from typing import Any

MOST_DEPTH = 64  # lists and tables in one another; ours have at most ten
MOST_DIGITS = 300  # in a row: any such number is within the range of real ones, so that nothing overflows later
MOST_PARTS = 32  # of a dotted key, whose cost grows with their square
MOST_KEYS = 100_000  # of a text in TOML, whose parser is slow
MOST_KEYS_OF_JSON = 5_000_000
MOST_TOML = 1 << 22  # bytes
MOST_JSON = 1 << 29  # bytes; the matrix of 4,096 rounds has half of them

# What of TOML counts: strings and comments as a whole, which tomllib reads likewise, and the marks between them.
_STRINGS = (
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}',
    r"'''(?:[^']++|'(?!''))*+'{3,5}",
    r'"(?:[^"\\\n]++|\\.)*+"',
    r"'[^'\n]*+'",
)
_NUMBER = "0[xob][0-9A-Fa-f_]++|[0-9_]++"
_TOKENS = re.compile(rf"(?P<skipped>#[^\n]*+|{'|'.join(_STRINGS)})|{_NUMBER}|[\[\]{{}}=.,\n]", re.DOTALL)


def parsed_toml(text: str) -> dict[str, Any]:
    """The table of a text in TOML. Raises: ValueError for what is none, and for more of anything than is meant."""
    _check_bytes(text, MOST_TOML)
    depth = keys = parts = 0
    for found in _TOKENS.finditer(text):
        token = found[0]
        if found["skipped"] is not None:
            continue
        if token == ".":
            parts += 1
            if parts >= MOST_PARTS:
                raise ValueError(f"a dotted key has more than {MOST_PARTS} parts; write tables in place of the points")
        elif token[0] in "0123456789_":
            _check_digits(token)
        else:
            parts = 0
            depth += (token in "[{") - (token in "]}")
            keys += token == "=" or (token == "[" and depth == 1)
            if depth > MOST_DEPTH:
                raise ValueError(f"its lists and tables are nested deeper than {MOST_DEPTH}; write them side by side")
            if keys > MOST_KEYS:
                raise ValueError(f"it has more than {MOST_KEYS:,} keys; give fewer")
    import tomllib  # what reads JSON alone starts without it

    return tomllib.loads(text)


def parsed_json(text: str | bytes) -> Any:
    """The value of a text in JSON, in UTF-8. Raises: ValueError for what is none, and for more than is meant."""
    return _json(text, _PLAIN)


def strict_json(text: str | bytes) -> Any:
    """The value of a JSON text that says it once and in numbers: what two programs cannot read differently.

    Raises: ValueError for a key that an object has twice, a number that is not finite (1e999, NaN), and as
    `parsed_json`.
    """
    return _json(text, _STRICT)


def _json(text: str | bytes, decoders: "_Decoders") -> Any:
    _check_bytes(text, MOST_JSON)
    said = text if isinstance(text, str) else text.decode()
    too_deep = ValueError(f"its objects are nested too deep, beyond {MOST_DEPTH}; write them side by side")
    try:
        found = (decoders.counting if _has_long_number(said) else decoders.any_digits).decode(said)
    except RecursionError:
        raise too_deep from None
    # Each is a bound on what is meant, so that most texts need no look at their values.
    many_keys = len(said) > MOST_KEYS_OF_JSON and said.count(":") > MOST_KEYS_OF_JSON
    if said.count("[") + said.count("{") > MOST_DEPTH or many_keys:
        keys, level = 0, [found]
        for _ in range(MOST_DEPTH + 1):
            keys += sum(len(each) for each in level if isinstance(each, dict))
            level = [inner for each in level for inner in _inside(each)]
        if keys > MOST_KEYS_OF_JSON:
            raise ValueError(f"it has {keys:,} keys, more than {MOST_KEYS_OF_JSON:,}; give fewer")
        if level:
            raise too_deep
    return found


def _has_long_number(said: str) -> bool:
    """Whether more than MOST_DIGITS digits follow each other, in a number or in a string: most texts have no such run,
    which would have a digit at one of few places.
    """
    for at in range(MOST_DIGITS, len(said), MOST_DIGITS + 1):
        if "0" <= said[at] <= "9" and _LONG.search(said, max(0, at - MOST_DIGITS), at + MOST_DIGITS + 1):
            return True
    return False


def _inside(value: Any) -> list[Any]:
    """The lists and objects that one holds; of any other value none."""
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for each in held if isinstance(each, dict | list)]


def _whole(written: str) -> int:
    _check_digits(written)
    return int(written)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"an object has the key {twice!r} twice")
    return found


def _finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written[:40]} is no finite number")
    return value


def _check_digits(written: str) -> None:
    if len(written) > MOST_DIGITS:
        raise ValueError(f"it has a number of {len(written):,} digits, and none of more than {MOST_DIGITS} is meant")


def _check_bytes(text: str | bytes, most: int) -> None:
    if len(text) > most:
        raise ValueError(f"it has {len(text):,} bytes, more than the {most:,} that are read; give less")


class _Decoders:
    """Made once, for a check-in costs less than a decoder: one that looks at the digits of every number, and one that
    need not.
    """

    def __init__(self, **hooks: Any) -> None:
        self.any_digits, self.counting = json.JSONDecoder(**hooks), json.JSONDecoder(parse_int=_whole, **hooks)


_LONG = re.compile(rf"[0-9]{{{MOST_DIGITS + 1}}}")
_PLAIN = _Decoders()
_STRICT = _Decoders(object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite)
