"""Models are asked about over HTTP: the sums are those of a simulation over the same devices, to the bit, in the clear
and sealed; what is released, promised and stated is a run's like any other.
"""

import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import tomli_w
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.conftest import REPOSITORY
from tests.support.evaluation.typists import typists_and_model
from tests.support.server.phones import TIMES, Phones
from tests.support.server.sealing import Here, decryptors_in
from tests.support.server.stores import quick_folder
from tests.support.training.tiny import SETTINGS

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import InputError, TrainingError
from tacit.evaluation.accuracy import first_shuffled
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.sums import SimulatedSums, SumQuestion
from tacit.federation.collector import Answered
from tacit.federation.report_layout import Opened, ReportLayout
from tacit.jobs import count_steps as of_histograms
from tacit.keyboard.model_folder import write_model
from tacit.protocol.messages import HistogramPrivacy, LocalPrivacy, SumPrivacy
from tacit.protocol.operator_key import OperatorKey
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.server.jobs import job_of
from tacit.server.log.logged_run import verify_log
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.store import round_states
from tacit.text.vocabulary import Vocabulary

World = tuple[Path, Path, Path]  # cache, models
ONE = Hardware(workers=1)
CLIENTS = 6
RELEASE = {"zcdp": 5000.0, "delta": 1e-6}
EVALUATION: dict[str, Any] = {"kind": "evaluate", "name": "two-models", "clients": CLIENTS, "sentences": 8, "words": 6}
COUNT: dict[str, Any] = {
    "kind": "count",
    "name": "typed",
    "clients": CLIENTS,
    "statistics": [{"statistic": "words", "cuts": [20.0, 60.0]}, {"statistic": "unknown_share", "cuts": [0.1]}],
}
SUMS: dict[str, Any] = {
    "kind": "count",
    "name": "pairs",
    "clients": CLIENTS,
    "sums": [
        {"statistic": "word_pairs", "words": 40, "norm": 4.0},
        {"statistic": "word_counts", "words": 30, "norm": 6.5},
    ],
}
PERSONALIZATION: dict[str, Any] = {
    "kind": "personalize",
    "name": "own-models",
    "clients": CLIENTS,
    "split": "time:0.8",
    "gate_share": 0.125,
    "levels": [1.0, 0.5],
    "tokens": {"cuts": [100.0]},
    "strategies": [{"learning_rate": 1.0}, {"epochs": 0, "bigram": 0.2}, {"epochs": 0, "fitted": True}],
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    cache, model = typists_and_model(folder, 2 * CLIENTS)
    write_model(
        folder / "other", SETTINGS, SETTINGS.init(jax.random.key(8)), Cache.open(cache).vocabulary_path.read_bytes()
    )
    return cache, model, folder / "other"


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as found:
        yield found


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    """What each collector brings, simulated or served."""
    found: list[Opened] = []
    for where in (of_histograms.SimulatedCollector, SimulatedSums, ServedRounds):
        collect: Any = where.collect

        def told(
            self: Any, state: Any, task: CountQuestion | SumQuestion, collect: Any = collect, **more: Any
        ) -> tuple[Answered, Any]:
            answered, after = collect(self, state, task, **more)
            everybody = np.array([answered.reports])
            sums = isinstance(task, SumQuestion)
            found.append(Opened(answered.values, everybody) if sums else task.opened(answered))
            return answered, after

        monkeypatch.setattr(where, "collect", told)
    return found


def everybody(cache: Path) -> list[int]:
    return [int(client) for client in first_shuffled(Cache.open(cache).clients("test"), 0)]


def file_of(
    world: World,
    said: dict[str, Any],
    decryptors: list[Here] | None = None,
    noise: dict[str, Any] | None = None,
    **changed: Any,
) -> str:
    deployment: dict[str, Any] = {"population": "phones", "devices": 1000, "over_selection": 1.0, **(noise or {})}
    if decryptors:
        lines = [f"http://127.0.0.1:1 {each.desk.identity} {each.desk.box}" for each in decryptors]
        deployment |= {"decryptors": lines, "corrupt_decryptors": 1}
    models: dict[str, Any] = {"model": str(world[1])}
    if said["kind"] != "personalize":
        models = {"models": list(map(str, world[1:]))} if said["kind"] == "evaluate" else {}
    return tomli_w.dumps({**said, **models, "release": RELEASE, "deployment": deployment, **changed})


def job(world: World, said: dict[str, Any], decryptors: list[Here] | None = None, **changed: Any) -> Any:
    found = job_of(file_of(world, said, decryptors, **changed), where="the test").placed(None)
    assert job_of(found.to_toml(), where="the same").to_toml() == found.to_toml()
    return found


@pytest.mark.parametrize("kept", [0, 4], ids=["clear", "sealed"])
def test_devices_over_http_count_what_a_simulation_counts(
    kept: int, world: World, folder: Path, tmp_path: Path, seen: list[Opened]
) -> None:
    decryptors = decryptors_in(tmp_path, count=kept)
    asked = job(world, EVALUATION, decryptors)
    phones = Phones(folder, world[0], everybody(world[0]), decryptors)
    phones.serve(asked, tmp_path / "served")
    reported = [turn for turn in phones.turns if turn.what == "reported"]
    assert len(reported) == CLIENTS and {turn.zcdp for turn in reported} == {5000.0}
    tacit.evaluate(
        world[1:],
        world[0],
        settings=replace(asked.settings, split_name="test"),
        release=asked.release,
        out=tmp_path / "simulated",
        hardware=ONE,
    )
    served, simulated = seen
    assert np.array_equal(served.counts, simulated.counts)
    plan = phones.plan
    assert plan is not None and isinstance(plan.privacy, HistogramPrivacy) and plan.privacy.histograms == (3,)
    assert plan.aggregation.kind == ("sealed" if kept else "plain")
    with Run.open(tmp_path / "served") as run:
        assert reconciled(run).counts().tolist() == [CLIENTS] and run.finished
    said = tacit.statement(tmp_path / "served").markdown()
    for words in ("counts itself in one cell of each histogram", "transparency log (RFC 9162)", "Device level"):
        assert words in said
    assert ("decryptors together" in said) == bool(kept)
    assert tacit.verify(tmp_path / "served").holds
    assert all(line.complaint is None for line in verify_log(tmp_path / "served", str(folder / "operator.log")))
    assert_no_report_is_stored(folder, phones)


@pytest.mark.parametrize("kept", [0, 4], ids=["clear", "sealed"])
def test_devices_over_http_count_statistics_as_a_simulation_does(
    kept: int, world: World, folder: Path, tmp_path: Path, seen: list[Opened]
) -> None:
    decryptors = decryptors_in(tmp_path, count=kept)
    vocabulary = str(Cache.open(world[0]).vocabulary_path)
    asked = job(world, COUNT, decryptors, vocabulary=vocabulary)
    phones = Phones(folder, world[0], everybody(world[0]), decryptors)
    phones.serve(asked, tmp_path / "served")
    reported = [turn for turn in phones.turns if turn.what == "reported"]
    assert len(reported) == CLIENTS and {turn.zcdp for turn in reported} == {5000.0}
    settings = replace(asked.settings, split_name="test")
    tacit.count(world[0], tmp_path / "simulated", settings=settings, release=asked.release)
    served, simulated = seen
    assert np.array_equal(served.counts, simulated.counts)
    assert "words in 3 bins" in tacit.statement(tmp_path / "served").markdown()
    assert tacit.verify(tmp_path / "served").holds
    assert_no_report_is_stored(folder, phones)


@pytest.mark.parametrize("kept", [0, 4], ids=["clear", "sealed"])
def test_devices_over_http_sum_what_a_simulation_sums(
    kept: int, world: World, folder: Path, tmp_path: Path, seen: list[Opened]
) -> None:
    decryptors = decryptors_in(tmp_path, count=kept)
    vocabulary = Cache.open(world[0]).vocabulary_path
    asked = job(world, SUMS, decryptors, vocabulary=str(vocabulary))
    phones = Phones(folder, world[0], everybody(world[0]), decryptors)
    phones.serve(asked, tmp_path / "served")
    reported = [turn for turn in phones.turns if turn.what == "reported"]
    assert len(reported) == CLIENTS and {turn.zcdp for turn in reported} == {5000.0}
    plan = phones.plan
    assert plan is not None and isinstance(plan.privacy, SumPrivacy)
    assert plan.privacy.clip_norm == math.hypot(4, 6.5)
    settings = replace(asked.settings, split_name="test")
    found = tacit.count(world[0], tmp_path / "simulated", settings=settings, release=asked.release)
    served, simulated = seen
    assert np.array_equal(served.counts, simulated.counts)
    assert all(each["clients_scaled_down"] and each["sent"] for each in found.exact["sums"].values())
    said = tacit.statement(tmp_path / "served").markdown()
    assert "word_pairs of the first 40 words of the vocabulary, within the norm 4" in said
    assert "scales its whole numbers down to the norm, by itself" in said
    assert tacit.verify(tmp_path / "served").holds
    assert all(line.complaint is None for line in verify_log(tmp_path / "served", str(folder / "operator.log")))
    with np.load(tmp_path / "served" / "report" / "sums.npz") as file:
        assert file["vocabulary"].tolist() == list(Vocabulary.load(vocabulary).words[:40])
        noised = np.concatenate([file["word_pairs"], file["word_counts"]])
    assert np.abs(noised - served.counts).max() < 6 * plan.privacy.clip_norm * plan.privacy.noise_multiplier + 1
    again = tacit.resume(tmp_path / "served")  # without the vocabulary's file: its words are in the release
    assert again.released["sums"]["word_pairs"]["largest"][0]["cell"]  # type: ignore[attr-defined]
    assert_no_report_is_stored(folder, phones)


def assert_no_report_is_stored(folder: Path, phones: Phones) -> None:
    stored = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert phones.bodies and stored
    assert not any(body in content for body in phones.bodies for content in stored)


def test_half_of_the_devices_design_policies_and_the_others_judge_them(
    world: World, folder: Path, tmp_path: Path, seen: list[Opened]
) -> None:
    asked, coming = job(world, PERSONALIZATION), everybody(world[0])
    again = [*coming[:3], *coming[:3], *coming[3:]]  # three come to the second step again, and are refused
    phones = Phones(folder, world[0], again, count=1)
    phones.serve(asked, tmp_path / "served")
    assert [turn.what for turn in phones.turns].count("reported") == CLIENTS
    refused = [turn.says for turn in phones.turns if turn.what == "refused"]
    assert refused and all("takes part" in says or "took part" in says for says in refused)
    record = tacit.report(tmp_path / "served").page.record
    assert [each["name"] for each in record["released"]["policies"]] and len(seen) == 2
    policies = tacit.resume(tmp_path / "served").policies  # type: ignore[attr-defined]
    assert len(policies) == 4
    slow = [asked_of(world, coming[:3], None, asked), asked_of(world, coming[3:6], policies, asked)]
    assert [each.counts.tolist() for each in seen] == slow
    assert tacit.account_run(tmp_path / "served").to_record()["promise"]["zcdp"] == pytest.approx(5000.0)
    assert tacit.verify(tmp_path / "served").holds


def asked_of(world: World, clients: list[int], policies: Any, job: Any) -> list[int]:
    """What these clients count, each by the device's own function."""
    from tacit.evaluation.counts.histograms import Buckets
    from tacit.evaluation.device_part import NetworkWithParameters, StrategiesQuestion
    from tacit.evaluation.personalize.gate import GatePolicy, GateRule
    from tacit.keyboard.model_folder import load_model

    judged = None
    if policies is not None:
        judged = tuple(
            GatePolicy(
                name=each["name"],
                buckets=Buckets(tuple(each["cuts"])),
                rules=tuple(rule and GateRule(**rule) for rule in each["rules"]),
            )
            for each in policies
        )
    model = load_model(world[1])
    asks = StrategiesQuestion(
        model=NetworkWithParameters(model.network, model.parameters), settings=job.settings, policies=judged
    )
    layout = ReportLayout(sizes=tuple(each.size for each in asks.histograms.values()))
    return sum(layout.counted(asks.cells_of(Cache.open(world[0]), client)).astype(int) for client in clients).tolist()


def test_reports_that_devices_randomise(world: World, folder: Path, tmp_path: Path) -> None:
    asked = job(world, EVALUATION, release={"local_epsilon": 2.0}, models=[str(world[1])])
    phones = Phones(folder, world[0], everybody(world[0]))
    phones.serve(asked, tmp_path / "served")
    assert phones.plan is not None and isinstance(phones.plan.privacy, LocalPrivacy)
    assert {turn.zcdp for turn in phones.turns if turn.what == "reported"} == {2.0}  # 2^2 / 2
    with Run.open(tmp_path / "served") as run:
        (release,) = run.steps()[0].releases
        assert (release["local_epsilon"], release["users"]) == (2.0, CLIENTS)
    assert tacit.verify(tmp_path / "served").holds
    assert "randomised before it left" in tacit.statement(tmp_path / "served").markdown()


def test_a_round_below_its_goal_releases_nothing_and_a_killed_coordinator_goes_on(
    world: World, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, coming = job(world, EVALUATION), everybody(world[0])
    phones = Phones(folder, world[0], coming[:4], times=replace(TIMES, attempts=1))
    with pytest.raises(tacit.errors.TrainingError, match="none of 1 attempt gave a sum; nothing was released"):
        phones.serve(asked, tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == 0 and not list((tmp_path / "run" / "steps").iterdir())
    phones.coming[:] = coming  # the four that took part in the round that came to nothing are spent for this run

    class Killed(BaseException):
        pass

    def dies(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(of_histograms, "_release", dies)
        phones.serve(asked, tmp_path / "run")
    sums = [each.total_digest for each in round_states.attempts(phones.store, "two-models")]
    phones.serve(asked, tmp_path / "run")
    assert [each.total_digest for each in round_states.attempts(phones.store, "two-models")] == sums
    assert [each.state for each in round_states.attempts(phones.store, "two-models")] == [
        round_states.ABANDONED,
        round_states.RELEASED,
    ]
    assert [turn.what for turn in phones.turns].count("refused") == 4
    with Run.open(tmp_path / "run") as run:
        assert run.finished and run.counts().tolist() == [CLIENTS + 4]


OF_DECRYPTORS: dict[str, tuple[dict[str, Any], int, float]] = {
    "models": (EVALUATION, 1, 0.02),
    "statistics": (COUNT, 1, 0.02),
    "sums": (SUMS, 1, 0.02),
    "sums of which two are honest": (SUMS, 2, 0.02),
    "both steps of a gate": (PERSONALIZATION, 1, 0.02),
}


@pytest.mark.parametrize("name", OF_DECRYPTORS)
def test_decryptors_add_the_noise_of_counts(
    name: str, world: World, folder: Path, tmp_path: Path, seen: list[Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server opens has the noise of all, what it releases is that, and what it says of it is so."""
    drawn = iter(range(1, 1000))
    monkeypatch.setattr("tacit.mechanisms.all_rounds.fresh_key", lambda: next(drawn).to_bytes(16, "big"))
    said, honest, zcdp = OF_DECRYPTORS[name]
    decryptors = decryptors_in(tmp_path, count=4)
    for each in decryptors:
        each.operator = OperatorKey(bytes(32)).public
        each.restart()
    release, noise = {"zcdp": zcdp, "delta": 1e-6}, {"noise": "decryptors", "honest_decryptors": honest}
    words = {"vocabulary": str(Cache.open(world[0]).vocabulary_path)} if said["kind"] == "count" else {}
    asked = job(world, said, decryptors, noise=noise, release=release, **words)
    phones = Phones(folder, world[0], everybody(world[0]), decryptors)
    phones.policy = replace(phones.policy, noise_by_decryptors=True, honest_decryptors=honest)
    phones.serve(asked, tmp_path / "served")
    assert [turn.what for turn in phones.turns].count("reported") == CLIENTS
    plan = phones.plan
    assert plan is not None and len(plan.aggregation.contributors) == 4 and plan.aggregation.honest == honest
    with Run.open(tmp_path / "served") as run:
        rows = [each for row in reconciled(run).steps() for each in row.releases]
    assert {(each["decryptors"], each["honest_decryptors"]) for each in rows} == {(4, honest)}
    for step, opened in enumerate(list(seen)):
        deviation = plan.privacy.deviation(step)
        assert deviation is not None and len(opened.counts) >= 5
        alone, times = exact_of(said, world, asked, step, phones), 4 / honest
        if alone is not None:
            square = float(np.square((opened.counts - alone) / deviation).sum())
            low, high = chi2.ppf(1e-6, opened.counts.size), chi2.ppf(1 - 1e-6, opened.counts.size)
            assert low < square / times < high
            if opened.counts.size > 500:
                # Five times the noise is a quarter more than four times: told by 1,630 cells at 1%, not at 1e-6.
                low, high = chi2.ppf([0.005, 0.995], opened.counts.size)
                wrong = {1, 2, 4, 5, 4 / honest**2, 4 / honest**0.5} - {times}
                assert not any(low < square / each < high for each in wrong)
    text = tacit.statement(tmp_path / "served").markdown()
    trusted = "if one decryptor is honest" if honest == 1 else "if at least 2 of 4 decryptors are honest"
    assert trusted in text and "aggregator is trusted" not in text and "before it adds noise" not in text
    assert "opens that sum alone, in which the noise of all 4 is" in text
    page = (tmp_path / "served" / "report" / "report.md").read_text()
    assert f"at least {'one of them is' if honest == 1 else '2 of them are'} trusted to." in page
    spread = plan.privacy.deviation(0)
    assert spread is not None and f"standard deviation {(4 / honest) ** 0.5 * spread:.4g}" in page
    assert tacit.verify(tmp_path / "served").holds
    if said is SUMS:
        with np.load(tmp_path / "served" / "report" / "sums.npz") as file:
            released = np.concatenate([file["word_pairs"], file["word_counts"]])
            assert np.array_equal(released, seen[0].counts), "the server adds none"
            assert float(file["stddev"]) == pytest.approx(plan.privacy.deviation(0) * (4 / honest) ** 0.5)  # type: ignore[operator]
    account = tacit.account_run(tmp_path / "served").to_record()["promise"]
    assert account["zcdp"] == pytest.approx(zcdp), "as of the same run without decryptors"


def exact_of(said: dict[str, Any], world: World, asked: Any, step: int, phones: Phones) -> NDArray[np.int64] | None:
    """What the devices counted, by the devices' own functions; None where that is another test's."""
    if said is PERSONALIZATION:
        return None
    settings, out = replace(asked.settings, split_name="test"), phones.folder / "simulated"
    found: list[NDArray[np.int64]] = []
    for where in (of_histograms.SimulatedCollector, SimulatedSums):
        collect: Any = where.collect

        def told(self: Any, state: Any, task: Any, collect: Any = collect, **more: Any) -> Any:
            answered, after = collect(self, state, task, **more)
            found.append(np.asarray(answered.values))
            return answered, after

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(where, "collect", told)
            if said is EVALUATION and where is not SimulatedSums:
                tacit.evaluate(world[1:], world[0], settings=settings, release=asked.release, out=out, hardware=ONE)
            elif said is not EVALUATION and (said is SUMS) == (where is SimulatedSums):
                tacit.count(world[0], out, settings=settings, release=asked.release)
    return found[step]


def test_noise_of_decryptors_for_reports_that_devices_randomise_is_refused(world: World, tmp_path: Path) -> None:
    decryptors = decryptors_in(tmp_path, count=2)
    with pytest.raises(InputError, match="randomise their reports themselves, so that no sum gets noise"):
        job(world, EVALUATION, decryptors, noise={"noise": "decryptors"}, release={"local_epsilon": 2.0})


def test_counts_too_coarse_for_two_honest_are_refused(world: World, folder: Path, tmp_path: Path) -> None:
    """With noise of less than a unit, two rounded numbers tell more than one."""
    decryptors = decryptors_in(tmp_path, count=4)
    for each in decryptors:
        each.operator = OperatorKey(bytes(32)).public
        each.restart()
    noise = {"noise": "decryptors", "honest_decryptors": 2}
    asked = job(world, EVALUATION, decryptors, noise=noise)
    phones = Phones(folder, world[0], everybody(world[0]), decryptors)
    with pytest.raises(TrainingError, match="honest_decryptors=2 leave each decryptor fresh noise of"):
        phones.serve(asked, tmp_path / "served")
    assert not phones.turns


def test_the_files_of_the_page_are_read() -> None:
    page = (REPOSITORY / "docs" / "counts.md").read_text(encoding="utf-8")
    histograms, sums = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    served = histograms.partition("[[statistics]]")[0] + sums
    (statistic,), (pairs,) = (
        job_of(histograms, where="it").settings.statistics,
        job_of(served, where="it").settings.sums,
    )
    assert (str(statistic), str(pairs), pairs.cells) == ("words", "word_pairs", 10**6)


def test_files_that_cannot_be_served_say_why(world: World) -> None:
    text = tomllib.loads(file_of(world, EVALUATION))
    for changed, said in (
        ({"release": None}, "has no section \\[release\\]"),
        ({"seed": 3}, "whoever knows it takes the noise away"),
        ({"models": []}, "names no models"),
        ({"sentence": 3}, "unknown key 'sentence'"),
        ({"name": None}, "needs a name"),
        ({"models": ["nowhere"]}, "nowhere"),
        ({"clients": 0}, "how many devices are asked is not said"),
        ({"clients": 2000}, "more than the 1,000 devices"),
    ):
        given = {name: value for name, value in (text | changed).items() if value is not None}
        with pytest.raises(tacit.errors.InputError, match=said):
            made = job_of(tomli_w.dumps(given), where="the file").placed(None)
            made.begun(Path("never"), made.collector(None, None, None), lambda event: None)  # type: ignore[arg-type]
    assert not Path("never").exists()
