"""A device without JAX: its report is that of the simulation but for rounding, and no JAX is loaded for it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from tests.support.device.operator import ENCODED, SECURE, SEED, Operator, a_plan, once, recipe_text
from tests.support.training.tiny import SETTINGS

import tacit
from tacit.data import Cache
from tacit.device.own_text import OwnText
from tacit.device.train import ByJax
from tacit.device.train_onnx import ByOnnx
from tacit.errors import InputError
from tacit.keyboard.model_folder import write_model
from tacit.protocol.served_bodies import read_report


@pytest.fixture(scope="module")
def exported(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    write_model(folder / "model", SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_json.encode())
    tacit.export(folder / "model", folder / "phone")
    return folder / "phone"


CLIENTS: dict[str, dict[str, Any]] = {
    "one pass": {},
    "three passes": {"epochs": 3},
    "held back": {"proximal": 0.3, "epochs": 2},
    "a few sentences": {"sentences": 3, "batch_size": 2},
    "a small step": {"learning_rate": 1e-4},  # shorter than the clip norm
    "broken": {"learning_rate": 1e30, "epochs": 3},  # not finite
}


@pytest.mark.parametrize("name", CLIENTS)
def test_reports_what_the_other_does(
    name: str, exported: Path, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = a_plan(words)
    first = operator.task(plan, 0)
    client = first.asks.client.model_copy(update=CLIENTS[name])
    task = first.model_copy(update={"asks": first.asks.model_copy(update={"client": client})})
    text = OwnText(cache.path, None, None)
    found = []
    for number, trainer in enumerate((ByJax(text), ByOnnx(text, exported))):
        operator.assign(plan, task)
        turn = once(operator, cache.path, tmp_path / str(number), trainer=trainer, draw=lambda size: SEED[:size])
        assert turn.what == "reported", turn.says
        found.append(read_report(operator.received[-1][1], task.asks.shape(), operator.received[-1][0]))
    by_jax, by_onnx = found
    assert by_jax.usable and by_onnx.usable
    assert by_jax.values.any() == by_onnx.values.any() == (name != "broken")
    np.testing.assert_allclose(by_onnx.values, by_jax.values, rtol=2e-3, atol=2e-6)
    norm = float(np.linalg.norm(by_onnx.values))
    assert norm == pytest.approx(0.2, rel=1e-5) if name == "three passes" else norm < 0.2


def test_refuses_what_it_cannot_do(
    exported: Path, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    trainer = ByOnnx(OwnText(cache.path, None, None), exported)
    for plan, why in (
        (a_plan(words, text=recipe_text(**SECURE), aggregation=ENCODED), "which ONNX Runtime alone does not make"),
        (a_plan(words, text=recipe_text(model={"units": 17}), run="run-2"), "and the export of this device is of"),
    ):
        operator.assign(plan, operator.task(plan, 0))
        turn = once(operator, cache.path, tmp_path, trainer=trainer)
        assert turn.what == "refused" and why in turn.says and not operator.received


def test_an_export_of_other_words_is_none_of_its(exported: Path) -> None:
    text: Any = SimpleNamespace(vocabulary="ab" * 32, words=60)
    with pytest.raises(InputError, match="knows other words"):
        ByOnnx(text, exported)


@pytest.mark.parametrize("how", ["jax", "onnx"])
def test_nothing_heavy_is_loaded_before_a_task_came(how: str, exported: Path, cache: Cache, tmp_path: Path) -> None:
    """Nobody answers at port 9. By ONNX, not after it either: the test above has the same trainer."""
    options = [*("--onnx", str(exported)), "--json"] if how == "onnx" else ["--json"]
    arguments = ["tacit", "device", "--server", "http://127.0.0.1:9", "--data", str(cache.path)]
    arguments += ["--state", str(tmp_path), "--operator-key", Operator().key.public, "--once", *options]
    code = (
        f"import sys\nsys.argv = {arguments!r}\nfrom tacit.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        "heavy = {'jax', 'numba', 'fastapi', 'sqlalchemy', 'matplotlib', 'onnx', 'onnxruntime', 'pyarrow', 'scipy',\n"
        "'tacit.device.train_cost', 'tacit.protocol.blind_rsa'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"what": "unanswered"' in done.stdout
