"""`tacit decryptor`: lines in, lines out, as a process that is killed in the midst of it."""

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.secure_aggregation.one_message_parts import CLIENTS, Small, small_round, summed, vectors
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.errors import InputError
from tacit.secure_aggregation.one_message.decryptor_messages import KeySum, Refusal, SetProposal, Vote
from tacit.secure_aggregation.wire import Message, parsed


def line(message: Message) -> str:
    return base64.b64encode(message.to_bytes()).decode() + "\n"


def read(answer: str) -> Vote | KeySum | Refusal | None:
    data = base64.b64decode(answer)
    found = parsed(data, (Vote, KeySum, Refusal)) if data else None
    assert found is None or isinstance(found, Vote | KeySum | Refusal)
    return found


def refused(answer: str) -> str:
    found = read(answer)
    assert isinstance(found, Refusal)
    return found.reason.decode()


@contextmanager
def process(state: Path) -> Iterator["subprocess.Popen[str]"]:
    """`tacit decryptor` with its pipes; killed with SIGKILL when it is left."""
    words = [sys.executable, "-m", "tacit", "decryptor", "--state", str(state), "--least-reports", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        yield running
        running.kill()


def asked(running: "subprocess.Popen[str]", message: Message) -> Vote | KeySum | Refusal | None:
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write(line(message))
    running.stdin.flush()
    return read(running.stdout.readline())


def proposal(small: Small, count: int) -> SetProposal:
    return SetProposal(small.settings.name, tuple(sorted(each.public for each in CLIENTS[:count])))


def test_a_process_that_is_killed_after_its_vote_and_after_its_answer(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    deposits = small.received(3)
    opening, state = small.server.opening(), small.folders[0]
    with process(state) as first:
        assert asked(first, opening) is None
        vote = asked(first, proposal(small, 3))
        assert isinstance(vote, Vote)
    small.agree()  # the others, and this one's folder by another process: the same vote
    with process(state) as second:
        assert asked(second, opening) is None
        refusal = asked(second, proposal(small, 2))
        assert isinstance(refusal, Refusal) and b"has signed another set" in refusal.reason
        assert refusal.round == small.settings.name
        assert asked(second, proposal(small, 3)) == vote
        assert asked(second, small.server.agreement()) is None
        answers = [asked(second, each[0]) for each in deposits]
    assert answers[:2] == [None, None] and isinstance(answers[2], KeySum)
    with process(state) as third:
        assert [asked(third, each) for each in (opening, proposal(small, 3))] == [None, vote]
        assert asked(third, small.server.agreement()) == answers[2]
    for given in (answers[2], small.summed_by(1, deposits), small.summed_by(2, deposits)):
        small.server.answer(given.to_bytes())
    assert small.server.opened().tolist() == summed(vectors(3))


def test_its_public_keys_are_shown_and_stay(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tacit", "decryptor", "--state", str(tmp_path / "new"), "--least-reports", "2"]
    done = subprocess.run(words, input=b"\xff\xfe\n", capture_output=True, check=True)
    desk = tacit.decryptor(tmp_path / "new", least_reports=2)
    assert done.stderr.decode().splitlines()[:2] == [f"identity {desk.identity}", f"box {desk.box}"]
    assert refused(done.stdout.decode()) == "this line is no base64."
    assert len(desk.identity) == len(desk.box) == 64


def test_every_line_has_one_answer(tmp_path: Path) -> None:
    desk = tacit.decryptor(tmp_path / "new", least_reports=2)
    none, first, second, third = desk.answers(["é\n", "hello!\n", "aGVsbG8=\n", "\n"])
    assert refused(none) == refused(first) == "this line is no base64."
    assert "no message of secure aggregation" in refused(second)
    assert "no message of secure aggregation" in refused(third)


def test_two_processes_do_not_run_one_decryptor(tmp_path: Path) -> None:
    desk = tacit.decryptor(tmp_path / "new", least_reports=2)
    running = desk.answers(["", ""])
    next(running)
    with pytest.raises(InputError, match="another process runs the decryptor"):
        tacit.decryptor(tmp_path / "new", least_reports=2)
    with pytest.raises(InputError, match="another process runs the decryptor"):
        next(desk.answers([""]))
    running.close()
    assert list(desk.answers([])) == []


def test_only_enrolled_clients_count(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    enrolled = tmp_path / "clients.txt"
    enrolled.write_text("".join(f"{each.public.hex()}\n" for each in CLIENTS[:3]))
    desk = tacit.decryptor(small.folders[0], least_reports=2, clients=enrolled)
    messages = [small.server.opening(), proposal(small, 4), proposal(small, 3)]
    _, refusal, vote = desk.answers([line(each) for each in messages])
    assert "is not enrolled" in refused(refusal)
    assert isinstance(read(vote), Vote)


def test_whose_noise_it_wants(tmp_path: Path) -> None:
    """A file of the contributor, and one of somebody who contributes none."""
    small = small_round(tmp_path, contributors=1, margin=9)
    opening = small.server.opening()
    for name, wanted in (("right.txt", CLIENTS[5]), ("wrong.txt", CLIENTS[0])):
        (tmp_path / name).write_text(f"{wanted.public.hex()}\n")
    right = tacit.decryptor(small.folders[0], least_reports=2, contributors=tmp_path / "right.txt")
    opened, refusal = right.answers([line(opening), line(proposal(small, 3))])
    assert read(opened) is None and "lacks the contributor of noise" in refused(refusal)
    wrong = tacit.decryptor(small.folders[0], least_reports=2, contributors=tmp_path / "wrong.txt")
    (refusal,) = wrong.answers([line(opening)])
    assert "whose noise is wanted in every sum" in refused(refusal)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "names nobody"),
        ("12\n", "line 1 of .* is no identity; give 64"),
        ("zz\n", "line 1 of .* is no identity"),
        ("ab" * 32 + "\nä\n", "line 2 of .* is no identity"),
        (None, "cannot be read"),
    ],
)
def test_a_list_of_clients_that_is_none(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "clients.txt").write_text(content)
    with pytest.raises(InputError, match=reason):
        tacit.decryptor(tmp_path / "new", least_reports=2, clients=tmp_path / "clients.txt")
    with pytest.raises(InputError, match=reason):
        tacit.decryptor(tmp_path / "new", least_reports=2, contributors=tmp_path / "clients.txt")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "something").write_text("else")
    with pytest.raises(InputError, match="no decryptor's and not empty"):
        tacit.decryptor(tmp_path, least_reports=2)
    with pytest.raises(InputError, match="least_reports=1: the sum of one"):
        tacit.decryptor(tmp_path / "new", least_reports=1)


def test_what_is_refused_stands_on_standard_error_too(tmp_path: Path) -> None:
    words = ["decryptor", "--state", str(tmp_path / "new"), "--least-reports", "2"]
    done = CliRunner().invoke(app, words, input="no base64\n")
    assert done.exit_code == 0 and refused(done.stdout) in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1] == "refused: this line is no base64."


@pytest.mark.parametrize("name", ["identity", "box"])
@pytest.mark.parametrize("content", [b"", b"short", None])
def test_a_decryptor_whose_key_is_damaged(tmp_path: Path, name: str, content: bytes | None) -> None:
    tacit.decryptor(tmp_path / "new", least_reports=2)
    key = tmp_path / "new" / name
    key.unlink()
    key.mkdir() if content is None else key.write_bytes(content)
    with pytest.raises(InputError, match=f"{name}' .*make another in a new folder"):
        tacit.decryptor(tmp_path / "new", least_reports=2)


def test_an_answer_that_is_damaged_is_not_given_another_time(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    messages = [line(small.server.opening()), line(proposal(small, 3))]
    *_, vote = tacit.decryptor(small.folders[0], least_reports=2).answers(messages)
    assert isinstance(read(vote), Vote)
    (kept,) = (small.folders[0] / "rounds").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    refusal, *_ = tacit.decryptor(small.folders[0], least_reports=2).answers(messages)
    assert "is damaged" in refused(refusal) and "begin another round" in refused(refusal)
