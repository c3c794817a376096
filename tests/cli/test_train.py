"""`tacit train` and `tacit resume`: one JSON object, or one line and exit code 2 with nothing lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_toml, what_happened
from typer.testing import CliRunner, Result

from tacit.cli.commands import app
from tacit.data import Cache
from tacit.runs import Run

# Its first two rounds have a price, and all after them have none.
RISING = {"mechanism": {"name": "banded-toeplitz", "coefficients": [1.0, 0.2, 0.5]}, "noise_multiplier": 0.3}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def finished(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    result = train(written(folder, cache), folder / "run")
    assert result.exit_code == 0, result.output
    return folder / "run"


def written(folder: Path, cache: Cache, **sections: Any) -> Path:
    """A recipe on disk; the mechanism is BLT noise unless `privacy` says otherwise."""
    path = folder / "tiny.toml"
    path.write_text(tiny_toml(cache.path, **{"privacy": MECHANISMS["blt"], **sections}), encoding="utf-8")
    return path


def tacit(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def train(recipe: Path, out: Path, *options: object) -> Result:
    return tacit("train", recipe, "--out", out, "--json", "--workers", 1, *options)


def refusal(result: Result) -> str:
    """The one line that a command refuses with."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1, result.stderr
    return result.stderr


# -- what goes well ----------------------------------------------------------------------------------------------------


def test_training_prints_one_json_object(cache: Cache, tmp_path: Path, finished: Path) -> None:
    result = train(written(tmp_path, cache), tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    assert all(line.startswith("warning: ") for line in result.stderr.splitlines())  # so small a run drowns in noise
    values = json.loads(result.stdout)
    assert values["run"] == str(tmp_path / "run")
    assert Path(values["report"]).is_file()
    assert 0 <= values["test"]["top1_accuracy"] <= values["test"]["top3_accuracy"] <= 1
    realised, planned = values["privacy"]["realised"], values["privacy"]["planned"]
    assert 0 < realised["zcdp"] <= planned["zcdp"]
    assert what_happened(tmp_path / "run") == what_happened(finished), "equal recipe and seed, equal run"


def test_training_for_people_says_accuracy_cost_and_where_the_report_is(cache: Cache, tmp_path: Path) -> None:
    result = tacit("train", written(tmp_path, cache), "--out", tmp_path / "run", "--workers", 1)
    assert result.exit_code == 0, result.output
    shown = result.stdout.replace("\n", " ")
    for said in ("accuracy on 6 clients never trained on: top-1", "privacy: zCDP", "at delta 1e-05", "report.html"):
        assert said in shown
    assert [line.split(":")[0] for line in result.stderr.splitlines() if line.startswith("round ")] == [
        "round 0/9 (validation)",
        "round 4/9 (validation)",
        "round 8/9 (validation)",
        "round 9/9 (validation)",
        "round 9/9 (test)",
    ]


def test_a_profile_is_a_table_or_a_part_of_the_object(cache: Cache, tmp_path: Path) -> None:
    result = tacit("train", written(tmp_path, cache), "--out", tmp_path / "run", "--workers", 1, "--profile")
    assert result.exit_code == 0, result.output
    for said in ("seconds went", "waiting for the clients' sums", "workers training", "disk writing"):
        assert said in result.stdout
    again = tacit("resume", tmp_path / "run", "--json", "--profile")
    with Run.open(tmp_path / "run") as run:
        (kept,) = run.notes["profile"]
    assert json.loads(again.stdout)["profile"] == kept


def test_a_cluster_that_is_not_there_is_refused(cache: Cache, tmp_path: Path) -> None:
    said = refusal(train(written(tmp_path, cache), tmp_path / "run", "--cluster", "127.0.0.1:1"))
    assert "127.0.0.1:1" in said or "tacit[cluster]" in said


def test_a_run_without_noise_is_called_non_private(cache: Cache, tmp_path: Path) -> None:
    recipe = written(tmp_path, cache, privacy=MECHANISMS["none"])
    result = tacit("train", recipe, "--out", tmp_path / "run", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert "NON-PRIVATE" in result.stdout


def test_another_cache_and_seed_from_the_command_line(cache: Cache, tmp_path: Path, finished: Path) -> None:
    elsewhere = written(tmp_path, cache)
    elsewhere.write_text(elsewhere.read_text().replace(str(cache.path), "nowhere").replace("seed = 3", "seed = 8"))
    result = train(elsewhere, tmp_path / "run", "--data", cache.path, "--seed", 3)
    assert result.exit_code == 0, result.output
    assert what_happened(tmp_path / "run") == what_happened(finished)
    with Run.open(tmp_path / "run") as run:
        assert run.metadata.key_source == "fixed seed 3"


def test_a_finished_run_is_resumed_by_writing_its_report_again(finished: Path) -> None:
    before = what_happened(finished)
    (finished / "report" / "report.html").unlink()
    result = tacit("resume", finished, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    assert f"'{finished}' is finished already; its report is written again.\n" in result.stderr
    assert (finished / "report" / "report.html").is_file()
    assert what_happened(finished) == before


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 3, 9])
def test_a_full_disk_stops_in_one_line_and_resuming_loses_nothing(
    cache: Cache, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """The n-th checkpoint does not fit; when there is room again, the run ends as if there always had been."""
    with monkeypatch.context() as patch:
        real, seen = os.fsync, [0]

        def full(descriptor: int) -> None:
            place = os.readlink(f"/proc/self/fd/{descriptor}")
            if "run/steps/.round-" in place and "/.run." not in place:  # not where it is rehearsed
                seen[0] += 1
                if seen[0] >= nth:
                    raise OSError(28, "No space left on device")
            real(descriptor)

        patch.setattr(os, "fsync", full)
        said = refusal(train(written(tmp_path, cache), tmp_path / "run"))
    assert "No space left on device" in said and "what was complete before is safe" in said and "tacit resume" in said
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == nth - 1
    assert not list((tmp_path / "run" / "steps").glob("*.draft"))
    result = tacit("resume", tmp_path / "run", "--json", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert what_happened(tmp_path / "run") == what_happened(finished)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"rounds": {"report_goal": 41}}, "report_goal=41 is above the population of 40 training clients"),
        ({"rounds": {"report_goal": 20}}, "keeps 60 clients busy, but the population has 40; use min_separation <= 2"),
        ({"privacy": RISING}, "coefficient 2 is 0.5, and the exact sensitivity is known only for"),
        ({"rounds": {"report_goal": 0}}, "rounds.report_goal = 0: input should be greater than or equal to 1"),
        ({"client": {"learning_rat": 0.5}}, "the key 'client.learning_rat' is unknown"),
        (
            {"privacy": {"mechanism": {"name": "none"}, "zcdp": 1.0}},
            "privacy.zcdp says noise but privacy.mechanism=",
        ),
        ({"data": {"cache": "nowhere"}}, "there is no cache at nowhere"),
    ],
)
def test_a_recipe_that_cannot_be_run_leaves_nothing(
    cache: Cache, tmp_path: Path, sections: dict[str, Any], message: str
) -> None:
    recipe = written(tmp_path, cache, **sections)
    assert message in refusal(train(recipe, tmp_path / "run"))
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.toml"]


def test_recipes_that_are_none(cache: Cache, tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    assert "there is no recipe" in refusal(train(recipe, tmp_path / "run"))
    recipe.write_bytes(b'name = "caf\xe9"')
    assert "is not UTF-8" in refusal(train(recipe, tmp_path / "run"))
    recipe.write_text("name = [")
    assert "is not TOML" in refusal(train(recipe, tmp_path / "run"))
    assert "--seed -1 must be 0 or more" in refusal(train(written(tmp_path, cache), tmp_path / "run", "--seed", "-1"))
    assert "workers=-1" in refusal(tacit("train", recipe, "--out", tmp_path / "run", "--workers", "-1"))


def test_an_existing_run_is_never_overwritten(cache: Cache, tmp_path: Path, finished: Path) -> None:
    """The same command again goes on with it, which of a finished run is nothing; another one is refused."""
    before = what_happened(finished)
    assert train(written(tmp_path, cache), finished).exit_code == 0
    other = written(tmp_path, cache, rounds={"rounds": 12})
    assert "was begun with another recipe (rounds.rounds is 12, not 9)" in refusal(train(other, finished))
    assert what_happened(finished) == before


def test_a_foreign_folder_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "is no run folder (it has no run.db)" in refusal(tacit("resume", tmp_path, "--json"))
    (tmp_path / "run.db").write_text("not a database, but long enough that somebody looks at it" * 30)
    assert "is not a run of tacit's" in refusal(tacit("resume", tmp_path, "--json"))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_run_that_is_being_trained_is_refused(cache: Cache, tmp_path: Path) -> None:
    """That another process is refused too: tests/runs/test_folder.py."""
    from tacit.jobs.train.run import begin
    from tacit.recipe import Recipe

    with begin(Recipe.load(written(tmp_path, cache)), tmp_path / "run") as run, run.locked():
        said = refusal(tacit("resume", tmp_path / "run", "--json"))
    assert f"is being worked on by process {os.getpid()}" in said


# -- a recipe changed on the command line ------------------------------------------------------------------------------


def test_a_set_key_is_recorded_as_if_the_recipe_said_so(cache: Cache, tmp_path: Path, finished: Path) -> None:
    other = written(tmp_path, cache, rounds={"rounds": 3}, privacy=MECHANISMS["tree"])
    sets = ("--set", "rounds.rounds=9", "--set", "privacy.mechanism.name=blt-b400")
    result = train(other, tmp_path / "run", *sets, "--set", "privacy.mechanism.restarts=")
    assert result.exit_code == 0, result.output
    assert what_happened(tmp_path / "run") == what_happened(finished)
    with Run.open(tmp_path / "run") as run, Run.open(finished) as said:
        assert run.settings == said.settings


def test_several_values_are_a_sweep_and_its_size_is_said_first(cache: Cache, tmp_path: Path) -> None:
    recipe = written(tmp_path, cache)
    words = ("train", recipe, "--out", tmp_path / "out", "--workers", 1, "--anyway")
    result = tacit(*words, "--set", "rounds.rounds=2,3")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("2 runs, one after another: rounds.rounds = 2, 3. Each is a release of its own")
    assert "rounds.rounds=2" in result.stdout and "2 releases" in result.stdout
    again = tacit(*words, "--set", "rounds.rounds=2,3", "--json")
    record = json.loads(again.stdout)
    assert record["schema"] == "tacit.sweep" and len(record["runs"]) == 2
    assert Path(record["page"]).is_file()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rounds.rouds=5", "the key 'rounds.rouds' is unknown; did you mean rounds.rounds?"),
        ("rounds.rounds=0", "rounds.rounds = 0: input should be greater than or equal to 1"),
        ("rounds=5", "'rounds' is a section; write [rounds]"),
        ("rounds.rounds", "sets no key; write SECTION.KEY=VALUE"),
        ("rounds.rounds=1,1", "has rounds.rounds=1 twice; give each value once"),
        ("[/red]\x1b[31m=5", "sets no key"),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(cache: Cache, tmp_path: Path, given: str, message: str) -> None:
    said = refusal(train(written(tmp_path, cache), tmp_path / "run", "--set", given))
    assert message in said and "\x1b" not in said
    assert not (tmp_path / "run").exists()


def test_only_training_sweeps(cache: Cache, tmp_path: Path) -> None:
    said = refusal(tacit("plan", "recipe", written(tmp_path, cache), "--json", "--set", "rounds.rounds=20,30"))
    assert "--set rounds.rounds has 2 values, of which `tacit train` makes a run each; give one here" in said
    one = tacit("plan", "recipe", written(tmp_path, cache), "--json", "--set", "rounds.rounds=40")
    assert one.exit_code == 0, one.output


# -- ended before the last round ---------------------------------------------------------------------------------------


def test_a_run_stops_after_so_many_rounds_and_is_finished_there(cache: Cache, tmp_path: Path) -> None:
    stopped = train(written(tmp_path, cache), tmp_path / "run", "--until", 3)
    assert stopped.exit_code == 0 and json.loads(stopped.stdout)["rounds"] == 3, stopped.output
    assert json.loads(stopped.stdout)["report"] is None
    ended = tacit("finish", tmp_path / "run", "--json", "--workers", 1)
    assert ended.exit_code == 0, ended.output
    values = json.loads(ended.stdout)
    assert values["rounds"] == 3 and Path(values["report"]).is_file() and values["test"]
    assert "is finished already, after 3 rounds" in refusal(tacit("finish", tmp_path / "run"))
    shown = tacit("resume", tmp_path / "run", "--workers", 1)
    assert "under what happened in 3 rounds" in shown.stdout.replace("\n", " ")


@pytest.mark.parametrize("until", [-1, 10])
def test_rounds_that_will_not_be_are_refused(cache: Cache, tmp_path: Path, until: int) -> None:
    said = refusal(train(written(tmp_path, cache), tmp_path / "run", "--until", until))
    assert f"until={until} is not between 0 and the 9 rounds of the recipe" in said
    assert not (tmp_path / "run").exists()
