"""The texts that tacit ships, with as few people and as short passages as a test can afford, and a demo of them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tacit.data.formats.shipped
import tacit.jobs.demo
import tacit.jobs.import_data
from tacit.data.formats.shipped import shipped


def few_shipped(patch: pytest.MonkeyPatch, folder: Path, *, people: int, characters: int) -> None:
    """From here on the first people, and so many characters of each passage; files of them are in the folder."""
    novels, chat = pq.read_table(shipped("novels.parquet")), pq.read_table(shipped("chat.parquet"))
    short = pc.utf8_slice_codeunits(novels["text"], 0, characters)
    pq.write_table(pa.table({"text": short}), folder / "novels.parquet")
    pq.write_table(chat.filter(pc.less_equal(chat["client_id"], f"{people:05d}")), folder / "chat.parquet")
    for module in (tacit.data.formats.shipped, tacit.jobs.import_data):
        patch.setattr(module, "shipped", lambda name: folder / name)


def small_demo(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """From here on `tacit.demo` is of few people and a network that hardly learned."""
    few_shipped(patch, folder, people=200, characters=80)
    patch.setattr(tacit.jobs.demo, "PUBLIC_SENTENCES", 1_600)
