"""A whole population answering one question at once: the vectorised twin of `contributions.py`.

Users are only counted: `users[c]` simulated users hold what client c typed, each choosing for itself. Their answers
are summed as they are chosen, and the randomizers' votes are drawn from the exact joint law of their sum, so neither
users x answers nor users x domain is ever held. `tests/analytics/test_simulated_devices.py` compares it with
`contributions.answers`, user by user.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.data.unknown_words import TypedWords
from tacit.discovery.device import Question, Terms, uniforms_from

Numbers = NDArray[np.int64]

UNIFORMS_AT_ONCE = 1 << 20  # 8 MiB


def votes_of(
    typed: TypedWords, question: Question, terms: Terms, users: Numbers, generator: np.random.Generator
) -> Numbers:
    """The summed votes (domain,) of so many users of each client (clients,), in law those of their `reports`."""
    holders = holders_of(typed, question, terms, users, generator)
    return terms.randomizer_for(question.domain).sample_votes(holders, generator)


def holders_of(
    typed: TypedWords, question: Question, terms: Terms, users: Numbers, generator: np.random.Generator
) -> Numbers:
    """How many of the users' reports hold each answer before randomization: (domain,), summing to users x K.

    Equal, under the same uniform numbers, to counting `contributions.answers` of every user: clients in order, K
    numbers for each user who holds more than K things and samples at random.
    """
    answers = np.fromiter((question.answer_of(word) for word in typed.words), np.int64, len(typed.words))
    held = answers[typed.word_of]
    holders = np.zeros(question.domain, np.int64)
    most = int(np.diff(typed.offsets).max(initial=0))
    place = np.zeros(2, np.int64)
    wanted, left = terms.contributions, int(users.sum())
    while place[0] < typed.clients:
        rows = min(left, max(1, UNIFORMS_AT_ONCE // wanted)) if terms.sampler == "random" else 0
        uniforms = uniforms_from(generator, rows * wanted).reshape(rows, wanted)
        _choose_all(
            typed.offsets,
            held,
            typed.counts,
            users,
            question.merges,
            terms.sampler == "greedy",
            wanted,
            uniforms,
            place,
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            holders,
        )
    return holders


@compiled
def _choose_all(
    offsets: Numbers,
    answers: Numbers,
    counts: NDArray[np.int32],
    users: Numbers,
    merges: bool,
    greedy: bool,
    wanted: int,
    uniforms: NDArray[np.float64],
    place: Numbers,
    held: Numbers,
    weights: Numbers,
    holders: Numbers,
) -> None:
    """Goes on at `place` (client, users done) until clients or rows of uniforms end; adds to `holders`.

    Words are sorted, so those with one prefix are neighbours: merging compares with the last thing held.
    """
    used = 0
    for client in range(place[0], users.size):
        if users[client] == 0:
            continue
        things = 0
        for pair in range(offsets[client], offsets[client + 1]):
            answer = answers[pair]
            if answer < 0:
                continue
            if merges and things > 0 and held[things - 1] == answer:
                weights[things - 1] += counts[pair]
            else:
                held[things], weights[things] = answer, counts[pair]
                things += 1
        if things <= wanted:
            for thing in range(things):
                holders[held[thing]] += users[client]
            holders[-1] += users[client] * (wanted - things)
        elif greedy:
            for thing in np.argsort(-weights[:things], kind="mergesort")[:wanted]:
                holders[held[thing]] += users[client]
        else:
            for user in range(place[1], users[client]):
                if used == len(uniforms):
                    place[0], place[1] = client, user
                    return
                row = uniforms[used]
                used += 1
                for step in range(wanted):
                    other = step + int(row[step] * (things - step))
                    held[step], held[other] = held[other], held[step]
                    holders[held[step]] += 1
                for step in range(wanted - 1, -1, -1):  # back in order, for the next user
                    other = step + int(row[step] * (things - step))
                    held[step], held[other] = held[other], held[step]
        place[1] = 0
    place[0] = users.size
