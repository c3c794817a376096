"""The protocol for programs: an OpenAPI 3.1 document, whose schemas are those of `messages.py`."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from tacit.protocol.messages import (
    VERSION,
    Answer,
    BlindSignatures,
    CheckIn,
    KeyRotation,
    Plan,
    Problem,
    Receipt,
    RoundTask,
    ShownLog,
    SignedKeyRotation,
    SignedPlan,
    TokenKey,
    TokenRequest,
    TreeHead,
)
from tacit.protocol.problem_kinds import KINDS
from tacit.server.http.problems import MEDIA_TYPE

REFERENCE = "#/components/schemas/{model}"
Json = dict[str, Any]
TEXT: Json = {"text/plain": {"schema": {"type": "string"}}}
NAMED = ("not-found", "busy")  # what goes wrong where something is fetched by its name
BODY = ("encoding", "too-slow", "length", "too-large", "busy")  # where a body is sent
PAGES = ("origin", "misdirected")  # to pages of browsers, on every path
ADMINISTRATORS = ("credential", "forbidden", "busy")
OCTETS: Json = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def document() -> Json:
    """The whole document; docs/openapi.json is it."""
    documents: list[type[BaseModel]] = [CheckIn, SignedPlan, SignedKeyRotation, Problem, ShownLog]
    documents += [TokenRequest, BlindSignatures]
    documents += [Plan, RoundTask, Receipt, TreeHead, KeyRotation, TokenKey]  # the texts of what is signed
    answers = TypeAdapter(Answer).json_schema(ref_template=REFERENCE, mode="validation")
    schemas: Json = answers.pop("$defs")
    _, others = models_json_schema([(each, "validation") for each in documents], ref_template=REFERENCE)
    schemas = {**others["$defs"], **schemas, "Answer": answers}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tacit",
            "version": str(VERSION),
            "description": "Devices check in, fetch a model, report once and get a receipt. docs/protocol.md specifies "
            "what these documents mean, and what is signed of them.",
        },
        "paths": _paths(),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "assignment": {"type": "http", "scheme": "bearer", "description": "the assignment's secret"},
                "administrator": {"type": "http", "scheme": "bearer", "description": "the administrator's token"},
            },
        },
    }


def _paths() -> Json:
    ranged = [_header("Range", "one range of bytes", required=False)]
    administrators: Json = {"security": [{"administrator": []}]}
    return {
        "/v1/check-in": {
            "post": _operation("Check in", _json("Answer"), ["malformed", "version", "token", *BODY])
            | {"requestBody": {"required": True, "content": _json("CheckIn")}}
        },
        **_of_reports(),
        "/v1/models/{sha256}": {
            "parameters": [_in_path("sha256", "^[0-9a-f]{64}$"), *ranged],
            "get": _operation("Fetch a model", OCTETS, ["range", *NAMED], also={"206": OCTETS, "304": None}),
        },
        "/v1/plans/{sha256}": {
            "parameters": [_in_path("sha256", "^[0-9a-f]{64}$")],
            "get": _operation("Fetch a run's signed plan", _signed("Plan", "SignedPlan"), NAMED),
        },
        **_of_log_and_tokens(),
        "/v1/key": {"get": _operation("The operator's public key, for people", _object("operator_key"), [])},
        "/v1/key/hand-over": {
            "get": _operation(
                "To which key the operator changed", _signed("KeyRotation", "SignedKeyRotation"), ["not-found"]
            )
        },
        "/v1/openapi.json": {"get": _operation("This document", _object(), [])},
        "/healthz": {"get": _operation("Whether this worker can work", _object("ok"), ["busy"])},
        "/metrics": {"get": _operation("Counts for Prometheus", TEXT, ["credential"]) | administrators},
        **_of_administrators(administrators),
    }


def _of_reports() -> Json:
    report = [
        _header("X-Content-SHA256", "SHA-256 of the body before it was compressed", pattern="^[0-9a-f]{64}$"),
        _header("Content-Encoding", "how the body is compressed", required=False, enum=["gzip", "identity"]),
    ]
    return {
        "/v1/reports/{assignment}": {
            "parameters": [_in_path("assignment", "^[0-9a-f]{32}$")],
            "delete": {
                "summary": "Give a place in a round back",
                "responses": {"204": {"description": "done"}} | _problems("credential", *NAMED),
                "security": [{"assignment": []}],
            },
            "post": _operation(
                "Send a report",
                _signed("Receipt"),
                ["malformed", "credential", "not-found", "other-report", "late", "refused", *BODY],
            )
            | {"requestBody": {"required": True, "content": OCTETS}, "security": [{"assignment": []}]}
            | {"parameters": report},
        },
    }


def _of_administrators(administrators: Json) -> Json:
    """administrators: who may ask."""
    run = {"parameters": [_in_path("run", r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]}
    return {
        "/admin/runs": {"get": _operation("All runs", _object("runs"), ADMINISTRATORS) | administrators},
        "/admin/runs/{run}/rounds": run
        | {
            "get": _operation("The rounds of a run", _object("rounds"), ["not-found", *ADMINISTRATORS]) | administrators
        },
        "/admin/runs/{run}/pause": run
        | {
            "post": _operation("Give no more tasks out", _object("runs"), ["not-found", *ADMINISTRATORS])
            | administrators
        },
        "/admin/runs/{run}/resume": run
        | {
            "post": _operation("Give tasks out again", _object("runs"), ["not-found", *ADMINISTRATORS]) | administrators
        },
        "/admin/drain": {"post": _operation("Pause every run", _object("runs"), ADMINISTRATORS) | administrators},
    }


def _of_log_and_tokens() -> Json:
    return {
        "/v1/log": {"get": _operation("All of the log, under its newest head", _json("ShownLog"), NAMED)},
        "/v1/tokens/key": {"get": _operation("The key of this epoch's tokens", _signed("TokenKey"), NAMED)},
        "/v1/tokens": {
            "post": _operation(
                "Blind signatures",
                _json("BlindSignatures"),
                ["malformed", "credential", "not-found", "refused", *BODY],
            )
            | {"requestBody": {"required": True, "content": _json("TokenRequest")}}
        },
    }


def _operation(
    summary: str, content: Json, problems: Sequence[str], also: dict[str, Json | None] | None = None
) -> Json:
    """problems: kinds of them. also: other statuses that are no errors, and what they bring."""
    answers: Json = {"200": {"description": "done", "content": content}}
    for status, brought in (also or {}).items():
        answers[status] = {"description": "done"} | ({"content": brought} if brought else {})
    return {"summary": summary, "responses": answers | _problems(*problems)}


def _problems(*kinds: str) -> Json:
    """A response for each status; where several kinds have it, it says what each means."""
    shape = {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}}
    said: dict[int, list[str]] = {}
    for name in (*kinds, *PAGES):
        said.setdefault(KINDS[name].status, []).append(f"tacit:{name}: {KINDS[name].title}")
    return {
        str(status): {"description": " Or ".join(titles), "content": shape} for status, titles in sorted(said.items())
    }


def _json(model: str) -> Json:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(model=model)}}}


def _signed(document: str, model: str = "Signed") -> Json:
    """What is signed, and of which document the text is."""
    text = {"contentMediaType": "application/json", "contentSchema": {"$ref": REFERENCE.format(model=document)}}
    schema = {"$ref": REFERENCE.format(model=model), "properties": {"document": text}}
    return {"application/json": {"schema": schema}}


def _object(*keys: str) -> Json:
    schema: Json = {"type": "object"}
    return {"application/json": {"schema": schema | ({"required": list(keys)} if keys else {})}}


def _in_path(name: str, pattern: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": pattern}}


def _header(name: str, description: str, *, required: bool = True, **schema: Any) -> Json:
    what = {"name": name, "in": "header", "required": required, "description": description}
    return what | {"schema": {"type": "string"} | schema}
