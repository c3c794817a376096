"""`tacit publish`: a page's bundle in a log, and `tacit verify --log`, which finds whatever was changed."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from tests.support.device.operator import shown_log
from tests.support.server.stores import sqlite_store

import tacit
from tacit.errors import InputError
from tacit.protocol.log_proofs import bundle_entry, plan_entry
from tacit.protocol.operator_key import OperatorKey
from tacit.server.log.transparency import TransparencyLog
from tacit.statements.page_bundle import BUNDLE, PageBundle, digest_of

FILES = {"index.html": b"<!doctype html>", "page.js": b"const a = 1;", "model/step.onnx": b"onnx"}
PLAN = plan_entry("ab" * 32)


def built(folder: Path, publisher: str | None = None, files: dict[str, bytes] = FILES) -> Path:
    """A folder as `npm run build` writes it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    named = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    said = {"digest": digest_of(named), "files": named, "publisher": publisher}
    (folder / BUNDLE).write_text(json.dumps(said))
    return folder


def failed(folder: Path, log: Path) -> list[str]:
    """The names of the lines of `tacit verify --log` that do not hold."""
    lines = (*tacit.verify(folder).lines, *tacit.verify_log(folder, log))
    return [each.name for each in lines if not each.holds]


def test_the_digest_is_what_sha256sum_says(tmp_path: Path) -> None:
    folder = built(tmp_path / "dist")
    listed = (
        "LC_ALL=C; export LC_ALL; sha256sum $(printf '%s\\n' index.html page.js model/step.onnx | sort) | sha256sum"
    )
    found = subprocess.run(["sh", "-c", listed], cwd=folder, capture_output=True, text=True, check=True).stdout.split()
    assert found[0] == PageBundle.in_folder(folder).digest


def test_a_bundle_is_entered_once_and_verifies_by_each_form_of_the_log(tmp_path: Path) -> None:
    key = tmp_path / "keys" / "operator.key"
    key.parent.mkdir()
    made = tacit.publish(built(tmp_path / "dist"), key)
    folder = built(tmp_path / "dist", made.publisher)
    again = tacit.publish(folder, key)
    assert (made.index, made.size) == (again.index, again.size) == (0, 1) and made.publisher == again.publisher
    assert key.with_suffix(".log").read_text() == f"{bundle_entry(made.digest)}\n"
    assert f"bundle {made.digest}" in str(made) and made.to_record()["log"] == str(folder / "log.json")
    for log in (key.with_suffix(".log"), folder / "log.json"):
        assert failed(folder, log) == []
    assert made.digest in tacit.verify(folder).judgement


def test_it_goes_into_the_log_of_a_server_beside_its_plans(tmp_path: Path) -> None:
    key = OperatorKey.in_file(tmp_path / "operator.key")
    TransparencyLog(sqlite_store(tmp_path), key, tmp_path / "operator.log").append(PLAN)
    store = f"sqlite:///{next(tmp_path.glob('*.db'))}"
    made = tacit.publish(built(tmp_path / "dist", key.public), tmp_path / "operator.key", store=store)
    assert (made.index, made.size, made.publisher) == (1, 2, key.public)
    assert json.loads(made.log.read_text())["entries"] == [PLAN, bundle_entry(made.digest)]


def test_whatever_is_changed_is_found(tmp_path: Path) -> None:
    key = tmp_path / "operator.key"
    own = OperatorKey.in_file(key)
    folder = built(tmp_path / "dist", own.public)
    digest = tacit.publish(folder, key).digest
    log = folder / "log.json"
    other = OperatorKey(bytes(range(32)))
    for spoilt, name in (
        (shown_log(other, [bundle_entry(digest)]), "log.head"),
        (shown_log(own, [PLAN]), "log.entries"),
        (
            shown_log(own, [bundle_entry(digest)]).model_copy(update={"entries": (bundle_entry(digest), PLAN)}),
            "log.head",
        ),
    ):
        log.write_text(spoilt.to_json())
        assert failed(folder, log) == [name]
    log.write_text(shown_log(own, [bundle_entry(digest)]).to_json())
    for file in FILES:
        (folder / file).write_bytes(FILES[file] + b" ")
        assert failed(folder, log) == [f"bundle {file}"]
        (folder / file).unlink()
        assert (
            failed(folder, log) == [f"bundle {file}"] and "FAIL: this is not the page" in tacit.verify(folder).judgement
        )
        (folder / file).write_bytes(FILES[file])
    said = json.loads((folder / BUNDLE).read_text())
    said["files"]["page.js"] = said["files"]["index.html"]
    (folder / BUNDLE).write_text(json.dumps(said))
    assert failed(folder, log) == ["bundle digest", "bundle page.js"]


def test_what_was_not_built_for_the_key_is_not_entered_and_no_key_is_made(tmp_path: Path) -> None:
    key = tmp_path / "operator.key"
    with pytest.raises(InputError, match=r"was built for the log of abab.*is not there"):
        tacit.publish(built(tmp_path / "dist", "ab" * 32), key)
    folder = built(tmp_path / "changed")
    (folder / "page.js").write_text("another")
    with pytest.raises(InputError, match=r"bundle page\.js: it is another file"):
        tacit.publish(folder, key)
    assert not key.exists() and not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize(
    "said",
    [
        "[]",
        "{}",
        '{"digest": "ab", "files": {"a": "ab"}, "publisher": null}',
        json.dumps({"digest": "ab" * 32, "files": {}, "publisher": None}),
        json.dumps({"digest": "ab" * 32, "files": {"../a": "ab" * 32}, "publisher": None}),
        json.dumps({"digest": "ab" * 32, "files": {"/etc/passwd": "ab" * 32}, "publisher": None}),
        json.dumps({"digest": "ab" * 32, "files": {"a": 3}, "publisher": None}),
        json.dumps({"digest": "ab" * 32, "files": {"a": "ab" * 32}, "publisher": 3}),
    ],
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, said: str) -> None:
    (tmp_path / BUNDLE).write_text(said)
    with pytest.raises(InputError, match=r"names no files of a page"):
        tacit.publish(tmp_path, tmp_path / "operator.key")
    with pytest.raises(InputError, match=r"names no files of a page"):
        tacit.verify(tmp_path)


def test_a_page_has_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave --run out"):
        tacit.verify(built(tmp_path / "dist"), run=tmp_path)
