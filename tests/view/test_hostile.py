"""Names, words and recipes are text: whatever they are, a page is made of our tags alone."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.made_runs import write_run
from tests.support.view.looking import Asked, Parsed, client

from tacit.privacy import Tree
from tacit.reports.blocks import Labels, Table, Tiles
from tacit.reports.page import blocks_to_html
from tacit.statements.statement import Label
from tacit.view.application import template
from tacit.view.mixtures import MixtureRow
from tacit.view.pages.words import branches
from tacit.view.rows import Row

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</title><b>",
    "{{ 7*7 }}",
    "{% raw %}",
    "javascript:alert(1)",
    "\u202eevil",
    "a\nb",
    "&lt;",
    "</main>",
    "<!--",
    "]]>",
    "`code`",
    "\x1b[31m",
    "\ud800",
)
# A backtick in a path pairs with those around a command of a report: our own markup, on other words.
FOLDERS = [each for each in NASTY if not {"\ud800", "\n", "/", "\x1b", "`"} & {*each}]
texts = st.sampled_from(NASTY) | st.text(max_size=40)


class Structure(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"{tag} {sorted(name for name, _ in attrs)}")

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")


def structure(text: str) -> list[str]:
    return Structure(text).found


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("hostile")
    write_run(folder / "<b>run", strategy=Tree(), rounds=2)
    return client(folder)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_name_of_a_run_is_text(name: str, tmp_path: Path) -> None:
    pages = []
    for at, called in enumerate(("plain", name)):
        folder = tmp_path / str(at)
        write_run(folder / called / "run", strategy=Tree(), rounds=2, name=json.dumps(called)[1:-1])
        one = client(folder)
        place = quote(one.get("/?format=json").json()["runs"][0]["place"])
        addresses = ("/", f"/run/{place}", f"/typing?run={place}", f"/nothing/{place}")
        pages.append([structure(one.get(address).text) for address in addresses])
    assert pages[0] == pages[1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts)
def test_what_is_asked_is_text(text: str, asked: Asked) -> None:
    sent = text.encode("utf-8", "replace").decode()
    for page, name in (("/", "search"), ("/", "sort"), ("/", "page"), ("/typing", "run"), ("/compare", "run")):
        found = asked.get(page, params={name: sent})
        assert found.status_code < 500
        Parsed(found.text)
        assert structure(found.text).count("script ['defer', 'src']") == 1
        assert sum(each.startswith("script") for each in structure(found.text)) == 1
    assert asked.get("/plan", params={"rounds": sent}).status_code in (200, 422)


@given(text=texts.filter(str.strip))
def test_rows_and_messages_are_text(text: str) -> None:
    def made(of: str) -> list[str]:
        row = Row(
            place=f"0/{of}".encode("utf-8", "replace").decode(),
            name=of,
            kind=of,
            state="stopped",
            answer=of,
            labels=(of,),
            complaint=of,
        )
        place = f"0/{of}".encode("utf-8", "replace").decode()
        mixed = MixtureRow(place=place, name=of, parts=(f"{place}/counts",), epsilon=1.0, delta=1e-5, says=of)
        broken = MixtureRow(place=place, name=of, parts=(), complaint=of)
        values: dict[str, Any] = {"mixtures": [mixed, broken]}
        values |= {"rows": [row, row], "found": 1, "all": 2, "waiting": 0, "left_out": 1, "order": "name", "orders": {}}
        values |= {"search": of.encode("utf-8", "replace").decode(), "at": 1, "pages": 1, "mark": "0", "roots": [of]}
        page = template("runs").render(title=of, simulation=True, part="", **values)
        message = template("message").render(title=of, simulation=False, part="", message=of)
        Parsed(page)
        return structure(page) + structure(message)

    assert made(text) == made("plain")


@given(words=st.lists(texts.filter(str.strip), min_size=1, max_size=3))
def test_words_of_a_trie_are_text(words: list[str]) -> None:
    def made(of: list[str]) -> list[str]:
        told = Labels((Label(of[0], "x"),))
        return structure(blocks_to_html((told, branches(1, of), Tiles(((of[0], of[0]),)), Table(((of[0],),), ("a",)))))

    assert made(words) == made(["plain"] * len(words))


def test_many_words_are_cut() -> None:
    assert branches(0, [f"w{at}" for at in range(1_000)]).text.endswith(", and 940 more.")


def test_names_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    write_run(tmp_path / "run", strategy=Tree(), rounds=2)
    write_run(tmp_path / "\udcff" / "run", strategy=Tree(), rounds=2)
    found = client(tmp_path).get("/")
    assert found.status_code == 200 and "1 folders are left out" in Parsed(found.text).text


ODD = ("/run/%ff%fe", "/?search=%ff", "/file/0?name=%00", "/run/%00", f"/run/{'a' * 5000}", "/%2e%2e/%2e%2e/etc/passwd")
BODIES = (b"", b"[]", b"{", b"\xff", b"[" * 5000, b'{"runs": 1, "text": 2}', b'{"runs": [[]], "text": ""}', b"a" * 9000)


def test_bytes_that_are_no_text_are_answered(asked: Asked) -> None:
    for address in ODD:
        assert asked.get(address).status_code in (200, 404, 414, 422)
    for body in BODIES:
        answer = asked.post("/typing/suggest", content=body)
        assert answer.status_code == 422 and not answer.json()["ok"]
