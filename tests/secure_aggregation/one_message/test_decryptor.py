"""A decryptor's promises: one set a round, one answer, after a kill too; and what it refuses."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.secure_aggregation.one_message_parts import CLIENTS, Small, small_round, summed, vectors

from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.one_message.decryptor import Decryptor, make_decryptor
from tacit.secure_aggregation.one_message.decryptor_messages import (
    Agreement,
    Finding,
    KeySum,
    Opening,
    SetProposal,
    Vote,
    set_digest,
)
from tacit.secure_aggregation.secrets import Identity


def answered(decryptor: Decryptor, small: Small, clients: list[Identity]) -> Vote:
    """Open the round and propose these clients."""
    decryptor.receive(small.server.opening().to_bytes())
    vote = decryptor.receive(proposal(small, clients))
    assert isinstance(vote, Vote)
    return vote


def proposal(small: Small, clients: list[Identity]) -> bytes:
    return SetProposal(small.settings.name, tuple(sorted(each.public for each in clients))).to_bytes()


def test_it_signs_one_set_of_a_round(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    first = answered(small.decryptors[0], small, CLIENTS[:3])
    assert answered(small.decryptors[0], small, CLIENTS[:3]) == first
    for again in (small.decryptors[0], Decryptor(small.folders[0], least_reports=2)):
        again.receive(small.server.opening().to_bytes())
        with pytest.raises(ProtocolError, match="has signed another set"):
            again.receive(proposal(small, CLIENTS[:2]))
        assert again.receive(proposal(small, CLIENTS[:3])) == first
    for another in ({"round_index": 1}, {"series": 1}, {"plan": bytes(31) + b"1"}):
        other = small_round(tmp_path, **another)  # type: ignore[arg-type]
        assert answered(small.decryptors[0], other, CLIENTS[:2]).clients != first.clients


def test_it_signs_one_set_of_all_attempts_of_a_series(tmp_path: Path) -> None:
    """Whichever attempt it signed first; the others are told so, with its vote, and get nothing more."""
    attempts = [small_round(tmp_path, seed=bytes(31) + bytes([at])) for at in range(3)]
    decryptor = attempts[0].decryptors[0]
    for each in attempts:
        assert decryptor.receive(each.server.opening().to_bytes()) is None, "none is signed yet"
    first = answered(decryptor, attempts[1], CLIENTS[:3])
    for again in (decryptor, decryptor.restarted()):
        for other in (attempts[0], attempts[2]):
            assert again.receive(other.server.opening().to_bytes()) == first
            with pytest.raises(ProtocolError, match="was not opened here"):
                again.receive(proposal(other, CLIENTS[:3]))
        assert answered(again, attempts[1], CLIENTS[:3]) == first


def test_a_set_that_was_proposed_in_two_open_attempts_is_signed_in_one(tmp_path: Path) -> None:
    """Opened before either was signed, with another process's vote in between: what counts is the disk."""
    first, second = (small_round(tmp_path, seed=bytes(31) + bytes([at])) for at in range(2))
    early, late = first.decryptors[0], second.decryptors[0]
    early.receive(first.server.opening().to_bytes())
    answered(late, second, CLIENTS[:3])
    with pytest.raises(ProtocolError, match="of another attempt at it"):
        early.receive(proposal(first, CLIENTS[:3]))


def test_a_server_that_has_one_attempt_opened_gets_nothing_of_another(tmp_path: Path) -> None:
    """All signed the first and one has given its sum: no answer helps with the second, and the first opens."""
    small, second = (small_round(tmp_path, seed=bytes(31) + bytes([at])) for at in range(2))
    second.decryptors = small.decryptors
    deposits, others = small.received(3), second.received(3)
    small.agree()
    small.server.answer(small.summed_by(0, deposits).to_bytes())
    proposed = second.server.propose()
    for index, decryptor in enumerate(small.decryptors):
        vote = decryptor.receive(second.server.opening().to_bytes())
        assert isinstance(vote, Vote) and vote.round == small.settings.name
        for message in (proposed, *(each[index] for each in others)):
            with pytest.raises(ProtocolError, match="was not opened here"):
                decryptor.receive(message.to_bytes())
        with pytest.raises(ProtocolError):
            second.server.answer(vote.to_bytes())
    for index in (1, 2):
        small.server.answer(small.summed_by(index, deposits).to_bytes())
    assert small.server.opened().tolist() == summed(vectors(3))


def test_after_a_restart_it_gives_the_same_answer(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    deposits = small.received(3)
    small.agree()
    answer = small.summed_by(0, deposits)
    started_again = Decryptor(small.folders[0], least_reports=2)
    for message in (small.server.opening(), small.server.propose()):
        started_again.receive(message.to_bytes())
    assert started_again.receive(small.server.agreement().to_bytes()) == answer


def test_after_a_restart_within_a_set_it_adds_it_up_anew(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    deposits = small.received(3)
    small.agree()
    small.decryptors[0].receive(deposits[0][0].to_bytes())
    small.decryptors[0] = Decryptor(small.folders[0], least_reports=2)
    small.asked(0)
    for index in range(3):
        small.server.answer(small.summed_by(index, deposits).to_bytes())
    assert small.server.opened().tolist() == summed(vectors(3))


def test_shares_may_come_in_any_order_and_are_added_once(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    deposits = small.received(3)
    small.agree()
    decryptor = small.decryptors[0]
    decryptor.receive(deposits[2][0].to_bytes())
    with pytest.raises(ProtocolError, match="or its share has been added"):
        decryptor.receive(deposits[2][0].to_bytes())
    for message in (small.server.opening(), small.server.propose(), small.server.agreement()):
        decryptor.receive(message.to_bytes())  # again: it does not begin anew
    decryptor.receive(deposits[0][0].to_bytes())
    with pytest.raises(ProtocolError, match="not the one that the client signed"):
        decryptor.receive(deposits[1][1].to_bytes())  # another decryptor's
    with pytest.raises(ProtocolError, match=r"a signature \(report\)"):
        decryptor.receive(dataclasses.replace(deposits[1][0], signature=bytes(64)).to_bytes())
    answer = decryptor.receive(deposits[1][0].to_bytes())
    assert isinstance(answer, KeySum)
    for given in (answer, *(small.summed_by(index, deposits) for index in (1, 2))):
        small.server.answer(given.to_bytes())
    assert small.server.opened().tolist() == summed(vectors(3))


def test_no_sum_before_a_quorum_has_signed(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    deposits = small.received(3)
    votes = [answered(decryptor, small, CLIENTS[:3]) for decryptor in small.decryptors]
    decryptor, name = small.decryptors[0], small.settings.name
    assert isinstance(decryptor.receive(deposits[0][0].to_bytes()), Finding)
    signatures = tuple(vote.signature for vote in votes)
    other = Identity((small.folders[2] / "identity").read_bytes())
    elsewhere = other.sign("set", set_digest(name, tuple(sorted(each.public for each in CLIENTS[:2]))))
    for decryptors, signed, reason in (
        ((0, 1), signatures[:2], "fewer than 3"),
        ((0, 1, 1), signatures[:2] + signatures[1:2], "fewer than 3"),
        ((0, 1, 2), signatures[:2], "fewer than 3"),
        ((0, 1, 2), (*signatures[:2], elsewhere), r"a signature \(set\)"),
        ((0, 1, 3), signatures[:3], r"a signature \(set\)"),
        ((0, 1, 9), signatures[:3], "no decryptor 9"),
    ):
        with pytest.raises(ProtocolError, match=reason):
            decryptor.receive(Agreement(name, decryptors, signed).to_bytes())
        assert isinstance(decryptor.receive(deposits[0][0].to_bytes()), Finding)
    decryptor.receive(Agreement(name, (0, 2, 3), (signatures[0], *signatures[2:])).to_bytes())
    decryptor.receive(deposits[0][0].to_bytes())


def test_what_it_refuses_to_sign(tmp_path: Path) -> None:
    small = small_round(tmp_path, report_goal=3, most_reports=5)
    decryptor, name = small.decryptors[0], small.settings.name
    ascending = sorted(each.public for each in CLIENTS)
    with pytest.raises(ProtocolError, match="was not opened"):
        decryptor.receive(proposal(small, CLIENTS[:3]))
    decryptor.receive(small.server.opening().to_bytes())
    with pytest.raises(ProtocolError, match="no set of this round"):
        decryptor.receive(Agreement(name, (), ()).to_bytes())
    for clients, reason in (
        (ascending[:2], "a set of 2 clients"),
        (ascending[:6], "a set of 6 clients"),
        (ascending[:3] + ascending[2:3], "once, in ascending order"),
        (ascending[2::-1], "once, in ascending order"),
        ([], "a set of 0 clients"),
    ):
        with pytest.raises(ProtocolError, match=reason):
            decryptor.receive(SetProposal(name, tuple(clients)).to_bytes())
    assert not list((small.folders[0] / "rounds").iterdir())
    picky = Decryptor(small.folders[0], least_reports=2, clients=frozenset(ascending[:3]))
    picky.receive(small.server.opening().to_bytes())
    with pytest.raises(ProtocolError, match=f"client {ascending[3].hex()[:16]} is not enrolled"):
        picky.receive(SetProposal(name, tuple(ascending[:4])).to_bytes())
    assert picky.receive(SetProposal(name, tuple(ascending[:3])).to_bytes()) is not None


def test_it_signs_no_set_without_those_who_add_noise(tmp_path: Path) -> None:
    """The last two of six do. One of them twice is no two; and the enrolled clients are not asked to hold them."""
    small = small_round(tmp_path, report_goal=2, most_reports=3, contributors=2, margin=9)
    decryptor, name = small.decryptors[0], small.settings.name
    decryptor.receive(small.server.opening().to_bytes())
    for lacking in (CLIENTS[:2], CLIENTS[:5], [*CLIENTS[:3], CLIENTS[5]]):
        with pytest.raises(InputError, match="lacks the contributor of noise"):
            decryptor.receive(proposal(small, lacking))
    both = sorted(each.public for each in (*CLIENTS[:2], *CLIENTS[4:]))
    with pytest.raises(ProtocolError, match="once, in ascending order"):
        decryptor.receive(SetProposal(name, tuple(sorted([*both, CLIENTS[5].public]))).to_bytes())
    for reports, reason in ((1, "a set of 1 clients"), (4, "a set of 4 clients")):
        with pytest.raises(ProtocolError, match=reason):
            decryptor.receive(proposal(small, [*CLIENTS[:reports], *CLIENTS[4:]]))
    assert not list((small.folders[0] / "rounds").iterdir()), "and it has signed none of them"
    enrolled = frozenset(each.public for each in CLIENTS[:2])
    picky = Decryptor(small.folders[0], least_reports=2, clients=enrolled)
    picky.receive(small.server.opening().to_bytes())
    with pytest.raises(ProtocolError, match="is not enrolled"):
        picky.receive(proposal(small, CLIENTS[1:]))
    vote = picky.receive(proposal(small, [*CLIENTS[:2], *CLIENTS[4:]]))
    assert isinstance(vote, Vote)
    with pytest.raises(ProtocolError, match="has signed another set"):
        answered(decryptor, small, [*CLIENTS[1:3], *CLIENTS[4:]])


def test_it_takes_no_part_in_a_round_without_the_noise_that_it_was_told_to_want(tmp_path: Path) -> None:
    small = small_round(tmp_path, contributors=1, margin=9)
    opening = small.server.opening().to_bytes()
    for wanted in (4, 5):
        decryptor = Decryptor(small.folders[0], least_reports=2, always=[CLIENTS[wanted].public])
        for each in (decryptor, decryptor.restarted()):
            if wanted == 5:
                each.receive(opening)
                continue
            with pytest.raises(InputError, match=f"{CLIENTS[4].public.hex()[:16]}, whose noise is wanted in every sum"):
                each.receive(opening)


def test_rounds_in_which_it_takes_no_part(tmp_path: Path) -> None:
    small = small_round(tmp_path)
    settings = small.settings
    with pytest.raises(InputError, match="fewer than 100"):
        Decryptor(small.folders[0], least_reports=100).receive(small.server.opening().to_bytes())
    with pytest.raises(ProtocolError, match="not those of their round"):
        small.decryptors[0].receive(Opening(bytes(32), settings.to_bytes()).to_bytes())
    others = dataclasses.replace(settings, boxes=settings.boxes[::-1])
    with pytest.raises(ProtocolError, match="no part in the round"):
        small.decryptors[0].receive(Opening(others.name, others.to_bytes()).to_bytes())
    with pytest.raises(ProtocolError, match="no message"):
        small.decryptors[0].receive(b"hello")
    with pytest.raises(ProtocolError, match="kind 36"):
        small.decryptors[0].receive(Vote(settings.name, 0, bytes(32), bytes(64)).to_bytes())


def test_a_folder_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    folder = tmp_path / "decryptor"
    with pytest.raises(InputError, match=r"identity. cannot be read .* make another in a new folder"):
        Decryptor(folder, least_reports=2)
    make_decryptor(folder)
    first = Decryptor(folder, least_reports=2)
    make_decryptor(folder)
    assert Decryptor(folder, least_reports=2).identity == first.identity
    assert Decryptor(folder, least_reports=2).box == first.box
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "rounds").rename(folder / "elsewhere")
    with pytest.raises(InputError, match="lacks 'rounds'"):
        Decryptor(folder, least_reports=2)
    assert secrets.public_key((folder / "box").read_bytes()) == first.box


SIGNS_UNTIL_KILLED = """
import sys
from pathlib import Path
from tacit.secure_aggregation.one_message.decryptor import Decryptor
decryptor = Decryptor(Path(sys.argv[1]), least_reports=2)
for line in sys.stdin:
    answer = decryptor.receive(bytes.fromhex(line))
    print(answer.to_bytes().hex() if answer else "", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.02])
def test_a_killed_decryptor_has_signed_what_it_said_and_signs_nothing_else(tmp_path: Path, delay: float) -> None:
    """A real process, killed with SIGKILL in the midst of rounds: whatever left it, the next process holds to it."""
    rounds = [small_round(tmp_path, round_index=at) for at in range(12)]
    folder = rounds[0].folders[0]
    lines = [
        message.hex() + "\n"
        for small in rounds
        for message in (small.server.opening().to_bytes(), proposal(small, CLIENTS[:3]))
    ]
    with subprocess.Popen(
        [sys.executable, "-c", SIGNS_UNTIL_KILLED, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(lines[:4]))
        process.stdin.flush()
        said = [process.stdout.readline() for _ in range(4)]  # it runs, and has signed two sets
        process.stdin.write("".join(lines[4:]))
        process.stdin.flush()
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        said += process.stdout.read().splitlines()
    votes = [Vote.from_bytes(bytes.fromhex(line)) for line in said if len(line.strip()) == 2 * len(_vote_bytes())]
    assert len(votes) >= 2
    after = Decryptor(folder, least_reports=2)
    for small in rounds:
        after.receive(small.server.opening().to_bytes())
        if small.settings.name in {vote.round for vote in votes}:
            with pytest.raises(ProtocolError, match="has signed another set"):
                after.receive(proposal(small, CLIENTS[:4]))
        assert after.receive(proposal(small, CLIENTS[:3])) is not None
    series = {small.settings.name: small.settings.attempts.name.hex() for small in rounds}
    for vote in votes:
        assert (folder / "rounds" / f"{series[vote.round]}.vote").read_bytes() == vote.to_bytes()


def _vote_bytes() -> bytes:
    return Vote(bytes(32), 0, bytes(32), bytes(64)).to_bytes()
