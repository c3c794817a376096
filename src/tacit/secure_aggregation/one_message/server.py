"""The server of a round of one message: it adds ciphertexts, leaves out what decryptors find wrong, and opens the sum.

Messages in, messages out; it holds one sum, the clients' names and what decryptors found of them, however many they
are. What it hands out for decryptors (`Deposit`) is for whoever drives it to keep until the sum is opened. A message
that raises has changed nothing.
"""

import hashlib
from typing import cast

import numpy as np

from tacit.errors import InputError, ProtocolError, RoundAborted
from tacit.secure_aggregation.discrete_gaussian import TAIL
from tacit.secure_aggregation.one_message.decryptor_messages import (
    Agreement,
    Deposit,
    Finding,
    KeySum,
    Opening,
    Refusal,
    SetProposal,
    Vote,
    reason_of,
    set_digest,
    signed_finding,
    signed_sum,
)
from tacit.secure_aggregation.one_message.lattice import PUBLISHED, public_polynomial
from tacit.secure_aggregation.one_message.messages import (
    OneMessageReport,
    OneMessageRound,
    report_digests,
    signed_report,
)
from tacit.secure_aggregation.one_message.opened_slots import opened
from tacit.secure_aggregation.one_message.report_check import check_range, check_values, switched, within
from tacit.secure_aggregation.one_message.ring import Integers
from tacit.secure_aggregation.one_message.ring_inverse import centred, inverted
from tacit.secure_aggregation.one_message.slots import Slots, Vector
from tacit.secure_aggregation.residue_sums import PackedSum, add_packed
from tacit.secure_aggregation.residues import packed_bytes
from tacit.secure_aggregation.secrets import agreed, check_signature, check_tag
from tacit.secure_aggregation.shares import PRIME, Elements, combined, elements, lagrange, rebuilt
from tacit.secure_aggregation.wire import parsed


class OneMessageServer:
    """One round, from its opening to its sum."""

    def __init__(self, settings: OneMessageRound, private: bytes) -> None:
        """private: the 32 bytes whose public key is `settings.server`."""
        self._settings, self._private = settings, private
        self._ciphertexts = PackedSum(settings.slots.parameters.ring, settings.slots.polynomials)
        self._total = self._ciphertexts.zero()
        self._clients: set[bytes] = set()
        self._left_out: set[bytes] = set()
        self._contributors = frozenset(settings.contributors)
        self._agreed: tuple[bytes, ...] | None = None  # the set, once it is proposed
        self._digest = b""
        self._findings: list[dict[bytes, str]] = [{} for _ in settings.decryptors]  # of each: by client, what is wrong
        self._votes: dict[int, bytes] = {}
        self._sums: dict[int, Elements] = {}

    @property
    def reports(self) -> int:
        """How many it has added; contributors' noise is none of them."""
        return len(self._clients) - len(self._contributors & self._clients)

    def opening(self) -> Opening:
        """For every decryptor, before anything else."""
        return Opening(self._settings.name, self._settings.to_bytes())

    def receive(self, data: bytes, *, checked: bool = False) -> tuple[Deposit, ...]:
        """Add a client's report; what each decryptor is to get of it, in the order of the settings.

        checked: `check_report` has seen just these bytes, with these settings, and need not again.
        Raises: ProtocolError for a report that is damaged, forged, of another round, late, or not the first of its
        client; the others are summed without it.
        """
        report = OneMessageReport.from_bytes(data, round=self._settings.name)
        settings = self._settings
        if self.closed:
            raise ProtocolError(f"the report of {_short(report.client)} is late: the set of this round is closed.")
        if report.client in self._clients or report.client in self._left_out:
            raise ProtocolError(f"the client {_short(report.client)} has reported already.")
        if report.client not in self._contributors and self.reports == settings.most_reports:
            raise ProtocolError(f"this round holds {settings.most_reports:,} reports, as many as its sum can.")
        digests = digests_of(report) if checked else check_report(settings, self._private, report)
        self._total = self._ciphertexts.add(self._total, report.body)
        self._clients.add(report.client)
        return tuple(
            Deposit(settings.name, report.client, digests, report.signature, report.parts, box) for box in report.boxes
        )

    @property
    def closed(self) -> bool:
        """Whether a set was proposed: nothing is added any more, or left out."""
        return self._agreed is not None

    def unchecked(self, decryptor: int) -> frozenset[bytes]:
        """Clients of the sum whose reports this decryptor has not found to fit or not."""
        return frozenset(self._clients - self._findings[decryptor].keys())

    @property
    def checked(self) -> frozenset[int]:
        """The decryptors that have checked every report of the sum."""
        return frozenset(index for index in range(len(self._findings)) if not self.unchecked(index))

    @property
    def wrong(self) -> dict[bytes, str]:
        """Clients in the sum whose reports do not fit, and why, by the first decryptor that says so."""
        return {
            client: f"decryptor {index}: {why}"
            for index, found in reversed(list(enumerate(self._findings)))
            for client, why in found.items()
            if why and client in self._clients
        }

    def leave_out(self, data: bytes) -> None:
        """Take a report that was added off the sum again, before the set is closed.

        data: the report. Its client may send no other. Raises: ProtocolError for one that was not added.
        """
        report = OneMessageReport.from_bytes(data, round=self._settings.name)
        if self.closed or report.client not in self._clients:
            raise ProtocolError(
                f"no report of {_short(report.client)} can be left out: the sum has none, or is closed."
            )
        self._total = self._ciphertexts.take_off(self._total, report.body)
        self._clients.remove(report.client)
        self._left_out.add(report.client)

    def propose(self) -> SetProposal:
        """Close the set: for every decryptor.

        Raises: RoundAborted where fewer reports came than the report goal, or not all contributors' noise, or a report
        that does not fit was not left out.
        """
        if wrong := next(iter(self.wrong.items()), None):
            raise RoundAborted(f"the report of {_short(wrong[0])} does not fit, and is in the sum ({wrong[1]}).")
        try:
            reports = self._settings.reports(self._clients)
        except InputError as error:
            raise RoundAborted(str(error)) from None
        if reports < self._settings.report_goal:
            raise RoundAborted(
                f"{reports} reports came, and no sum of fewer than {self._settings.report_goal} is opened."
            )
        self._agreed = tuple(sorted(self._clients))
        self._digest = set_digest(self._settings.name, self._agreed)
        return SetProposal(self._settings.name, self._agreed)

    @property
    def signed(self) -> frozenset[int]:
        """The decryptors that have signed the set."""
        return frozenset(self._votes)

    @property
    def summed(self) -> frozenset[int]:
        """The decryptors that have given their sum."""
        return frozenset(self._sums)

    def answer(self, data: bytes) -> None:
        """Take what a decryptor answers. Raises: ProtocolError for a refusal, and for what is not of the proposed
        set.
        """
        kinds = (Finding, Vote, KeySum, Refusal)
        message = cast("Finding | Vote | KeySum | Refusal", parsed(data, kinds, round=self._settings.name))
        if isinstance(message, Refusal):
            raise ProtocolError(f"a decryptor refuses: {reason_of(message.reason)}")
        if isinstance(message, Finding):
            self._hear(message)
        elif isinstance(message, Vote):
            self._vote(message)
        else:
            self._key_sum(message)

    def agreement(self) -> Agreement:
        """For every decryptor. Raises: RoundAborted as long as fewer than a quorum has signed the set."""
        if len(self._votes) < self._settings.quorum:
            raise RoundAborted(
                f"{len(self._votes)} of {len(self._settings.decryptors)} decryptors signed the set, and "
                f"{self._settings.quorum} are needed."
            )
        return Agreement(self._settings.name, tuple(self._votes), tuple(self._votes.values()))

    def opened(self) -> Vector:
        """The sum (dimension,) uint32 of the vectors of the agreed set, and of noise modulo 2^32, margins taken off.

        Raises: RoundAborted with the cause where too few decryptors answered, their answers are no sum of keys, or the
        sum fails its checks: then there is no sum.
        """
        slots, ring = self._settings.slots, self._settings.slots.parameters.ring
        key = ring.prepared(ring.transform(ring.reduced(-self._key())))
        found = []
        for index, total in enumerate(self._ciphertexts.finish(self._total)):
            plain = total.copy()
            ring.add_product(plain, public_polynomial(slots.parameters, self._settings.seed, index), key)
            found.append(opened(slots, centred(ring, inverted(ring, plain)), index, self.reports))
        return np.concatenate(found)

    def _hear(self, finding: Finding) -> None:
        self._must_be_a_decryptor(finding.decryptor)
        signed = signed_finding(self._settings.name, finding.client, finding.wrong)
        check_signature(self._settings.decryptors[finding.decryptor], "finding", signed, finding.signature)
        if finding.client in self._clients:  # another's would fill the memory
            self._findings[finding.decryptor][finding.client] = reason_of(finding.wrong) if finding.wrong else ""

    def _vote(self, vote: Vote) -> None:
        self._must_be_for_the_set(vote.decryptor, vote.clients)
        check_signature(self._settings.decryptors[vote.decryptor], "set", vote.clients, vote.signature)
        self._votes[vote.decryptor] = vote.signature

    def _key_sum(self, answer: KeySum) -> None:
        self._must_be_for_the_set(answer.decryptor, answer.clients)
        signed = signed_sum(self._settings.name, answer.clients, answer.shares)
        check_signature(self._settings.decryptors[answer.decryptor], "key sum", signed, answer.signature)
        self._sums[answer.decryptor] = elements(answer.shares, self._settings.columns)

    def _key(self) -> Integers:
        """The sum (N,) of the clients' keys, from as many decryptors as are needed; the others must agree with them."""
        quorum, packed = self._settings.quorum, self._settings.packed
        if len(self._sums) < quorum:
            raise RoundAborted(f"{len(self._sums)} decryptors gave their sums, and {quorum} are needed.")
        points, shares = [decryptor + 1 for decryptor in self._sums], np.array(list(self._sums.values()))
        others = combined(lagrange(points[:quorum], points[quorum:]), shares[:quorum]) if points[quorum:] else None
        if others is not None and not np.array_equal(others, shares[quorum:]):
            raise RoundAborted("the sums of the decryptors contradict one another: one of them is false.")
        residues = rebuilt(shares[:quorum], points[:quorum], packed=packed).ravel().astype(np.int64)
        signed = np.where(residues > PRIME // 2, residues - PRIME, residues)
        key = signed[: self._settings.slots.parameters.degree]  # behind it a client may have put anything
        if np.abs(key).max() > TAIL * len(self._clients):
            raise RoundAborted("what the decryptors gave is no sum of clients' keys.")
        return key

    def _must_be_a_decryptor(self, decryptor: int) -> None:
        if decryptor >= len(self._settings.decryptors):
            raise ProtocolError(f"there is no decryptor {decryptor} in this round.")

    def _must_be_for_the_set(self, decryptor: int, digest: bytes) -> None:
        self._must_be_a_decryptor(decryptor)
        if self._agreed is None or digest != self._digest:
            raise ProtocolError(f"decryptor {decryptor} answers for a set that was not proposed.")


def check_report(settings: OneMessageRound, private: bytes, report: OneMessageReport) -> tuple[bytes, ...]:
    """The digests that the client signed, of a report that is whole and its client's own, be it its second.

    private: the server's key of this round. Raises: ProtocolError for a report that is damaged or forged.
    """
    if len(report.body) != settings.body_bytes or len(report.boxes) != len(settings.decryptors):
        raise ProtocolError(
            f"the report of {_short(report.client)} has {len(report.body)} bytes of ciphertext and "
            f"{len(report.boxes)} boxes; this round takes {settings.body_bytes} and {len(settings.decryptors)}."
        )
    if wrong := {len(box) for box in report.boxes} - {settings.box_bytes}:
        raise ProtocolError(
            f"a box of {_short(report.client)} has {min(wrong)} bytes and not {settings.box_bytes}: no decryptor could"
            " add what is in it, and the round would be void."
        )
    digests = digests_of(report)
    signed = signed_report(settings.name, report.client, digests, report.parts)
    check_signature(report.client, "report", signed, report.signature)
    key = agreed(private, report.ephemeral, "report tag", settings.name, report.client)
    check_tag(key, report.body, report.tag)
    if hashlib.sha256(report.body).digest() != report.body_digest:
        raise ProtocolError(f"the ciphertexts of {_short(report.client)} are not those that its digest is of.")
    _check_fit(settings, report, digests)
    return digests


def _check_fit(settings: OneMessageRound, report: OneMessageReport, digests: tuple[bytes, ...]) -> None:
    """Raises: ProtocolError where ciphertexts are not under the key that the report's parts speak of.

    Whether these are the key's that is shared, decryptors find.
    """
    checking, each = settings.parts_shape
    parts = elements(report.parts, checking * each).reshape(checking, each)
    parameters, size = settings.slots.parameters, packed_bytes(settings.slots.parameters.ring)
    body, scaled = memoryview(report.body), []
    for index in range(settings.slots.polynomials):
        residues = np.zeros((len(parameters.primes), parameters.degree), np.uint64)
        add_packed(parameters.ring, residues, body[index * size : (index + 1) * size])
        scaled.append(switched(parameters.ring, residues))
    challenge = settings.challenge(report.client, digests)
    values = check_values(challenge, np.stack(scaled), settings.key_in_tests(parts))
    if not within(values, check_range(parameters).most):
        raise ProtocolError(f"the ciphertexts of {_short(report.client)} are not under the key that it speaks of.")


def digests_of(report: OneMessageReport) -> tuple[bytes, ...]:
    """What its client signed."""
    return report_digests(report.boxes, report.ephemeral, report.tag, report.body_digest)


def _short(identity: bytes) -> str:
    return identity.hex()[:16]


def smallest_parameters(
    dimension: int, largest: int, most_reports: int, *, contributors: int = 0, margin: int = 0
) -> bytes:
    """The name of the published set whose ciphertexts are the shortest, as a SealedRound takes it."""
    sizes = {
        name: Slots(each, dimension, largest, most_reports, contributors, margin).polynomials * packed_bytes(each.ring)
        for name, each in PUBLISHED.items()
    }
    return min(sizes, key=sizes.__getitem__).encode()
