"""What is written is told and on the page: events of a server as somebody starts it."""

import asyncio
import json
import threading
import time
from pathlib import Path

import httpx
import pytest
from tests.support.made_runs import write_run
from tests.support.view.looking import Parsed
from tests.support.view.rounds import a_round
from tests.support.view.viewing import viewing
from tests.support.waiting import PATIENCE

from tacit.privacy import Tree
from tacit.view.changes import Changes
from tacit.view.folders import Folders


@pytest.mark.parametrize("place", ["", "0/run"])
def test_a_mark_is_told_when_something_was_written_and_not_before(place: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), done=3)

    async def heard() -> list[str]:
        changes = Changes(Folders([tmp_path]))
        known = changes.mark(place)
        marks, told = [known], changes.of(place, known)
        waiting = asyncio.ensure_future(anext(told))
        done, _ = await asyncio.wait({waiting}, timeout=1.5)
        assert not done, "nothing was written"
        for _ in range(2):
            await asyncio.to_thread(a_round, path)
            marks.append(await asyncio.wait_for(waiting, PATIENCE))
            waiting = asyncio.ensure_future(anext(told))
        stale = changes.of(place, known)  # who looked before: is told at once
        assert await asyncio.wait_for(anext(stale), PATIENCE) != known
        waiting.cancel()
        await changes.close()
        return marks

    marks = asyncio.run(heard())
    assert len(marks) == 3 and marks[0] != marks[2]


def test_a_round_is_told_and_on_the_page_after_its_commit(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), done=3)
    with viewing(tmp_path) as (url, _), httpx.Client(base_url=url, timeout=PATIENCE) as asked:
        first = asked.get("/run/0/run?format=json").json()
        assert first["steps"] == 3
        heard: list[str] = []

        def listen() -> None:
            with httpx.stream("GET", f"{url}/changes?place=0/run&known={first['mark']}", timeout=PATIENCE) as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                for line in stream.iter_lines():
                    if line.startswith("data:"):
                        heard.append(json.loads(line[5:])["mark"])
                        return

        listener = threading.Thread(target=listen)
        listener.start()
        time.sleep(1.0)
        assert not heard
        a_round(path)
        listener.join(PATIENCE)
        page = asked.get("/run/0/run")
        assert "4 of 20 rounds" in Parsed(page.text).text
        assert heard and heard[0] != first["mark"], "told, not asked for"


def test_ten_browsers_wait_and_a_first_page_is_small(tmp_path: Path) -> None:
    write_run(tmp_path / "run", strategy=Tree())
    with viewing(tmp_path) as (url, _), httpx.Client(base_url=url, timeout=PATIENCE) as asked:
        streams = [httpx.Client(base_url=url, timeout=PATIENCE) for _ in range(10)]
        waiting = [one.send(one.build_request("GET", "/changes?place=0/run"), stream=True) for one in streams]
        sent = sum(asked.get(each).num_bytes_downloaded for each in ("/", "/static/view.css", "/static/view.js"))
        assert sent < 300_000 and asked.get("/run/0/run").status_code == 200
        for stream, one in zip(waiting, streams, strict=True):
            stream.close()
            one.close()
        assert asked.get("/").status_code == 200


def test_the_variable_has_the_token(tmp_path: Path) -> None:
    token = "sixteen characters"
    with viewing(tmp_path, TACIT_VIEW_TOKEN=token) as (url, _):
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"authorization": f"Bearer {token}"}).status_code == 200
