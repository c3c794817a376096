"""Which pages of browsers may ask: each refusal comes before a body is read, and whoever is no browser goes on."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.server.listening import listening
from tests.support.server.served import IN_JSON, Served, a_body, check_in, headers, served

from tacit.errors import InputError
from tacit.protocol.address import Address
from tacit.protocol.messages import Assignment, Problem
from tacit.server.http.origins import AskingPages, listed_origin
from tacit.server.http.problems import Refused
from tacit.server.web_settings import WebSettings

ELSEWHERE = "https://type.example.org"
LISTED = AskingPages(listed=frozenset({ELSEWHERE}), local=True)
HOST = "127.0.0.1:8470"
DEVICE_PATHS = [
    ("POST", "/v1/check-in"),
    ("POST", f"/v1/reports/{'0' * 32}"),
    ("DELETE", f"/v1/reports/{'0' * 32}"),
    ("GET", f"/v1/models/{'0' * 64}"),
    ("GET", f"/v1/plans/{'0' * 64}"),
    ("GET", "/v1/key"),
    ("GET", "/v1/key/hand-over"),
    ("GET", "/v1/log"),
    ("GET", "/v1/tokens/key"),
    ("POST", "/v1/tokens"),
]
OTHER_PATHS = [("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/admin/runs"), ("POST", "/admin/drain")]
OTHER_PATHS += [("GET", "/nowhere"), ("POST", "/"), ("OPTIONS", "/v1/check-in")]
FORM_TYPES = ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", ""]

Header = tuple[str, str]


def scope(method: str, path: str, said: Sequence[Header], scheme: str = "http") -> dict[str, Any]:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in said]
    return {"type": "http", "method": method, "path": path, "scheme": scheme, "headers": raw, "query_string": b""}


def answered(worker: Served, method: str, path: str, *said: Header) -> httpx.Response:
    """What the worker answers to a request of which no byte of a body may be asked for."""
    sent: list[Any] = []

    async def never() -> Any:
        raise AssertionError("a body was read")

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(worker.app(scope(method, path, [("host", HOST), *said]), never, send))
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=sent[1].get("body", b""))


def is_problem(answer: httpx.Response, kind: str) -> bool:
    said = Problem.model_validate_json(answer.content)
    return said.type == f"tacit:{kind}" and said.status == answer.status_code


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return served(tmp_path_factory.mktemp("pages"), pages=LISTED, enrols=True)


@pytest.mark.parametrize(("method", "path"), DEVICE_PATHS + OTHER_PATHS)
@pytest.mark.parametrize(
    "said",
    [
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("origin", "http://localhost:8470")],  # another origin than the Host's
        [("origin", "http://127.0.0.1:9101"), ("sec-fetch-site", "same-site")],
        [("origin", f"http://{HOST}"), ("sec-fetch-site", "cross-site")],
        [("origin", f"http://{HOST}"), ("origin", ELSEWHERE)],
        [("origin", "")],
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
        [("sec-fetch-site", "same-site")],
    ],
    ids=str,
)
def test_a_foreign_page_is_refused_before_a_body_is_read(
    worker: Served, method: str, path: str, said: list[Header]
) -> None:
    answer = answered(worker, method, path, *said, ("content-type", "application/json"), ("content-length", "99"))
    assert is_problem(answer, "origin") and answer.headers["connection"] == "close"
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/admin/runs", "/metrics", "/healthz", "/"])
def test_a_listed_page_is_a_device_and_no_administrator(worker: Served, path: str) -> None:
    assert is_problem(answered(worker, "GET", path, ("origin", ELSEWHERE)), "origin")


@pytest.mark.parametrize("media_type", [*FORM_TYPES, "application/json, text/plain", "application/jsonx", "json"])
@pytest.mark.parametrize("path", [path for method, path in DEVICE_PATHS if method == "POST"])
@pytest.mark.parametrize("origin", [None, f"http://{HOST}", ELSEWHERE])
def test_another_media_type_is_refused_before_a_body_is_read(
    worker: Served, media_type: str, path: str, origin: str | None
) -> None:
    said = [("origin", origin)] if origin is not None else []
    said += [("content-type", media_type)] if media_type else []
    assert is_problem(answered(worker, "POST", path, *said, ("content-length", "99")), "encoding")
    other = "application/octet-stream" if "reports" not in path else "application/json"
    assert is_problem(answered(worker, "POST", path, *said[:-1], ("content-type", other)), "encoding")


@pytest.mark.parametrize(
    "host",
    ["evil.example:8470", "evil.example", "127.0.0.1.evil.example", "localhost.", "localhost.evil.example", "a@[::1]"],
)
def test_a_name_that_somebody_points_at_this_machine_is_none_of_its(host: str, worker: Served) -> None:
    """DNS rebinding: the page's origin is its Host, and a GET says no origin."""
    for said in ([("origin", f"http://{host}")], []):
        with pytest.raises(Refused) as refusal:
            LISTED.admitted(scope("GET", "/v1/log", [("host", host), *said]))
        assert refusal.value.kind == "misdirected" and refusal.value.status == 421
    for here in ("localhost", "LOCALHOST:1", "127.0.0.1:8470", "[::1]:8470", "[::1]", "10.1.2.3", ""):
        assert LISTED.admitted(scope("GET", "/v1/log", [("host", here)])) is None


def test_a_server_behind_a_proxy_takes_no_name_from_a_request() -> None:
    proxied = AskingPages(listed=frozenset({ELSEWHERE}))
    for host in ("tacit", "type.example.org", "evil.example", "127.0.0.1:8470"):
        assert proxied.admitted(scope("GET", "/v1/log", [("host", host)])) is None  # a proxy may say any
        for scheme in ("http", "https"):
            with pytest.raises(Refused):
                proxied.admitted(scope("POST", "/admin/drain", [("host", host), ("origin", f"{scheme}://{host}")]))
        assert proxied.admitted(scope("GET", "/v1/log", [("host", host), ("origin", ELSEWHERE)])) == ELSEWHERE


def test_with_tls_the_certificate_says_the_name() -> None:
    own = [("host", "fl.example.org"), ("origin", "https://fl.example.org")]
    assert AskingPages().admitted(scope("GET", "/v1/log", own, "https")) is None
    with pytest.raises(Refused):
        AskingPages().admitted(scope("GET", "/v1/log", own, "http"))


def test_a_link_that_somebody_follows_is_no_request_of_a_page(worker: Served) -> None:
    said = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]
    assert answered(worker, "GET", "/v1/openapi.json", *said).status_code == 200
    assert is_problem(answered(worker, "POST", "/v1/check-in", *said), "origin")  # a form's


def test_refusals_are_counted(tmp_path: Path) -> None:
    worker = served(tmp_path, pages=LISTED)
    answered(worker, "POST", "/v1/check-in", ("origin", "null"))
    answered(worker, "POST", "/v1/check-in", ("content-type", "text/plain"))
    text = worker.services.metrics.text().decode()
    for kind in ("origin", "encoding"):
        assert f'tacit_problems_total{{type="{kind}"}} 1.0' in text


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (f"Origin: https://evil.example\r\nContent-Type: application/json\r\nHost: {HOST}", 403),
        (f"Content-Type: text/plain\r\nHost: {HOST}", 415),
        ("Content-Type: application/json\r\nHost: evil.example", 421),
    ],
    ids=str,
)
def test_no_body_is_waited_for(tmp_path: Path, said: str, status: int) -> None:
    worker = served(tmp_path, pages=LISTED)
    with listening(worker.app) as url, socket.create_connection(_place(url), timeout=10) as connection:
        connection.sendall(f"POST /v1/check-in HTTP/1.1\r\n{said}\r\nContent-Length: 999\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):  # until it is closed: the body never comes
            answer += piece
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()) and b"connection: close" in answer
    assert worker.attempt().assigned == 0


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    return parts.hostname, parts.port


# -- pages that may ----------------------------------------------------------------------------------------------------


def test_a_listed_page_takes_part_and_reads_what_it_is_told(tmp_path: Path) -> None:
    worker = served(tmp_path, pages=LISTED)

    async def ask(client: httpx.AsyncClient) -> None:
        page = {"Host": HOST, "Origin": ELSEWHERE, "Sec-Fetch-Site": "cross-site"}
        answer = await client.post("/v1/check-in", json=check_in(), headers=page)
        given = Assignment.model_validate_json(answer.content)
        body = a_body(given.assignment)
        sent = await client.post(
            f"/v1/reports/{given.assignment}", content=body, headers=headers(given.secret, body) | page
        )
        late = await client.post("/v1/check-in", content=b"{}", headers=page | IN_JSON)
        nowhere = await client.get(f"/v1/models/{'0' * 64}", headers=page)
        assert (answer.status_code, sent.status_code) == (200, 200)
        assert is_problem(late, "malformed") and is_problem(nowhere, "not-found")
        for each in (answer, sent, late, nowhere):
            assert each.headers["access-control-allow-origin"] == ELSEWHERE
            assert each.headers["access-control-expose-headers"] == "ETag, Retry-After, Content-Range"
            assert "Origin" in each.headers["vary"] and "access-control-allow-credentials" not in each.headers
        other = await client.get("/v1/key", headers={"Host": HOST})
        assert other.headers["vary"] == "Origin" and "access-control-allow-origin" not in other.headers

    worker.asks(ask)
    assert worker.attempt().received == 1


@pytest.mark.parametrize(("method", "path"), DEVICE_PATHS)
def test_a_preflight_of_a_listed_page_is_answered_on_each_path_of_devices(
    worker: Served, method: str, path: str
) -> None:
    asks = [("access-control-request-method", method), ("access-control-request-headers", "authorization")]
    answer = answered(worker, "OPTIONS", path, ("origin", ELSEWHERE), ("sec-fetch-site", "cross-site"), *asks)
    assert answer.status_code == 204 and answer.content == b""
    said = {name: value for name, value in answer.headers.items() if name.startswith(("access-control", "vary"))}
    assert said == {
        "access-control-allow-origin": ELSEWHERE,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": "authorization, content-type, x-content-sha256, range",
        "access-control-max-age": "86400",
        "access-control-expose-headers": "ETag, Retry-After, Content-Range",
        "vary": "Origin",
    }


def test_without_a_list_nothing_of_cors_is_said(tmp_path: Path) -> None:
    worker = served(tmp_path, pages=AskingPages(local=True))
    for method, path in DEVICE_PATHS:
        for more in ([], [("origin", f"http://{HOST}"), ("sec-fetch-site", "same-origin")]):
            answer = answered(worker, "GET" if method == "POST" else method, path, *more)
            assert answer.status_code != 403 and "Origin" not in answer.headers.get("vary", "")
            assert not [name for name in answer.headers if name.startswith("access-control")]


SAFE = st.dictionaries(
    st.sampled_from(
        ["user-agent", "accept", "authorization", "range", "accept-encoding", "x-forwarded-for", "referer"]
    ),
    st.text("abcxyz /.0123456789", max_size=30),
)


@given(said=SAFE, place=st.sampled_from(DEVICE_PATHS), proxied=st.booleans())
def test_whoever_is_no_browser_goes_on_as_before(said: dict[str, str], place: tuple[str, str], proxied: bool) -> None:
    method, path = place
    body = "application/octet-stream" if "reports" in path else "application/json"
    given_headers = [("host", "any.example" if proxied else HOST), ("content-type", body), *said.items()]
    assert AskingPages(local=not proxied).admitted(scope(method, path, given_headers)) is None


# -- spellings of origins ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        ("https://Type.Example.ORG", "https://type.example.org"),
        ("HTTPS://type.example.org:443", "https://type.example.org"),
        ("https://type.example.org:80", "https://type.example.org:80"),
        ("https://xn--nia-8ma.example:8443", "https://xn--nia-8ma.example:8443"),
        ("http://127.0.0.1:9100", "http://127.0.0.1:9100"),
        ("http://localhost:80", "http://localhost"),
        ("http://[0:0::1]:9100", "http://[::1]:9100"),
        ("https://[2001:DB8:0:0:1:0:0:1]", "https://[2001:db8::1:0:0:1]"),
        ("chrome-extension://" + "abcdefghijklmnop" * 2, "chrome-extension://" + "abcdefghijklmnop" * 2),
    ],
)
def test_a_listed_origin_is_spelled_as_browsers_do(given: str, spelled: str) -> None:
    assert listed_origin(given) == spelled == listed_origin(spelled)


NO_ORIGINS = [
    "*",
    "null",
    "type.example.org",
    "https://",
    "https://*.example.org",
    "https://*",
    "https://a.example/",
    "https://a.example/page",
    "https://a.example?x",
    "https://a.example#x",
    "https://me@a.example",
    "https://:443",
    "https://a.example:",
    "https://a.example:0",
    "https://a.example:65536",
    "https://a.example:x",
    "//a.example",
    "http://a.example",
    "http://10.0.0.1",
    "http://0.0.0.0:80",
    "ftp://a.example",
    "file:///",
    "data:text/html,a",
    "https://a.example.",
    "https://.a.example",
    "https://a..example",
    "https://niña.example",
    "https://1.2.3",
    "https://127.1",
    "https://0x7f000001",
    "https://a.0x1",
    "https://[::1",
    "https://::1",
    "https://[::ffff:1.2.3.4]",
    "https://[fe80::1%25eth0]",
    "https://-a.example",
    "moz-extension://aaaa",
    "https://a.example,https://b.example",
]
WITH_SPACE = ["", "https://a b.example", " https://a.example", "https://a.example\n", "https://a\t.example"]
TOO_LONG = ["https://" + "a" * 64 + ".example", "https://" + "a." * 130 + "example", "chrome-extension://" + "z" * 32]


@pytest.mark.parametrize("given", [*NO_ORIGINS, *WITH_SPACE, *TOO_LONG])
def test_what_is_no_origin_is_not_listed(given: str) -> None:
    with pytest.raises(InputError, match="--web-origin"):
        listed_origin(given)


HOSTS = ["a.example", "b.a.example", "xn--nia-8ma.example", "127.0.0.1", "localhost", "[::1]", "[2001:db8::1]"]
PORTS_OF = {"http": 80, "https": 443}
PORTS = ["", ":80", ":443", ":8443"]
LISTABLE = [
    f"{scheme}://{host}{port}"
    for scheme, host, port in product(["http", "https"], HOSTS, PORTS)
    if scheme == "https" or host in ("127.0.0.1", "localhost", "[::1]")
]


CHANGES: list[Callable[[str], str]] = [
    str.upper,
    lambda origin: origin.replace("example", "EXAMPLE"),
    lambda origin: origin + ".",
    lambda origin: origin + ".evil.example",
    lambda origin: origin + "/",
    lambda origin: origin.replace("://", "://a.example@"),
    lambda origin: origin + ":443",
    lambda origin: origin + ", null",
    lambda origin: origin.replace("[::1]", "[0:0::1]"),
]
STRANGE = ["null", "", "https://niña.example", "https://evil.example", "http://a.example", "https://a.example:443"]


def of_tuple(origin: str) -> tuple[str, str, int | None]:
    """The slow way: scheme, host and port, by which RFC 6454 (section 4) tells origins apart."""
    parts = urlsplit(origin)
    host = parts.hostname or ""
    return parts.scheme, f"[{IPv6Address(host)}]" if ":" in host else host, parts.port or PORTS_OF.get(parts.scheme)


def as_browsers_spell(origin: str) -> str:
    scheme, host, port = of_tuple(origin)
    return f"{scheme}://{host}" + ("" if port == PORTS_OF.get(scheme) else f":{port}")


@given(listed=st.sets(st.sampled_from(LISTABLE), max_size=3), data=st.data())
def test_a_page_is_admitted_exactly_where_its_origin_is_listed_and_spelled_as_browsers_do(
    listed: set[str], data: st.DataObject
) -> None:
    pages = AskingPages(listed=frozenset(listed_origin(each) for each in listed), local=True)
    origin = data.draw(st.sampled_from([*sorted(listed), *LISTABLE, *STRANGE]))
    for change in data.draw(st.lists(st.sampled_from(CHANGES), max_size=2)):
        origin = change(origin)
    request = scope("GET", "/v1/log", [("host", HOST), ("origin", origin.encode("utf-8").decode("latin-1"))])
    try:
        admitted = pages.admitted(request) is not None
    except Refused as refusal:
        assert refusal.kind == "origin"
        admitted = False
    try:
        expected = as_browsers_spell(origin) == origin and of_tuple(origin) in {of_tuple(each) for each in listed}
    except ValueError:  # a port, or an address, that is none
        expected = False
    assert admitted == expected


# -- what an operator says ---------------------------------------------------------------------------------------------


def test_who_serves_a_page_behind_a_proxy_says_its_name(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("page")
    proxied = Address(behind_proxy=True)
    with pytest.raises(InputError, match=r"--web behind a proxy.*--web-origin https://NAME"):
        WebSettings.checked(tmp_path, (), proxied)
    assert not WebSettings.checked(tmp_path, [ELSEWHERE], proxied).local
    assert WebSettings.checked(tmp_path, (), Address()).local and not WebSettings.checked(None, (), proxied).local
    for wrong in (ELSEWHERE, [3]):
        with pytest.raises(InputError, match="web_origins="):
            WebSettings.checked(None, wrong, Address())  # type: ignore[arg-type]


def test_the_first_lines_say_who_serves_what_reads_the_text(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("page")
    said = WebSettings.checked(tmp_path, [ELSEWHERE, "https://TYPE.example.org"], Address()).lines("http://127.0.0.1:1")
    assert said == (
        "page http://127.0.0.1:1/ : the operator serves the page that reads the text: for demonstrations",
        f"pages of {ELSEWHERE} may be devices: who serves them is who their readers trust",
    )
    assert WebSettings.checked(None, (), Address()).lines("http://127.0.0.1:1") == ()
