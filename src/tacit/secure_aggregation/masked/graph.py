"""Who masks with whom: everybody with everybody in small cohorts, neighbours that each client draws in large ones.

After Bell, Bonawitz, Gascón, Lepoint and Raykova, "Secure single-server aggregation with (poly)logarithmic overhead",
2020 (ePrint 2020/704), whose clients choose their neighbours where the server may lie; the bounds are derived in
docs/secure-aggregation-protocols.md. Bonawitz et al. 2017 is all pairs.
"""

from dataclasses import dataclass
from functools import cache
from math import comb

from tacit.errors import InputError
from tacit.secure_aggregation.secrets import seeded

ALL_PAIRS = 64  # clients up to which everybody is everybody's neighbour
MOST_CLIENTS = 100_000
MOST_DEGREE = 1000  # looked at: a device that is invited is not to search for hours
SECURITY_BITS = 40  # a round opens more than one large sum with probability 2^-40 at most
SUCCESS_BITS = 20  # and a round that loses no more clients than planned fails with 2^-20 at most
LISTED = 128  # sizes of a group that are looked at one by one
WORD_BYTES = 4  # of the stream of a choice, for each draw


@dataclass(frozen=True)
class GraphPlan:
    """What follows from how many clients there are, may vanish and may collude with the server."""

    clients: int
    dropped: int  # D, the most that vanish before the end
    corrupted: int  # C, the most that tell the server all they know
    degree: int  # k, neighbours that each chooses; as many choose it, on average
    threshold: int  # t, chosen neighbours whose shares rebuild a secret

    @property
    def quorum(self) -> int:
        """Clients that must have signed one account of who is in the sum: more than (clients + corrupted) / 2.

        Two accounts with a quorum each would have more than `corrupted` signers in common, an honest one among them,
        and an honest client signs once.
        """
        return (self.clients + self.corrupted) // 2 + 1

    @property
    def mean_neighbours(self) -> float:
        """Whom it chose and who chose it, each once: a client masks with so many, on average."""
        return self.degree * (2 - self.degree / (self.clients - 1))


@cache
def graph_plan(clients: int, *, dropout: int, corruption: int) -> GraphPlan:
    """Degree and threshold for a cohort of 2 to 100,000; `dropout` and `corruption` are in thousandths of it.

    Up to 64 clients all pairs, and the threshold quorum - 1: what suffices to agree suffices to open the sum. Above,
    the smallest degree for which the largest threshold with a chance of at most

    - 2^-20 that, with no more than `dropped` gone, somebody has fewer than `threshold` of its chosen left, and the
      round fails, has one of at most
    - 2^-40 that there is a group of at most half of the honest clients in which everybody chose `threshold` among the
      group and the corrupted, so that the sum over that group could be opened; one honest client is such a group too.

    Both are union bounds, over clients and over groups, of exact hypergeometric tails, computed in whole numbers, so
    that a server and a phone cannot differ. Who vanishes and what the server says may depend on all choices.
    Raises: InputError where no degree is enough.
    """
    whole = all(isinstance(value, int) for value in (clients, dropout, corruption))
    if not whole or not 2 <= clients <= MOST_CLIENTS:
        raise InputError(
            f"a cohort has 2 to {MOST_CLIENTS:,} clients, in whole numbers, and shares are whole thousandths of it; "
            f"clients={clients}, dropout={dropout}, corruption={corruption} are not."
        )
    if not (0 <= dropout < 1000 and 0 <= corruption < 1000):
        raise InputError(f"dropout={dropout} and corruption={corruption} are thousandths; give 0 to 999.")
    dropped, corrupted = -(-clients * dropout // 1000), -(-clients * corruption // 1000)
    quorum = (clients + corrupted) // 2 + 1
    if clients <= ALL_PAIRS and quorum <= clients:
        return GraphPlan(clients, dropped, corrupted, clients - 1, quorum - 1)
    if clients - dropped >= quorum:
        for degree in range(1, min(clients, MOST_DEGREE + 1)):
            threshold = _largest_threshold(clients, dropped, degree)
            plan = GraphPlan(clients, dropped, corrupted, degree, threshold)
            if threshold and is_safe(plan):
                return plan
    raise InputError(
        f"{dropped} of {clients} clients may vanish and {corrupted} collude: no graph is safe then; "
        "expect fewer of either, or take more clients."
    )


def _largest_threshold(clients: int, dropped: int, degree: int) -> int:
    """The largest number of chosen neighbours that everybody keeps, but for a chance of 2^-20; 0 where that is none."""
    ways = comb(clients - 1, degree)
    # Of the others, as many stay as `dropped` leaves: of those of one who stays itself, and of one who vanishes.
    stay, gone = (_tail(clients - 1, min(clients - 1, clients - dropped - own), degree) for own in (1, 0))
    for threshold in range(degree, 0, -1):
        failed = (clients - dropped) * (ways - stay[threshold]) + dropped * (ways - gone[threshold])
        if failed << SUCCESS_BITS <= ways:
            return threshold
    return 0


def is_safe(plan: GraphPlan) -> bool:
    """Whether the sum over sizes s of C(h, s) T(s)^s is at most 2^-40, by bounds on each of its terms.

    h = clients - corrupted are honest, s is 1 to half of them, and T(s) the chance that `threshold` of those whom one
    of a group of s chose are of the group or corrupted. With b = 40 + log2(h / 2), rounded up, each term is at most
    2^-b where e h T(s) <= max(s 2^-ceil(b / s), s - 0.7 b): C(h, s) <= (e h / s)^s and (1 - 0.7 b / s)^s <= 2^-b.
    T is convex in s up to where threshold - 1 of degree - 1 drawn are to be expected, so above LISTED it stays under
    that line if it does so at both ends.
    """
    honest = plan.clients - plan.corrupted
    largest = max(1, honest // 2)
    bits = SECURITY_BITS + largest.bit_length()
    ways = comb(plan.clients - 1, plan.degree)

    def bounded(size: int, *, by_the_line: bool = False) -> bool:
        tail = _tail(plan.clients - 1, plan.corrupted + size - 1, plan.degree)[plan.threshold]
        scaled = 27_183 * honest * tail  # 10,000 e h T(s), in units of 1 / ways
        if scaled <= 1000 * (10 * size - 7 * bits) * ways:
            return True
        return not by_the_line and scaled << -(-bits // size) <= 10_000 * size * ways

    if not bounded(1) or not bounded(largest):
        return False
    if largest > LISTED:
        marked = plan.corrupted + largest - 1
        convex = (plan.threshold - 1) * (plan.clients - marked) >= (plan.degree - plan.threshold) * marked
        if not (convex and all(bounded(size, by_the_line=True) for size in (LISTED, largest))):
            return False
    return all(bounded(size) for size in range(2, min(largest, LISTED)))


def _tail(population: int, marked: int, drawn: int) -> list[int]:
    """tail[x]: in how many of the comb(population, drawn) ways at least x of those drawn are marked; x to drawn + 1."""
    least, most = max(0, drawn - (population - marked)), min(drawn, marked)
    counts = [0] * (drawn + 1)
    count = comb(marked, least) * comb(population - marked, drawn - least)
    for found in range(least, most + 1):
        counts[found] = count
        count = count * (marked - found) * (drawn - found) // ((found + 1) * (population - marked - drawn + found + 1))
    tail = [0]
    for count in reversed(counts):
        tail.append(tail[-1] + count)
    return tail[::-1]


def chosen(plan: GraphPlan, client: int, choice: bytes) -> list[int]:
    """The neighbours, in ascending order, that follow from 32 bytes that a client drew: `degree` of the others.

    Words of 4 bytes of the stream of the choice (`secrets.seeded`), of which the lowest bits count, as many as
    clients - 1 has; what is no other client, or was drawn before, is left out.
    """
    if plan.degree == plan.clients - 1:
        return [other for other in range(plan.clients) if other != client]
    draw, lowest = seeded(choice), (1 << (plan.clients - 1).bit_length()) - 1
    found: set[int] = set()
    while len(found) < plan.degree:
        other = int.from_bytes(draw(WORD_BYTES), "little") & lowest
        if other < plan.clients and other != client:
            found.add(other)
    return sorted(found)
