"""What a thief of a training's folder finds: the noise key while the run goes on, later neither key nor text."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.training.tiny import WORDS, tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.text.vocabulary import SPECIALS


def sentences(cache: Cache) -> set[bytes]:
    """Each of six words or more of training clients, in every way that numbers and words are written here."""
    found = set[bytes]()
    for client in cache.clients("train"):
        for ids in cache.sentences(int(client)):
            inner = np.asarray(ids)[1:-1]
            if len(inner) >= 6:
                found |= {inner.astype(kind).tobytes() for kind in ("<u2", "<i4", "<i8", "<f4")}
                if inner.min() >= SPECIALS:
                    found.add(" ".join(WORDS[each - SPECIALS] for each in inner).encode())
    return found


def stored(folder: Path) -> bytes:
    return b"\n".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


@pytest.mark.parametrize("done", [4, None], ids=["unfinished", "finished"])
def test_a_folder_has_no_text_and_a_finished_one_no_key(done: int | None, tmp_path: Path) -> None:
    cache, run = tiny_cache(tmp_path / "cache"), tmp_path / "run"
    texts = sentences(cache)
    assert len(texts) > 100 and any(each in stored(cache.path) for each in texts), "the search would find them"
    tacit.train(tiny_recipe(cache.path), run, hardware=Hardware(workers=1), until=2).run.close()
    key = (run / "noise.key").read_bytes()
    tacit.resume(run, hardware=Hardware(workers=1), until=done)
    content = stored(run)
    assert (key in content) == (done is not None)
    assert not [each for each in texts if each in content]
