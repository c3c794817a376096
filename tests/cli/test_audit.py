"""`tacit audit`: where a recipe stands in place of a sub-command, that run is audited."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli.commands import app


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("missing.toml", "there is no recipe 'missing.toml'"),
        ("below/missing", "there is no recipe 'below/missing'"),
        ("chat-private", "there is no cache at"),
        ("chat-privat", "No such command: chat-privat"),
        ("--chat-private", "No such option: --chat-private"),
    ],
)
def test_a_recipe_is_told_from_a_command(word: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["audit", word])
    assert refused.exit_code == 2 and said in refused.stderr
