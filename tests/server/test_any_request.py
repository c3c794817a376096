"""Whatever anybody sends, a worker answers what its OpenAPI document says, and never with a 5xx."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.server.served import TOKEN, Served, served

from tacit.protocol.messages import Problem
from tacit.server.http.openapi import document
from tacit.server.store.assignments import assign

CASES = int(os.environ.get("TACIT_SCHEMA_CASES", "0"))  # of the long test: 20000 before a release
DOCUMENT = document()
OPERATIONS = [
    f"{method.upper()} {path}" for path, item in DOCUMENT["paths"].items() for method in item if method != "parameters"
]
ANY = settings(
    phases=[Phase.generate],
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class Asked:
    """A worker that is asked in one event loop, so that a request costs a millisecond."""

    def __init__(self, worker: Served) -> None:
        self._loop, transport = asyncio.new_event_loop(), httpx.ASGITransport(worker.app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test")
        worker.services.snapshot.refresh()
        place = assign(worker.store, worker.task.task)
        assert place is not None
        self.place = place  # in the round

    def __call__(self, **request: Any) -> httpx.Response:
        return self._loop.run_until_complete(self._client.request(**request))

    def close(self) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    asked = Asked(served(tmp_path_factory.mktemp("any"), goal=100_000, most=1_000_000))
    yield asked
    asked.close()


def check(ask: Asked, case: Any, *, known: bool) -> None:
    """The case's request is answered as the document says. known: by whoever has the credential that it takes."""
    given = case.as_transport_kwargs(base_url="http://test")
    url, headers = given["url"], dict(given["headers"])
    if known and "/v1/reports/" in url:
        url, headers["Authorization"] = f"http://test/v1/reports/{ask.place.id}", f"Bearer {ask.place.secret}"
    elif known:
        headers["Authorization"] = f"Bearer {TOKEN}"
    body = {"json": given["json"]} if given.get("json") is not None else {"content": given.get("data")}
    raw = {name.encode("latin-1"): value.encode("latin-1", "replace") for name, value in headers.items()}
    answer = ask(method=given["method"], url=url, headers=raw, params=given.get("params"), **body)
    assert answer.status_code < 500, (given, answer.text)
    operation = case.operation.definition.raw["responses"]
    assert str(answer.status_code) in {*operation, "404", "405"}, (given, answer.text)
    if answer.status_code >= 400:
        said = Problem.model_validate_json(answer.content)
        assert said.status == answer.status_code and answer.headers["content-type"] == "application/problem+json"


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    """Schemathesis' own of OPERATIONS: it is loaded by the process that runs these tests, not by all that collect."""
    import schemathesis

    every = (each.ok() for each in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations())
    found = {each.label: each for each in every}
    assert sorted(found) == sorted(OPERATIONS)
    return found


def hammer(ask: Asked, operation: Any, cases: int) -> None:
    from schemathesis import GenerationMode

    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    strategy = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

    @given(case=strategy, known=st.booleans())
    @settings(ANY, max_examples=cases)
    def one(case: Any, known: bool) -> None:
        check(ask, case, known=known)

    one()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_few_requests_of_each_kind(ask: Asked, operations: dict[str, Any], operation: str) -> None:
    hammer(ask, operations[operation], 8)


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
def test_many_requests_of_each_kind(ask: Asked, operations: dict[str, Any], operation: str) -> None:
    hammer(ask, operations[operation], max(20, CASES // len(OPERATIONS)))
