"""Public Spanish text for the Spanish chain: the beginnings of the novels of conha19, a paragraph a row.

The corpus is GitHub's cligs/conha19 (Spanish-American novels of 1830 to 1910, Public Domain Mark 1.0); FOLDER is the
`txt` of a clone. The results page is of commit d5def0a3b590: 237 texts, 4,724,525 words.

    python benchmarks/utility/spanish_novels.py conha19/txt --out novels-es.parquet
"""

import argparse
from pathlib import Path

import pyarrow
import pyarrow.parquet

WORDS = 20_000  # of each text; the paragraph that reaches them is the last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    texts = sorted(asked.folder.glob("*.txt"))
    if not texts:
        raise SystemExit(f"there is no .txt in '{asked.folder}'; give the folder txt of a clone of cligs/conha19.")
    rows = [paragraph for text in texts for paragraph in beginning(text.read_text(encoding="utf-8"), WORDS)]
    pyarrow.parquet.write_table(pyarrow.table({"text": rows}), asked.out)
    print(f"{len(texts)} texts, {sum(len(row.split()) for row in rows):,} words, {len(rows):,} paragraphs: {asked.out}")


def beginning(text: str, words: int) -> list[str]:
    """The first paragraphs (lines) that together have at least so many words, or all; empty ones are left out."""
    chosen: list[str] = []
    so_far = 0
    for paragraph in text.splitlines():
        if so_far >= words:
            break
        if count := len(paragraph.split()):
            chosen.append(paragraph)
            so_far += count
    return chosen


if __name__ == "__main__":
    main()
