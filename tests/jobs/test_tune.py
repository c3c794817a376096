"""tacit.tune: killed and continued it ends the same, a larger grid keeps what is done, failures are never chosen."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.training.tiny import CLIENTS, MECHANISMS, tiny_cache, tiny_toml, what_happened

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import TacitError
from tacit.jobs.report import report
from tacit.jobs.tune import job
from tacit.jobs.tune.job import existing_trials, outcome_of, resume_tuning
from tacit.jobs.tune.result import TuningResult
from tacit.planning.tuning import Setting, TrialName, TuningSettings
from tacit.progress import Advanced, Event, Progress, silent
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.accounts import accounts_of

ONE = Hardware(workers=1)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def finished(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tuning that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    tune(written(folder, cache), folder / "tuned", (1.0, 2.0))
    return folder / "tuned"


def written(folder: Path, cache: Cache, **sections: Any) -> Path:
    """A recipe for production on disk, its mechanism BLT noise."""
    path = folder / "tiny.toml"
    few = {"every": 8, "clients": 5, "test_clients": 2, "sentences": 8}
    limits = {"rounds": 8, "report_goal": 6, "min_separation": 3, **sections.pop("rounds", {})}
    given = {"privacy": MECHANISMS["blt"], "evaluation": few, "rounds": limits, **sections}
    path.write_text(tiny_toml(cache.path, **given), encoding="utf-8")
    return path


def tune(
    recipe: Path, out: Path, rates: tuple[float, ...] | None, *, progress: Progress = silent, **settings: Any
) -> TuningResult:
    return job.tune(
        recipe, out, TuningSettings(server_learning_rates=rates, **settings), hardware=ONE, progress=progress
    )


def refusal(recipe: Path, out: Path, rates: tuple[float, ...] | None = (1.0,), **settings: Any) -> str:
    with pytest.raises(TacitError) as refused:
        tune(recipe, out, rates, **settings)
    return str(refused.value)


def trial(rate: float) -> TrialName:
    return TrialName(setting=Setting(server_learning_rate=rate, quantile=0.5), number=1)


def all_runs(folder: Path) -> dict[str, Any]:
    return {str(name): what_happened(folder / "runs" / str(name)) for name in existing_trials(folder)}


# -- what goes well ----------------------------------------------------------------------------------------------------


def test_a_recipe_that_says_an_epsilon_and_no_mechanism_is_tuned(cache: Cache, tmp_path: Path) -> None:
    """At the delta of its population; what it recommends has the noise on the mean that the epsilon asks for."""
    recipe = written(tmp_path, cache, privacy={"epsilon": 60.0, "clip_norm": 0.5})
    result = tune(recipe, tmp_path / "tuned", (1.0,), large_report_goal=600)
    wanted = Recipe.load(recipe).with_delta(1e-5).guarantee()
    assert result.production is not None
    section = result.production.privacy
    assert section.mechanism_name == "best" and section.epsilon is None
    assert section.noise_multiplier == pytest.approx(100 * wanted.noise_multiplier)


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


def test_its_report_is_written_again_when_asked_for(finished: Path) -> None:
    names = {"report.html", "report.md", "report.json", "scores.png", "clip_norm.png"}
    before = {name: (finished / "simulation" / name).read_bytes() for name in names}
    (finished / "simulation" / "report.html").unlink()
    report(finished)
    assert before == {name: (finished / "simulation" / name).read_bytes() for name in names}
    assert {path.name for path in (finished / "simulation").iterdir()} == {*names, "record.json"}
    assert not list((finished / "report").iterdir()), "scores of validation clients are exact"


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


def test_the_same_again_does_nothing_again(cache: Cache, tmp_path: Path, finished: Path) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "tuned"))
    before, heard = all_runs(copied), list[Event]()
    (copied / "production.toml").unlink()
    result = tune(
        written(tmp_path, cache),
        copied,
        (1.0, 2.0),
        choose_by="cross-entropy",
        large_report_goal=60,
        progress=heard.append,
    )
    assert not [event for event in heard if isinstance(event, Advanced)], "nothing was left to do"
    assert all_runs(copied) == before
    assert result.production is not None and result.production.privacy.noise_multiplier == 3.0
    assert Recipe.load(copied / "production.toml") == result.production
    again = resume_tuning(copied, hardware=ONE)
    assert again.by == "cross-entropy" and again.to_record() == result.to_record()


def test_what_is_public_is_excluded_in_the_users_words(cache: Cache, tmp_path: Path, finished: Path) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "tuned"))
    values = tune(written(tmp_path, cache), copied, (1.0, 2.0), public="novels of a library").to_record()
    assert values["production"]["with_trials_on_the_same_clients"] is None
    assert "excluded" in values["privacy_of_tuning"]["words"]
    comments = [line.lstrip("# ") for line in (copied / "production.toml").read_text().splitlines()]
    assert "novels of a library" in " ".join(comments)


def test_a_result_shows_itself(cache: Cache, tmp_path: Path, finished: Path) -> None:
    result = resume_tuning(Path(shutil.copytree(finished, tmp_path / "tuned")), hardware=ONE)
    assert result.columns["server_learning_rate"] == [1.0, 2.0]
    assert json.loads((tmp_path / "tuned" / "tuning.json").read_text()) == result.to_record()
    assert "What the tuning cost in privacy" in result._repr_html_() and result.report is not None
    assert result.run.kind == "tune" and result.run.finished


# -- killed, continued, extended ---------------------------------------------------------------------------------------


class Killed(BaseException):
    """What no code of ours catches."""


@pytest.mark.parametrize(
    ("trial_number", "rounds"), [(2, 1), pytest.param(1, 3, marks=pytest.mark.long)], ids=["second trial", "first"]
)
def test_killed_and_continued_it_ends_the_same(
    cache: Cache, tmp_path: Path, finished: Path, trial_number: int, rounds: int
) -> None:
    def dies(event: Event) -> None:
        if isinstance(event, Advanced) and event.stage.startswith(f"trial {trial_number}/2") and event.done == rounds:
            raise Killed

    recipe, out = written(tmp_path, cache), tmp_path / "tuned"
    with pytest.raises(Killed):
        tune(recipe, out, (1.0, 2.0), progress=dies)
    assert existing_trials(out)[-1] == trial(float(trial_number))
    assert not (out / "production.toml").exists()
    with Run.open(out) as run:
        assert not run.finished
    if trial_number == 1:
        tune(recipe, out, (1.0, 2.0))
    else:
        resume_tuning(out, hardware=ONE)
    assert all_runs(out) == all_runs(finished)
    for name in ("trials.csv", "production.toml"):
        assert (out / name).read_bytes() == (finished / name).read_bytes()


def test_another_grid_adds_trials_and_failed_ones_are_never_chosen(
    cache: Cache, tmp_path: Path, finished: Path
) -> None:
    copied = Path(shutil.copytree(finished, tmp_path / "tuned"))
    before = all_runs(copied)
    values = tune(written(tmp_path, cache), copied, (1e36,)).to_record()
    assert [each["status"] for each in values["trials"]] == ["finished", "finished", "FAILED: diverged"]
    failed = values["trials"][-1]
    assert "finite" in failed["reason"] and failed["zcdp"] > 0, "its rounds were released all the same"
    assert values["chosen"]["server_learning_rate"] in (1.0, 2.0)
    assert values["privacy_of_tuning"]["trials"] == 3
    assert {name: run for name, run in all_runs(copied).items() if name in before} == before
    assert not (copied / "runs" / failed["trial"] / "noise.key").exists()
    assert (copied / "runs" / failed["trial"] / "report" / "report.html").is_file()


def test_when_all_fail_nothing_is_lost_and_the_way_out_is_said(cache: Cache, tmp_path: Path) -> None:
    out = tmp_path / "tuned"
    result = tune(written(tmp_path, cache), out, (1e36,))
    assert result.choice is None and result.production is None
    said = result.why_nothing()
    assert "no trial of 1 can be taken to production (1 diverged)" in said
    assert "--server-learning-rates" in said and "Nothing is lost" in said
    assert not (out / "production.toml").exists()
    assert "FAILED: diverged" in (out / "trials.csv").read_text()
    assert json.loads((out / "tuning.json").read_text())["chosen"] is None


def test_a_clipping_failure_is_seen_at_the_end(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.runs.diagnostics import ClippingFailure

    failure = ClippingFailure(name="clip norm exploding", meaning="the clip norm grows with the loss")
    monkeypatch.setattr(job, "clipping_failure", lambda _: failure)
    found = outcome_of(finished, trial(1.0))
    assert (found.failure, found.reason) == ("clip norm exploding", "the clip norm grows with the loss")
    assert found.trial("accuracy").failure == "clip norm exploding"


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_other_settings_than_those_begun_with_are_refused_by_key(cache: Cache, tmp_path: Path, finished: Path) -> None:
    before = all_runs(finished)
    for settings, sections, key in (
        ({"rounds": 9}, {}, "rounds.rounds is 9, not 8"),
        ({"report_goal": 5}, {}, "rounds.report_goal is 5, not 6"),
        ({"initial_clip_norm": 0.1}, {}, "clipping.initial is 0.1, not 0.02"),
        ({}, {"client": {"learning_rate": 0.25}}, "client.learning_rate is 0.25, not 0.5"),
    ):
        assert key in refusal(written(tmp_path, cache, **sections), finished, (1.0, 2.0), **settings)
    assert all_runs(finished) == before


@pytest.mark.parametrize(
    ("rates", "settings", "message"),
    [
        ((), {}, "the list of server learning rates is empty"),
        ((1.0, -2.0), {}, "a server learning rate of -2 is no step"),
        ((0.0,), {}, "a server learning rate of 0 is no step"),
        ((1.0,), {"quantiles": (0.5, 1.0)}, "quantile 1 is no share of clients"),
        ((1.0,), {"quantiles": ()}, "the list of quantiles is empty"),
        ((1.0,), {"seeds": 0}, "--seeds 0 leaves nothing to try"),
        ((1.0,), {"large_report_goal": 6}, "--large-report-goal 6 is not above the 6 reports of a trial"),
        ((1.0,), {"report_goal": 41}, "report_goal=41 is above the population of 40 training clients"),
        ((1.0,), {"min_separation": 9}, "use min_separation <= 6"),
        ((1.0,), {"public": " "}, "--public is empty"),
        ((1.0,), {"data": Path("nowhere")}, "there is no cache at nowhere"),
    ],
)
def test_what_cannot_be_tuned_leaves_nothing(
    cache: Cache, tmp_path: Path, rates: tuple[float, ...], settings: dict[str, Any], message: str
) -> None:
    recipe = written(tmp_path, cache)
    assert message in refusal(recipe, tmp_path / "tuned", rates, **settings)
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_mechanism_that_cannot_be_is_refused_before_any_trial(cache: Cache, tmp_path: Path) -> None:
    many = {"mechanism": {"name": "banded-toeplitz", "bands": 99}, "noise_multiplier": 0.3}
    assert "bands=99" in refusal(written(tmp_path, cache, privacy=many), tmp_path / "tuned")
    assert not (tmp_path / "tuned").exists()


def test_a_cache_without_validation_clients_is_refused(tmp_path: Path) -> None:
    blind = tiny_cache(tmp_path / "cache", {**CLIENTS, "validation": 0})
    assert "none of them is in the validation split" in refusal(written(tmp_path, blind), tmp_path / "tuned")
    assert not (tmp_path / "tuned").exists()


def test_a_folder_of_something_else_is_left_alone(cache: Cache, tmp_path: Path, finished: Path) -> None:
    recipe = written(tmp_path, cache)
    assert "(it has 'tiny.toml')" in refusal(recipe, tmp_path)
    assert "is a file" in refusal(recipe, recipe)
    assert "is no folder of `tacit tune`" in refusal(recipe, finished / "runs" / "lr1-q0.5-try1")
