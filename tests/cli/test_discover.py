"""`tacit discover`, `tacit vocab extend`: one run from end to end, options as settings, refusals of one line."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.discovery.typed_words import write_clients
from typer.testing import CliRunner, Result

from tacit.cli import vocab
from tacit.cli.discover import discover_words
from tacit.cli.options import SecureOptions
from tacit.cli.verify import verify_statement
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.errors import InputError
from tacit.privacy.local_anonymity import Anonymity
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.text.vocabulary import Vocabulary

app = typer.Typer()
app.command("discover")(discover_words)
app.add_typer(vocab.app, name="vocab")
app.command("verify")(verify_statement)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clients(tmp_path_factory.mktemp("clients"))


def arguments(folder: Path, out: Path, **changes: object) -> list[str]:
    options: dict[str, object] = {
        "data": folder / "typed.parquet",
        "vocabulary": folder / "vocabulary.json",
        "out": out,
        "local_epsilon": 6,
        "users_per_layer": 3000,
        "prefixes": 40,
        "depth": 7,
        "alphabet": "abcdefghijklmnopqrstuvwxyz",
        **changes,
    }
    named = [(f"--{name.replace('_', '-')}", str(value)) for name, value in options.items()]
    return ["discover", "--resample-users", *[part for pair in named for part in pair]]


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


def test_from_clients_to_a_larger_vocabulary(clients: Path, tmp_path: Path) -> None:
    out, new = tmp_path / "run", tmp_path / "new.json"
    asked = arguments(clients, out, seed=1, k_anonymity="20,1e-3")
    shown = run(*asked)
    assert shown.exit_code == 0, shown.output
    assert "SIMULATED POPULATION" in shown.stderr and "FIXED SEED 1" in shown.stderr
    assert "asking layers: 7 of 7" in shown.stderr
    assert "2 words from 24,000 users" in shown.stdout and "fewer than 20 contributors" in shown.stdout
    record = run_json(*asked)  # nothing is left to ask
    assert (record["words"], record["seed"], record["anonymity"]["k"]) == (2, 1, 20)
    assert run("verify", out / "report" / "statement.json").exit_code == 0
    extend = ("vocab", "extend", "--vocabulary", clients / "vocabulary.json", "--words", out)
    facts = run_json(*extend, "--out", new, "--data", clients / "typed.parquet")
    assert facts["added"] == 2 and facts["provenance"] == "private"  # a fixed seed protects nobody
    assert facts["held_out"]["oov_rate_after"] < 0.01 < facts["held_out"]["oov_rate_before"]
    assert set(Vocabulary.load(new).words[2:]) == {"covid", "selfie"}
    assert "2 of them new" in run(*extend, "--out", tmp_path / "other.json").stdout
    assert "never replaced" in refusal(*extend, "--out", new)
    assert "takes no word" in refusal(*extend, "--out", tmp_path / "third.json", "--most", 0)


def test_a_secure_sum_is_a_protocol_of_the_settings() -> None:
    few = SecureOptions(secure_sum="one-message", secure_devices=4).protocol()
    assert few == SimulatedProtocol(protocol="one-message", devices=4)
    assert SecureOptions().protocol() is None and SecureOptions(secure_sum="masks").protocol() == SimulatedProtocol()


def test_options_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[DiscoverySettings] = []

    def job(data: str, vocabulary: Path, out: Path, settings: DiscoverySettings, **_: Any) -> None:
        given.append(settings)
        raise InputError("no run is wanted.")

    def made(**changes: object) -> DiscoverySettings:
        asked = {"local_epsilon": 4.0, "users_per_layer": 90, "data": "d", "vocabulary": "v", "out": "o", **changes}
        words = [part for name, value in asked.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        assert "no run is wanted" in refusal("discover", *words)
        return given.pop()

    monkeypatch.setattr("tacit.jobs.discover.job.discover", job)
    assert made() == DiscoverySettings(
        reports=LocalReportSettings(local_epsilon=4.0), users_per_layer=90, counting_users=90
    )
    full = made(
        contributions=2,
        sampler="greedy",
        randomizer="k-ary",
        k_anonymity="3,1e-3",
        alphabet="ab",
        more_characters="bñ",
        counting_users=0,
        allocation="middle",
    )
    assert full.reports == LocalReportSettings(local_epsilon=4.0, contributions=2, sampler="greedy", randomizer="k-ary")
    assert (full.alphabet.characters, full.anonymity) == ("abñ", Anonymity(k=3, delta=1e-3))
    assert (full.counting_users, full.allocation, full.seed, full.resample_users) == (0, "middle", None, False)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"secure_sum": "mask"}, "masks, one-message"),
        ({"secure_sum": "masks", "secure_devices": 2}, "hide nothing"),
        ({"secure_devices": 5}, "add --secure-sum masks"),
        ({"local_epsilon": 0}, "below, a report says nothing"),
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
    clients: Path,
    tmp_path: Path,
    changes: dict[str, object],
    says: str,
) -> None:
    assert says in refusal(*arguments(clients, tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()
