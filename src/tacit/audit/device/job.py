"""Whether anything that leaves a device, but for what its report says, depends on what its owner typed."""

import tempfile
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from tacit.audit.device.auditor import Auditor
from tacit.audit.device.device_findings import DeviceFindings
from tacit.audit.device.distinguisher import MOST, check_enough
from tacit.audit.device.questions import QUESTIONS
from tacit.audit.device.strategies import STRATEGIES
from tacit.errors import InputError, conceivable, of_type
from tacit.privacy.empirical.samples import error_of
from tacit.progress import Progress, counted, silent

STAGE, READING = "turns of a device, seen by its operator", "what reading text takes"


def audit_device(
    *,
    strategies: Sequence[str] | None = None,
    questions: Sequence[str] | None = None,
    runs: int = 40,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress = silent,
) -> DeviceFindings:
    """Try to learn from a device which of two texts its owner typed, by all that leaves it but what its reports say.

    The shipped device answers each question of each strategy with both texts, by the same randomness and clock. What
    is seen of it has to be the same. Where it differs, many runs by randomness of their own say whether a
    distinguisher, learnt on half of them, tells the others apart.

    strategies: names in `audit.device.strategies`; all when None. questions: in `audit.device.questions`, the same.
    runs: with each of two texts, where what is seen of them differs. confidence: that all bounds hold together. seed:
    of the device's private randomness. Raises: InputError for unknown names, and for fewer runs than can show anything.
    """
    for name, value, kind in (("runs", runs, Integral), ("seed", seed, Integral), ("confidence", confidence, Real)):
        of_type(name, value, kind)
    conceivable("seed", seed)
    conceivable("runs", runs)
    if not 1 <= runs <= MOST:
        raise InputError(f"runs={runs} must be from 1 to {MOST:,}.")
    tried = {name: STRATEGIES[name] for name in _chosen("strategies", strategies, STRATEGIES)}
    asked = _chosen("questions", questions, QUESTIONS)
    ways = [(name, each, question) for name, each in tried.items() for question in each.questions if question in asked]
    if not ways:
        raise InputError("none of these strategies asks any of these questions; leave one of the two out.")
    comparisons = sum(len(each.pairs) for _, each, _ in ways) + len(asked)
    each_confidence = 1 - error_of(confidence) / comparisons
    check_enough(runs, each_confidence)
    given = (("strategy", strategies), ("question", questions))
    options = "".join(f" --{name} {each!r}" for name, chosen in given for each in chosen or ())
    with tempfile.TemporaryDirectory() as folder:
        auditor = Auditor(Path(folder), seed=seed, runs=runs, confidence=each_confidence)
        findings = [
            auditor.finding(name, each, question)
            for name, each, question in counted(ways, STAGE, progress, total=len(ways))
        ]
        findings += [
            auditor.processor_time(question) for question in counted(asked, READING, progress, total=len(asked))
        ]
    return DeviceFindings(
        audit="does text decide anything but what a report says?",
        findings=findings,
        command=f"tacit audit device{options} --runs {runs} --confidence {confidence:g} --seed {seed}",
    )


def _chosen(name: str, given: Sequence[str] | None, known: Mapping[str, Any]) -> Sequence[str]:
    """Raises: InputError naming the first one that is unknown."""
    of_type(name, given, list, tuple, type(None))
    if given is None:
        return list(known)
    for each in given:
        if each not in known:
            raise InputError(f"{name} has {str(each)[:60]!r}, which is none of: {'; '.join(known)}.")
    return list(given)
