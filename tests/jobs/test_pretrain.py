"""`tacit.pretrain` as programs call it: killed and resumed, whatever the network, and what comes back."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.networks.bigram import Bigram
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.compute import precision
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import LanguageModel
from tacit.progress import Advanced, Event
from tacit.training.central import CentralTraining
from tacit.training.pretrain import Pretraining

PLAN = Pretraining(
    central=CentralTraining(batch_size=2, words=6, learning_rate=0.01), sentences=400, every=100, patience=2
)
NETWORK = Bigram(scale=0.2)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def test_killed_and_resumed_it_leaves_the_same_model(cache: Cache, tmp_path: Path) -> None:
    whole = tacit.pretrain(cache, tmp_path / "whole", model=NETWORK, settings=PLAN, held_out=3, declared_public=True)
    seen: list[Event] = []

    def impatient(event: Event) -> None:
        seen.append(event)
        if sum(isinstance(each, Advanced) for each in seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tacit.pretrain(
            cache.path,
            tmp_path / "parts",
            model=NETWORK,
            settings=PLAN,
            held_out=3,
            declared_public=True,
            progress=impatient,
        )
    parts = tacit.resume(tmp_path / "parts")
    assert parts.to_record()["best"] == whole.to_record()["best"]
    files = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert files[0] == files[1]
    assert list((tmp_path / "parts" / "steps").iterdir()) == []


def test_a_run_records_the_precision_that_it_is_computed_in(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, sentences=2, central=replace(PLAN.central, precision="bfloat16"))
    small = Cifg(vocabulary=60, embedding=2, units=2)

    def recorded(name: str, model: LanguageModel) -> str:
        made = tacit.pretrain(cache, tmp_path / name, model=model, settings=plan, held_out=3, declared_public=True)
        precision: str = made.run.settings_table["pretraining"]["central"]["precision"]
        return precision

    monkeypatch.setattr(precision, "has_bfloat16_units", lambda: True)
    precision.usable_precision.cache_clear()
    assert (recorded("own", small), recorded("plain", NETWORK)) == ("bfloat16", "float32")
    monkeypatch.setattr(precision, "has_bfloat16_units", lambda: False)
    precision.usable_precision.cache_clear()
    assert recorded("old", small) == "float32"
    precision.usable_precision.cache_clear()


SMALL = """
import os, sys
import tacit
from tacit.networks.cifg.network import Cifg
from tacit.training.central import CentralTraining
from tacit.training.pretrain import Pretraining
plan = Pretraining(central=CentralTraining(batch_size=2, words=6), sentences=10, every=10)
tacit.pretrain(sys.argv[1], sys.argv[2], model=Cifg(embedding=2, units=2), settings=plan, declared_public=True)
import jax
assert len(jax.local_devices()) == os.cpu_count(), jax.local_devices()
"""


@pytest.mark.nightly
def test_a_training_after_it_in_the_same_process_has_all_cores(cache: Cache, tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
    subprocess.run([sys.executable, "-c", SMALL, cache.path, tmp_path / "run"], env=inherited, check=True)


def test_clients_text_is_refused_unless_it_is_declared_public_which_statements_repeat(
    cache: Cache, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"is clients' .*public:FILE\.parquet.*--declared-public") as refused:
        tacit.pretrain(cache, tmp_path / "run", model=NETWORK, settings=PLAN, held_out=3)
    assert cache.manifest.source in str(refused.value) and not (tmp_path / "run").exists()
    made = tacit.pretrain(cache, tmp_path / "run", model=NETWORK, settings=PLAN, held_out=3, declared_public=True)
    said = f"{cache.manifest.source}, whose clients' text was declared public"
    assert made.source == made.model().public_text == said
    result = tacit.train(tiny_recipe(cache.path), tmp_path / "private", init=tmp_path / "run", model=NETWORK)
    assert f"the text that the first model was trained on ({said})" in tacit.statement(result.run).markdown()


def test_the_result_is_the_folder_read(cache: Cache, tmp_path: Path) -> None:
    made = tacit.pretrain(cache, tmp_path / "run", model=NETWORK, settings=PLAN, held_out=3, declared_public=True)
    assert made.run.kind == "pretrain" and not made.stopped_early
    assert made.best.held_out < made.evaluations[0].held_out
    assert made.held_out["cross_entropy"] == made.best.held_out
    assert made.model().network == Bigram(vocabulary=60, scale=0.2)
    assert made.history()["held_out"].tolist() == [each.held_out for each in made.evaluations]
    assert json.loads(json.dumps(made.to_record())) == made.to_record()
    assert "held-out public text" in made._repr_html_() and "nothing is promised" in made._repr_html_()
    files = tacit.report(made.run)
    record = json.loads(files.json.read_text())
    assert record["held_out"] == dict(made.held_out) and record["finished"]
    assert [each["held_out"] for each in record["evaluations"]] == [each.held_out for each in made.evaluations]
    assert files.html.is_file() and files.figures[0].name == "pretraining.png"
    again = tacit.pretrain(cache, tmp_path / "run", model=NETWORK, settings=PLAN, held_out=3, declared_public=True)
    assert again.to_record()["held_out"] == made.to_record()["held_out"]
    with pytest.raises(RunError, match="held_out was 3 and is now 2"):
        tacit.pretrain(cache, tmp_path / "run", model=NETWORK, settings=PLAN, held_out=2, declared_public=True)
    with pytest.raises(InputError, match="has no use for until"):
        tacit.resume(tmp_path / "run", until=3)
