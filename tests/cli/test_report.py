"""The report, the comparison and the account of run folders that no training made: written row by row here."""

import base64
import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from tests.made_runs import training_metadata
from typer.testing import CliRunner

from tacit.cli import account
from tacit.cli.report import compare, report
from tacit.errors import AccountingError
from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy
from tacit.records import to_plain
from tacit.reports.page import parts
from tacit.reports.summary import summarise
from tacit.reports.training import write_report
from tacit.runs import Metric, Run, Step
from tacit.runs.metadata import CacheUsed
from tacit.statements import Ledger, NoisedSum
from tacit.statements.accounts import CURVE_POINTS, Accounts, accounts_of, spent
from tacit.statements.run_facts import statement_of
from tacit.statements.verify import verify

app = typer.Typer()
app.command("report")(report)
app.command("compare")(compare)
app.add_typer(account.app, name="account")

MakeRun = Callable[..., Path]
DELTA = 1e-10
REPORT_GOAL = 4
SEPARATION = 5
LABELS = ("NON-PRIVATE", "VOCABULARY FROM PRIVATE TEXT", "FIXED SEED", "EXTRAPOLATED", "UNFINISHED")


def release(round: int, strategy: Strategy | None, noise: float, dropped: int = 0) -> NoisedSum:
    return NoisedSum(
        round=round,
        what="model update",
        strategy_record=None if strategy is None else strategy.to_record(),
        clip_norm=1.0,
        noise_multiplier=noise,
        reports=REPORT_GOAL - dropped,
        dropped=dropped,
    )


def write_run(
    path: Path,
    *,
    strategy: Strategy | None,
    rounds: int = 20,
    done: int | None = None,
    noise: float = 6.0,
    every: int = 5,
    separation: int = SEPARATION,
    name: str = "made by hand",
    finished: bool | None = None,
    **changed: Any,
) -> Path:
    """A run folder in which client c comes every `separation` rounds, but for the cohort of the last."""
    done, noise = rounds if done is None else done, noise if strategy else 0.0
    served = Participation.worst_case(rounds, SEPARATION)
    metadata = training_metadata(
        **{
            "versions": {"tacit": "0.1.0", "jax": "0.10", "numpy": "2", "python": "3.11"},
            "created": 1_790_000_000.0,
            "data": CacheUsed(
                cache="caches/made",
                source="made <by> hand",
                vocabulary_sha256="ab" * 32,
                vocabulary_size=104,
                cache_digest="cd" * 32,
            ),
            "vocabulary": {"kind": "public", "description": "100 words of public text"},
            "population": 100,
            "report_goal": REPORT_GOAL,
            "participation": asdict(served),
            "guarantee": {
                "strategy": None if strategy is None else strategy.to_record(),
                "clip_norm": 1.0,
                "noise_multiplier": noise,
            },
            "delta": DELTA,
            "evaluation": {"every": every, "clients": 10, "test_clients": 20, "sentences": 64},
            **changed,
        }
    )
    recipe = f'name = "{name}"\n[rounds]\nrounds = {rounds}\nreport_goal = {REPORT_GOAL}\n'
    with Run.create(path, recipe, metadata, b"k" * 16) as run:
        if done == rounds if finished is None else finished:
            run.finish()
        measure(run, 0, "validation")
        for round in range(done):
            row = Step(
                step=round,
                file=f"round-{round:06d}.safetensors",
                digest="0" * 64,
                releases=(to_plain(release(round, strategy, noise, dropped=round % 2)),),
                measures={"loss": 6.0 - round / 10, "clipped": 0.5},
            )
            clients = np.arange(REPORT_GOAL) + REPORT_GOAL * (round % separation)
            run.commit(row, clients=clients, finished=1_790_000_000.0 + round, seconds=0.5)
            if (round + 1) % every == 0:
                measure(run, round + 1, "validation")
        if done == rounds:
            measure(run, rounds, "test")
    return path


def measure(run: Run, rounds: int, split: str) -> None:
    values = {"top1_accuracy": 0.01 * rounds**0.5, "top3_accuracy": 0.02 * rounds**0.5, "oov_rate": 0.1}
    values |= {"cross_entropy": 6.0, "words": 1000.0, "clients": 10.0}
    values |= {f"client_accuracy_q{quartile}": 0.1 for quartile in (25, 50, 75)}
    run.record_metrics([Metric(step=rounds, split=split, name=k, value=v) for k, v in values.items()])


RUNS: dict[str, dict[str, Any]] = {
    "tree": {"strategy": Tree()},
    "tree with restarts": {"strategy": Tree(restarts=(8, 16), variance_reduced=True)},
    "blt": {"strategy": PUBLISHED_BLT["b400"]},
    "independent": {"strategy": Independent()},
    "non-private": {"strategy": None},
    "unfinished": {"strategy": Tree(), "done": 7},
    "empty": {"strategy": Tree(), "done": 0},
    "empty and non-private": {"strategy": None, "done": 0},
    "one round": {"strategy": Tree(), "rounds": 1, "every": 1},
    "stands in": {"strategy": Tree(), "stands_in_for": 52},
    "stands in for less": {"strategy": Tree(), "stands_in_for": 4},
    "private words": {
        "strategy": Tree(),
        "vocabulary": {"kind": "private", "description": "counted in clients' text"},
    },
    "fixed seed": {"strategy": Tree(), "key_source": "fixed seed 7"},
    "broken promise": {"strategy": Tree(), "separation": 2},
}
EXPECTED: dict[str, tuple[str, ...]] = {
    "non-private": ("NON-PRIVATE",),
    "unfinished": ("UNFINISHED",),
    "empty": ("NOTHING RELEASED YET",),
    "empty and non-private": ("NOTHING RELEASED YET", "NON-PRIVATE"),
    "stands in": ("EXTRAPOLATED",),
    "private words": ("VOCABULARY FROM PRIVATE TEXT",),
    "fixed seed": ("FIXED SEED",),
    "broken promise": ("WEAKER THAN PLANNED",),
}


DRAWN = {"tree", "blt", "non-private", "unfinished", "empty", "empty and non-private", "one round"}


def invoke(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def values_of(*words: str | Path) -> dict[str, Any]:
    result = invoke(*words, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    return dict(json.loads(result.stdout))


def test_a_broken_promise_is_said_where_a_run_is_accounted(tmp_path: Path) -> None:
    broken, kept = (
        invoke("account", "run", write_run(tmp_path / kind, **RUNS[kind])) for kind in ("broken promise", "tree")
    )
    assert broken.exit_code == kept.exit_code == 0
    assert "WEAKER THAN PLANNED: clients came more often or sooner than planned" in broken.stderr
    assert "WEAKER" not in kept.output


@pytest.mark.parametrize("kind", RUNS)
def test_every_run_has_a_report(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind not in DRAWN:  # drawing takes most of the time, and these have no figures of their own
        monkeypatch.setattr("tacit.reports.training.figures", lambda summary: ())
    path = write_run(tmp_path / "run", **RUNS[kind])
    shown = values_of("report", path)
    assert shown["labels"] == list(EXPECTED.get(kind, ()))
    record = json.loads(Path(shown["files"]["json"]).read_text())
    assert record["labels"] == shown["labels"]
    assert record["rounds"] == len(record["per_round"]["loss"])
    html, markdown = (Path(shown["files"][name]).read_text() for name in ("html", "markdown"))
    for text in (unescape(html), markdown):
        for label in shown["labels"]:
            assert text.index(label) < text.index("How well it predicts"), "labels stand first"
        for number in ("1.", "2a.", "2b.", "2c.", "2d.", "3a.", "3b.", "3c.", "3d."):
            assert (f"{number} " in text) or shown["rounds"] == 0
        assert ("Nothing was released" in text) == (shown["rounds"] == 0)
        assert "made <by> hand" in text
    assert "made <by> hand" not in html, "what others wrote is escaped"
    figures = [Path(figure) for figure in shown["files"]["figures"]]
    assert all(figure.read_bytes().startswith(b"\x89PNG") for figure in figures)
    assert all(f"({figure.name})" in markdown for figure in figures)
    assert len(figures) == (0 if kind not in DRAWN else 1 if shown["rounds"] == 0 else 4 if shown["private"] else 3)
    assert not [each for each in (path / "report").iterdir() if each.name.startswith(".")], "no drafts left"
    statement = path / "report" / "statement.json"
    assert statement.exists() == (shown["rounds"] > 0)
    if statement.exists():
        assert all(line.holds for line in verify(json.loads(statement.read_text())))


def test_the_page_is_in_one_file(tmp_path: Path) -> None:
    with Run.open(write_run(tmp_path / "run", strategy=Tree())) as run:
        html = write_report(summarise(run)).html.read_text()
        again = write_report(summarise(run)).html.read_text()
    assert again == html, "the same folder writes the same page"
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert len(sources) == 4
    for source in sources:
        head, _, data = source.partition(",")
        assert head == "data:image/svg+xml;base64"
        assert b"</svg>" in base64.b64decode(data)
    assert "<script" not in html and "url(" not in html and "@import" not in html
    assert 'name="viewport"' in html


def test_headline_figures_are_those_of_the_run(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree())
    shown = values_of("report", path)
    happened = Participation(rounds=20, min_separation=5, max_participations=4)
    guarantee = Guarantee(participation=happened, strategy=Tree(), clip_norm=1.0, noise_multiplier=6.0)
    assert shown["realised"]["zcdp"] == guarantee.zcdp
    assert shown["realised"]["epsilon"] == guarantee.epsilon(DELTA)
    assert shown["test"]["top1_accuracy"] == pytest.approx(0.01 * 20**0.5)
    assert shown["clients_per_second"] == pytest.approx(REPORT_GOAL / 0.5)
    assert shown["dropped_clients"] == 10
    assert shown["clipped_last_round"] == 0.5
    assert shown["loss_last_round"] == pytest.approx(4.1)
    text = invoke("report", path).stdout
    for words in ("20 of 20", "epsilon at delta 1e-10, realised", rounded_up(guarantee.zcdp), "report.html"):
        assert words in text


@pytest.mark.parametrize("kind", [kind for kind in RUNS if "empty" not in kind])
def test_the_commands_of_the_statement_work_when_pasted(kind: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a run", **RUNS[kind])
    with Run.open(path) as run:
        stated = statement_of(run)
    verifiability = next(item.text for item in stated.items if item.number == "3d")
    commands = [line.strip() for line in verifiability.splitlines() if line.startswith("    ")]
    assert commands[0].startswith("tacit account run ")
    figures = []
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "tacit"
        figures.append(values_of(*words))
    planned, realised = stated.figures["planned"], stated.figures["realised"]
    for name in ("zcdp", "epsilon"):
        assert figures[0]["realised"][name] == figures[0][name] == realised[name]
        assert figures[0]["planned"][name] == planned[name]
        if planned[name] != "inf":
            assert figures[1][name] == planned[name]
            assert figures[-1][name] == realised[name]


def test_account_run_measures_what_happened(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), separation=2)
    (path / "settings.toml").unlink()  # the ledger, the log and the facts are enough
    shown = values_of("account", "run", path, "--delta", "1e-6")
    assert (shown["planned"]["rounds_between"], shown["planned"]["max_participations"]) == (4, 4)
    assert (shown["realised"]["rounds_between"], shown["realised"]["max_participations"]) == (1, 10)
    assert shown["delta"] == shown["realised"]["delta"] == 1e-6
    assert shown["zcdp"] == shown["realised"]["zcdp"] > shown["planned"]["zcdp"]
    assert shown["released_rounds"] == 20
    text = invoke("account", "run", path).stdout
    assert "planned" in text and "realised" in text and "20 of 20 rounds" in text


def test_account_run_of_nothing_and_of_no_noise(tmp_path: Path) -> None:
    empty = values_of("account", "run", write_run(tmp_path / "empty", strategy=Tree(), done=0))
    assert (empty["released_rounds"], empty["zcdp"], empty["epsilon"], empty["realised"]) == (0, 0, 0, None)
    bare = write_run(tmp_path / "bare", strategy=None)
    assert values_of("account", "run", bare)["zcdp"] == "inf"
    assert "NON-PRIVATE" in invoke("account", "run", bare).stdout
    with Run.open(tmp_path / "empty") as run, pytest.raises(AccountingError, match="released no round"):
        statement_of(run)


def test_what_is_extrapolated_stands_apart(tmp_path: Path) -> None:
    """13 times the cohort at the same noise on the mean has 1/169 of the zCDP; never where the run's stands."""
    path = write_run(tmp_path / "run", strategy=Tree(), stands_in_for=52)
    shown = values_of("account", "run", path)
    larger = shown["extrapolated"]
    assert larger["report_goal"] == 52
    assert larger["realised"]["zcdp"] == pytest.approx(shown["zcdp"] / 169)
    assert "EXTRAPOLATED, not a guarantee of this run" in invoke("account", "run", path).stdout
    invoke("report", path)
    html = (path / "report" / "report.html").read_text()
    apart = html.index('class="card other"')
    assert html.count("if its model were as good") == 1
    section = (path / "report" / "report.md").read_text().partition("## Privacy statement\n")[2].lstrip()
    assert section.startswith("**EXTRAPOLATED"), "the statement begins with its labels, wherever it is quoted"
    assert html.index("if its model were as good") > apart > html.index("3d. Transparency")
    assert rounded_up(larger["realised"]["zcdp"]) not in html[: html.index("Privacy statement")]


@given(
    log=st.sets(st.tuples(st.integers(0, 11), st.integers(0, 4)), max_size=40),
    strategy=st.sampled_from([Tree(), Tree(restarts=(5,)), PUBLISHED_BLT["b100"], Independent(), None]),
)
def test_the_price_of_each_prefix_is_that_of_a_run_that_ended_there(
    log: set[tuple[int, int]], strategy: Strategy | None
) -> None:
    rounds, noise = 12, 2.0 if strategy else 0.0
    ledger = Ledger(tuple(release(round, strategy, noise) for round in range(rounds)))
    both = np.array(sorted(log), np.int64).reshape(-1, 2)
    when, who = both[:, 0], both[:, 1]
    whole = ledger.composition(Participation.realised(rounds, when, who))
    read = Accounts(planned=whole, realised=whole, ledger=ledger, round_of=when, client_of=who, delta=DELTA)
    prices = spent(read)
    assert [price.rounds for price in prices] == list(range(rounds + 1))
    assert prices[0].zcdp == prices[0].epsilon == 0
    for price in prices[1:]:
        first = when < price.rounds
        slow = Ledger(ledger.releases[: price.rounds]).guarantee(
            Participation.realised(price.rounds, when[first], who[first])
        )
        assert (price.zcdp, price.epsilon) == (slow.zcdp, slow.epsilon(DELTA))
    assert [price.zcdp for price in prices] == sorted(price.zcdp for price in prices)


def test_long_runs_are_priced_at_evaluations_and_thinned(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Blt(theta=(0.9,), omega=(0.1,)), rounds=600, every=50)
    with Run.open(path) as run:
        read = accounts_of(run)
    assert [price.rounds for price in spent(read, [200, 400])] == [0, 200, 400, 600]
    every = spent(read)
    assert len(every) == CURVE_POINTS + 1 and every[-1].rounds == 600
    assert every[-1].zcdp == (read.realised.zcdp if read.realised else None)


def write_adaptive_run(path: Path, **changed: Any) -> Path:
    """A run of 20 rounds whose tree restarts in round 8, and its clip norm with it: as `tacit train` writes one."""
    tree = Tree(restarts=(8,))
    counts = {"strategy": tree.to_record(), "clip_norm": 0.5, "noise_multiplier": 8.0}
    write_run(path, strategy=tree, done=0, also_released={"clip estimate": counts}, finished=True, **changed)
    with Run.open(path) as run:
        for round in range(20):
            norm = 1.0 if round < 8 else 2.5
            bits = replace(release(round, tree, 8.0), what="clip estimate", clip_norm=0.5)
            row = Step(
                step=round,
                file=f"round-{round:06d}.safetensors",
                digest="0" * 64,
                releases=(to_plain(replace(release(round, tree, 6.0), clip_norm=norm)), to_plain(bits)),
                measures={"loss": 6.0, "clipped": 0.5, "clip_norm": norm, "clip_estimate": 1 + round / 10},
            )
            clients = np.arange(REPORT_GOAL) + REPORT_GOAL * (round % SEPARATION)
            run.commit(row, clients=clients, finished=1_790_000_000.0 + round, seconds=0.5)
        measure(run, 20, "test")
    return path


def test_the_price_of_adaptive_clipping_is_in_every_figure(tmp_path: Path) -> None:
    path = write_adaptive_run(tmp_path / "run", stands_in_for=52)
    served = Participation.worst_case(20, SEPARATION)
    updates, counts = (
        Guarantee(participation=served, strategy=Tree(restarts=(8,)), clip_norm=1.0, noise_multiplier=noise).zcdp
        for noise in (6.0, 8.0)
    )
    rho = updates + counts
    figures = values_of("account", "run", path)
    assert figures["zcdp"] == figures["planned"]["zcdp"] == figures["realised"]["zcdp"] == pytest.approx(rho)
    assert [each["zcdp"] for each in figures["realised"]["sequences"]] == pytest.approx([updates, counts])
    assert (figures["planned"]["clip_norm"], figures["realised"]["clip_norm"]) == (1.0, 2.5)
    assert figures["extrapolated"]["realised"]["zcdp"] == pytest.approx(rho / 13**2)
    assert "zcdp, clip estimate alone" in invoke("account", "run", path).stdout
    shown = values_of("report", path)
    assert shown["realised"]["zcdp"] == shown["planned"]["zcdp"] == figures["zcdp"]
    assert shown["extrapolated"]["in_all"]["realised"]["zcdp"] == pytest.approx(rho / 13**2)
    written = json.loads((path / "report" / "report.json").read_text())
    assert [each["rounds"] for each in written["spent"]] == [0, 20]
    assert written["spent"][-1]["zcdp"] == figures["zcdp"]
    assert written["per_round"]["clip_norm"] == [1.0] * 8 + [2.5] * 12
    assert len(written["per_round"]["dropped"]) == len(written["per_round"]["clip_estimate"]) == 20
    assert "clip_norm.png" in written["figures"]
    plain_run = write_run(tmp_path / "other", strategy=Tree())
    assert values_of("compare", path, plain_run)["privacy"]["zCDP, realised"]["a"] == figures["zcdp"]


def test_the_statement_of_adaptive_clipping_verifies_and_names_the_clip_norms(tmp_path: Path) -> None:
    path = write_adaptive_run(tmp_path / "run")
    with Run.open(path) as run:
        made = statement_of(run)
        prices = [price.zcdp for price in spent(accounts_of(run))]
    assert made.facts.clip_norms == ((0, 1.0), (8, 2.5))
    assert "1 from round 0 on; 2.5 from round 8 on" in made.markdown()
    assert prices == sorted(prices) and prices[-1] == made.figures["in_all"]["realised"]["zcdp"]
    record = json.loads(made.to_json())
    assert all(line.holds for line in verify(record))
    record["facts"]["clip_norms"][1][0] = 7
    failed = {line.name for line in verify(record) if not line.holds}
    assert failed == {"facts.clip_norms.1", "facts"}, "a change that no restart allows has no statement"


def test_a_release_that_was_not_asked_for_is_not_accounted(tmp_path: Path) -> None:
    path = write_adaptive_run(tmp_path / "run")
    with sqlite3.connect(path / "run.db") as database:
        database.execute("UPDATE metadata SET value = '{}' WHERE name = 'also_released'")
    database.close()
    result = invoke("account", "run", path)
    assert result.exit_code == 2 and "was asked to release ['model update']" in result.stderr


def test_failing_adaptive_clipping_stands_among_the_labels(tmp_path: Path) -> None:
    path = write_adaptive_run(tmp_path / "run")
    with sqlite3.connect(path / "run.db") as database:
        for round in range(20):
            measures = {"loss": 4.0 if round < 2 else 60.0 + round % 3, "clipped": 1.0, "clip_norm": 1.0}
            measures["clip_estimate"] = 1.0 + round
            database.execute("UPDATE steps SET measures = ? WHERE step = ?", (json.dumps(measures), round))
    database.close()
    assert "ADAPTIVE CLIPPING FAILED, clip norm exploding" in values_of("report", path)["labels"]
    assert "begin a new run with a smaller clipping.initial" in (path / "report" / "report.md").read_text()


def test_compare_shows_what_differs(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", strategy=Tree(), name="tree")
    b = write_run(tmp_path / "b", strategy=PUBLISHED_BLT["b400"], name="blt", rounds=10)
    shown = values_of("compare", a, b)
    assert shown["figure"] == str(a / "report" / "compare-b.png")
    assert Path(shown["figure"]).read_bytes().startswith(b"\x89PNG")
    assert shown["settings"] == {"name": {"a": "tree", "b": "blt"}, "rounds.rounds": {"a": 20, "b": 10}}
    equal = [name for name in shown["accuracy"] if name.startswith("top-1, validation")]
    assert equal == [f"top-1, validation, after {rounds} rounds" for rounds in (0, 5, 10)]
    assert shown["privacy"]["zCDP, realised"]["a"] == values_of("account", "run", a)["zcdp"]
    assert shown["privacy"]["epsilon, planned"]["b"] == values_of("account", "run", b)["planned"]["epsilon"]
    assert shown["warnings"] == []
    text = invoke("compare", a, b).stdout
    for words in ("settings that differ", "rounds.rounds", "MaxP, realised", "tree", "blt"):
        assert words in text


def test_compare_says_what_cannot_be_compared(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", strategy=None)
    data = {"cache": "c", "source": "s", "vocabulary_sha256": "1", "vocabulary_size": 9, "cache_digest": "2"}
    b = write_run(tmp_path / "b", strategy=Tree(), done=0, data=data, delta=1e-6)
    shown = values_of("compare", a, b, "--out", tmp_path / "figures")
    assert shown["figure"] == str(tmp_path / "figures" / "compare-b.png")
    notes = "\n".join(shown["warnings"])
    for words in ("NON-PRIVATE", "NOTHING RELEASED YET", "different caches", "vocabularies", "delta 1e-10"):
        assert words in notes
    assert shown["privacy"]["zCDP, realised"] == {"a": "inf", "b": None}
    result = invoke("compare", a, b)
    assert result.exit_code == 0 and "infinite" in result.stdout


def ruin_nothing(path: Path) -> None:
    path.mkdir()


def ruin_text(path: Path) -> None:
    path.mkdir()
    (path / "run.db").write_text("not a database, but long enough to look at " * 40)


def ruin_foreign(path: Path) -> None:
    path.mkdir()
    with sqlite3.connect(path / "run.db") as database:
        database.execute("CREATE TABLE metadata (name TEXT, value TEXT)")
        database.execute("INSERT INTO metadata VALUES ('format', '\"tacit run 99\"')")
    database.close()


def ruin_recipe(path: Path) -> None:
    write_run(path, strategy=Tree())
    (path / "settings.toml").write_text("name = ")


def ruin_facts(path: Path) -> None:
    write_run(path, strategy=Tree(), participation={"rounds": 3})


def ruin_rounds(path: Path) -> None:
    write_run(path, strategy=Tree())
    with sqlite3.connect(path / "run.db") as database:
        database.execute("DROP TABLE metrics")
    database.close()


def ruin_ledger(path: Path) -> None:
    write_run(path, strategy=Tree(), guarantee={"strategy": None, "clip_norm": 1.0, "noise_multiplier": 0.0})


@pytest.mark.parametrize(
    "ruin",
    [ruin_nothing, ruin_text, ruin_foreign, ruin_recipe, ruin_facts, ruin_rounds, ruin_ledger],
    ids=lambda ruin: ruin.__name__.removeprefix("ruin_"),
)
def test_a_foreign_or_damaged_folder_is_refused_in_one_line(ruin: Any, tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole", strategy=Tree())
    path = tmp_path / "run"
    ruin(path)
    for words in (("report", path), ("compare", path, whole), ("compare", whole, path)):
        result = invoke(*words)
        assert result.exit_code == 2, result.output
        assert result.stdout == "" and result.stderr.count("\n") == 1
    if ruin in (ruin_nothing, ruin_text, ruin_foreign, ruin_facts):
        result = invoke("account", "run", path)
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.output


@pytest.mark.parametrize("figure", [0.80612244898, 8.5264, 1e-12, 123456.7, 1.0])
def test_figures_are_never_rounded_down(figure: float) -> None:
    assert figure * (1 - 1e-9) <= float(rounded_up(figure)) <= figure * 1.001
    assert rounded_up(float("inf")) == "infinite"


def test_items_are_cut_into_paragraphs_lists_and_code() -> None:
    text = "Two\nlines.\n\n- one\n- two\n\nBy\n\n    tacit account run x"
    assert parts(text) == [
        ("paragraph", ["Two", "lines."]),
        ("list", ["one", "two"]),
        ("paragraph", ["By"]),
        ("code", ["tacit account run x"]),
    ]
