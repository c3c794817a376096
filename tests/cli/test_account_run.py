"""`tacit account run` of folders that no training made, and the commands that a statement gives."""

import shlex
from pathlib import Path

import pytest
from tests.cli.of_runs import invoke, values_of
from tests.support.journals import rewrite_each
from tests.support.made_runs import RUNS, SEPARATION, write_adaptive_run, write_run

from tacit.errors import AccountingError
from tacit.privacy import Guarantee, Participation, Tree
from tacit.runs import Run
from tacit.statements.run_facts import statement_of


def test_a_broken_promise_is_said_where_a_run_is_accounted(tmp_path: Path) -> None:
    broken, kept = (
        invoke("account", "run", write_run(tmp_path / kind, **RUNS[kind])) for kind in ("broken promise", "tree")
    )
    assert broken.exit_code == kept.exit_code == 0
    assert "WEAKER THAN PLANNED: clients came more often or sooner than planned" in broken.stderr
    assert "WEAKER" not in kept.output


@pytest.mark.parametrize("kind", [kind for kind in RUNS if "empty" not in kind])
def test_the_commands_of_the_statement_work_when_pasted_beside_the_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_run(tmp_path / "a run", **RUNS[kind])
    with Run.open(path) as run:
        stated = statement_of(run)
    verifiability = next(item.text for item in stated.items if item.number == "3d")
    commands = [line.strip() for line in verifiability.splitlines() if line.startswith("    ")]
    assert commands[0].startswith("tacit account run ")
    assert str(tmp_path) not in stated.to_json()  # it is published
    figures = []
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "tacit"
        figures.append(values_of(*words))
    planned, realised = stated.figures["planned"], stated.figures["realised"]
    for name in ("zcdp", "epsilon"):
        assert figures[0]["realised"][name] == figures[0][name] == realised[name]
        assert figures[0]["planned"][name] == planned[name]
        if planned[name] != "inf":
            assert figures[1][name] == planned[name]
            assert figures[-1][name] == realised[name]


def test_account_run_measures_what_happened(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), separation=2)
    (path / "settings.toml").unlink()  # the ledger, the log and the facts are enough
    shown = values_of("account", "run", path, "--delta", "1e-6")
    assert (shown["planned"]["rounds_between"], shown["planned"]["max_participations"]) == (4, 4)
    assert (shown["realised"]["rounds_between"], shown["realised"]["max_participations"]) == (1, 10)
    assert shown["delta"] == shown["realised"]["delta"] == 1e-6
    assert shown["zcdp"] == shown["realised"]["zcdp"] > shown["planned"]["zcdp"]
    assert shown["released_rounds"] == 20
    text = invoke("account", "run", path).stdout
    assert "planned" in text and "realised" in text and "20 of 20 rounds" in text


def test_account_run_of_nothing_and_of_no_noise(tmp_path: Path) -> None:
    empty = values_of("account", "run", write_run(tmp_path / "empty", strategy=Tree(), done=0))
    assert (empty["released_rounds"], empty["zcdp"], empty["epsilon"], empty["realised"]) == (0, 0, 0, None)
    bare = write_run(tmp_path / "bare", strategy=None)
    assert values_of("account", "run", bare)["zcdp"] == "inf"
    assert "NON-PRIVATE" in invoke("account", "run", bare).stdout
    with Run.open(tmp_path / "empty") as run, pytest.raises(AccountingError, match="released no round"):
        statement_of(run)


def test_what_is_extrapolated_stands_apart(tmp_path: Path) -> None:
    """13 times the cohort at the same noise on the mean has 1/169 of the zCDP."""
    path = write_run(tmp_path / "run", strategy=Tree(), extrapolate_to=52)
    shown = values_of("account", "run", path)
    larger = shown["extrapolated"]
    assert larger["report_goal"] == 52
    assert larger["realised"]["zcdp"] == pytest.approx(shown["zcdp"] / 169)
    assert "EXTRAPOLATED, not a guarantee of this run" in invoke("account", "run", path).stdout


def test_the_cost_of_adaptive_clipping_is_in_every_figure(tmp_path: Path) -> None:
    path = write_adaptive_run(tmp_path / "run", extrapolate_to=52)
    served = Participation.worst_case(20, SEPARATION)
    updates, counts = (
        Guarantee(participation=served, strategy=Tree(restarts=(8,)), clip_norm=1.0, noise_multiplier=noise).zcdp
        for noise in (6.0, 8.0)
    )
    rho = updates + counts
    figures = values_of("account", "run", path)
    assert figures["zcdp"] == figures["planned"]["zcdp"] == figures["realised"]["zcdp"] == pytest.approx(rho)
    assert [each["zcdp"] for each in figures["realised"]["sequences"]] == pytest.approx([updates, counts])
    assert (figures["planned"]["clip_norm"], figures["realised"]["clip_norm"]) == (1.0, 2.5)
    assert figures["extrapolated"]["realised"]["zcdp"] == pytest.approx(rho / 13**2)
    assert "zcdp, clip estimate alone" in invoke("account", "run", path).stdout


def test_a_release_that_was_not_asked_for_is_not_accounted(tmp_path: Path) -> None:
    path = write_adaptive_run(tmp_path / "run")
    rewrite_each(path, "begun", lambda record: {**record, "metadata": {**record["metadata"], "also_released": {}}})
    result = invoke("account", "run", path)
    assert result.exit_code == 2 and "was asked to release ['model update']" in result.stderr
