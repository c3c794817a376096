"""Words are found by real devices as by simulated ones: the same sums, whoever is killed, and no made-up report."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import REPOSITORY
from tests.server.killed_coordinator import Killed, KilledAt
from tests.support.server.sealing import decryptors_in
from tests.support.server.stores import KEY, quick_folder
from tests.support.server.words import EXACTLY, KNOWN, WordsFleet, stream, words_toml
from tests.support.training.tiny import tiny_cache

import tacit
from tacit.data import Cache
from tacit.device.policy import Policy
from tacit.discovery.collect import DiscoverQuestion, UserGroups, UsersOneByOne
from tacit.errors import InputError, ParticipationError
from tacit.jobs.discover.job import metadata_of
from tacit.progress import silent
from tacit.protocol.bodies import ReportBody, report_body
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.signing import digest
from tacit.randomizers import device_generator
from tacit.records import json_ready
from tacit.runs import Run
from tacit.server.discover import ServedWords
from tacit.server.jobs import job_of
from tacit.server.log.logged_run import keep_logged
from tacit.server.log.transparency import TransparencyLog
from tacit.server.plans import plan_of
from tacit.server.store import round_states
from tacit.statements import DiscoveryFacts
from tacit.statements.local_releases import digest_of_outputs
from tacit.statements.statement import statement


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("devices") / "cache", {"train": 40})


@pytest.fixture
def fleet(cache: Cache) -> Iterator[WordsFleet]:
    with quick_folder() as folder:
        yield WordsFleet(folder, cache)


class Streamed(UsersOneByOne):
    """Every user makes its reports, of bytes that a test knows."""

    def _randomness(self, task: DiscoverQuestion) -> np.random.Generator:
        return device_generator(stream(f"group {task.round}"))


def steps_of(run: Path) -> list[tuple[Any, Any]]:
    """(what was released, what was output) of each step."""
    with Run.open(run) as opened:
        return [(step.releases, json.loads((run / "steps" / step.file).read_text())) for step in opened.steps()]


def test_devices_find_what_a_simulation_of_them_finds(cache: Cache, fleet: WordsFleet, tmp_path: Path) -> None:
    """Sum by sum: the same clients in the same groups, drawing the same bytes, one device after another."""
    text = words_toml(tmp_path / "files", counting_users=8, reports={"local_epsilon": 3.0, "contributions": 2})
    job = job_of(text, where="words.toml")
    assert isinstance(job, ServedWords)
    simulated = tacit.discover(cache, KNOWN, tmp_path / "simulated", job.settings, collector=Streamed)
    assignment = metadata_of(simulated.run).assignment
    assert assignment is not None
    groups = UserGroups(clients=cache.manifest.clients, assignment=assignment)
    shared = {group: stream(f"group {group}") for group in range(5)}
    fleet.order = lambda round: np.flatnonzero(groups.group(8 * round, 8)).tolist()
    fleet.draws = lambda round, client: shared[round]
    fleet.discovers(text, tmp_path / "run")
    assert steps_of(tmp_path / "run") == steps_of(tmp_path / "simulated") and len(steps_of(tmp_path / "run")) == 5
    with Run.open(tmp_path / "run") as run:
        assert run.finished
    assert (tmp_path / "run" / "words.csv").read_bytes() == (tmp_path / "simulated" / "words.csv").read_bytes()
    assert [each.state for each in fleet.attempts()] == [round_states.RELEASED] * 5
    assert fleet.blobs.names("") == []
    came = [client for clients in fleet.came.values() for client in clients]
    assert len(came) == len(set(came)) == 40, "no device answers twice"


def test_a_run_says_what_is_promised_to_devices_and_verifies(fleet: WordsFleet, tmp_path: Path) -> None:
    fleet.discovers(words_toml(tmp_path / "files"), tmp_path / "run")
    said = tacit.statement(tmp_path / "run").markdown()
    for sentence in (
        "words typed on 32 devices of a population of about 40, which have no identities",
        "sees to that by its own record",
        "by the server of this software (tacit.server.rounds.rounds.ServedRounds)",
        "Local, for everything a user answered (one answer): epsilon = 2",
        "those who see only shuffled or summed reports",
        "counts, and the anonymity below, hold as far as devices report honestly",
    ):
        assert sentence in said, sentence
    assert tacit.verify(tmp_path / "run").holds
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    assert record["simulation"] is None and record["users"] == 32
    assert not (tmp_path / "run" / "simulation").exists() and tacit.report(tmp_path / "run").html.exists()
    with pytest.raises(InputError, match="`tacit serve`"):
        tacit.resume(tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        assert metadata_of(run).assignment is None


def test_a_stranger_holds_the_report_against_the_log_and_against_the_plan_that_a_device_had(
    fleet: WordsFleet, tmp_path: Path
) -> None:
    """From the published folder alone: other settings than the plan's, and another plan than the log's, are found."""
    text, out, file = words_toml(tmp_path / "files", counting_users=8), tmp_path / "run", tmp_path / "operator.log"
    job = job_of(text, where="words.toml")
    assert isinstance(job, ServedWords)
    log = TransparencyLog(fleet.store, KEY, file)
    collector = job.collector(fleet.store, fleet.blobs, KEY, times=EXACTLY, decryptors=[], wait=fleet.wait)
    with job.begun(out, collector, silent) as run:
        signed = KEY.plan(plan_of(run).to_json())
        keep_logged(run, signed, log.append(plan_entry(digest(signed.document))), KEY)
    fleet.discovers(text, out)
    report = Path(shutil.copytree(out / "report", tmp_path / "published"))
    plan = digest(signed.document)  # what `tacit device --show` says
    assert tacit.verify(report, plan=plan).holds
    assert [line.holds for line in tacit.verify_log(report, file)] == [True] * 3
    assert [line.name for line in tacit.verify(report, plan="0" * 64).failed] == ["list.device"]

    record = json.loads((report / "record.json").read_text())
    logged = record["released"]["logged"]
    record["released"]["settings"]["prefixes"] = 31
    (report / "record.json").write_text(json.dumps(record))
    failed = [line.name for line in tacit.verify(report).failed]
    assert failed == ["list.outputs", "list.plan"], "31 prefixes keep all that 30 did, and statement and plan say 30"
    document = logged["signed_plan"]["document"].replace("prefixes = 30", "prefixes = 31")
    assert document != logged["signed_plan"]["document"]
    logged["signed_plan"]["document"] = document
    digests = [(step.file, step.digest) for step in Run.open(out).steps()]
    facts = record["statement"]["facts"] | {"outputs": digest_of_outputs(record["released"]["settings"], digests)}
    record["statement"] = json_ready(statement(DiscoveryFacts.from_record(facts)).to_record())
    (report / "statement.json").write_text(json.dumps(record["statement"]))
    (report / "record.json").write_text(json.dumps(record))
    assert tacit.verify(report).holds, "an operator may say whatever fits,"
    assert not all(line.holds for line in tacit.verify_log(report, file)), "but the log has another plan,"
    assert [line.name for line in tacit.verify(report, plan=plan).failed] == ["list.device"], "and so has a device."

    del record["released"]["logged"]
    (report / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="no plan of a run that was served"):
        tacit.verify_log(report, file)


def test_sealed_votes_open_as_the_sums_of_those_in_the_clear(cache: Cache, tmp_path: Path) -> None:
    """By the same devices, drawing the same bytes; the server sees no report, and the statement says who opens sums."""
    decryptors = decryptors_in(tmp_path, count=2, least=8)
    lines = [f"http://127.0.0.1:{at + 1} {each.desk.identity} {each.desk.box}" for at, each in enumerate(decryptors)]
    for name, more in (("clear", {}), ("sealed", {"decryptors": lines})):
        with quick_folder() as folder:
            fleet = WordsFleet(folder, cache, decryptors=decryptors if more else [])
            fleet.order = lambda round: list(range(8 * round, 8 * round + 8))
            deployment = {"population": "keyboards", "devices": 40, **more}
            fleet.discovers(words_toml(tmp_path / name, depth=2, deployment=deployment), tmp_path / f"run-{name}")
    assert steps_of(tmp_path / "run-sealed") == steps_of(tmp_path / "run-clear")
    said = tacit.statement(tmp_path / "run-sealed").markdown()
    assert "which only 2 or more of 2 decryptors together can recover" in said
    assert "moves votes as far as it likes, since nobody sees its report" in said
    assert tacit.verify(tmp_path / "run-sealed").holds


@pytest.mark.parametrize(("step", "after"), [(4, False), (11, True)], ids=["before it", "after it"])
def test_a_coordinator_killed_at_a_transaction_goes_on(
    fleet: WordsFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, after: bool
) -> None:
    text = words_toml(tmp_path / "files")
    with monkeypatch.context() as patch:
        killed = KilledAt(fleet, step, after=after, patch=patch)  # type: ignore[arg-type]
        with pytest.raises(Killed):
            fleet.discovers(text, tmp_path / "run", store=killed.store)
    kept = steps_of(tmp_path / "run")
    fleet.discovers(text, tmp_path / "run")
    summed = [each for each in fleet.attempts() if each.total_digest]
    assert [(each.round, each.state, each.reports) for each in summed] == [(at, "released", 8) for at in range(4)]
    assert steps_of(tmp_path / "run")[: len(kept)] == kept
    assert tacit.verify(tmp_path / "run").holds
    came = [client for clients in fleet.came.values() for client in clients]
    assert len(came) == len(set(came))


def test_a_group_without_a_sum_is_asked_again_of_others(fleet: WordsFleet, tmp_path: Path) -> None:
    """Three of the first eight never report: their local budget is spent, and the layer is that of eight others."""
    silent_ones = {5, 6, 7}
    comes = fleet.device_comes

    def some(each: Any, client: int) -> None:
        if client in silent_ones:
            from tacit.server.store import assignments

            assignments.assign(fleet.store, each.task)
            return
        comes(each, client)

    fleet.device_comes = some  # type: ignore[method-assign]
    fleet.discovers(words_toml(tmp_path / "files", depth=3), tmp_path / "run")
    first, second, *_ = fleet.attempts()
    assert (first.round, first.state, second.round, second.reports) == (0, round_states.ABANDONED, 0, 8)
    assert not set(fleet.came[first.task]) & set(fleet.came[second.task])
    assert tacit.verify(tmp_path / "run").holds


WRONG: dict[str, tuple[str, Any]] = {
    "beyond its reports": ("a count of the report is beyond 1", lambda votes: votes * 2),
    "for everything": ("supports", np.ones_like),
    "of another length": ("is not one tensor", lambda votes: votes[:-1]),
}


@pytest.mark.parametrize("name", WRONG)
def test_votes_that_are_none_take_no_place(fleet: WordsFleet, tmp_path: Path, name: str) -> None:
    why, change = WRONG[name]

    def lie(client: int, body: bytes) -> bytes:
        if client != 2:
            return body
        from safetensors.numpy import load

        votes = load(body)["words"]
        header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
        return report_body(ReportBody(change(votes), True, None, None), header["__metadata__"]["assignment"])

    fleet.lies = lie
    fleet.discovers(words_toml(tmp_path / "files", depth=2), tmp_path / "run")
    assert len(fleet.refused) == 1 and why in fleet.refused[0]
    assert 2 not in {client for clients in fleet.came.values() for client in clients}
    assert [each.reports for each in fleet.attempts()] == [8, 8]


def test_the_example_is_on_the_page_and_can_be_served(tmp_path: Path) -> None:
    """Its devices accept it by the defaults of their policies."""
    text = (REPOSITORY / "examples" / "deployment" / "words.toml").read_text()
    assert text in (REPOSITORY / "docs" / "deploy.md").read_text()
    job = job_of(text, where="words.toml")
    assert isinstance(job, ServedWords) and job_of(job.to_toml(), where="again") == job
    job.settings.check_population(job.deployment.devices)
    assert job.settings.users * job.deployment.over_selection <= job.deployment.devices
    assert job.settings.reports.user_epsilon <= Policy().largest_local_epsilon


def test_what_cannot_be_served_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for changed, match in (
        ({"seed": 3}, "seed is of a simulation"),
        ({"resample_users": True}, "resample_users is of a simulation"),
        ({"users_per_layer": 100}, "the run asks 400 users"),
        ({"deployment": {"population": "keyboards"}}, "deployment.devices"),
        ({"deployment": {"population": "keyboards", "devices": 40, "timer_hours": 2.0}}, "each device answers once"),
        ({"users_per_lair": 3}, "users_per_lair"),
        (
            {"reports": {"local_epsilon": 1e-5, "contributions": 100_000}, "users_per_layer": 43_000},
            "4,300,000,000 votes, and sums are counted up to 4,294,967,295",
        ),
        ({"reports": {"local_epsilon": 1e-5, "contributions": 1_000_000}}, "and a device counts 67,108,864"),
        ({"vocabulary": 3}, "names no vocabulary"),
        ({"name": 3}, "needs a name"),
    ):
        with quick_folder() as place, pytest.raises((InputError, ParticipationError), match=match):
            WordsFleet(place, None).discovers(words_toml(folder, **changed), tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()
