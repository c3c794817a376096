"""`tacit.account`: one price, the others follow; and the times of rounds as logs have them."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.jobs.account.job import account, participation_in_log, read_round_times
from tacit.jobs.design import design_mechanism
from tacit.privacy import Guarantee, Participation, Tree
from tacit.privacy.measured_participation import timed_participation

SERVED = Participation.from_rounds_between(rounds=2000, rounds_between=313, max_participations=6)
BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
ZONES = (str, lambda when: when.isoformat(), lambda when: when.strftime("%Y-%m-%dT%H:%M:%SZ"))


def test_whichever_cost_is_given_the_others_follow() -> None:
    made = account(Tree(), SERVED, noise_multiplier=7.0)  # tests/golden/tree_tables.json, "colab"
    assert made == Guarantee(participation=SERVED, strategy=Tree(), clip_norm=1.0, noise_multiplier=7.0)
    assert made.zcdp == pytest.approx(0.806122, abs=5e-7)
    assert account(Tree(), SERVED, zcdp=made.zcdp).noise_multiplier == pytest.approx(7.0, rel=1e-12)
    cost = account(Tree(), SERVED, epsilon=made.epsilon(1e-8), delta=1e-8)
    assert cost.noise_multiplier == pytest.approx(7.0, rel=1e-9)


def test_encoding_lengthens_contributions() -> None:
    plain, encoded = (account(Tree(), SERVED, noise_multiplier=7.0, clip_inflation=factor) for factor in (1.0, 1.01))
    assert encoded.zcdp == pytest.approx(plain.zcdp * 1.01**2, rel=1e-12)


@pytest.mark.parametrize("costs", [{}, {"zcdp": 1.0, "epsilon": 2.0}, {"noise_multiplier": 1.0, "zcdp": 1.0}])
def test_there_is_one_cost(costs: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{len(costs)} of noise_multiplier, zcdp and epsilon"):
        account(Tree(), SERVED, **costs)  # type: ignore[arg-type]


def write(path: Path, times: list[Any], first: int = 0) -> Path:
    path.write_text("\n".join(["round,finished", *(f"{first + at},{time}" for at, time in enumerate(times))]) + "\n")
    return path


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("written", [*ZONES, lambda when: when.timestamp()])
def test_times_as_people_and_programs_write_them(tmp_path: Path, written: Any, first: int) -> None:
    times = [BEGIN + timedelta(hours=at) for at in range(200)]
    path = write(tmp_path / "rounds.csv", [written(time) for time in times], first)
    assert read_round_times(path) == [time.timestamp() for time in times]


MADRID = ZoneInfo("Europe/Madrid")
CHANGED = datetime(2026, 10, 25, 1, tzinfo=UTC)  # clocks of Madrid go from 3 to 2


def shown(when: datetime) -> str:
    """What a clock on the wall shows."""
    return when.astimezone(MADRID).replace(tzinfo=None).isoformat()


def test_times_without_a_zone_are_not_taken_for_utc(tmp_path: Path) -> None:
    """A round an hour, a timer of 24: the day of 25 hours that clocks show has 25 rounds, and the timer leaves 24."""
    times = [CHANGED + timedelta(hours=at) for at in range(-15, 11)]
    as_utc = [datetime.fromisoformat(shown(time)).replace(tzinfo=UTC).timestamp() for time in times]
    assert timed_participation(as_utc, timer=24 * 3600).min_separation == 25
    assert timed_participation([time.timestamp() for time in times], timer=24 * 3600).min_separation == 24
    path = write(tmp_path / "rounds.csv", [shown(time) for time in times])
    with pytest.raises(InputError, match=r"line 2 of .*'2026-10-24T12:00:00' says no time zone.*--time-zone Europe"):
        read_round_times(path)
    with pytest.raises(InputError, match=r"line 16 of .*Europe/Madrid showed 2026-10-25 02:00:00 twice.*\+01:00 say"):
        read_round_times(path, time_zone="Europe/Madrid")
    written = [
        time.astimezone(MADRID).isoformat() if abs(time - CHANGED) <= timedelta(hours=1) else shown(time)
        for time in times
    ]
    path = write(tmp_path / "rounds.csv", written)
    assert read_round_times(path, time_zone="Europe/Madrid") == [time.timestamp() for time in times]
    assert participation_in_log(path, timer=24 * 3600, clock="finish", time_zone="Europe/Madrid").min_separation == 24


@given(begin=st.integers(0, 400 * 24), hours=st.lists(st.integers(0, 30), min_size=1, max_size=30))
def test_clocks_of_a_zone_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, begin: int, hours: list[int]
) -> None:
    """Whatever the season: the moments come back, but for those that a clock shows twice."""
    times = [BEGIN + timedelta(hours=begin + sum(hours[:at])) for at in range(len(hours))]
    path = write(tmp_path_factory.mktemp("log") / "rounds.csv", [shown(time) for time in times])
    twice = [shown(time) in (shown(time + timedelta(hours=1)), shown(time - timedelta(hours=1))) for time in times]
    if any(twice):
        with pytest.raises(InputError, match=f"line {twice.index(True) + 2} of .* twice"):
            read_round_times(path, time_zone="Europe/Madrid")
    else:
        assert read_round_times(path, time_zone="Europe/Madrid") == [time.timestamp() for time in times]


def test_what_clocks_never_showed_and_zones_that_are_none(tmp_path: Path) -> None:
    path = write(tmp_path / "rounds.csv", ["2026-03-29T02:30:00"])
    with pytest.raises(InputError, match="showed 2026-03-29 02:30:00 never"):
        read_round_times(path, time_zone="Europe/Madrid")
    for name in ("Europe/Nowhere", "/etc/passwd", "../zone", "", "Europe", "a\0b", "\udc80"):
        with pytest.raises(InputError, match=r"the time zone .* is unknown here"):
            read_round_times(path, time_zone=name)
    assert read_round_times(path, time_zone="UTC") == [datetime(2026, 3, 29, 2, 30, tzinfo=UTC).timestamp()]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "begins with the columns []"),
        ("round,time\n0,1\n", "columns ['round', 'time']"),
        ("round,round,finished\n0,0,1\n", "columns"),
        ("round,finished\n", "holds no round"),
        ("round,finished\n0,10\n2,20\n", "line 3 of"),
        ("round,finished\n0,10\n2,20\n", "is round 2 where 1 belongs"),
        ("round,finished\n1,10\n1,20\n", "is round 1 where 2 belongs"),
        ("round,finished\n5,10\n", "is round 5 where 0 or 1 belongs"),
        ("round,finished\n1,10\n0,5\n", "is round 0 where 2 belongs"),
        ("round,finished\n0,10\n1,5\n", "finished before the round before it"),
        ("round,finished\n0,yesterday\n", "neither ISO 8601 nor Unix seconds"),
        ("round,finished\n0,nan\n", "is not a moment"),
        ("round,finished\n0,1777636800000\n", "divide all times by 1,000"),
        ("round,finished\n0.5,10\n", "'0.5' is not a whole number"),
        ("round,finished\n0\n", "has 1 columns"),
    ],
)
def test_a_log_that_cannot_be_trusted_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "rounds.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(complaint)):
        read_round_times(path)


def test_a_log_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no log of rounds"):
        read_round_times(tmp_path / "rounds.csv")
    (tmp_path / "rounds.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match="not CSV in UTF-8"):
        read_round_times(tmp_path / "rounds.csv")


@pytest.mark.parametrize("header", ["Round,Finished", "\ufefffinished , round", "cohort,round,finished"])
def test_headers_as_people_write_them(tmp_path: Path, header: str) -> None:
    cells = {"round": ["0", "1"], "finished": ["10", "20"], "cohort": ["5", "5"]}
    names = [name.strip().strip("\ufeff").lower() for name in header.split(",")]
    lines = [",".join(cells[name][at] for name in names) for at in range(2)]
    path = tmp_path / "rounds.csv"
    path.write_text("\n".join([header, *lines, "", ""]), encoding="utf-8")
    assert read_round_times(path) == [10.0, 20.0]


def test_a_mechanisms_name_is_no_strategy_and_is_told_how_to_become_one() -> None:
    plan = Participation(rounds=16, min_separation=8, max_participations=2)
    with pytest.raises(
        InputError, match=r"strategy='tree' is a name; .*tacit\.design_mechanism\('tree', participation\)"
    ):
        account("tree", plan, noise_multiplier=1.0)  # type: ignore[arg-type]
    made = design_mechanism("tree", plan).strategy
    assert made is not None and account(made, plan, noise_multiplier=1.0).zcdp > 0
