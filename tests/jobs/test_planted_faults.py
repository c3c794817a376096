"""Faults that are planted in counts and mixtures, each of which a check finds that passes without it."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest
from tests.support.training.tiny import SETTINGS, tiny_cache

import tacit
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.evaluation.counts.device_part import StatisticSum, SumsQuestion
from tacit.evaluation.counts.statistics import TypedText
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.federation import report_layout
from tacit.federation.report_layout import BoundedLayout
from tacit.jobs import count_steps
from tacit.networks.model_files import read_files
from tacit.privacy import gaussian
from tacit.privacy.composition import Composition
from tacit.training.pretrain import Pretraining

SUMS = tuple(map(StatisticSum.from_text, ("word_counts:56 norm 4 unit 16", "word_pairs:56 norm 3 unit 16")))
ASKED = CountSettings(sums=SUMS, split_name="train")
COST = ReleaseCost(epsilon=8.0, delta=1e-5)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of clients, one that is public, a counted model, two runs of counts, and a public network."""
    at = tmp_path_factory.mktemp("faults")
    cache = tiny_cache(at / "cache")
    tacit.ngram(tiny_cache(at / "public", {"train": 3, "validation": 2}), at / "pb", declared_public=True)
    for seed, name in ((2, "counts"), (3, "other")):
        tacit.count(cache, at / name, settings=ASKED, release=COST, seed=seed)
    plan = Pretraining(sentences=64, every=64)
    tacit.pretrain(cache, at / "network", model=SETTINGS, settings=plan, held_out=3, declared_public=True)
    return at


@contextmanager
def planted(place: Any, name: str, fault: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(place, name, fault)
        yield


def found(check: Callable[[], None], fault: AbstractContextManager[None]) -> None:
    """The check passes, and with the fault it does not."""
    check()
    with fault, pytest.raises((AssertionError, InputError, pytest.fail.Exception)):
        check()


# -- a device's report -------------------------------------------------------------------------------------------------


def test_words_that_a_device_does_not_scale_down(made: Path) -> None:
    """Of whoever typed most; a sum in the clear measures every report by itself."""
    cache, question = Cache.open(made / "cache"), SumsQuestion(SUMS)
    typed = {int(each): SUMS[0].counted(TypedText.from_cache(cache, int(each)))[1] for each in cache.clients("train")}
    longest = max(typed, key=lambda each: int((typed[each] ** 2).sum()))
    assert (typed[longest] ** 2).sum() > SUMS[0].layout.clip_norm ** 2, "there is something to scale down"

    def within() -> None:
        question.sums.shape.check(question.report_of(cache, longest))

    found(within, planted(report_layout, "clipped", lambda counts, norm: np.asarray(counts, np.int64)))


def test_a_cell_that_a_device_counts_twice(made: Path) -> None:
    """What it sends is the root of no sum of squares within the norm then."""
    cache, question = Cache.open(made / "cache"), SumsQuestion(SUMS)
    reported = BoundedLayout.reported

    def twice(self: BoundedLayout, parts: Any) -> NDArray[Any]:
        report = reported(self, parts)
        report[np.argmax(report)] *= 2
        return report

    def within() -> None:
        for client in cache.clients("train"):
            question.sums.shape.check(question.report_of(cache, int(client)))

    found(within, planted(BoundedLayout, "reported", twice))


# -- noise -------------------------------------------------------------------------------------------------------------


def test_noise_of_a_smaller_scale_than_is_stated(made: Path, tmp_path: Path) -> None:
    """What was released less what clients sent is normal noise of the deviation that the release names; a tenth less or
    more is told from it.
    """
    cache, number = Cache.open(made / "cache"), iter(range(100))
    add = count_steps.add_independent_noise

    def by_the_release() -> None:
        run = tmp_path / f"run-{next(number)}"
        counted = tacit.count(cache, run, settings=ASKED, release=COST, seed=6)
        question = SumsQuestion(SUMS)
        sent = sum(question.report_of(cache, int(each)).astype(np.int64) for each in cache.clients("train"))
        with np.load(run / "report" / "sums.npz") as file:
            noise = np.concatenate([file[str(each)] for each in SUMS]) - sent
            stddev = float(file["stddev"])
        zcdp = COST.rho
        assert stddev == pytest.approx(float(np.hypot(4 * 16, 3 * 16)) / np.sqrt(2 * zcdp), rel=1e-9)
        assert kstest(noise / stddev, "norm").pvalue > 0.001 and abs(noise.std() / stddev - 1) < 0.05
        assert counted.released is not None

    for scale in (0.9, 0.5, 1.1):

        def other(values: Any, stddev: float, scale: float = scale, **rest: Any) -> Any:
            return add(values, stddev=scale * stddev, **rest)

        found(by_the_release, planted(count_steps, "add_independent_noise", other))


# -- a mixture ---------------------------------------------------------------------------------------------------------


def test_a_weight_that_is_fitted_to_clients_text(made: Path, tmp_path: Path) -> None:
    def refused() -> None:
        with pytest.raises(InputError, match="clients', and a weight fitted to it tells of it"):
            tacit.mix(made / "pb", tmp_path / "out", network=made / "network", public=made / "cache")

    from tacit.data.manifest import CacheManifest

    found(refused, planted(CacheManifest, "public", True))


def changed(made: Path, out: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A mixture of counts and a public network whose promise says something else."""
    tacit.mix(made / "pb", out, counts=made / "counts", network=made / "network", weight=0.3)
    record = json.loads((out / "promise.json").read_text())
    change(record)
    (out / "promise.json").write_text(json.dumps(record))
    return out


def no_counts(record: dict[str, Any]) -> None:
    """As if nothing had been released: every figure that is left follows from what is left."""
    record["statements"] = {}
    record |= {"zcdp": 0.0, "epsilon": 0.0, "delta": 0.0}


def twice_the_noise(record: dict[str, Any]) -> None:
    record["statements"]["counts"]["facts"]["releases"][0]["noise_multiplier"] *= 2


PROMISES: dict[str, Callable[[dict[str, Any]], None]] = {
    "another epsilon": lambda record: record.update(epsilon=record["epsilon"] / 2),
    "another zcdp": lambda record: record.update(zcdp=record["zcdp"] * (1 - 1e-6)),
    "a larger delta": lambda record: record.update(delta=1e-3),
    "twice the noise": twice_the_noise,
    "no counts": no_counts,
    "no network": lambda record: record["public"].pop("network"),
}


@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_that_was_altered(name: str, made: Path, tmp_path: Path) -> None:
    assert tacit.verify(changed(made, tmp_path / "as-it-was", lambda record: None)).holds
    wrong = tacit.verify(changed(made, tmp_path / "altered", PROMISES[name]))
    assert not wrong.holds, name
    if name.startswith("no "):
        assert [each.name for each in wrong.failed] == ["parts of promise.json"]


def test_sums_of_another_run_in_the_place_of_a_runs_own(made: Path, tmp_path: Path) -> None:
    for name in ("report/sums.npz", "steps/release-000000.npz"):
        swapped = tmp_path / name.replace("/", "-")
        shutil.copytree(made / "counts", swapped)
        shutil.copy(made / "other" / name, swapped / name)
        assert (swapped / name).read_bytes() != (made / "counts" / name).read_bytes()
        if name.startswith("steps"):
            with pytest.raises(RunError, match="is not the file that step 0 names"):
                tacit.verify(swapped)
        else:
            assert not tacit.verify(swapped).holds
    with pytest.raises(RunError, match=r"sums\.npz"):
        tacit.mix(made / "pb", tmp_path / "out", counts=tmp_path / "report-sums.npz")
    assert not (tmp_path / "out").exists()


def test_the_epsilon_of_a_mixture_is_the_accountants_to_1e_12(made: Path, tmp_path: Path) -> None:
    """By the accountant's own sum of zCDP, computed here from what each ledger says; a part left out is found."""
    mixed = tacit.mix(made / "pb", tmp_path / "out", counts=made / "counts")
    account = tacit.account_run(made / "counts").realised
    assert isinstance(account, Composition)
    zcdp = sum(
        gaussian.zcdp(row.clip_norm, row.noise_multiplier * row.clip_norm)  # type: ignore[attr-defined]
        for row in count_steps.ledger_of(tacit.open_run(made / "counts")).releases
    )
    assert account.zcdp == pytest.approx(zcdp, rel=1e-12)
    delta = json.loads((tmp_path / "out" / "promise.json").read_text())["delta"]
    assert mixed.epsilon == pytest.approx(gaussian.epsilon(zcdp, delta), rel=1e-12)
    assert read_files(tmp_path / "out").public_text is None
