"""`tacit.account_run` and `tacit.statement`: what a run of any kind promises, from its folder alone."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.journals import rewrite_each
from tests.support.made_runs import training_metadata, write_run
from tests.support.statements.releases import LAYERS, counted, noised

from tacit.errors import AccountingError, InputError, RunError, UnknownRelease
from tacit.jobs.account.run import account_run
from tacit.jobs.statement import statement, verify
from tacit.privacy import Tree
from tacit.privacy.composition import Composition
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.rounding import rounded_up
from tacit.records import to_plain
from tacit.runs import Run, StepEntry
from tacit.runs.metadata import (
    CacheUsed,
    DiscoveryMetadata,
    EvaluationMetadata,
    Metadata,
    PersonalizationMetadata,
    PretrainingMetadata,
    TuningMetadata,
)
from tacit.statements import EvaluationFacts, NoisedSum
from tacit.statements.ledger import Release

COMMON: dict[str, Any] = {"versions": {"tacit": "0.1.0"}, "created": 1.8e9, "key_source": "operating system"}
ASKED = {"source": "novels", "asked": 40, "delta": 1e-6}
ONE_MODEL = """
[data]
path = "/caches/novels"
sha256 = "cd"
split = "test"
"""
MODELS = '[[models]]\npath = "/runs/letters"\nsha256 = "ab12ab12ab12ab12ab12"\n' + ONE_MODEL
PERSONAL = 'strategies = ["5 epochs at 0.1"]\n[model]\npath = "/runs/letters"\nsha256 = "ab12ab12ab12"\n' + ONE_MODEL


def made(
    path: Path, metadata: Metadata, settings: str, steps: list[tuple[tuple[Release, ...], range]], finished: bool = True
) -> Path:
    """A run folder with these releases by these clients, step by step."""
    with Run.create(path, settings, metadata, b"k" * 16) as run, run.locked():
        for at, (releases, clients) in enumerate(steps):
            step = StepEntry(step=at, file="f", digest="0" * 64, releases=to_plain(releases), measures={"loss": 1.0})
            run.commit(step, clients=np.array(clients), finished=float(at), seconds=1.0)
        if finished:
            run.finish()
    return path


def update(round: int, **changed: Any) -> NoisedSum:
    usual = NoisedSum(
        round=round,
        what="model update",
        strategy_record=Tree().to_record(),
        clip_norm=1.0,
        noise_multiplier=2.0,
        reports=5,
        dropped=0,
    )
    return replace(usual, **changed)


def trained_run(path: Path, rounds: int = 4, **changed: Any) -> Path:
    """Two groups of clients take turns: as planned."""
    promised = {"strategy": Tree().to_record(), "clip_norm": 1.0, "noise_multiplier": 2.0}
    steps = [((update(at, **changed),), range(5 * (at % 2), 5 * (at % 2) + 5)) for at in range(rounds)]
    return made(path, training_metadata(guarantee=promised, delta=1e-8), 'name = "made"\n', steps)


def test_a_run_that_trained(tmp_path: Path) -> None:
    path = trained_run(tmp_path / "run")
    found = account_run(path)
    assert found.planned is not None and isinstance(found.realised, Composition)
    assert found.realised.zcdp == found.planned.zcdp == found.to_record()["zcdp"]
    assert (found.delta, found.warnings) == (1e-8, ()) and found.to_record()["warnings"] == []
    (loud,) = account_run(path, delta=0.1).warnings
    assert loud.startswith("DELTA TOO LARGE: delta 0.1 is 1/10 or more: to publish all data of one of 10 clients")
    assert [each.rounds for each in found.spent] == [0, 1, 2, 3, 4]
    assert found.spent[-1].zcdp == found.realised.zcdp and found.spent[0].zcdp == 0
    stated = statement(path, delta=1e-7)
    assert stated.figures["realised"]["epsilon"] == account_run(path, delta=1e-7).realised.epsilon(1e-7)  # type: ignore[union-attr]
    assert verify(stated).holds


def test_a_statement_is_held_against_the_run_that_it_speaks_of(tmp_path: Path) -> None:
    path = trained_run(tmp_path / "run")
    found = verify(path)
    assert found.holds and found.statement is None and "it has no statement" in found.judgement
    file = path / "report" / "statement.json"
    file.write_text(statement(path).to_json())
    with Run.open(path) as run:
        run.keep_files("report")
    found = verify(path)
    assert found.holds and found.run == str(path) and "those of the run's ledger and log" in found.judgement
    other = trained_run(tmp_path / "other", rounds=2)
    shutil.copy(file, other / "report")
    assert verify(other / "report" / "statement.json").holds  # by itself it is consistent
    assert {"run.realised.rounds", "run.participations"} <= {line.name for line in verify(file, run=other).failed}
    assert verify(file, run=path).holds
    assert "file report/statement.json" in {line.name for line in verify(other).failed}, "another wrote it"
    path.rename(tmp_path / "moved")
    assert verify(tmp_path / "moved").holds
    rewrite_each(tmp_path / "moved", "step", lambda step: {**step, "finished": 9.0})  # with seals that fit
    assert {line.name for line in verify(tmp_path / "moved").failed} == {"run.seal"}


def test_files_that_were_written_are_held_against_what_the_run_recorded(tmp_path: Path) -> None:
    path = trained_run(tmp_path / "run")
    (path / "report" / "statement.json").write_text(statement(path).to_json())
    for name in ("weights", "words"):
        (path / "model" / name).write_text(name)
    with Run.open(path) as run, run.locked():
        run.keep_files("model", "report")
    assert {line.name for line in verify(path).lines} > {"file model/weights", "file report/statement.json"}
    assert verify(path).holds
    (path / "model" / "weights").write_text("others")
    (path / "model" / "words").unlink()
    found = {line.name: line.complaint for line in verify(path).failed}
    assert found.keys() == {"file model/weights", "file model/words"} and found["file model/words"] == "missing"


def test_clients_who_came_too_often_weaken_it(tmp_path: Path) -> None:
    promised = {"strategy": Tree().to_record(), "clip_norm": 1.0, "noise_multiplier": 2.0}
    path = made(
        tmp_path / "run",
        training_metadata(guarantee=promised, delta=1e-8, hooks={"sampler": "made.by:hand"}),
        "",
        [((update(at),), range(5)) for at in range(4)],
    )
    found = account_run(path)
    (loud,) = found.warnings
    assert loud.startswith("WEAKER THAN PLANNED: clients came")


def test_before_the_first_round_nothing_is_realised(tmp_path: Path) -> None:
    path = trained_run(tmp_path / "run", rounds=0)
    found = account_run(path)
    assert found.planned is not None and found.realised is None and len(found.spent) == 1
    assert found.to_record()["zcdp"] == 0
    with pytest.raises(AccountingError, match="do a first round"):
        statement(path)


def test_releases_that_nobody_asked_for_are_refused(tmp_path: Path) -> None:
    for name, strangers in {"other": {"what": "gaussian sum: words"}, "foreign": {"what": "secret"}}.items():
        path = trained_run(tmp_path / name, **strangers)
        with pytest.raises(UnknownRelease):
            account_run(path)
        with pytest.raises(UnknownRelease):
            statement(path)


@pytest.mark.parametrize(("kind", "settings"), [(EvaluationMetadata, MODELS), (PersonalizationMetadata, PERSONAL)])
def test_an_evaluation_with_noise(tmp_path: Path, kind: type[EvaluationMetadata], settings: str) -> None:
    steps: list[Any] = [((noised(0, 11, 20),), range(20)), ((noised(1, 9, 20),), range(20, 40))]
    path = made(tmp_path / "run", kind(**COMMON, **ASKED), settings, steps)
    found = account_run(path)
    assert isinstance(found.realised, Composition)
    assert found.realised.zcdp == pytest.approx(1 / 18)  # each client is in one step
    assert [each.zcdp for each in found.spent] == pytest.approx([0, 1 / 18, 1 / 18])
    promise = found.to_record()["promise"]
    assert (promise["kind"], promise["steps"], promise["histograms"]) == ("central", 2, [11, 9])
    assert promise["epsilon"] == found.realised.epsilon(1e-6) and promise["delta"] == 1e-6
    stated = statement(path)
    assert isinstance(stated.facts, EvaluationFacts) and verify(stated).holds
    assert stated.facts.subjects[0].startswith("letters (SHA-256 of its weights ab12ab12ab12")
    assert account_run(path, delta=1e-4).to_record()["promise"]["delta"] == 1e-4


def test_an_evaluation_by_local_reports(tmp_path: Path) -> None:
    steps: list[Any] = [((counted(1, 21, 0), counted(2, 19, 21)), range(40))]
    path = made(tmp_path / "run", EvaluationMetadata(**COMMON, **{**ASKED, "delta": 0.0}), MODELS, steps)
    found = account_run(path)
    assert isinstance(found.realised, LocalGuarantee) and found.realised.user_epsilon == 2.0
    assert found.spent == () and found.to_record()["promise"]["epsilon"] == 2.0
    stated = statement(path, delta=1e-4)  # local reports are promised their epsilon at delta 0
    assert verify(stated).holds and stated.figures["delta"] == 0.0


def test_a_client_who_reported_twice_has_no_local_guarantee(tmp_path: Path) -> None:
    steps: list[Any] = [((counted(1, 40, 0),), range(40)), ((counted(1, 40, 40, turn=2),), range(40))]
    path = made(tmp_path / "run", EvaluationMetadata(**COMMON, **{**ASKED, "delta": 0.0}), MODELS, steps)
    with pytest.raises(AccountingError, match="asked in 2 rounds"):
        account_run(path)


def test_an_evaluation_that_released_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "run", EvaluationMetadata(**COMMON, **ASKED), MODELS, [])
    assert account_run(path).realised is None and account_run(path).to_record()["promise"] == {"kind": "nothing"}
    with pytest.raises(AccountingError, match="released nothing"):
        statement(path)


def test_a_run_that_found_words(tmp_path: Path) -> None:
    asked = 'resample_users = false\n[reports]\nsampler = "random"\n'
    metadata = DiscoveryMetadata(
        **COMMON,
        assignment=3,
        delta=1e-8,
        population=9000,
        data=None,
        vocabulary=None,
        vocabulary_kind="public",
        vocabulary_description="a public list",
    )
    path = made(tmp_path / "run", metadata, asked, [((each,), range(0)) for each in LAYERS])
    found = account_run(path)
    assert isinstance(found.realised, LocalGuarantee) and found.spent == ()
    assert found.realised.central_delta == found.delta == 1e-8
    assert found.to_record()["guarantee"]["local_epsilon_user"] == 8.0
    stated = statement(path)
    assert verify(stated).holds and stated.figures["users"] == 8500
    assert statement(path, delta=1e-6).figures["guarantee"]["central_delta"] == 1e-6
    assert account_run(made(tmp_path / "none", metadata, asked, [])).realised is None


def test_kinds_of_run_that_promise_nothing_say_so(tmp_path: Path) -> None:
    data = CacheUsed(cache="c", source="s", vocabulary_sha256="a", vocabulary_size=3, clients=5, cache_digest="d")
    pretrained = made(tmp_path / "p", PretrainingMetadata(**COMMON, data=data, parameters=3), "", [])
    tuned = made(tmp_path / "t", TuningMetadata(**COMMON), "", [])
    for path, says in ((pretrained, "public text"), (tuned, "name one of them")):
        with pytest.raises(InputError, match=says):
            account_run(path)
        with pytest.raises(InputError, match=says):
            statement(path)


def test_what_is_no_run_or_no_delta_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no run folder"):
        account_run(tmp_path)
    with pytest.raises(InputError, match="not a probability"):
        account_run(trained_run(tmp_path / "run"), delta=1.0)


def test_a_notebook_shows_planned_beside_realised(tmp_path: Path) -> None:
    made = account_run(write_run(tmp_path / "run", strategy=Tree(), separation=2))
    page = made._repr_html_()
    assert made.planned is not None and made.realised is not None
    assert f"<th>zCDP</th><td>{rounded_up(made.planned.zcdp, 6)}</td>" in page and "<th>realised</th>" in page
    assert "<th>min separation (MinS + 1)</th><td>" in page
