"""A device that is asked for sums: what it refuses of plan and task, and that its report is within the plan's norm."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.evaluation.typists import typists_and_model
from tests.support.server.phones import EVERYTHING, Phones
from tests.support.server.stores import quick_folder

from tacit.data import Cache
from tacit.device.count import StatisticHandler, count_cost
from tacit.device.own_text import OwnText, TextView
from tacit.device.policy import Policy
from tacit.errors import InputError, TaskRefused
from tacit.evaluation.counts import device_part
from tacit.evaluation.counts.cell_list import CellList, CellSum, ListedSum
from tacit.evaluation.counts.device_part import StatisticSum, SumsQuestion
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.jobs.devices import RealDevices
from tacit.privacy.gaussian import epsilon
from tacit.protocol.count import CountDocument
from tacit.protocol.messages import HistogramPrivacy, Plan, RoundTask, Signed, SumPrivacy
from tacit.recipe.deployment_section import DeploymentSection
from tacit.server.count_files import ServedCount
from tacit.server.store.round_states import attempts
from tacit.text.vocabulary import Provenance, Vocabulary

SUM = StatisticSum(statistic="word_pairs", words=30, norm=3.0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return typists_and_model(tmp_path_factory.mktemp("world"), 4)[0]


@pytest.fixture(scope="module")
def asked(cache: Path) -> Iterator[tuple[Plan, RoundTask]]:
    """An honest plan, and its task."""
    job = ServedCount(
        devices=RealDevices(name="asked", deployment=DeploymentSection(population="phones", devices=1000)),
        release=ReleaseCost(zcdp=0.5, delta=1e-6),
        vocabulary=Cache.open(cache).vocabulary_path,
        settings=CountSettings(sums=(SUM,), clients=2),
    )
    with quick_folder() as folder:
        phones = Phones(folder, cache, [1, 0], policy=Policy(kinds=EVERYTHING))
        phones.serve(job, folder / "run")
        assert [(turn.what, turn.zcdp) for turn in phones.turns] == [("reported", pytest.approx(0.5))] * 2
        assert phones.plan is not None
        yield phones.plan, Signed.from_json(attempts(phones.store, "asked")[0].signed_task).read(RoundTask)


def draw(size: int) -> bytes:
    return bytes(size)


def test_a_plan_costs_what_its_own_numbers_give(asked: Any) -> None:
    plan: Plan = asked[0]
    assert isinstance(plan.privacy, SumPrivacy) and plan.privacy.clip_norm == 3.0
    found = count_cost(plan)
    assert found.zcdp == pytest.approx(0.5) == pytest.approx(1 / (2 * plan.privacy.noise_multiplier**2))
    assert found.epsilon == pytest.approx(epsilon(0.5, 1e-6))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"noise_multiplier": 0.99}, "its own numbers give"),
        ({"zcdp": 0.4}, "claims zCDP 0.4"),
        ({"epsilon": 1.0}, "claims epsilon 1 at"),
        ({"max_participations": 2}, "more than once"),
        ({"clip_norm": 2.9}, "whole numbers of the norm 3, and its noise is made for 2.9"),
    ],
)
def test_a_plan_that_claims_too_much_is_refused(asked: Any, cache: Path, changed: dict[str, Any], said: str) -> None:
    plan: Plan = asked[0]
    wrong = plan.model_copy(update={"privacy": plan.privacy.model_copy(update=changed)})
    handler = StatisticHandler(OwnText(cache, 0, None))
    handler.check(plan)
    with pytest.raises(TaskRefused, match=said):
        handler.cost(wrong, None)
        handler.check(wrong)


def test_noise_for_a_histogram_is_no_noise_for_a_sum(asked: Any, cache: Path) -> None:
    """One unit has norm 1: a plan of histograms would take a report of norm 3 at a ninth of its cost."""
    plan: Plan = asked[0]
    claimed = {name: value for name, value in dict(plan.privacy).items() if name not in ("kind", "clip_norm")}
    privacy = HistogramPrivacy(kind="histograms", histograms=(1,), **claimed)
    for wrong in (
        plan.model_copy(update={"privacy": privacy}),
        plan.model_copy(update={"recipe": '[[settings.statistics]]\nstatistic = "words"\ncuts = [9.0]\n'}),
    ):
        with pytest.raises(TaskRefused, match="by another privacy than its recipe"):
            StatisticHandler(OwnText(cache, 0, None)).check(wrong)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"norms": (30.0,)}, "asks for other sums than its plan"),
        ({"cells": (901,)}, "asks for other sums than its plan"),
        ({"norms": None}, "asks for other sums than its plan"),
        ({"norms": (3.0, 3.0)}, "with 2 norms count nothing"),
        ({"local_epsilon": 1.0}, "wants local_epsilon=1.0, and its plan None"),
    ],
)
def test_a_task_that_its_plan_does_not_reckon_with_is_refused(
    asked: Any, cache: Path, changed: dict[str, Any], said: str
) -> None:
    plan, task = asked
    wrong = task.model_copy(update={"asks": task.asks.model_copy(update=changed)})
    with pytest.raises(TaskRefused, match=said):
        StatisticHandler(OwnText(cache, 0, None)).prepare(plan, wrong, b"")


def test_a_report_is_within_the_norm_and_the_server_takes_no_other(asked: Any, cache: Path) -> None:
    plan, task = asked
    shape = task.question(CountDocument).shape()
    text = OwnText(cache, 0, None)
    values = StatisticHandler(text).prepare(plan, task, b"").read(draw).values
    _, counts = SUM.counted(device_part.TypedText.from_cache(text.whole, 0))
    assert int((counts**2).sum()) > 9 >= int((values.astype(np.int64) ** 2).sum()) > 0, "there was something to clip"
    shape.check(values)
    assert shape.largest == 3
    longer = values.copy()
    longer[np.flatnonzero(values == 0)[:9]] = 1
    with pytest.raises(InputError, match="longer than the norm 3"):
        shape.check(longer)


ONE = '[[settings.sums]]\nstatistic = "word_pairs"\nwords = 30\nnorm = 3.0\n'
HOSTILE = {
    "has more cells than a report": (ONE.replace("30", "1" + "0" * 150), "and a report at most 10,000,000"),
    "has a number of 5,000 digits": (ONE.replace("30", "1" * 5000), "is no TOML"),
    "has no finite norm": (ONE.replace("3.0", "1e999"), "norm=inf must lie between"),
    "sums one statistic a thousand times": (ONE * 1000, "is summed twice"),
    "asks nothing": ("[settings]\nsums = []\n", "of \\[\\] cells"),
    "asks both": (ONE + '[[settings.statistics]]\nstatistic = "words"\ncuts = [1.0]\n', "or both"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_recipe_that(name: str, asked: Any, cache: Path) -> None:
    recipe, said = HOSTILE[name]
    with pytest.raises(TaskRefused, match=f"asks what this device cannot do: .*{said}"):
        StatisticHandler(OwnText(cache, 0, None)).check(asked[0].model_copy(update={"recipe": recipe}))


def test_a_statistic_that_fails_sends_zeros(asked: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: Any) -> Any:
        raise KeyError("word")

    monkeypatch.setattr(device_part, "SUMS", {"word_pairs": (2, fails)})
    plan, task = asked
    values = StatisticHandler(OwnText(cache, 0, None)).prepare(plan, task, b"").read(draw).values
    assert values.shape == (900,) and not values.any()
    task.question(CountDocument).shape().check(values)


# -- cells of a list ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def listed(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plan, RoundTask, CellList]]:
    """An honest plan of a list, its task, and the list as two devices got and counted it."""
    words = Vocabulary.load(Cache.open(cache).vocabulary_path).words
    ngrams = (*((word,) for word in words[:9]), *((a, b) for a in words[:4] for b in words[:4]))
    cells = CellList(
        norm=50,
        ngrams=ngrams,
        units=tuple(range(5, 5 + len(ngrams))),
        provenance=Provenance(kind="public", description="a test"),
    ).save(tmp_path_factory.mktemp("list") / "cells.txt")
    job = ServedCount.from_toml(
        f'kind = "count"\nname = "listed"\nvocabulary = "{Cache.open(cache).vocabulary_path}"\nclients = 2\n'
        f'cells = "{cells.path}"\n[deployment]\npopulation = "phones"\ndevices = 1000\n'
        "[release]\nzcdp = 0.5\ndelta = 1e-6\n",
        where="a file",
    )
    assert ServedCount.from_toml(job.placed(None).to_toml(), where="again").settings.cells == cells
    with quick_folder() as folder:
        phones = Phones(folder, cache, [1, 0], policy=Policy(kinds=EVERYTHING))
        phones.serve(job, folder / "run")
        assert [turn.what for turn in phones.turns] == ["reported"] * 2
        assert phones.plan is not None
        assert str(cells.path) not in phones.plan.recipe, "where it lies on the server is no device's business"
        task = Signed.from_json(attempts(phones.store, "listed")[0].signed_task).read(RoundTask)
        released = np.load(folder / "run" / "report" / "sums.npz")
        assert released["ngrams"].tolist() == [" ".join(each) for each in ngrams]
        question = SumsQuestion((CellSum.of(cells),)).counting(
            cells, Vocabulary.load(Cache.open(cache).vocabulary_path)
        )
        exact = np.sum([question.report_of(Cache.open(cache), each).astype(np.int64) for each in (0, 1)], axis=0)
        assert abs(released["cells"] - exact).max() <= 6 * float(released["stddev"]) + 1 and exact.any()
        yield phones.plan, task, cells


def test_a_device_counts_the_list_of_its_plan_alone(listed: Any, cache: Path) -> None:
    plan, task, cells = listed
    handler = StatisticHandler(OwnText(cache, 0, None))
    handler.check(plan)
    content = cells.text.encode()
    values = handler.prepare(plan, task, content).read(draw).values
    assert values.any() and int((values.astype(np.int64) ** 2).sum()) <= 50**2
    heavier = replace(cells, units=(999, *cells.units[1:]), path=None)
    for wrong, said in (
        (heavier.text.encode(), "is not the one that is asked for"),
        (b"", "begins with the lines"),
        (content.replace(b"\n5\t", b"\n0\t"), "counts 0"),
        (b"\xff", "not UTF-8"),
    ):
        with pytest.raises(TaskRefused, match=f"asks what this device cannot do: .*{said}"):
            handler.prepare(plan, task, wrong)


def test_a_plan_of_a_list_with_a_smaller_norms_noise_is_refused(listed: Any, cache: Path) -> None:
    plan = listed[0]
    wrong = plan.model_copy(update={"privacy": plan.privacy.model_copy(update={"clip_norm": 49.0})})
    with pytest.raises(TaskRefused, match="whole numbers of the norm 50, and its noise is made for 49"):
        StatisticHandler(OwnText(cache, 0, None)).check(wrong)


def test_what_a_device_does_with_a_list_does_not_depend_on_its_text(
    listed: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that fails, none, and much of it: a report of the same length, and never a refusal."""
    plan, task, cells = listed
    handler, content = StatisticHandler(OwnText(cache, 0, None)), cells.text.encode()
    prepared = handler.prepare(plan, task, content)
    length = prepared.read(draw).values.nbytes
    for ids, lengths in (([], []), ([1, 2], [2]), ([1, *[4, 5] * 500_000, 2], [10**6 + 2])):

        def typed(text: Any, client: int, ids: list[int] = ids, lengths: list[int] = lengths) -> tuple[Any, Any]:
            return np.array(ids, np.int64), np.array(lengths, np.int64)

        monkeypatch.setattr(TextView, "sentences", typed)
        values = prepared.read(draw).values
        assert values.nbytes == length and int((values.astype(np.int64) ** 2).sum()) <= 50**2

    def fails(text: Any) -> Any:
        raise KeyError("word")

    monkeypatch.setattr(ListedSum, "counted", lambda self, text: fails(text))
    assert not prepared.read(draw).values.any()
