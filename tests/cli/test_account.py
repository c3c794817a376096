"""`tacit account`: published figures out of the command, and one line for every wrong input."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.made_runs import training_metadata
from typer.testing import CliRunner

from tacit.cli.account import app
from tacit.design.catalogue import MECHANISMS
from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.privacy.strategy import BandedInverse, BandedToeplitz, Dense, Strategy
from tacit.records import to_plain
from tacit.runs import Run, StepEntry
from tacit.statements import NoisedSum
from tacit.statements.train_sentences import account_command
from tacit.statements.verify import verify

GOLDEN = Path(__file__).parent.parent / "golden"
BLTS: dict[str, Any] = json.loads((GOLDEN / "blt.json").read_text())
TREE = "tree --rounds 2000 --max-participations 6 --delta 1e-10"


def account(line: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*shlex.split(line), "--json"])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def refusal(line: str) -> str:
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


@pytest.mark.parametrize("separation", ["--rounds-between 313", "--min-separation 314"])
def test_the_tree_colab_case_in_both_conventions(separation: str) -> None:
    # tests/golden/tree_tables.json, "colab".
    figures = account(f"{TREE} {separation} --noise-multiplier 7")
    assert figures["sensitivity_squared"] == 79
    assert figures["zcdp"] == pytest.approx(0.806122, abs=5e-7)
    assert figures["epsilon"] == pytest.approx(8.526, abs=5e-4)
    assert (figures["min_separation"], figures["rounds_between"], figures["delta"]) == (314, 313, 1e-10)


@pytest.mark.parametrize("row", BLTS["table4"], ids=lambda row: f"{row['task']} {row['min_s']}")
def test_the_published_blt_rows(row: dict[str, Any]) -> None:
    figures = account(
        f"blt-{row['blt']} --rounds {row['rounds']} --rounds-between {row['min_s']} "
        f"--max-participations {row['max_p']} --noise-multiplier {row['z']} --delta 1e-10"
    )
    assert figures["zcdp"] == pytest.approx(row["rho"], abs=5.1e-6)
    assert figures["epsilon"] == pytest.approx(row["epsilon"], abs=1e-3)


def test_the_other_way_round() -> None:
    for target in ("--zcdp 0.5", "--epsilon 3.25"):
        noise = account(f"{TREE} --rounds-between 313 {target}")["noise_multiplier"]
        figures = account(f"{TREE} --rounds-between 313 --noise-multiplier {noise!r}")
        name, value = target[2:].split()
        assert figures[name] == pytest.approx(float(value), rel=1e-9)


def test_a_single_gaussian_release_needs_no_participation() -> None:
    # Paper 1, Section 1: zCDP 0.25 is epsilon 4.49 at delta 1e-10.
    assert account("independent --zcdp 0.25 --delta 1e-10")["epsilon"] == pytest.approx(4.49, abs=5e-3)
    many = account("independent --rounds 100 --min-separation 10 --noise-multiplier 2")
    assert many["sensitivity_squared"] == 10
    assert many["zcdp"] == pytest.approx(1.25)


def test_restarts_change_the_worst_case() -> None:
    once = account(f"{TREE} --rounds-between 100 --noise-multiplier 1")
    restarted = account(f"{TREE} --rounds-between 100 --noise-multiplier 1 --restarts 500,1000,1500")
    assert restarted["restarts"] == [500, 1000, 1500]
    assert restarted["sensitivity_squared"] < once["sensitivity_squared"]


@pytest.mark.parametrize(
    "strategy",
    [
        Independent(),
        Tree(restarts=(16, 40)),
        Blt(theta=(0.99, 0.7), omega=(0.1, 0.2)),
        BandedToeplitz((1.0, 0.5, 0.25)),
        BandedInverse((1.0, -0.5)),
    ],
    ids=repr,
)
def test_the_command_of_a_statement_gives_its_figures(strategy: Strategy) -> None:
    promise = Guarantee(
        participation=Participation(rounds=100, min_separation=7, max_participations=4),
        strategy=strategy,
        clip_norm=3.0,
        noise_multiplier=1.1,
    )
    command = account_command(promise, 1e-8)
    assert command is not None
    figures = account(command.removeprefix("tacit account "))
    assert (figures["zcdp"], figures["epsilon"]) == (promise.zcdp, promise.epsilon(1e-8))


def test_epsilon_is_at_the_delta_of_a_run_where_the_number_of_clients_is_given() -> None:
    """As `tacit train` gives it where the recipe says no other: min(1e-5, n^-1.1)."""
    line = "tree --rounds 2000 --max-participations 6 --min-separation 321 --noise-multiplier 7"
    few, many = account(f"{line} --clients 5000"), account(f"{line} --clients 1000000")
    assert (few["delta"], many["delta"], account(line)["delta"]) == (1e-5, 2e-7, 1e-10)
    assert few["epsilon"] == account(f"{line} --delta 1e-5")["epsilon"]
    asked = account(line.replace("--noise-multiplier 7", "--epsilon 8 --clients 5000"))
    assert asked["epsilon"] == pytest.approx(8) and asked["delta"] == 1e-5


def test_the_readable_form_names_delta_beside_epsilon() -> None:
    result = CliRunner().invoke(app, shlex.split(f"{TREE} --rounds-between 313 --noise-multiplier 7"))
    assert result.exit_code == 0
    for words in (
        ["sensitivity", "squared", "79"],
        ["zcdp", "0.806123"],  # 79 / 98 = 0.8061224..., rounded up
        ["epsilon", "8.5261"],  # 8.52609..., rounded up
        ["delta", "1e-10"],
    ):
        assert words in [line.split() for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (f"{TREE} --noise-multiplier 7", "neither of --rounds-between and --min-separation"),
        (f"{TREE} --rounds-between 3 --min-separation 4 --noise-multiplier 7", "both (3 and 4)"),
        (f"{TREE} --rounds-between 313", "0 of noise_multiplier, zcdp and epsilon"),
        (f"{TREE} --rounds-between 313 --noise-multiplier 7 --zcdp 1", "2 of noise_multiplier"),
        (f"{TREE} --rounds-between 313 --noise-multiplier 0", "noise_multiplier=0.0"),
        (f"{TREE} --rounds-between 313 --noise-multiplier nan", "--noise-multiplier nan"),
        (f"{TREE} --rounds-between 313 --zcdp 0", "zcdp=0.0"),
        (f"{TREE} --rounds-between 313 --noise-multiplier 7 --delta 1", "delta=1.0"),
        (f"{TREE} --rounds-between 313 --noise-multiplier 7 --clients 9", "drop one of them"),
        (f"{TREE.split(' --delta')[0]} --rounds-between 3 --noise-multiplier 7 --clients 0", "at least one client"),
        (f"{TREE} --rounds-between -1 --noise-multiplier 7", "rounds_between=-1"),
        (f"{TREE} --rounds-between 313 --noise-multiplier 7 --restarts 5,3", "restarts=(5, 3)"),
        (
            f"{TREE} --rounds-between 313 --noise-multiplier 7 --restarts soon",
            "'soon' is not a list of rounds",
        ),
        ("tree --rounds 0 --rounds-between 3 --noise-multiplier 7", "rounds=0"),
        ("independent --rounds 10 --noise-multiplier 7", "neither of"),
        ("blt --rounds 10 --min-separation 2 --noise-multiplier 1 --theta 0.9", "theta and omega come together"),
        (
            "blt --rounds 10 --min-separation 2 --noise-multiplier 1 --theta 0.9 --omega 0.2 --buffers 2",
            "theta with omega, or buffers say which",
        ),
        (
            "blt --rounds 10 --min-separation 2 --noise-multiplier 1 --theta 0.9,a --omega 0.2",
            "'0.9,a' is not a list",
        ),
        (
            "blt --rounds 10 --min-separation 2 --noise-multiplier 1 --theta 0.9,0.8 --omega 0.2",
            "2 theta and 1 omega",
        ),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_two(line: str, complaint: str) -> None:
    assert complaint in refusal(line)


def test_the_statement_of_a_run_verifies(tmp_path: Path) -> None:
    promised = {"strategy": Tree().to_record(), "clip_norm": 1.0, "noise_multiplier": 2.0}
    metadata = training_metadata(guarantee=promised, delta=1e-8)
    run = Run.create(tmp_path / "run", 'name = "made by hand"\n', metadata, b"k" * 16)
    with run:
        for round in range(4):
            release = NoisedSum(
                round=round,
                what="model update",
                strategy_record=Tree().to_record(),
                clip_norm=1.0,
                noise_multiplier=2.0,
                reports=5,
                dropped=0,
            )
            row = StepEntry(
                step=round, file="c", digest="0" * 64, releases=(to_plain(release),), measures={"loss": 1.0}
            )
            run.commit(row, clients=np.arange(5) + 5 * (round % 2), finished=float(round), seconds=1.0)
    path = tmp_path / "statement.json"
    shown = account(f"run {shlex.quote(str(tmp_path / 'run'))} --delta 1e-7 --statement {shlex.quote(str(path))}")
    record = json.loads(path.read_text())
    assert record["realised"]["epsilon"] == shown["epsilon"]
    assert record["delta"] == 1e-7
    assert all(line.holds for line in verify(record))


@pytest.mark.parametrize(
    "encoding",
    ["--clip-inflation 1.0100306581208347", "--secagg-dimension 4194304 --secagg-scale 1448 --secagg-clip-norm 5"],
)
def test_encoding_for_secure_aggregation_lengthens_the_updates(encoding: str) -> None:
    plain = account(f"{TREE} --rounds-between 313 --noise-multiplier 7")
    encoded = account(f"{TREE} --rounds-between 313 --noise-multiplier 7 {encoding}")
    assert encoded["clip_inflation"] == pytest.approx(1.0100306581208347, rel=1e-12)
    assert encoded["zcdp"] == pytest.approx(plain["zcdp"] * encoded["clip_inflation"] ** 2, rel=1e-12)
    assert "clip_inflation" not in plain
    wrong = refusal(f"{TREE} --rounds-between 313 --noise-multiplier 7 --secagg-scale 3")
    assert "all three of --secagg-dimension" in wrong


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_strategy_from_a_file(tmp_path: Path, wrapped: bool) -> None:
    path = tmp_path / "strategy.json"
    record = Blt(theta=(0.99, 0.7), omega=(0.1, 0.2)).to_record()
    path.write_text(json.dumps({"loss": 3.0, "strategy": record} if wrapped else record))
    limits = "--rounds 100 --min-separation 7 --noise-multiplier 2"
    figures = account(f"strategy {shlex.quote(str(path))} {limits}")
    assert figures == account(f"blt --theta 0.99,0.7 --omega 0.1,0.2 {limits}")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "no strategy file"),
        ("{", "not JSON"),
        ("[]", "no record of a strategy"),
        ('{"loss": 1}', "no record of a strategy"),
        ('{"kind": "quilted"}', "'quilted'"),
        ('{"kind": "tree", "leaves": 3}', "cannot be read"),
    ],
)
def test_a_file_without_a_strategy(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "strategy.json"
    if text is not None:
        path.write_text(text)
    line = f"strategy {shlex.quote(str(path))} --rounds 10 --min-separation 7 --noise-multiplier 2"
    assert complaint in refusal(line)


@pytest.mark.parametrize(
    "kind",
    ["blt --theta 0.9 --omega 1.2", "banded-toeplitz --coefficients 1,2", "banded-toeplitz --coefficients 1,-0.5"],
)
def test_coefficients_that_rise_or_are_negative_are_refused(kind: str) -> None:
    result = CliRunner().invoke(app, shlex.split(f"{kind} --rounds 10 --min-separation 2 --noise-multiplier 1"))
    assert result.exit_code == 2 and "non-negative, non-increasing" in " ".join(result.output.split())


def test_where_only_a_bound_is_proved_the_command_says_so(tmp_path: Path) -> None:
    line = "banded-inverse --rounds 10 --min-separation 2 --noise-multiplier 1 --coefficients 1,-0.3,-0.6"  # C rises
    figures = account(line)
    assert figures["exact"] is False
    result = CliRunner().invoke(app, shlex.split(line))
    assert "A proved UPPER BOUND" in result.stdout and "Exact" not in result.stdout
    path = tmp_path / "strategy.json"
    path.write_text(json.dumps(Dense(np.tril(np.ones((10, 10)))).to_record()))
    limits = "--rounds 10 --min-separation 10 --noise-multiplier 1"
    once = account(f"strategy {shlex.quote(str(path))} {limits}")
    assert (once["mechanism"], once["shape"], once["exact"]) == ("dense", [10, 10], True)
    assert once["sensitivity_squared"] == pytest.approx(10)
    assert "values" not in once


@pytest.mark.parametrize("kind", ["banded-toeplitz --coefficients 1,0.5,0.25", "banded-inverse --coefficients 1,-0.5"])
def test_banded_mechanisms_by_their_coefficients(kind: str) -> None:
    figures = account(f"{kind} --rounds 40 --min-separation 9 --noise-multiplier 2")
    column = BandedToeplitz((1.0, 0.5, 0.25)) if "toeplitz" in kind else BandedInverse((1.0, -0.5))
    matrix = column.dense(40)
    pattern = range(0, 40, 9)  # coefficients fall, so as early as possible is the worst case
    assert figures["sensitivity_squared"] == pytest.approx(np.sum(matrix[:, list(pattern)].sum(axis=1) ** 2))
    assert figures["exact"] is True


def test_amplified_says_what_it_is_not_for() -> None:
    line = "amplified --rounds 40 --population 30000 --batch 100 --noise-multiplier 1 --delta 1e-6"
    figures = account(f"{line} --mechanism banded-toeplitz --coefficients 1,0.4,0.2")
    assert (figures["cycle"], figures["compositions"]) == (3, 14)
    assert figures["sampling_probability"] == pytest.approx(0.01)
    assert figures["epsilon"] < figures["epsilon_without_sampling"] / 3
    result = CliRunner().invoke(app, shlex.split(f"{line} --mechanism independent"))
    assert result.exit_code == 0 and "NOT valid for federated learning" in result.stdout
    assert "is not banded" in refusal(f"{line} --mechanism tree")


def test_an_account_needs_no_accelerator() -> None:
    code = (
        "import sys; from tacit.cli.commands import app; "
        "app('account tree --rounds 9 --min-separation 3 --noise-multiplier 1 --json'.split(), standalone_mode=False); "
        "assert not {'jax', 'numba', 'optax', 'matplotlib'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_of_the_catalogue_is_a_command_and_an_option(name: str, tmp_path: Path) -> None:
    """A closed form or numbers as they are; a design for these limits otherwise."""
    limits = "--min-separation 8" if name == "dense" else "--min-separation 3"
    figures = account(f"{name} --rounds 8 {limits} --noise-multiplier 1")
    path = tmp_path / "rounds.csv"
    path.write_text("round,finished\n" + "".join(f"{at},{at * 3600}\n" for at in range(8)))
    timer = "8h" if name == "dense" else "3h"
    logged = account(f"log {shlex.quote(str(path))} --timer {timer} --mechanism {name} --noise-multiplier 1")
    assert logged["mechanism"] == figures["mechanism"]
    assert logged["sensitivity_squared"] == pytest.approx(figures["sensitivity_squared"], rel=1e-6)
