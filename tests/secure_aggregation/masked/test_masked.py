"""The masked protocol, step by step: what each party answers, refuses, and never tells."""

import os
import pickle
import tempfile
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, ProtocolError, RoundAborted
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked import messages as masked_messages
from tacit.secure_aggregation.masked import server as masked_server
from tacit.secure_aggregation.masked.client import DevicePolicy, MaskedClient, invited
from tacit.secure_aggregation.masked.messages import (
    Advertise,
    Boxes,
    Consent,
    Consents,
    Invitation,
    Keys,
    MaskedVector,
    RoundSettings,
    Shares,
    Survivors,
    Unmask,
)
from tacit.secure_aggregation.masked.server import MaskedServer
from tacit.secure_aggregation.secrets import Identity, Words
from tacit.secure_aggregation.simulate import MaskedRound, run_masked_round
from tacit.secure_aggregation.wire import Message, opened

pytestmark = pytest.mark.usefixtures("computed_once")

BITS = 19
EASY = DevicePolicy(fewest=2, corruption=0.0)  # follows all that any device may
COPIED = ("dimension", "bits", "most_reports", "fewest", "server_key", "nonce")


def vectors(clients: int, dimension: int = 20, bits: int = BITS) -> list[Words]:
    chance = np.random.default_rng(clients)
    return [chance.integers(0, 1 << bits, dimension, dtype=np.uint32) for _ in range(clients)]


def summed(given: list[Words], included: tuple[int, ...], bits: int = BITS) -> list[int]:
    """Slow twin, in Python's integers."""
    return [sum(int(given[client][place]) for client in included) % (1 << bits) for place in range(len(given[0]))]


def parties(
    clients: int = 5, *, spool: BinaryIO | None = None, **settings: Any
) -> tuple[MaskedServer, list[MaskedClient]]:
    draw = secrets.seeded(bytes(32))
    identities = [Identity(draw(32)) for _ in range(clients)]
    public, private = [each.public for each in identities], draw(32)
    usual = dict(dimension=20, bits=BITS, most_reports=clients, fewest=2, nonce=draw(32)) | settings
    made = RoundSettings.from_cohort(public, server_key=secrets.public_key(private), **usual)
    server = MaskedServer(made, public, private, storage=spool)
    sent = zip(identities, vectors(clients), strict=True)
    return server, [
        MaskedClient(server.invitation, identity, vector, policy=EASY, draw=draw) for identity, vector in sent
    ]


def until(step: type[Message], clients: int = 5) -> tuple[MaskedServer, list[MaskedClient], dict[int, bytes]]:
    """Server and clients after the server has sent this step's messages, which nobody has answered."""
    server, devices = parties(clients)
    for device in devices:
        server.receive(device.advertise())
    for closing in (Keys, Boxes, Survivors, Consents):
        sent = dict(server.advance())
        if closing is step:
            return server, devices, sent
        for client, data in sent.items():
            server.receive(devices[client].receive(data))
    raise AssertionError(step)


@pytest.mark.parametrize(
    ("clients", "bits"),
    [(2, 8), (2, 32), (3, 8), (3, 32), (10, 8), (10, 32), (66, 32), pytest.param(66, 8, marks=pytest.mark.long)],
)
def test_the_sum_is_exact(clients: int, bits: int) -> None:
    given = vectors(clients, bits=bits)
    done = run_masked_round(given, bits=bits, seed=clients)
    assert done.aborted is None and done.refused == [] and done.server.included == tuple(range(clients))
    assert done.total is not None and done.total.tolist() == summed(given, done.server.included, bits)


@given(seed=st.integers(0, 2**32), clients=st.integers(4, 12))
def test_whoever_vanishes_the_sum_is_that_of_who_sent_a_vector(seed: int, clients: int) -> None:
    """As many as the plan allows vanish, each in a step of its own: the round succeeds."""
    chance, given = np.random.default_rng(seed), vectors(clients)
    tolerated = clients - ((clients + -(-clients // 10)) // 2 + 1)
    gone = chance.permutation(clients)[: chance.integers(0, tolerated + 1)].tolist()
    steps = [Advertise, Shares, MaskedVector, Consent, Unmask]
    leaving = [(client, steps[chance.integers(0, 5)]) for client in gone]
    done = run_masked_round(given, bits=BITS, seed=seed, leaving=leaving)
    assert done.aborted is None, done.aborted
    late = {client for client, step in leaving if step in (Consent, Unmask)}
    assert set(done.server.included) == set(range(clients)) - set(gone) | late
    assert done.total is not None and done.total.tolist() == summed(given, done.server.included)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Advertise, "5 of 10 clients advertised"),
        (Shares, "5 of 10 clients shared"),
        (MaskedVector, "5 of 10 clients sent their vectors"),
        (Consent, "5 of 10 clients agreed"),
        (Unmask, "vanished, and the sum cannot be opened"),
    ],
)
def test_a_round_that_loses_too_many_says_where(step: type[Message], said: str) -> None:
    leaving = [(client, step) for client in range(5 if step is not Unmask else 6)]
    done = run_masked_round(vectors(10), bits=BITS, seed=1, leaving=leaving)
    assert done.total is None and said in str(done.aborted)
    with pytest.raises(ProtocolError, match="no sum"):
        _ = done.server.total
    with pytest.raises(ProtocolError, match="over"):
        done.server.advance()


def test_a_sum_of_too_few_is_not_opened() -> None:
    done = run_masked_round(vectors(10), bits=BITS, seed=1, fewest=9, leaving=[(0, MaskedVector), (1, MaskedVector)])
    assert "8 of 10 clients sent their vectors, of 9" in str(done.aborted)


def told(done: MaskedRound) -> dict[int, Unmask]:
    found = (Unmask.from_bytes(data) for data in done.heard if opened(data)[0] == Unmask.kind)
    return {message.sender: message for message in found}


@given(seed=st.integers(0, 2**32), clients=st.integers(4, 12))
def test_nobody_tells_both_shares_of_one_peer(seed: int, clients: int) -> None:
    chance = np.random.default_rng(seed)
    steps = [Shares, MaskedVector, Consent]
    leaving = [(client, steps[chance.integers(0, 3)]) for client in range(clients) if chance.random() < 0.2]
    done = run_masked_round(vectors(clients), bits=BITS, seed=seed, leaving=leaving)
    included = set(done.server.included)
    for message in told(done).values():
        assert set(message.survivors) <= included and not set(message.vanished) & included
        assert not set(message.survivors) & set(message.vanished)


def test_a_client_answers_each_step_once_and_the_same_when_asked_again() -> None:
    server, devices, sent = until(Survivors)
    first = devices[0].receive(sent[0])
    assert devices[0].receive(sent[0]) == first
    clients = server.settings.clients
    fewer = Survivors(server.settings.name, b"\x1f", masked_messages.bits_of(range(clients - 1), clients))
    with pytest.raises(ProtocolError, match="only Consents is due"):
        devices[0].receive(fewer.to_bytes())
    for client, data in sent.items():
        server.receive(devices[client].receive(data))
    consents = server.advance()
    answer = devices[0].receive(consents[0])
    assert devices[0].receive(consents[0]) == answer
    with pytest.raises(ProtocolError, match="all that it tells"):
        devices[0].receive(fewer.to_bytes())
    with pytest.raises(ProtocolError, match="all that it tells"):
        devices[0].receive(sent[0])


def survivors_of(server: MaskedServer, sharers: bytes, survivors: bytes) -> bytes:
    return Survivors(server.settings.name, sharers, survivors).to_bytes()


@pytest.mark.parametrize(
    ("sharers", "survivors", "said"),
    [
        (b"\x1f", b"\x1e", "not to hold this one"),
        (b"\x0f", b"\x1f", "a client that did not share"),
        (b"\x0f", b"\x0f", "other neighbours are said to have shared"),
        (b"\x1f", b"\x07", "the sum holds 3 clients; this device opens none of fewer than 4"),
        (b"\x3f", b"\x1f", "not a bit for each"),
        (b"\x1f\x00", b"\x1f", "not a bit for each"),
        (b"", b"", "not a bit for each"),
    ],
)
def test_no_device_signs_what_it_did_not_see(sharers: bytes, survivors: bytes, said: str) -> None:
    server, devices, sent = until(Survivors)
    with pytest.raises(ProtocolError, match=said):
        devices[0].receive(survivors_of(server, sharers, survivors))
    server.receive(devices[0].receive(sent[0]))  # a refused message has changed nothing


def test_a_device_tells_no_share_without_a_quorum_of_signatures_of_what_it_signed() -> None:
    server, devices, sent = until(Consents)
    consents = Consents.from_bytes(sent[0])
    quorum = server.settings.plan().quorum
    assert len(consents.signers) == quorum == 4
    signers, signatures = consents.signers, consents.signatures
    for wrong, said in [
        (replace(consents, signers=signers[:3], signatures=signatures[:3]), "3 clients signed"),
        (replace(consents, signatures=signatures[:3]), "4 clients signed"),
        (replace(consents, signers=(0, 0, 1, 2)), "ascending"),
        (replace(consents, signers=(0, 1, 2, 5)), "ascending"),
        (replace(consents, signatures=(signatures[1], *signatures[1:])), "signature"),
        (replace(consents, signatures=(bytes(64), *signatures[1:])), "signature"),
        (replace(consents, round=bytes(32)), "round"),
        (replace(consents, boxes=consents.boxes[:3]), "3 boxes came of 4"),
        (replace(consents, senders=(0, 1, 2, 3)), "ascending"),  # itself
    ]:
        with pytest.raises(ProtocolError, match=said):
            devices[0].receive(wrong.to_bytes())
    server.receive(devices[0].receive(sent[0]))


def test_keys_are_believed_where_their_owner_signed_them() -> None:
    _, devices, sent = until(Keys)
    keys = Keys.from_bytes(sent[0]).advertised
    stranger = Advertise.from_bytes(keys[0])
    changed = stranger.to_bytes()[:56] + bytes(32) + stranger.to_bytes()[88:]
    for wrong, said in [
        ((changed, *keys[1:]), "signature"),
        ((keys[0], keys[0], *keys[1:]), "ascending"),
        (keys[:1], "1 chosen neighbours advertised; fewer than 3"),
        (keys[::-1], "ascending"),
        ((keys[0][:-1], *keys[1:]), "ends within a field"),
    ]:
        with pytest.raises(ProtocolError, match=said):
            devices[0].receive(Keys(stranger.round, wrong).to_bytes())
    with pytest.raises(ProtocolError, match="client 0 is no neighbour"):  # of its own
        devices[0].receive(Keys(stranger.round, (devices[0].advertise(), *keys)).to_bytes())


def test_boxes_come_from_who_advertised_and_each_once() -> None:
    _, devices, sent = until(Boxes)
    boxes = Boxes.from_bytes(sent[0])
    for senders, content, said in [
        (boxes.senders[:2], boxes.boxes[:2], "2 chosen neighbours shared"),
        ((1, 1, 2, 3), boxes.boxes, "ascending"),
        ((1, 2, 3, 5), boxes.boxes, "ascending"),
        (boxes.senders, boxes.boxes[:3], "3 boxes came of 4"),
    ]:
        with pytest.raises(ProtocolError, match=said):
            devices[0].receive(Boxes(boxes.round, senders, content).to_bytes())


def test_a_box_that_does_not_open_costs_its_maker_one_share() -> None:
    server, devices, sent = until(Boxes)
    for client, data in sent.items():
        boxes = Boxes.from_bytes(data)
        spoilt = tuple(
            bytes(len(box)) if maker == 0 and client < 3 else box
            for maker, box in zip(boxes.senders, boxes.boxes, strict=True)
        )
        other = Boxes(boxes.round, boxes.senders, spoilt).to_bytes()
        answer = devices[client].receive(other)
        if other != data:  # the server refuses who answers what it did not send; so it did not, and one drops out
            with pytest.raises(ProtocolError, match="another message than it was sent"):
                server.receive(answer)
        else:
            server.receive(answer)
    assert set(devices[1]._key_shares) == {2, 3, 4} and set(devices[3]._key_shares) == {0, 1, 2, 4}


def test_the_server_refuses_what_is_not_of_its_clients() -> None:
    server, devices, sent = until(Boxes)
    answer = devices[0].receive(sent[0])
    for wrong, said in [
        (answer[:-1] + bytes([answer[-1] ^ 1]), "tag"),
        (answer[:100] + bytes([answer[100] ^ 1]) + answer[101:], "tag|length|bytes"),
        (MaskedVector(server.settings.name, 7, bytes(32), (), b"", bytes(16)).to_bytes(), "client 7 was not asked"),
        (MaskedVector(server.settings.name, 1, bytes(32), (), b"", bytes(16)).to_bytes(), "tag"),
        (MaskedVector(bytes(32), 1, bytes(32), (), b"", bytes(16)).to_bytes(), "round"),
        (devices[1].advertise(), "only MaskedVector is due"),
    ]:
        with pytest.raises(ProtocolError, match=said):
            server.receive(wrong)
    server.receive(answer)
    with pytest.raises(ProtocolError, match="client 0 has answered"):
        server.receive(answer)


def test_a_key_with_which_nobody_agrees_does_not_reach_its_neighbours() -> None:
    server, devices = parties(5)
    honest = Advertise.from_bytes(devices[0].advertise())
    for weak in (replace(honest, mask_key=bytes(32)), replace(honest, box_key=bytes(32))):
        unsigned = weak.to_bytes()[:-64]
        with pytest.raises(ProtocolError, match="Curve25519"):
            server.receive(unsigned + devices[0]._identity.sign("advertise", unsigned))
    server.receive(honest.to_bytes())


def held_bytes(server: MaskedServer) -> int:
    """Of its tables of clients and what lies in them, but for what stands in its file."""
    return sum(len(pickle.dumps(each)) for each in vars(server).values() if isinstance(each, dict | list | set))


def played(clients: int, spool: BinaryIO | None) -> tuple[MaskedServer, list[dict[int, bytes]], int]:
    """A round of which clients 1 and 5 vanish after they shared, all that the server sent, and the most it held."""
    server, devices = parties(clients, spool=spool)
    answers, steps, most = [device.advertise() for device in devices], [], 0
    for step in range(5):
        for answer in answers:
            server.receive(answer)
        most = max(most, held_bytes(server))
        steps.append(dict(server.advance()))
        answers = [
            devices[client].receive(data) for client, data in steps[-1].items() if step == 0 or client not in {1, 5}
        ]
    return server, steps, most


@pytest.mark.parametrize("clients", [7, pytest.param(70, marks=pytest.mark.long)])
def test_a_server_with_a_file_says_the_same_as_one_without_and_holds_no_boxes(clients: int) -> None:
    with tempfile.TemporaryFile(buffering=0) as spool:
        (on_disk, said, most), (in_memory, expected, _) = played(clients, spool), played(clients, None)
        assert said == expected and len(on_disk.included) == clients - 2
        assert on_disk.total.tolist() == in_memory.total.tolist() == summed(vectors(clients), on_disk.included)
        degree = on_disk.settings.plan().degree
        assert spool.seek(0, os.SEEK_END) > clients * degree * masked_server.BOX_LENGTH
        assert most < clients * (1000 + 16 * degree)  # keys, digests, whose neighbours who is; a box has 64 bytes


def test_messages_are_made_when_they_are_asked_for_and_always_the_same() -> None:
    server, devices = parties(5)
    for device in devices:
        server.receive(device.advertise())
    sent = server.advance()
    assert len(sent) == 5 and 0 in sent and 1 in sent and 5 not in sent
    with pytest.raises(KeyError):
        sent[5]
    answer = devices[0].receive(sent[0])
    assert sent[0] == sent[0]
    server.receive(answer)
    _, _, twins = until(Keys)
    with pytest.raises(ProtocolError, match="client 1 was not asked"):
        server.receive(devices[1].receive(twins[1]))


def test_a_neighbour_that_lies_about_its_shares_is_left_out_of_the_rebuilding(monkeypatch: pytest.MonkeyPatch) -> None:
    server, devices, sent = until(Consents, clients=12)
    for client, data in sent.items():
        if client == 0:
            monkeypatch.setattr(devices[0], "_unboxed", lambda senders, *_: dict.fromkeys(senders, bytes(36)))
        server.receive(devices[client].receive(data))
    server.advance()
    assert server.total.tolist() == summed(vectors(12), server.included)


def test_a_client_whose_shares_are_of_no_secret_of_its_own_ends_the_round_by_name() -> None:
    server, devices = parties(5)
    devices[3]._self_seed = bytes(32)
    first = devices[3].advertise()
    devices[3]._self_seed = b"\x01" * 32
    for device in devices:
        server.receive(first if device is devices[3] else device.advertise())
    for _ in range(4):
        for client, data in server.advance().items():
            server.receive(devices[client].receive(data))
    with pytest.raises(RoundAborted, match="client 3's secret do not rebuild"):
        server.advance()
    with pytest.raises(ProtocolError, match="no sum"):
        _ = server.total


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fewest": 6}, "5 clients are below the privacy threshold of 6"),
        ({"fewest": 1}, "the sum of one"),
        ({"most_reports": 4}, "does not hold 5"),
        ({"bits": 2}, "modulo 2\\^2 of at most 5 reports"),
        ({"bits": 33}, "1 to 32 bits"),
        ({"bits": 0}, "1 to 32 bits"),
        ({"dimension": 0}, "coordinates"),
        ({"corruption": 2.0}, "thousandths"),
    ],
)
def test_rounds_that_cannot_be_are_refused_before_they_begin(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        parties(5, **changed)


def test_a_client_invited_twice_and_a_foreign_key_are_refused() -> None:
    public = [Identity(bytes([each]) * 32).public for each in (1, 2, 2)]
    usual = dict(
        dimension=2, bits=8, most_reports=3, fewest=2, nonce=bytes(32), server_key=secrets.public_key(bytes(32))
    )
    with pytest.raises(InputError, match="twice"):
        RoundSettings.from_cohort(public, **usual)  # type: ignore[arg-type]
    settings = RoundSettings.from_cohort(public[:2], **usual)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="private key"):
        MaskedServer(settings, public[:2], b"\x01" * 32)
    with pytest.raises(InputError, match="other clients"):
        MaskedServer(settings, public[1:], bytes(32))


def test_a_device_refuses_vectors_that_do_not_fit() -> None:
    server, _ = parties(5)
    draw = secrets.seeded(bytes(32))
    identity = Identity(draw(32))
    for vector, said in [
        (np.zeros(19, np.uint32), r"the round sums uint32 \(20,\)"),
        (np.zeros((20, 1), np.uint32), r"the round sums uint32 \(20,\)"),
        (np.zeros(20, np.int64), "int64"),
        (np.full(20, 1 << BITS, np.uint32), "has a word of 524288"),
    ]:
        with pytest.raises(InputError, match=said):
            MaskedClient(server.invitation, identity, vector, policy=EASY)
    with pytest.raises(InputError, match="not among those invited"):
        MaskedClient(server.invitation, Identity(bytes(32)), np.zeros(20, np.uint32), policy=EASY)


def test_a_device_follows_no_invitation_below_its_policy_or_that_contradicts_itself() -> None:
    server, _ = parties(5, fewest=4)
    settings, identities = server.settings, server.identities
    assert invited(server.invitation, DevicePolicy(fewest=4, corruption=0.1)) == settings
    for policy in (replace(EASY, fewest=5), replace(EASY, corruption=0.2)):
        with pytest.raises(ProtocolError, match="this device asks for"):
            invited(server.invitation, policy)
    for always in (frozenset(identities[:1]), frozenset([bytes(32)])):
        with pytest.raises(ProtocolError, match="the round opens sums without"):
            invited(server.invitation, replace(EASY, always=always))
    other = RoundSettings.from_cohort(
        identities, **{key: getattr(settings, key) for key in COPIED}, always=identities[3:0:-2]
    )
    assert other.always == (1, 3)
    said = Invitation(other.name, other.to_bytes(), identities).to_bytes()
    assert invited(said, replace(EASY, always=frozenset(identities[1:2]))) == other
    with pytest.raises(InputError, match="is to be in every sum, and is not invited"):
        RoundSettings.from_cohort(identities, **{key: getattr(settings, key) for key in COPIED}, always=[bytes(32)])
    for wrong in ((3, 1), (1, 1), (5,)):
        with pytest.raises(InputError, match="in ascending order"):
            replace(settings, always=wrong).check(identities)
    with pytest.raises(ProtocolError, match="has taken part in the round"):
        invited(server.invitation, replace(EASY, joined=frozenset([settings.name])))
    for wrong, said in [
        (Invitation(bytes(32), settings.to_bytes(), identities), "another round's name"),
        (Invitation(settings.name, settings.to_bytes(), identities[1:]), "other clients"),
        (Invitation(settings.name, settings.to_bytes()[:-1], identities), "ends within a field"),
    ]:
        with pytest.raises(ProtocolError, match=said):
            invited(wrong.to_bytes(), EASY)
    data = server.invitation
    with pytest.raises(ProtocolError, match="version 7"):
        invited(data[:8] + b"\x07\x00" + data[10:], EASY)


def test_a_device_forgets_its_secrets_when_it_has_told_its_shares() -> None:
    _, devices, sent = until(Consents)
    devices[0].receive(sent[0])
    assert not devices[0]._key_shares and not devices[0]._self_seed and devices[0]._vector is None
    assert not hasattr(devices[0], "_mask_key") and not hasattr(devices[0], "_box_key")


def test_every_kind_of_message_has_a_number_of_its_own() -> None:
    def all_below(parent: type[Message]) -> list[type[Message]]:
        return [child for each in parent.__subclasses__() for child in (each, *all_below(each))]

    ours = [each for each in all_below(Message) if each.__module__.startswith("tacit.") and not each.__subclasses__()]
    assert len({each.kind for each in ours}) == len(ours) >= 10


@pytest.mark.parametrize("box", [b"", bytes(2**20)])
def test_boxes_that_hold_no_share_are_not_kept_and_passed_on(box: bytes) -> None:
    server, devices, sent = until(Keys)
    shared = Shares.from_bytes(devices[0].receive(sent[0]))
    liar = replace(shared, boxes=(box, *shared.boxes[1:]))
    with pytest.raises(ProtocolError, match="client 0 made a box that has not the 64 bytes"):
        server.receive(devices[0]._tagged(liar))
    server.receive(devices[0]._tagged(shared))
