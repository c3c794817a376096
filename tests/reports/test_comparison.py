"""Two runs side by side: what differs, at which price, and what cannot be compared."""

from pathlib import Path

from tests.made_runs import write_adaptive_run, write_run

from tacit.jobs.report import compare, report
from tacit.privacy import Tree
from tacit.privacy.strategy import PUBLISHED_BLT


def test_compare_shows_what_differs(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", strategy=Tree(), name="tree")
    b = write_run(tmp_path / "b", strategy=PUBLISHED_BLT["b400"], name="blt", rounds=10)
    both = compare(a, b)
    shown = both.to_record()
    assert shown["figure"] == str(a / "simulation" / "compare-b.png")
    assert Path(shown["figure"]).read_bytes().startswith(b"\x89PNG")
    assert shown["settings"] == {"name": {"a": "tree", "b": "blt"}, "rounds.rounds": {"a": 20, "b": 10}}
    equal = [name for name in shown["accuracy"] if name.startswith("top-1, validation")]
    assert equal == [f"top-1, validation, after {rounds} rounds" for rounds in (0, 5, 10)]
    assert shown["privacy"]["zCDP, realised"]["a"] == report(a).to_record()["realised"]["zcdp"]
    assert shown["privacy"]["epsilon, planned"]["b"] == report(b).to_record()["planned"]["epsilon"]
    assert shown["warnings"] == []
    for words in ("Settings that differ", "rounds.rounds", "MaxP, realised", "tree", "blt"):
        assert words in both._repr_html_()


def test_compare_says_what_cannot_be_compared(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", strategy=None)
    data = {
        "cache": "c",
        "source": "s",
        "vocabulary_sha256": "1",
        "vocabulary_size": 9,
        "clients": 3,
        "cache_digest": "2",
    }
    b = write_run(tmp_path / "b", strategy=Tree(), done=0, data=data, delta=1e-6)
    both = compare(a, b, out=tmp_path / "figures")
    shown = both.to_record()
    assert shown["figure"] == str(tmp_path / "figures" / "compare-b.png")
    notes = "\n".join(shown["warnings"])
    for words in ("NON-PRIVATE", "NOTHING RELEASED YET", "different caches", "vocabularies", "delta 1e-10"):
        assert words in notes
    assert shown["privacy"]["zCDP, realised"] == {"a": float("inf"), "b": None}
    assert next(row for row in both.privacy if row.name == "zCDP, realised").cells[1:] == ("infinite", "-")


def test_the_price_is_that_of_everything_released(tmp_path: Path) -> None:
    a, b = write_adaptive_run(tmp_path / "a"), write_run(tmp_path / "b", strategy=Tree())
    assert compare(a, b).to_record()["privacy"]["zCDP, realised"]["a"] == report(a).to_record()["realised"]["zcdp"]
