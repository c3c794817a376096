"""`tacit.audit_run` on a run of a second: what it finds, what it finds of a fault, and what it refuses."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import REPOSITORY
from tests.support.networks.bigram import Bigram
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_recipe

from tacit.audit.one_run import job
from tacit.audit.one_run.exposure import exposures
from tacit.audit.one_run.job import RunFindings, audit_run
from tacit.audit.one_run.joined import Sentence, joined
from tacit.audit.one_run.settings import CanarySettings
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.jobs.account.run import account_run
from tacit.jobs.finish import finish
from tacit.jobs.resume import resume
from tacit.jobs.statement import statement, verify
from tacit.keyboard.model_folder import TrainedModel
from tacit.privacy import Guarantee
from tacit.progress import Advanced, Evaluated, Event, Progress, silent
from tacit.recipe import Recipe
from tacit.text.vocabulary import Vocabulary
from tacit.training import shards

ONE = Hardware(workers=1)
FEW = CanarySettings(canaries=40, alike=4, sentences=1, repeats=(1, 2), users=(1, 2))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    counts = {"train": 130, "validation": 3, "test": 3}
    return tiny_cache(tmp_path_factory.mktemp("people") / "cache", counts)


def recipe(cache: Cache, **sections: Any) -> Recipe:
    privacy = {**MECHANISMS["banded-toeplitz"], "noise_multiplier": 2.0}
    rounds = {"rounds": 6, "report_goal": 40, "min_separation": 3}
    return tiny_recipe(cache.path, **{"privacy": privacy, "rounds": rounds, **sections})


# Noise of this seed differs by the version of JAX, and of each one run in ten has a bound above the claim by chance.
def found_in(cache: Cache, out: Path, progress: Progress = silent) -> RunFindings:
    return audit_run(recipe(cache), settings=FEW, out=out, seed=5, hardware=ONE, progress=progress)


@pytest.fixture(scope="module")
def whole(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> RunFindings:
    return found_in(cache, tmp_path_factory.mktemp("whole") / "run")


def by_subject(found: RunFindings) -> dict[str, Any]:
    return {f"{each.subject}, {each.measure}": each for each in found.findings}


# -- what is found -----------------------------------------------------------------------------------------------------


def test_most_of_the_claim_is_shown_of_all_models_and_nothing_is_refuted(whole: RunFindings) -> None:
    found = by_subject(whole)
    known = found["all models: known directions, mu"]
    assert 0.6 * known.claim < known.lower < known.claim < 1.5
    assert known.lower < known.estimate and not whole.broken
    of_last = found["the last model: known directions, mu"]
    assert 0 < of_last.lower < known.claim
    epsilon = found["all models: known directions, epsilon"]
    assert 0 < epsilon.lower < epsilon.claim and epsilon.delta == pytest.approx(1e-5, rel=1)
    for each in found.values():
        assert (each.confidence, each.seed) == (0.95, 5) and each.samples and each.threat_model
    assert len(whole.exposures) == 4 and all(each.mean >= 0 for each in whole.exposures)
    shown = str(whole)
    assert "none refuted" in shown and "of no use" in shown and "bits" in shown
    assert json.loads(json.dumps(whole.to_record()))["run"] == str(whole.run)


def test_the_statement_says_so_first_and_verifies(whole: RunFindings) -> None:
    stated = statement(whole.run)
    lower = by_subject(whole)["all models: known directions, mu"].lower
    assert stated.labels[0].name == "CANARIES" and "46 of the clients" in stated.labels[0].meaning
    assert f"mu is at least {lower:.4g} with confidence 0.95, by 40 canaries" in stated.markdown()
    assert "not refuted" in stated.markdown()
    assert verify(whole.run).holds and "CANARIES" in verify(whole.run).labels
    account = account_run(whole.run)
    assert f"Audited: mu is at least {lower:.4g}" in " ".join(str(account).split())
    assert account.to_record()["audited"] in stated.items[-1].text
    record = json.loads(stated.to_json())
    record["facts"]["audited"]["mu_shown"] /= 2
    failed = [line.name for line in verify(record, run=whole.run).failed]
    assert "facts.audited.mu_shown" in failed and "run.audited.mu_shown" in failed


@pytest.mark.parametrize("at", [4, "test"])  # rounds are done; the last model is tested
def test_stopped_and_called_again_it_finds_the_same(
    cache: Cache, tmp_path: Path, whole: RunFindings, at: int | str
) -> None:
    class Stopped(Exception):
        pass

    def stop(event: Event) -> None:
        round = event.done if isinstance(event, Advanced) and event.stage == "training" else None
        if at in (round, event.split if isinstance(event, Evaluated) else None):
            raise Stopped

    with pytest.raises(Stopped):
        found_in(cache, tmp_path / "run", stop)
    assert statement(tmp_path / "run").labels[0].name == "CANARIES"
    for other in (resume, finish):
        with pytest.raises(InputError, match=r"has canaries in it.*--canaries 40 --seed 5 .*--out"):
            other(tmp_path / "run")
    for _ in range(2):  # the second time it is finished
        found = found_in(cache, tmp_path / "run")
        assert found.findings == whole.findings and found.exposures == whole.exposures


@pytest.mark.long
def test_killed_at_changes_to_the_disk_the_command_finds_the_same(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(recipe(cache).to_toml())
    options = "--canaries 40 --alike 4 --sentences 1 --repeats 1,2 --users 1,2 --seed 5 --workers 1 --json --out"

    def played(out: str, at: int) -> "subprocess.CompletedProcess[str]":
        call = [sys.executable, "-m", "tests.jobs.killed_at", str(at), "audit", "tiny.toml", *options.split(), out]
        paths = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
        return subprocess.run(
            call, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
        )

    def figures(done: "subprocess.CompletedProcess[str]") -> Any:
        record = json.loads(done.stdout)
        return record["findings"], record["exposures"]

    expected = figures(played("first", 0))  # which also keeps what it compiles: files that the others find
    changes = int(played("second", 0).stderr.rpartition("changes: ")[2])
    for number, at in enumerate(np.linspace(2, 0.98 * changes, 6).astype(int)):
        assert played(f"run{number}", at).returncode < 0
        assert figures(played(f"run{number}", 0)) == expected


@pytest.fixture
def longer() -> Iterator[None]:
    """A clip that lets through three times the clip norm."""
    right = shards.clip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "clip", lambda update, norm: right(update, 3 * norm))
        shards._group_sum.cache_clear()
        yield
    shards._group_sum.cache_clear()


@pytest.fixture
def quieter() -> Iterator[None]:
    """Half the noise that is accounted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Guarantee, "seed_stddev", property(lambda self: self.noise_multiplier * self.clip_norm / 2))
        yield


@pytest.mark.parametrize("fault", ["quieter", "longer"])
def test_a_fault_is_refuted(cache: Cache, tmp_path: Path, fault: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(fault)
    found = found_in(cache, tmp_path / "run")
    assert by_subject(found)["all models: known directions, mu"].broken
    assert "BROKEN" in str(found) and "in 0.05 of all audits: audit again" in " ".join(str(found).split())
    assert "REFUTED" in statement(tmp_path / "run").markdown()


def test_without_noise_what_five_users_repeat_is_exposed(cache: Cache, tmp_path: Path) -> None:
    fast = recipe(
        cache,
        privacy={**MECHANISMS["none"], "clip_norm": 1e6},
        client={"learning_rate": 3.0},
        server={"method": "sgd", "learning_rate": 3.0},
        rounds={"rounds": 8, "report_goal": 30, "min_separation": 2},
    )
    settings = CanarySettings(canaries=0, sentences=2, repeats=(8,), users=(5,))
    found = audit_run(fast, settings=settings, out=tmp_path / "run", seed=5, hardware=ONE)
    (exposure,) = found.exposures
    assert exposure.mean > 9 and exposure.chance < 1e-3 and not found.findings
    assert "Random sentences" in str(found) and "looked at" not in str(found)
    stated = statement(tmp_path / "run")
    assert {"CANARIES", "NON-PRIVATE"} <= {label.name for label in stated.labels} and verify(tmp_path / "run").holds


def test_a_sentence_that_a_model_knows_is_exposed(cache: Cache) -> None:
    known, unknown = Sentence((9, 17, 30, 41, 55), 4, 1), Sentence((10, 20, 30, 40, 50), 1, 1)
    logits = jnp.zeros((60, 60))
    for first, then in zip(known.ids, known.ids[1:], strict=False):
        logits = logits.at[first, then].set(8.0)
    model = TrainedModel(
        network=Bigram(60),
        parameters={"scores": logits},
        vocabulary=Vocabulary.from_json(cache.vocabulary_json),
        path=Path("made"),
        digest="",
        public_text=None,
    )
    of_known, of_unknown = exposures(model, [known, unknown], seed=0)
    assert (of_known.mean, of_known.chance) == (12, pytest.approx(2**-12)) and of_known.repeats == 4
    assert of_unknown.mean < 6 and of_unknown.chance > 0.01


# -- who joins ---------------------------------------------------------------------------------------------------------


def test_canaries_are_behind_the_clients_who_stay_as_they_are(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = joined(cache, tmp_path / "both", 3, FEW)
    monkeypatch.setattr("tacit.data.cache.BLOCK", 80)  # so that files are copied in many pieces
    assert joined(cache, tmp_path / "again", 3, FEW).manifest.digest == both.manifest.digest
    both.verify()
    people = cache.manifest.clients
    assert both.manifest.clients == people + 46
    for client in range(people):
        assert both.name(client) == cache.name(client)
        assert all(map(np.array_equal, both.sentences(client), cache.sentences(client)))
        assert np.array_equal(both.timestamps(client), cache.timestamps(client))
    assert np.array_equal(both.clients("test"), cache.clients("test"))
    assert np.array_equal(both.clients("train")[-46:], np.arange(people, people + 46))
    assert [both.sentence_count(people + 40 + user) for user in range(6)] == [1, 1, 1, 2, 2, 2]
    with pytest.raises(InputError, match=r"client 136 of .*, in the train split, is the canary of an audit"):
        joined(both, tmp_path / "more", 3, FEW)
    with pytest.raises(InputError, match="is a cache without canaries, so it is left alone"):
        joined(cache, cache.path, 3, FEW)


def test_where_training_is_refused_nothing_is_left(cache: Cache, tmp_path: Path) -> None:
    without = recipe(cache, model={"init": str(tmp_path / "none")})
    with pytest.raises(InputError, match="none"):
        audit_run(without, settings=FEW, out=tmp_path / "run", hardware=ONE)
    assert not list(tmp_path.iterdir())


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "settings", "complaint"),
    [
        ({"privacy": MECHANISMS["none"]}, FEW, "adds no noise.*exposure shows: give --canaries 0"),
        ({}, CanarySettings(canaries=8, alike=4), "are too few to show.*give at least 40"),
        ({}, CanarySettings(canaries=400), "do not fit.*has room for 60"),
        ({"population": {"timer_hours": 24}}, FEW, r"\[population\] says who comes.*drop the section"),
        (
            {"privacy": MECHANISMS["tree"], "clipping": {"initial": 0.2}},
            FEW,
            r"\[clipping\] moves the clip norm.*in place of \[clipping\]",
        ),
    ],
)
def test_a_run_that_canaries_say_nothing_of_is_refused(
    cache: Cache, tmp_path: Path, sections: Any, settings: CanarySettings, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        audit_run(recipe(cache, **sections), settings=settings, out=tmp_path / "run", hardware=ONE)
    assert not list(tmp_path.iterdir())


def test_a_run_of_other_canaries_or_another_version_is_left_alone(
    cache: Cache, whole: RunFindings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="was begun with other clients or canaries"):
        audit_run(recipe(cache), settings=CanarySettings(canaries=40, alike=2), out=whole.run, seed=5)
    with pytest.raises(RunError, match="was begun with another recipe"):
        audit_run(recipe(cache, client={"words": 7}), settings=FEW, out=whole.run, seed=5)
    monkeypatch.setattr(job, "__version__", "9.9")
    with pytest.raises(InputError, match=r"was begun by tacit .*, and this is 9\.9"):
        found_in(cache, whole.run)


def test_a_recipe_without_a_file_needs_a_place(cache: Cache) -> None:
    with pytest.raises(InputError, match="give out="):
        audit_run(recipe(cache), settings=FEW)
