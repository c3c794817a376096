"""`tacit audit mechanism`: a table for people, an object for programs, and an exit code for continuous integration."""

import json

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tacit.audit.mechanism import catalogue
from tacit.audit.mechanism.streams import NoisedSums, case_of_sums
from tacit.cli.commands import app
from tacit.privacy import Guarantee


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_a_promise_that_is_kept() -> None:
    shown = invoke("audit", "mechanism", "blt-b400", "--runs", "2000", "--seed", "3")
    assert shown.exit_code == 0
    assert "1 promises looked at, none refuted." in shown.stdout
    assert "tacit audit mechanism blt-b400 --runs 2000 --confidence 0.99 --seed 3" in shown.stdout
    printed = invoke("audit", "mechanism", "blt-b400", "--runs", "2000", "--seed", "3", "--json")
    (finding,) = json.loads(printed.stdout)["findings"]
    assert 2.7 < finding["lower"] < finding["claim"] == pytest.approx(3)


def test_a_promise_that_is_broken_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_quiet(subject: str, guarantee: Guarantee) -> object:
        half = Guarantee(
            participation=guarantee.participation,
            strategy=guarantee.strategy,
            clip_norm=guarantee.clip_norm,
            noise_multiplier=guarantee.noise_multiplier / 2,
        )
        return case_of_sums(subject, guarantee, NoisedSums(half))

    monkeypatch.setattr(catalogue, "case_of_sums", too_quiet)
    shown = invoke("audit", "mechanism", "blt-b400", "--runs", "2000")
    assert shown.exit_code == 1
    assert "BROKEN: blt-b400 claims 3 and leaks" in shown.stdout


@pytest.mark.parametrize("words", [(), ("tree", "--all")])
def test_one_thing_is_audited_at_a_time(words: tuple[str, ...]) -> None:
    refused = invoke("audit", "mechanism", *words)
    assert refused.exit_code == 2
    assert "give a mechanism, a recipe, or --all, and one of them" in " ".join(refused.stderr.split())


def test_too_few_runs_are_refused_with_how_many_there_must_be() -> None:
    refused = invoke("audit", "mechanism", "blt-b400", "--runs", "100")
    assert refused.exit_code == 2
    assert "give at least 627" in " ".join(refused.stderr.split())
