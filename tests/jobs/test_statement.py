"""`tacit.verify`: a statement from a file, as a record or as a value; every line that does not follow is named."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import InputError
from tacit.jobs.statement import verify
from tacit.privacy import Guarantee, Participation, Tree
from tacit.statements import TrainingFacts
from tacit.statements.statement import checksum, statement

PLAN = Participation(rounds=100, min_separation=20, max_participations=4)
PROMISE = Guarantee(participation=PLAN, strategy=Tree(), clip_norm=1.0, noise_multiplier=3.0)
STATED = statement(
    TrainingFacts(
        planned=PROMISE,
        realised=PROMISE,
        delta=1e-8,
        population=1000,
        report_goal=10,
        participations=1000,
        cohort_rule="drawn at random",
        vocabulary_kind="public",
        vocabulary_description="public words",
        released="the final model",
        looked_at=(),
        verify_command="tacit account run runs/a",
    )
)


def test_a_file_a_record_and_a_value_verify_alike(tmp_path: Path) -> None:
    path = tmp_path / "statement.json"
    path.write_text(STATED.to_json())
    of_file, of_record, of_value = verify(path), verify(STATED.to_record()), verify(STATED)
    assert of_file.holds and of_file.lines == of_record.lines == of_value.lines
    assert of_file.statement == str(path) and of_value.statement is None
    assert verify(str(path)) == of_file
    record = {
        "schema": "tacit.verification",
        "version": 1,
        "statement": str(path),
        "run": None,
        "verified": True,
        "checked": len(of_file.lines),
        "failed": [],
        "labels": [],
        "promise": None,
        "bundle": None,
    }
    assert of_file.to_record() == record == json.loads(json.dumps(record))
    assert "Whether the facts are true is not checked" in of_file._repr_html_()


def test_a_change_by_hand_is_named() -> None:
    found = verify({**STATED.to_record(), "key_source": "the <clock>"})
    assert not found.holds and [line.name for line in found.failed] == ["key_source"]
    assert found.to_record()["failed"][0]["complaint"].startswith("stated 'the <clock>'")
    assert "1 of " in found._repr_html_() and "&lt;clock&gt;" in found._repr_html_()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "there is no statement"),
        ("{", "is not JSON"),
        ("[1]", "no statement of the format"),
        ('{"format": "tacit statement 99"}', "but 'tacit statement 99'"),
        ('{"format": "tacit statement 1"}', "lacks its facts"),
        ('{"format": "tacit statement 1", "format": "tacit statement 1"}', "key 'format' twice"),
        ('{"format": "tacit statement 1", "delta": NaN}', "no finite number"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "statement.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        verify(path)


def test_54_participations_of_40_clients_at_maxp_1_are_no_statement() -> None:
    once = Participation(rounds=6, min_separation=6, max_participations=1)
    promise = Guarantee(participation=once, strategy=Tree(), clip_norm=1.0, noise_multiplier=3.0)
    facts = replace(STATED.facts, planned=promise, realised=promise, report_goal=9, population=54, participations=54)
    record = json.loads(statement(facts).to_json())
    assert verify(record).holds
    record["facts"]["population"] = 40
    record["checksums"]["population"] = checksum("population", 40)
    (failed,) = verify(record).failed
    assert "54 participations of 40 clients are more than 1 of some client" in (failed.complaint or "")


def test_a_folder_is_no_statement(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder; it holds no run, and no report/statement\.json"):
        verify(tmp_path)
    (tmp_path / "report").mkdir()
    published = tmp_path / "report" / "statement.json"
    published.write_text(STATED.to_json())
    for folder in (tmp_path, published.parent):
        with pytest.raises(InputError, match=f"is a folder; name the statement in it, {published}"):
            verify(folder)


def test_another_page_of_a_report_is_told_what_a_statement_is_called() -> None:
    with pytest.raises(InputError, match=r"but None; a statement is called statement\.json"):
        verify({"schema": "tacit.report"})


def test_labels_are_said_beside_that_all_lines_hold() -> None:
    seeded = statement(replace(STATED.facts, key_source="fixed seed 7"))
    found = verify(seeded)
    assert found.holds and found.labels == ("FIXED SEED",)
    assert (
        found.judgement.endswith("It is labelled FIXED SEED.") and repr(found) == f"Verification({found.judgement!r})"
    )
    assert "labelled" not in verify(STATED).judgement
    assert len(repr(seeded)) < 300  # a terminal's page, not all that is stated


def test_accounts_and_statements_need_no_accelerator() -> None:
    heavy = "{'jax', 'numba', 'optax', 'torch', 'matplotlib'}"
    code = f"import sys, tacit.jobs.account.job, tacit.jobs.statement; assert not {heavy} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
