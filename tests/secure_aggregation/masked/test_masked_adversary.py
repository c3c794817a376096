"""Attacks on the masked protocol: what a server holds, what it learns by lying, what colluding clients add."""

import dataclasses
import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.errors import ProtocolError
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked import client as masked_client
from tacit.secure_aggregation.masked import secret_shares
from tacit.secure_aggregation.masked.client import MaskedClient, mask_seed
from tacit.secure_aggregation.masked.masks import add_masks
from tacit.secure_aggregation.masked.messages import (
    Advertise,
    Boxes,
    Consent,
    Consents,
    Invitation,
    Keys,
    MaskedVector,
    Shares,
    Survivors,
    Unmask,
    bits_of,
)
from tacit.secure_aggregation.packing import unpack
from tacit.secure_aggregation.secrets import Words
from tacit.secure_aggregation.simulate import MaskedRound, run_masked_round
from tacit.secure_aggregation.wire import Message, opened, parsed

pytestmark = pytest.mark.usefixtures("computed_once")

BITS, DIMENSION = 16, 20_000


def heard(done: MaskedRound, kind: type[Message]) -> dict[int, Message]:
    found = (kind.from_bytes(data) for data in done.heard if opened(data)[0] == kind.kind)
    return {message.sender: message for message in found}  # type: ignore[attr-defined]


def vectors_of(done: MaskedRound) -> dict[int, Words]:
    found = heard(done, MaskedVector)
    return {client: unpack(bytes(message.vector), BITS, DIMENSION) for client, message in found.items()}  # type: ignore[attr-defined]


def looks_uniform(words: Words) -> bool:
    """Both bytes of every word, and differences of neighbours, against chi-squared tests at one in a million."""
    words = words & 0xFFFF
    parts = (words & 0xFF, words >> 8, np.diff(words) >> 8 & 0xFF)
    return all(chisquare(np.bincount(part, minlength=256)).pvalue > 1e-6 for part in parts)


def without_self_masks(done: MaskedRound) -> dict[int, Words]:
    """What the server can make of each vector: it rebuilds the own masks of all in the sum, as it must."""
    server, left = done.server, vectors_of(done)
    told: dict[int, dict[int, bytes]] = {client: {} for client in left}
    for holder, message in heard(done, Unmask).items():
        assert isinstance(message, Unmask)
        for client, share in zip(message.survivors, message.self_shares, strict=True):
            told[client][holder] = share
    for client, words in left.items():
        holders = sorted(told[client])[: server.settings.plan().threshold]
        seed = secret_shares.rebuilt_secret([told[client][each] for each in holders], [each + 1 for each in holders])
        add_masks(words, [(secrets.derived(seed, "self mask", server.settings.name), True)])
    return left


def constant(clients: int) -> list[Words]:
    return [np.full(DIMENSION, client, np.uint32) for client in range(clients)]


@pytest.mark.parametrize("clients", [3, 5])
def test_what_the_server_holds_is_uniform_until_all_of_it_is_added(clients: int) -> None:
    """Vectors as they came, and without their own masks, one by one and in every sum but that of all."""
    done = run_masked_round(constant(clients), bits=BITS, seed=clients)
    assert done.aborted is None
    assert all(looks_uniform(words) for words in vectors_of(done).values())
    left = without_self_masks(done)
    for size in range(1, clients):
        for some in itertools.combinations(left, size):
            assert looks_uniform(np.sum([left[each] for each in some], axis=0, dtype=np.uint32))
    everything = np.sum(list(left.values()), axis=0, dtype=np.uint32) & 0xFFFF
    assert not looks_uniform(everything) and np.unique(everything).tolist() == [sum(range(clients))]


@pytest.mark.parametrize("missing", ["own", "pairwise"])
def test_a_missing_mask_is_seen(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test rejects what a device sends that forgets its own mask, or those of its neighbours.

    Without its own, a vector is bare to who rebuilds the keys of its neighbours, as the server does of who vanished.
    """
    add, derived = add_masks, secrets.derived
    own: set[bytes] = set()

    def noted(secret: bytes, purpose: str, *context: bytes) -> bytes:
        found = derived(secret, purpose, *context)
        own.update([found] if purpose == "self mask" else [])
        return found

    def forgetful(total: Words, masks: Iterable[tuple[bytes, bool]]) -> None:
        add(total, [(seed, subtract) for seed, subtract in masks if (seed in own) != (missing == "own")])

    monkeypatch.setattr(masked_client.secrets, "derived", noted)
    monkeypatch.setattr(masked_client, "add_masks", forgetful)
    done = run_masked_round(constant(3), bits=BITS, seed=1)
    monkeypatch.undo()
    if missing == "pairwise":
        assert not any(looks_uniform(words) for words in without_self_masks(done).values())
        return
    pairs = seeds_of_pairs(3, 1)
    for client, words in vectors_of(done).items():
        assert looks_uniform(words)
        add(words, [(pairs[client, other], other > client) for other in range(3) if other != client])
        assert not looks_uniform(words)


def seeds_of_pairs(clients: int, seed: int) -> dict[tuple[int, int], bytes]:
    """The seeds of the pairwise masks of a simulated round, as who holds every device's keys computes them."""
    aborted = run_masked_round(constant(clients), bits=BITS, seed=seed, lie=lambda step, _: {})
    advertised = {each.index: each for each in aborted.clients}
    return {
        (one, other): mask_seed(
            advertised[one]._mask_key, advertised[other]._mask_key.public, aborted.settings.name, (one, other)
        )
        for one in advertised
        for other in advertised
        if one != other
    }


def test_a_client_that_copies_a_key_takes_no_mask_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three, client 2 advertises client 0's mask key: client 1 adds for the one what it subtracts for the other.

    If both were one mask, the server would read client 1's vector as soon as it has taken its own mask off.
    """
    advertise, public = MaskedClient.advertise, dict[int, bytes]()

    def copying(self: MaskedClient) -> bytes:
        public[self.index] = self._mask_key.public
        if self.index == 2:
            self._mask_key.public = public[0]
        return advertise(self)

    monkeypatch.setattr(MaskedClient, "advertise", copying)
    done = run_masked_round(constant(3), bits=BITS, seed=1)
    keys = {client: each.mask_key for client, each in heard(done, Advertise).items()}  # type: ignore[attr-defined]
    assert done.aborted is None and keys[0] == keys[2]
    assert all(looks_uniform(words) for words in without_self_masks(done).values())


def test_fewer_than_the_threshold_rebuild_nothing() -> None:
    """Neighbours pool what they hold before anything is unmasked: t of them have both secrets, t - 1 neither."""
    passed_on: dict[int, bytes] = {}

    def keep(step: type[Message], sent: dict[int, bytes]) -> dict[int, bytes]:
        if step is not Consent:
            return sent
        passed_on.update(sent)
        return {}

    done = run_masked_round(constant(8), bits=BITS, seed=1, lie=keep)
    victim, threshold = done.clients[0], done.settings.plan().threshold
    wanted = {victim._self_seed, victim._mask_key.private}
    assert done.aborted is not None and threshold == 4
    held = {}  # by each neighbour: a share of the own mask's seed, and one of the mask key
    for each in range(1, 8):
        message, device = Consents.from_bytes(passed_on[each]), done.clients[each]
        held[each] = device._unboxed(message.senders, message.boxes, "self box")[0], device._key_shares[0]
    for size in (1, threshold - 1, threshold):
        for some in itertools.combinations(range(1, 8), size):
            rebuilt = set()
            for which in (0, 1):
                try:
                    parts = [held[each][which] for each in some]
                    rebuilt.add(secret_shares.rebuilt_secret(parts, [each + 1 for each in some]))
                except ProtocolError:
                    continue
            assert (rebuilt == wanted) if size == threshold else not rebuilt & wanted


def test_shares_of_a_quorum_less_one_leave_every_secret_as_likely() -> None:
    """t - 1 shares of two different secrets are drawn alike: their bits are uniform, whatever the secret."""
    draw = secrets.seeded(bytes(32))
    for secret in (bytes(32), b"\xff" * 32):
        held = [b"".join(secret_shares.split_secret(secret, [1, 2, 3], 3, draw)[:2]) for _ in range(3000)]
        words = np.frombuffer(b"".join(held), "<u4")
        assert chisquare(np.bincount(words >> 23, minlength=256)).pvalue > 1e-6


class TestALyingServer:
    """It shows different survivors to different clients, so that some tell the one share and some the other."""

    @staticmethod
    def split_views(clients: int, groups: list[set[int]], sets: list[set[int]]) -> MaskedRound:
        def lie(step: type[Message], sent: dict[int, bytes]) -> dict[int, bytes]:
            if step is not MaskedVector:
                return sent
            right = Survivors.from_bytes(next(iter(sent.values())))
            said = [Survivors(right.round, right.sharers, bits_of(each, clients)).to_bytes() for each in sets]
            return {client: view for group, view in zip(groups, said, strict=True) for client in group}

        return run_masked_round(constant(clients), bits=BITS, seed=1, lie=lie)

    @pytest.mark.parametrize("cut", range(1, 10))
    def test_two_stories_get_no_share_of_both_kinds(self, cut: int) -> None:
        """Victim 9 is said to have vanished to some, and to be in the sum to the others."""
        done = self.split_views(10, [set(range(cut)), set(range(cut, 10))], [set(range(9)), set(range(10))])
        kinds = {
            9 in message.survivors  # type: ignore[attr-defined]
            for message in heard(done, Unmask).values()
            if 9 in message.survivors + message.vanished  # type: ignore[attr-defined]
        }
        assert len(kinds) <= 1
        assert done.aborted is not None or done.server.included

    def test_signatures_of_another_story_are_not_taken(self) -> None:
        done = self.split_views(10, [set(range(5)), set(range(5, 10))], [set(range(9)), set(range(10))])
        assert "5 of 10 clients agreed" in str(done.aborted) and not heard(done, Unmask)
        assert sum("signature (survivors)" in why for why in done.refused) == 5

    def test_colluders_who_sign_both_stories_do_not_make_two_quorums(self) -> None:
        """At n = 10 one may collude: with its signature on both stories one of them at most is believed."""
        plan = run_masked_round(constant(10), bits=BITS, seed=1).settings.plan()
        assert plan.corrupted == 1
        for group in range(10):
            sizes = (group + 1, 9 - group + 1)  # honest believers of each story, and the colluder
            assert sum(size >= plan.quorum for size in sizes) <= 1

    def test_a_graph_cannot_be_cut_by_keeping_boxes_back(self) -> None:
        """Clients 0 to 4 get no boxes of 5 to 9 and the other way: nobody signs, so no part's sum is opened."""

        def lie(step: type[Message], sent: dict[int, bytes]) -> dict[int, bytes]:
            if step is not Shares:
                return sent
            cut = {}
            for client, data in sent.items():
                boxes = Boxes.from_bytes(data)
                kept = [place for place, sender in enumerate(boxes.senders) if (sender < 8) == (client < 8)]
                cut[client] = Boxes(
                    boxes.round,
                    tuple(boxes.senders[place] for place in kept),
                    tuple(boxes.boxes[place] for place in kept),
                ).to_bytes()
            return cut

        done = run_masked_round(constant(16), bits=BITS, seed=1, lie=lie)
        assert done.aborted is not None and not heard(done, Unmask)

    def test_devices_notice_a_cut_even_where_the_server_would_go_on(self) -> None:
        clients, sent = devices_at(Survivors)
        devices = clients[:1]
        devices[0]._sharers = devices[0]._sharers[1:]  # as if a box had been kept back
        with pytest.raises(ProtocolError, match="other neighbours are said to have shared"):
            devices[0].receive(sent[0])

    def test_signatures_of_one_round_are_worth_nothing_in_another(self) -> None:
        clients, sent = devices_at(Consents)
        others = run_masked_round(constant(5), bits=BITS, seed=2)
        foreign = [data for data in others.heard if opened(data)[0] != clients[0].settings.name]
        for data in (*foreign, others.server.invitation):
            with pytest.raises(ProtocolError):
                clients[0].receive(data)
        assert parsed(clients[0].receive(sent[0]), [Unmask])


def devices_at(step: type[Message]) -> tuple[list[MaskedClient], dict[int, bytes]]:
    """Devices, and what they were sent in this step and have not answered."""
    last: dict[int, bytes] = {}

    def stop(_: type[Message], sent: dict[int, bytes]) -> dict[int, bytes]:
        if {opened(data)[0] for data in sent.values()} != {step.kind}:
            return sent
        last.update(sent)
        return {}

    done = run_masked_round(constant(5), bits=BITS, seed=1, lie=stop)
    assert done.aborted is not None and last
    return done.clients, last


def test_every_seed_is_of_one_round_and_one_pair() -> None:
    """Two rounds of the same devices and the same drawn keys have no mask in common, for their names differ."""
    first, second = (
        run_masked_round(constant(3), bits=BITS, seed=4, fewest=fewest, lie=lambda step, _: {}) for fewest in (2, 3)
    )
    assert [each._self_seed for each in first.clients] == [each._self_seed for each in second.clients]
    seeds = set()
    for done in (first, second):
        name = done.settings.name
        assert Invitation.from_bytes(done.server.invitation).round == name
        for one, other in itertools.combinations(done.clients, 2):
            seed = mask_seed(one._mask_key, other._mask_key.public, name, (one.index, other.index))
            assert seed == mask_seed(other._mask_key, one._mask_key.public, name, (other.index, one.index))
            seeds.add(seed)
        seeds |= {secrets.derived(each._self_seed, "self mask", name) for each in done.clients}
    assert len(seeds) == 2 * (3 + 3)


class TestAServerThatWouldChooseTheGraph:
    """Above 64 clients everybody draws its own neighbours: 100 clients choose 32 each, of whom 22 rebuild a secret."""

    CLIENTS, VICTIM = 100, 0

    def at(self, step: type[Message]) -> tuple[MaskedRound, dict[int, bytes]]:
        """A round in which the server stops at this step's messages: nobody has had them."""
        last: dict[int, bytes] = {}

        def stop(_: type[Message], sent: dict[int, bytes]) -> dict[int, bytes]:
            if {opened(data)[0] for data in sent.values()} != {step.kind}:
                return sent
            last.update(sent)
            return {}

        return run_masked_round([np.zeros(4, np.uint32)] * self.CLIENTS, bits=BITS, seed=1, lie=stop), last

    def test_keys_of_clients_that_nobody_chose_are_refused(self) -> None:
        done, sent = self.at(Keys)
        victim, keys = done.clients[self.VICTIM], Keys.from_bytes(sent[self.VICTIM])
        near = {Advertise.from_bytes(data).sender for data in keys.advertised}
        assert near > set(victim._chosen) and len(victim._chosen) == 32
        stranger = next(each for each in range(1, self.CLIENTS) if each not in near)
        told = [*keys.advertised, done.clients[stranger].advertise()]
        wrong = sorted(told, key=lambda data: Advertise.from_bytes(data).sender)
        with pytest.raises(ProtocolError, match=f"client {stranger} is no neighbour: neither has chosen the other"):
            victim.receive(Keys(keys.round, tuple(wrong)).to_bytes())

    def test_another_choice_than_was_signed_is_refused(self) -> None:
        """Neither may a server say that somebody chose the victim who did not, nor that it chose others itself."""
        done, sent = self.at(Keys)
        keys = Keys.from_bytes(sent[self.VICTIM])
        first = Advertise.from_bytes(keys.advertised[0])
        changed = dataclasses.replace(first, choice=bytes(32)).to_bytes()
        with pytest.raises(ProtocolError, match=r"signature \(advertise\)"):
            done.clients[self.VICTIM].receive(Keys(keys.round, (changed, *keys.advertised[1:])).to_bytes())

    @pytest.mark.parametrize(("kept", "taken"), [(22, True), (21, False)])
    def test_who_chose_a_victim_does_not_count_for_those_whom_it_chose(self, kept: int, taken: bool) -> None:
        """The server shows it all who chose it, its own for example, and of those whom it chose as few as it can."""
        done, sent = self.at(Keys)
        victim, keys = done.clients[self.VICTIM], Keys.from_bytes(sent[self.VICTIM])
        left = set(victim._chosen[kept:])
        shown = tuple(data for data in keys.advertised if Advertise.from_bytes(data).sender not in left)
        assert len(shown) > 22 + 5
        if taken:
            answer = Shares.from_bytes(victim.receive(Keys(keys.round, shown).to_bytes()))
            assert len(answer.boxes) == 22  # and who chose it gets none
            return
        with pytest.raises(ProtocolError, match="21 chosen neighbours advertised; fewer than 22"):
            victim.receive(Keys(keys.round, shown).to_bytes())

    def test_the_setting_that_the_server_draws_has_no_part_in_it(self) -> None:
        done, _ = self.at(Keys)
        other = dataclasses.replace(done.settings, nonce=bytes(32))
        assert other.name != done.settings.name
        for client in done.clients:
            assert other.chosen(client.index, client._choice) == client._chosen
        assert len({tuple(client._chosen) for client in done.clients}) == self.CLIENTS

    @pytest.mark.parametrize("shares_with_all_chosen", [False, True])
    def test_a_victim_that_is_told_of_few_is_opened_by_no_others(
        self, shares_with_all_chosen: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """15 of those whom the victim chose collude. It is told that they and 7 more shared, and nobody else; those 7
        are then said to have vanished, so all its pairwise masks are known. Its own mask is what is left, and of that
        only those 22 got shares: 15 do not rebuild it. If all whom it chose had got one, the 10 others would
        help in good faith, and its vector were open.
        """
        done, sent = self.at(Boxes)
        victim, boxes = done.clients[self.VICTIM], Boxes.from_bytes(sent[self.VICTIM])
        chosen = [each for each in boxes.senders if each in victim._chosen]
        threshold = done.settings.plan().threshold
        told, colluders = set(chosen[:threshold]), set(chosen[:15])
        makers = [each for each in boxes.senders if each in victim._choosers]
        passed_on = tuple(box for maker, box in zip(makers, boxes.boxes, strict=True) if maker in told)
        if shares_with_all_chosen:
            monkeypatch.setattr(victim, "_of_chosen", lambda _: chosen)
        shown = Boxes(boxes.round, tuple(sorted(told)), passed_on).to_bytes()
        answer = MaskedVector.from_bytes(victim.receive(shown))
        receivers = chosen if shares_with_all_chosen else sorted(told)
        helping = colluders | set(chosen[threshold:])  # who is in the sum, and answers
        held = [
            (each + 1, done.clients[each]._unboxed([self.VICTIM], [box], "self box")[self.VICTIM])
            for each, box in zip(receivers, answer.boxes, strict=True)
            if each in helping
        ]
        assert len(held) == (25 if shares_with_all_chosen else 15)
        used = held[:threshold]
        try:
            seed = secret_shares.rebuilt_secret([part for _, part in used], [point for point, _ in used])
        except ProtocolError:
            seed = b""
        assert (seed == victim._self_seed) == shares_with_all_chosen

    def test_a_share_of_the_one_kind_is_not_taken_for_the_other(self) -> None:
        """A server that passes the box of a mask key on as that of an own mask would get both shares of one client."""
        done, sent = self.at(Consents)
        message = Consents.from_bytes(sent[self.VICTIM])
        first = {data.sender: data for data in heard(done, Shares).values()}  # type: ignore[attr-defined]
        device = done.clients[self.VICTIM]
        swapped = tuple(
            first[sender].boxes[done.clients[sender]._chosen.index(self.VICTIM)]  # type: ignore[attr-defined]
            for sender in message.senders
        )
        answer = Unmask.from_bytes(device.receive(dataclasses.replace(message, boxes=swapped).to_bytes()))
        assert message.senders and answer.survivors == ()


def test_a_client_that_every_sum_must_hold_has_a_mask_with_everybody() -> None:
    """So that no sum over others can be opened: each of them who signs has added a mask that only it takes away."""
    vectors = [np.full(4, client, np.uint32) for client in range(70)]
    done = run_masked_round(vectors, bits=BITS, seed=1, always=[69])
    assert done.total is not None and done.total.tolist() == [sum(range(70))] * 4
    for client in done.clients[:69]:
        assert 69 in client._sharers and len(client._sharers) < 60
    assert done.clients[69]._sharers == tuple(range(69))
    done = run_masked_round(vectors, bits=BITS, seed=1, always=[69], leaving=[(69, MaskedVector)])
    assert "client 69, without whom no sum is opened" in str(done.aborted)

    def without(step: type[Message], sent: dict[int, bytes]) -> dict[int, bytes]:
        if step is not MaskedVector:
            return sent
        said = Survivors.from_bytes(sent[0])
        return dict.fromkeys(sent, Survivors(said.round, said.sharers, bits_of(range(69), 70)).to_bytes())

    done = run_masked_round(vectors, bits=BITS, seed=1, always=[69], lie=without)
    assert not heard(done, Consent) and "the sum lacks client 69" in " ".join(done.refused)
