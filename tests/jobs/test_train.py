"""From recipe to run folder: interrupted anywhere and resumed, a run ends as if nothing had happened."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import pytest
from tests.support.training.tiny import MECHANISMS, cores, tiny_cache, tiny_recipe, what_happened

from tacit.compute import Hardware
from tacit.compute.profile import PHASES
from tacit.data import Cache
from tacit.errors import CacheError, InputError, ParticipationError, RunError, TacitError, TrainingError
from tacit.jobs.account.job import strategy_from_file
from tacit.jobs.train import refusals as training_refusals
from tacit.jobs.train import release
from tacit.jobs.train.run import begin, carry_on
from tacit.privacy import Blt
from tacit.privacy.measured_participation import realised_participation
from tacit.progress import Advanced, Evaluated, Event, Warned
from tacit.recipe import Recipe
from tacit.reports.blocks import Table
from tacit.reports.summary_lines import of_profile
from tacit.reports.train import write_report
from tacit.runs import Run, TrainingMetadata
from tacit.statements.accounts import accounts_of, matrix_of, planned_in_all, run_figures
from tacit.statements.ledger import ledger_record
from tacit.statements.run_facts import statement_of
from tacit.statements.verify import verify
from tacit.training import loop, states

ONE = Hardware(workers=1)
# One of each way to keep noise: none, a tree's nodes, buffers, drawn again, a matrix. That every mechanism goes on from
# what was saved of it is the contract of its stream (tests/contracts/test_noise_streams.py).
UNLIKE = {"none", "tree", "blt", "banded-inverse", "banded"}
every_mechanism = pytest.mark.parametrize(
    "mechanism", [pytest.param(name, marks=() if name in UNLIKE else pytest.mark.nightly) for name in MECHANISMS]
)


class Heard:
    """Remembers what was said."""

    def __init__(self) -> None:
        self.rounds: list[int] = []
        self.evaluations: list[tuple[int, str]] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Advanced):
            self.rounds.append(event.done - 1)
        elif isinstance(event, Evaluated):
            self.evaluations.append((event.rounds, event.split))


@pytest.fixture(scope="module", autouse=True)
def every_third_state_is_whole() -> Iterator[None]:
    """So that nine rounds have states of both kinds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states, "EVERY", 3)
        yield


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def uninterrupted(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    @lru_cache
    def of(mechanism: str) -> dict[str, Any]:
        path = tmp_path_factory.mktemp("whole") / "run"
        with begin(recipe(cache, mechanism), path) as run:
            carry_on(run, hardware=ONE)
        return what_happened(path)

    return of


def recipe(cache: Cache, mechanism: str = "blt", **sections: Any) -> Recipe:
    return tiny_recipe(cache.path, privacy=MECHANISMS[mechanism], **sections)


def go_on(path: Path, until: int | None = None, hardware: Hardware = ONE) -> Heard:
    """A new process would open the folder just so."""
    heard = Heard()
    with Run.open(path) as run:
        carry_on(run, hardware=hardware, progress=heard, until=until)
    return heard


def test_a_run_leaves_what_it_promised(cache: Cache, tmp_path: Path) -> None:
    with begin(recipe(cache), tmp_path / "run") as run:
        assert {(metric.step, metric.split) for metric in run.metrics()} == {(0, "validation")}
        heard = Heard()
        carry_on(run, hardware=ONE, progress=heard)
        assert heard.rounds == list(range(9))
        assert heard.evaluations == [
            *((rounds, "validation") for rounds in (0, 4, 8, 9)),
            (9, "test"),
        ]
        assert run.steps_done == 9 and run.finished is True
        rounds, clients = run.participations()
        happened = realised_participation(9, rounds, clients)
        assert happened.min_separation >= 3 and happened.max_participations <= 3
        assert set(clients) <= set(cache.clients("train"))
        assert {metric.name for metric in run.metrics()} >= {"top1_accuracy", "cross_entropy", "oov_rate"}
        assert Recipe.from_toml(run.settings) == recipe(cache).with_delta(1e-5)  # the delta of 40 clients
        assert run.metadata.key_source == "fixed seed 3"
        with pytest.raises(RunError, match="noise key destroyed"):
            _ = run.noise_key
    files = {file.name for file in (tmp_path / "run" / "model").iterdir()}
    assert files == {"model.safetensors", "settings.json", "vocabulary.json"}
    assert list((tmp_path / "run" / "steps").iterdir()) == [], "noise buffers must not outlive the run"


def test_training_learns(cache: Cache, tmp_path: Path) -> None:
    """Nine of ten words follow from the one before: after some rounds the loss has clearly fallen."""
    long = recipe(cache, "none", rounds={"rounds": 60, "report_goal": 10}, evaluation={"every": 60})
    begin(long, tmp_path / "run").close()
    go_on(tmp_path / "run")
    metrics = what_happened(tmp_path / "run")["metrics"]
    nats = {round: value for round, split, name, value in metrics if (split, name) == ("validation", "cross_entropy")}
    assert nats[60] < nats[0] - 0.3


@every_mechanism
@pytest.mark.parametrize(
    "stops",
    [[0, 1, 2, 3, 4, 5, 9], *(pytest.param(stops, marks=pytest.mark.nightly) for stops in ([0, 1], [4], [2, 5, 9]))],
    ids=str,
)
def test_an_interrupted_run_ends_as_an_uninterrupted_one(
    cache: Cache,
    tmp_path: Path,
    uninterrupted: Callable[[str], dict[str, Any]],
    mechanism: str,
    stops: list[int],
) -> None:
    begin(recipe(cache, mechanism), tmp_path / "run").close()
    for stop in stops:
        go_on(tmp_path / "run", until=stop)
        with Run.open(tmp_path / "run") as run:
            assert run.steps_done == stop
    go_on(tmp_path / "run")
    assert what_happened(tmp_path / "run") == uninterrupted(mechanism)


@pytest.mark.parametrize(  # Nesterov's state is one tree, Adam's two and a count; that of the others is such a one
    "method",
    ["nesterov", "adam", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("sgd", "yogi", "adagrad"))],
)
def test_other_server_optimizers_are_carried_over_too(cache: Cache, tmp_path: Path, method: str) -> None:
    chosen = recipe(cache, "tree", server={"method": method, "learning_rate": 0.1})
    for name, stops in (("whole", [None]), ("parts", [3, 6, None])):
        begin(chosen, tmp_path / name).close()
        for stop in stops:
            go_on(tmp_path / name, until=stop)
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")


def test_the_number_of_workers_is_no_part_of_the_result(
    cache: Cache, tmp_path: Path, uninterrupted: Callable[[str], dict[str, Any]]
) -> None:
    begin(recipe(cache), tmp_path / "run").close()
    go_on(tmp_path / "run", until=3, hardware=Hardware(workers=2))
    go_on(tmp_path / "run", hardware=ONE)
    assert what_happened(tmp_path / "run") == uninterrupted("blt")


def test_other_seeds_and_fresh_keys_give_other_runs(
    cache: Cache, tmp_path: Path, uninterrupted: Callable[[str], dict[str, Any]]
) -> None:
    seen = {uninterrupted("blt")["rounds"][-1][2]}
    for name, seed in (("other", 4), ("fresh", None), ("fresh again", None)):
        chosen = recipe(cache)
        chosen = chosen.model_copy(update={"run": chosen.run.model_copy(update={"seed": seed})})
        begin(chosen, tmp_path / name).close()
        go_on(tmp_path / name)
        seen.add(what_happened(tmp_path / name)["rounds"][-1][2])
    assert len(seen) == 4
    with Run.open(tmp_path / "fresh") as run:
        assert run.metadata.key_source == "operating system"


# -- stopped where it hurts --------------------------------------------------------------------------------------------


class Killed(BaseException):
    """As sudden as a signal, for one process."""


@pytest.mark.parametrize("step", ["record_evaluation", "write_model", "tidy"])
def test_stopped_in_the_finishing_steps(
    cache: Cache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uninterrupted: Callable[[str], dict[str, Any]],
    step: str,
) -> None:
    begin(recipe(cache), tmp_path / "run").close()
    with monkeypatch.context() as patch:
        owner = Run if step == "tidy" else release
        real = getattr(owner, step)

        def stop(*arguments: Any) -> None:
            if step != "record_evaluation" or "test" in arguments:
                raise Killed
            real(*arguments)

        patch.setattr(owner, step, stop)
        with pytest.raises(Killed):
            go_on(tmp_path / "run")
    go_on(tmp_path / "run")
    assert what_happened(tmp_path / "run") == uninterrupted("blt")
    assert not (tmp_path / "run" / "noise.key").exists()
    assert list((tmp_path / "run" / "steps").iterdir()) == []


@pytest.mark.parametrize("rounds", [4, 8, 9])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_look_that_a_kill_cut_short_is_taken_again(
    cache: Cache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uninterrupted: Callable[[str], dict[str, Any]],
    rounds: int,
    when: str,
) -> None:
    """Models are measured beside the rounds that follow: a kill may come when those are done and the look is not."""
    begin(recipe(cache), tmp_path / "run").close()
    with monkeypatch.context() as patch:
        real = loop.record_evaluation

        def stop(run: Run, at: int, *rest: Any) -> None:
            if when == "after":
                real(run, at, *rest)
            if at == rounds:
                raise Killed
            real(run, at, *rest)

        patch.setattr(loop, "record_evaluation", stop)
        with pytest.raises(Killed):
            go_on(tmp_path / "run")
        with Run.open(tmp_path / "run") as run:
            assert run.steps_done >= rounds
            measured = {metric.step for metric in run.metrics()}
            assert (rounds in measured) == (when == "after")
    heard = go_on(tmp_path / "run")
    assert ((rounds, "validation") in heard.evaluations) == (when == "before")
    assert what_happened(tmp_path / "run") == uninterrupted("blt")


def test_a_profile_says_where_the_time_went_and_changes_no_bit(
    cache: Cache, tmp_path: Path, uninterrupted: Callable[[str], dict[str, Any]]
) -> None:
    with begin(recipe(cache), tmp_path / "run") as run:
        carry_on(run, hardware=ONE, until=4)
        carry_on(run, hardware=Hardware(workers=2))
        counted = run.notes["profile"]
    assert what_happened(tmp_path / "run") == uninterrupted("blt")
    assert [spent["workers"]["count"] for spent in counted] == [1, 2]
    for spent in counted:
        assert sum(spent["phases"].values()) == pytest.approx(spent["seconds"])
        assert spent["phases"]["training"] > 0 and spent["disk"]["writing"] > 0
        workers = spent["workers"]
        assert workers["reading"] > 0 and workers["training"] > 0 and workers["evaluating"] > 0
        assert sum(workers.values()) - workers["count"] == pytest.approx(spent["seconds"] * workers["count"])


def test_a_profile_says_nothing_of_the_workers_of_a_cluster(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they did was not counted, and the cores here are not who trained."""
    monkeypatch.setattr("tacit.training.workers_ray.open_cluster", lambda *_, **__: nullcontext(cores()))
    with begin(recipe(cache), tmp_path / "run") as run:
        carry_on(run, hardware=ONE, until=1, cluster="auto")
        (counted,) = run.notes["profile"]
    assert "workers" not in counted and counted["phases"]["training"] > 0
    (_, table) = of_profile(counted, PHASES)
    assert isinstance(table, Table)
    rows = [row[0] for row in table.rows]
    assert "training" in rows and "disk writing" in rows and not any("workers" in str(row) for row in rows)


def test_what_a_killed_process_left_half_written_is_no_part_of_the_model(
    cache: Cache, uninterrupted: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    with begin(recipe(cache, "none"), tmp_path / "run") as run:
        (run.path / "model" / ".model.safetensors.4711.draft").write_bytes(b"half")
        (run.path / "steps" / ".round-000003.safetensors.4711.draft").write_bytes(b"half")
    go_on(tmp_path / "run")
    assert what_happened(tmp_path / "run") == uninterrupted("none")


def test_a_designed_mechanism_is_designed_once(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tiny_recipe(cache.path, privacy={"mechanism": {"name": "blt", "buffers": 2}, "zcdp": 3.0})
    begin(asked, tmp_path / "run").close()
    monkeypatch.setattr("tacit.design.blt.design_blt", None)  # designing again would fail
    go_on(tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        kept = Recipe.from_toml(run.settings).privacy
        strategy = kept.strategy(asked.rounds.participation())
        assert not kept.needs_design and isinstance(strategy, Blt) and len(strategy.theta) == 2
        assert run.steps()[0].releases[0]["strategy_record"] == strategy.to_record()
        assert planned_in_all(run).zcdp == pytest.approx(3.0)


@pytest.mark.parametrize("mechanism", ["banded", "tree-full", "dense"])
def test_a_matrix_is_designed_and_kept_once(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    asked = matrix_recipe(cache, mechanism)
    matrix = asked.matrix()
    assert matrix is not None
    begin(asked, tmp_path / "run").close()
    for name in ("banded.design_banded", "dense.design_dense", "dense.full_tree"):
        monkeypatch.setattr(f"tacit.design.{name}", None)  # designing again would fail
    go_on(tmp_path / "run", until=5)
    with Run.open(tmp_path / "run") as run:
        assert accounts_of(run).realised is not None, "of a prefix"
    go_on(tmp_path / "run")
    values = str(matrix.to_record()["values"])
    with Run.open(tmp_path / "run") as run:
        assert matrix_of(run) == matrix == strategy_from_file(run.path / "strategy.json")
        assert Recipe.from_toml(run.settings) == asked.with_delta(1e-5)
        assert all(row.releases[0]["strategy_record"] == ledger_record(matrix) for row in run.steps())
        assert planned_in_all(run).zcdp == pytest.approx(3.0)
        figures, statement = run_figures(run, accounts_of(run)), statement_of(run)
        report = write_report(run)
    assert values not in json.dumps(figures) and figures["strategy"] == ledger_record(matrix)
    written = (report.json.parent / "statement.json").read_text()
    assert written == statement.to_json() and written.count(values) == 1
    assert all(line.holds for line in verify(json.loads(written)))
    kept = sorted(tmp_path.glob("run/**/*"))
    with_values = {each.name for each in kept if each.is_file() and values.encode() in each.read_bytes()}
    assert with_values == {"strategy.json", "statement.json", "report.json", "record.json"}


@pytest.mark.parametrize("damage", ["lost", "another", "cut"])
def test_a_run_without_its_matrix_is_refused(cache: Cache, tmp_path: Path, damage: str) -> None:
    begin(matrix_recipe(cache, "banded"), tmp_path / "run").close()
    file, other = tmp_path / "run" / "strategy.json", matrix_recipe(cache, "tree-full").matrix()
    assert other is not None
    match damage:
        case "lost":
            file.unlink()
        case "another":
            file.write_text(json.dumps(other.to_record()))
        case "cut":
            file.write_text(file.read_text()[:-20])
    with pytest.raises(TacitError, match=r"strategy\.json' is (damaged|not the strategy that).*restore") as refused:
        go_on(tmp_path / "run")
    assert "\n" not in str(refused.value)


def matrix_recipe(cache: Cache, mechanism: str) -> Recipe:
    privacy = {"mechanism": {"name": mechanism, **({"bands": 2} if mechanism == "banded" else {})}, "zcdp": 3.0}
    rounds = {"max_participations": 1} if mechanism == "dense" else {}
    return tiny_recipe(
        cache.path, privacy=privacy, rounds={"rounds": 6, "report_goal": 5, "min_separation": 3, **rounds}
    )


@pytest.mark.parametrize("delta", [None, 1e-4])
def test_an_epsilon_without_a_mechanism_is_kept_and_explained(
    cache: Cache, tmp_path: Path, delta: float | None
) -> None:
    """The run's settings name the mechanism that was chosen, its report says why, and its account what was asked."""
    privacy = {"epsilon": 8.0, "clip_norm": 0.5} | ({} if delta is None else {"delta": delta})
    asked = tiny_recipe(cache.path, privacy=privacy)
    assert asked.privacy.mechanism_name == "best"
    path = tmp_path / "run"
    with begin(asked, path) as run:
        carry_on(run, hardware=ONE, until=2)
    with Run.open(path) as run:
        settings = Recipe.from_toml(run.settings)
        assert settings.privacy.mechanism_name == "banded" and settings.privacy.epsilon == 8.0
        why = asked.why_mechanism()
        assert why is not None and run.settings.startswith(f"# {why}\n")
        at = run.metadata.delta if isinstance(run.metadata, TrainingMetadata) else 0.0
        assert at == (delta or 1e-5)
        assert 8 * (1 - 1e-6) <= planned_in_all(run).epsilon(at) <= 8
        carry_on(run, hardware=ONE)
        shown = write_report(run).html.read_text()
        assert "banded was chosen: its max error over" in shown
        assert accounts_of(run).realised is not None
    with begin(asked, path) as again:
        assert again.finished


def test_a_finished_run_is_left_alone(cache: Cache, tmp_path: Path) -> None:
    begin(recipe(cache), tmp_path / "run").close()
    go_on(tmp_path / "run")
    before = what_happened(tmp_path / "run")
    heard = go_on(tmp_path / "run")
    assert heard.rounds == [] and heard.evaluations == []
    assert what_happened(tmp_path / "run") == before


def test_a_diverged_run_keeps_the_rounds_before(cache: Cache, tmp_path: Path) -> None:
    """A step so long that the second round overflows for everybody; the first was computed and stays."""
    wild = recipe(cache, "none", server={"learning_rate": 1e38})
    begin(wild, tmp_path / "run").close()
    for _ in range(2):  # and again, when it is resumed
        with pytest.raises(TrainingError, match="round 1: none of 6 clients' updates was finite"):
            go_on(tmp_path / "run")
        with Run.open(tmp_path / "run") as run:
            assert run.steps_done == 1
            assert run.last_file is not None and run.last_file.exists()
            assert len(run.noise_key) == 16


def test_a_run_whose_last_step_diverges_says_so(cache: Cache, tmp_path: Path) -> None:
    wild = recipe(cache, "none", server={"learning_rate": 1e38}, rounds={"rounds": 1})
    begin(wild, tmp_path / "run").close()
    with pytest.raises(TrainingError, match="after 1 rounds the model's validation metrics are no numbers"):
        go_on(tmp_path / "run")


def test_two_trainers_on_one_folder(cache: Cache, tmp_path: Path) -> None:
    with begin(recipe(cache), tmp_path / "run") as run, run.locked():
        with pytest.raises(RunError, match="is being worked on by process"):
            go_on(tmp_path / "run")
        assert run.steps_done == 0


# -- what is refused -------------------------------------------------------------------------------------------------


def test_a_lost_or_changed_cache_is_refused(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache")
    begin(recipe(cache), tmp_path / "run").close()
    go_on(tmp_path / "run", until=2)
    shutil.move(tmp_path / "cache", tmp_path / "aside")
    with pytest.raises(CacheError, match="there is no cache at"):
        go_on(tmp_path / "run")
    tiny_cache(tmp_path / "cache", {"train": 39, "validation": 6, "test": 6})
    with pytest.raises(RunError, match=r"is not the one that .* began with"):
        go_on(tmp_path / "run")
    shutil.rmtree(tmp_path / "cache")
    shutil.move(tmp_path / "aside", tmp_path / "cache")
    go_on(tmp_path / "run")
    assert what_happened(tmp_path / "run")["finished"]


def test_equal_words_in_other_splits_are_another_cache(tmp_path: Path) -> None:
    """The ids alone do not say who is trained on."""
    one = tiny_cache(tmp_path / "a", {"train": 5, "validation": 3, "test": 2})
    two = tiny_cache(tmp_path / "b", {"train": 6, "validation": 2, "test": 2})
    assert (tmp_path / "a" / "ids").read_bytes() == (tmp_path / "b" / "ids").read_bytes()
    assert one.manifest.digest != two.manifest.digest


def test_a_run_stays_in_the_precision_it_began_in(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(recipe(cache, client={"precision": "bfloat16"}), tmp_path / "run").close()
    monkeypatch.setattr(training_refusals, "precision_of", lambda *_: "bfloat16")  # a processor with units
    go_on(tmp_path / "run", until=1)
    monkeypatch.setattr(training_refusals, "precision_of", lambda *_: "float32")
    with pytest.raises(RunError, match="began in bfloat16 and this processor computes it in float32"):
        go_on(tmp_path / "run")


def test_an_edited_recipe_is_refused_with_the_difference(cache: Cache, tmp_path: Path) -> None:
    begin(recipe(cache), tmp_path / "run").close()
    go_on(tmp_path / "run", until=2)
    path = tmp_path / "run" / "settings.toml"
    text = path.read_text()
    path.write_text(text.replace("momentum = 0.9", "momentum = 0.5").replace("seed = 3", ""))
    with pytest.raises(RunError) as refused:
        go_on(tmp_path / "run")
    said = str(refused.value)
    assert "is now 'momentum = 0.5')" in said and "\n" not in said
    path.write_text(text)
    go_on(tmp_path / "run", until=3)
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == 3


def test_another_recipe_for_an_existing_run_is_refused_with_the_difference(cache: Cache, tmp_path: Path) -> None:
    asked = tiny_recipe(cache.path, privacy={"mechanism": {"name": "blt", "buffers": 2}, "zcdp": 3.0})
    begin(asked, tmp_path / "run").close()
    three = {"mechanism": {"name": "blt", "buffers": 3}, "zcdp": 3.0}
    other = tiny_recipe(cache.path, privacy=three, client={"words": 5})
    with pytest.raises(RunError) as refused:
        begin(other, tmp_path / "run")
    assert "another recipe (client.words is 5, not 6; privacy.mechanism.buffers is 3, not 2); choose" in str(
        refused.value
    )
    with begin(asked, tmp_path / "run") as same:
        assert same.steps_done == 0, "the same is gone on with"


@pytest.mark.parametrize(("split", "left"), [("train", 6), ("validation", 43), ("test", 43)])
def test_a_population_without_clients_of_a_split_is_refused_before_training(
    tmp_path: Path, split: str, left: int
) -> None:
    cache = tiny_cache(tmp_path / "cache", {"train": 40, "validation": 3, "test": 3, split: 0})
    with pytest.raises(InputError, match=f"has {left} clients and none of them is in the {split} split"):
        begin(recipe(cache), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("rounds", [{"report_goal": 41}, {"report_goal": 20, "min_separation": 5}])
def test_a_population_too_small_is_refused_before_anything_is_written(
    cache: Cache, tmp_path: Path, rounds: dict[str, int]
) -> None:
    with pytest.raises(ParticipationError):
        begin(recipe(cache, rounds=rounds), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_more_workers_than_devices_are_refused(cache: Cache, tmp_path: Path) -> None:
    begin(recipe(cache), tmp_path / "run").close()
    with pytest.raises(InputError, match="workers=3 is more than the 2 devices of this process"):
        go_on(tmp_path / "run", hardware=Hardware(workers=3))
    with pytest.raises(InputError, match="workers=-1"):
        Hardware(workers=-1)


def test_a_process_that_has_computed_keeps_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    before = jax.local_devices()
    Hardware(workers=5).apply()
    assert jax.local_devices() == before


def test_cores_that_a_training_leaves_idle_are_told_of(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook that has computed with JAX already."""

    def warned(name: str, workers: int = 0) -> list[str]:
        seen: list[Event] = []
        with begin(recipe(cache), tmp_path / name) as run:
            carry_on(run, hardware=Hardware(workers=workers), progress=seen.append, until=1)
        return [each.message for each in seen if isinstance(each, Warned) and each.code == "idle-cores"]

    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert warned("whoever set JAX's own variable chose") == []
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES")
    (said,) = warned("nobody chose")
    assert "2 of 64 cores" in said and "Hardware().apply()" in said
    assert warned("chosen", workers=2) == []
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert warned("all of them") == []
