"""A run folder whose rounds real devices played: training, store and statement together, with kills between any two."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.server.killed_coordinator import Killed, KilledAt
from tests.support.server.fleet import Fleet
from tests.support.server.served import KEY
from tests.support.server.stores import quick_folder, sqlite_store
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.code_digest import build_digest
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import CacheError, InputError, RunError, StoreError
from tacit.protocol.bodies import ReportBody
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import RoundTask, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest
from tacit.protocol.train import TrainDocument
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.server.coordinator import announce
from tacit.server.log.logged_run import keep_logged, note_build, verify_log
from tacit.server.log.pinned_key import check_key
from tacit.server.log.transparency import TransparencyLog
from tacit.server.plans import plan_of
from tacit.server.store import round_states
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store
from tacit.server.train import _published

ONE = Hardware(workers=1)
PHONES = {"population": "phones", "devices": 40, "over_selection": 1.5}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """Of four rounds; the server's own cache has nobody to train."""
    cache: Cache = tiny_cache(tmp_path_factory.mktemp("ours") / "cache", {"validation": 5, "test": 6})
    return tiny_recipe(cache.path, deployment=PHONES, rounds={"rounds": 4})


def of_its_device(device: int, task: RoundTask) -> ReportBody:
    """What a device reports follows from its number and from the model that it was given."""
    generator = np.random.default_rng([device, int(task.content.sha256[:8], 16)])
    drawn = generator.standard_normal(task.question(TrainDocument).parameters)
    return ReportBody((0.1 * drawn / np.linalg.norm(drawn)).astype(np.float32), True, None, None)


def trained(
    asked: Recipe,
    out: Path,
    fleet: Fleet,
    store: Store | None = None,
    *,
    shown: Callable[[tuple[int, int]], None] = lambda each: None,
) -> None:
    """As a coordinator trains it, from the beginning or on. shown: told of each device its round, and the rounds that
    are on disk then.
    """

    def asked_now(device: int, task: RoundTask) -> ReportBody:
        with Run.open(out) as run:
            shown((task.round, run.steps_done))
        return of_its_device(device, task)

    fleet.reports = asked_now
    tacit.train(asked, out, collector=fleet.collector(store=store), hardware=ONE)


def test_a_run_of_served_rounds_says_what_happened_and_verifies(asked: Recipe, tmp_path: Path) -> None:
    shown: list[tuple[int, int]] = []
    with quick_folder() as folder:
        fleet = Fleet(folder)
        trained(asked, tmp_path / "run", fleet, shown=shown.append)
        assert shown and all(row == round for round, row in shown), "no device sees a model before its row is on disk"
        assert [(each.round, each.state) for each in fleet.attempts()] == [
            (at, round_states.RELEASED) for at in range(4)
        ]
        assigned = [each.assigned for each in fleet.attempts()]
        with Run.open(tmp_path / "run") as run:
            assert reconciled(run).counts().tolist() == assigned
            assert run.metadata.hooks == {"collector": "tacit.server.rounds.rounds:ServedRounds"}  # type: ignore[attr-defined]
        said = tacit.statement(tmp_path / "run").markdown()
        assert "by the server of this software (tacit.server.rounds.rounds:ServedRounds)" in said
        assert f"counts {sum(assigned)} participations of devices without identities" in said
        assert tacit.verify(tmp_path / "run").holds
        with pytest.raises(InputError, match="`tacit serve`"):
            tacit.train(asked, tmp_path / "run", hardware=ONE)


def kept_key(path: Path, secret: bytes) -> Path:
    """The file of an operator's key."""
    path.touch(mode=0o600)
    path.write_text(secret.hex())
    return path


def test_the_log_of_a_served_run_is_named_and_checked(asked: Recipe, tmp_path: Path) -> None:
    """Its statement says which entry it is; a log without it, or with another in its place, is found out."""
    out, file = tmp_path / "run", tmp_path / "operator.log"
    with quick_folder() as folder:
        fleet = Fleet(folder)
        fleet.reports = of_its_device
        tacit.train(asked, out, collector=fleet.collector(), hardware=ONE, until=1)
        assert "is in no transparency log" in tacit.statement(out).markdown()
        with pytest.raises(InputError, match="no run that was served"):
            verify_log(out, str(file))
        log = TransparencyLog(fleet.store, KEY, file)
        log.append(plan_entry("ab" * 32))
        with Run.open(out) as run:
            signed = KEY.plan(plan_of(run).to_json())
            proof = log.append(plan_entry(digest(signed.document)))
            keep_logged(run, signed, proof, KEY)
            note_build(run)
            note_build(run)
            with pytest.raises(InputError, match="put the file of that key back"):
                keep_logged(run, signed, proof, OperatorKey(bytes([1] * 32)))
        check_key(kept_key(tmp_path / "own.key", bytes(32)), fleet.store, [out, tmp_path / "none yet"])
        with quick_folder() as empty:  # the store is gone, and the run folder knows
            for lost in (tmp_path / "lost.key", kept_key(tmp_path / "other.key", bytes([1] * 32))):
                with pytest.raises(InputError, match=f"'{lost}'.* began with the operator's key {KEY.public[:16]}"):
                    check_key(lost, sqlite_store(empty), [out])
        assert not (tmp_path / "lost.key").exists()
        log.append(plan_entry("cd" * 32))
    said = tacit.statement(out).markdown()
    assert "entry 1 of the operator's transparency log" in said and proof.head.read(TreeHead).root in said
    assert "nothing attests it (attestation: none)" in said and "nothing attests what a device is" in said
    assert tacit.verify(out).holds
    assert [line.complaint for line in verify_log(out, str(file))] == [None] * 4
    first, own, last = file.read_text().splitlines()
    for entries, why in (
        ([first], "another, or older"),
        ([own, first, last], "are not those"),
        ([first, plan_entry("ef" * 32), last], "are not those"),
    ):
        file.write_text("".join(f"{each}\n" for each in entries))
        (line,) = [line for line in verify_log(out, str(file)) if not line.holds]
        assert line.name == "log.entries" and why in (line.complaint or "")
    file.write_text("what I need: milk")
    with pytest.raises(InputError, match="no log"):
        verify_log(out, str(file))
    file.write_text("".join(f"{each}\n" for each in (first, own, last)))
    with Run.open(out) as run:
        kept = run.notes["log"]
        assert run.notes["builds"] == [{"version": tacit.__version__, "sha256": build_digest()}]
        signed = kept["signed_plan"]
        run.note(
            "log", kept | {"signed_plan": signed | {"document": signed["document"].replace('"start"', '"finish"')}}
        )
    assert [line.holds for line in verify_log(out, str(file))][:3] == [False] * 3
    with Run.open(out) as run:
        later = signed["document"].replace('"kind":"train"', '"kind":"train","pace":1,"critical":["pace"]', 1)
        run.note("log", kept | {"signed_plan": signed | {"document": later}})
    (line,) = verify_log(out, str(file))
    assert "its key 'pace' is critical, and this version of tacit does not know it" in (line.complaint or "")


def test_a_run_has_the_plan_that_was_signed_first_whichever_build_goes_on(asked: Recipe, tmp_path: Path) -> None:
    out, blobs = tmp_path / "run", BlobStore.open("memory://")
    with quick_folder() as folder, quick_folder() as anew:
        fleet = Fleet(folder)
        fleet.reports = of_its_device
        tacit.train(asked, out, collector=fleet.collector(), hardware=ONE, until=1)
        shutil.copytree(out, tmp_path / "copy")
        for name in ("a", "b"):
            (anew / name).mkdir()
        stores = [sqlite_store(anew / "a"), sqlite_store(anew / "b")]
        logs = [TransparencyLog(each, KEY, tmp_path / f"{number}.log") for number, each in enumerate(stores)]
        with Run.open(out) as run:
            plan = plan_of(run)
            first = announce(run, plan, stores[0], blobs, KEY, logs[0])
            mended = plan.model_copy(update={"code": "cd" * 32})
            assert announce(run, mended, stores[0], blobs, KEY, logs[0]) == first
            assert announce(run, mended, stores[1], blobs, KEY, logs[1]) == first  # the store was lost
            for name, value in (("enrolment", "tokens"), ("vocabulary", "cd" * 32)):
                with pytest.raises(InputError, match=r"run' has another plan .* give this run another name"):
                    announce(run, plan.model_copy(update={name: value}), stores[0], blobs, KEY, logs[0])
            entries = (tmp_path / "0.log").read_text().splitlines()
            assert entries == [plan_entry(digest(first.document))]
        later = plan.to_json()[:-1] + ', "pace": 1}'  # a later build entered it, and was killed before it noted it
        store = sqlite_store(anew)
        said = {"population": plan.population, "kind": plan.kind, "plan": KEY.plan(later).to_json()}
        round_states.enter_run(store, plan.run, **said, plan_digest=digest(later))
        with Run.open(tmp_path / "copy") as run:
            log = TransparencyLog(store, KEY, tmp_path / "2.log")
            assert announce(run, plan, store, blobs, KEY, log).document == later
            assert run.notes["log"]["signed_plan"]["document"] == later
            with pytest.raises(StoreError, match="with another plan"):
                announce(run, plan, stores[0], blobs, KEY, logs[0])


@pytest.mark.parametrize(
    ("step", "after"),
    [
        *[(3, True), (8, False), (13, False), (21, True)],
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in [(3, False), (8, True), (13, True), (21, False)]),
    ],
)
def test_a_coordinator_killed_at_a_transaction_releases_each_round_once(
    asked: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, after: bool
) -> None:
    with quick_folder() as folder:
        fleet = Fleet(folder)
        with monkeypatch.context() as patch:
            killed = KilledAt(fleet, step, after=after, patch=patch)
            with pytest.raises(Killed):
                trained(asked, tmp_path / "run", fleet, killed.store)
        bound = {each.task: each.total_digest for each in fleet.attempts() if each.total_digest}
        with Run.open(tmp_path / "run") as run:
            rows = [(row.digest, row.releases) for row in run.steps()]
        trained(asked, tmp_path / "run", fleet)
        summed = [each for each in fleet.attempts() if each.total_digest]
        assert [(each.round, each.state) for each in summed] == [(at, round_states.RELEASED) for at in range(4)]
        assert all(each.total_digest == bound.get(each.task, each.total_digest) for each in summed)
        with Run.open(tmp_path / "run") as run:
            assert [(row.digest, row.releases) for row in run.steps()][: len(rows)] == rows
            reports = [each["reports"] for row in run.steps() for each in row.releases]
        assert reports == [each.reports for each in summed] == [6] * 4, "none below its goal"
        assert tacit.verify(tmp_path / "run").holds


def test_a_folder_restored_from_an_older_copy_releases_nothing_again(asked: Recipe, tmp_path: Path) -> None:
    """The same noise on another sum would be taken away by subtracting."""
    with quick_folder() as folder:
        fleet = Fleet(folder)
        fleet.reports = of_its_device
        tacit.train(asked, tmp_path / "run", collector=fleet.collector(), hardware=ONE, until=2)
        shutil.copytree(tmp_path / "run", tmp_path / "older")
        tacit.train(asked, tmp_path / "run", collector=fleet.collector(), hardware=ONE, until=3)
        with pytest.raises(RunError, match="restored from an older copy"):
            trained(asked, tmp_path / "older", fleet)
        with Run.open(tmp_path / "older") as run:
            assert run.steps_done == 2


@pytest.mark.long
def test_a_cache_that_moved_is_asked_for_and_no_other_is_taken(tmp_path: Path) -> None:
    place, elsewhere, out = tmp_path / "cache", tmp_path / "moved", tmp_path / "run"
    tiny_cache(place, {"validation": 5, "test": 6})
    recipe = tiny_recipe(place, deployment=PHONES, rounds={"rounds": 4})
    with quick_folder() as folder:
        fleet = Fleet(folder)
        fleet.reports = of_its_device
        tacit.train(recipe, out, collector=fleet.collector(), hardware=ONE, until=1)
        place.rename(elsewhere)
        with pytest.raises(CacheError, match="cache"):
            tacit.train(recipe, out, collector=fleet.collector(), hardware=ONE)
        moved = recipe.model_copy(update={"data": recipe.data.model_copy(update={"cache": elsewhere})})
        with pytest.raises(RunError, match=r"begun with another recipe \(data\.cache is"):
            tacit.train(moved, out, collector=fleet.collector(), hardware=ONE)
        tiny_cache(place, {"validation": 5, "test": 7})
        with pytest.raises(RunError, match="cache"):
            tacit.train(recipe, out, collector=fleet.collector(), hardware=ONE)
        shutil.rmtree(place)
        place.symlink_to(elsewhere)
        tacit.train(recipe, out, collector=fleet.collector(), hardware=ONE, until=2)
        assert [each.round for each in fleet.attempts() if each.state == round_states.RELEASED] == [0, 1]


def test_a_plan_says_no_place_of_the_server(asked: Recipe, tmp_path: Path) -> None:
    """Devices read the recipe in it: caches, budgets and first models have names, and lie where they lie."""
    with quick_folder() as folder:
        fleet = Fleet(folder)
        fleet.reports = of_its_device
        tacit.train(asked, tmp_path / "run", collector=fleet.collector(), hardware=ONE, until=1)
    with Run.open(tmp_path / "run") as run:
        assert str(tmp_path.parent) in run.settings and str(tmp_path.parent) not in plan_of(run).recipe
    placed = asked.model_copy(
        update={
            "model": asked.model.model_copy(update={"init": Path("/secret/start")}),
            "privacy": asked.privacy.model_copy(update={"population": Path("/secret/people")}),
        }
    )
    text = _published(placed).to_toml()
    assert "/secret" not in text and "start" in text and "people" in text
