"""A small round of one message, step by step, for tests that meddle with one step."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.decryptor import Decryptor, make_decryptor
from tacit.secure_aggregation.one_message.decryptor_messages import Deposit, KeySum, Vote
from tacit.secure_aggregation.one_message.messages import OneMessageReport, OneMessageRound
from tacit.secure_aggregation.one_message.server import OneMessageServer
from tacit.secure_aggregation.secrets import Identity, Words

DIMENSION, LARGEST = 300, 100
DRAW = secrets.seeded(b"small rounds of one message, for")
SERVER = DRAW(32)
CLIENTS = [Identity(DRAW(32)) for _ in range(6)]


def vectors(count: int, *, seed: int = 1, dimension: int = DIMENSION) -> list[Words]:
    return list(np.random.default_rng(seed).integers(0, LARGEST, (count, dimension), np.uint32, endpoint=True))


def summed(each: Sequence[Words]) -> list[int]:
    found: list[int] = np.sum(each, axis=0, dtype=np.uint64).tolist()
    return found


@dataclass
class Small:
    """Decryptors in folders, a server, and what is public."""

    settings: OneMessageRound
    server: OneMessageServer
    decryptors: list[Decryptor]
    folders: list[Path]

    def report(self, client: int, vector: Words) -> OneMessageReport:
        return one_message_report(self.settings, CLIENTS[client], vector, draw=DRAW)

    def received(self, count: int) -> list[tuple[Deposit, ...]]:
        """The deposits of the first clients, whose reports the server has then."""
        return self.received_of(vectors(count))

    def received_of(self, each: Sequence[Words]) -> list[tuple[Deposit, ...]]:
        """The same, of these vectors."""
        return [self.server.receive(self.report(client, vector).to_bytes()) for client, vector in enumerate(each)]

    def asked(self, index: int, *, agreement: bool = True) -> Decryptor:
        """A decryptor that knows the proposed set and, unless it is not to, the agreement of all."""
        self.decryptors[index].receive(self.server.opening().to_bytes())
        vote = self.decryptors[index].receive(self.server.propose().to_bytes())
        assert isinstance(vote, Vote)
        self.server.answer(vote.to_bytes())
        if agreement:
            self.decryptors[index].receive(self.server.agreement().to_bytes())
        return self.decryptors[index]

    def agree(self) -> None:
        """All decryptors vote and hear of it."""
        for index in range(len(self.decryptors)):
            self.asked(index, agreement=False)
        for decryptor in self.decryptors:
            decryptor.receive(self.server.agreement().to_bytes())

    def summed_by(self, index: int, deposits: Sequence[tuple[Deposit, ...]]) -> KeySum:
        """What a decryptor gives when it has got all deposits."""
        answers = [self.decryptors[index].receive(each[index].to_bytes()) for each in deposits]
        assert answers[:-1] == [None] * (len(answers) - 1)
        assert isinstance(answers[-1], KeySum)
        return answers[-1]


def small_round(
    folder: Path,
    *,
    decryptors: int = 4,
    corrupt: int = 1,
    report_goal: int = 2,
    most_reports: int = 6,
    dimension: int = DIMENSION,
    parameters: bytes = b"willow-4096",
    seed: bytes = bytes(32),
    plan: bytes = bytes(32),
    round_index: int = 0,
    series: int = 0,
    contributors: int = 0,
    margin: int = 0,
) -> Small:
    """A round of small vectors; its decryptors are those of the folder, the last clients contribute noise."""
    folders = [folder / str(index) for index in range(decryptors)]
    for each in folders:
        make_decryptor(each)
    made = [Decryptor(each, least_reports=2) for each in folders]
    settings = OneMessageRound(
        parameters,
        dimension,
        LARGEST,
        report_goal,
        most_reports,
        corrupt,
        tuple(each.identity for each in made),
        tuple(each.box for each in made),
        secrets.public_key(SERVER),
        seed,
        plan,
        round_index,
        series,
        tuple(each.public for each in CLIENTS[len(CLIENTS) - contributors :]),
        margin,
    )
    return Small(settings, OneMessageServer(settings, SERVER), made, folders)
