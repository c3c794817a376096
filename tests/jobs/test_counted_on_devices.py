"""Counted models and mixtures where clients judge them: a device's own cache, its release, and real devices."""

import json
from pathlib import Path

import pytest
from tests.support.training.tiny import tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.splits import TemporalSplit
from tacit.errors import InputError, TacitError
from tacit.evaluation.counts.device_part import StatisticSum
from tacit.evaluation.device_part import ModelsQuestion, StrategiesQuestion
from tacit.evaluation.personalize.fine_tuning import FITTED, FineTuning, Grid
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings, PersonalizationSettings
from tacit.jobs.devices import RealDevices
from tacit.jobs.live_keyboard import live_keyboard
from tacit.jobs.personalize.job import resume_personalization
from tacit.keyboard.held_reader import HeldReader
from tacit.keyboard.own_text import fitted_to
from tacit.keyboard.phone_model import load_phone_model
from tacit.networks.metrics import TOP1
from tacit.networks.on_device import SgdStep
from tacit.server.jobs import job_of
from tacit.text.vocabulary import Vocabulary

ONE = Hardware(workers=1)
SUMS = tuple(map(StatisticSum.from_text, ("word_counts:56 norm 4 unit 16", "word_pairs:20 norm 3 unit 16")))
OWN = PersonalizationSettings(
    strategies=(FITTED, FineTuning(epochs=0, bigram=0.2)), split=TemporalSplit(undated="order"), split_name="train"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache, a counted model of it and a mixture."""
    at = tmp_path_factory.mktemp("counted")
    cache = tiny_cache(at / "cache")
    tacit.ngram(tiny_cache(at / "public", {"train": 1, "validation": 1}), at / "pb", declared_public=True)
    counting = CountSettings(sums=SUMS, split_name="train")
    tacit.count(cache, at / "counts", settings=counting, release=ReleaseCost(epsilon=8.0), seed=2)
    tacit.mix(at / "pb", at / "mixture", counts=at / "counts")
    return at


def test_a_mixture_is_personalized_by_caches_alone_and_releases_it(made: Path, tmp_path: Path) -> None:
    found = tacit.personalize(
        made / "mixture", made / "cache", tmp_path / "run", settings=OWN, release=ReleaseCost(zcdp=1e4), hardware=ONE
    )
    exact, released = found.record["simulation_only"], found.record["released"]
    assert set(exact["strategies"]) == {"fitted cache", "bigram cache 0.2"} and released is not None
    assert found.found.exact is not None and found.found.released is not None
    assert tacit.verify(tmp_path / "run").holds
    assert json.loads((tmp_path / "run" / "report" / "report.json").read_text())["released"]
    row = json.loads((tmp_path / "run/simulation/outcomes.jsonl").read_text().splitlines()[0])
    assert len(row["test"]["personalised"]) == 2
    again = resume_personalization(tmp_path / "run")
    assert again.record["simulation_only"]["strategies"].keys() == exact["strategies"].keys()


def test_a_device_fits_its_weights_to_what_it_learns_from_alone(made: Path, tmp_path: Path) -> None:
    """Not to its test part: the weight found again from the train part gives the same counts."""
    tacit.personalize(made / "mixture", made / "cache", tmp_path / "run", settings=OWN, hardware=ONE)
    cache, model = Cache.open(made / "cache"), load_phone_model(made / "mixture")
    row = json.loads((tmp_path / "run/simulation/outcomes.jsonl").read_text().splitlines()[0])
    parts = OWN.split.parts(cache.timestamps(row["client"]))
    mix = fitted_to(HeldReader(model.reader, 60), cache.padded(row["client"], parts.train, 65))  # type: ignore[union-attr]
    same = PersonalizationSettings(
        strategies=(FineTuning(epochs=0, **mix._asdict()),) if sum(mix) else (FineTuning(epochs=0, unigram=1e-9),),
        split=OWN.split,
        split_name="train",
    )
    tacit.personalize(made / "mixture", made / "cache", tmp_path / "fixed", settings=same, hardware=ONE)
    fixed = json.loads((tmp_path / "fixed/simulation/outcomes.jsonl").read_text().splitlines()[0])
    assert fixed["test"]["personalised"][0]["sums"][TOP1] == row["test"]["personalised"][0]["sums"][TOP1]


def test_sgd_of_a_counted_model_is_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"moves parameters by SGD, and a counted model has none; give caches alone"):
        tacit.personalize(made / "mixture", made / "cache", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="has no parameters that SGD could move"):
        Grid(epochs=(2,)).of_counted()
    assert Grid().of_counted() == (FITTED,) and len(Grid(bigram=(0.1,), fitted=True).of_counted()) == 2
    with pytest.raises(InputError, match="no parameters that SGD could move"):
        HeldReader(load_phone_model(made / "pb").reader, 60).descend(None, None, SgdStep((), 0.1), None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fitted are the weights of caches"):
        FineTuning(epochs=1, fitted=True)


def test_the_commands(made: Path, tmp_path: Path) -> None:
    mixture, data, run = str(made / "mixture"), str(made / "cache"), str(tmp_path / "own")
    asked = ["personalize", mixture, "--data", data, "--undated", "order", "--split-name", "train", "--out", run]
    done = CliRunner().invoke(app, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    assert [each["epochs"] for each in json.loads(done.stdout)["strategies"]] == [0]
    wrong = CliRunner().invoke(app, [*asked, "--batch-size", "7"])
    assert wrong.exit_code == 2 and "a device adds caches alone" in " ".join(wrong.output.split())
    both = ["evaluate", mixture, str(made / "pb"), "--data", data, "--epsilon", "8", "--out", str(tmp_path / "both")]
    done = CliRunner().invoke(app, [*both, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["released"]["against_the_first"].keys() == {str(made / "pb")}


@pytest.mark.parametrize("kind", ["evaluate", "personalize"])
def test_real_devices_judge_networks_alone(kind: str, made: Path, tmp_path: Path) -> None:
    asked = {
        "evaluate": 'models = ["{}"]\nsentences = 4\nwords = 6',
        "personalize": 'model = "{}"\nsplit = "time:0.8"\nstrategies = [{{ epochs = 0, bigram = 0.1 }}]',
    }[kind].format(made / "mixture")
    file = f"""
kind = "{kind}"
name = "asked"
clients = 6
{asked}

[deployment]
population = "phones"
devices = 1000

[release]
zcdp = 1.0
delta = 1e-6
"""
    job = job_of(file, where="the test").placed(None)

    class Asks:
        devices: RealDevices = job.devices

    with pytest.raises(InputError, match=r"real devices judge networks alone: .* ask clients of a cache"):
        job.begun(tmp_path / "run", Asks(), lambda event: None)
    assert not (tmp_path / "run").exists()
    text = Cache.open(made / "cache")
    for question in (
        ModelsQuestion(models=(None,), sentences=4, words=6),
        StrategiesQuestion(model=None, settings=OWN),
    ):
        with pytest.raises(InputError, match="judged in a simulation alone"):
            question.cells_of(text, 0)


def test_a_keyboard_learns_from_a_mixture(made: Path) -> None:
    """What is typed again and again is offered first, though the mixture has it nowhere near."""
    keyboard = live_keyboard(made / "mixture")
    habit = Vocabulary.load(made / "mixture" / "vocabulary.json").words[50:53]
    assert keyboard.offered.strip[0] != habit[0]
    for _ in range(40):
        keyboard.paste(" ".join(habit) + ".\n")
    assert keyboard.offered.strip[0] == habit[0]


def test_a_mixture_that_learns_is_typed_on_beside_one_that_does_not(made: Path, tmp_path: Path) -> None:
    asked = [
        "type",
        str(made / "mixture"),
        str(made / "mixture"),
        "--data",
        str(made / "cache"),
        "--split-name",
        "train",
    ]
    learns = CliRunner().invoke(app, [*asked, "--learns", "b", "--out", str(tmp_path / "b"), "--json"])
    assert learns.exit_code == 0, learns.output
    assert json.loads(learns.stdout)["learns"] == "b"
    page = (tmp_path / "b/simulation/report.md").read_text()
    assert "B learns the words and pairs that its user types" in page and "nothing can change" not in page
    both = CliRunner().invoke(app, [*asked, "--learns", "both", "--out", str(tmp_path / "both"), "--json"])
    tallies = [json.loads(line) for line in (tmp_path / "both/simulation/tallies.jsonl").read_text().splitlines()]
    assert both.exit_code == 0 and all(row["a"] == row["b"] for row in tallies)
    assert "nothing can change" in (tmp_path / "both/simulation/report.md").read_text()
    apart = [json.loads(line) for line in (tmp_path / "b/simulation/tallies.jsonl").read_text().splitlines()]
    assert [row["b"] for row in apart] == [row["b"] for row in tallies]
    wrong = CliRunner().invoke(app, [*asked, "--learns", "a", "--out", str(tmp_path / "a")])
    assert wrong.exit_code == 2 and "choose b or both" in " ".join(wrong.output.split())
    with pytest.raises(TacitError, match="what it learns is its own"):
        from tacit.evaluation.type_ab.settings import TypingSettings

        tacit.type_engine(made / "pb", "nobody", made, made / "cache", settings=TypingSettings(learns="b"))
