"""The public Spanish text of the results page is whole paragraphs from the beginning of each novel."""

import importlib
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

SCRIPT = REPOSITORY / "benchmarks" / "utility" / "spanish_novels.py"
sys.path.insert(0, str(SCRIPT.parent))
beginning = importlib.import_module("spanish_novels").beginning
sys.path.remove(str(SCRIPT.parent))

PARAGRAPH = st.lists(st.sampled_from(["a", "ñu", "voz"]), max_size=6).map(" ".join)


@given(paragraphs=st.lists(PARAGRAPH, max_size=12), words=st.integers(1, 20))
def test_a_beginning_ends_with_the_paragraph_that_reaches_the_words(paragraphs: list[str], words: int) -> None:
    found = beginning("\n".join(paragraphs), words)
    whole = [each for each in paragraphs if each.split()]
    assert found == whole[: len(found)], "in their order, none skipped, none cut"
    count = sum(len(each.split()) for each in found)
    assert count >= words or found == whole
    assert sum(len(each.split()) for each in found[:-1]) < words


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "txt").mkdir()
    (tmp_path / "txt" / "b.txt").write_text("tercero\n", encoding="utf-8")
    (tmp_path / "txt" / "a.txt").write_text("uno dos\n\nsegundo", encoding="utf-8")
    out = tmp_path / "novels.parquet"
    command = [sys.executable, str(SCRIPT), str(tmp_path / "txt"), "--out", str(out)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.startswith("2 texts, 4 words, 3 paragraphs")
    assert pyarrow.parquet.read_table(out)["text"].to_pylist() == ["uno dos", "segundo", "tercero"]
    refused = subprocess.run([*command[:2], str(tmp_path), *command[3:]], capture_output=True, text=True)
    assert refused.returncode == 1
    assert "there is no .txt in" in refused.stderr
    assert "Traceback" not in refused.stderr
