r"""Make the two texts that tacit ships, for its demo, from the repositories that they come from.

    python benchmarks/utility/shipped_corpora.py CHAT_REPOSITORY NOVELS_REPOSITORY --out src/tacit/data/shipped

CHAT_REPOSITORY: a clone of jkkummerfeld/irc-disentanglement, commit CHAT_COMMIT (messages of the channel #ubuntu, 2004
to 2018; CC BY 4.0). NOVELS_REPOSITORY: a clone of computationalstylistics/100_english_novels, commit NOVELS_COMMIT; the
novels to 1899, whose authors died more than seventy years ago, are in the public domain. Bare clones do, too. The same
bytes come of it every time; src/tacit/data/shipped/README.md says what was left out, and why.
"""

import argparse
import hashlib
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CHAT_COMMIT = "82ed04f9627a45d0d6f2ec3c8683c88eb408a0d5"
NOVELS_COMMIT = "143e601875d70e195f2cc5ebd8b034609271194d"
LAST_YEAR = 1899
PASSAGE = 120  # words at least
EVERY = 8  # of a novel's passages one is taken
MOST_WORDS = 500  # of one person
MESSAGE = re.compile(r"^\[\d\d:\d\d\] <([^>]+)> (.*)$")
ADDRESSED = re.compile(r"^[\w\[\]\\`^{}|-]+[:,] +")
# A link, an address of mail, one of the Internet, a long number.
TELLING = re.compile(r"https?://\S+|www\.\S+|\S+@\S+\.\S+|\b\d+\.\d+\.\d+\.\d+\b|\b\d{6,}\b")
BOT = re.compile(r"^(ubottu|ubotu|ubot\w*|floodbot\w*|ubuntulog\w*|ubuntuirc\w*|drone\w*|.*bot\d*)$")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")


def git(repository: Path, *words: str) -> bytes:
    """What a command of git prints."""
    found = repository / ".git"
    place = found if found.exists() else repository
    return subprocess.run(["git", f"--git-dir={place}", *words], capture_output=True, check=True).stdout


def files(repository: Path, commit: str, folder: str) -> list[str]:
    """The paths below a folder, in order."""
    return git(repository, "ls-tree", "-r", "--name-only", commit, folder).decode().splitlines()


def messages(repository: Path) -> Mapping[str, list[str]]:
    """Of each nickname, what it said, in order; who was addressed at the beginning of a message is left out."""
    said = defaultdict[str, list[str]](list)
    for path in files(repository, CHAT_COMMIT, "data"):
        if path.endswith(".raw.txt") and path.split("/")[1] in ("train", "dev", "test"):
            for line in git(repository, "show", f"{CHAT_COMMIT}:{path}").decode("utf-8", "replace").split("\n"):
                if found := MESSAGE.match(line):
                    said[found[1].lower().rstrip("_`|")].append(ADDRESSED.sub("", found[2]))
    return said


def people(said: Mapping[str, list[str]], english: set[str]) -> Iterator[tuple[str, str]]:
    """(number, message): nicknames become numbers, and are left out of what others say unless they are English words.

    The order of the numbers is that of a hash, so that it says nothing.
    """
    names = set(said) - english
    number = 0
    for name in sorted(said, key=lambda name: hashlib.sha256(b"tacit demo " + name.encode()).digest()):
        if BOT.match(name):
            continue
        kept, words = list[str](), 0
        for message in said[name]:
            plain = TELLING.sub("", message).split()
            text = " ".join(word for word in plain if word.lower().strip(".,:;!?()'\"") not in names)
            if not text or text.startswith("!"):  # a question to a bot
                continue
            if words + len(text.split()) > MOST_WORDS:
                break
            kept.append(text)
            words += len(text.split())
        if kept:
            number += 1
            yield from ((f"{number:05d}", text) for text in kept)


def novels(repository: Path) -> list[str]:
    """Passages of whole sentences, one of EVERY, novel after novel."""
    chosen = list[str]()
    for path in files(repository, NOVELS_COMMIT, "corpus"):
        if int(path.removesuffix(".txt")[-4:]) > LAST_YEAR:
            continue
        text = git(repository, "show", f"{NOVELS_COMMIT}:{path}").decode("utf-8-sig")
        passages, passage, words = list[str](), list[str](), 0
        for sentence in SENTENCE_END.split(" ".join(text.split())):
            passage.append(sentence)
            words += len(sentence.split())
            if words >= PASSAGE:
                passages.append(" ".join(passage))
                passage, words = [], 0
        chosen += passages[::EVERY]
    return chosen


def main() -> None:
    """Write both files and print what is in them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chat", type=Path)
    parser.add_argument("novels", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    public = novels(asked.novels)
    english = {word.lower().strip(".,:;!?()'\"") for text in public for word in text.split()}
    rows = list(people(messages(asked.chat), english))
    tables = {
        "novels": pa.table({"text": public}),
        "chat": pa.table({"client_id": [who for who, _ in rows], "text": [text for _, text in rows]}),
    }
    for name, table in tables.items():
        place = asked.out / f"{name}.parquet"
        pq.write_table(table, place, compression="zstd", compression_level=19)
        words = sum(len(text.split()) for text in table["text"].to_pylist())
        digest = hashlib.sha256(place.read_bytes()).hexdigest()
        print(f"{place.name}: {len(table):,} rows, {words:,} words, {place.stat().st_size:,} bytes, SHA-256 {digest}")


if __name__ == "__main__":
    main()
