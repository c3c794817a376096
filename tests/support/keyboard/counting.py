"""Counts as tests write and read them: eight numbers, by the names of what is counted."""

from tacit.networks.metrics import ALL_TOKENS, TOP1, Counts


def counted(
    words: int = 0,
    oov: int = 0,
    ends: int = 0,
    predicted: int = 0,
    top1: int = 0,
    top3: int = 0,
    first: int = 0,
    nats: float = 0.0,
) -> Counts:
    sums = {TOP1: top1, "top3_accuracy": top3, ALL_TOKENS: first, "cross_entropy": nats, "oov_rate": oov}
    return Counts(words=words, ends=ends, predicted=predicted, sums=sums)


def whole(counts: Counts) -> tuple[int, ...]:
    """(words, oov, ends, predicted, top1, top3, first of all tokens): all but the nats."""
    sums = counts.sums
    return (
        counts.words,
        sums.get("oov_rate", 0),
        counts.ends,
        counts.predicted,
        sums.get(TOP1, 0),
        sums.get("top3_accuracy", 0),
        sums.get(ALL_TOKENS, 0),
    )


def nats(counts: Counts) -> float:
    return float(counts.sums.get("cross_entropy", 0.0))
