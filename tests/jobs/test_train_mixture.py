"""`tacit train` of a recipe with [mixture]: whole after any kill, one promise and one budget, and what verify finds."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests.conftest import REPOSITORY
from tests.support.jobs.mixture_runs import WORDS, Parts, opened, parts_at, recipe_of, values, with_rounds
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.errors import BudgetError, InputError, RecipeError, RunError
from tacit.evaluation.counts.cell_list import CellList
from tacit.jobs.account.population import account_population, begin_population
from tacit.jobs.train import mixture_folder
from tacit.jobs.train.mixture import MixtureResult, train_any, train_mixture
from tacit.privacy import gaussian
from tacit.privacy.composition import Composition
from tacit.progress import Event, Warned
from tacit.text.vocabulary import Provenance

MODEL = ("model.safetensors", "settings.json", "vocabulary.json")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return parts_at(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def plain(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> MixtureResult:
    """A finished run without rounds."""
    return train_mixture(recipe_of(values(parts)), tmp_path_factory.mktemp("plain") / "run")


@pytest.fixture(scope="module")
def trained(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> MixtureResult:
    """A finished run with rounds."""
    return train_mixture(recipe_of(with_rounds(parts)), tmp_path_factory.mktemp("trained") / "run", anyway=True)


def of_the_model(out: Path) -> dict[str, bytes]:
    """What must be the same to the byte, however often a run was killed: the model, and what was released."""
    files = {name: (out / "model" / name).read_bytes() for name in MODEL}
    files["sums"] = (out / "counts" / "report" / "sums.npz").read_bytes()
    record = json.loads((out / "simulation" / "report.json").read_bytes())
    return {**files, "page": json.dumps(record).encode()}


# -- what is made ------------------------------------------------------------------------------------------------------


def test_it_makes_the_mixture_and_says_what_each_part_added(plain: MixtureResult) -> None:
    assert [each["name"] for each in plain.arms] == ["public n-gram", "+ private counts", "+ network", "all"]
    first, counted, network, whole = plain.arms
    assert plain.record["simulation_only"]["words"] > 0 and first["change"] is None
    assert counted["verdict"] == "helps", "clients type other words than the public text"
    for arm in (counted, whole):
        value, low, high = arm["change"]["top1_accuracy"]
        assert low <= value <= high
    added = counted["change"]["cross_entropy"][0] + network["change"]["cross_entropy"][0]
    assert whole["change"]["cross_entropy"][0] == pytest.approx(added)
    assert f"{100 * counted['values']['top1_accuracy']:.2f}%" in str(plain)
    unhelpful = [each for each in plain.arms[1:] if each["verdict"] != "helps"]
    assert all(f"{each['name']}: " in str(plain) for each in unhelpful)
    assert plain.to_record()["schema"] == "tacit.mixture.run"
    ((_, words),) = tacit.suggest(plain.folder, ["ak"]).after
    assert len(words) == 3


def test_its_folder_is_exported_with_its_promise(plain: MixtureResult, tmp_path: Path) -> None:
    made = tacit.export_dictionary(plain.folder, tmp_path / "en.dict")
    assert made.promise is not None and tacit.verify(made.promise).holds
    assert made.promise.read_bytes() == (plain.folder / "model" / "promise.json").read_bytes()


def test_exact_numbers_stay_out_of_what_is_published(plain: MixtureResult) -> None:
    out = plain.folder
    published = "".join(path.read_text() for path in (out / "report").iterdir())
    assert "simulation_only" not in published and "top1_accuracy" not in published
    assert "SIMULATION ONLY" in (out / "simulation" / "report.md").read_text()
    assert "FIXED SEED" in (out / "report" / "report.md").read_text()


def test_its_epsilon_is_the_accountants_composition(parts: Parts, trained: MixtureResult) -> None:
    accounts = [tacit.account_run(trained.folder / name).realised for name in ("counts", "training")]
    assert all(isinstance(each, Composition) for each in accounts)
    zcdp = sum(each.zcdp for each in accounts if isinstance(each, Composition))
    assert trained.promise.composition.zcdp == pytest.approx(zcdp, rel=1e-12)
    assert trained.epsilon == pytest.approx(gaussian.epsilon(zcdp, 1e-5), rel=1e-12)
    assert 8.0 * (1 - 1e-6) < trained.epsilon <= 8.0
    shares = [each.zcdp / zcdp for each in accounts if isinstance(each, Composition)]
    assert shares == pytest.approx([0.5, 0.5], rel=1e-6)


def test_a_part_that_hurts_is_said_to(plain: MixtureResult) -> None:
    from tacit.reports.mixture import tables

    worse = {**plain.arms[1], "verdict": "hurts"}
    record = {"network_weight": 0, "simulation_only": {"clients": 6, "words": 60, "arms": [plain.arms[0], worse]}}
    said = str(tables(record))
    assert "+ private counts: HURTS the first suggestion; leave it out." in said
    assert "which gives it the weight 0" in said


def test_a_network_that_adds_nothing_on_public_text_is_left_out(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.jobs import mix

    weight = mix._weight
    monkeypatch.setattr(mix, "_weight", lambda *given: 0.0 if given[3] is None else weight(*given))
    made = train_mixture(recipe_of(values(parts)), tmp_path / "run")
    assert [each["name"] for each in made.arms] == ["public n-gram", "+ private counts"]
    assert "which gives it the weight 0" in " ".join(str(made).split())
    assert tacit.verify(tmp_path / "run").holds
    with_them = train_mixture(recipe_of(with_rounds(parts)), tmp_path / "rounds", anyway=True)
    assert with_them.record["network_weight"] == 0 and tacit.verify(tmp_path / "rounds").holds


def test_without_a_network_or_an_ngram_model_the_run_counts_the_public_text(parts: Parts, tmp_path: Path) -> None:
    recipe = recipe_of(values(parts, mixture={"ngram": None, "network": None}))
    made = train_mixture(recipe, tmp_path / "run")
    assert [each["name"] for each in made.arms] == ["public n-gram", "+ private counts"]
    assert tacit.verify(tmp_path / "run").holds


def test_several_texts_are_weighed_by_the_counts(parts: Parts, tmp_path: Path) -> None:
    book = {f"t{n}": [" ".join(WORDS[n % 40 : n % 40 + 9])] * 30 for n in range(30)}
    same = tacit.data.VocabularyChoice(file=parts.public / "vocabulary.json")
    other = tacit.import_data(
        tacit.data.TextsOf(book, description="public text of a book"), tmp_path / "b", vocabulary=same
    )
    tacit.ngram(other, tmp_path / "book", cutoffs=(1, 1, 1))
    both = [str(parts.ngram), str(tmp_path / "book")]
    made = train_mixture(recipe_of(values(parts, mixture={"ngram": both})), tmp_path / "run")
    assert [each["name"] for each in made.arms] == ["public n-gram", "+ private counts", "+ network", "all"]
    assert made.arms[1]["verdict"] == "helps" and tacit.verify(tmp_path / "run").holds
    shutil.rmtree(tmp_path / "run" / "ngram" / "02")
    assert "FAIL file model/" in failed_lines(tmp_path / "run")


def test_a_list_of_cells_is_counted_in_place_of_sums(parts: Parts, tmp_path: Path) -> None:
    public = Provenance(kind="public", description="words of a test")
    ngrams = (*((word,) for word in WORDS), *((word, WORDS[-1]) for word in WORDS[-9:]))
    listed = CellList(norm=256, ngrams=ngrams, units=(16,) * len(ngrams), provenance=public)
    listed.save(tmp_path / "cells.txt")
    given = values(parts, mixture={"sums": None, "cells": str(tmp_path / "cells.txt")})
    made = train_mixture(recipe_of(given), tmp_path / "run")
    (tmp_path / "cells.txt").unlink()  # the run has its own
    assert made.arms[1]["verdict"] == "helps" and tacit.verify(tmp_path / "run").holds
    assert train_mixture(recipe_of(given), tmp_path / "run").arms == made.arms
    with pytest.raises(InputError, match="there is no list of cells"):
        train_mixture(recipe_of(given), tmp_path / "other")


# -- killed ------------------------------------------------------------------------------------------------------------


class Stopped(BaseException):
    """What no job catches."""


@pytest.mark.parametrize("rounds", [False, True])
def test_stopped_at_every_event_it_ends_the_same(
    parts: Parts, plain: MixtureResult, trained: MixtureResult, tmp_path: Path, rounds: bool
) -> None:
    """One folder, stopped at its first event, then at its second, and so on until it is done."""
    given, whole = (with_rounds(parts), trained) if rounds else (values(parts), plain)
    recipe, out, seen, stop_at, stops = recipe_of(given), tmp_path / "run", 0, 1, 0

    def stopping(event: Event) -> None:
        nonlocal seen
        seen += 1
        if seen == stop_at:
            raise Stopped

    while True:
        seen = 0
        try:
            train_mixture(recipe, out, anyway=True, progress=stopping)
            break
        except Stopped:
            stop_at, stops = stop_at + 1, stops + 1
    assert stops > 5
    assert of_the_model(out) == of_the_model(whole.folder)
    assert tacit.verify(out).holds
    assert not [path for path in tmp_path.iterdir() if path != out], "drafts are left"


STEPS = ("counted", "trained", "mixed", "measured", "paged")


@pytest.mark.parametrize("step", STEPS)
def test_stopped_behind_each_step_it_ends_the_same(
    parts: Parts, trained: MixtureResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from tacit.jobs.count import job as counting
    from tacit.jobs.train import job as training
    from tacit.jobs.train import mixture
    from tacit.reports import page

    at = {
        "counted": (counting, "count"),
        "trained": (training, "train"),
        "mixed": (mixture, "make"),
        "measured": (mixture_folder, "added"),
        "paged": (page, "write_both"),
    }
    owner, name = at[step]
    real = getattr(owner, name)

    def stops(*arguments: Any, **named: Any) -> Any:
        real(*arguments, **named)
        if str(tmp_path / "run") in str((arguments, named)):
            raise Stopped

    recipe = recipe_of(with_rounds(parts))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stops)
        with pytest.raises(Stopped):
            train_mixture(recipe, tmp_path / "run", anyway=True)
    resumed: Any = tacit.resume(tmp_path / "run")
    assert of_the_model(tmp_path / "run") == of_the_model(trained.folder)
    assert resumed.epsilon == trained.epsilon


@pytest.mark.nightly
def test_after_kill_9_at_each_stage_it_ends_the_same(parts: Parts, plain: MixtureResult, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(tomli_w.dumps(values(parts)), encoding="utf-8")
    code = "import sys; from tests.support.jobs.mixture_runs import main; main(*sys.argv[1:3], int(sys.argv[3]))"
    stop_at = 2
    while True:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "r.toml"), str(tmp_path / "run"), str(stop_at)],
            capture_output=True,
            text=True,
            check=False,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])},
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        stop_at += 3
    assert stop_at > 5
    assert of_the_model(tmp_path / "run") == of_the_model(plain.folder)


def test_a_finished_run_is_read_and_another_is_left_alone(parts: Parts, plain: MixtureResult, tmp_path: Path) -> None:
    heard: list[Event] = []
    before = of_the_model(plain.folder)
    again = train_mixture(recipe_of(values(parts)), plain.folder, progress=heard.append)
    assert again.arms == plain.arms and of_the_model(plain.folder) == before
    assert [each.code for each in heard if isinstance(each, Warned)] == ["finished already"]
    with pytest.raises(RunError, match=r"begun with another recipe \(run.seed is 4, not 3\)|run.seed is"):
        train_mixture(recipe_of(values(parts)), plain.folder, seed=4)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match="is no run of a mixture, so it is left alone"):
        train_mixture(recipe_of(values(parts)), tmp_path / "other")
    with pytest.raises(InputError, match=r"until is of rounds, and the recipe has no \[training\]"):
        tacit.resume(plain.folder, until=3)


# -- one budget --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [False, True])
def test_a_population_pays_for_both_and_refuses_before_anything_is_spent(
    parts: Parts, tmp_path: Path, rounds: bool
) -> None:
    whole = gaussian.zcdp_for_epsilon(8.0, 1e-5)
    given = (with_rounds if rounds else values)(parts, privacy={"population": str(tmp_path / "phones")})
    begin_population(tmp_path / "phones", clients="phones of a test", zcdp=whole * 1.5, delta=1e-5)
    train_mixture(recipe_of(given), tmp_path / "run", anyway=True)
    assert account_population(tmp_path / "phones").zcdp == pytest.approx(whole, rel=1e-6)
    with pytest.raises(BudgetError):
        train_mixture(recipe_of(given), tmp_path / "second", anyway=True)
    assert account_population(tmp_path / "phones").zcdp == pytest.approx(whole, rel=1e-6)
    assert not (tmp_path / "second").exists()


# -- refused before anything is released -------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_and_leaves_nothing(parts: Parts, plain: MixtureResult, tmp_path: Path) -> None:
    words = {"word_list": tmp_path / "w.txt"}
    words["word_list"].write_text("the\nof\nand\n")
    texts = tacit.data.TextsOf({f"t{n}": ["the of and"] for n in range(30)}, description="public text of others")
    foreign = tacit.import_data(texts, tmp_path / "foreign", vocabulary=tacit.data.VocabularyChoice(**words))
    tacit.ngram(foreign, tmp_path / "foreign-pb", cutoffs=(1, 1, 1))
    (tmp_path / "no-origin").mkdir()
    for file in parts.ngram.iterdir():
        if file.name != "origin.json":
            shutil.copyfile(file, tmp_path / "no-origin" / file.name)
    for mixture, message in (
        ({"public": str(parts.typed)}, "the text in .* is clients', and what is fitted to it tells of it"),
        ({"public": str(foreign.path)}, "knows other words than"),
        ({"ngram": str(tmp_path / "foreign-pb")}, "mixture.ngram: the model in .* knows other words"),
        ({"ngram": str(tmp_path / "no-origin")}, "is not known to be of public text only"),
        ({"ngram": str(tmp_path / "none")}, "holds no model"),
        ({"network": str(parts.ngram)}, "counted and no network"),
        ({"network": str(plain.folder)}, "is not known to be of public text only"),
        ({"sums": ["word_counts:500 norm 8 unit 16"]}, "fails in the rehearsal"),
    ):
        with pytest.raises(InputError, match=message):
            train_mixture(recipe_of(values(parts, mixture=mixture)), tmp_path / "run")
        assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match=r"cluster is of rounds, and the recipe has no \[training\]"):
        train_mixture(recipe_of(values(parts)), tmp_path / "run", cluster="auto")
    with pytest.raises(RecipeError, match="--seed -1 must be 0 or more"):
        train_mixture(recipe_of(values(parts)), tmp_path / "run", seed=-1)


def test_a_part_that_fails_later_is_found_by_the_rehearsal(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any, **named: Any) -> Any:
        raise MemoryError("a fault that a test planted")

    for name in ("count", "mix", "added"):
        with monkeypatch.context() as patch:
            patch.setattr(mixture_folder, name, fails)
            with pytest.raises(InputError, match="fails in the rehearsal: MemoryError"):
                train_mixture(recipe_of(values(parts)), tmp_path / "run")
        assert not list(tmp_path.iterdir())


def test_a_cache_that_changed_meanwhile_is_refused(parts: Parts, tmp_path: Path) -> None:
    begun = mixture_folder.Begun(
        cache=str(parts.typed),
        cache_digest="another",
        public=str(parts.public),
        public_digest="another",
        network=None,
        population=None,
        clients=96,
        delta=1e-5,
        weight=None,
    )
    assert opened(parts)
    for name in ("cache", "public"):
        with pytest.raises(RunError, match="is not what this run began with"):
            begun.opened(name)


# -- faults that verify finds ------------------------------------------------------------------------------------------


def copied(found: MixtureResult, to: Path) -> Path:
    shutil.copytree(found.folder, to)
    return to


def failed_lines(out: Path) -> str:
    found = tacit.verify(out)
    assert not found.holds
    return str(found)


def test_a_run_verifies_from_any_folder_and_a_command_hides_nothing(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its statements name the path that it was begun with: `runs/mixed` of one folder is `mixed` in another."""
    monkeypatch.chdir(tmp_path)
    made = train_mixture(recipe_of(values(parts)), Path("runs/mixed"))
    assert tacit.verify("runs/mixed").holds and tacit.verify(tmp_path / "runs" / "mixed").holds
    monkeypatch.chdir(tmp_path / "runs")
    assert tacit.verify("mixed").holds
    shutil.copytree("mixed", tmp_path / "copy")
    assert tacit.verify(tmp_path / "copy").holds
    promise = tmp_path / "copy" / "model" / "promise.json"
    claimed = json.loads(promise.read_text())
    for hidden in ("tacit ", "public"):  # would leave texts out of what is compared, were any command left out
        facts = {**claimed["statements"]["counts"]["facts"], "verify_command": hidden, "name": "public, and cheap"}
        forged = {**claimed["statements"]["counts"], "facts": facts}
        promise.write_text(json.dumps({**claimed, "statements": {"counts": forged}}))
        assert not tacit.verify(tmp_path / "copy").holds
    assert made.epsilon == claimed["epsilon"]


def test_verify_makes_all_of_it_again(plain: MixtureResult, trained: MixtureResult, tmp_path: Path) -> None:
    for made in (plain, trained):
        found = tacit.verify(made.folder)
        names = [line.name for line in found.lines]
        assert found.holds and found.labels == ("FIXED SEED",)
        assert {"file model/model.safetensors", "statement of counts", "budget of the recipe", "epsilon"} <= set(names)
        assert ("statement of network" in names) == (made is trained)
        assert tacit.verify(copied(made, tmp_path / made.folder.parent.name)).holds, "wherever it lies"


def test_counts_of_another_run_are_found(parts: Parts, plain: MixtureResult, tmp_path: Path) -> None:
    other = train_mixture(recipe_of(values(parts, run={"seed": 4})), tmp_path / "other")
    out = copied(plain, tmp_path / "run")
    shutil.rmtree(out / "counts")
    shutil.copytree(other.folder / "counts", out / "counts")
    said = failed_lines(out)
    assert "FAIL statement of counts: it is not that of the run" in said
    assert "FAIL file model/model.safetensors: it is not what the parts of this run make" in said


def test_a_mixture_of_another_run_is_found(parts: Parts, plain: MixtureResult, tmp_path: Path) -> None:
    other = train_mixture(recipe_of(values(parts, run={"seed": 5})), tmp_path / "other")
    out = copied(plain, tmp_path / "run")
    shutil.rmtree(out / "model")
    shutil.copytree(other.folder / "model", out / "model")
    said = failed_lines(out)
    assert "FAIL statement of counts" in said and "FAIL file report/promise.json: it is not the promise" in said
    weights = out / "model" / "model.safetensors"  # the statements are its own, the weights another's
    for name in ("promise.json",):
        shutil.copyfile(plain.folder / "model" / name, out / "model" / name)
    assert weights.read_bytes() != (plain.folder / "model" / "model.safetensors").read_bytes()
    assert "FAIL file model/model.safetensors" in failed_lines(out)


@pytest.mark.parametrize("name", ["zcdp", "epsilon", "delta", "noise"])
def test_a_promise_that_was_changed_is_found(trained: MixtureResult, tmp_path: Path, name: str) -> None:
    out = copied(trained, tmp_path / "run")
    file = out / "model" / "promise.json"
    record = json.loads(file.read_text())
    if name == "noise":
        record["statements"]["counts"]["facts"]["releases"][0]["noise_multiplier"] *= 2
    else:
        record[name] *= 0.5
    file.write_text(json.dumps(record))
    assert "FAIL" in failed_lines(out)


def test_parts_that_cost_more_than_the_recipe_asked_for_are_found(plain: MixtureResult, tmp_path: Path) -> None:
    out = copied(plain, tmp_path / "run")
    recipe = (out / "recipe.toml").read_text()
    (out / "recipe.toml").write_text(recipe.replace("epsilon = 8.0", "epsilon = 4.0"))
    assert "FAIL budget of the recipe: all parts together cost" in failed_lines(out)


def test_a_public_part_that_was_changed_is_found(plain: MixtureResult, tmp_path: Path) -> None:
    out = copied(plain, tmp_path / "run")
    settings = json.loads((out / "ngram" / "01" / "settings.json").read_text())
    (out / "ngram" / "01" / "settings.json").write_text(json.dumps({**settings, "pair_weight": 0.5}))
    assert "FAIL file model/" in failed_lines(out)
    (out / "report" / "promise.json").unlink()
    assert "FAIL file report/promise.json: it cannot be read" in failed_lines(out)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_makes_a_mixture_or_rounds_as_the_recipe_says(parts: Parts, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(tomli_w.dumps(values(parts)), encoding="utf-8")
    done = CliRunner().invoke(app, ["train", str(tmp_path / "r.toml"), "--out", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "tacit.mixture.run"
    again = CliRunner().invoke(app, ["resume", str(tmp_path / "run"), "--profile"])
    assert again.exit_code == 0 and "The recipe has no rounds" in " ".join(again.stdout.split())
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "run")])
    assert checked.exit_code == 0
    with pytest.raises(RecipeError, match=r"tacit\.train_mixture"):
        tacit.train(tmp_path / "r.toml", tmp_path / "plain")
    assert isinstance(train_any(recipe_of(values(parts)), tmp_path / "run"), MixtureResult)


def test_a_finished_run_with_rounds_tells_where_its_time_went(trained: MixtureResult) -> None:
    assert len(trained.blocks(profile=True)) > len(trained.blocks())
