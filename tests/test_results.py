"""Result pages say what was measured: tables follow from remembered rows, findings from the pages that they link."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import REPOSITORY
from tests.support.pages import FENCE

DOCS = REPOSITORY / "docs"
RESULTS = DOCS / "results"
FINDINGS = RESULTS / "README.md"
PAGES = sorted(RESULTS.glob("*.md"))
WITH_ROWS = sorted(page for page in DOCS.rglob("*.md") if "<!-- remembered:" in page.read_text(encoding="utf-8"))
TABLE = re.compile(r"^\|[-:| ]*-[-:| ]*\|$", re.MULTILINE)  # the line under its head
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+\.md)(?:#[^)\s]*)?\)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SIGNED = re.compile(r"(?<![\w.])[+-]\d+\.\d+")

# Tables that no remembered row is behind: how many a page has, and what printed them (scripts of benchmarks/). They
# were measured before rows were remembered. A number here may fall, and no page may be added: remember the rows of
# what is measured anew (benchmarks/utility/remembered_rows.py).
NOT_REMEMBERED: dict[str, tuple[int, str]] = {
    "README.md": (1, "what other experiments would cost; nothing is measured in it"),
    "adaptive-clipping.md": (1, "utility/adaptive_clipping_on_text.py"),
    "blogs.md": (3, "utility/federated_against_central.py"),
    "demo.md": (3, "utility/demo_settings.py"),
    "deployment.md": (8, "deployment/deployment_load.py"),
    "dictionary.md": (4, "keyboard/keyboard_engine.py"),
    "first-hour.md": (7, "by hand: people at a terminal"),
    "local-steps.md": (3, "utility/local_steps.py"),
    "mixture.md": (3, "tacit train"),
    "network-beside-n-gram.md": (5, "utility/next_word.py"),
    "next-word.md": (2, "utility/next_word.py"),
    "noise-forecast.md": (6, "utility/noise_against_signal.py"),
    "on-a-device.md": (4, "utility/own_cache.py"),
    "paper-1-findings.md": (3, "utility/paper_1_findings.py"),
    "paper-figures.md": (10, "papers/paper_figures.py"),
    "papers-tables.md": (9, "papers/reproduce_papers_tables.py"),
    "personalization.md": (6, "utility/personalization_on_text.py"),
    "pretraining.md": (3, "utility/pretraining_saves_rounds.py"),
    "quantized.md": (3, "utility/quantized_models.py"),
    "realised-participation.md": (1, "utility/realised_participation.py"),
    "same-as-before.md": (3, "same_as_before.py"),
    "signal-to-noise.md": (2, "utility/signal_to_noise.py"),
    "spanish.md": (5, "utility/spanish_novels.py"),
    "speed.md": (15, "speed/simulation_throughput.py"),
    "tuning.md": (1, "tacit tune"),
    "typing.md": (10, "keyboard/typing_ab.py"),
    "utility.md": (11, "utility/utility_of_mechanisms.py"),
    "vocabulary-size.md": (5, "utility/vocabulary_size.py"),
    "word-discovery.md": (11, "utility/word_discovery.py"),
}


def tables(text: str) -> int:
    """How many tables of Markdown it has, those of code left out."""
    return len(TABLE.findall(FENCE.sub("", text)))


def numbers(text: str) -> set[str]:
    """All that it names, without signs and commas in thousands; links' targets are no text."""
    return {found.replace(",", "") for found in NUMBER.findall(re.sub(r"\]\([^)]*\)", "]", text))}


def findings(text: str) -> list[str]:
    """The numbered ones, and every paragraph besides that links a page."""
    parts = re.split(r"\n\n|\n(?=\d+\. )", text)
    return [part for part in parts if LINK.search(part) and not part.startswith(("#", "|"))]


def unfounded(finding: str, folder: Path) -> set[str]:
    """The numbers of a finding that stand on none of the pages that it links."""
    named = re.sub(r"^\d+\. ", "", finding)
    pages = {folder / target for target in LINK.findall(named)}
    return numbers(named) - set().union(*(numbers(page.read_text(encoding="utf-8")) for page in pages))


def unshown(text: str, rows: ModuleType) -> set[str]:
    """The gains and losses that the words of a page name and its remembered tables do not have."""
    shown = "".join(found["shown"] for found in rows.TABLE.finditer(text))
    words = FENCE.sub("", rows.TABLE.sub("", text))
    return set(SIGNED.findall(words)) - set(SIGNED.findall(shown))


@pytest.fixture(scope="module")
def rows() -> Iterator[ModuleType]:
    """What makes remembered tables, found as where it is run from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))
        yield importlib.import_module("remembered_rows")


@pytest.mark.parametrize("page", WITH_ROWS, ids=lambda page: page.name)
def test_remembered_tables_are_those_of_the_rows(page: Path, rows: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    again = f"run `python benchmarks/utility/remembered_rows.py {page.relative_to(REPOSITORY)}`"
    assert text == rows.rendered(text), f"a table is not that of its remembered rows; {again}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_table_is_new_without_remembered_rows(page: Path, rows: ModuleType) -> None:
    measured = tables(rows.TABLE.sub("", page.read_text(encoding="utf-8")))
    allowed, _ = NOT_REMEMBERED.get(page.name, (0, ""))
    assert measured <= allowed, f"{measured} tables have no remembered rows, {allowed} are allowed: remember their rows"
    assert measured == allowed, f"write {measured} for {page.name} in NOT_REMEMBERED: it may only fall"


def test_what_prints_the_tables_is_there() -> None:
    scripts = [printed for _, printed in NOT_REMEMBERED.values() if printed.endswith(".py")]
    assert all((REPOSITORY / "benchmarks" / script).is_file() for script in scripts), scripts
    assert {page.name for page in PAGES} >= NOT_REMEMBERED.keys(), "a page that is gone has no tables"


def test_differences_in_words_stand_in_the_tables(rows: ModuleType) -> None:
    """Of pages whose tables are all remembered: what the text says of a gain is what a row says."""
    for page in PAGES:
        if page.name not in NOT_REMEMBERED:
            missing = unshown(page.read_text(encoding="utf-8"), rows)
            assert not missing, f"no remembered row of {page.name} has {sorted(missing)}"


@pytest.mark.parametrize("finding", findings(FINDINGS.read_text(encoding="utf-8")), ids=lambda finding: finding[:30])
def test_numbers_of_a_finding_stand_on_its_pages(finding: str) -> None:
    assert not (missing := unfounded(finding, RESULTS)), f"no page that is linked has {sorted(missing)}"


# -- whether these tests can fail ----------------------------------------------------------------------------------


def test_a_finding_with_a_figure_of_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("Of 6,131 people +0.46 (0.25 to 0.67).", encoding="utf-8")
    right, wrong = "1. Gains 0.46 of 6131 ([page](page.md#of-99)).", "1. Gains 0.47 ([page](page.md))."
    assert findings(f"# Title\n\nNo link, 7.\n\n{right}\n{wrong}\n") == [right, f"{wrong}\n"]
    assert (unfounded(right, tmp_path), unfounded(wrong, tmp_path)) == (set(), {"0.47"})


def test_tables_of_code_and_of_rows_are_not_counted(rows: ModuleType) -> None:
    one = "| a | b |\n|---|--:|\n| 1 | 2 |\n"
    remembered = f"<!-- remembered: by_arm some.jsonl -->\n\n{one}\n<!-- end -->\n"
    text = f"{one}\n```text\n{one}```\n\n{remembered}\n{one}"
    assert (tables(text), tables(rows.TABLE.sub("", text))) == (3, 2)


def test_a_gain_that_no_row_has_is_found(rows: ModuleType) -> None:
    table = "<!-- remembered: by_arm some.jsonl -->\n\n| a |\n|---|\n| +0.46 (-0.10 to +0.67) |\n\n<!-- end -->\n"
    assert unshown(f"It gains +0.46 (-0.10 to +0.67).\n\n{table}", rows) == set()
    assert unshown(f"It gains +0.47 (-0.10 to +0.67).\n\n{table}", rows) == {"+0.47"}
