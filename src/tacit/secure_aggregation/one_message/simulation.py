"""Rounds of one message in memory, keepers in folders, with whatever goes wrong on the way; nothing for real vectors.

Whoever drives a real round does the same: it passes messages on, and sends them again where no answer came.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tacit.errors import InputError, ProtocolError, RoundAborted
from tacit.secure_aggregation.masked import secrets
from tacit.secure_aggregation.masked.secrets import Identity, Words
from tacit.secure_aggregation.one_message.client import sealed_report
from tacit.secure_aggregation.one_message.keeper import Keeper, make_keeper
from tacit.secure_aggregation.one_message.messages import Deposit, KeySum, SealedRound, Vote, smallest_parameters
from tacit.secure_aggregation.one_message.server import SealedServer
from tacit.secure_aggregation.simulate import Faults, Post

ATTEMPTS = 4  # to get an answer of a keeper
KeeperLie = Callable[[int, Vote | KeySum], Vote | KeySum | None]  # what a keeper says instead; None: nothing


@dataclass
class SealedParties:
    """Everybody in a round, and everything that chance decides; all follows from a seed, keepers' keys included."""

    settings: SealedRound
    server: SealedServer
    identities: list[Identity]  # of the clients, and of the contributors of noise behind them
    keepers: list[Keeper]
    chance: random.Random

    @classmethod
    def of(
        cls,
        count: int,
        folder: Path,
        *,
        dimension: int,
        largest: int,
        seed: int,
        report_goal: int = 2,
        keepers: int = 4,
        corrupt: int = 1,
        contributors: int = 0,
        margin: int = 0,
    ) -> "SealedParties":
        """`count` clients and so many contributors of noise from -margin to margin each.

        Keepers are in folders below `folder`, made where they are not there.
        """
        chance = random.Random(seed)
        draw = secrets.seeded(chance.randbytes(32))
        folders = [folder / f"keeper-{index}" for index in range(keepers)]
        for each in folders:
            make_keeper(each, draw=draw)
        identities = [Identity(draw(secrets.KEY_BYTES)) for _ in range(count + contributors)]
        noise = tuple(each.public for each in identities[count:])
        made = [Keeper(each, least_reports=2, always=noise) for each in folders]
        private = draw(secrets.KEY_BYTES)
        most = max(count, report_goal)
        settings = SealedRound(
            parameters=smallest_parameters(dimension, largest, most, contributors=contributors, margin=margin),
            dimension=dimension,
            largest=largest,
            report_goal=report_goal,
            most_reports=most,
            corrupt=corrupt,
            keepers=tuple(each.identity for each in made),
            boxes=tuple(each.box for each in made),
            server=secrets.public_key(private),
            seed=draw(32),
            contributors=noise,
            margin=margin,
        )
        return cls(settings, SealedServer(settings, private), identities, made, chance)


@dataclass
class SealedOutcome:
    """What came of a round, and all that the server heard."""

    included: list[int] = field(default_factory=list)  # parties in the sum, by their place
    total: Words | None = None
    aborted: RoundAborted | None = None
    refused: list[str] = field(default_factory=list)  # why, message by message
    heard: list[bytes] = field(default_factory=list)


def run_sealed_round(
    parties: SealedParties,
    vectors: Sequence[Words],
    *,
    faults: Faults | None = None,
    leaving: Collection[int] = (),
    dead: Sequence[int] = (),
    killed: float = 0.0,
    lie: KeeperLie | None = None,
) -> SealedOutcome:
    """One round with a vector (dimension,) uint32 of each client, and of each contributor, its noise + margin.

    leaving: clients that vanish before they send anything. dead: keepers that answer nothing; killed: the chance that
    a keeper is, before a message, and starts again; lie: what keepers answer instead.
    """
    outcome, post = SealedOutcome(), Post(faults or Faults(), parties.chance)
    waiting = _reports(parties, vectors, post, outcome, leaving)
    desk = _Desk(parties, post, outcome, killed, lie)
    try:
        proposal = parties.server.propose().to_bytes()
        outcome.included = sorted(waiting)
        opening = parties.server.opening().to_bytes()
        alive = [index for index in range(len(parties.keepers)) if index not in dead]
        for index in alive:
            desk.ask(index, [opening, proposal], lambda: parties.server.signed)
        agreement = parties.server.agreement().to_bytes()
        for index in alive:
            deposits = [waiting[client][index].to_bytes() for client in outcome.included]
            desk.ask(index, [opening, proposal, agreement, *deposits], lambda: parties.server.summed)
        outcome.total = parties.server.opened()
    except RoundAborted as error:
        outcome.aborted = error
    return outcome


def _reports(
    parties: SealedParties, vectors: Sequence[Words], post: Post, outcome: SealedOutcome, leaving: Collection[int]
) -> dict[int, tuple[Deposit, ...]]:
    """What each client that was added has for the keepers."""
    places = {identity.public: index for index, identity in enumerate(parties.identities)}
    draw = secrets.seeded(parties.chance.randbytes(32))
    sent = [
        sealed_report(parties.settings, identity, vector, draw=draw).to_bytes()
        for place, (identity, vector) in enumerate(zip(parties.identities, vectors, strict=True))
        if place not in leaving and not post.happens(post.faults.vanishes)
    ]
    waiting: dict[int, tuple[Deposit, ...]] = {}
    for data in [*post.delivered("server", sent), *post.delivered("server", [])]:
        outcome.heard.append(data)
        try:
            deposits = parties.server.receive(data)
        except ProtocolError as error:
            outcome.refused.append(str(error))
            continue
        waiting[places[deposits[0].client]] = deposits
    return waiting


@dataclass
class _Desk:
    """Where server and keepers hear of one another."""

    parties: SealedParties
    post: Post
    outcome: SealedOutcome
    killed: float
    lie: KeeperLie | None

    def ask(self, index: int, messages: Sequence[bytes], answered: Callable[[], Collection[int]]) -> None:
        """Send a keeper these messages in their order until the server has its answer, or for so many times."""
        for _ in range(ATTEMPTS):
            answers: list[bytes] = []
            for data in messages:
                for arrived in self.post.delivered(index, [data]):
                    answers += self._answers(index, arrived)
            for data in self.post.delivered(("server", index), answers):
                self.outcome.heard.append(data)
                try:
                    self.parties.server.answer(data)
                except ProtocolError as error:
                    self.outcome.refused.append(str(error))
            if index in answered():
                return

    def _answers(self, index: int, data: bytes) -> list[bytes]:
        keepers = self.parties.keepers
        if self.post.happens(self.killed):
            keepers[index] = keepers[index].restarted()
        try:
            answer = keepers[index].receive(data)
        except (ProtocolError, InputError) as error:
            self.outcome.refused.append(str(error))
            return []
        if answer is not None and self.lie is not None:
            answer = self.lie(index, answer)
        return [] if answer is None else [answer.to_bytes()]
