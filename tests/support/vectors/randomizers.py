"""Vectors of what a device randomises itself: numbers of each randomizer, votes of reports, answers to questions."""

import math
from typing import Any

import numpy as np
from tests.support.vectors.case import Case, case, file_of
from tests.support.vectors.prices import shortened

from tacit.discovery.device_part import answers, choose, question_from
from tacit.federation.cost import ROUNDING
from tacit.randomizers import device_generator
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizer import lies
from tacit.randomizers.registry import RANDOMIZERS
from tacit.randomizers.subset_selection import SubsetSelection

RULE = "#a-report"
HIDDEN = "docs/word-discovery.md#the-devices-part-and-the-servers"
GRID = ((2, 1.0), (5, 1.0), (30, 2.0), (30, 0.5), (300, 4.0), (1000, 8.0), (27_001, 4.0))


def _numbers() -> list[Case]:
    found = []
    for name, kind in RANDOMIZERS.items():
        for domain, epsilon in GRID:
            made = kind(domain, epsilon)
            said = {"randomizer": name, "domain": domain, "epsilon": epsilon}
            gives = {"p": shortened(made.p), "q": shortened(made.q), "most_supported": made.most_supported}
            if isinstance(made, SubsetSelection):
                gives["size"] = made.size
            if isinstance(made, ProjectiveGeometryResponse):
                space = made.geometry
                gives |= {"order": space.order, "length": space.length, "points": space.points}
            found.append(case(f"{name}: {domain} answers, epsilon {epsilon:g}", HIDDEN, **said, **gives))
    return found


def check_numbers(each: Case) -> None:
    """That this program computes what a case of the file says."""
    made: Any = RANDOMIZERS[each["randomizer"]](each["domain"], each["epsilon"])
    for name in ("p", "q"):
        assert abs(getattr(made, name) - each[name]) <= ROUNDING * each[name], each["name"]
    assert made.most_supported == each["most_supported"] and getattr(made, "size", None) == each.get("size")


def _lies() -> list[Case]:
    """A word of 64 bits below the threshold is a lie."""
    found = []
    for probability in (0.5, 0.1, 1e-9, 0.999999):
        threshold = math.ceil(probability * (1 + 2.0**-50) * 2.0**64)
        words = [0, 1, threshold - 2048, threshold + 4096, 2**63, 2**64 - 1]
        words = sorted({word for word in words if 0 <= word < 2**64})
        told = _told(words, probability)
        found.append(case(f"a lie with probability {probability}", HIDDEN, probability=probability, lies=told))
    return found


def _told(words: list[int], probability: float) -> list[list[Any]]:
    drawn = b"".join(word.to_bytes(8, "little") for word in words)
    told = lies(device_generator(lambda size: drawn[:size]), len(words), probability)
    return [[str(word), bool(lie)] for word, lie in zip(words, told, strict=True)]


def check_lie(each: Case) -> None:
    """The same."""
    words = [int(word) for word, _ in each["lies"]]
    assert _told(words, each["probability"]) == each["lies"], each["name"]


def _votes() -> list[Case]:
    """What reports support: sets of subset selection, values of k-ary, points of a projective space."""
    found = []
    for name, domain, epsilon, seed in (
        ("subset-selection", 5, 1.0, 1),
        ("subset-selection", 30, 2.0, 2),
        ("subset-selection", 200, 5.0, 3),
        ("k-ary", 30, 2.0, 4),
        ("projective-geometry", 5, 1.0, 5),
        ("projective-geometry", 30, 2.0, 6),
        ("projective-geometry", 100, 1.5, 7),
    ):
        made = RANDOMIZERS[name](domain, epsilon)
        own = np.arange(4, dtype=np.int64) % domain
        reports = made.encode(own, np.random.default_rng(seed))
        votes = made.votes(reports)
        said = {"randomizer": name, "domain": domain, "epsilon": epsilon, "reports": _named(made, reports)}
        found.append(case(f"{name}: 4 reports over {domain}, epsilon {epsilon:g}", RULE, **said, votes=votes.tolist()))
    return found


def _named(made: Any, reports: Any) -> list[Any]:
    """Sets as the values that they name."""
    if isinstance(made, SubsetSelection) and made.as_bitmap:
        bits = np.unpackbits(reports.astype("<u8").view(np.uint8), axis=1, bitorder="little")
        return [np.flatnonzero(row).tolist() for row in bits]
    found: list[Any] = reports.tolist()
    return found


def check_votes(each: Case) -> None:
    """The same, from reports."""
    made: Any = RANDOMIZERS[each["randomizer"]](each["domain"], each["epsilon"])
    if isinstance(made, SubsetSelection):
        votes = np.zeros(each["domain"], np.int64)
        for named in each["reports"]:
            assert len(named) == made.size
            votes[named] += 1
    else:
        votes = made.votes(np.array(each["reports"], np.uint32))
    assert votes.tolist() == each["votes"], each["name"]


def _points() -> list[Case]:
    found = []
    for domain, epsilon in ((5, 1.0), (30, 2.0)):
        made = ProjectiveGeometryResponse(domain, epsilon)
        space = made.geometry
        vectors = space.vectors(np.arange(space.points))
        name = f"points of the space of order {space.order} and {space.length} coordinates"
        said = {"order": space.order, "length": space.length}
        found.append(case(name, HIDDEN, **said, vectors=vectors.tolist()))
    return found


PREFIXES = {"about": "prefixes", "prefixes": ["a", "b"], "alphabet": "abé", "depth": 4, "found": ["ab"]}
WORDS = {"about": "words", "words": ["uno", "dos"]}
TYPED = {"aba": 2, "abé": 3, "ab": 5, "b": 1, "bbbbb": 4, "c": 9, "aé": 3, "uno": 1, "zzz": 7}


def _answers() -> list[Case]:
    """From words typed to the answers that are hidden: numbers of the question's domain."""
    found = []
    for title, question in (("prefixes", PREFIXES), ("words", WORDS)):
        made = question_from(question)
        each = {word: made.answer_of(word) for word in sorted(TYPED)}
        for sampler, contributions in (("greedy", 1), ("greedy", 3), ("random", 2), ("random", 20)):
            settings = LocalReportSettings(local_epsilon=2.0, contributions=contributions, sampler=sampler)  # type: ignore[arg-type]
            uniforms = [0.0, 0.75, *([0.5] * 18)][:contributions]
            given = answers(TYPED, made, settings, np.array(uniforms)).tolist()
            said = {"question": question, "sampler": sampler, "contributions": contributions, "uniforms": uniforms}
            more = {"typed": TYPED, "domain": made.domain, "each": each, "answers": given}
            found.append(case(f"{title}: {sampler}, {contributions}", HIDDEN, **said, **more))
    return found


def check_answers(each: Case) -> None:
    """The same."""
    settings = LocalReportSettings(local_epsilon=2.0, contributions=each["contributions"], sampler=each["sampler"])
    made = question_from(each["question"])
    assert answers(each["typed"], made, settings, np.array(each["uniforms"])).tolist() == each["answers"], each["name"]


def _choices() -> list[Case]:
    found = []
    for sampler, wanted, counts in (
        ("greedy", 2, [1, 3, 3, 2]),
        ("greedy", 5, [1, 2]),
        ("random", 2, [1, 1, 1, 1]),
        ("random", 3, [5, 1, 1, 2, 1]),
    ):
        uniforms = [0.99, 0.0, 0.5][:wanted]
        settings = LocalReportSettings(local_epsilon=1.0, contributions=wanted, sampler=sampler)  # type: ignore[arg-type]
        chosen = choose(np.array(counts), settings, np.array([*uniforms, 0.0, 0.0])).tolist()
        said = {"sampler": sampler, "contributions": wanted, "counts": counts, "uniforms": uniforms}
        found.append(case(f"{wanted} of {counts} by {sampler}", HIDDEN, **said, chosen=chosen))
    return found


def check_choice(each: Case) -> None:
    """The same."""
    settings = LocalReportSettings(local_epsilon=1.0, contributions=each["contributions"], sampler=each["sampler"])
    uniforms = np.array([*each["uniforms"], 0.0, 0.0])
    assert choose(np.array(each["counts"]), settings, uniforms).tolist() == each["chosen"], each["name"]


def file() -> dict[str, Any]:
    """The content of `randomizers.json`."""
    return file_of(
        "`cases`: the numbers of a randomizer, to the relative `tolerance`; whole ones exactly. `lies`: words of 64 "
        "bits (in decimal digits), and whether a device answers without its own value; how else randomness is used is "
        "each program's own, as long as it is uniform. `votes`: how many of the reports support each answer. "
        "`points`: the vectors of the points 0, 1, ... of a projective space; a report supports the values whose "
        "vectors are orthogonal to its own modulo the order. `answers`: what words that were `typed` (with counts) "
        "answer before it is hidden; `each`: what one word answers, the last of `domain` being none. `uniforms` "
        "choose, a step of Fisher and Yates each. `choices`: which of things with these counts are reported.",
        _numbers(),
        tolerance=ROUNDING,
        lies=_lies(),
        votes=_votes(),
        points=_points(),
        answers=_answers(),
        choices=_choices(),
    )
