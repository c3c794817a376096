"""`tacit personalize` end to end on a tiny population: what it writes, that it resumes, and what it refuses."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.evaluation.typists import typists_and_model
from tests.training.tiny import WORDS, tiny_cache
from typer.testing import CliRunner

from tacit import cli
from tacit.cli.personalize import personalize
from tacit.jobs import personalize as personalize_work
from tacit.privacy.participation import Participation
from tacit.runs import Run
from tacit.statements.ledger import Ledger, release_from

app = typer.Typer()
app.command()(personalize)

GRID = ("--batch-size", "5", "--learning-rate", "0.1,1.0", "--workers", "1", "--seed", "3")
GATED = (*GRID, "--gate", "auto", "--token-buckets", "100", "--epsilon", "20")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return typists_and_model(tmp_path_factory.mktemp("world"))


def run(world: tuple[Path, Path], out: Path, *options: str, fails: bool = False) -> Any:
    cache, model = world
    result = CliRunner().invoke(app, [str(model), "--data", str(cache), "--out", str(out), *options])
    assert result.exit_code == (2 if fails else 0), result.output
    if fails:
        return result.output.replace("\n", " ")
    return json.loads(result.stdout) if "--json" in options else result.output


@pytest.fixture(scope="module")
def gated(world: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    out = tmp_path_factory.mktemp("runs") / "gated"
    return out, run(world, out, *GATED, "--json")


def test_people_with_habits_gain_and_are_counted(gated: tuple[Path, Any]) -> None:
    _, found = gated
    exact = found["simulation_only"]
    assert (found["asked"], exact["evaluated"], sum(exact["skipped"].values())) == (40, 36, 4)
    assert exact["strategies"]["B=5, L=1"]["top1_accuracy"]["mean"][0] > 0.05
    assert [each["name"] for each in exact["policies"]] == [
        "one strategy",
        "one strategy, gate",
        "strategy by tokens",
        "strategy by tokens, gate",
    ]
    assert exact["policies"][0]["users"] == 18 or 16 <= exact["policies"][0]["users"] <= 20


def test_the_ledger_holds_the_release_and_nothing_else_pays(gated: tuple[Path, Any]) -> None:
    out, found = gated
    with Run.open(out) as opened:
        rows = opened.steps()
        rounds, clients = opened.participations()
        assert opened.finished and not (out / "noise.key").exists()
    ledger = Ledger(tuple(release_from(row.releases[0]) for row in rows))
    once = Participation.realised(2, rounds, clients)
    assert (once.max_participations, once.min_separation) == (1, 2)
    promise = found["promise"]
    assert ledger.composition(once).zcdp == promise["zcdp"]
    assert promise["epsilon"] == pytest.approx(20.0) and promise["delta"] == 1e-6
    # two strategies: 1 + 2 x 2 slices, and 2 x 3 gates for the designers; 1 + 4 and 4 policies for the others
    assert promise["histograms"] == [11, 9]
    assert {row.reports for row in ledger.noised_sums} == {20}


def test_the_page_tells_released_from_simulated(gated: tuple[Path, Any]) -> None:
    out, _ = gated
    page = (out / "report" / "report.md").read_text()
    released, simulated = page.split("## SIMULATION ONLY")
    assert "FIXED SEED" in released and "zCDP" in released and "simulation.png" not in released
    assert "released.png" not in simulated and "exact numbers of simulated users" in simulated
    assert "left out: 4: " in simulated
    for name in ("figure-2", "figure-3a", "figure-3b"):
        assert (out / "report" / f"{name}-released.png").exists() and f"{name}-simulation.png" in simulated


def numbers_in(page: str) -> set[str]:
    return set(re.findall(r"\d\.\d{3,}", page))


def test_what_may_be_published_holds_nothing_exact(gated: tuple[Path, Any]) -> None:
    out, found = gated
    page, record = ((out / "report" / f"released.{end}").read_text() for end in ("md", "json"))
    released, simulated = (out / "report" / "report.md").read_text().split("## SIMULATION ONLY")
    assert page.strip() == released.strip() and "SIMULATION" not in page and "evaluated" not in page + record
    assert numbers_in(simulated) - numbers_in(released), "there are exact numbers to keep out"
    assert json.loads(record) == {
        name: value for name, value in found.items() if name not in ("run", "report", "simulation_only")
    }
    assert not {"evaluated", "skipped"} & json.loads(record).keys()


def test_a_fixed_seed_is_said_at_once(world: tuple[Path, Path], gated: tuple[Path, Any]) -> None:
    said = run(world, gated[0], *GATED)
    assert "FIXED SEED: randomness came from fixed seed 3; who knows it can take the noise away" in said


@pytest.mark.parametrize("price", ["--epsilon", "--local-epsilon"])
def test_a_release_that_was_changed_is_not_reported(world: tuple[Path, Path], tmp_path: Path, price: str) -> None:
    options = (*GRID, "--clients", "12", price, "8")
    run(world, tmp_path / "r", *options)
    file = tmp_path / "r" / "steps" / "release-000000.json"
    rows = json.loads(file.read_text())
    next(iter(rows.values()))["counts"][0] = 9999
    file.write_text(json.dumps(rows))
    assert "is not what was released" in run(world, tmp_path / "r", *options, fails=True)
    file.unlink()
    assert "does not hold what the ledger says" in run(world, tmp_path / "r", *options, fails=True)


def test_fine_tuning_that_diverges_everywhere_is_a_loss_and_no_crash(world: tuple[Path, Path], tmp_path: Path) -> None:
    options = ("--batch-size", "5", "--workers", "1", "--metrics", "top1_accuracy,cross_entropy", "--epsilon", "50")
    found = run(world, tmp_path / "r", *options, "--learning-rate", "1.0,1e30", "--seed", "1", "--json")
    lost = found["simulation_only"]["strategies"]["B=5, L=1e+30"]
    assert lost["cross_entropy"]["mean"] == [None, "-inf", "inf"] and lost["cross_entropy"]["diverged"] == 36
    assert lost["cross_entropy"]["losing"]["0.0"][0] == 1.0 and lost["top1_accuracy"]["mean"][0] < 0
    won, told = (found[part]["strategies"]["B=5, L=1"] for part in ("simulation_only", "released"))
    assert won["cross_entropy"]["mean"][1] > 0.05 and told["cross_entropy"]["mean"][1] > 0, "gains are positive in both"
    assert not (tmp_path / "r" / "noise.key").exists()
    run(world, tmp_path / "s", *options, "--learning-rate", "1e30")


def test_commands_for_runs_that_train_name_the_right_one(gated: tuple[Path, Any]) -> None:
    out, found = gated

    def said(*command: str, code: int = 2) -> str:
        result = CliRunner().invoke(cli.app, [*command])
        assert result.exit_code == code, result.output
        return result.output.replace("\n", " ")

    for command in (("report", str(out)), ("compare", str(out), str(out)), ("resume", str(out))):
        assert "is a run of `tacit personalize`, which trains nothing; " in said(*command)
    assert "the same `tacit personalize` writes again" in said("report", str(out))
    assert f"--out {out}" in said("resume", str(out)) and "tacit evaluate A B" in said("compare", str(out), str(out))
    account = json.loads(said("account", "run", str(out), "--json", code=0))
    assert account["promise"] == found["promise"] and account["of"] == "personalization"
    assert "step 2: 9 histograms" in said("account", "run", str(out), code=0)


def what_was_found(out: Path) -> tuple[str, str, list[dict[str, Any]]]:
    report = (out / "report" / "report.json").read_text().replace(str(out), "RUN")
    with Run.open(out) as opened:
        return report, opened.settings, [dict(row.releases[0]) for row in opened.steps()]


@pytest.mark.parametrize("killed_after", ["clients", "torn line", "file of the release", "first ledger row"])
def test_a_killed_run_goes_on_to_the_same_result(
    world: tuple[Path, Path],
    gated: tuple[Path, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed_after: str,
) -> None:
    whole, _ = gated
    out = tmp_path / "cut"
    lines = (whole / personalize_work.OUTCOMES).read_bytes().splitlines(keepends=True)
    with monkeypatch.context() as patch:

        def die(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        if killed_after in ("clients", "torn line"):
            patch.setattr(personalize_work, "personalize_clients", die)
        elif killed_after == "file of the release":
            patch.setattr(personalize_work.Run, "commit", die)
        else:
            patch.setattr("tacit.jobs.personalize.write_report", die)
        CliRunner().invoke(app, [str(world[1]), "--data", str(world[0]), "--out", str(out), *GATED])
    if killed_after in ("clients", "torn line"):
        rest = b"".join(lines[:7]) + (lines[7][:20] if killed_after == "torn line" else b"")
        (out / personalize_work.OUTCOMES).parent.mkdir(exist_ok=True)
        (out / personalize_work.OUTCOMES).write_bytes(rest)
    run(world, out, *GATED)
    assert what_was_found(out) == what_was_found(whole)


def test_a_finished_run_releases_nothing_again(world: tuple[Path, Path], gated: tuple[Path, Any]) -> None:
    out, found = gated
    before = what_was_found(out)
    assert run(world, out, *GATED, "--json")["released"] == found["released"]
    assert what_was_found(out) == before


def test_other_settings_are_named_and_refused(world: tuple[Path, Path], gated: tuple[Path, Any]) -> None:
    out, _ = gated
    options = [option if option != "0.1,1.0" else "0.1,2.0" for option in GATED]
    complaint = run(world, out, *options, fails=True)
    assert "other settings (" in complaint and "B=5, L=2" in complaint
    assert "gate" in run(world, out, *GATED, "--gate-share", "0.3", fails=True)
    nearly = [option if option != "0.1,1.0" else "0.1000001,1.0" for option in GATED]
    assert "L=0.1000001" in run(world, out, *nearly, fails=True)


def test_without_a_price_nothing_is_released(world: tuple[Path, Path], tmp_path: Path) -> None:
    said = run(world, tmp_path / "r", *GRID, "--clients", "12")
    assert "NOTHING WAS RELEASED" in said and "SIMULATION ONLY: best" in said
    assert "SIMULATION ONLY: " in said and "clients evaluated" in said
    page = (tmp_path / "r" / "report" / "report.md").read_text()
    assert "NOTHING WAS RELEASED" in page and not list((tmp_path / "r" / "report").glob("*released*"))
    with Run.open(tmp_path / "r") as opened:
        assert opened.steps_done == 0


def test_devices_may_randomise_their_own_reports(world: tuple[Path, Path], tmp_path: Path) -> None:
    found = run(world, tmp_path / "r", *GRID, "--local-epsilon", "6", "--slices", "", "--json")
    assert found["promise"] == {
        "kind": "local",
        "unit": "client",
        "adjacency": "zero-out",
        "key_source": "fixed seed 3",
        "epsilon": 6.0,
        "delta": 0.0,
    }
    counts = [each["asked"] for each in found["released"]["joint_counts"].values()]
    assert sum(counts) < 40, "each device answers one question"
    sliced = run(world, tmp_path / "s", *GRID, "--local-epsilon", "20", "--slices", "tokens", "--json")
    parts = sliced["released"]["by_slice"]["tokens"]["strategies"]["B=5, L=1"]
    assert 20 < sum(part["users"] for part in parts) < 60, "users of all that were asked"
    with Run.open(tmp_path / "r") as opened:
        assert opened.steps_done == 0, "the ledger holds what an aggregator noised"


def test_a_model_of_other_words_is_refused(world: tuple[Path, Path], tmp_path: Path) -> None:
    _, other = typists_and_model(tmp_path, 4, [*WORDS[:-1], "elsewhere"])
    complaint = run((world[0], other), tmp_path / "r", *GRID, fails=True)
    assert "the same ids would stand for different words" in complaint
    assert not (tmp_path / "r").exists()


def test_text_without_times_is_left_out_and_said_so(world: tuple[Path, Path], tmp_path: Path) -> None:
    cache, model = tiny_cache(tmp_path / "untimed", {"train": 1, "validation": 1, "test": 40}).path, world[1]
    complaint = run((cache, model), tmp_path / "r", *GRID, fails=True)
    assert "40: no sentence has a time" in complaint and "--undated" in complaint
    found = run((cache, model), tmp_path / "s", *GRID, "--undated", "order", "--json")
    assert found["simulation_only"]["evaluated"] > 20 and found["simulation_only"]["undated_sentences"] == 0


@pytest.mark.long
def test_kill_nine_at_any_instant_changes_nothing(world: tuple[Path, Path], tmp_path: Path) -> None:
    cache, model = world
    options = [str(model), "--data", str(cache), *GATED, "--max-tokens", "200", "--json"]
    program = "import sys, typer; from tacit.cli.personalize import personalize; typer.run(personalize)"

    def begin(out: Path) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", program, *options, "--out", str(out)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    assert begin(tmp_path / "whole").wait() == 0
    out, kills = tmp_path / "cut", 0
    lines = out / personalize_work.OUTCOMES
    for least in (1, 14, 33):
        process = begin(out)
        while process.poll() is None and not (lines.exists() and lines.read_bytes().count(b"\n") >= least):
            time.sleep(0.002)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert begin(out).wait() == 0
    assert kills and what_was_found(out) == what_was_found(tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--token-buckets", "2000,1000"), "do not increase"),
        (("--delta-buckets", "0.1"), "cannot be read"),
        (("--delta-buckets", "0.1:0.0:0.01"), "no cuts"),
        (("--delta-buckets", "-0.1:0.2:0.03"), "no cut at 0"),
        (("--batch-size", "5,x"), "'x' is no whole number"),
        (("--learning-rate", "-1"), "must be a positive number"),
        (("--gate", "2"), "must be in"),
        (("--gate", "auto", "--gate-share", "0"), "nothing to look at"),
        (("--gate", "auto", "--slices", "baseline"), "goes by train tokens"),
        (("--slices", "country"), "'country' is unknown"),
        (("--zcdp", "1", "--epsilon", "1"), "each say the whole price"),
        (("--epsilon", "1", "--delta", "5"), "--delta 5 is not a probability"),
        (("--epsilon", "0"), "releases nothing or promises nothing"),
        (("--clients", "1"), "are the fewest that say"),
        (("--split", "weekday:3"), "is unknown"),
        (("--undated", "guess"), "choose drop or order"),
        (("--harm-weight", "-1"), "must be 0 or more"),
        (("--layers", "most"), "choose of all, output, biases, recurrent, embeddings"),
        (("--batch-size", "5,5"), "names a strategy twice"),
    ],
)
def test_bad_input_is_one_line(
    world: tuple[Path, Path], tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    said = run(world, tmp_path / "r", "--workers", "1", *options, fails=True)
    assert complaint in said and "Traceback" not in said
    assert not (tmp_path / "r").exists()
