"""`tacit design` for every mechanism: what it prints, what it saves, what it refuses."""

import json
from pathlib import Path

import pytest
import typer
from tests.conftest import REPOSITORY
from typer.testing import CliRunner

from tacit.cli.design import app
from tacit.design.banded import design_banded
from tacit.design.catalogue import MECHANISMS
from tacit.design.losses import losses
from tacit.design.mechanism import ChosenMechanism
from tacit.design.workload import Workload
from tacit.jobs.design import design_mechanism
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import strategy_from_record

SERVED = Participation(rounds=24, min_separation=6, max_participations=4)
ASKED = ["--rounds", "24", "--min-separation", "6", "--max-participations", "4"]
ONLY = ["--rounds", "24", "--min-separation", "24"]
ONCE = Participation(rounds=24, min_separation=24, max_participations=1)
EXAMPLES = [
    ChosenMechanism(mechanism=mechanism, parameters=said)
    for mechanism in MECHANISMS.values()
    for said in mechanism.examples
]


def options(example: ChosenMechanism) -> list[str]:
    """Its parameters as somebody types them."""
    words = []
    for name, value in example.parameters.to_plain().items():
        listed = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{name}"] if value is True else [] if value in (False, []) else [f"--{name}", listed]
    return words


def test_every_mechanism_of_the_catalogue_has_a_command() -> None:
    assert {*MECHANISMS, "compare"} == set(typer.main.get_command(app).commands)


def test_the_page_of_mechanisms_names_each() -> None:
    page = (REPOSITORY / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    assert not [name for name in MECHANISMS if f"`{name}`" not in page and f"design {name}`" not in page]


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: " ".join([example.name, *options(example)]))
def test_what_is_saved_is_what_is_printed(example: ChosenMechanism, tmp_path: Path) -> None:
    served, asked = (ONCE, ONLY) if example.name == "dense" else (SERVED, ASKED)
    saved = tmp_path / "strategy.json"
    printed = json.loads(run(example.name, *asked, *options(example), "--out", str(saved), "--json"))
    assert printed["loss"] == printed[f"{example.mechanism.objective}_loss"]
    strategy = strategy_from_record(json.loads(saved.read_text()))
    assert (strategy.kind, example.name) == (printed["kind"], printed["mechanism"])
    found = losses(strategy, served)
    assert (printed["max_loss"], printed["rms_loss"]) == pytest.approx((found.max_loss, found.rms_loss))
    again = design_mechanism(example.name, served, **example.parameters.to_plain()).to_record()
    assert printed == {**again, "seconds": printed["seconds"]}


def test_dense_is_for_clients_that_come_once(tmp_path: Path) -> None:
    saved = tmp_path / "dense.json"
    printed = json.loads(run("dense", *ONLY, "--out", str(saved), "--json"))
    assert printed["sensitivity"] == pytest.approx(1.0)
    assert strategy_from_record(json.loads(saved.read_text())).rounds_defined == 24
    refused = CliRunner().invoke(app, ["dense", *ASKED])
    assert refused.exit_code == 2
    assert "come once" in refused.stderr


def test_comparison_is_sorted_and_complete() -> None:
    printed = json.loads(run("compare", *ASKED, "--objective", "rms", "--slow", "--json"))
    rows = printed["mechanisms"]
    assert [row["refused"] for row in rows] == [None] * len(rows)
    assert [row["rms_loss"] for row in rows] == sorted(row["rms_loss"] for row in rows)
    names = {row["name"] for row in rows}
    assert {"independent", "tree", "blt, 4 buffers", "lambda-cgd", "banded, 6 bands", "tree-full"} <= names
    banded = next(row for row in rows if row["name"] == "banded, 6 bands")
    assert banded["memory"] == 5
    assert banded["rms_loss"] == pytest.approx(losses(design_banded(SERVED, bands=6), SERVED).rms_loss)
    assert "lambda-cgd" in run("compare", *ASKED)


def test_a_servers_models_are_designed_for_and_compared() -> None:
    server = ["--momentum", "0.9", "--nesterov", "--cooldown", "0.3"]
    printed = json.loads(run("lambda-cgd", *ASKED, *server, "--json"))
    again = design_mechanism(
        "lambda-cgd", SERVED, server=Workload(momentum=0.9, nesterov=True, cooldown=0.3)
    ).to_record()
    assert printed == {**again, "seconds": printed["seconds"]} and printed["loss"] == printed["models_max_loss"]
    kept = json.loads(run("lambda-cgd", *ASKED, *server, "--workload", "prefix", "--json"))
    assert kept["loss"] == kept["max_loss"] and kept["models_max_loss"] > printed["models_max_loss"]
    assert "models rms loss" in run("lambda-cgd", *ASKED, *server)


@pytest.mark.nightly  # every BLT is designed anew
def test_mechanisms_are_compared_by_a_servers_models() -> None:
    server = ["--momentum", "0.5", "--objective", "rms"]
    rows = json.loads(run("compare", *ASKED, *server, "--json"))["mechanisms"]
    assert [row["models_rms_loss"] for row in rows] == sorted(row["models_rms_loss"] for row in rows)
    made = {row["name"]: row["workload"] for row in rows}
    assert (made["tree"], made["independent"], made["blt, 2 buffers"]) == ("prefix", "prefix", "server")
    assert "models' rms loss" in run("compare", *ASKED, *server)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["banded", *ASKED, "--bands", "7"], "bands=7"),
        (["banded-toeplitz", *ASKED, "--bands", "25"], "bands=25"),
        (["square-root", *ASKED, "--bands", "0"], "bands=0"),
        (["lambda-cgd", *ASKED, "--objective", "median"], "median"),
        (["tree", "--rounds", "24"], "exactly one"),
        (["tree", *ASKED, "--restarts", "soon"], "is not a list of rounds"),
        (["blt", *ASKED, "--theta", "0.5"], "theta and omega come together"),
        (["blt", *ASKED, "--momentum", "1"], "must be in [0, 1)"),
        (["blt", *ASKED, "--nesterov"], "give momentum=0.9"),
        (["blt", *ASKED, "--momentum", "0.9", "--cooldown", "1.5"], "cooldown=1.5 must be a share"),
        (["blt", *ASKED, "--workload", "server"], "without either they are prefix sums"),
        (["blt", *ASKED, "--workload", "both"], "neither prefix nor server"),
        (["tree", *ASKED, "--momentum", "0.9"], "has no design for what a server makes"),
        (["blt", "--rounds", "24,48", "--min-separation", "6", "--momentum", "0.9"], "prefix sums alone"),
        (["compare", "--rounds", "24", "--min-separation", "6", "--max-participations", "5"], "does not fit"),
    ],
)
def test_nonsense_is_refused_in_one_line(words: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
