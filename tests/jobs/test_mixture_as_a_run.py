"""A mixture is a run like others: stopped, ended, accounted, reported, compared and held against what is free."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.support.jobs.mixture_runs import Parts, opened, parts_at, recipe_of, values, with_rounds
from tests.support.training.tiny import tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.errors import InputError, RunError
from tacit.jobs.account.run import stated
from tacit.jobs.train.mixture import MixtureResult, train_any, train_mixture
from tacit.networks.metrics import OF_ALL, TOP1
from tacit.privacy import gaussian
from tacit.progress import Event
from tacit.runs import Run

ONE = Hardware(workers=1)
DONE, PLANNED = 1, 3


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return parts_at(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def stopped(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> MixtureResult:
    """After its first round."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    return train_mixture(recipe_of(with_rounds(parts)), out, until=DONE, anyway=True, hardware=ONE)


@pytest.fixture(scope="module")
def finished(stopped: MixtureResult, tmp_path_factory: pytest.TempPathFactory) -> MixtureResult:
    """The same, gone on with to its last round."""
    out = Path(shutil.copytree(stopped.folder, tmp_path_factory.mktemp("finished") / "run"))
    found: Any = tacit.resume(out, hardware=ONE)
    return found


@pytest.fixture(scope="module")
def plain(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> MixtureResult:
    """Without rounds, on the same test clients."""
    out = tmp_path_factory.mktemp("plain") / "run"
    return train_mixture(recipe_of(values(parts, name="another")), out, hardware=ONE)


def made(out: Path) -> dict[str, bytes]:
    """The model, and what was released."""
    files = ["model/model.safetensors", "model/settings.json", "counts/report/sums.npz", "simulation/report.json"]
    return {name: (out / name).read_bytes() for name in files}


# -- stopped and ended -------------------------------------------------------------------------------------------------


def test_it_stops_after_so_many_rounds_and_says_how_it_goes_on(stopped: MixtureResult) -> None:
    assert stopped.report is None and stopped.arms == []
    record = stopped.to_record()
    assert (record["rounds"], record["planned_rounds"]) == (DONE, PLANNED)
    assert record["report"] is None and record["simulation"] is None and record["simulation_only"] is None
    said = str(stopped)
    for words in (
        "Stopped after 1 of 3 rounds",
        f"`tacit resume {stopped.folder}`",
        f"`tacit finish {stopped.folder}`",
    ):
        assert words in " ".join(said.split())
    assert not (stopped.folder / "model").exists() and not (stopped.folder / "report").exists()


def test_gone_on_with_it_is_the_run_that_nobody_stopped(parts: Parts, finished: MixtureResult, tmp_path: Path) -> None:
    whole = train_mixture(recipe_of(with_rounds(parts)), tmp_path / "run", anyway=True, hardware=ONE)
    assert made(whole.folder) == made(finished.folder)
    again = train_mixture(recipe_of(with_rounds(parts)), finished.folder, until=2, anyway=True, hardware=ONE)
    assert again.report is not None, "it is finished, and no round is left to stop at"


def test_ended_and_stopped_on_the_way_it_ends_the_same(stopped: MixtureResult, tmp_path: Path) -> None:
    """`tacit finish`, stopped at every third of its events and called again, until it is done."""

    class Stopped(BaseException):
        """What no job catches."""

    whole, seen, stop_at = Path(shutil.copytree(stopped.folder, tmp_path / "whole")), 0, 1
    ended = tacit.finish(whole, hardware=ONE)
    assert isinstance(ended, MixtureResult) and ended.report is not None
    out = Path(shutil.copytree(stopped.folder, tmp_path / "run"))

    def stopping(event: Event) -> None:
        nonlocal seen
        seen += 1
        if seen == stop_at:
            raise Stopped

    while True:
        seen = 0
        try:
            tacit.finish(out, hardware=ONE, progress=stopping)
            break
        except Stopped:
            stop_at += 3
    assert stop_at > 3 and made(out) == made(whole)
    with Run.open(out / "training") as run:
        assert run.finished and run.steps_done == DONE
    assert tacit.verify(out).holds
    with pytest.raises(InputError, match=f"is finished already; `tacit report {out}` shows it"):
        tacit.finish(out, hardware=ONE)


@pytest.mark.long
def test_ended_and_killed_on_the_way_it_ends_the_same(stopped: MixtureResult, tmp_path: Path) -> None:
    whole, out = (Path(shutil.copytree(stopped.folder, tmp_path / name)) for name in ("whole", "run"))
    tacit.finish(whole, hardware=ONE)
    code = "import sys; from tests.support.jobs.mixture_runs import main; main('', sys.argv[1], int(sys.argv[2]))"
    stop_at = 1
    while True:
        done = subprocess.run(
            [sys.executable, "-c", code, str(out), str(stop_at)],
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
    assert stop_at > 3 and made(out) == made(whole)


@pytest.mark.parametrize(
    ("until", "message"), [(PLANNED + 1, "until=4 is not between 0 and the 3 rounds"), (-1, "until=-1"), ("2", "until")]
)
def test_rounds_that_there_are_not_are_refused_first(parts: Parts, tmp_path: Path, until: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        train_any(recipe_of(with_rounds(parts)), tmp_path / "run", until=until, anyway=True, hardware=ONE)
    with pytest.raises(InputError, match=r"until is of rounds, and the recipe has no \[training\]"):
        train_any(recipe_of(values(parts)), tmp_path / "run", until=2, hardware=ONE)
    assert not (tmp_path / "run").exists()


# -- its account -------------------------------------------------------------------------------------------------------


def test_its_account_is_the_composition_of_what_its_parts_released(
    stopped: MixtureResult, finished: MixtureResult, tmp_path: Path
) -> None:
    """Before the end and after it; the rounds that are left are not paid for yet."""
    costs = []
    for of in (stopped, finished):
        account = tacit.account_run(of.folder)
        alone = [tacit.account_run(of.folder / name).realised for name in ("counts", "training")]
        zcdp = sum(each.zcdp for each in alone if each is not None)
        assert account.realised is not None and account.realised.zcdp == pytest.approx(zcdp, rel=1e-12)
        record = account.to_record()
        assert record["finished"] == (of is finished) and set(record["parts"]) == {"counts", "network"}
        assert record["realised"]["epsilon"] == pytest.approx(gaussian.epsilon(zcdp, 1e-5), rel=1e-12)
        assert ("UNFINISHED" in str(account)) == (of is stopped)
        assert str(of.folder / "counts") in str(account) and "<table>" in account._repr_html_()
        costs.append(zcdp)
    assert costs[0] < costs[1]
    account = tacit.account_run(finished.folder, delta=1e-7)
    assert account.realised is not None and account.delta == 1e-7
    assert account.figures["realised"]["epsilon"] == account.realised.epsilon(1e-7) > finished.epsilon
    for delta in (None, 1e-7):
        (tmp_path / "promise.json").write_bytes(stated(finished.folder, delta=delta))
        assert tacit.verify(tmp_path / "promise.json").holds
        assert json.loads((tmp_path / "promise.json").read_bytes())["delta"] == (delta or 1e-5)
    with pytest.raises(InputError, match=r"`tacit account run .*--statement FILE` writes it"):
        tacit.statement(finished.folder)


# -- its pages, beside others ------------------------------------------------------------------------------------------


def test_its_pages_are_written_again(stopped: MixtureResult, finished: MixtureResult, tmp_path: Path) -> None:
    before = {each.name: each.read_bytes() for each in (finished.folder / "report").iterdir()}
    report = tacit.report(finished.folder, out=tmp_path / "elsewhere")
    assert {each.name: each.read_bytes() for each in (tmp_path / "elsewhere" / "report").iterdir()} == before
    said = " ".join(str(report).split())
    for words in ("+ private counts", "together", "counts/report/statement.json", "of known words"):
        assert words in said
    record = report.to_record()
    assert record["epsilon"] == finished.epsilon and [each["part"] for each in record["parts"]] == ["counts", "network"]
    assert "test" not in record and record["simulation"]["test"][TOP1] == finished.arms[-1]["values"][TOP1]
    with pytest.raises(InputError, match=r"is not finished.*`tacit resume .*`tacit account run"):
        tacit.report(stopped.folder)


def test_it_is_laid_beside_other_runs(stopped: MixtureResult, finished: MixtureResult, plain: MixtureResult) -> None:
    both = tacit.compare(finished.folder, plain.folder)
    assert both.drawn is None and both.drawing == []
    first, second = both.to_record()["runs"]
    assert first["kind"] == second["kind"] == "mixture" and first["rounds"] == PLANNED
    assert first["realised"]["zcdp"] == pytest.approx(sum(each["zcdp"] for each in first["parts"].values()), rel=1e-12)
    assert first["test"] == finished.arms[-1]["values"] and next(iter(first["arms"])) == "public n-gram"
    value, low, high = second["gain_over_first"]
    assert low <= value <= high
    assert value == pytest.approx(plain.arms[-1]["values"][TOP1] - finished.arms[-1]["values"][TOP1])
    said = str(both)
    assert "A: + private counts" in said and "A: counts" in said and "B: counts" in said
    trained = tacit.compare(finished.folder / "training", finished.folder, stopped.folder)
    kinds = [each["kind"] for each in trained.to_record()["runs"]]
    assert kinds == ["train", "mixture", "mixture"] and trained.drawn is not None
    assert any("UNFINISHED" in each for each in trained.warnings) and trained.to_record()["runs"][2]["test"] == {}
    with pytest.raises(InputError, match="named twice"):
        tacit.compare(finished.folder, finished.folder)


def test_what_is_free_of_its_own_parts_is_below_it(stopped: MixtureResult, plain: MixtureResult) -> None:
    found = tacit.ladder(plain.folder)
    own = str(plain.folder)
    assert {"public n-gram", "public network", "best free model", own} <= set(found.names)
    price = found.price(own)
    assert price is not None and price.epsilon == pytest.approx(plain.epsilon)
    sums = found.ladder.sums(own)
    assert sums["top1"].sum() / sums["predicted"].sum() == pytest.approx(plain.arms[-1]["values"][TOP1])
    rung = found.to_record()["rungs"][own]
    for name in ("top1", "top3"):
        assert rung[f"{name}_of_all_words"][0] == pytest.approx(sums[name].sum() / sums["words"].sum())
    assert f"Top-1 and top-3 are {OF_ALL}" in str(found)
    with pytest.raises(InputError, match="named twice"):
        tacit.ladder(plain.folder, models=[plain.folder])
    with pytest.raises(InputError, match="has made no mixture yet; `tacit resume"):
        tacit.ladder(stopped.folder)
    with pytest.raises(InputError, match="are of a cache"):
        tacit.ladder(plain.folder, settings=tacit.jobs.ladder.LadderSettings(sentences=3))


def test_another_run_does_not_take_its_folder(parts: Parts, plain: MixtureResult) -> None:
    before = made(plain.folder)
    with pytest.raises(RunError, match=r"makes a mixture, so it is left alone.*`tacit resume"):
        tacit.train(tiny_recipe(opened(parts).path), plain.folder, anyway=True, hardware=ONE)
    assert made(plain.folder) == before
