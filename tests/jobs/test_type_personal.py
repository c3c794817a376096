"""`tacit type --personal`: B is each user's own model where its gate opens, and A's twin where it does not."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.evaluation.typists import typists_and_model
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.compute import Hardware
from tacit.data.typed_sentences import Share
from tacit.errors import InputError
from tacit.evaluation.type_ab.settings import EARLIER, TypingSettings
from tacit.jobs.phone_models import phone_model

ONE = Hardware(workers=1)
TALLIES = Path("simulation") / "tallies.jsonl"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(cache, model) of typists with habits."""
    return typists_and_model(tmp_path_factory.mktemp("personal"), 14)


def typed(world: tuple[Path, Path], out: Path, **settings: Any) -> Any:
    cache, model = world
    asked = TypingSettings(share=Share(sentences=4), **{"personal": "cache", **settings})
    return tacit.type_ab(model, model, cache, out, settings=asked, hardware=ONE, seed=1)


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / TALLIES).read_text().splitlines()]


def test_where_the_gate_is_shut_nothing_changes_and_the_run_resumes(world: tuple[Path, Path], tmp_path: Path) -> None:
    result = typed(world, tmp_path / "run")
    rows, found = rows_of(tmp_path / "run"), result.exact["own_models"]
    opened = [row for row in rows if row["own_model"]]
    assert found["users"] == len(rows) == result.record["asked"] and found["opened"] == len(opened) > 1
    assert all(row["a"] == row["b"] for row in rows if not row["own_model"])
    assert any(row["a"] != row["b"] for row in opened)
    assert found["measures"]["accuracy"]["difference"].value > 0  # they repeat themselves
    page = (tmp_path / "run/simulation/report.md").read_text()
    assert f"The gate opened for {len(opened)} of {len(rows)} users" in page and "nothing can change" not in page
    assert "The gate opened" not in (tmp_path / "run/report/report.md").read_text()  # what is published

    again = typed(world, tmp_path / "again")
    assert rows_of(tmp_path / "again") == rows
    resumed = tacit.resume(tmp_path / "again", hardware=ONE)
    assert json.dumps(again.to_record()["simulation_only"]) == json.dumps(resumed.to_record()["simulation_only"])


def test_no_gate_opens_to_all_and_an_impossible_one_to_nobody(world: tuple[Path, Path], tmp_path: Path) -> None:
    opened = typed(world, tmp_path / "all", personal="both", gate=1.0).exact["own_models"]
    assert opened["opened"] == opened["users"]
    shut = typed(world, tmp_path / "none", gate=1e-12)
    assert shut.exact["own_models"] == {"users": opened["users"], "opened": 0, "measures": {}}
    assert shut.judgement == "neutral" and shut.exact["measures"]["words a minute"]["difference"].value == 0


def test_only_later_text_is_typed(world: tuple[Path, Path], tmp_path: Path) -> None:
    from tacit.data import Cache

    cache = Cache.open(world[0])
    typed(world, tmp_path / "run")
    for row in rows_of(tmp_path / "run"):
        parts = EARLIER.parts(cache.timestamps(row["user"]))
        assert row["a"]["sentences"] == min(4, len(parts.test))  # type: ignore[union-attr]


def test_the_command_says_how(world: tuple[Path, Path], tmp_path: Path) -> None:
    cache, model = map(str, world)
    asked = [
        "type",
        model,
        model,
        "--data",
        cache,
        "--sentences",
        "2",
        "--workers",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    found = CliRunner().invoke(app, [*asked, "--personal", "cache", "--gate", "0.5", "--json"])
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)["personal"]
    assert said == {"way": "fitted cache", "level": 0.5, "split": "time:0.8", "gate_share": 0.125, "least": 4}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"personal": "a"}, "choose sgd, cache or both"),
        ({"personal": "both", "gate": 0.0}, "gate level 0 must be in"),
        ({"personal": "both", "learns": "b"}, "leave out learns and sensitivity"),
        ({"personal": "both", "sensitivity": 2}, "leave out learns and sensitivity"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        TypingSettings(**settings)


def test_it_needs_times_and_parameters(world: tuple[Path, Path], tmp_path: Path) -> None:
    cache, model = world
    own = TypingSettings(personal="both")
    with pytest.raises(InputError, match="a source does not say when"):
        tacit.type_ab(model, model, "folder:nowhere", tmp_path / "run", settings=own)
    with pytest.raises(InputError, match="give a run, a pre-training or a model folder"):
        tacit.type_ab(model, phone_model("b", model), cache, tmp_path / "run", settings=own)
    assert not (tmp_path / "run").exists()


def test_settings_of_before_say_nothing_of_a_gate() -> None:
    assert "gate" not in TypingSettings().to_plain()
    own = TypingSettings(personal="sgd", gate=0.2)
    assert TypingSettings.from_plain(own.to_plain()) == own
