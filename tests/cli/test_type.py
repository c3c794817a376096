"""`tacit type`: what the options become, and what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.support.training.tiny import tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data.typed_sentences import Share
from tacit.errors import InputError
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.type_ab.settings import TypingSettings


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["type", *map(str, words)])


def test_options_become_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def listening(*given: Any, **named: Any) -> None:
        asked.update(named, given=given)
        raise InputError("heard.")

    monkeypatch.setattr(tacit, "type_ab", listening)
    result = invoke(
        *("a", "trigram:b", "--data", "folder:text", "--out", "out", "--layout", "qwerty-es", "--users", "7"),
        *("--sentences", "3", "--words", "9", "--split-name", "validation", "--condition", "rescore"),
        *(
            "--search",
            "trigram:c",
            "--more-words",
            "found",
            "--compose",
            "0.4",
            "--language-weight",
            "0.9",
            "--sensitivity",
            "5",
        ),
        *("--seed", "4", "--epsilon", "2", "--delta", "1e-6", "--noise-seed", "8", "--population", "people"),
    )
    assert result.exit_code == 2 and result.stderr == "error: heard.\n"
    assert asked.pop("given") == ("a", "trigram:b", "folder:text", Path("out"))
    assert asked["settings"] == TypingSettings.on(
        "qwerty-es",
        share=Share(split="validation", users=7, sentences=3, words=9),
        condition="rescore",
        search="trigram:c",
        more_words="found",
        compose=0.4,
        language_weight=0.9,
        sensitivity=5,
    )
    assert asked["release"] == ReleaseCost(epsilon=2.0, delta=1e-6)
    assert (asked["seed"], asked["noise_seed"], asked["population"]) == (4, 8, Path("people"))


def test_left_out_options_are_the_defaults_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def listening(*_: Any, **named: Any) -> None:
        asked.update(named)
        raise InputError("heard.")

    monkeypatch.setattr(tacit, "type_ab", listening)
    invoke("a", "b", "--data", "c", "--out", "out")
    assert asked["settings"] == TypingSettings() and asked["release"] is None and asked["seed"] == 0


def test_as_text_and_as_json(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache")
    model = f"trigram:{cache.path}"
    words = (model, model, "--data", cache.path, "--out", tmp_path / "run", "--sentences", "2", "--workers", "1")
    shown = invoke(*words)
    assert shown.exit_code == 0, shown.output
    assert "Launch rule: NEUTRAL." in shown.stdout and "They are the same model" in shown.stdout
    printed = invoke(*words, "--json")
    record = json.loads(printed.stdout)
    assert (record["schema"], record["version"]) == ("tacit.typing", 1)
    assert record["simulation_only"]["decision"]["judgement"] == "neutral" and record["asked"] == 6
    resumed: Any = tacit.resume(tmp_path / "run")
    assert resumed.to_record() == record
