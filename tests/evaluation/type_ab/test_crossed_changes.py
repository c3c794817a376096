"""Changes over users and trainings together: against the sums, and against the bootstrap where seeds are none."""

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.evaluation.crossed import crossed_change, crossed_difference
from tacit.evaluation.type_ab.crossed_changes import crossed_changes
from tacit.evaluation.type_ab.launch_rule import CAUTIOUS, decide, gains_of
from tacit.evaluation.type_ab.measures import MEASURES, Tally
from tacit.evaluation.type_ab.paired_bootstrap import changes_of


def typed(seeds: int, users: int, *, of_seed: float, seed: int = 0) -> tuple[list[list[Tally]], list[list[Tally]]]:
    """B's words take other times than A's: the same on average, and otherwise by each seed."""
    draw = np.random.default_rng(seed)
    slower = 1 + of_seed * np.array([1.5, -1.0, 0.7, -1.2])[:seeds]
    words = draw.integers(80, 120, users).astype(float)
    a, b = [], []
    for s in range(seeds):
        seconds = 2 * words * draw.uniform(0.9, 1.1, users)
        same = [Tally(words=each, strips=each, accurate=each / 4, picked=1.0) for each in words]
        tallies = [each._replace(seconds=time) for each, time in zip(same, seconds, strict=True)]
        a.append(tallies)
        b.append([each._replace(seconds=each.seconds * slower[s] * draw.uniform(0.99, 1.01)) for each in tallies])
    return a, b


def test_each_change_is_that_of_its_sums() -> None:
    a, b = typed(4, 30, of_seed=0.02)
    found = crossed_changes(a, b, trained=True, cautious=CAUTIOUS)
    change = found.changes["words a minute"]
    one, other = ([[[60 * t.words, t.seconds] for t in row] for row in side] for side in (a, b))
    sums = [(np.array(each)[..., 0], np.array(each)[..., 1]) for each in (one, other)]
    assert found.covers == "seeds and clients"
    assert change.difference == crossed_difference(*sums).interval
    assert change.relative == crossed_change(*sums).interval
    assert change.cautious == crossed_difference(*sums, confidence=CAUTIOUS).interval
    assert change.a == pytest.approx(sums[0][0].sum() / sums[0][1].sum())


def test_trainings_that_differ_are_told_by_users_alone_and_not_by_both() -> None:
    """What a pair of trainings shows of 30 users says little of the next training."""
    a, b = typed(3, 30, of_seed=0.02)
    over_users = [changes_of(*pair, cautious=CAUTIOUS, resamples=500) for pair in zip(a, b, strict=True)]
    assert all(decide(gains_of(changes)).judgement in ("improved", "worse") for changes in over_users)
    crossed = crossed_changes(a, b, trained=True, cautious=CAUTIOUS)
    assert decide(gains_of(crossed.changes)).judgement == "neutral"


def test_slips_alone_are_no_trainings() -> None:
    a, b = typed(3, 40, of_seed=0.0)
    found = crossed_changes(a, b, trained=False)
    both = [[Tally(*np.sum([row[at] for row in side], axis=0)) for at in range(40)] for side in (a, b)]
    change, reference = found.changes["words a minute"], changes_of(*both)["words a minute"]
    assert found.covers == "clients"
    assert change.difference.value == pytest.approx(reference.difference.value)
    width = (change.difference.high - change.difference.low) / (reference.difference.high - reference.difference.low)
    assert 0.85 < width < 1.2


def test_of_one_training_it_is_over_users_and_what_has_no_value_is_unknown() -> None:
    a, b = typed(1, 25, of_seed=0.02)
    found = crossed_changes(a, b, trained=True)
    assert found.covers == "clients" and set(found.changes) == set(MEASURES)
    phrases = found.changes["compose picked rate"]
    assert np.isnan(phrases.a) and phrases.relative is None and not np.isfinite(phrases.difference.low)


def test_other_users_are_refused() -> None:
    a, b = typed(2, 25, of_seed=0.0)
    with pytest.raises(InputError, match=r"\[25, 25\] users typed on A and \[25, 24\] on B"):
        crossed_changes(a, [b[0], b[1][:-1]], trained=True)
