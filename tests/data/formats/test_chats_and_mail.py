"""Chats of WhatsApp and Telegram, mail and LEAF: whose text it is, what they typed themselves, and what is left out."""

import json
import mailbox
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from tests.data.formats.exports import LEAF, MBOX, TELEGRAM, WHATSAPP

from tacit.data import open_source
from tacit.data.clients import Source
from tacit.errors import SourceError


def source(folder: Path, name: str, content: str | bytes, **how: str) -> Source:
    (folder / name.rpartition(":")[2]).write_bytes(content if isinstance(content, bytes) else content.encode())
    kind, colon, file = name.rpartition(":")
    return open_source(f"{kind}{colon}{folder / file}", **how)  # type: ignore[arg-type]


def texts(source: Source) -> list[list[str]]:
    """Each client's, in an order that no pseudonym decides."""
    return sorted(list(client.texts) for client in source.clients())


def times(source: Source) -> list[int]:
    return sorted(int(at) for each in source.clients() for at in (() if each.timestamps is None else each.timestamps))


def no_name_of(source: Source, people: Iterable[str]) -> bool:
    return not any(person in client.client_id for person in people for client in source.clients())


class TestWhatsApp:
    def test_what_people_typed(self, tmp_path: Path) -> None:
        opened = source(tmp_path, "whatsapp:chat.txt", WHATSAPP)
        assert texts(opened) == [["hello\nthere: friend", "happy new year"], ["ok 😀"]]
        assert opened.left_out == {"media and notices of the system": 2}
        assert times(opened) == [-(2**63)] * 3 and no_name_of(opened, ["Ann", "600"])

    def test_times_in_the_zone_of_the_phone(self, tmp_path: Path) -> None:
        opened = source(tmp_path, "whatsapp:chat.txt", WHATSAPP, time_zone="Europe/Madrid")
        assert times(opened) == [1609449331, 1609449360, 1609455602]

    @pytest.mark.parametrize(
        "begins",
        [
            ("12/31/20, 10:15 PM - ", "1/13/21, 9:05 AM - "),
            ("12/31/20, 10:15\u202fPM - ", "1/13/21, 9:05\u202fAM - "),
            ("31/12/2020, 22:15 - ", "13/01/2021, 09:05 - "),
            ("31/12/20 22:15 - ", "13/1/21 9:05 - "),
            ("31/12/20, 10:15 p. m. - ", "13/1/21, 9:05 a. m. - "),
            ("31/12/20, 10:15 p.\u00a0m. - ", "13/1/21, 9:05 a.\u00a0m. - "),
            ("31.12.20, 22:15 - ", "13.01.21, 09:05 - "),
            ("31/12/2020 à 22:15 - ", "13/01/2021 à 09:05 - "),
            ("2020-12-31, 22:15 - ", "2021-01-13, 09:05 - "),
            ("2020/12/31, 22:15 - ", "2021/01/13, 09:05 - "),
            ("31-12-2020 22:15 - ", "13-01-2021 09:05 - "),
            ("2020. 12. 31. 오후 10:15 - ", "2021. 1. 13. 오전 9:05 - "),
            ("2020/12/31 下午10:15 - ", "2021/1/13 上午9:05 - "),
            ("٣١/١٢/٢٠٢٠، ١٠:١٥ م - ", "١٣/١/٢٠٢١، ٩:٠٥ ص - "),
            ("31/12/2020, 22.15 - ", "13/01/2021, 09.05 - "),
            ("[31.12.20, 22:15:00] ", "[13.01.21, 09:05:00] "),
            ("[31/12/2020, 22:15:00] ", "[13/01/2021, 09:05:00] "),
            ("[12/31/20, 10:15:00 PM] ", "[1/13/21, 9:05:00\u202fAM] "),
            ("\u200e[31/12/20 22:15:00] ", "[13/1/21 9:05:00] "),
            ("[2020/12/31 下午10:15:00] ", "[2021/1/13 上午9:05:00] "),
            ("[31/12/20, 10:15:00 p.\u00a0m.] ", "[13/1/21, 9:05:00 a.\u00a0m.] "),
            ("[2020-12-31, 22:15:00] ", "[2021-01-13, 09:05:00] "),
        ],
    )
    def test_forms_of_dates_in_many_locales(self, begins: tuple[str, str], tmp_path: Path) -> None:
        first, second = begins
        content = f"{first}Ann: one: two\n{second}Bob: three\nand 12:30 - four\n"
        opened = source(tmp_path, "whatsapp:chat.txt", content, time_zone="UTC")
        assert texts(opened) == [["one: two"], ["three\nand 12:30 - four"]]
        assert times(opened) == [1609452900, 1610528700]

    def test_an_order_of_dates_that_cannot_be_known_is_asked(self, tmp_path: Path) -> None:
        content = "1/2/21, 10:00 - Ann: x\n1/3/21, 10:00 - Ann: y\n"
        assert texts(source(tmp_path, "whatsapp:chat.txt", content)) == [["x", "y"]]
        with pytest.raises(SourceError, match="may be read as dmy or mdy; say which, --date-order"):
            source(tmp_path, "whatsapp:chat.txt", content, time_zone="UTC")
        for order, second in (("dmy", 1614592800), ("mdy", 1609668000)):
            opened = source(tmp_path, "whatsapp:chat.txt", content, time_zone="UTC", date_order=order)
            assert times(opened)[1] == second

    def test_an_hour_that_clocks_show_twice(self, tmp_path: Path) -> None:
        clock = ("01:30", "02:30", "02:10", "03:10")  # on 31 October 2021 Berlin's went from 3 back to 2
        content = "".join(f"31.10.21, {at} - Ann: x\n" for at in clock)
        found = times(source(tmp_path, "whatsapp:chat.txt", content, time_zone="Europe/Berlin"))
        assert [after - before for before, after in pairwise(found)] == [3600, 2400, 3600]

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("<Media omitted>", None),
            ("<Multimedia omitido>", None),
            ("<Medien ausgeschlossen>", None),
            ("<Без медиафайлов>", None),
            ("IMG-20201231-WA0001.jpg (file attached)", None),
            ("IMG 1.jpg (Datei angehängt)\nour cat", "our cat"),
            ("This message was deleted", None),
            ("Se eliminó este mensaje.", None),
            ("null", None),
            ("see you <This message was edited>", "see you"),
            ("<3", "<3"),
            ("see cat.jpg (file attached) below", "see cat.jpg (file attached) below"),
            ("x" * 200_000, "x" * 200_000),
            ("I said <hm> and left", "I said <hm> and left"),
        ],
    )
    def test_what_nobody_typed_is_counted(self, text: str, kept: str | None, tmp_path: Path) -> None:
        content = f"31/12/20, 22:15 - Ann: {text}\n31/12/20, 22:16 - Ann: end\n"
        opened = source(tmp_path, "whatsapp:chat.txt", content)
        assert texts(opened) == [["end"] if kept is None else [kept, "end"]]
        assert sum(opened.left_out.values()) == (kept is None)

    def test_a_person_of_two_chats_is_one_client_and_each_import_names_it_anew(self, tmp_path: Path) -> None:
        for name in ("one.txt", "two.txt"):
            (tmp_path / name).write_text(f"31/12/20, 22:15 - Ann: {name}\n")
        first, second = (list(open_source(f"whatsapp:{tmp_path}").clients()) for _ in range(2))
        assert [list(each.texts) for each in first] == [["one.txt", "two.txt"]]
        assert first[0].client_id != second[0].client_id

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("hello\n", "line 1 does not begin as a message"),
            ("PK\x03\x04", "unpack it first"),
            ("\n", "has no message"),
            ("31/12/20, 22:15 - Ann: x\n\udcff".encode("utf-8", "surrogateescape"), "line 2 is not utf-8"),
        ],
    )
    def test_what_is_no_chat_is_refused(self, content: str | bytes, complaint: str, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=complaint):
            list(source(tmp_path, "whatsapp:chat.txt", content).clients())
        with pytest.raises(SourceError, match="is no time with dates dmy"):
            bad = "31/12/20, 25:15 - Ann: x\n"
            list(source(tmp_path, "whatsapp:chat.txt", bad, time_zone="UTC", date_order="dmy").clients())
        for date, order in (("1/1/0001", "dmy"), ("9999-12-31", "ymd")):
            with pytest.raises(SourceError, match="is no time with dates"):
                far = f"{date}, 00:15 - Ann: x\n"
                list(source(tmp_path, "whatsapp:chat.txt", far, time_zone="Asia/Tokyo", date_order=order).clients())


class TestTelegram:
    def test_all_chats_of_an_export(self, tmp_path: Path) -> None:
        opened = source(tmp_path, "telegram:result.json", TELEGRAM)
        assert texts(opened) == [["I\nsee"], ["hello bot", "see example.org now"]]
        assert times(opened)[-1] == 1577872800 and no_name_of(opened, ["Ann", "user"])
        assert opened.left_out == {
            "service messages": 1,
            "messages without text (media)": 1,
            "messages that were forwarded": 1,
            "messages that a bot wrote": 1,
            "posts of channels": 1,
        }

    def test_one_chat_with_local_times(self, tmp_path: Path) -> None:
        message = {"type": "message", "from_id": "user1", "text": "x", "date": "2020-01-01T10:00:00"}
        content = json.dumps({"name": "Bob", "type": "personal_chat", "messages": [message]})
        assert times(source(tmp_path, "telegram:result.json", content)) == [-(2**63)]
        opened = source(tmp_path, "telegram:result.json", content, time_zone="Asia/Tokyo")
        assert times(opened) == [1577840400]

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("{}", "has no 'messages'"),
            ('{"messages": {}}', "has no 'messages'"),
            ('{"messages": [7]}', "message 1 is 7 and no object"),
            ('{"messages": [{"type": "message", "from_id": "u", "text": [7]}]}', "message 1 has a text"),
            ('{"messages": [', r"line 1, is not the JSON it should be \(it ends too early\)"),
            ('{"messages": []} more', "something follows its end"),
            ('{"messages": [],\n "messages": []}', "line 2, is not .*'messages' is there twice"),
            ('{"a": ' + "[" * 200_000 + ', "messages": []}', "is not the JSON it should be"),
        ],
    )
    def test_what_is_no_export_is_refused(self, content: str, complaint: str, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=complaint):
            list(source(tmp_path, "telegram:result.json", content).clients())

    def test_a_large_export_is_read_in_pieces(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tacit.data.formats.json_values.AT_ONCE", 7)
        opened = source(tmp_path, "telegram:result.json", TELEGRAM)
        assert texts(opened) == [["I\nsee"], ["hello bot", "see example.org now"]]


class TestMail:
    def test_own_text_alone(self, tmp_path: Path) -> None:
        opened = source(tmp_path, "a.mbox", MBOX)
        assert texts(opened) == [["No & never"], ["The café is open.\nFrom here on: From now\nIt is."]]
        assert times(opened)[-1] == 1704067200 and no_name_of(opened, ["ann", "bob", "@"])
        assert opened.left_out == {
            "quoted lines of mails": 2,
            "lines of mails that say who is quoted": 1,
            "lines of signatures in mails": 4,
            "attachments of mails": 1,
            "mails that a program sent": 1,
        }

    def test_a_maildir(self, tmp_path: Path) -> None:
        box = mailbox.Maildir(tmp_path / "mail", create=True)
        for owner, text in (("ann@x.org", "From now on.\n> no\n"), ("bob@x.org", "Hi.\n"), ("Ann@x.org", "Bye.\n")):
            box.add(f"From: {owner}\n\n{text}")
        opened = open_source(f"mbox:{tmp_path / 'mail'}")
        assert sorted(map(sorted, texts(opened))) == [["Bye.", "From now on."], ["Hi."]]

    @pytest.mark.parametrize(
        "below",
        [
            "-----Original Message-----\nFrom: Bob\nsecret",
            "-----Ursprüngliche Nachricht-----\nsecret",
            "---------- Forwarded message ---------\nsecret",
            "Begin forwarded message:\n\nsecret",
            "________________________________\nFrom: Bob\nsecret",
            "El lun, 1 ene 2024 a las 10:00, Bob (<bob@example.org>) escribió:\n\n> secret",
            "Am 01.01.24 um 10:00 schrieb Bob:\n> secret\n>> secret",
            "-- \nsecret",
        ],
    )
    def test_what_somebody_else_wrote_is_left_out(self, below: str, tmp_path: Path) -> None:
        mail = f"From a@x Mon\nFrom: a@x.org\nContent-Type: text/plain; charset=utf-8\n\nMine.\n\n{below}\n"
        opened = source(tmp_path, "a.mbox", mail)
        assert texts(opened) == [["Mine."]] and sum(opened.left_out.values()) >= 1

    def test_a_line_that_ends_in_a_colon_is_not_who_is_quoted(self, tmp_path: Path) -> None:
        mail = "From a@x Mon\nFrom: a@x.org\n\nOne more thing\nremains to be said:\n> secret\nEnd.\n"
        assert texts(source(tmp_path, "a.mbox", mail)) == [["One more thing remains to be said:\nEnd."]]

    def test_what_cannot_be_read_is_counted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tacit.data.formats.mail.MOST_MESSAGE", 3_000)
        monkeypatch.setattr("tacit.data.formats.mail.MOST_HTML", 1_000)
        mails = [
            "From: a@x.org\n\nfine",
            "From: a@x.org\n\n" + "long line\n" * 400,
            "Subject: nobody's\n\nx",
            "From: a@x.org\nContent-Type: text/plain; charset=klingon\n\nx",
            "From: a@x.org\nContent-Type: image/png\n\nx",
            "From: a@x.org\nContent-Type: text/html\n\n" + "<p>x" * 300,
            "From: a@x.org\nDate: Mon, 1 Jan 2200 00:00:00 +0000\n\nof the future",
        ]
        opened = source(tmp_path, "a.mbox", "\n".join(f"From x Mon\n{mail}\n" for mail in mails))
        assert texts(opened) == [["fine", "of the future"]] and times(opened) == [-(2**63)] * 2
        assert opened.left_out == {
            "mails of more than 3,000 bytes": 1,
            "mails that do not say who sent them": 1,
            "mails that are not in the charset they say": 1,
            "mails of more than 1,000 characters of HTML": 1,
            "mails without text": 3,
        }
        with pytest.raises(SourceError, match=r"does not begin with a line 'From \.\.\.'"):
            source(tmp_path, "a.mbox", "hello")


class TestLeaf:
    def test_shakespeare_reddit_and_tweets(self, tmp_path: Path) -> None:
        opened = source(tmp_path, "leaf:all_data.json", LEAF)
        assert {client.client_id: list(client.texts) for client in opened.clients()} == {
            "ROMEO": ["But soft", "Again!"],
            "ann": ["good morning all", "fine"],
            "bob": ["is upset"],
        }
        assert times(opened)[-1] == 1239081585

    def test_windows_of_a_text_are_the_text_again(self, tmp_path: Path) -> None:
        text = "But, soft! what light through yonder window breaks?"
        windows = [text[at : at + 10] for at in range(len(text) - 10)]
        data = {"x": windows, "y": [text[at + 10] for at in range(len(windows))]}
        content = json.dumps({"users": ["R"], "num_samples": [len(windows)], "user_data": {"R": data}})
        assert texts(source(tmp_path, "leaf:a.json", content)) == [[text]]

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("{}", "has no 'user_data'"),
            ('{"user_data": {"a": 7}}', "user 1 has no list of samples"),
            ('{"user_data": {"a": {"x": [[0.1, 0.2]], "y": [1]}}}', "user 1 has a sample"),
            ('{"user_data": {"a": {"x": []}, "a": {"x": []}}}', "'a' is there twice"),
            ('{"user_data": {"": {"x": []}}}', "user 1: the row has no client_id"),
        ],
    )
    def test_what_is_no_text_of_leaf_is_refused(self, content: str, complaint: str, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=complaint):
            list(source(tmp_path, "leaf:a.json", content).clients())
