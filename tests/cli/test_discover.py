"""`tacit discover` and `tacit vocab extend`: words found, folders that go on, refusals of one line."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from tests.conftest import REPOSITORY
from typer.testing import CliRunner, Result

from tacit.cli import vocab
from tacit.cli.discover import discover_words
from tacit.cli.verify import verify_statement
from tacit.data import VocabularyChoice
from tacit.discovery.campaign_folder import CampaignFolder
from tacit.jobs.import_data import import_data
from tacit.keyboard.vocabulary import Provenance, Vocabulary

KNOWN = Vocabulary(words=("the", "of"), provenance=Provenance(kind="public", description="two words"))
SETTINGS = {
    "--local-epsilon": 6,
    "--users-per-layer": 3000,
    "--prefixes": 40,
    "--depth": 7,
    "--alphabet": "abcdefghijklmnopqrstuvwxyz",
}

app = typer.Typer()
app.command("discover")(discover_words)
app.add_typer(vocab.app, name="vocab")
app.command("verify")(verify_statement)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 made-up clients: everybody types `the`, many `covid`, some `selfie`; one types `año` and a long word."""
    folder = tmp_path_factory.mktemp("clients")
    generator = np.random.default_rng(0)
    rows = []
    for client in range(300):
        words = ["the"] * 5 + ["covid"] * (client % 2) + ["selfie"] * (client % 5 == 0) + ["año"] * (client == 0)
        rows.append((f"c{client:03d}", " ".join(generator.permutation(words)) + " incomprehensible" * (client == 1)))
    names, texts = zip(*rows, strict=True)
    pq.write_table(pa.table({"client_id": names, "text": texts}), folder / "typed.parquet")
    KNOWN.save(folder / "vocabulary.json")
    return folder


def arguments(clients: Path, out: Path, **changes: object) -> list[str]:
    settings = {
        "--data": clients / "typed.parquet",
        "--vocabulary": clients / "vocabulary.json",
        "--out": out,
        **SETTINGS,
        **{"--" + name.replace("_", "-"): value for name, value in changes.items()},
    }
    flags = {"--resample-users": settings.pop("--resample-users", True)}
    given = [str(part) for name, value in settings.items() if value is not None for part in (name, value)]
    return ["discover", *given, *[flag for flag, on in flags.items() if on]]


def run(*given: object) -> Result:
    return CliRunner().invoke(app, [str(part) for part in given])


def run_json(*given: object) -> dict[str, Any]:
    result = run(*given, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    values: dict[str, Any] = json.loads(result.stdout)
    return values


def refusal(*given: object) -> str:
    result = run(*given)
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    return lines[0]


def found_in(out: Path) -> list[str]:
    with (out / "words.csv").open(newline="", encoding="utf-8") as file:
        return [row["word"] for row in csv.DictReader(file)]


def test_words_are_found_counted_and_added_to_the_vocabulary(clients: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shown = run(*arguments(clients, out, seed=1, k_anonymity="20,1e-3"))
    assert shown.exit_code == 0, shown.output
    assert "SIMULATED POPULATION" in shown.stderr and "FIXED SEED 1" in shown.stderr
    assert "pass 1 layer 7:" in shown.stderr
    assert set(found_in(out)) == {"covid", "selfie"}
    again = run_json(*arguments(clients, out, seed=1, k_anonymity="20,1e-3"))  # nothing is left to ask
    assert again["words"] == 2
    assert again["simulation"]["words_nobody_typed"] == 0
    assert again["simulation"]["words_left_out"] == {
        "outside the alphabet": 1,
        "too long for the depth": 1,
        "not spelt in the cache": 0,
    }
    assert again["guarantee"]["local_epsilon_item"] == again["guarantee"]["local_epsilon_user"] == 6.0
    assert again["guarantee"]["central_epsilon_item"] < 6.0
    assert again["guarantee"]["randomness"] == "fixed seed 1" and again["guarantee"]["resampled"]
    assert again["anonymity"]["delta_of_thresholds"] <= again["anonymity"]["delta"] == 1e-3
    assert again["coverage"]["value"] == pytest.approx(again["simulation"]["coverage"], abs=0.03)
    rows = {row["word"]: row for row in json.loads((out / "result.json").read_text())["found"]}
    share = np.mean([client % 2 for client in range(300)])
    assert rows["covid"]["low"] < 3000 * share * 1.1 and rows["covid"]["high"] > 3000 * share * 0.7

    statement = out / "report" / "statement.json"
    assert (out / "report" / "statement.md").read_text().startswith("**FIXED SEED")
    verified = run("verify", statement)
    assert verified.exit_code == 0, verified.output
    record = json.loads(statement.read_text())
    assert record["guarantee"] == json.loads((out / "result.json").read_text())["guarantee"]
    assert record["words"] == 2 and len(record["facts"]["releases"]) == len(list((out / "steps").iterdir()))
    record["guarantee"]["central_epsilon_item"] /= 2
    (tmp_path / "changed.json").write_text(json.dumps(record))
    changed = run("verify", tmp_path / "changed.json")
    assert changed.exit_code == 1 and "FAILS  guarantee.central_epsilon_item" in changed.stdout

    new = tmp_path / "new.json"
    facts = run_json(
        "vocab", "extend", "--vocabulary", clients / "vocabulary.json", "--words", out, "--out", new,
        "--data", clients / "typed.parquet",
    )  # fmt: skip
    assert Vocabulary.load(new).words[:2] == KNOWN.words
    assert set(Vocabulary.load(new).words[2:]) == {"covid", "selfie"}
    assert facts["added"] == 2 and facts["provenance"] == "private"  # a fixed seed protects nobody
    assert facts["held_out"]["oov_rate_after"] < 0.01 < 0.05 < facts["held_out"]["oov_rate_before"]
    assert "never replaced" in refusal(
        "vocab", "extend", "--vocabulary", clients / "vocabulary.json", "--words", out, "--out", new
    )
    assert "another vocabulary" in refusal(
        "vocab", "extend", "--vocabulary", new, "--words", out, "--out", tmp_path / "third.json"
    )


def test_a_wider_alphabet_finds_other_words(clients: Path, tmp_path: Path) -> None:
    facts = run_json(*arguments(clients, tmp_path / "run", seed=1, more_characters="ñé"))
    assert facts["simulation"]["words_left_out"]["outside the alphabet"] == 0


def test_a_cache_gives_what_its_vocabulary_spells(clients: Path, tmp_path: Path) -> None:
    listed = tmp_path / "words.txt"
    listed.write_text("the\ncovid\n", encoding="utf-8")
    import_data(str(clients / "typed.parquet"), tmp_path / "cache", vocabulary=VocabularyChoice(word_list=listed))
    asked = arguments(clients, tmp_path / "run", data=tmp_path / "cache", seed=1, k_anonymity="20,1e-3")
    facts = run_json(*asked)
    assert found_in(tmp_path / "run") == ["covid"]
    assert facts["simulation"]["words_left_out"]["not spelt in the cache"] > 40


def test_without_a_seed_the_clients_themselves_are_asked_once(clients: Path, tmp_path: Path) -> None:
    small = arguments(clients, tmp_path / "run", users_per_layer=30, resample_users=False, counting_users=20)
    shown = run(*small)
    assert shown.exit_code == 0, shown.output
    assert "SIMULATED" not in shown.stderr and "SEED" not in shown.stderr
    first = found_in(tmp_path / "run")
    assert run(*small).exit_code == 0
    assert found_in(tmp_path / "run") == first


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"resample_users": False}, "asks 24,000 users, the population has 2"),
        ({"local_epsilon": 0}, "at 0 a report says nothing"),
        ({"local_epsilon": 1e6}, "local guarantees lie between"),
        ({"contributions": 0}, "ask for 1 or more"),
        ({"sampler": "best"}, "one of random, greedy"),
        ({"randomizer": "none"}, "one of subset-selection"),
        ({"depth": 1}, "need 2 layers"),
        ({"alphabet": "aa"}, "each character once"),
        ({"alphabet": ""}, "at least one character"),
        ({"k_anonymity": "20"}, "is not k,delta"),
        ({"k_anonymity": "0,0.1"}, "needs k >= 1"),
        ({"k_anonymity": "2,7"}, "not between 0 and 1"),
        ({"k_anonymity": "3001,0.1"}, "more than 3000, the reports of the smallest layer"),
        ({"prefixes": 10**9}, "domain=27000000001 is not between"),
        ({"seed": -1}, "0 or more"),
        ({"delta": 0}, "between 0 and 1"),
        ({"data": "nowhere.parquet"}, "check the path"),
        ({"vocabulary": "nowhere.json"}, "no vocabulary at"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    clients: Path, tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    assert says in refusal(*arguments(clients, tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


def test_other_settings_do_not_continue_a_folder(clients: Path, tmp_path: Path) -> None:
    assert run(*arguments(clients, tmp_path / "run", seed=1)).exit_code == 0
    assert "local_epsilon=5.0 (it has 6.0)" in refusal(*arguments(clients, tmp_path / "run", seed=1, local_epsilon=5))
    unread = {"data": "nowhere.parquet"}  # the settings are checked before all clients are read
    assert "seed=None (it has 1)" in refusal(*arguments(clients, tmp_path / "run", **unread))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("mine")
    assert "left alone" in refusal(*arguments(clients, tmp_path / "other", **unread))
    (tmp_path / "run" / "result.json").unlink()
    assert "is not finished" in refusal(
        "vocab", "extend", "--vocabulary", clients / "vocabulary.json", "--words", tmp_path / "run",
        "--out", tmp_path / "new.json",
    )  # fmt: skip


def test_killed_between_layers_it_ends_with_the_same_files(clients: Path, tmp_path: Path) -> None:
    """A child process is killed by SIGKILL as soon as some layers are on disk, twice; then it is let finish."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    settings = {"seed": 3, "passes": 2}
    assert run(*arguments(clients, whole, **settings)).exit_code == 0
    slow = "import time, tacit.discovery.trie as t, tacit.discovery.rounds as d; g = t.grow\n"
    slow += "def late(*a, **k):\n    time.sleep(0.15); return g(*a, **k)\nd.grow = late\n"
    start = "import tests.cli.test_discover as t; t.app()\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])}
    for reached in ("pass-1-layer-03", "pass-2-layer-02"):
        child = subprocess.Popen(
            [sys.executable, "-c", slow + start, *arguments(clients, killed, **settings)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        while not (killed / "steps" / f"{reached}.json").exists() and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        _, complaints = child.communicate()
        assert child.returncode == -signal.SIGKILL, complaints.decode()
    assert not (killed / "result.json").exists()
    assert run(*arguments(clients, killed, **settings)).exit_code == 0
    steps = sorted(path.name for path in (whole / "steps").iterdir())
    assert steps == sorted(path.name for path in (killed / "steps").iterdir())
    for name in ["words.csv", *[f"steps/{step}" for step in steps]]:
        assert (whole / name).read_bytes() == (killed / name).read_bytes()
    assert CampaignFolder.reading(whole).ledger() == CampaignFolder.reading(killed).ledger()
