"""Documents by docs/openapi.json alone: what a program checks that has no other description of them."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

TYPES: Any = {"object": dict, "array": list, "string": str, "integer": int, "number": int | float, "boolean": bool}


class Refused(Exception):
    """What the page has a device refuse."""


def refuse_unless(holds: bool, why: str) -> None:
    if not holds:
        raise Refused(why)


class Documents:
    """What docs/openapi.json says of documents."""

    def __init__(self, page: Path) -> None:
        self._schemas = json.loads(page.read_text("utf-8"))["components"]["schemas"]

    def read(self, name: str, text: str) -> dict[str, Any]:
        """The document in a text. Raises: Refused."""

        def number(kind: Callable[[str], float]) -> Callable[[str], float]:
            return lambda said: kind(said) if len(said) <= 300 else math.nan

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            refuse_unless(len(dict(pairs)) == len(pairs), "a key twice")
            return dict(pairs)

        try:
            found = json.loads(text, object_pairs_hook=once, parse_int=number(int), parse_float=number(float))
        except (ValueError, RecursionError) as error:
            raise Refused(f"no JSON: {error}") from error
        self._check(found, self._schemas[name], name)
        return dict(found)

    def _check(self, value: Any, schema: Any, where: str) -> None:
        if "$ref" in schema:
            return self._check(value, self._schemas[schema["$ref"].rsplit("/", 1)[1]], where)
        if "discriminator" in schema:
            of = schema["discriminator"]
            kind = value.get(of["propertyName"]) if isinstance(value, dict) else None
            refuse_unless(kind in of["mapping"], f"{where}: {kind!r} is unknown")
            return self._check(value, {"$ref": of["mapping"][kind]}, where)
        if "anyOf" in schema:  # null, or something
            options = [each for each in schema["anyOf"] if each != {"type": "null"}]
            refuse_unless(value is not None or len(options) < len(schema["anyOf"]), f"{where} is null")
            return None if value is None else self._check(value, options[0], where)
        of_type = isinstance(value, TYPES[schema["type"]]) and isinstance(value, bool) is (schema["type"] == "boolean")
        refuse_unless(of_type, f"{where} is no {schema['type']}")
        refuse_unless(value == schema.get("const", value) and value in schema.get("enum", [value]), f"{where}: {value}")
        if isinstance(value, int | float):
            within = schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
            inside = schema.get("exclusiveMinimum", -math.inf) < value < schema.get("exclusiveMaximum", math.inf)
            refuse_unless(math.isfinite(value) and within and inside, f"{where} is out of bounds")
        if isinstance(value, str):
            refuse_unless(re.fullmatch(schema.get("pattern", "(?s:.*)"), value) is not None, f"{where} is malformed")
        if isinstance(value, str | list):
            kind = "Length" if isinstance(value, str) else "Items"
            least, most = schema.get(f"min{kind}", 0), schema.get(f"max{kind}", math.inf)
            refuse_unless(least <= len(value) <= most, f"{where} is too long or too short")
        if isinstance(value, list):
            for each in value:
                self._check(each, schema["items"], where)
        if isinstance(value, dict):
            # No key came after version 2 yet: whatever is named is unknown, or may not be named.
            refuse_unless(not value.get("critical"), f"{where}: {value.get('critical')} is critical and unknown")
            missing = set(schema.get("required", ())) - set(value)
            refuse_unless(not missing, f"{where}: {missing} is missing")
            for key in set(value) & set(schema.get("properties", ())):
                self._check(value[key], schema["properties"][key], f"{where}.{key}")
