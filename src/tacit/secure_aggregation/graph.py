"""Who masks with whom: everybody with everybody in small cohorts, a random ring of neighbours in large ones.

Bell, Bonawitz, Gascón, Lepoint and Raykova, "Secure single-server aggregation with (poly)logarithmic overhead", 2020
(ePrint 2020/704), section 3: a Harary graph, in which everybody has the k / 2 nearest on both sides of a ring for
neighbours, over a random order of the clients. Bonawitz et al. 2017 is all pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import comb

from tacit.errors import InputError
from tacit.secure_aggregation.secrets import seeded

ALL_PAIRS = 64  # clients up to which everybody is everybody's neighbour
MOST_CLIENTS = 100_000
SECURITY_BITS = 40  # a round's graph is unsafe with probability 2^-40 at most
SUCCESS_BITS = 30  # and a round that loses no more clients than planned fails with 2^-30 at most
ORDER_BYTES = 16  # by which a client is sorted


@dataclass(frozen=True)
class GraphPlan:
    """What follows from how many clients there are, may vanish and may collude with the server."""

    clients: int
    dropped: int  # D, the most that vanish before the end
    corrupted: int  # C, the most that tell the server all they know
    degree: int  # k, neighbours of each
    threshold: int  # t, shares that rebuild a secret of a neighbour

    @property
    def quorum(self) -> int:
        """Clients that must have signed one account of who is in the sum: more than (clients + corrupted) / 2.

        Two accounts with a quorum each would have more than `corrupted` signers in common, an honest one among them,
        and an honest client signs once.
        """
        return (self.clients + self.corrupted) // 2 + 1


@cache
def graph_plan(clients: int, *, dropout: int, corruption: int) -> GraphPlan:
    """Degree and threshold for a cohort of 2 to 100,000; `dropout` and `corruption` are in thousandths of it.

    Up to 64 clients all pairs, and the threshold quorum - 1: what suffices to agree suffices to open the sum. Above,
    the smallest even degree for which some threshold (the smallest such is taken) leaves a chance of at most

    - 2^-40 that an honest client has `threshold` corrupted neighbours, or that honest clients who stay fall into parts
      that share no mask (then the server learns the sum of each part), and
    - 2^-30 that, with no more than `dropped` gone, somebody has fewer than `threshold` neighbours left, and the
      round fails.

    Both are union bounds over clients of exact hypergeometric tails, computed in whole numbers, so that a server and
    a phone cannot differ: ePrint 2020/704, section 3, with corrupted and dropped clients chosen before the order is.
    Raises: InputError where no degree is enough.
    """
    if not 2 <= clients <= MOST_CLIENTS:
        raise InputError(f"a cohort has 2 to {MOST_CLIENTS:,} clients, not {clients}.")
    if not (0 <= dropout < 1000 and 0 <= corruption < 1000):
        raise InputError(f"dropout={dropout} and corruption={corruption} are thousandths; give 0 to 999.")
    dropped, corrupted = -(-clients * dropout // 1000), -(-clients * corruption // 1000)
    for degree, threshold in _candidates(clients, dropped, corrupted):
        plan = GraphPlan(clients, dropped, corrupted, degree, threshold)
        if threshold and plan.quorum <= clients:
            return plan
    raise InputError(
        f"{dropped} of {clients} clients may vanish and {corrupted} collude: no graph is safe then; "
        "expect fewer of either, or take more clients."
    )


def _candidates(clients: int, dropped: int, corrupted: int) -> Iterator[tuple[int, int]]:
    """(degree, threshold), the sparsest graph first; threshold 0 where none will do."""
    if clients <= ALL_PAIRS:
        yield clients - 1, (clients + corrupted) // 2
        return
    for degree in range(2, clients, 2):
        yield degree, _threshold(clients, dropped, corrupted, degree)


def _threshold(clients: int, dropped: int, corrupted: int, degree: int) -> int:
    """The smallest threshold that is safe with this degree, where it also lets rounds succeed; else 0."""
    # Somebody's neighbours on one side of the ring are all gone: P <= clients * parted / orders.
    parted, orders = clients * comb(corrupted + dropped, degree // 2), comb(clients, degree // 2)
    ways, surrounded = comb(clients - 1, degree), _tail(clients - 1, corrupted, degree)
    for threshold in range(1, degree + 1):
        # P = (clients - corrupted) * surrounded / ways + parted / orders <= 2^-40, brought to one denominator
        unsafe = (clients - corrupted) * surrounded[threshold] * orders + parted * ways
        if unsafe << SECURITY_BITS <= ways * orders:
            break
    else:
        return 0
    # Of the others, as many stay as `dropped` leaves: of those of one who stays itself, and of one who vanishes.
    stay, gone = (_tail(clients - 1, max(0, min(clients - 1, clients - dropped - own)), degree) for own in (1, 0))
    failed = (clients - dropped) * (ways - stay[threshold]) + dropped * (ways - gone[threshold])
    return threshold if failed << SUCCESS_BITS <= ways else 0


def _tail(population: int, marked: int, drawn: int) -> list[int]:
    """tail[x]: in how many of the comb(population, drawn) ways at least x of those drawn are marked; x to drawn + 1."""
    counts = [comb(marked, x) * comb(population - marked, drawn - x) for x in range(drawn + 1)]
    tail = [0]
    for count in reversed(counts):
        tail.append(tail[-1] + count)
    return tail[::-1]


def neighbours(plan: GraphPlan, seed: bytes) -> list[list[int]]:
    """The neighbours of each client, in ascending order; who is whose neighbour follows from 32 public bytes.

    Clients are sorted by 16 bytes each of the stream of the seed (`secrets.seeded`), client 0 taking the first; a
    client's neighbours are the degree / 2 before it and behind it in that ring.
    """
    if plan.degree == plan.clients - 1:
        return [[other for other in range(plan.clients) if other != client] for client in range(plan.clients)]
    draw = seeded(seed)
    ring = [client for _, client in sorted((draw(ORDER_BYTES), client) for client in range(plan.clients))]
    found: list[list[int]] = [[] for _ in ring]
    for one, other in _edges(ring, plan.degree):
        found[one].append(other)
        found[other].append(one)
    return [sorted(each) for each in found]


def _edges(ring: list[int], degree: int) -> Iterator[tuple[int, int]]:
    for place, client in enumerate(ring):
        for step in range(1, degree // 2 + 1):
            yield client, ring[(place + step) % len(ring)]
