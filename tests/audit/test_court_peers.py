"""Peers' code in environments of its own: who is there, what a script may say, and what is refused."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.audit.court import environments
from tacit.audit.court.environments import PEERS, SCRIPTS, Peer, install_peer, interpreter_of, run_peer
from tacit.audit.court.job import audit_court
from tacit.audit.court.verdict import PEER
from tacit.errors import InputError

CASE = {
    "case": "known",
    "subject": "a sum",
    "threat_model": "it is seen",
    "measure": "mu",
    "law": "normal",
    "claim": 1.0,
    "absent": [0.0, 0.5, -0.5] * 100,
    "present": [9.0, 9.5, 8.5] * 100,
}
WRITES = "import json, sys\nsettings = json.load(sys.stdin)\njson.dump({said!r}, open(settings['out'], 'w'))\n"
Made = Callable[..., Path]


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Makes one peer, `made`, of a script's text, in the folder of environments that comes back."""

    def make(script: str, known: dict[str, str] | None = None) -> Path:
        (tmp_path / "scripts").mkdir()
        (tmp_path / "scripts" / "made.py").write_text(script)
        monkeypatch.setattr(environments, "SCRIPTS", tmp_path / "scripts")
        monkeypatch.setattr(environments, "PEERS", {"made": Peer("made", ("made==1",), known or {})})
        monkeypatch.setattr("tacit.audit.court.job.PEERS", environments.PEERS)
        python = tmp_path / "envs" / "made" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        return tmp_path / "envs"

    return make


def said(**changes: object) -> str:
    return WRITES.format(said={"package": "made 1", "cases": [{**CASE, **changes}]})


@pytest.mark.parametrize("known", ["", "https://github.com/somebody/made/issues/1"])
def test_a_broken_promise_is_an_alarm_unless_its_own_thread_says_so(peer: Made, known: str) -> None:
    folder = peer(said(), {"known": known})
    found = audit_court(peers=["made"], environments=folder)
    assert [each.subject for each in found.of(PEER)] == ["made 1: a sum"] and found.of(PEER)[0].broken
    assert found.as_expected == bool(known)
    assert ("broken, as known" if known else "BROKEN: made 1: a sum") in " ".join(str(found).split())


def test_a_kept_promise_and_none_at_all_are_no_alarm(peer: Made) -> None:
    cases = [{**CASE, "claim": 20.0}, {**CASE, "claim": None}]
    folder = peer(WRITES.format(said={"package": "made 1", "cases": cases}))
    found = audit_court(peers=["made"], environments=folder)
    assert found.as_expected and [each.broken for each in found.of(PEER)] == [False, False]
    assert json.loads(json.dumps(found.to_record()))["findings"][-1]["claim"] is None


def test_an_account_is_held_to_the_exact_curve(peer: Made) -> None:
    exact = {"measure": "epsilon", "law": "exact", "delta": 1e-5, "mu": 1.0}
    folder = peer(WRITES.format(said={"cases": [{**CASE, **exact, "claim": claim} for claim in (4.37, 4.38)]}))
    assert [each.broken for each in audit_court(peers=["made"], environments=folder).of(PEER)] == [True, False]


def test_a_peer_that_is_not_installed_is_listed_and_not_skipped(tmp_path: Path) -> None:
    found = audit_court(peers=["opendp"], environments=tmp_path)
    assert set(found.not_installed) == {"opendp"} and not found.of(PEER)
    assert "Not installed: opendp. `tacit audit court --install opendp" in " ".join(str(found).split())


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("raise ValueError('no such thing')", "fails: ValueError: no such thing"),
        ("pass", "named no cases"),
        (WRITES.format(said=[1]), "named no cases"),
        (said(measure="nu"), "has the measure 'nu'"),
        (said(present=["x"]), "present are no numbers"),
        (said(delta="x"), "cannot be read"),
        (WRITES.format(said={"cases": [{"case": "a"}]}), "cannot be read (KeyError('measure'))"),
        ("print('x' * 5); import time; time.sleep(60)", "did not end within 1 s"),
    ],
)
def test_a_script_that_fails_or_says_something_else_is_refused(
    peer: Made, monkeypatch: pytest.MonkeyPatch, script: str, complaint: str
) -> None:
    folder = peer(script)
    monkeypatch.setattr(environments, "PATIENCE", 1.0 if "sleep" in script else 60.0)
    with pytest.raises(InputError) as refused:
        run_peer("made", folder, 0)
    assert complaint in str(refused.value)


def test_names_and_folders_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no peer; give some of dp-accounting"):
        audit_court(peers=["nobody"], environments=tmp_path)
    with pytest.raises(InputError, match="give --environments FOLDER"):
        audit_court(peers=["opendp"])
    with pytest.raises(InputError, match="none is named"):
        audit_court(environments=tmp_path)
    with pytest.raises(InputError, match="is negative"):
        audit_court(seed=-1)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="is a file"):
        audit_court(peers=["opendp"], environments=file)


def test_an_environment_is_made_of_what_the_peer_requires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the network: what would be called, in this order."""
    called: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        called.append(command)
        (tmp_path / "tf-privacy" / "bin").mkdir(parents=True, exist_ok=True)
        (tmp_path / "tf-privacy" / "bin" / "python").touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    install_peer("tf-privacy", tmp_path)
    assert called[0] == [sys.executable, "-m", "venv", str(tmp_path / "tf-privacy")]
    assert [each[1:] for each in called[1:]] == [
        ["-m", "pip", "install", "--quiet", "tensorflow-cpu==2.15.1"],
        ["-m", "pip", "install", "--quiet", "--no-deps", "tensorflow-privacy==0.9.0"],
    ]


def test_scripts_import_nothing_of_tacit_and_every_peer_has_one() -> None:
    for name, peer in PEERS.items():
        tree = ast.parse((SCRIPTS / f"{peer.script}.py").read_text())
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not any(each.startswith("tacit") for each in names), name
        assert all(source.startswith("https://github.com/") for source in peer.known.values())


@pytest.mark.long
def test_the_claims_of_dp_accounting_hold_but_near_order_one(tmp_path: Path) -> None:
    """The package is among those of tests, so this one peer needs no environment of its own."""
    python = tmp_path / "dp-accounting" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    assert interpreter_of("dp-accounting", tmp_path) == python
    found = audit_court(peers=["dp-accounting"], environments=tmp_path)
    assert found.as_expected
    assert [each.subject for each in found.of(PEER) if each.broken] == [found.of(PEER)[-1].subject]
    assert len(found.of(PEER)) == 7
