"""What is free of a public text is measured on its held-out passages, named, and what four commands judge over."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.support.jobs.mixture_runs import Parts, parts_at, recipe_of, values
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import evaluate_reader
from tacit.jobs.plan.free_model import IN_ALL, LONGEST, SENTENCES, free_model, free_model_for
from tacit.keyboard.phone_model import load_phone_model
from tacit.networks.metrics import TOP1
from tacit.planning.judgement import FreeModel
from tacit.progress import Event, Noted, StageBegan, Warned


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return parts_at(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def free(parts: Parts) -> FreeModel:
    found = free_model(parts.public, parts.network)
    assert found is not None
    return found


def test_the_network_is_measured_as_a_keyboard_reads_it(parts: Parts, free: FreeModel) -> None:
    """One step of one reader a token, which is slow."""
    cache = Cache.open(parts.public)
    held_out = [client for split in ("validation", "test") for client in cache.clients(split).tolist()]
    measuring = np.array(held_out[1::2])
    read = HeldOut.read(cache, measuring, sentences=max(SENTENCES, -(-IN_ALL // len(measuring))), words=LONGEST)
    slow = evaluate_reader(load_phone_model(parts.network).reader, read).total.value(TOP1)
    assert free.network == pytest.approx(slow, abs=1e-9) and free.sentences == (read.sentences != 0).any(axis=2).sum()
    assert free.text == cache.manifest.source and "public n-gram" in free.weights


def test_it_is_free_and_only_that(parts: Parts, tmp_path: Path) -> None:
    alone = free_model(parts.public)
    assert alone is not None and alone.network is None and alone.over_network == 1.0
    assert free_model_for(parts.network) == free_model(parts.public, parts.network), "its own text is at hand"
    assert free_model_for(None) is None and free_model(None) is None
    with pytest.raises(InputError, match=r"is clients' .*a model of it is not free; name a cache of public text"):
        free_model(parts.typed)


def test_four_commands_say_one_judgement_over_it(parts: Parts, free: FreeModel, tmp_path: Path) -> None:
    def said(*words: object) -> str:
        done = CliRunner().invoke(app, [*map(str, words), "--public", str(parts.public)])
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.split())

    recipe = tmp_path / "alone.toml"
    asked = ("--data", parts.typed, "--epsilon", 8, "--anyway")
    made = said("recipe", "new", *asked, "--network-alone", "--init", parts.network, "--out", recipe)
    heard: list[Event] = []
    tacit.train(recipe, tmp_path / "run", anyway=True, until=0, progress=heard.append).run.close()
    first = next(each.message for each in heard if isinstance(each, Noted | Warned) and each.code == "noise")
    for text in (
        made,
        first,
        recipe.read_text(encoding="utf-8"),
        said("plan", "recipe", recipe),
        said("plan", "epsilon", "--population", 300, "--mechanism", "tree", "--init", parts.network),
        said("recipe", "new", *asked[:4], "--init", parts.network),
    ):
        assert free.says() in " ".join(text.replace("# ", "").split()), text
        assert "WORTH IT" not in text, "120 people gain nothing here"
    record = json.loads(said("plan", "recipe", recipe, "--json"))
    assert record["free"]["top1"] == free.top1 and record["judgement"] in (
        "too noisy",
        "no gain expected",
        "may not pay off",
    )


def test_a_mixture_says_it_before_anything_is_counted(parts: Parts, free: FreeModel, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    heard: list[Event] = []

    def listen(event: Event) -> None:
        heard.append(event)
        if isinstance(event, StageBegan) and event.stage.startswith("rehears"):
            raise Stop

    with pytest.raises(Stop):
        tacit.train_mixture(recipe_of(values(parts)), tmp_path / "run", progress=listen)
    told = [each.message for each in heard if isinstance(each, Noted | Warned) and each.code == "judgement"]
    assert len(told) == 1 and free.says() in told[0]


def test_without_public_text_worth_it_is_never_said(parts: Parts, tmp_path: Path) -> None:
    """It was, where a public model alone was as good at epsilon 0."""
    done = CliRunner().invoke(app, ["plan", "epsilon", "--population", "3M", "--mechanism", "tree"])
    assert done.exit_code == 0 and "NOT COMPARED. No public text is at hand" in " ".join(done.stdout.split())
    made = tacit.new_recipe(parts.typed, epsilon=1000.0, anyway=True)
    assert "worth it" not in str(made).lower()
