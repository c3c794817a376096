"""`tacit.export`: a folder that is whole or not there, with hashes and with what the run promised."""

import hashlib
import json
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnx
import pytest
from tests.support.keyboard.slow_combined import read
from tests.support.networks.gru import Gru, GruWithCell
from tests.support.training.tiny import MECHANISMS, SETTINGS, tiny_cache, tiny_recipe
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache
from tacit.errors import CacheError, InputError, RunError
from tacit.keyboard import export as parts
from tacit.keyboard.dictionaries import from_model
from tacit.keyboard.dictionaries.combined_list import DICTIONARY, combined
from tacit.keyboard.dictionaries.entries import BEGINNING
from tacit.keyboard.dictionaries.format_202 import read_static_dictionary
from tacit.keyboard.dictionaries.format_403 import read_dynamic_dictionary
from tacit.keyboard.exported import MANIFEST, SCORE, STEP, Promise, load_exported
from tacit.keyboard.model_folder import load_model, write_model
from tacit.keyboard.onnx_reader import PACKING, OnnxReader, OnnxScorer
from tacit.keyboard.onnx_trainer import OnnxTrainer
from tacit.keyboard.phone_model import load_phone_model, phone_model_of
from tacit.keyboard.prompts import prompts_for
from tacit.networks.model_files import write_origin
from tacit.reports.text import to_text
from tacit.text.vocabulary import Provenance


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def model(cache: Cache) -> Path:
    """Its parameters are larger than a training begins, so that suggestions differ."""
    folder = cache.path.parent / "model"
    parameters = jax.tree.map(lambda leaf: 4.0 * leaf, SETTINGS.init(jax.random.key(1)))
    write_model(folder, SETTINGS, parameters, cache.vocabulary_json.encode())
    return folder


@pytest.fixture(autouse=True)
def short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model is asked for its dictionary: tests/keyboard/dictionaries/test_dictionary.py asks more."""
    monkeypatch.setattr(from_model, "PLACES", 50)


@pytest.fixture(scope="module")
def trained(cache: Cache) -> Path:
    recipe = tiny_recipe(cache.path, rounds={"rounds": 3}, privacy=MECHANISMS["independent"])
    run: Path = tacit.train(recipe, cache.path.parent / "run").run.path
    return run


def content(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


def test_an_exported_model_suggests_what_the_model_does(model: Path, tmp_path: Path) -> None:
    made = tacit.export(model, tmp_path / "phone")
    trained, phone = load_model(model), load_phone_model(tmp_path / "phone")
    assert isinstance(phone.reader, OnnxReader) and phone.vocabulary == trained.vocabulary
    for prompt in ("", "waa wbb", "wcc unheard. wdd"):
        theirs, ours = trained.next_words(prompt, 56), phone.next_words(prompt, 56)
        assert [each.word for each in ours] == [each.word for each in theirs]
        np.testing.assert_allclose(
            [each.probability for each in ours], [each.probability for each in theirs], atol=1e-5
        )
    assert tacit.suggest(tmp_path / "phone", ["waa"]).after[0][1] == phone.next_words("waa")
    assert (
        phone.digest == made.exported.digest == hashlib.sha256((tmp_path / "phone" / MANIFEST).read_bytes()).hexdigest()
    )


@pytest.mark.parametrize("quantize", ["int8", "int4"])
def test_a_quantized_export_suggests_about_the_same(model: Path, tmp_path: Path, quantize: str) -> None:
    """Its graphs have fewer bits; the weights beside them, and what trains them, are those of float32."""
    plain, made = (tacit.export(model, tmp_path / str(bits), quantize=bits).exported for bits in (None, quantize))
    assert (
        made.manifest.quantization == quantize and made.manifest.files["step.onnx"] != plain.manifest.files["step.onnx"]
    )
    for name in ("model.safetensors", "train.onnx", "vocabulary.json"):
        assert made.manifest.files[name] == plain.manifest.files[name]
    assert OnnxReader.from_export(plain)._session.get_session_options().get_session_config_entry(PACKING) == "1"
    with pytest.raises(RuntimeError, match="does not have"):  # products of integers are slow without
        OnnxReader.from_export(made)._session.get_session_options().get_session_config_entry(PACKING)
    theirs, ours = (load_phone_model(each.folder).typing() for each in (plain, made))
    for typing in (theirs, ours):
        typing.commit("waa wbb")
    assert 0 < np.abs(ours.log_probabilities - theirs.log_probabilities).max() < 1.0


def test_another_process_opens_the_same_files(model: Path, tmp_path: Path) -> None:
    """What `tacit type --workers 2` sends it."""
    reader = OnnxReader.from_export(tacit.export(model, tmp_path / "phone").exported)
    again = pickle.loads(pickle.dumps(reader))
    for one in (reader, again):
        assert one.widths == reader.widths and one.vocabulary == reader.vocabulary
    _, scores = reader.step(reader.begin(), 1)
    np.testing.assert_array_equal(again.step(again.begin(), 1)[1], scores)
    with pytest.raises(pickle.PicklingError, match=r"make the reader by OnnxReader\.from_export"):
        pickle.dumps(OnnxReader(reader._session))


def test_an_exported_model_is_trained_by_the_runtime_alone(model: Path, cache: Cache, tmp_path: Path) -> None:
    exported = tacit.export(model, tmp_path / "phone").exported
    trainer, trained = OnnxTrainer.from_export(exported), load_model(model)
    sentences = cache.padded(0, np.arange(2), 8)
    moved, loss = trainer.descend(trainer.begin(exported), sentences, 0.5)
    wanted, theirs = jax.jit(trained.network.sgd_step)(trained.parameters, sentences, 0.5)
    assert loss == pytest.approx(float(theirs), rel=1e-5)
    np.testing.assert_allclose(moved["kernel"], wanted.kernel, rtol=1e-4, atol=1e-5)


def test_a_network_that_does_not_say_how_it_trains_is_exported_without(cache: Cache, tmp_path: Path) -> None:
    network = GruWithCell()
    write_model(tmp_path / "gru", network, network.init(jax.random.key(0)), cache.vocabulary_json.encode())
    made = tacit.export(tmp_path / "gru", tmp_path / "phone")
    assert "No train.onnx: a network of the kind tests.support.networks.gru:GruWithCell" in to_text(made.blocks())
    with pytest.raises(InputError, match=r"has no train\.onnx"):
        OnnxTrainer.from_export(made.exported)


def test_what_the_manifest_says(model: Path, tmp_path: Path) -> None:
    made = tacit.export(model, tmp_path / "phone")
    record, vocabulary = json.loads((tmp_path / "phone" / MANIFEST).read_text()), load_model(model).vocabulary
    assert made.to_record() == {**record, "folder": str(tmp_path / "phone"), "locale": "en"}
    assert (record["schema"], record["version"], record["tacit"]) == ("tacit.export", 1, tacit.__version__)
    assert record["model"] == load_model(model).digest and record["run"] is None and record["quantization"] is None
    assert record["network"] == {"kind": "cifg", "vocabulary": 60, "embedding": 8, "units": 16, "tied": False}
    assert record["vocabulary"]["sha256"] == vocabulary.sha256 and record["vocabulary"]["size"] == 60
    files = content(tmp_path / "phone")
    assert record["files"].keys() == files.keys() - {MANIFEST}
    for name, said in record["files"].items():
        assert said == {"sha256": hashlib.sha256(files[name]).hexdigest(), "bytes": len(files[name])}
    graph = onnx.load_from_string(files[STEP])
    assert [each.version for each in graph.opset_import] == [record["opset"]]
    assert "step.onnx" in made._repr_html_() and "costs no privacy" in made._repr_html_()


def test_an_export_is_made_anew_to_the_bit_and_replaces_only_itself(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "phone"
    tacit.export(model, out)
    first = content(out)
    (out / STEP).write_bytes(b"damaged")
    tacit.export(str(model), str(out))
    assert content(out) == first
    (out / "notes.txt").write_text("dear to somebody")
    with pytest.raises(InputError, match=r"has 'notes\.txt' beside an export"):
        tacit.export(model, out)
    assert (out / "notes.txt").read_text() == "dear to somebody"


@pytest.mark.parametrize("what", ["foreign", "model", "cache", "file"])
def test_nothing_else_is_replaced(what: str, model: Path, cache: Cache, tmp_path: Path) -> None:
    out = {"foreign": tmp_path / "foreign", "model": model, "cache": cache.path, "file": tmp_path / "file"}[what]
    if what == "foreign":
        out.mkdir()
        (out / STEP).write_bytes(b"a step of one's own")
    elif what == "file":
        out.write_text("x")
    before = content(out) if out.is_dir() else out.read_bytes()
    with pytest.raises(InputError, match=r"is a file; give|exists and is no export, so it is not replaced"):
        tacit.export(model, out)
    assert (content(out) if out.is_dir() else out.read_bytes()) == before


def test_a_link_is_not_written_through(model: Path, tmp_path: Path) -> None:
    tacit.export(model, tmp_path / "phone")
    before = content(tmp_path / "phone")
    for target in ("phone", "nowhere"):
        link = tmp_path / f"to-{target}"
        link.symlink_to(tmp_path / target)
        with pytest.raises(InputError, match=rf"is a link.*give '.*{target}'"):
            tacit.export(model, link)
        assert link.is_symlink()
    assert content(tmp_path / "phone") == before and not (tmp_path / "nowhere").exists()


def test_an_import_does_not_take_an_export_for_an_old_cache(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "phone"
    tacit.export(model, out)
    before = content(out)
    with pytest.raises(CacheError, match="exists and is not a cache"):
        tiny_cache(out)
    assert content(out) == before


# -- what was promised ---------------------------------------------------------------------------------------------


def test_the_statement_of_a_run_goes_with_its_model(trained: Path, tmp_path: Path) -> None:
    made = tacit.export(trained, tmp_path / "phone")
    manifest = made.exported.manifest
    assert manifest.privacy.kind == "statement" and manifest.privacy.statement is not None
    verified = tacit.verify(manifest.privacy.statement)
    assert verified.holds and len(verified.lines) > 10
    found = tacit.verify(tmp_path / "phone")  # the statement in the folder, and its files
    assert found.holds and found.lines[-len(verified.lines) :] == verified.lines
    assert {line.name for line in found.lines[: -len(verified.lines)]} == {
        f"exported {name}" for name in [*manifest.files, "manifest.json"]
    }
    with tacit.open_run(trained) as run:
        assert manifest.run == run.seal
        assert tacit.verify(manifest.privacy.statement, run=run.path).holds
        assert tacit.export(run, tmp_path / "again").exported.manifest == manifest


def test_a_run_s_statement_does_not_go_with_another_model(trained: Path, model: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    shutil.copy(model / "model.safetensors", run / "model" / "model.safetensors")
    with pytest.raises(RunError, match=r"model\.safetensors' is not what the run wrote"):
        tacit.export(run, tmp_path / "phone")
    shutil.copytree(trained / "model", run / "model", dirs_exist_ok=True)
    (run / "model" / "origin.json").write_text('{"public_text": "a public book"}')
    with pytest.raises(RunError, match=r"origin\.json' is not what the run wrote"):
        tacit.export(run, tmp_path / "phone")
    assert not (tmp_path / "phone").exists()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"files": {}}, {"step.onnx", "score.onnx", "model.safetensors", "vocabulary.json"}),
        ({"vocabulary": {"lowercase": True}}, {"vocabulary.json"}),
        ({"vocabulary": {"provenance": {"kind": "word list", "description": "a list"}}}, {"vocabulary.json"}),
        ({"files": {"step.onnx": {"bytes": 1}}}, {"step.onnx"}),
    ],
)
def test_a_manifest_that_says_something_else_than_its_files_does_not_hold(
    changed: dict[str, Any], named: set[str], model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "phone"
    tacit.export(model, out)
    record = json.loads((out / MANIFEST).read_text())
    for part, values in changed.items():
        for name, value in values.items():
            record[part][name] = {**record[part][name], **value} if isinstance(value, dict) else value
        record[part] = record[part] if values else {}
    (out / MANIFEST).write_text(json.dumps(record))
    assert {line.name for line in tacit.verify(out).failed} == {f"exported {name}" for name in named}


def test_an_export_with_the_weights_of_another_model_does_not_hold_against_the_run(
    trained: Path, model: Path, tmp_path: Path
) -> None:
    """Whoever may write the folder can write a manifest that agrees with it; the run knows better."""
    out = tmp_path / "phone"
    tacit.export(trained, out)
    assert tacit.verify(out, run=trained).holds
    _exchange(out, "model.safetensors", (model / "model.safetensors").read_bytes())
    assert tacit.verify(out).holds
    (failed,) = tacit.verify(out, run=trained).failed
    assert failed.name == "exported model.safetensors" and "is not that of the model in" in str(failed.complaint)


def test_a_statement_of_another_run_is_told(trained: Path, tmp_path: Path) -> None:
    tacit.export(trained, tmp_path / "phone")
    _change(tmp_path / "phone", run="0" * 64)
    (failed,) = tacit.verify(tmp_path / "phone").failed
    assert failed.name == "exported manifest.json" and f"with the seal {'0' * 64}, and its statement of" in str(
        failed.complaint
    )


def test_the_dictionary_names_the_run_s_guarantee_and_its_time(trained: Path, model: Path, tmp_path: Path) -> None:
    """A fixed seed is none: the manifest beside the dictionary says which it is."""
    stated = json.loads(tacit.statement(trained).to_json())
    for key_source, bigrams in (("operating system", True), (stated["key_source"], False)):
        promise = Promise(kind="statement", says="", statement={**stated, "key_source": key_source})
        listed = read(combined(from_model.dictionary_of(phone_model_of(load_model(trained)), promise, date=0)))
        assert any(listed.bigrams.values()) == bigrams
        epsilon = math.ceil(1000 * stated["realised"]["epsilon"]) / 1000
        assert (f"epsilon {epsilon:g} " in listed.header["description"]) == bigrams
    made = tacit.export(trained, tmp_path / "phone", locale="en-GB")
    listed = read((tmp_path / "phone" / DICTIONARY).read_text())
    assert "noise of a known seed" in listed.header["description"] and not any(listed.bigrams.values())
    with tacit.open_run(trained) as run:
        assert listed.header["date"] == str(int(run.metadata.created))
    assert listed.header["locale"] == made.locale == "en_GB"
    assert listed.words.keys() == set(load_model(trained).vocabulary.words)
    tacit.export(model, tmp_path / "unknown")
    listed = read((tmp_path / "unknown" / DICTIONARY).read_text())
    assert "no guarantee" in listed.header["description"] and not any(listed.bigrams.values())
    assert listed.header["date"] == str(int((model / "model.safetensors").stat().st_mtime))


def public(model: Path, folder: Path) -> Path:
    """The same model, said to be made of public text."""
    shutil.copytree(model, folder)
    write_origin(folder, "a book")
    return folder


def test_a_dictionary_alone(model: Path, trained: Path, tmp_path: Path) -> None:
    """The words of the model as keyboards import them; nothing follows anything where nothing is promised."""
    source, words = public(model, tmp_path / "public"), load_model(model).vocabulary.words
    made = tacit.export_dictionary(source, tmp_path / "en.dict", locale="en-GB")
    read = read_static_dictionary((tmp_path / "en.dict").read_bytes())
    assert {entry.word for entry in read.entries} == set(words) and read.attributes == made.dictionary.attributes
    assert read.attributes["locale"] == "en_GB" and "public text alone" in read.attributes["description"]
    assert read.followers.keys() == {(BEGINNING,), *((word,) for word in words)}
    record = made.to_record()
    assert record["format"] == 202 and record["bytes"] == (tmp_path / "en.dict").stat().st_size and not record["two"]
    pairs = tacit.export_dictionary(source, tmp_path / "en", trigrams=True)
    assert read_dynamic_dictionary(tmp_path / "en").followers.keys() == pairs.dictionary.followers.keys()
    assert pairs.counts()["two"] > 0 and pairs.version == 403
    assert "follow two words" in to_text(pairs.blocks()) and "releases nothing new" in to_text(pairs.blocks())
    tacit.export_dictionary(trained, tmp_path / "en.dict")  # of a known seed
    read = read_static_dictionary((tmp_path / "en.dict").read_bytes())
    assert {entry.word for entry in read.entries} == set(words) and not read.followers
    tacit.export_dictionary(trained, tmp_path / "en", trigrams=True)
    assert not read_dynamic_dictionary(tmp_path / "en").followers


def test_public_and_unknown_text_is_called_so(model: Path, tmp_path: Path) -> None:
    unknown = tacit.export(model, tmp_path / "unknown").exported.manifest.privacy
    found = tacit.verify(tmp_path / "unknown")
    assert found.holds and found.statement is None and found.promise == unknown.says
    assert (
        "All 6 files are those that manifest.json names; no statement: nothing is known of the text" in found.judgement
    )
    with pytest.raises(InputError, match="has no statement to hold against a run"):
        tacit.verify(tmp_path / "unknown", run=tmp_path)
    assert unknown.kind == "unknown" and "nothing is known of the text" in unknown.says
    shutil.copytree(model, tmp_path / "public")
    write_origin(tmp_path / "public", "public text of a book")
    public = tacit.export(tmp_path / "public", tmp_path / "phone").exported.manifest.privacy
    assert (public.kind, public.public_text, public.statement) == ("public text", "public text of a book", None)


def test_words_of_private_text_are_called_so_and_labels_shown(trained: Path, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    secret = replace(load_model(model).vocabulary, provenance=Provenance(kind="private", description="counted"))
    secret.save(tmp_path / "model" / "vocabulary.json")
    said = {each: to_text(tacit.export(each, tmp_path / "phone").blocks()) for each in (model, tmp_path / "model")}
    assert ["nothing is promised for them" in text for text in said.values()] == [False, True]
    assert "statement (labelled FIXED SEED" in to_text(tacit.export(trained, tmp_path / "phone").blocks())


# -- whole or not at all -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [*parts.PARTS])
@pytest.mark.parametrize("there", [False, True], ids=["anew", "again"])
def test_a_full_disk_leaves_what_was(
    broken: str, there: bool, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "folder" / "phone"
    if there:
        tacit.export(model, out)
    before = content(out) if there else None

    def full(asked: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parts, "PARTS", {**parts.PARTS, broken: full})
    with pytest.raises(OSError, match="No space"):
        tacit.export(model, out)
    assert [each.name for each in out.parent.iterdir()] == ["phone"] * there
    assert (content(out) if there else None) == before


def test_a_killed_export_leaves_nothing_half(model: Path, tmp_path: Path) -> None:
    """Killed after its first two files: no folder is there, and the next export sweeps what was begun."""
    code = """
import os, sys
import tacit
from tacit.keyboard import export as parts
names = list(parts.PARTS)
parts.PARTS = {**parts.PARTS, names[2]: lambda asked: os.kill(os.getpid(), 9)}
tacit.export(*sys.argv[1:])
"""
    words = [sys.executable, "-c", code, str(model), str(tmp_path / "phone")]
    done = subprocess.run(words, capture_output=True, check=False, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert done.returncode == -signal.SIGKILL, done.stderr
    (begun,) = tmp_path.iterdir()
    assert begun.name.startswith(".phone.") and sorted(each.name for each in begun.iterdir()) == [SCORE, STEP]
    tacit.export(model, tmp_path / "phone")
    assert [each.name for each in tmp_path.iterdir()] == ["phone"]


# -- what is refused -----------------------------------------------------------------------------------------------


def _flip(folder: Path, name: str) -> None:
    damaged = bytearray((folder / name).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (folder / name).write_bytes(damaged)


def _change(folder: Path, **values: Any) -> None:
    record = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**record, **values}))


def _exchange(folder: Path, name: str, content: bytes) -> None:
    """A file with the digest of another content in the manifest, as if it had been exported so."""
    (folder / name).write_bytes(content)
    files = json.loads((folder / MANIFEST).read_text())["files"]
    digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    _change(folder, files={**files, name: digest})


def _opset(folder: Path, version: int) -> None:
    graph = onnx.load(folder / STEP)
    graph.opset_import[0].version = version
    _exchange(folder, STEP, graph.SerializeToString())
    _change(folder, opset=version)


def _unknown_width(folder: Path) -> None:
    graph = onnx.load(folder / STEP)
    (cell,) = [each for each in graph.graph.input if each.name == "cell"]
    cell.type.tensor_type.shape.dim[1].dim_param = "W"
    _exchange(folder, STEP, graph.SerializeToString())


def _beside(folder: Path) -> None:
    """Weights in a file that the manifest does not name."""
    graph = onnx.load(folder / STEP)
    weights = max(graph.graph.initializer, key=lambda each: len(each.raw_data))
    (folder / "weights.bin").write_bytes(weights.raw_data)
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="weights.bin")
    _exchange(folder, STEP, graph.SerializeToString())


def _endless(folder: Path) -> None:
    """More memory than any machine has, once it is computed."""
    graph = onnx.load(folder / STEP)
    for node in graph.graph.node:
        for names in (node.input, node.output):
            names[:] = ["before" if name == "log_probabilities" else name for name in names]
    shape = onnx.numpy_helper.from_array(np.array([1 << 40, 1 << 10]), "shape")
    graph.graph.initializer.append(shape)
    for kind, given, made in (
        ("ConstantOfShape", ["shape"], "much"),
        ("ReduceMax", ["much"], "zero"),
        ("Add", ["before", "zero"], "log_probabilities"),
    ):
        graph.graph.node.append(onnx.helper.make_node(kind, given, [made]))
    _exchange(folder, STEP, graph.SerializeToString())


def _looping(folder: Path) -> None:
    """The scores go 2^62 times through a body that does nothing."""
    graph = onnx.load(folder / STEP)
    for node in graph.graph.node:
        node.output[:] = ["before" if name == "log_probabilities" else name for name in node.output]
        node.input[:] = ["before" if name == "log_probabilities" else name for name in node.input]
    tensor, info = onnx.TensorProto, onnx.helper.make_tensor_value_info
    given = [info("at", tensor.INT64, []), info("more", tensor.BOOL, []), info("scores", tensor.FLOAT, None)]
    made = [info("go_on", tensor.BOOL, []), info("same", tensor.FLOAT, None)]
    same = [onnx.helper.make_node("Identity", [old], [new]) for old, new in (("more", "go_on"), ("scores", "same"))]
    body = onnx.helper.make_graph(same, "body", given, made)
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array(1 << 62), "rounds"))
    graph.graph.node.append(onnx.helper.make_node("Loop", ["rounds", "", "before"], ["log_probabilities"], body=body))
    _exchange(folder, STEP, graph.SerializeToString())


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "another bit": (
        lambda at: _flip(at, STEP),
        r"step\.onnx' is not the file that was exported.*export the model again",
    ),
    "other words": (lambda at: _flip(at, "vocabulary.json"), r"vocabulary\.json' is not the file that was exported"),
    "no graph": (lambda at: (at / STEP).unlink(), r"step\.onnx' cannot be read \(No such file"),
    "a graph that no manifest names": (lambda at: _change(at, files={}), r"has no step\.onnx; export the model again"),
    "no manifest": (lambda at: (at / MANIFEST).unlink(), r"is no exported model \(no manifest\.json\)"),
    "no JSON": (lambda at: (at / MANIFEST).write_text("{"), r"manifest\.json' is damaged"),
    "deep JSON": (lambda at: (at / MANIFEST).write_text("[" * 100_000), r"manifest\.json' is damaged"),
    "another manifest": (lambda at: _change(at, schema="tacit.other"), "is of no exported model"),
    "a list": (lambda at: (at / MANIFEST).write_text("[]"), "is of no exported model"),
    "a later version": (lambda at: _change(at, version=2, tacit="9.0"), r"format 2, and this tacit reads 1.*\(9\.0\)"),
    "an unknown key": (lambda at: _change(at, more=1), "has the unknown key 'more'"),
    "a wrong value": (lambda at: _change(at, opset="x"), "opset is 'x', and a whole number was expected"),
    "a file elsewhere": (
        lambda at: _change(at, files={"../step.onnx": {"sha256": "", "bytes": 1}}),
        r"names the file '\.\./step\.onnx', which no export has",
    ),
    **{
        f"a file called {name!r}": (
            partial(_change, files={name: {"sha256": "", "bytes": 1}}),
            "which no export has",
        )
        for name in ("", "..", "a\0b", MANIFEST)
    },
    "weights in another file": (_beside, r"step\.onnx' takes weights from files that manifest\.json has no digest of"),
    "a graph without end": (_endless, r"cannot compute the graph"),
    "an opset of the future": (
        lambda at: _opset(at, 999),
        r"cannot run '.*step\.onnx', which is of opset 999.*pip install --upgrade onnxruntime",
    ),
    "a graph of sentences": (
        lambda at: _exchange(at, STEP, (at / SCORE).read_bytes()),
        r"step\.onnx' is a graph, but not one of a word and a state",
    ),
    "a graph of training": (
        lambda at: _exchange(at, STEP, (at / "train.onnx").read_bytes()),
        r"step\.onnx' is a graph, but not one of a word and a state",
    ),
    "a state of no known width": (lambda at: _unknown_width(at), r"step\.onnx' is a graph, but not one of a word"),
    "public text without its name": (
        lambda at: _change(at, privacy={"kind": "public text", "says": "all of it is public"}),
        "of the kind 'public text', and what it says is of another",
    ),
    "a statement called something else": (
        lambda at: _change(at, privacy={"kind": "unknown", "says": "", "statement": {}}),
        "of the kind 'unknown', and what it says is of another",
    ),
    "no graph at all": (lambda at: _exchange(at, STEP, b"nonsense"), r"step\.onnx' is no graph of ONNX"),
    "a graph of another kind": (
        lambda at: _exchange(at, STEP, b"\x08\x08"),
        r"ONNX Runtime .* cannot run '.*step\.onnx'",
    ),
    "a loop of 2^62 rounds": (
        _looping,
        r"step\.onnx' has the operation 'Loop', which runs .*, and no export of tacit's",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_export_that_is_not_what_it_was_is_refused(what: str, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "phone"
    tacit.export(model, out)
    damage, sentence = REFUSED[what]
    damage(out)
    with pytest.raises(InputError, match=sentence):
        load_phone_model(out).typing()


@pytest.mark.parametrize("id", [-1, 10_000])
def test_ids_of_another_vocabulary_are_refused(id: int, model: Path, tmp_path: Path) -> None:
    exported = tacit.export(model, tmp_path / "phone").exported
    sentence = np.array([[1, id, 2]])
    with pytest.raises(InputError, match=r"is of no word|give ids of its own vocabulary"):
        OnnxScorer.from_export(exported)(sentence)
    trainer = OnnxTrainer.from_export(exported)
    with pytest.raises(InputError, match="vocabulary has not all of them"):
        trainer.descend(trainer.begin(exported), sentence, 0.1)


def test_weights_that_are_none_are_refused(model: Path, tmp_path: Path) -> None:
    tacit.export(model, tmp_path / "phone")
    _exchange(tmp_path / "phone", "model.safetensors", b"nonsense")
    exported = load_exported(tmp_path / "phone")
    with pytest.raises(InputError, match=r"model\.safetensors' holds no weights"):
        OnnxTrainer.from_export(exported).begin(exported)


def test_every_file_can_be_checked_at_once(model: Path, tmp_path: Path) -> None:
    exported = tacit.export(model, tmp_path / "phone").exported
    exported.check()
    _flip(tmp_path / "phone", "model.safetensors")
    with pytest.raises(InputError, match=r"model\.safetensors' is not the file"):
        load_exported(tmp_path / "phone").check()
    found = tacit.verify(tmp_path / "phone")
    assert [line.name for line in found.failed] == ["exported model.safetensors"]
    assert found.judgement == "1 of 6 lines FAIL: this is not what was exported."


def test_what_cannot_be_exported(model: Path, cache: Cache, tmp_path: Path) -> None:
    out = tmp_path / "phone"
    write_model(tmp_path / "gru", Gru(), Gru().init(jax.random.key(0)), cache.vocabulary_json.encode())
    with pytest.raises(InputError, match="`onnx_cell`"):
        tacit.export(tmp_path / "gru", out)
    with pytest.raises(InputError, match="holds no model"):
        tacit.export(cache.path, out)
    with pytest.raises(InputError, match="'trigram:cache' has no files of its own"):
        tacit.export("trigram:cache", out)
    with pytest.raises(InputError, match="quantize='int2' is unknown"):
        tacit.export(model, out, quantize="int2")
    with pytest.raises(InputError, match="the locale 'English' is none"):
        tacit.export(model, out, locale="English")
    assert not out.exists()
    tacit.export(model, out)
    with pytest.raises(InputError, match="is an export already"):
        tacit.export(out, tmp_path / "again")


def test_an_exported_model_is_read_without_an_accelerator_and_without_onnx(model: Path, tmp_path: Path) -> None:
    tacit.export(model, tmp_path / "phone")
    code = f"""
import sys
from tacit.keyboard.phone_model import load_phone_model
from tacit.keyboard.prompts import prompts_for
load_phone_model({str(tmp_path / "phone")!r}).next_words("waa")
heavy = {{"jax", "numba", "pyarrow", "scipy", "onnx", "matplotlib", "pydantic"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- the command ---------------------------------------------------------------------------------------------------


def test_the_command_prints_files_and_promise_or_the_manifest(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "phone"
    result = CliRunner().invoke(app, ["export", str(model), "--out", str(out)])
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1] for line in result.stdout.splitlines()[1 : len(parts.PARTS) + 1]}
    assert rows == {name: f"{len(each):,}" for name, each in content(out).items() if name != MANIFEST}
    assert "words.combined says locale=en;" in result.stdout
    asked = prompts_for(load_model(model).vocabulary)[2]  # in the language of its words
    assert "releases nothing new" in result.stdout and f"tacit suggest {out} '{asked}'" in result.stdout
    as_json = CliRunner().invoke(app, ["export", str(model), "--out", str(out), "--json"])
    assert json.loads(as_json.stdout) == tacit.export(model, out).to_record()
    refused = CliRunner().invoke(app, ["export", str(model), "--out", str(model)])
    assert refused.exit_code == 2 and refused.stderr.startswith("error: ")


def test_the_command_writes_a_dictionary(model: Path, tmp_path: Path) -> None:
    source, target = public(model, tmp_path / "public"), tmp_path / "en.dict"
    (tmp_path / "rude").write_text("waa\n")
    (tmp_path / "short").write_text("brb\tbe right back\n")
    given = ["--offensive", str(tmp_path / "rude"), "--shortcuts", str(tmp_path / "short")]
    result = CliRunner().invoke(app, ["export", str(source), "--dictionary", str(target), *given])
    assert result.exit_code == 0 and "follow one word" in result.stdout, result.output
    read = {entry.word: entry for entry in read_static_dictionary(target.read_bytes()).entries}
    assert read["waa"].offensive and not read["wbb"].offensive
    assert read["brb"].not_a_word and read["brb"].shortcuts == (("be right back", 15),)
    as_json = CliRunner().invoke(app, ["export", str(source), "--dictionary", str(target), *given, "--json"])
    assert (
        json.loads(as_json.stdout)["words"] == len(read) and json.loads(as_json.stdout)["schema"] == "tacit.dictionary"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "nothing says what to write"),
        (["--out", "a", "--dictionary", "b"], "two things do"),
        (["--out", "a", "--trigrams"], "give --dictionary FOLDER"),
        (["--dictionary", "a", "--quantize", "int8"], "leave it out"),
        (["--dictionary", "a", "--locale", "English"], "give a language"),
        (["--dictionary", "a", "--shortcuts", "missing"], "cannot be read as text"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], sentence: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["export", str(model), *options])
    assert refused.exit_code == 2 and sentence in refused.stderr and not list(tmp_path.iterdir())
