"""Rounds of one message: the exact sum of the agreed set, or a refusal that names its cause."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest
from tests.support.secure_aggregation.lying_clients import a_broken_box, report_of
from tests.support.secure_aggregation.one_message_parts import CLIENTS, SERVER, Small, small_round, summed, vectors

from tacit.errors import InputError, ProtocolError, RoundAborted
from tacit.secure_aggregation.one_message.decryptor_messages import Deposit, KeySum, signed_sum
from tacit.secure_aggregation.one_message.lattice import public_polynomial
from tacit.secure_aggregation.one_message.messages import (
    OneMessageReport,
    OneMessageRound,
    report_digests,
    signed_report,
)
from tacit.secure_aggregation.one_message.opened_slots import opened
from tacit.secure_aggregation.one_message.ring import Integers, Residues
from tacit.secure_aggregation.one_message.ring_inverse import centred, inverted
from tacit.secure_aggregation.one_message.server import OneMessageServer, smallest_parameters
from tacit.secure_aggregation.one_message.slots import Slots
from tacit.secure_aggregation.residue_sums import add_packed
from tacit.secure_aggregation.residues import packed_bytes
from tacit.secure_aggregation.secrets import Identity, unsealed
from tacit.secure_aggregation.shares import PRIME, Elements, elements, rebuilt


def ciphertext(settings: OneMessageRound, body: bytes) -> Residues:
    """The transforms (polynomials, primes, N) in a report's body."""
    ring = settings.slots.parameters.ring
    size = packed_bytes(ring)
    found = np.zeros((settings.slots.polynomials, len(ring.primes), ring.degree), np.uint64)
    for index, total in enumerate(found):
        add_packed(ring, total, memoryview(body)[index * size : (index + 1) * size])
    return found


@pytest.mark.parametrize(("decryptors", "corrupt"), [(2, 1), (3, 1), (3, 2), (4, 1), (5, 1), (7, 2)])
def test_the_sum_of_those_who_reported(tmp_path: Path, decryptors: int, corrupt: int) -> None:
    small = small_round(tmp_path, decryptors=decryptors, corrupt=corrupt)
    deposits = small.received(3)
    small.agree()
    for index in range(small.settings.quorum):  # as many as are needed, and no more
        small.server.answer(small.summed_by(index, deposits).to_bytes())
    assert small.server.opened().tolist() == summed(vectors(3))


@pytest.mark.parametrize("parameters", ["willow-4096", "willow-8192", "willow-16384"])
def test_every_published_set_over_more_than_one_polynomial(tmp_path: Path, parameters: str) -> None:
    small = small_round(tmp_path, decryptors=2, parameters=parameters.encode())
    dimension = small.settings.slots.capacity + 5
    small = small_round(tmp_path, decryptors=2, parameters=parameters.encode(), dimension=dimension)
    each = vectors(2, dimension=dimension)
    deposits = [small.server.receive(small.report(at, vector).to_bytes()) for at, vector in enumerate(each)]
    small.agree()
    for index in range(2):
        small.server.answer(small.summed_by(index, deposits).to_bytes())
    assert small.settings.slots.polynomials == 2
    assert small.server.opened().tolist() == summed(each)


class TestTheServer:
    def test_a_report_that_is_not_its_clients_is_left_out(self, tmp_path: Path) -> None:
        small = small_round(tmp_path)
        report = small.report(0, vectors(1)[0])
        data = bytearray(report.to_bytes())
        data[-7] ^= 1  # of the ciphertext
        other = small_round(tmp_path, seed=bytes(31) + b"1").report(0, vectors(1)[0])
        for wrong, reason in (
            (bytes(data), "a tag is not that of its message"),
            (dataclasses.replace(report, client=CLIENTS[1].public).to_bytes(), r"a signature \(report\)"),
            (dataclasses.replace(report, boxes=report.boxes[::-1]).to_bytes(), r"a signature \(report\)"),
            (dataclasses.replace(report, boxes=report.boxes[:3]).to_bytes(), "3 boxes"),
            (dataclasses.replace(report, body=report.body[:-8]).to_bytes(), "bytes of ciphertext"),
            (dataclasses.replace(report, ephemeral=bytes(32)).to_bytes(), r"a signature \(report\)"),
            (other.to_bytes(), "not of"),
            (report.to_bytes()[:-1], "ends within"),
            (b"\0" + report.to_bytes()[1:], "no message"),
        ):
            with pytest.raises(ProtocolError, match=reason):
                small.server.receive(wrong)
        small.server.receive(report.to_bytes())
        with pytest.raises(ProtocolError, match="has reported already"):
            small.server.receive(report.to_bytes())
        assert small.server.reports == 1

    def test_no_more_reports_than_the_sum_holds_and_none_that_is_late(self, tmp_path: Path) -> None:
        small = small_round(tmp_path, most_reports=2)
        small.received(2)
        with pytest.raises(ProtocolError, match="holds 2 reports"):
            small.server.receive(small.report(2, vectors(1)[0]).to_bytes())
        small.server.propose()
        with pytest.raises(ProtocolError, match="late"):
            small.server.receive(small.report(2, vectors(1)[0]).to_bytes())

    def test_fewer_than_the_report_goal_give_nothing(self, tmp_path: Path) -> None:
        small = small_round(tmp_path, report_goal=3)
        small.received(2)
        with pytest.raises(RoundAborted, match="2 reports came, and no sum of fewer than 3"):
            small.server.propose()

    def test_a_quorum_is_needed_for_the_set_and_for_the_sum(self, tmp_path: Path) -> None:
        small = small_round(tmp_path)
        deposits = small.received(2)
        for index in range(2):
            small.asked(index, agreement=False)
        with pytest.raises(RoundAborted, match="2 of 4 decryptors signed the set, and 3 are needed"):
            small.server.agreement()
        small.agree()
        for index in range(2):
            small.server.answer(small.summed_by(index, deposits).to_bytes())
        with pytest.raises(RoundAborted, match="2 decryptors gave their sums, and 3 are needed"):
            small.server.opened()

    def test_a_decryptor_that_signs_another_set_is_not_counted(self, tmp_path: Path) -> None:
        small, other = small_round(tmp_path), small_round(tmp_path)
        small.received(3)
        other.received(2)
        vote = other.asked(0, agreement=False).receive(other.server.propose().to_bytes())
        assert vote is not None
        small.server.propose()
        with pytest.raises(ProtocolError, match="decryptor 0 answers for a set that was not proposed"):
            small.server.answer(vote.to_bytes())
        with pytest.raises(ProtocolError, match="no decryptor 9"):
            small.server.answer(dataclasses.replace(vote, decryptor=9).to_bytes())

    def test_a_decryptor_that_lies_about_its_sum_spoils_the_round_and_no_more(self, tmp_path: Path) -> None:
        small = small_round(tmp_path)
        deposits = small.received(3)
        small.agree()
        answers = [small.summed_by(index, deposits) for index in range(4)]
        lying = Identity((small.folders[1] / "identity").read_bytes())
        shares = elements(answers[1].shares, small.settings.columns)
        shares[5] = (int(shares[5]) + 10**8) % PRIME
        false = shares.astype("<u4").tobytes()
        signature = lying.sign("key sum", signed_sum(small.settings.name, answers[1].clients, false))
        with pytest.raises(ProtocolError, match=r"a signature \(key sum\)"):
            small.server.answer(dataclasses.replace(answers[1], shares=false).to_bytes())
        lie = dataclasses.replace(answers[1], shares=false, signature=signature)
        for answer in (answers[0], lie, answers[2]):
            small.server.answer(answer.to_bytes())
        with pytest.raises(RoundAborted, match="no sum of clients' keys"):
            small.server.opened()
        small.server.answer(answers[3].to_bytes())
        with pytest.raises(RoundAborted, match="contradict"):
            small.server.opened()
        small.server.answer(answers[1].to_bytes())
        assert small.server.opened().tolist() == summed(vectors(3))

    def test_a_lie_that_is_still_a_small_key_fails_the_checks(self, tmp_path: Path) -> None:
        """All decryptors of a quorum move the first number of the sum of keys by one."""
        small = small_round(tmp_path, decryptors=2, corrupt=1)
        assert small.settings.packed == 1
        deposits = small.received(3)
        small.agree()
        for index in range(2):
            answer = small.summed_by(index, deposits)
            shares = elements(answer.shares, small.settings.columns)
            shares[0] = (int(shares[0]) + 1) % PRIME  # a constant: the polynomial's value grows by one everywhere
            data = shares.astype("<u4").tobytes()
            decryptor = Identity((small.folders[index] / "identity").read_bytes())
            signature = decryptor.sign("key sum", signed_sum(small.settings.name, answer.clients, data))
            small.server.answer(dataclasses.replace(answer, shares=data, signature=signature).to_bytes())
        with pytest.raises(RoundAborted, match="does not open: part 1 of 1"):
            small.server.opened()


class TestALyingClient:
    def test_a_box_that_does_not_open_is_named_where_it_is_in_the_set_too(self, tmp_path: Path) -> None:
        small = small_round(tmp_path)
        deposits = small.received(2)
        liar = Identity(bytes(31) + b"7")
        broken = report_of(small.settings, liar, a_broken_box(small.settings, vectors(1)[0]), passes_server=True)
        deposits.append(small.server.receive(broken.to_bytes()))
        small.agree()
        small.summed_by(0, deposits)
        with pytest.raises(ProtocolError, match=f"client {liar.public.hex()[:16]} has spoilt the round"):
            small.summed_by(1, deposits)

    @pytest.mark.parametrize("box", [b"", bytes(31), bytes(2**20)])
    def test_a_box_that_no_decryptor_could_add_is_refused_before_it_spoils_the_round(
        self, tmp_path: Path, box: bytes
    ) -> None:
        small = small_round(tmp_path)
        honest = small.report(0, vectors(1)[0])
        assert {len(each) for each in honest.boxes} == {small.settings.box_bytes}
        broken = dataclasses.replace(honest, boxes=(*honest.boxes[:-1], box))
        with pytest.raises(ProtocolError, match=f"has {len(box)} bytes and not {small.settings.box_bytes}"):
            small.server.receive(_with_boxes_of(small, CLIENTS[0], honest, broken).to_bytes())
        assert small.server.reports == 0

    def test_a_vector_that_was_not_promised_is_refused_on_the_device(self, tmp_path: Path) -> None:
        small = small_round(tmp_path)
        with pytest.raises(InputError, match="numbers up to 100"):
            small.report(0, np.full(300, 101, np.uint32))


class TestNoise:
    """Clients 4 and 5 of six contribute noise from -900 to 900."""

    def test_it_is_in_the_sum_and_its_margins_are_not(self, tmp_path: Path) -> None:
        small, noise = noisy(tmp_path)
        deposits = [*small.received(3), *contributed(small, noise)]
        assert small.server.reports == 3, "noise is no report"
        small.agree()
        for index in range(3):
            small.server.answer(small.summed_by(index, deposits).to_bytes())
        exact = np.sum(vectors(3), axis=0, dtype=np.int64) + np.sum(noise, axis=0)
        assert exact.min() < 0 and small.server.opened().tolist() == (exact % 2**32).tolist()

    def test_no_set_without_a_contributor(self, tmp_path: Path) -> None:
        small, noise = noisy(tmp_path)
        small.received(3)
        contributed(small, noise[:1])
        with pytest.raises(RoundAborted, match=f"lacks the contributor of noise {CLIENTS[5].public.hex()[:16]}"):
            small.server.propose()

    def test_a_contributor_counts_once_and_as_no_report(self, tmp_path: Path) -> None:
        small, noise = noisy(tmp_path, report_goal=2, most_reports=2)
        contributed(small, noise)
        with pytest.raises(ProtocolError, match="has reported already"):
            contributed(small, noise[:1])
        small.server.receive(small.report(0, vectors(1)[0]).to_bytes())
        with pytest.raises(RoundAborted, match="1 reports came, and no sum of fewer than 2"):
            small.server.propose()
        small.server.receive(small.report(1, vectors(1)[0]).to_bytes())
        with pytest.raises(ProtocolError, match="holds 2 reports"):
            small.server.receive(small.report(2, vectors(1)[0]).to_bytes())

    def test_noise_comes_after_the_last_report_too(self, tmp_path: Path) -> None:
        small, noise = noisy(tmp_path, most_reports=2)
        small.received(2)
        contributed(small, noise)
        assert len(small.server.propose().clients) == 4

    def test_noise_beyond_the_margin_is_refused_where_it_is_made(self, tmp_path: Path) -> None:
        small, _ = noisy(tmp_path)
        with pytest.raises(InputError, match="numbers up to 1800"):
            small.report(5, np.full(300, 1801, np.uint32))
        with pytest.raises(InputError, match="numbers up to 100"):
            small.report(0, np.full(300, 1800, np.uint32))

    @pytest.mark.parametrize(("beyond", "opens"), [(100, True), (1800, False), (2300, True)])
    def test_a_liar_is_noticed_where_the_sum_is_beyond_what_all_could_send(
        self, tmp_path: Path, beyond: int, opens: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A contributor without the check on its own machine. In what the others left free it is any noise, and beyond
        the slot it carries into the next one: a client can do the same, and the page says so.
        """
        small, noise = noisy(tmp_path)
        deposits = [*small.received(3), *contributed(small, noise[:1])]
        monkeypatch.setattr(Slots, "check", lambda *_, **__: None)
        noise[1][:] = 900
        noise[1][7] += beyond
        deposits += contributed(small, noise[1:], first=5)
        small.agree()
        for index in range(3):
            small.server.answer(small.summed_by(index, deposits).to_bytes())
        exact = np.sum(vectors(3), axis=0, dtype=np.int64) + np.sum(noise, axis=0)
        carry, rest = divmod(int(exact[7]) + 1800, 2**small.settings.slots.width)
        assert (rest <= 3 * 100 + 4 * 900) == opens and carry == (beyond == 2300), "the rule, in numbers"
        exact[7], exact[8] = rest - 1800, exact[8] + carry
        if opens:
            assert small.server.opened().tolist() == (exact % 2**32).tolist()
        else:
            with pytest.raises(RoundAborted, match="does not open"):
                small.server.opened()


def noisy(folder: Path, *, report_goal: int = 2, most_reports: int = 4) -> tuple[Small, list[Integers]]:
    small = small_round(folder, report_goal=report_goal, most_reports=most_reports, contributors=2, margin=900)
    return small, list(np.random.default_rng(2).integers(-900, 900, (2, 300), endpoint=True))


def contributed(small: Small, noise: list[Integers], *, first: int = 4) -> list[tuple[Deposit, ...]]:
    words = [(each + 900).astype(np.uint32) for each in noise]
    return [small.server.receive(small.report(first + at, each).to_bytes()) for at, each in enumerate(words)]


def _with_boxes_of(
    small: Small, identity: Identity, report: OneMessageReport, other: OneMessageReport
) -> OneMessageReport:
    digests = report_digests(other.boxes, report.ephemeral, report.tag, report.body_digest)
    signature = identity.sign("report", signed_report(small.settings.name, identity.public, digests, report.parts))
    return dataclasses.replace(report, boxes=other.boxes, signature=signature)


BY_CHANCE = 1e-6  # keys and errors are the operating system's, so that a test of theirs must not fail by chance


class TestWhatOthersLearn:
    def test_what_the_server_holds_is_uniform_and_without_the_key_it_would_not_be(self, tmp_path: Path) -> None:
        small = small_round(tmp_path)
        settings, ring = small.settings, small.settings.slots.parameters.ring
        zeros = np.zeros(300, np.uint32)
        reports = [small.report(client, zeros) for client in range(6)]
        views = np.concatenate([ciphertext(settings, report.body) for report in reports])
        for at, prime in enumerate(ring.primes):
            assert kstest(views[:, at].ravel() / prime, "uniform").pvalue > BY_CHANCE
            coefficients = np.stack([inverted(ring, view.copy())[at] for view in views])
            assert kstest(coefficients.ravel() / prime, "uniform").pvalue > BY_CHANCE
        # The same without the key's term: t e + m modulo q, in coefficients of which chance shows at once.
        key = _opened_key(small, reports[0])
        lacking = views[:1].copy()
        minus = ring.prepared(ring.transform(ring.reduced(-key)))
        ring.add_product(lacking[0], public_polynomial(settings.slots.parameters, settings.seed, 0), minus)
        limbs = centred(ring, inverted(ring, lacking[0].copy()))
        assert opened(settings.slots, limbs, 0, 1).tolist() == [0] * 300
        modulus = ring.modulus / 2.0**64
        words = [int.from_bytes(row.astype("<u8").tobytes(), "little", signed=True) % ring.modulus for row in limbs]
        assert kstest(np.array([word / 2.0**64 for word in words]) / modulus, "uniform").pvalue < BY_CHANCE

    def test_fewer_decryptors_than_the_threshold_rebuild_nothing(self, tmp_path: Path) -> None:
        """One of four is corrupt: its share alone is uniform whatever the key, and three shares give the key."""
        small = small_round(tmp_path)
        report = small.report(0, vectors(1)[0])
        shares = _opened_shares(small, report)
        assert kstest(shares[0] / PRIME, "uniform").pvalue > BY_CHANCE
        key = _opened_key(small, report)
        assert abs(key).max() < 60 and key.std() == pytest.approx(6.5, rel=0.05)
        # Two shares leave the key open: whatever it is, some third share fits it.
        guess = rebuilt(np.stack([*shares[:2], shares[3] * 0]), [1, 2, 3], packed=2).ravel()
        assert kstest(guess / PRIME, "uniform").pvalue > BY_CHANCE

    def test_two_quorums_share_an_honest_decryptor(self) -> None:
        for decryptors in range(2, 40):
            for corrupt in range(1, decryptors):
                names = tuple(bytes(31) + bytes([at]) for at in range(decryptors))
                settings = OneMessageRound(
                    b"willow-4096", 5, 10, 2, 9, corrupt, names, names, bytes(32), bytes(32), bytes(32), 0, 0
                )
                quorum = settings.quorum
                assert 2 * quorum - decryptors > corrupt and corrupt < quorum <= decryptors
                assert corrupt + settings.packed == quorum


def _opened_shares(small: Small, report: OneMessageReport) -> Elements:
    found = []
    for index, folder in enumerate(small.folders):
        context = small.settings.name + report.client + index.to_bytes(4, "little")
        found.append(elements(unsealed((folder / "box").read_bytes(), report.boxes[index], context), 2048 + 130)[:2048])
    return np.stack(found)


def _opened_key(small: Small, report: OneMessageReport) -> Integers:
    residues = rebuilt(_opened_shares(small, report)[:3], [1, 2, 3], packed=2).ravel().astype(np.int64)
    return np.where(residues > PRIME // 2, residues - PRIME, residues)


class TestSettings:
    def test_the_shortest_published_ciphertexts_are_chosen(self) -> None:
        assert smallest_parameters(300, 100, 6) == b"willow-4096"
        assert smallest_parameters(2_424_832, 72, 6_500) == b"willow-16384"
        assert smallest_parameters(300, 100, 6, contributors=3, margin=2**20) == b"willow-4096"
        with pytest.raises(InputError, match="less noise"):
            smallest_parameters(300, 100, 6, contributors=3, margin=2**30)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"report_goal": 1}, "report_goal=1"),
            ({"report_goal": 7}, "report_goal=7"),
            ({"most_reports": 2**24}, "most_reports=16777216"),
            ({"corrupt": 0}, "corrupt=0"),
            ({"corrupt": 4}, "corrupt=4"),
            ({"decryptors": (bytes(32),) * 4}, "no other decryptor"),
            ({"boxes": (bytes(32),)}, "no other decryptor"),
            ({"parameters": b"mine"}, "'mine'"),
            ({"largest": 2**30}, "33 bits"),
            ({"contributors": (bytes(32),)}, "a margin of at least 1"),
            ({"margin": 5}, "0 where there are none"),
            ({"contributors": (bytes(32),) * 2, "margin": 5}, "name each once"),
            ({"contributors": tuple(bytes(31) + bytes([at]) for at in range(101)), "margin": 5}, "no more than 100"),
            ({"contributors": (bytes(32),), "margin": 2**31}, "noise of 1 parties to 2,147,483,648 each sum to 33"),
            ({"contributors": (bytes(32),), "margin": 5, "most_reports": 12_201_611}, "noise included"),
        ],
    )
    def test_settings_that_nobody_can_keep(self, tmp_path: Path, change: dict[str, object], reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            dataclasses.replace(small_round(tmp_path).settings, **change)  # type: ignore[arg-type]

    def test_what_a_device_asks_of_a_round(self, tmp_path: Path) -> None:
        settings = small_round(tmp_path).settings
        settings.check(least_reports=2, decryptors=settings.decryptors)
        with pytest.raises(InputError, match="fewer than 100"):
            settings.check(least_reports=100)
        with pytest.raises(InputError, match="none of those that are trusted"):
            settings.check(least_reports=2, decryptors=settings.decryptors[1:])
        settings.check(least_reports=2, corrupt=1, joined=(bytes(32),))
        with pytest.raises(InputError, match="has reported in the round"):
            settings.check(least_reports=2, joined=(settings.name,))
        noisy = dataclasses.replace(settings, contributors=(CLIENTS[1].public, CLIENTS[2].public), margin=9)
        noisy.check(least_reports=2, always=noisy.contributors[:1])
        noisy.check(least_reports=2, margin=9)
        with pytest.raises(InputError, match="margin=9 is below the 10 that this contributor's noise takes"):
            noisy.check(least_reports=2, margin=10)
        with pytest.raises(InputError, match=f"{CLIENTS[0].public.hex()[:16]}, whose noise is wanted"):
            noisy.check(least_reports=2, always=(CLIENTS[0].public,))

    def test_a_server_may_not_ask_just_the_decryptors_that_work_with_it(self, tmp_path: Path) -> None:
        """Of four decryptors whom a device trusts two may be corrupt. They alone are a quorum of a round of
        themselves.
        """
        settings = small_round(tmp_path).settings
        friends = dataclasses.replace(settings, decryptors=settings.decryptors[:2], boxes=settings.boxes[:2])
        assert friends.quorum == 2
        friends.check(least_reports=2, decryptors=settings.decryptors)
        with pytest.raises(InputError, match="safe where 1 of its 2 decryptors work with the server"):
            friends.check(least_reports=2, decryptors=settings.decryptors, corrupt=2)
        dataclasses.replace(settings, corrupt=2).check(least_reports=2, decryptors=settings.decryptors, corrupt=2)

    def test_their_bytes_are_read_back_and_name_the_round(self, tmp_path: Path) -> None:
        settings = small_round(tmp_path).settings
        assert OneMessageRound.from_bytes(settings.to_bytes()) == settings
        noisy = dataclasses.replace(settings, contributors=(CLIENTS[1].public,), margin=9)
        assert OneMessageRound.from_bytes(noisy.to_bytes()) == noisy
        for other in (noisy, dataclasses.replace(noisy, margin=8)):
            assert other.name != dataclasses.replace(settings, seed=bytes(31) + b"1").name != settings.name
        assert noisy.name != dataclasses.replace(noisy, margin=8).name
        assert isinstance(OneMessageServer(settings, SERVER).opening().settings, bytes)
        assert KeySum.kind == 39
