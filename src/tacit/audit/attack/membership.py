"""What the attack shows of the promises behind the views: scores of people who took part, and of their absence."""

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from tacit.audit.attack.population import Population
from tacit.audit.attack.public_text import PublicText
from tacit.audit.attack.settings import AttackSettings
from tacit.audit.attack.views import Seen, View
from tacit.audit.attack.words import Experience, changed, evidence
from tacit.audit.finding import Finding, Findings
from tacit.privacy.empirical.normal_scores import mu_of_normal_samples
from tacit.privacy.empirical.thresholds import epsilon_by_threshold
from tacit.progress import Progress, counted, silent

TESTING = "testing promises"  # the stage, a step a view


def findings_of(
    chosen: Iterable[View],
    people: Population,
    public: PublicText,
    known: Experience,
    asked: AttackSettings,
    *,
    seed: int,
    command: str,
    progress: Progress = silent,
) -> Findings:
    """One finding of epsilon for each view that has an absence to compare with, and one of mu for each promise.

    All of them hold together with `asked.confidence`: each has its share of the error.
    """
    found: list[Finding] = []
    tested = [view for view in chosen if view.absent is not None]
    bounds = sum(1 if view.promise is None else 2 for view in tested)
    for view in counted(tested, TESTING, progress, total=len(tested)):
        found += _of_view(view, people, public, known, asked, seed, 1 - (1 - asked.confidence) / bounds)
    return Findings(audit="what is promised to the people attacked", findings=found, command=command)


def _of_view(
    view: View,
    people: Population,
    public: PublicText,
    known: Experience,
    asked: AttackSettings,
    seed: int,
    confidence: float,
) -> list[Finding]:
    """The words that a target typed speak for its presence; with noise its whole clipped update does, too."""
    assert view.absent is not None  # `findings_of` looked
    absent, present = (
        np.array([_scores(of(target), people, target, public, known) for target in range(asked.clients)])
        for of in (view.absent, view.seen)
    )
    shown = epsilon_by_threshold(absent[:, 0], present[:, 0], asked.delta, confidence=confidence)
    finding = partial(
        Finding,
        confidence=confidence,
        samples=asked.clients,
        samples_of="people, in and out",
        seed=seed,
        threat_model=view.threat_model,
    )
    words = finding(
        subject=f"{view.says}: the words somebody typed",
        measure="epsilon",
        claim=math.inf if view.promise is None else view.promise.epsilon(asked.delta),
        lower=shown.lower,
        delta=asked.delta,
    )
    if view.promise is None:
        return [words]
    mu = mu_of_normal_samples(absent[:, 1], present[:, 1], confidence=confidence)
    return [
        words,
        finding(
            subject=f"{view.says}: somebody's whole update",
            measure="mu",
            claim=view.promise.mu,
            lower=mu.lower,
            estimate=mu.estimate,
        ),
    ]


def _scores(seen: Seen, people: Population, target: int, public: PublicText, known: Experience) -> tuple[float, float]:
    """(how much speaks for the target's words, and for its update: that along its direction, in deviations)."""
    typed = people.targets.typed(target)
    if seen.noise == 0:
        return float(np.isin(typed, changed(seen.update)).mean()), 0.0
    own = people.tree(people.clipped(people.targets, target))
    products = [float(np.vdot(one, other)) for one, other in zip(seen.update, own, strict=True)]
    length = math.sqrt(sum(float(np.vdot(part, part)) for part in own))
    return float(evidence(seen, public, known)[typed].sum()), sum(products) / length / seen.noise
