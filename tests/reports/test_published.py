"""What of a run may be published: nothing but what follows from released sums, whatever file one looks into.

An adversary who reads `report/` knows everything but one client's text. An exact count, loss or digest of a cohort that
this client is in tells it apart, and an exact count beside the noised one is the noise of the round.
"""

import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.made_runs import REPORT_GOAL, RUNS, note, release, write_adaptive_run, write_run
from tests.support.reports.publishable import slipped_into

from tacit.jobs.report import report
from tacit.privacy import Tree
from tacit.runs import Run
from tacit.training.rounds import RoundOutcome

Write = Callable[..., Path]
STATES: dict[str, Write] = {
    **{
        kind: lambda path, values=values, **more: write_run(path, **{**values, **more}) for kind, values in RUNS.items()
    },
    "adaptive": write_adaptive_run,
}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure's file holds its data in full, and none of the time that drawing takes."""
    monkeypatch.setattr("tacit.reports.drawing.render", lambda figure, kind: repr(figure).encode())


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("state", STATES)
def test_nothing_is_published_but_what_is_listed(state: str, tmp_path: Path) -> None:
    folder = report(STATES[state](tmp_path / "run")).html.parent
    assert not slipped_into(folder), "publishes what nobody argued for; see docs/threat-model.md, or leave it out"


@pytest.fixture
def unsealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the seal, which changes with everything that it seals."""
    monkeypatch.setattr(Run, "seals", property(lambda run: ["5e" * 32] * (run.steps_done + 1)))


@pytest.mark.usefixtures("undrawn", "unsealed")
@pytest.mark.parametrize("state", ["tree", "non-private", "unfinished", "one round", "adaptive"])
def test_what_is_exact_changes_no_byte_of_what_is_published(state: str, tmp_path: Path) -> None:
    """Losses, clipped shares, dropped clients, times, accuracies and the text's digest are others, the pages the same.

    Every file is compared, so nothing stands in a page, in a picture or in what describes one.
    """
    found = []
    for exact in (0.0, 0.3):
        files = report(STATES[state](tmp_path / "run", exact=exact))
        assert files.simulation is not None
        whole = files.simulation.json.read_bytes()
        found.append(({file.name: file.read_bytes() for file in files.html.parent.iterdir()}, whole))
        shutil.rmtree(tmp_path / "run")
    (one, before), (other, after) = found
    assert before != after, "the simulation's page shows them"
    assert one == other


def test_a_seal_is_hidden_by_a_salt(tmp_path: Path) -> None:
    """Else whoever knows all but one client's text could try texts until the exact numbers give the published seal."""
    seals = []
    for name in ("one", "other"):
        with Run.open(write_run(tmp_path / name, strategy=Tree())) as run:
            seals.append(run.seal)
            assert run.steps()[0].measures == {"loss": 6.0, "clipped": 0.5}
    assert seals[0] != seals[1], "all else is equal"


@pytest.mark.usefixtures("undrawn")
def test_a_failure_that_exact_losses_speak_is_not_published(tmp_path: Path) -> None:
    losses = [4.0 if round < 2 else 60.0 + round % 3 for round in range(20)]
    files = report(write_adaptive_run(tmp_path / "run", losses=losses, clipped=[1.0] * 20, estimates=range(1, 21)))
    assert "ADAPTIVE CLIPPING FAILED" in files.everything.markdown.read_text()
    assert not [file for file in files.html.parent.iterdir() if b"FAILED" in file.read_bytes()]


def test_a_round_measures_what_these_tests_know() -> None:
    """A measure that is added must be added here, and is exact until somebody argues otherwise."""
    outcome = RoundOutcome(
        round=0,
        clients=np.arange(4),
        release=release(0, Tree(), 1.0),
        seconds=1.0,
        loss=6.0,
        clipped=0.5,
        clip_estimate=1.0,
        private_loss=6.1,
    )
    assert set(outcome.measures) == {"loss", "clipped", "clip_norm", "clip_estimate", "private_loss"}


# -- the attack --------------------------------------------------------------------------------------------------------


def noise_of_each_round(record: Mapping[str, Any]) -> list[float]:
    """The noise on each round's count of short updates, from a report alone: noised minus exact, each in clients.

    The estimate says the sum of noised counts. Where it is in force, the share of clipped updates is the exact count.
    """
    per_round, quantile, rate = record["per_round"], 0.5, 0.2  # the settings' defaults
    first, goal = per_round["clip_norm"][0], record["metadata"]["report_goal"]
    counted = [
        -math.log(estimate / first) / rate - (at + 1) * (0.5 - quantile)
        for at, estimate in enumerate(per_round["clip_estimate"])
    ]
    noised = [goal * (now - before) for before, now in zip([0.0, *counted], counted, strict=False)]
    exact = [(1 - share) * goal - goal / 2 for share in per_round["clipped"]]
    return [one - other for one, other in zip(noised, exact, strict=True)]


@pytest.mark.usefixtures("undrawn")
def test_the_noise_of_a_round_cannot_be_computed_from_what_is_published(tmp_path: Path) -> None:
    """A run whose clip norm follows every round; with the exact shares the noise is known to the last digit."""
    generator = np.random.default_rng(4)
    short = generator.integers(0, REPORT_GOAL + 1, 20)
    noise = generator.normal(0, 4.0, 20)
    counted = np.cumsum(short - REPORT_GOAL / 2 + noise) / REPORT_GOAL
    estimates = np.exp(-0.2 * counted)
    path = write_adaptive_run(
        tmp_path / "run",
        tree=Tree(restarts=tuple(range(1, 20))),
        norms=[1.0, *estimates[:-1].tolist()],
        estimates=estimates.tolist(),
        clipped=(1 - short / REPORT_GOAL).tolist(),
    )
    files = report(path)
    with pytest.raises(KeyError, match="clipped"):
        noise_of_each_round(json.loads(files.json.read_text()))
    assert noise_of_each_round(json.loads(files.everything.json.read_text())) == pytest.approx(noise.tolist())


# -- what the model suggests -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("state", "published"), [("tree", True), ("adaptive", True), ("non-private", False), ("private words", False)]
)
def test_suggestions_are_published_where_noise_made_the_model_and_no_client_its_words(
    state: str, published: bool, tmp_path: Path
) -> None:
    files = report(STATES[state](tmp_path / "run"))
    assert ("I will see" in files.markdown.read_text()) == published
    assert ("suggestions" in json.loads(files.json.read_text())) == published
    assert "| I will see | you 25% | it 12% | the 6% |" in files.everything.markdown.read_text()


@pytest.mark.usefixtures("undrawn")
def test_that_a_model_is_worse_than_its_start_is_not_published(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree())
    with Run.open(path) as run, run.locked():
        note(run, model=0.05, start=0.2)
    files = report(path)
    assert files.everything.page.headline["labels"][:2] == ["SIMULATION ONLY", "WORSE THAN ITS START"]
    for file in files.html.parent.iterdir():
        assert b"WORSE" not in file.read_bytes() and b"n-gram" not in file.read_bytes()
