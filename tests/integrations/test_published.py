"""What a log is told: of a real training, nothing but what its published report has."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import tomli_w
from tests.support.training.tiny import tiny_cache, tiny_values

from tacit.compute import Hardware
from tacit.discovery.rounds import LAYERS
from tacit.errors import InputError
from tacit.integrations import LOGS, Logs, ProgressLog
from tacit.integrations.published import PUBLISHED, PublishedNumber, told
from tacit.jobs.train.job import TrainingResult, train
from tacit.progress import Advanced, Evaluated, Event, StageBegan, StageEnded, Warned, together
from tacit.recipe import Recipe
from tacit.training import loop, pretrain


@dataclass
class Kept(ProgressLog):
    """A log that keeps what it is told, in memory."""

    name = "kept"
    takes = "NAME"
    exact: bool = False
    told: list[tuple[PublishedNumber, float]] = field(default_factory=list)
    ends: list[bool] = field(default_factory=list)
    flushed: int = 0

    def __post_init__(self) -> None:
        ProgressLog.__init__(self, exact=self.exact)

    @classmethod
    def open(cls, place: str, *, exact: bool, run: str) -> "Kept":
        OPENED.append((place, run))
        if place == "broken":
            raise InputError("this log is broken.")
        return cls(exact=exact)

    def write(self, numbers: Sequence[PublishedNumber], when: float) -> None:
        self.told += [(each, when) for each in numbers]

    def flush(self) -> None:
        self.flushed += 1

    def close(self, *, failed: bool = False) -> None:
        self.ends.append(failed)
        CLOSED.append(failed)

    @property
    def names(self) -> set[str]:
        return {each.name for each, _ in self.told}


OPENED: list[tuple[str, str]] = []
CLOSED: list[bool] = []


Watched = tuple[TrainingResult, list[Event], Kept, Kept]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A private training with a released loss and a clip norm that follows, and what two logs heard of it."""
    folder = tmp_path_factory.mktemp("watched")
    clipping, privacy = (
        {"initial": 0.1, "bit_stddev": 4.0},
        {"noise_multiplier": 6.0, "mechanism": {"name": "tree", "restarts": [5]}},
    )
    values = tiny_values(tiny_cache(folder / "cache").path, clipping=clipping, training_loss={"stddev": 20.0})
    recipe = Recipe.from_toml(tomli_w.dumps({**values, "privacy": privacy}))
    events: list[Event] = []
    careful, everything = Kept(), Kept(exact=True)
    all_of_them = together(events.append, careful, everything)
    return (
        train(recipe, folder / "run", hardware=Hardware(workers=1), progress=all_of_them),
        events,
        careful,
        everything,
    )


def test_a_log_is_told_what_the_published_report_has_and_no_more(
    watched: Watched,
) -> None:
    result, _, careful, _ = watched
    assert careful.names == {f"training/{name}" for name in PUBLISHED["training"]}
    per_round = json.loads((result.run.path / "report" / "report.json").read_text(encoding="utf-8"))["per_round"]
    for name in ("clip_norm", "clip_estimate", "private_loss"):
        of_log = [each.value for each, _ in careful.told if each.name == f"training/{name}"]
        assert of_log == per_round[name]
    assert [each.step for each, _ in careful.told if each.name == "training/private_loss"] == list(range(1, 10))


def test_how_long_a_round_took_is_not_told(watched: Watched) -> None:
    _, _, careful, everything = watched
    assert len({when for _, when in careful.told}) == 1
    assert len({when for _, when in everything.told}) > 1


def test_exact_is_all_that_the_events_have(watched: Watched) -> None:
    _, events, careful, everything = watched
    said = {f"{each.stage}/{name}" for each in events if isinstance(each, Advanced) for name in each.figures}
    said |= {f"{each.split}/{name}" for each in events if isinstance(each, Evaluated) for name in each.metrics}
    assert everything.names == said
    exact = {"training/training_loss", "training/clipped", "training/clients_per_second", "validation/top1_accuracy"}
    assert exact | {"test/top1_accuracy"} <= everything.names - careful.names


def test_stages_are_those_that_jobs_name() -> None:
    assert set(PUBLISHED) == {loop.STAGE, pretrain.STAGE, LAYERS}


def test_a_stage_that_nobody_thought_of_publishes_nothing() -> None:
    event = Advanced("trial 3", 4, {"zcdp": 0.5, "loss": 2.0})
    assert not list(told(event, exact=False))
    assert list(told(event, exact=True)) == [
        PublishedNumber("trial 3/zcdp", 0.5, 4),
        PublishedNumber("trial 3/loss", 2.0, 4),
    ]


def test_names_are_such_as_servers_take_and_numbers_are_finite() -> None:
    event = Advanced("trial: 3 (β)", 1, {"zcdp": float("inf"), "loss": 2})
    assert list(told(event, exact=True)) == [PublishedNumber("trial_ 3 _β_/loss", 2.0, 1)]


@pytest.mark.parametrize("event", [StageBegan("training", 3), StageEnded("training"), Warned("w", "a warning")])
def test_other_events_say_no_number(event: Event) -> None:
    assert not list(told(event, exact=True))


# -- several, by their names -------------------------------------------------------------------------------------------


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOGS, "kept", Kept)
    OPENED.clear()
    CLOSED.clear()


@pytest.mark.usefixtures("kept")
def test_logs_are_opened_at_the_first_word_and_closed_at_the_end() -> None:
    with Logs(["kept:one", "kept:two"], run="mine") as logs:
        assert OPENED == []  # a job that is refused leaves nothing behind
        logs(StageBegan("training", 2))
        logs(StageEnded("training"))
        assert OPENED == [("one", "mine"), ("two", "mine")]
    assert CLOSED == [False, False]


@pytest.mark.usefixtures("kept")
def test_a_job_that_fails_closes_them_as_failed() -> None:
    with pytest.raises(InputError, match="broken"), Logs(["kept:one", "kept:broken"], run="mine") as logs:
        logs(StageBegan("training", 2))
    assert CLOSED == [True]


@pytest.mark.parametrize("line", ["tensorboard", "tensorboard:", "nobody:there", "", ":x", "mlflow"])
def test_a_line_that_names_no_log_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="tensorboard:FOLDER or mlflow:URI"):
        Logs([line], run="mine")


def test_exact_without_a_log_is_refused() -> None:
    with pytest.raises(InputError, match="--log-exact"):
        Logs([], exact=True, run="mine")


def test_no_logs_hear_everything_and_do_nothing(tmp_path: Path) -> None:
    with Logs([], run="mine") as logs:
        logs(StageBegan("training", 2))
    assert list(tmp_path.iterdir()) == []
