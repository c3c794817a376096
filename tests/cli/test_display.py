"""What a user sees while a job works: lines where no terminal is, bars where one is, warnings always."""

import re
from collections.abc import Iterator
from io import BytesIO, StringIO, TextIOWrapper

import pytest

from tacit.cli import display as displays
from tacit.cli.console import Terminal
from tacit.cli.display import Display, display, shown
from tacit.progress import COMPILING, Advanced, Evaluated, StageBegan, StageEnded, Warned


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    """Standard error, no terminal."""
    text = StringIO()
    monkeypatch.setattr(displays, "complaints", Terminal(file=text, width=200))
    return text


def events() -> Iterator[object]:
    yield StageBegan("training", 40)
    for done in range(1, 41):
        yield Advanced("training", done, {"clients_per_second": 12.0, "zcdp": 0.5, "epsilon": 3.0, "delta": 1e-6})
        if done == 20:
            yield Evaluated(20, "validation", {"top1_accuracy": 0.125, "words": 9.0})
    yield Warned("no progress", "lower [clipping] initial")
    yield StageEnded("training")


def test_a_line_for_each_tenth_and_each_evaluation(seen: StringIO) -> None:
    with display() as progress:
        for event in events():
            progress(event)  # type: ignore[arg-type]
    lines = seen.getvalue().splitlines()
    assert len(lines) == 10 + 1 + 1
    assert lines[0] == "training: 4 of 40  12.0 clients/s  zCDP 0.5  epsilon 3 (delta 1e-06)"
    assert lines[5] == "round 20/40 (validation): accuracy 12.50%"
    assert lines[-1] == "warning: lower [clipping] initial"


def test_of_a_stage_that_is_one_of_many_its_end_is_a_line(seen: StringIO) -> None:
    with display() as progress:
        for trial in (1, 2):
            progress(StageBegan(f"trial {trial}/2", 40, part=True))
            for done in range(1, 41):
                progress(Advanced(f"trial {trial}/2", done, {"zcdp": 0.5}))
            progress(Evaluated(40, "validation", {"top1_accuracy": 0.125}))
            progress(StageEnded(f"trial {trial}/2"))
    assert seen.getvalue().splitlines() == [f"trial {trial}/2: 40 of 40  accuracy 12.50%  zCDP 0.5" for trial in (1, 2)]


def test_what_takes_long_before_the_first_step_is_said_until_then(seen: StringIO) -> None:
    with display() as progress:
        progress(StageBegan("training", 2, opening=COMPILING))
        progress(Advanced("training", 1, {"zcdp": 0.5}))
    assert seen.getvalue().splitlines() == [f"training: {COMPILING}", "training: 1 of 2  zCDP 0.5"]


def test_a_bar_says_it_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(displays, "complaints", Terminal(file=StringIO(), width=80, force_terminal=True))
    with display() as progress:
        progress(StageBegan("training", 2, opening=COMPILING))
        (task,) = progress._bars.tasks  # type: ignore[attr-defined]
        assert task.fields["shown"] == COMPILING
        progress(Advanced("training", 1, {"zcdp": 0.5}))
        assert task.fields["shown"] == "zCDP 0.5"


def test_a_bar_says_what_is_left_only_where_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a stage that ended is whole, though fewer came than were expected, or nothing is counted in it."""
    text = StringIO()
    terminal = Terminal(file=text, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(displays, "complaints", terminal)
    with display() as progress:
        progress(StageBegan("tokenising clients", 8625))
        progress(StageBegan("measuring"))
        progress(Advanced("tokenising clients", 6715))
        bars = progress._bars  # type: ignore[attr-defined]
        terminal.print(bars.make_tasks_table(bars.tasks))
        progress(StageEnded("tokenising clients"))
        progress(StageEnded("measuring"))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    assert " left " in next(line for line in lines if "6715/8625" in line)
    *_, whole = (line for line in lines if "tokenising" in line)
    assert re.search(r"6715/6715 \d:\d\d:\d\d$", whole)
    uncounted = [line for line in lines if "measuring" in line]
    assert uncounted and all(re.search(r"━ +\d:\d\d:\d\d$", line) for line in uncounted)


def test_quiet_says_warnings_only(seen: StringIO) -> None:
    with display(quiet=True) as progress:
        for event in events():
            progress(event)  # type: ignore[arg-type]
    assert seen.getvalue() == "warning: lower [clipping] initial\n"


def test_bars_on_a_terminal_show_figures_and_leave_the_screen_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = StringIO()
    terminal = Terminal(file=text, width=160, force_terminal=True, color_system=None)
    monkeypatch.setattr(displays, "complaints", terminal)
    with display() as progress:
        for event in events():
            progress(event)  # type: ignore[arg-type]
    assert "40/40" in text.getvalue() and "12.0 clients/s" in text.getvalue() and "accuracy 12.50%" in text.getvalue()


def test_no_noise_is_called_non_private_and_unknown_figures_are_left_out() -> None:
    assert shown({"zcdp": float("inf"), "epsilon": float("inf"), "temperature": 3.0}) == "NON-PRIVATE"
    assert shown({"clip_norm": 1.0, "clip_estimate": 0.5}) == "clip norm 1 (estimate 0.5)"


def test_a_stage_without_a_total_is_counted(seen: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(displays, "PATIENCE", -1.0)
    with display() as progress:
        progress(StageBegan("reading"))
        progress(Advanced("reading", 1200))
    assert seen.getvalue() == "reading: 1,200\n"


def test_bars_and_figures_fit_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, counts, times and every figure can be read; nothing is cut off."""
    monkeypatch.setattr(displays, "complaints", Terminal(file=StringIO(), width=80, force_terminal=True))
    bars = displays._bars()
    progress = Display(bars)  # drawn once and not live
    progress(StageBegan("counting words that are", 8614))
    progress(StageBegan("training", 2000))
    figures = {"clients_per_second": 120.0, "top1_accuracy": 0.125, "zcdp": 0.51234, "epsilon": 3.1234, "loss": 3.0}
    progress(Advanced("training", 1200, {**figures, "delta": 1e-10, "clip_norm": 0.3, "clip_estimate": 0.22}))
    with displays.complaints.capture() as drawn:
        displays.complaints.print(bars.get_renderable())
    lines = drawn.get().splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in drawn.get()
    assert "0/8614" in lines[0] and "1200/2000" in lines[1] and lines[1].split()[-1] == "-:--:--"
    assert " ".join(lines[2:]).split() == shown(progress._figures["training"]).split()


def test_a_terminal_that_cannot_draw_over_what_it_drew_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """With bars it would show nothing before the end."""
    monkeypatch.setenv("TERM", "dumb")
    text = StringIO()
    monkeypatch.setattr(displays, "complaints", Terminal(file=text, width=80, force_terminal=True))
    with display() as progress:
        progress(StageBegan("training", 2))
        progress(Advanced("training", 1, {"zcdp": 0.5}))
        assert text.getvalue() == "training: 1 of 2  zCDP 0.5\n"


def test_bars_are_drawn_in_signs_that_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    content = BytesIO()
    there = Terminal(file=TextIOWrapper(content, encoding="latin-1"), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(displays, "complaints", there)
    with display() as progress:
        progress(StageBegan("ñ … ☕", 2))
        progress(Advanced("ñ … ☕", 1))
    there.file.flush()
    assert "ñ ... \\u2615 -" in content.getvalue().decode("latin-1")
