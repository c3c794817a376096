"""`tacit tune`: killed and continued it ends the same, a larger grid keeps what is done, failures are never chosen."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.training.tiny import CLIENTS, MECHANISMS, tiny_cache, tiny_toml, what_happened
from typer.testing import CliRunner, Result

from tacit.cli.tune import tune as command
from tacit.data import Cache
from tacit.errors import TrainingError
from tacit.jobs import training_run as trainer
from tacit.jobs import tune as tune_trials
from tacit.jobs.tune import existing_trials, outcome_of
from tacit.jobs.tune_recipes import TrialName
from tacit.planning.tuning import Setting
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.accounts import accounts_of

app = typer.Typer()
app.command()(command)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def finished(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tuning that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    result = tune(written(folder, cache), folder / "tuned", "1,2")
    assert result.exit_code == 0, result.output
    return folder / "tuned"


def written(folder: Path, cache: Cache, **sections: Any) -> Path:
    """A recipe for production on disk, its mechanism BLT noise."""
    path = folder / "tiny.toml"
    few = {"every": 8, "clients": 5, "test_clients": 2, "sentences": 8}
    limits = {"rounds": 8, "report_goal": 6, "min_separation": 3, **sections.pop("rounds", {})}
    given = {"privacy": MECHANISMS["blt"], "evaluation": few, "rounds": limits, **sections}
    path.write_text(tiny_toml(cache.path, **given), encoding="utf-8")
    return path


def tune(recipe: Path, out: Path, rates: str, *options: object) -> Result:
    arguments = [recipe, "--out", out, "--server-learning-rates", rates, "--workers", 1, "--json", *options]
    return CliRunner().invoke(app, [str(each) for each in arguments])


def refusal(result: Result) -> str:
    """The one line that the command refuses with."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def trial(rate: float) -> TrialName:
    return TrialName(setting=Setting(server_learning_rate=rate, quantile=0.5), number=1)


def all_runs(folder: Path) -> dict[str, Any]:
    return {str(name): what_happened(folder / "runs" / str(name)) for name in existing_trials(folder)}


# -- what goes well ----------------------------------------------------------------------------------------------------


def test_trials_are_ordinary_runs_and_the_rest_follows_from_them(finished: Path) -> None:
    assert [str(each) for each in existing_trials(finished)] == ["lr1-q0.5-try1", "lr2-q0.5-try1"]
    values = json.loads((finished / "tuning.json").read_text())
    rows = list(csv.DictReader((finished / "trials.csv").read_text().splitlines()))
    spent = 0.0
    for record, row in zip(values["trials"], rows, strict=True):
        run_folder = finished / "runs" / record["trial"]
        assert (run_folder / "report" / "report.html").is_file()
        with Run.open(run_folder) as run:
            assert run.finished
            (accuracy,) = [
                m.value for m in run.metrics() if (m.step, m.split, m.name) == (8, "validation", "top1_accuracy")
            ]
            realised = accounts_of(run).realised
            assert realised is not None and len(realised.sequences) == 2, "updates and counts, both paid for"
            assert record["zcdp"] == realised.zcdp
            spent += realised.zcdp
        assert record["top1_accuracy"] == float(row["top1_accuracy"]) == accuracy
        assert row["status"] == "finished"
    assert values["privacy_of_tuning"]["zcdp"] == pytest.approx(spent)
    best = max(values["trials"], key=lambda each: (each["top1_accuracy"], -each["server_learning_rate"]))
    assert values["chosen"]["server_learning_rate"] == best["server_learning_rate"]
    assert (finished / "tuning.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (finished / "tuning.svg").read_bytes()


def test_the_production_recipe_is_one_and_says_what_it_leaves_out(finished: Path) -> None:
    text = (finished / "production.toml").read_text()
    made = Recipe.load(finished / "production.toml")
    values = json.loads((finished / "tuning.json").read_text())
    assert made.rounds.report_goal == 6500 and made.clipping is None
    assert made.privacy.noise_multiplier == 0.3 * 6500 / 6 and made.privacy.mechanism_name == "blt-b400"
    assert made.privacy.clip_norm == values["chosen"]["clip_norm"]
    assert made.server.learning_rate == values["chosen"]["server_learning_rate"]
    comments = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    assert "privacy statement does not include that" in comments and "at least 19,500 clients" in comments
    assert "had their seed not been fixed" in comments
    production = values["production"]
    assert production["planned"]["zcdp"] == made.guarantee().zcdp
    together = production["with_trials_on_the_same_clients"]["zcdp"]
    assert together == pytest.approx(made.guarantee().zcdp + values["privacy_of_tuning"]["zcdp"])


def test_the_same_command_again_does_nothing_again(
    cache: Cache, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "tuned"))
    before = all_runs(copied)
    monkeypatch.setattr(trainer, "carry_on", lambda *_, **__: pytest.fail("nothing was left to do"))
    (copied / "production.toml").unlink()
    result = tune(written(tmp_path, cache), copied, "1,2", "--choose-by", "cross-entropy", "--large-report-goal", 60)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1 and result.stderr == ""
    assert all_runs(copied) == before
    assert Recipe.load(copied / "production.toml").privacy.noise_multiplier == 3.0


def test_what_is_public_is_excluded_in_the_users_words(cache: Cache, tmp_path: Path, finished: Path) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "tuned"))
    result = tune(written(tmp_path, cache), copied, "1,2", "--public", "novels of a library")
    assert result.exit_code == 0, result.output
    values = json.loads(result.stdout)
    assert values["production"]["with_trials_on_the_same_clients"] is None
    assert "excluded" in values["privacy_of_tuning"]["words"]
    comments = [line.lstrip("# ") for line in (copied / "production.toml").read_text().splitlines()]
    assert "novels of a library" in " ".join(comments)


def test_people_see_a_table_the_choice_and_the_price(cache: Cache, tmp_path: Path, finished: Path) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "tuned"))
    arguments = [written(tmp_path, cache), "--out", copied, "--server-learning-rates", "1,2", "--workers", 1]
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    for said in ("server rate", "chosen: server learning rate", "production: 6,500 reports", "The 2 trials cost zCDP"):
        assert said in result.stdout
    assert "trial 2/2 lr2-q0.5-try1: accuracy" in result.stderr


# -- killed, continued, extended ---------------------------------------------------------------------------------------


class Killed(BaseException):
    """What no code of ours catches."""


@pytest.mark.parametrize("when", ["between the trials", pytest.param("in the first trial", marks=pytest.mark.long)])
def test_killed_and_continued_it_ends_the_same(
    cache: Cache, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    recipe, real = written(tmp_path, cache), trainer.carry_on

    def dies(run: Run, **options: Any) -> None:
        real(run, **options, until=3 if when == "in the first trial" else None)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "carry_on", dies)
        with pytest.raises(Killed):
            tune(recipe, tmp_path / "tuned", "1,2")
    with Run.open(tmp_path / "tuned" / "runs" / "lr1-q0.5-try1") as run:
        assert run.steps_done == (3 if when == "in the first trial" else 8)
    assert not (tmp_path / "tuned" / "production.toml").exists()
    result = tune(recipe, tmp_path / "tuned", "1,2")
    assert result.exit_code == 0, result.output
    assert all_runs(tmp_path / "tuned") == all_runs(finished)
    for name in ("trials.csv", "production.toml"):
        assert (tmp_path / "tuned" / name).read_bytes() == (finished / name).read_bytes()


def test_another_grid_adds_trials_and_failed_ones_are_never_chosen(
    cache: Cache, tmp_path: Path, finished: Path
) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "tuned"))
    before = all_runs(copied)
    result = tune(written(tmp_path, cache), copied, "1e36")
    assert result.exit_code == 0, result.output
    values = json.loads(result.stdout)
    assert [each["status"] for each in values["trials"]] == ["finished", "finished", "FAILED: diverged"]
    failed = values["trials"][-1]
    assert "finite" in failed["reason"] and failed["zcdp"] > 0, "its rounds were released all the same"
    assert values["chosen"]["server_learning_rate"] in (1.0, 2.0)
    assert values["privacy_of_tuning"]["trials"] == 3
    assert {name: run for name, run in all_runs(copied).items() if name in before} == before
    assert not (copied / "runs" / failed["trial"] / "noise.key").exists()
    assert (copied / "runs" / failed["trial"] / "report" / "report.html").is_file()


def test_when_all_fail_nothing_is_lost_and_the_way_out_is_said(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = written(tmp_path, cache)

    def diverges(run: Run, **options: Any) -> None:
        raise TrainingError("round 0: none of 6 clients' updates was finite.")

    monkeypatch.setattr(trainer, "carry_on", diverges)
    said = refusal(tune(recipe, tmp_path / "tuned", "1,2"))
    assert "no trial of 2 can be taken to production (2 diverged)" in said
    assert "--server-learning-rates" in said and "Nothing is lost" in said
    assert not (tmp_path / "tuned" / "production.toml").exists()
    assert "FAILED: diverged" in (tmp_path / "tuned" / "trials.csv").read_text()
    assert json.loads((tmp_path / "tuned" / "tuning.json").read_text())["chosen"] is None


def test_a_clipping_failure_is_seen_at_the_end(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.runs.diagnostics import ClippingFailure

    failure = ClippingFailure(name="clip norm exploding", meaning="the clip norm grows with the loss")
    monkeypatch.setattr(tune_trials, "clipping_failure", lambda _: failure)
    found = outcome_of(finished, trial(1.0))
    assert (found.failure, found.reason) == ("clip norm exploding", "the clip norm grows with the loss")
    assert found.trial("accuracy").failure == "clip norm exploding"


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_other_settings_than_those_begun_with_are_refused_by_key(cache: Cache, tmp_path: Path, finished: Path) -> None:
    before = all_runs(finished)
    for options, sections, key in (
        (("--rounds", 9), {}, "rounds.rounds is 9, not 8"),
        (("--report-goal", 5), {}, "rounds.report_goal is 5, not 6"),
        (("--initial-clip-norm", 0.1), {}, "clipping.initial is 0.1, not 0.02"),
        ((), {"client": {"learning_rate": 0.25}}, "client.learning_rate is 0.25, not 0.5"),
    ):
        recipe = written(tmp_path, cache, **sections)
        assert key in refusal(tune(recipe, finished, "1,2", *options))
    assert all_runs(finished) == before


@pytest.mark.parametrize(
    ("rates", "options", "message"),
    [
        (",", (), "the list of server learning rates is empty"),
        ("1,-2", (), "a server learning rate of -2 is no step"),
        ("0", (), "a server learning rate of 0 is no step"),
        ("fast", (), "is not a list of numbers"),
        ("1", ("--quantiles", "0.5,1"), "quantile 1 is no share of clients"),
        ("1", ("--quantiles", ","), "the list of quantiles is empty"),
        ("1", ("--seeds", 0), "--seeds 0 leaves nothing to try"),
        ("1", ("--large-report-goal", 6), "--large-report-goal 6 is not above the 6 reports of a trial"),
        ("1", ("--report-goal", 41), "report_goal=41 is above the population of 40 training clients"),
        ("1", ("--min-separation", 9), "use min_separation <= 6"),
        ("1", ("--public", " "), "--public is empty"),
        ("1", ("--data", "nowhere"), "there is no cache at nowhere"),
        ("1", ("--workers", -1), "workers=-1"),
    ],
)
def test_what_cannot_be_tuned_leaves_nothing(
    cache: Cache, tmp_path: Path, rates: str, options: tuple[object, ...], message: str
) -> None:
    recipe = written(tmp_path, cache)
    assert message in refusal(tune(recipe, tmp_path / "tuned", rates, *options))
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_mechanism_that_cannot_be_is_refused_before_any_trial(cache: Cache, tmp_path: Path) -> None:
    many = {"mechanism": {"name": "banded-toeplitz", "bands": 99}, "noise_multiplier": 0.3}
    said = refusal(tune(written(tmp_path, cache, privacy=many), tmp_path / "tuned", "1"))
    assert "bands=99" in said
    assert not (tmp_path / "tuned").exists()


def test_a_cache_without_validation_clients_is_refused(tmp_path: Path) -> None:
    blind = tiny_cache(tmp_path / "cache", {**CLIENTS, "validation": 0})
    said = refusal(tune(written(tmp_path, blind), tmp_path / "tuned", "1"))
    assert "none of them is in the validation split" in said
    assert not (tmp_path / "tuned").exists()


def test_a_folder_of_something_else_is_left_alone(cache: Cache, tmp_path: Path, finished: Path) -> None:
    recipe = written(tmp_path, cache)
    assert "(it has 'tiny.toml')" in refusal(tune(recipe, tmp_path, "1"))
    assert "is a file" in refusal(tune(recipe, recipe, "1"))
    assert "is no folder of `tacit tune`" in refusal(tune(recipe, finished / "runs" / "lr1-q0.5-try1", "1"))
