"""The document for programs: current, whole, and true of what a worker answers."""

import json
from pathlib import Path

from starlette.routing import Route
from tests.conftest import REPOSITORY
from tests.support.server.served import served

from tacit.server.http.openapi import document

PAGE = REPOSITORY / "docs" / "openapi.json"


def render() -> str:
    """The file, as `python -m tests.server.test_openapi` writes it."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def test_the_file_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `python -m tests.server.test_openapi`"


def test_every_path_of_a_worker_is_in_it(tmp_path: Path) -> None:
    worker = served(tmp_path)
    routes = [route for route in worker.app.rest.routes if isinstance(route, Route)]
    served_here = {(route.path, method.lower()) for route in routes for method in (route.methods or set()) - {"HEAD"}}
    documented = {
        (path, method)
        for path, operations in document()["paths"].items()
        for method in operations
        if method != "parameters"
    }
    assert documented == served_here | {("/v1/check-in", "post")}


def test_every_reference_is_there() -> None:
    text = json.dumps(document())
    schemas = document()["components"]["schemas"]
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= schemas.keys() and {"CheckIn", "Answer", "Receipt", "Signed", "Problem"} <= named


def test_a_status_says_what_it_means_on_its_path() -> None:
    paths = document()["paths"]
    for path, kind in (("/v1/check-in", "tacit:token"), ("/v1/tokens", "tacit:credential")):
        assert paths[path]["post"]["responses"]["401"]["description"].startswith(f"{kind}:")
    assert "tacit:version:" in paths["/v1/check-in"]["post"]["responses"]["400"]["description"]


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
