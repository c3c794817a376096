"""Every view in a browser: light, dark and as wide as a phone, without an error or a finding of axe, and what one does.

Needs Playwright (`pip install 'tacit[browser]'`) and a Chromium of the distribution; skipped where one is missing.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_runs import write_adaptive_run, write_run
from tests.support.view.deployments import write_device, write_server
from tests.support.view.models import with_model
from tests.support.view.viewing import viewing
from tests.support.waiting import PATIENCE

from tacit.jobs.report import report
from tacit.privacy import Tree

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.filterwarnings("ignore"),  # the driver's own
]
TOKEN = "sixteen characters"
PAGES = {
    "runs": "/",
    "search": "/?search=one&sort=epsilon",
    "run": "/run/0/one",
    "stopped": "/run/0/stopped",
    "statement": "/statement/0/one",
    "compare": "/compare?run=0/one&run=0/two",
    "planning": "/plan",
    "typing": "/typing?run=0/one&run=0/two",
    "servers": "/servers",
    "server": "/server/0/server",
    "devices": "/devices",
    "device": "/device/0/phone",
    "nothing": "/run/0/nothing",
}
LOOKS = [("light", 1200), ("dark", 1200), ("light", 390), ("dark", 390)]
A_ROUND = ("-m", "tests.support.view.rounds")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("browser")
    for seed, name in enumerate(("one", "two")):
        report(with_model(write_run(made / name, strategy=Tree(), name=f"run {name} <b>", noise=6.0 + seed), seed))
    write_run(made / "stopped", strategy=Tree(), done=7)
    write_adaptive_run(made / "adaptive")
    write_server(made / "server")
    write_device(made / "phone", tmp_path_factory.mktemp("journal"))
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with viewing(folder, arguments=("--simulation",)) as (address, _):
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose errors are a test's."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE * 1000)
    made = context.new_page()
    errors: list[str] = []
    made.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    made.on("pageerror", lambda error: errors.append(str(error)))
    yield made
    context.close()
    assert not errors, errors


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_a_view_is_whole(name: str, scheme: str, width: int, url: str, browser: Any) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(url + PAGES[name])
    page.wait_for_selector("main h1")
    if page.query_selector("[data-fill]"):
        page.wait_for_selector("#statement .holds, #statement .warn")
    expected = ["404", "422"] if name == "nothing" else []  # a browser tells of the page itself
    assert not [each for each in errors if not any(code in each for code in expected)], errors
    assert all(each.startswith(url) for each in fetched), "nothing is fetched from elsewhere"
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, "no page is wider than its window"
    found = axe.Axe().run(page).response["violations"]
    assert not [(each["id"], each["nodes"][0]["html"]) for each in found]
    context.close()


def test_runs_are_searched_and_laid_side_by_side(url: str, page: Any) -> None:
    page.goto(url)
    page.get_by_label("Search").fill("0/one")
    page.get_by_role("button", name="Show").click()
    assert page.locator("article").count() == 1 and page.locator("article b").count() >= 1
    page.goto(url)
    page.locator('input[value="0/one"]').check()
    page.locator('input[value="0/two"]').check()
    page.get_by_role("button", name="Lay the chosen ones side by side").click()
    page.wait_for_selector("svg.figure")
    assert "2 runs side by side" in page.inner_text("h1") and page.locator("svg.figure path.line").count() >= 2


def test_points_of_a_figure_are_told_by_arrow_keys_and_under_the_pointer(url: str, page: Any) -> None:
    page.goto(url + PAGES["run"])
    page.locator("svg.figure[tabindex]").first.focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("p.point").first.inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator("p.point").first.inner_text()
    assert first and second and first != second
    page.keyboard.press("Home")
    assert page.locator("p.point").first.inner_text() == first


def test_a_slider_answers_and_the_recipe_is_taken_away(url: str, page: Any) -> None:
    page.goto(url + "/plan")
    before = page.inner_text("#plan .answer")
    slider = page.locator('input[data-for="of-epsilon"]')
    slider.focus()
    with page.expect_response(lambda answer: "part=1" in answer.url):
        page.keyboard.press("PageDown")
    sync.expect(page.locator("#plan .answer")).not_to_have_text(before)
    assert "epsilon=" in page.url and page.inner_text("#of-epsilon") is not None
    with page.expect_download() as taken:
        page.get_by_text("Write this recipe").click()
    assert taken.value.suggested_filename == "plan.toml" and "[privacy]" in Path(taken.value.path()).read_text()


def test_somebody_types_with_two_models(url: str, page: Any) -> None:
    page.goto(url + PAGES["typing"])
    for key in "wor":
        page.locator(f'[data-key="{key}"]').click()
    page.locator(".strip button").nth(1).wait_for()
    assert page.input_value("#typed") == "wor" and "wor" not in page.url
    page.locator(".strip button").first.click()
    sync.expect(page.locator("#typed")).to_have_value(re.compile(r"wor.. $"))
    assert page.input_value("#typed").startswith("wor") and len(page.input_value("#typed")) == 6


def test_a_round_comes_to_the_open_page(url: str, folder: Path, page: Any) -> None:
    page.goto(url + PAGES["stopped"])
    assert "7 of 20 rounds" in page.inner_text("#state")
    page.wait_for_timeout(800)
    subprocess.run([sys.executable, *A_ROUND, str(folder / "stopped")], check=True, cwd=Path(__file__).parents[2])
    page.locator("#state", has_text="8 of 20 rounds").wait_for()


def test_without_script_all_is_read(url: str, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name, address in PAGES.items():
        page.goto(url + address)
        assert page.inner_text("h1"), name
    page.goto(url + "/plan")
    page.get_by_role("spinbutton", name="epsilon", exact=True).fill("2")
    page.get_by_role("button", name="Plan").click()
    assert "At epsilon 2 " in page.inner_text(".answer")
    context.close()


def test_the_token_is_asked_for_once_and_stands_in_no_address(folder: Path, browser: Any) -> None:
    with viewing(folder, TACIT_VIEW_TOKEN=TOKEN) as (address, _):
        context = browser.new_context()
        page = context.new_page()
        page.goto(address + "/run/0/one")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button").click()
        assert "not the token" in page.inner_text("main")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button").click()
        page.wait_for_selector("article")
        assert TOKEN not in page.url and page.evaluate("document.cookie") == "", "no script reads the cookie"
        page.goto(address + "/run/0/one")
        assert page.inner_text("h1") == "run one <b>"
        context.close()
