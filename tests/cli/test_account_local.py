"""`tacit account shuffle`, `populations` and `user`, as people and programs call them."""

import json

import pytest
import typer
from typer.testing import CliRunner

from tacit.cli import account_local
from tacit.planning.discovery import user_level
from tacit.privacy.local_shuffling import shuffle_epsilon

app = typer.Typer()
app.command("shuffle")(account_local.shuffle)
app.command("populations")(account_local.populations)
app.command("user")(account_local.user)


def run(words: str) -> tuple[int, str]:
    made = CliRunner().invoke(app, words.split())
    return made.exit_code, made.output


class TestShuffle:
    @pytest.mark.parametrize("randomizer", ["subset-selection", "any"])
    def test_json(self, randomizer: str) -> None:
        settings = "--local-epsilon 6 --reports 100000000 --delta 1e-10 --domain 100001 --json"
        code, output = run(f"shuffle {settings} --randomizer {randomizer}")
        assert code == 0
        found = json.loads(output)
        expected = shuffle_epsilon(6.0, 10**8, 1e-10, randomizer, 100_001)  # type: ignore[arg-type]
        assert found["epsilon_upper"] == expected.epsilon_upper
        assert found["epsilon_lower"] == expected.epsilon_lower
        assert found["theorem"] == expected.theorem

    def test_eyes_see_the_figure_rounded_up(self) -> None:
        _, output = run("shuffle --local-epsilon 6 --reports 1000000 --delta 1e-8 --domain 1001")
        exact = shuffle_epsilon(6.0, 10**6, 1e-8, "subset-selection", 1001).epsilon_upper
        shown = float(output.split("proved")[1].split()[0])
        assert exact <= shown < exact * 1.001

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            ("--local-epsilon 6 --reports 100", "domain=None"),
            ("--local-epsilon 0 --reports 100 --randomizer any", "local_epsilon=0"),
            ("--local-epsilon inf --reports 100 --randomizer any", "--local-epsilon inf"),
            ("--local-epsilon 6 --reports 0 --randomizer any", "reports=0"),
            ("--local-epsilon 6 --reports 10 --domain 1", "domain=1"),
            ("--local-epsilon 6 --reports 10 --randomizer gaussian", "gaussian"),
        ],
    )
    def test_bad_input_is_one_sentence(self, words: str, named: str) -> None:
        code, output = run(f"shuffle {words}")
        assert code == 2
        assert named in output
        assert "Traceback" not in output


class TestPopulations:
    WORDS = "populations --populations 1e4,1e6 --local-epsilons 2,6 --domain 1001"

    def test_json_has_a_row_for_each_pair(self) -> None:
        code, output = run(f"{self.WORDS} --json")
        assert code == 0
        rows = json.loads(output)["rows"]
        assert [(row["population"], row["local_epsilon"]) for row in rows] == [
            (10_000, 2.0),
            (10_000, 6.0),
            (1_000_000, 2.0),
            (1_000_000, 6.0),
        ]
        assert rows[3]["findable_share"] < rows[1]["findable_share"]

    def test_the_smallest_populations_that_are_promised_so_much(self) -> None:
        code, output = run("populations --central-epsilon 0.5 --local-epsilons 2,4 --domain 1001 --groups 30 --json")
        rows = json.loads(output)["rows"]
        assert code == 0 and [row["local_epsilon"] for row in rows] == [2.0, 4.0]
        assert all(0.495 < row["epsilon_upper"] <= 0.5 and row["population"] % 30 == 0 for row in rows)

    def test_table(self) -> None:
        code, output = run(self.WORDS)
        assert code == 0
        assert "1,000,000" in output
        assert "central epsilon" in output

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            ("--local-epsilons ,", "local_epsilons names none, so there is nothing to say; give one at least"),
            ("--populations ,", "populations names none"),
            ("--k-anonymity 20", "k,delta"),
            ("--populations many", "not a list of numbers"),
            ("--populations 3", "population=3"),
            ("--central-epsilon 0", "ask for one above 0"),
        ],
    )
    def test_bad_input_is_one_sentence(self, words: str, named: str) -> None:
        code, output = run(f"populations {words}")
        assert code == 2
        assert named in output


class TestUser:
    SETTINGS = "user --user-epsilon 8 --contributions 5 --users 1000000 --domain 10001"

    @pytest.mark.parametrize(("count", "better"), [(100, "one word"), (950_000, "all words")])
    def test_the_better_way_is_named(self, count: int, better: str) -> None:
        code, output = run(f"{self.SETTINGS} --count {count} --json")
        assert code == 0 and json.loads(output) == {
            "schema": "tacit.account.user",
            "version": 1,
            **user_level(8.0, 5, 10**6, 10_001, count).to_record(),
        }
        code, output = run(f"{self.SETTINGS} --count {count}")
        assert code == 0 and f"take {better}" in output and "epsilon 1.6 each" in output

    def test_what_cannot_be_is_one_line(self) -> None:
        code, output = run(f"{self.SETTINGS} --count 1000001")
        assert code == 2 and "count=1e+06" in output and output.count("\n") == 1
