"""Blobs are there whole or not at all, in a folder, in memory and in an object store, and say what goes wrong."""

import hashlib
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.object_store import object_store

from tacit.errors import InputError, StoreError
from tacit.server.store.blobs import BlobStore

CONTENT = bytes(range(256)) * 40


@pytest.fixture(params=["file", "memory", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlobStore]:
    if request.param != "s3":
        yield BlobStore.open("memory://" if request.param == "memory" else f"file://{tmp_path / 'blobs'}")
        return
    with object_store() as address:
        said = {"ENDPOINT_URL": address, "ALLOW_HTTP": "true", "ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s"}
        for name, value in said.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield BlobStore.open("s3://bucket/some/prefix")


def test_what_was_put_is_got_in_whole_and_in_part(blobs: BlobStore) -> None:
    blobs.put("partials/a/1", CONTENT)
    blobs.put("partials/b/1", b"other")
    assert blobs.get("partials/a/1") == CONTENT
    assert blobs.get("partials/a/1", digest=hashlib.sha256(CONTENT).hexdigest()) == CONTENT
    assert blobs.part("partials/a/1", 255, 3) == CONTENT[255:258]
    assert blobs.size("partials/a/1") == len(CONTENT) and blobs.size("partials/a/2") is None
    assert blobs.names("partials/a") == ["partials/a/1"] and len(blobs.names("")) == 2
    blobs.put("partials/a/1", b"new")
    assert blobs.get("partials/a/1") == b"new"


def test_what_is_deleted_is_gone_whether_it_was_there_or_not(blobs: BlobStore) -> None:
    blobs.put("models/x", CONTENT)
    for _ in range(2):
        blobs.delete("models/x")
    assert blobs.names("") == []
    with pytest.raises(StoreError, match=r"the blob 'models/x' .* was not read"):
        blobs.get("models/x")


def test_what_was_changed_is_refused(blobs: BlobStore) -> None:
    blobs.put("models/x", CONTENT)
    with pytest.raises(StoreError, match="its SHA-256 differs"):
        blobs.get("models/x", digest="ab" * 32)


def test_a_folder_is_its_owners_alone_and_read_again(tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'deep' / 'blobs'}"
    BlobStore.open(url).put("models/x", CONTENT)
    assert stat.S_IMODE((tmp_path / "deep" / "blobs").stat().st_mode) == 0o700
    assert BlobStore.open(url).get("models/x") == CONTENT


FULL = """
import resource, signal, sys
from tacit.server.store.blobs import BlobStore
from tacit.errors import StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    BlobStore.open(sys.argv[1]).put("partials/a/1", bytes(10_000))
    print("written")
except StoreError as error:
    print(error)
"""


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    """A limit on the size of files is as good as a full disk: the kernel refuses in the middle of the writing."""
    blobs = BlobStore.open(f"file://{tmp_path / 'blobs'}")
    blobs.put("partials/a/1", b"old")
    done = subprocess.run([sys.executable, "-c", FULL, blobs.url], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and "the blob 'partials/a/1'" in done.stdout
    assert blobs.get("partials/a/1") == b"old" and blobs.names("") == ["partials/a/1"]


@pytest.mark.parametrize(
    ("url", "said"),
    [("here", "is no place for blobs"), ("ftp://x", "is no place for blobs"), ("file://here", "no absolute path")],
)
def test_what_is_no_place_is_refused(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        BlobStore.open(url)
