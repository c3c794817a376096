"""What of a run may be published: nothing but what follows from released sums, whatever file one looks into.

An adversary who reads `report/` knows everything but one client's text. An exact count, loss or digest of a cohort that
this client is in tells it apart, and an exact count beside the noised one is the noise of the round.
"""

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.made_runs import REPORT_GOAL, RUNS, note, release, write_adaptive_run, write_run

from tacit.jobs.report import report
from tacit.privacy import Tree
from tacit.runs import Run
from tacit.training.rounds import RoundOutcome

# Every value that report.json, record.json and statement.json of a training may hold, and why: "setting" (what was
# asked, before any text was read), "plan" (follows from settings), "log" (who took part when, the same for zero-out
# neighbours: limits and their price, no more), "noised" (computed from noised sums), "asked of the model" (what the
# released model answers to sentences that are the same for every run), "sealed" (hidden by a salt that nobody knows). A
# field that is in none of them does not pass.
PUBLISHABLE: dict[str, str] = {
    r"run|name|finished|private|rounds|rounds_planned|labels\.\*|figures\.\*": "plan",
    r"warnings\.\*\.(name|meaning)": "log",
    r"planned|realised|opening": "log",  # the sentence has the price, and settings
    r"suggestions\.\*\.(prompt|words\.\*\.(word|probability))": "asked of the model",
    r"(planned|realised)\.(sequences\.\*\.)?(what|rounds|min_separation|rounds_between|max_participations)": "log",
    r"(planned|realised)\.(sequences\.\*\.)?(sensitivity_squared|noise_multiplier|zcdp|epsilon|delta)": "log",
    r"(planned|realised)\.(sequences\.\*\.)?clip_norm": "noised",
    r"spent\.\*\.(rounds|zcdp|epsilon)": "log",
    r"per_round\.(clip_norm|clip_estimate|private_loss)\.\*": "noised",
    r"settings\..*": "setting",
    r"schema|version|path|created|resume|metadata\.deployment(\..*)?": "setting",  # of record.json, as all below
    r"delta": "plan",
    r"released|labels\.\*\.(name|meaning)": "log",
    r"rounds\.(clip_norm|clip_estimate|private_loss)(\.\*)?": "noised",
    r"suggestions\.[^.]+\.\*\.\*": "asked of the model",
    r"metadata\.(versions\..*|created|key_source|asked|recipe|vocabulary\..*|population|report_goal|delta)": "setting",
    r"metadata\.(participation|guarantee|also_released|evaluation|hooks|first_model|simulated)(\..*)?": "setting",
    r"metadata\.(parameters|stands_in_for|secure(\..*)?)": "setting",
    r"metadata\.(why_mechanism|foreseen)": "plan",
    r"metadata\.data\.(cache|source|vocabulary_sha256|vocabulary_size)": "setting",
    r"statement|extrapolated": "log",
    r"statement\.(format|title|unit|adjacency|key_source|private|delta)": "setting",
    r"statement\.(labels|items)\.\*\.(name|meaning|number|title|text)": "log",
    r"statement\.checksums\..*": "log",  # of the facts, each on its own
    r"(statement\.)?(extrapolated\.)?(also_released\.\*\.)?(in_all\.)?(planned|realised)\."
    r"(what|strategy|rounds|min_separation|rounds_between|max_participations|sensitivity_squared|exact|noise_multiplier"
    r"|clip_inflation|zcdp|mu|epsilon|delta)": "log",
    r"(statement\.)?(extrapolated\.)?(also_released\.\*\.)?(planned|realised)\.clip_norm": "noised",
    r"(statement\.)?(extrapolated\.)?also_released\.\*\.what": "setting",
    r"(statement\.)?extrapolated\.report_goal": "setting",
    r"statement\.facts\.(delta|population|report_goal|cohort_rule|vocabulary_kind|vocabulary_description)": "setting",
    r"statement\.facts\.(released|looked_at\.\*|verify_command|public_data\.\*|key_source|unit|adjacency)": "setting",
    r"statement\.facts\.(aggregation|extrapolation(\..*)?|also_released\.\*\.what)": "setting",
    r"statement\.facts\.(also_released\.\*\.)?mechanism\.(strategy(\..*)?|clip_norm|noise_multiplier|clip_inflation)": (
        "setting"
    ),
    r"statement\.facts\.(also_released\.\*\.)?(planned|realised)(\.(rounds|min_separation|max_participations))?": "log",
    r"statement\.facts\.clip_norms\.\*\.\*": "noised",
    r"statement\.facts\.participations": "log",
    r"statement\.facts\.budget(\.(population|clients|runs|zcdp|zcdp_allowed|delta|settled))?": "log",
    r"statement\.facts\.budget\.(local_epsilon|local_epsilon_allowed)": "log",
    r"statement\.facts\.budget\.seal": "sealed",  # of plans and prices alone
    r"statement\.facts\.seal": "sealed",
}
FIELD = re.compile("|".join(f"(?:{pattern})" for pattern in PUBLISHABLE))
FILES = {"report.html", "report.md", "report.json", "record.json", "statement.json"}
DRAWN = {"privacy_spent.png", "clip_norm.png", "training_loss.png"}

Write = Callable[..., Path]
STATES: dict[str, Write] = {
    **{
        kind: lambda path, values=values, **more: write_run(path, **{**values, **more}) for kind, values in RUNS.items()
    },
    "adaptive": write_adaptive_run,
}


def leaves(value: Any, name: str = "") -> Iterator[str]:
    """The name of each value, `*` for a place in a list."""
    if isinstance(value, Mapping | list) and value:
        for key, inner in value.items() if isinstance(value, Mapping) else (("*", each) for each in value):
            yield from leaves(inner, f"{name}.{key}" if name else key)
    elif value not in ({}, []):
        yield name


def slipped_into(folder: Path) -> set[str]:
    """Files and fields of the `report` of a training that are not listed."""
    found = {file.name for file in folder.iterdir()} - FILES - DRAWN
    for name, prefix in (("report.json", ""), ("record.json", ""), ("statement.json", "statement.")):
        if (folder / name).exists():
            names = (f"{prefix}{leaf}" for leaf in leaves(json.loads((folder / name).read_text())))
            found |= {name for name in names if not FIELD.fullmatch(name)}
    return found


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure's file holds its data in full, and none of the time that drawing takes."""
    monkeypatch.setattr("tacit.reports.page.render", lambda figure, kind: repr(figure).encode())


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
        assert b"WORSE" not in file.read_bytes() and b"trigram" not in file.read_bytes()
