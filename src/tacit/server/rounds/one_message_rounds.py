"""The coordinator's part in a sealed round: it adds ciphertexts as they come, and has decryptors check and open them.

All that it knows it can know again: the reports are blobs, the server's key follows from the operator's and the task,
and a decryptor that is asked again answers the same. So a coordinator that is killed anywhere, and started again, asks
for the sum of the same set; and a decryptor that is killed is sent everything once more. What a decryptor is sent at
once begins with the opening of the round, so that decryptors may serve several runs.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile
from typing import Protocol

from tacit.errors import ProtocolError, RoundAborted, StoreError
from tacit.protocol.messages import Plan, RoundTask, Signed, SignedPlan, TrainingPrivacy
from tacit.protocol.one_message_shape import settings_of
from tacit.secure_aggregation.one_message.decryptor_messages import NoiseRequest, Opening, Refusal, Vote, reason_of
from tacit.secure_aggregation.one_message.messages import OneMessageReport, OneMessageRound
from tacit.secure_aggregation.one_message.server import OneMessageServer
from tacit.secure_aggregation.one_message.slots import Vector
from tacit.secure_aggregation.wire import opened
from tacit.server.store import round_states
from tacit.server.store.blobs import BlobStore, model_name, one_message_name
from tacit.server.store.round_states import Lease
from tacit.server.store.store import Store
from tacit.server.sums.one_message_reports import StoredReports, stored_reports

ASKED_AGAIN_S = 30.0  # a decryptor that was away is not asked to check before: it may take long to find that it is

log = logging.getLogger("tacit.server")


class DecryptorAway(Exception):
    """A decryptor did not answer; says why."""


class NotYet(Exception):
    """There is no sum now, and may be one later; says why."""


class SeriesSigned(Exception):
    """Too many decryptors have signed a set of another attempt of this series; says which."""


class DecryptorTransport(Protocol):
    """How one decryptor is reached."""

    @property
    def name(self) -> str:
        """For whoever reads the log."""
        ...

    def ask(self, messages: Iterable[bytes]) -> Sequence[bytes]:
        """Its answers to messages in their order, up to its first refusal or its sum of keys.

        Raises: DecryptorAway.
        """
        ...


class NoiseRequests:
    """What contributors of a run are asked for their noise with."""

    def __init__(self, blobs: BlobStore, signed: SignedPlan) -> None:
        """blobs: with the file of the plan's matrix."""
        self._plan, self._signed_plan = signed.read(Plan), signed.to_json().encode()
        privacy = self._plan.privacy
        self._matrix = privacy.matrix if isinstance(privacy, TrainingPrivacy) else None
        self._blobs = blobs

    def request(self, signed: Signed, *, give: bool) -> bytes:
        """The message for the attempt of this task. give: it is to be given now, and for no other attempt at the round.

        Raises: StoreError where the matrix cannot be read.
        """
        sealed, file = signed.read(RoundTask).sealed, self._matrix
        assert sealed is not None  # the caller's to know
        matrix = b"" if file is None else self._blobs.get(model_name(file.sha256), digest=file.sha256)
        task = signed.to_json().encode()
        return NoiseRequest(settings_of(sealed).name, int(give), self._signed_plan, task, bytes(matrix)).to_bytes()

    def among(self, decryptors: Sequence[DecryptorTransport]) -> dict[bytes, DecryptorTransport]:
        """By identity, those of the plan's decryptors that add noise."""
        said = self._plan.aggregation
        known = dict(zip(said.keepers, decryptors, strict=True))
        return {bytes.fromhex(key): known[key] for key in said.contributors}


class OneMessageOpening:
    """One attempt's sealed reports, from the first that is added to their sum."""

    def __init__(
        self,
        store: Store,
        blobs: BlobStore,
        decryptors: Sequence[DecryptorTransport],
        *,
        task: str,
        settings: OneMessageRound,
        private: bytes,
        noise: NoiseRequests | None = None,
        signed_task: Signed | None = None,
        noised: bool = False,
    ) -> None:
        """decryptors: in the order of the settings; private: the server's key of the attempt. noise, signed_task: where
        decryptors add noise, how they are asked for it; noised: whether they may have been asked already.
        """
        self._store, self._blobs, self._task, self._decryptors = store, blobs, task, decryptors
        self._settings, self._server = settings, OneMessageServer(settings, private)
        self._added: dict[str, bytes] = {}  # clients by assignment
        self._noise_of: set[bytes] = set()  # contributors whose report is in the sum
        self._deposits = [_ReportStore() for _ in decryptors]
        self._refusals: dict[int, str] = {}
        self._away_since: dict[int, float] = {}
        self._noise, self._signed_task = noise, signed_task
        # whether any contributor may have given its noise: for this attempt, and for no other
        self.noised = noised and bool(settings.contributors)
        self.since: float | None = None  # when the sum was asked for first

    @property
    def reports(self) -> int:
        """How many are in the sum."""
        return self._server.reports

    @property
    def checked(self) -> bool:
        """Whether a quorum of decryptors has checked all that was added, or refuses to."""
        return len(self._server.checked | self._refusals.keys()) >= self._settings.quorum

    def close(self) -> None:
        """The decryptors' boxes go from this machine's disk."""
        for each in self._deposits:
            each.close()

    def add_new(self, lease: Lease) -> None:
        """Add what was counted since; what cannot be added is lost, and its place another's.

        Raises: NotYet where the store or a blob cannot be read; LeaseLost.
        """
        try:
            for each in stored_reports(self._store, self._task):
                if each.assignment in self._added:
                    continue
                try:
                    deposits = self._server.receive(self._body_of(each), checked=True)
                except ProtocolError as error:  # a client's second, or it is gone: all else a worker has checked
                    log.warning("a sealed report is left out: %s", error)
                    round_states.discount(self._store, lease, self._task, each.assignment)
                    continue
                for messages, deposit in zip(self._deposits, deposits, strict=True):
                    messages.add(deposit.client, deposit.to_bytes())
                self._added[each.assignment] = deposits[0].client
        except StoreError as error:
            raise NotYet(str(error)) from error

    def check_new(self, lease: Lease, *, last: bool = False) -> None:
        """Have decryptors check what was added since; what does not fit is left out, and its place another's.

        A decryptor that is away may check at a later call, as long as nobody has asked for the sum. last: ask those,
        too, that were away a moment ago. Raises: NotYet where the store or a blob cannot be read; LeaseLost.
        """
        if self._server.closed:
            return
        now, opening = self._store.now(), [self._server.opening().to_bytes()]
        unchecked = {
            index: clients
            for index in range(len(self._decryptors))
            if (clients := self._server.unchecked(index)) and index not in self._refusals
            if last or not 0 <= now - self._away_since.get(index, -math.inf) < ASKED_AGAIN_S
        }
        away = self._ask_those(
            list(unchecked), lambda index: _one_after_other(opening, self._deposits[index].of(unchecked[index]))
        )
        self._away_since |= dict.fromkeys(away, now)
        if not (wrong := self._server.wrong):
            return
        try:
            for each in stored_reports(self._store, self._task):
                if (client := self._added.get(each.assignment)) in wrong:
                    self._leave_out(client, self._body_of(each))
                    log.warning("the sealed report of %s is left out: %s", client.hex()[:16], wrong[client])
                    round_states.discount(self._store, lease, self._task, each.assignment)
        except StoreError as error:
            raise NotYet(str(error)) from error
        except ProtocolError as error:
            raise NotYet(f"a report that does not fit cannot be left out: {error}") from error

    def _leave_out(self, client: bytes, report: bytes) -> None:
        self._server.leave_out(report)
        for each in self._deposits:
            each.remove(client)

    def _body_of(self, each: StoredReports) -> bytes:
        """Raises: ProtocolError where it is gone, or not what was counted; StoreError where it may be read later."""
        name = one_message_name(self._task, *each)
        try:
            return self._blobs.get(name, digest=each.body_digest)
        except StoreError as error:
            if error.__cause__ is not None and self._blobs.size(name) is not None:
                raise
            raise ProtocolError(f"it was lost after it was counted ({error})") from error

    def opened(self) -> Vector:
        """The sum (dimension,) uint32 of what was added; after the first call nothing more is.

        Raises: RoundAborted where there will be none; NotYet where too few decryptors answer now.
        """
        server = self._server
        self._add_noise()
        for index in set(range(len(self._decryptors))) - server.checked:
            log.warning("%s has not checked all reports: one that does not fit would void the sum", self._name(index))
        head = [server.opening().to_bytes(), server.propose().to_bytes()]
        self._ask_decryptors(lambda index: head, lambda: server.signed)
        head.append(server.agreement().to_bytes())
        self._ask_decryptors(lambda index: _one_after_other(head, self._deposits[index]), lambda: server.summed)
        return server.opened()

    def _add_noise(self) -> None:
        """The reports of all contributors, once all say that they would give them; they give the same ones again.

        Raises: NotYet; RoundAborted where one refuses.
        """
        if self._noise is None or self._signed_task is None or not self._settings.contributors:
            return
        every = self._noise.among(self._decryptors)
        those = {identity: each for identity, each in every.items() if identity not in self._noise_of}
        if not those:
            return
        try:
            asked, wanted = (self._noise.request(self._signed_task, give=give) for give in (False, True))
        except StoreError as error:
            raise NotYet(str(error)) from error
        answers_of_contributors(those, asked, self._settings)
        self.noised = True
        for identity, answers in answers_of_contributors(those, wanted, self._settings).items():
            try:
                report = OneMessageReport.from_bytes(b"".join(answers[:1]), round=self._settings.name)
                if report.client != identity:
                    raise ProtocolError("its report is another's.")
                deposits = self._server.receive(answers[0])
            except ProtocolError as error:
                raise RoundAborted(f"{those[identity].name} gave no noise: {error}") from None
            for messages, deposit in zip(self._deposits, deposits, strict=True):
                messages.add(identity, deposit.to_bytes())
            self._noise_of.add(identity)
        self._check_noise()

    def _check_noise(self) -> None:
        """Have decryptors check the contributors' reports, of which none can be left out.

        Raises: RoundAborted where one does not fit; it then names whose.
        """
        opening, left = [self._server.opening().to_bytes()], set(range(len(self._decryptors))) - self._refusals.keys()
        self._ask_those(sorted(left), lambda index: _one_after_other(opening, self._deposits[index].of(self._noise_of)))
        wrong = {client: why for client, why in self._server.wrong.items() if client in self._noise_of}
        for client, why in wrong.items():
            raise RoundAborted(f"the noise of the contributor {client.hex()[:16]} cannot be opened: {why}")

    def _ask_decryptors(
        self, messages: Callable[[int], Iterable[bytes]], answered: Callable[[], Collection[int]]
    ) -> None:
        """Until a quorum has answered. Raises: NotYet; RoundAborted where too many refuse."""
        away = self._ask_those(
            [
                index
                for index in range(len(self._decryptors))
                if index not in answered() and index not in self._refusals
            ],
            messages,
        )
        quorum = self._settings.quorum
        if len(answered()) >= quorum:
            return
        if len(self._decryptors) - len(self._refusals) < quorum:
            raise RoundAborted(f"{len(self._refusals)} decryptors refuse: {' '.join(self._refusals.values())}")
        raise NotYet(f"{len(answered())} decryptors answered, and {quorum} are needed ({'; '.join(away.values())}).")

    def _ask_those(self, missing: Sequence[int], messages: Callable[[int], Iterable[bytes]]) -> dict[int, str]:
        """Who of them is away, and why."""
        with ThreadPoolExecutor(max(1, len(missing))) as threads:
            found = list(threads.map(lambda index: _answers(self._decryptors[index], messages(index)), missing))
        away = {}
        for index, answers in zip(missing, found, strict=True):
            if isinstance(answers, DecryptorAway):
                away[index] = f"{self._name(index)}: {answers}"
            else:
                self._hear(index, answers)
        return away

    def _name(self, index: int) -> str:
        return self._decryptors[index].name

    def _hear(self, index: int, answers: Iterable[bytes]) -> None:
        for answer in answers:
            try:
                self._server.answer(answer)
            except ProtocolError as error:
                self._refusals[index] = f"{self._name(index)}: {error}"
                return


def check_decryptors(decryptors: Sequence[DecryptorTransport], settings: OneMessageRound) -> None:
    """Whether a quorum of decryptors would open such a round, before any device works for it.

    Raises: RoundAborted where too many refuse; SeriesSigned where too many have promised another attempt of the series
    to be the only one; NotYet where too few answer.
    """
    opening = Opening(settings.name, settings.to_bytes()).to_bytes()
    refusals, signed, away = [], [], []
    with ThreadPoolExecutor(len(decryptors)) as threads:
        found = list(threads.map(lambda each: _answers(each, [opening]), decryptors))
    for decryptor, answers in zip(decryptors, found, strict=True):
        if isinstance(answers, DecryptorAway):
            away.append(f"{decryptor.name}: {answers}")
        elif answers and _is_vote(answers[0]):
            signed.append(decryptor.name)
        elif answers:
            refusals.append(f"{decryptor.name}: {_reason(answers[0], settings)}")
    left = len(decryptors) - len(refusals)
    if left < settings.quorum:
        raise RoundAborted(f"{len(refusals)} of {len(decryptors)} decryptors refuse such rounds: {' '.join(refusals)}")
    if left - len(signed) < settings.quorum:
        raise SeriesSigned(f"{', '.join(signed)} signed a set of another attempt at the round.")
    if left - len(signed) - len(away) < settings.quorum:
        raise NotYet(f"too few decryptors answer, and {settings.quorum} are needed ({'; '.join(away)}).")


def answers_of_contributors(
    contributors: Mapping[bytes, DecryptorTransport], request: bytes, settings: OneMessageRound
) -> dict[bytes, Sequence[bytes]]:
    """By identity, what each answers. Raises: RoundAborted where one refuses; NotYet where one does not answer."""
    with ThreadPoolExecutor(max(1, len(contributors))) as threads:
        found = list(threads.map(lambda each: _answers(each, [request]), contributors.values()))
    away, refusals, given = [], [], dict[bytes, Sequence[bytes]]()
    for (identity, contributor), answers in zip(contributors.items(), found, strict=True):
        if isinstance(answers, DecryptorAway):
            away.append(f"{contributor.name}: {answers}")
        elif answers and opened(answers[0])[0] == Refusal.kind:
            refusals.append(f"{contributor.name}: {_reason(answers[0], settings)}")
        else:
            given[identity] = answers
    if refusals:
        raise RoundAborted(f"no sum is opened without the noise of each contributor, and {' '.join(refusals)}")
    if away:
        raise NotYet(f"no sum is opened without the noise of each contributor ({'; '.join(away)}).")
    return given


def _answers(decryptor: DecryptorTransport, messages: Iterable[bytes]) -> Sequence[bytes] | DecryptorAway:
    try:
        return decryptor.ask(messages)
    except DecryptorAway as error:
        return error


def _is_vote(answer: bytes) -> bool:
    try:
        Vote.from_bytes(answer)
    except ProtocolError:
        return False
    return True


def _reason(answer: bytes, settings: OneMessageRound) -> str:
    try:
        return reason_of(Refusal.from_bytes(answer, round=settings.name).reason)
    except ProtocolError as error:
        return f"it answers what nobody asked ({error})"


def _one_after_other(head: Iterable[bytes], tail: Iterable[bytes]) -> Iterator[bytes]:
    yield from head
    yield from tail


class _ReportStore:
    """Messages on disk, in a file without a name: a decryptor's boxes of a round, each 10 to 33 kB."""

    def __init__(self) -> None:
        self._file, self._places = TemporaryFile(), dict[bytes, tuple[int, int]]()  # noqa: SIM115 - it goes with this

    def add(self, client: bytes, message: bytes) -> None:
        self._places[client] = self._file.seek(0, 2), len(message)
        self._file.write(message)

    def remove(self, client: bytes) -> None:
        del self._places[client]

    def of(self, clients: Collection[bytes]) -> Iterator[bytes]:
        """The messages of these clients, in the order in which they came."""
        return (self._read(*place) for client, place in self._places.items() if client in clients)

    def __iter__(self) -> Iterator[bytes]:
        return self.of(self._places.keys())

    def _read(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        return self._file.read(size)

    def close(self) -> None:
        self._file.close()
