"""Small files as the programs of others write them, for the tests of what reads them."""

import gzip
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

JSON_LINES = (
    b'{"client_id": "ann", "text": "good morning", "timestamp": 30, "n": [1, {"a": null}]}\n'
    b'{"client_id": "bob", "text": "caf\\u00e9 \\ud83d\\ude00", "timestamp": "2024-05-01T12:00:00Z"}\n'
    b'{"client_id": "ann", "text": null}\n'
)
CSV = b'client_id,text,timestamp\r\nann,"good, ""morning""\r\nthere",30\r\nbob,caf\xc3\xa9,\r\n'
TSV = b'client_id\ttext\nann\tgood morning\nbob\t"a\ttab"\n'
WHATSAPP = (
    "\u200e[31.12.20, 22:15:30] Family: \u200eMessages and calls are end-to-end encrypted.\n"
    "[31.12.20, 22:15:31] Ann: hello\nthere: friend\n"
    "[31.12.20, 22:16:00] +34 600 00 00 00: ok 😀\n"
    "\u200e[01.01.21, 00:00:01] Ann: \u200eimage omitted\n"
    "[01.01.21, 00:00:02] Ann: happy new year\n"
).encode()
TELEGRAM = json.dumps(
    {
        "about": "Here is the data you requested.",
        "personal_information": {"user_id": 1},
        "chats": {
            "about": "This page lists all chats.",
            "list": [
                {
                    "name": "Bob",
                    "type": "personal_chat",
                    "id": 2,
                    "messages": [
                        {"id": 1, "type": "service", "date": "2020-01-01T00:00:00", "actor": "Ann", "action": "pin"},
                        {
                            "id": 2,
                            "type": "message",
                            "date": "2020-01-01T10:00:00",
                            "date_unixtime": "1577872800",
                            "from": "Ann",
                            "from_id": "user1",
                            "text": ["see ", {"type": "link", "text": "example.org"}, " now"],
                        },
                        {"id": 3, "type": "message", "from": "Bob", "from_id": "user2", "text": "I\nsee"},
                        {"id": 4, "type": "message", "from": "Bob", "from_id": "user2", "text": "", "photo": "a.jpg"},
                        {"id": 5, "type": "message", "from_id": "user2", "text": "news", "forwarded_from": "Daily"},
                    ],
                },
                {
                    "name": "A bot",
                    "type": "bot_chat",
                    "id": 9,
                    "messages": [
                        {"id": 1, "type": "message", "from_id": "user9", "text": "I am a bot"},
                        {"id": 2, "type": "message", "from_id": "user1", "text": "hello bot"},
                    ],
                },
            ],
        },
        "left_chats": {"list": [{"messages": [{"type": "message", "from_id": "channel7", "text": "a post"}]}]},
    },
    indent=1,
).encode()
MBOX = (
    b"From ann@example.org Mon Jan  1 00:00:00 2024\r\n"
    b"From: =?utf-8?q?Ann_=C3=89?= <Ann@Example.org>\r\nDate: Mon, 1 Jan 2024 01:00:00 +0100\r\n"
    b"Subject: hello\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n"
    b"\r\nThe caf=E9 is\r\nopen.\r\n\r\nFrom here on:\r\n>From now\r\n\r\n"
    b"On 1 Jan 2024, Bob <bob@example.org> wrote:\r\n"
    b"> is it?\r\n> yes\r\nIt is.\r\n-- \r\nAnn\r\n\r\n"
    b"From bob@example.org Mon Jan  1 00:00:00 2024\n"
    b"From: bob@example.org\nDate: never\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/alternative; boundary="b"\n\n'
    b"--b\nContent-Type: text/html; charset=utf-8\n\n<p>No &amp; <b>never</b></p><blockquote>what?</blockquote>\n"
    b"--b\nContent-Type: image/png\nContent-Disposition: attachment\n"
    b"Content-Transfer-Encoding: base64\n\nAAAA\n--b--\n\n"
    b"From robot Mon Jan  1 00:00:00 2024\nFrom: robot@example.org\nAuto-Submitted: auto-replied\n\nI am away.\n"
)
LEAF = json.dumps(
    {
        "users": ["ROMEO", "ann"],
        "num_samples": [3, 2],
        "user_data": {
            "ROMEO": {"x": ["But so", "ut sof", "Again!"], "y": ["f", "t", ""]},
            "ann": {
                "x": [[["<BOS>", "good", "morning"], ["all", "<EOS>", "<PAD>"]], [["fine", "<EOS>"]]],
                "y": [{"target_tokens": [["good"]]}, {}],
            },
            "bob": {"x": [["1", "Mon Apr 06 22:19:45 PDT 2009", "NO_QUERY", "bob", "is upset", "x"]], "y": [0]},
        },
    }
).encode()


def sqlite_bytes() -> bytes:
    """A database of two posts."""
    with tempfile.TemporaryDirectory() as folder:
        with closing(sqlite3.connect(Path(folder) / "a.db")) as connection, connection:
            connection.execute("CREATE TABLE posts (author TEXT, body TEXT, at INTEGER)")
            connection.executemany("INSERT INTO posts VALUES (?, ?, ?)", [("ann", "good", 30), ("bob", "café", None)])
        return (Path(folder) / "a.db").read_bytes()


def arrow_bytes(*, stream: bool) -> bytes:
    """A table of three rows as an Arrow file or stream."""
    table = pa.table({"client_id": ["ann", "bob", "ann"], "text": ["good", "café", None], "timestamp": [30, None, 20]})
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


# How each is opened, and what it is called.
EXPORTS: dict[str, tuple[str, str, bytes, dict[str, str]]] = {
    "json lines": ("jsonl", "a.jsonl", JSON_LINES, {}),
    "json lines, packed": ("jsonl", "a.jsonl.gz", gzip.compress(JSON_LINES), {}),
    "csv": ("csv", "a.csv", CSV, {}),
    "csv in UTF-16": ("csv", "a.csv", CSV.decode().encode("utf-16"), {"encoding": "utf-16"}),
    "tsv": ("tsv", "a.tsv", TSV, {}),
    "tsv, quotes are text": ("tsv", "a.tsv", TSV.replace(b"\ttab", b" tab"), {"quotes": "none"}),
    "whatsapp": ("whatsapp", "a.txt", WHATSAPP, {"time_zone": "Europe/Madrid"}),
    "telegram": ("telegram", "result.json", TELEGRAM, {"time_zone": "UTC"}),
    "mbox": ("mbox", "a.mbox", MBOX, {}),
    "leaf": ("leaf", "a.json", LEAF, {}),
    "sqlite": ("sqlite", "a.db", sqlite_bytes(), {"query": "SELECT author client_id, body text FROM posts"}),
    "an arrow file": ("arrow", "a.arrow", arrow_bytes(stream=False), {}),
    "an arrow stream": ("arrow", "a.arrow", arrow_bytes(stream=True), {}),
}
