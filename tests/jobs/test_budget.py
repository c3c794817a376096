"""Runs of every kind in one budget: entered before they begin, refused beyond it, settled to what they took."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.support.evaluation.typists import typists_and_model
from tests.support.training.tiny import tiny_cache, tiny_recipe
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.compute import Hardware
from tacit.data import Cache, ClientText
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.errors import BudgetError, InputError, RunError
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import EvaluationSettings
from tacit.jobs.account.budget import spent_by
from tacit.jobs.account.population import account_population, begin_population
from tacit.jobs.train.run import begin, carry_on
from tacit.planning.trial_recipes import production_recipe, trial_base, trial_recipe
from tacit.planning.tuning import Choice, Setting, TrialName, TuningSettings
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.progress import Event
from tacit.recipe import Recipe
from tacit.runs.budget_book import Cost
from tacit.text.alphabet import Alphabet
from tacit.text.vocabulary import Provenance, Vocabulary

ONE = Hardware(workers=1)
WORDS = Vocabulary(words=("the",), provenance=Provenance(kind="public", description="a word"))
DISCOVERY = DiscoverySettings(
    reports=LocalReportSettings(local_epsilon=6.0),
    users_per_layer=20,
    prefixes=4,
    depth=3,
    alphabet=Alphabet("abc"),
    seed=1,
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def recipe(cache: Cache, population: Path | None, **privacy: Any) -> Recipe:
    """Of 9 rounds, 6 of 40 clients in each, coming at most 3 times."""
    wanted = {"mechanism": {"name": "tree"}, "zcdp": 2.0, **privacy}
    return tiny_recipe(
        cache.path, privacy={**wanted, **({} if population is None else {"population": str(population)})}
    )


class Typed:
    """200 clients in memory: half type `ab`, some `ca`."""

    description, left_out, expected_clients = "made up", {}, 200

    def clients(self) -> Any:
        for number in range(200):
            texts = ("the ab" if number % 2 else "the ca",)
            yield ClientText(client_id=f"c{number}", texts=texts, split="train")


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    path = tmp_path / "budgets" / "phones"
    begin_population(path, clients="phones of a test", zcdp=3.0, local_epsilon=10.0, delta=1e-6)
    return path


def test_a_training_is_entered_settled_and_named_in_its_statement(cache: Cache, budget: Path, tmp_path: Path) -> None:
    asked = recipe(cache, budget)
    with begin(asked, tmp_path / "run") as run:
        carry_on(run, hardware=ONE, until=2)
        (taken,) = account_population(budget).runs
        assert (taken.state, taken.reserved.kind, taken.reserved.clients) == ("begun", "train", 40)
        assert taken.cost == Cost(zcdp=2.0) and spent_by(run).zcdp < 2.0  # under way it keeps what was planned
        state = tacit.statement(run).facts.budget
        assert state is not None and not state.settled and state.zcdp == 2.0
    refused = tmp_path / "refused"
    with pytest.raises(BudgetError, match="'phones' has zCDP 1 of 3 left after 1 run, and this run would take 2"):
        begin(asked, refused)
    assert not refused.exists()
    with begin(asked, tmp_path / "run") as run:  # found again, and not entered twice
        carry_on(run, hardware=ONE)
        realised = spent_by(run)
    found = account_population(budget)
    (taken,) = found.runs
    assert taken.state == "settled" and taken.cost == realised and 0 < realised.zcdp <= 2.0
    assert found.epsilon is not None and found.to_record()["spent"]["zcdp"] == realised.zcdp
    stated = tacit.statement(tmp_path / "run")
    assert stated.facts.budget is not None and stated.facts.budget.settled and stated.facts.budget.runs == 1
    assert "of the budget of 'phones' (phones of a test), 1 run took zCDP" in stated.markdown()
    assert tacit.verify(stated).holds
    tacit.report(tmp_path / "run")
    verified = tacit.verify(tmp_path / "run")
    assert verified.holds and "budget" in {line.name for line in verified.lines}
    begin_population(tmp_path / "other", clients="phones of a test", zcdp=3.0)
    budget.rename(tmp_path / "kept")
    (tmp_path / "other").rename(budget)
    assert [line.name for line in tacit.verify(tmp_path / "run").failed] == ["budget"]
    shutil.rmtree(budget)
    (tmp_path / "kept").rename(budget)
    shutil.rmtree(tmp_path / "run")
    assert account_population(budget).zcdp == realised.zcdp  # what was released stays released


def test_a_run_goes_on_only_as_the_run_that_was_entered(cache: Cache, budget: Path, tmp_path: Path) -> None:
    with begin(recipe(cache, budget), tmp_path / "run") as run:
        budget.rename(budget.with_name("elsewhere"))
        with pytest.raises(RunError, match="is no population's budget"):
            carry_on(run, hardware=ONE, until=1)
        begin_population(budget, clients="others", zcdp=3.0)
        with pytest.raises(RunError, match="is not entered in the budget"):
            carry_on(run, hardware=ONE, until=1)
        assert run.steps_done == 0
    with pytest.raises(RunError, match="population is not given"):
        begin(recipe(cache, None), tmp_path / "run")


def test_what_promises_nothing_is_in_no_budget(cache: Cache, budget: Path, tmp_path: Path) -> None:
    bare = tiny_recipe(cache.path, privacy={"mechanism": {"name": "none"}, "population": str(budget)})
    with pytest.raises(InputError, match="promises nothing, which no budget affords"):
        begin(bare, tmp_path / "run")
    folder, model = typists_and_model(tmp_path, 12)
    with pytest.raises(InputError, match="nothing to enter"):
        tacit.evaluate([model], folder, out=tmp_path / "run", population=budget)
    drawn = DiscoverySettings(reports=DISCOVERY.reports, users_per_layer=20, resample_users=True)
    with pytest.raises(InputError, match="drawn with replacement are promised nothing"):
        tacit.discover(Typed(), WORDS, tmp_path / "run", drawn, population=budget)
    assert account_population(budget).runs == () and not (tmp_path / "run").exists()


def test_evaluations_and_discoveries_take_from_their_own_pots(budget: Path, tmp_path: Path) -> None:
    folder, model = typists_and_model(tmp_path, 12)
    price = {"settings": EvaluationSettings(clients=10), "hardware": ONE, "population": budget}
    tacit.evaluate([model], folder, release=ReleaseCost(zcdp=0.5), out=tmp_path / "central", **price)
    tacit.evaluate([model], folder, release=ReleaseCost(local_epsilon=3.0), out=tmp_path / "local", **price)
    tacit.discover(Typed(), WORDS, tmp_path / "words", DISCOVERY, population=budget)
    found = account_population(budget)
    assert [(each.state, each.reserved.kind) for each in found.runs] == [
        ("settled", "evaluate"),
        ("settled", "evaluate"),
        ("settled", "discover"),
    ]
    assert found.zcdp == pytest.approx(0.5) and found.local_epsilon == pytest.approx(9.0)
    with pytest.raises(BudgetError, match="local epsilon 1 of 10 left"):
        tacit.discover(Typed(), WORDS, tmp_path / "more", DISCOVERY, population=budget)
    for name, runs in (("central", 1), ("local", 2), ("words", 3)):
        assert tacit.verify(tmp_path / name).holds
        state = tacit.statement(tmp_path / name).facts.budget
        assert state is not None and state.runs == runs
    tacit.resume(tmp_path / "central", hardware=ONE)
    assert len(account_population(budget).runs) == 3
    with pytest.raises(RunError, match="was begun with the population"):
        tacit.evaluate(
            [model], folder, release=ReleaseCost(zcdp=0.5), out=tmp_path / "central", **{**price, "population": None}
        )


def test_each_trial_of_a_tuning_is_entered_unless_it_costs_its_clients_nothing(cache: Cache, budget: Path) -> None:
    wanted = recipe(cache, budget, mechanism={"name": "blt-b400"}, zcdp=40.0)
    base = trial_base(wanted, TuningSettings())
    setting = Setting(server_learning_rate=1.0, quantile=0.5)
    assert trial_recipe(base, TrialName(setting=setting, number=1)).privacy.population == budget
    assert trial_base(wanted, TuningSettings(public="another population")).privacy.population is None
    with pytest.raises(BudgetError, match=r"would take 103\.612"):  # all three, before the first
        tacit.tune(wanted, budget.parent / "tuned", hardware=ONE)
    assert not (budget.parent / "tuned").exists()
    choice = Choice(setting=setting, score=0.0, trials=1, clip_norm=1.0)
    assert production_recipe(wanted, choice, 60).privacy.population == budget


def test_a_tuning_of_several_trials_is_entered_to_its_end(cache: Cache, tmp_path: Path) -> None:
    """Killed after its first trial and gone on with; what its trials took is refused to the next who asks."""
    budget = tmp_path / "phones"
    begin_population(budget, clients="phones of a test", zcdp=120.0, delta=1e-6)
    wanted = tiny_recipe(
        cache.path,
        rounds={"rounds": 3, "report_goal": 6, "min_separation": 3},
        privacy={"mechanism": {"name": "blt-b400"}, "zcdp": 40.0, "population": str(budget)},
    )
    grid = TuningSettings(server_learning_rates=(0.5, 1.0))

    def impatient(event: Event) -> None:
        if account_population(budget).runs[1:]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tacit.tune(wanted, tmp_path / "tuned", grid, hardware=ONE, progress=impatient)
    assert [each.state for each in account_population(budget).runs] == ["settled", "begun"]
    result = tacit.tune(wanted, tmp_path / "tuned", grid, hardware=ONE)
    found = account_population(budget)
    trials = sorted((tmp_path / "tuned" / "runs").iterdir())
    assert len(trials) == len(result.trials) == 2
    assert [(each.state, each.reserved.kind) for each in found.runs] == [("settled", "train")] * 2
    assert {Path(each.reserved.run).resolve() for each in found.runs} == {each.resolve() for each in trials}
    assert found.zcdp == pytest.approx(sum(each.zcdp for each in result.trials)) and found.zcdp > 0
    for number, trial in enumerate(trials, 1):
        state = tacit.statement(trial).facts.budget
        assert state is not None and state.settled and state.runs == number
        assert tacit.verify(trial).holds
    assert tacit.verify(tmp_path / "tuned").holds
    tacit.tune(wanted, tmp_path / "tuned", grid, hardware=ONE)  # nothing is begun, so nothing is entered
    assert account_population(budget).zcdp == found.zcdp
    more = replace(grid, server_learning_rates=(0.5, 1.0, 2.0, 4.0))
    with pytest.raises(BudgetError, match=r"'phones' has zCDP .* of 120 left after 2 runs"):
        tacit.tune(wanted, tmp_path / "tuned", more, hardware=ONE)
    assert len(list((tmp_path / "tuned" / "runs").iterdir())) == 2


def test_a_statement_says_what_its_week_took(cache: Cache, tmp_path: Path) -> None:
    budget = tmp_path / "phones"
    begin_population(budget, clients="phones of a test", zcdp=9.0, delta=1e-6, window_days=7, window_epsilon=20.0)
    weekly = zcdp_for_epsilon(20.0, 1e-6)
    with begin(recipe(cache, budget), tmp_path / "run") as run:
        carry_on(run, hardware=ONE)
        spent = spent_by(run).zcdp
    stated = tacit.statement(tmp_path / "run")
    window = None if stated.facts.budget is None else stated.facts.budget.window
    assert window is not None and window.zcdp == spent and window.zcdp_allowed == weekly and window.days == 7
    assert "k such windows together cost each client at most k times that limit" in stated.markdown()
    assert tacit.verify(stated).holds and tacit.verify(tmp_path / "run").holds
    found = account_population(budget)
    assert found.window is not None and found.to_record()["window_now"]["zcdp"] == spent
    with pytest.raises(BudgetError, match="left in these 7 days"):
        begin(recipe(cache, budget, zcdp=weekly), tmp_path / "second")


def test_the_command_begins_and_shows(tmp_path: Path) -> None:
    path = tmp_path / "budgets" / "phones"

    def said(*options: str) -> Any:
        return CliRunner().invoke(app, ["account", "population", str(path), *options])

    made = said("--clients", "all [phones]", "--epsilon", "8", "--delta", "1e-6")
    assert made.exit_code == 0, made.output
    assert "clients: all [phones]" in made.stdout and "zcdp 0 of" in made.stdout
    shown = json.loads(said("--json").stdout)
    assert shown["runs"] == [] and shown["spent"]["epsilon"] == 0.0 and shown["zcdp"] == zcdp_for_epsilon(8, 1e-6)
    weekly = tmp_path / "weekly"
    options = ["--clients", "all", "--zcdp", "4", "--window-days", "7", "--window-zcdp", "1"]
    made = CliRunner().invoke(app, ["account", "population", str(weekly), *options])
    assert made.exit_code == 0 and "in the 7 days from" in made.stdout.replace("\n", " ")
    again = said("--clients", "more", "--zcdp", "9")
    assert again.exit_code == 2 and "exists already, and what is allowed never changes" in again.stderr
    for options, says in (
        (("--zcdp", "1"), "does not say whose"),
        (("--clients", "a", "--epsilon", "1"), "give that, too"),
        (("--clients", "a", "--epsilon", "1", "--zcdp", "1"), "give one of them"),
        (("--clients", "a"), "allows something"),
        (("--clients", "a", "--zcdp", "4", "--window-zcdp", "1"), "needs the days of one"),
        (("--clients", "a", "--zcdp", "4", "--window-days", "7", "--window-epsilon", "2"), "give that, too"),
    ):
        path = tmp_path / "other"
        refused = said(*options)
        assert refused.exit_code == 2 and says in refused.stderr and not path.exists()


def test_every_command_that_reads_private_text_takes_a_population() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page.count("--population <path>") == 7  # train, discover, count, evaluate, personalize, tune, type
