"""A keyboard in a page: what `tacit suggest` and `tacit keyboard` would show, and nothing typed is kept anywhere."""

import gc
import json
import logging
from pathlib import Path

import pytest
from tests.support.jobs.mixture_runs import parts_at, recipe_of, values
from tests.support.made_runs import write_run
from tests.support.view.looking import Parsed, client, tree
from tests.support.view.models import with_model

import tacit
from tacit.privacy import Tree
from tacit.view.folders import Folders
from tacit.view.keyboards import Keyboards

SECRET = "xylophonically"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typing")
    with_model(write_run(folder / "one", strategy=Tree(), rounds=2), 1)
    with_model(write_run(folder / "two", strategy=Tree(), rounds=2), 2)
    with_model(write_run(folder / "bare", strategy=None, rounds=2), 3)
    private = {"kind": "private", "description": "counted in clients' text"}
    with_model(write_run(folder / "private", strategy=Tree(), rounds=2, vocabulary=private), 4)
    write_run(folder / "none", strategy=Tree(), rounds=2)
    return folder


def test_two_models_side_by_side_suggest_as_the_job_does(runs: Path) -> None:
    asked = client(runs)
    for text in ("", "worab ", "worab woraa "):
        answer = asked.post("/typing/suggest", json={"runs": ["0/one", "0/two"], "text": text}).json()
        assert answer["ok"] and list(answer["offered"]) == ["0/one", "0/two"]
        for name in ("one", "two"):
            slow = tacit.suggest(runs / name, [text.strip()])
            assert answer["offered"][f"0/{name}"]["strip"] == [each.word for each in slow.after[0][1]]
    begun = asked.post("/typing/suggest", json={"runs": ["0/one"], "text": "worab wor"}).json()["offered"]["0/one"]
    assert all(word.startswith("wor") for word in begun["strip"]) or begun["corrects"]


def test_a_mixture_is_typed_with_where_its_promise_holds(tmp_path: Path) -> None:
    """It is no run itself: its folder is around the runs that it is made of."""
    parts = parts_at(tmp_path / "parts")
    tacit.train_mixture(recipe_of(values(parts)), tmp_path / "runs" / "mixed")
    asked, body = client(tmp_path / "runs"), {"runs": ["0/mixed"], "text": ""}
    assert Keyboards(Folders([tmp_path / "runs"])).models() == ["0/mixed"]
    (listed,) = asked.get("/?format=json").json()["mixtures"]
    assert listed["epsilon"] == pytest.approx(8, abs=0.01) and listed["parts"] == ["0/mixed/counts"]
    assert "Type with it" in asked.get("/").text
    offered = asked.post("/typing/suggest", json=body).json()["offered"]["0/mixed"]
    assert offered["strip"] == [each.word for each in tacit.suggest(tmp_path / "runs" / "mixed", [""]).after[0][1]]
    promise = tmp_path / "runs" / "mixed" / "model" / "promise.json"
    claimed = json.loads(promise.read_text())
    promise.write_text(json.dumps({**claimed, "epsilon": claimed["epsilon"] / 2}))
    refused = asked.post("/typing/suggest", json=body)
    assert refused.status_code == 422 and "does not hold" in refused.json()["error"]
    assert "does not hold" in asked.get("/").text


NOT_RELEASED = [("bare", "without noise"), ("private", "in clients' text"), ("none", "no model")]


@pytest.mark.parametrize(("name", "why"), NOT_RELEASED)
def test_a_model_that_is_not_released_is_not_typed_with(name: str, why: str, runs: Path) -> None:
    body = {"runs": [f"0/{name}"], "text": "a"}
    refused = client(runs).post("/typing/suggest", json=body)
    assert refused.status_code == 422 and why in refused.json()["error"]
    if name != "none":
        assert client(runs, simulation=True).post("/typing/suggest", json=body).json()["ok"]


def test_nothing_that_is_typed_is_logged_or_kept(
    runs: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    asked, before = client(runs), tree(runs)
    with caplog.at_level(logging.DEBUG):
        for text in (f"the {SECRET}", f"the {SECRET} ", SECRET * 100, f"\0{SECRET}"):
            asked.post("/typing/suggest", json={"runs": ["0/one", "0/two"], "text": text})
            asked.post("/typing/suggest", json={"runs": ["0/none"], "text": text})
    assert not [each for each in caplog.records if SECRET in each.getMessage()]
    assert not any(SECRET in part for part in capfd.readouterr())
    assert tree(runs) == before
    gc.collect()
    held = [each for each in gc.get_objects() if type(each).__name__ in ("LiveKeyboard", "TypingSession")]
    assert not held, "a session outlived its answer"


def test_the_page_has_a_keyboard_for_one_or_two(runs: Path) -> None:
    asked = client(runs)
    assert "choose one, or two" in Parsed(asked.get("/typing").text).text
    page = Parsed(asked.get("/typing?run=0/one&run=0/two&run=0/bare").text)
    keys = [value for name, value in page.attributes if name == "data-key"]
    assert sorted(keys) == sorted([*"qwertyuiopasdfghjklzxcvbnm,.", " ", "backspace"])
    assert [value for name, value in page.attributes if name == "data-run"] == ["0/one", "0/two"]
    assert asked.get("/typing?run=0/../x").status_code == 404


def test_few_models_are_held(runs: Path) -> None:
    keyboards = Keyboards(Folders([runs]))
    for name in ("one", "two", "bare", "private", "one"):
        assert keyboards.suggested(f"0/{name}", "worab ", simulation=True).strip
    assert len(keyboards._kept) <= 3
