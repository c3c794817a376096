"""`tacit audit court`: the museum's twelve faults, and peers' code as it is installed, judged by our estimators."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.audit.court.environments import PEERS, install_peer, interpreter_of, run_peer
from tacit.audit.court.exhibit import SAMPLES_OF, Exhibit, Version, judge, judge_scores
from tacit.audit.court.museum import EXHIBITS
from tacit.audit.court.peer_case import PeerCase
from tacit.audit.court.verdict import BROKEN, MENDED, PEER, CourtFindings
from tacit.audit.finding import Finding
from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path, check_folder
from tacit.privacy.empirical.error_rates import rate_at_most
from tacit.privacy.empirical.samples import error_of
from tacit.progress import Progress, Warned, counted, silent


def audit_court(
    *,
    peers: Sequence[str] = (),
    environments: PathLike | None = None,
    install: Sequence[str] = (),
    seed: int = 0,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> CourtFindings:
    """Twelve historic faults and their mended versions, and what these peers do where they are installed.

    peers: names of PEERS; one that is not there is listed with how to get it. environments: the folder in which
    NAME/bin/python is the interpreter of each. install: peers whose environment is made first, which downloads their
    packages; they are run as well. seed: of the museum; peers draw as they do. confidence: that nothing which keeps its
    promise is refuted in the whole trial, shared among all versions.

    Raises: InputError for a peer that is none, a folder that is missing, or an environment whose script fails.
    """
    of_type("seed", seed, int)
    if seed < 0:
        raise InputError(f"--seed {seed} is negative; give a whole number of at least 0.")
    error = error_of(confidence)
    asked = tuple(dict.fromkeys((*_named("peers", peers), *_named("install", install))))
    if asked and environments is None:
        raise InputError(f"--peers {','.join(asked)} are run where they are installed; give --environments FOLDER.")
    if environments is not None and not asked:
        raise InputError("--environments says where peers are, and none is named; give --peers, or leave it out.")
    cases: list[PeerCase] = []
    absent: dict[str, str] = {}
    if environments is not None:
        folder = as_path("environments", environments)
        check_folder("--environments", folder)
        for name in install:
            install_peer(name, folder)
        for name in counted(asked, "running peers", progress, total=len(asked)):
            if interpreter_of(name, folder) is None:
                absent[name] = f"`tacit audit court --install {name} --environments FOLDER` downloads it."
                progress(Warned("peer-not-installed", f"{name} is not installed. {absent[name]}"))
            else:
                cases += run_peer(name, folder, seed)
    each = error / (2 * len(EXHIBITS) + len(cases))
    versions = [(exhibit, kind) for exhibit in EXHIBITS for kind in (BROKEN, MENDED)]
    museum = [
        _finding(exhibit, kind, seed, 1 - each)
        for exhibit, kind in counted(versions, "museum", progress, total=len(versions))
    ]
    words = "".join(f" --{name} {','.join(value)}" for name, value in (("peers", asked),) if value)
    where = " --environments FOLDER" if environments is not None else ""
    return CourtFindings(
        audit="court",
        findings=(*museum, *(_peer_finding(case, 1 - each) for case in cases)),
        command=f"tacit audit court --seed {seed}{words}{where}",
        not_installed=absent,
    )


class FalseAlarms(NamedTuple):
    """How often a trial refuted a mended version, over many seeds."""

    trials: int
    with_alarm: int
    versions: int
    refuted: int
    trials_at_most: float
    """An upper bound on the share of trials with an alarm, at 95%."""


def false_alarms(seeds: Sequence[int], *, confidence: float = 0.99) -> FalseAlarms:
    """What the mended versions alone give, judged as in a trial with each of these seeds."""
    each = error_of(confidence) / (2 * len(EXHIBITS))
    refuted = [sum(_finding(exhibit, MENDED, seed, 1 - each).broken for exhibit in EXHIBITS) for seed in seeds]
    alarmed = sum(many > 0 for many in refuted)
    return FalseAlarms(
        trials=len(refuted),
        with_alarm=alarmed,
        versions=len(refuted) * len(EXHIBITS),
        refuted=sum(refuted),
        trials_at_most=float(rate_at_most(alarmed, len(refuted), 0.05)),
    )


def _finding(exhibit: Exhibit, kind: str, seed: int, confidence: float) -> Finding:
    version: Version = exhibit.broken if kind == BROKEN else exhibit.mended
    case = EXHIBITS.index(exhibit)
    shown = judge(exhibit, version, np.random.default_rng([seed, case, kind == BROKEN]), confidence)
    return Finding(
        subject=f"{exhibit.number}. {exhibit.name} ({kind})",
        measure=exhibit.measure,
        claim=version.claim,
        lower=shown.lower,
        confidence=1.0 if exhibit.law == "exact" else confidence,
        samples=exhibit.runs,
        samples_of=SAMPLES_OF[exhibit.law],
        threat_model=exhibit.threat_model,
        delta=exhibit.delta,
        seed=seed,
        figures={
            "version": kind,
            "exhibit": exhibit.number,
            "name": f"{exhibit.number}. {exhibit.name}",
            "case": case,
            "source": exhibit.source,
            "refuted_after": shown.refuted_after,
            "known": "",
        },
    )


def _peer_finding(case: PeerCase, confidence: float) -> Finding:
    refuted_after = None
    if case.law == "exact":
        lower, samples = case.value, 1
    else:
        lower, refuted_after = judge_scores(
            case.absent,
            case.present,
            measure=case.measure,
            law=case.law,
            claim=case.claim,
            delta=case.delta,
            confidence=confidence,
        )
        samples = len(case.present)
    return Finding(
        subject=f"{case.package}: {case.subject}",
        measure=case.measure,
        claim=case.claim,
        lower=lower,
        confidence=1.0 if case.law == "exact" else confidence,
        samples=samples,
        samples_of=SAMPLES_OF[case.law],
        threat_model=case.threat_model,
        delta=case.delta,
        figures={"version": PEER, "peer": case.peer, "refuted_after": refuted_after, "known": case.known},
    )


def _named(argument: str, names: Sequence[str]) -> Sequence[str]:
    of_type(argument, names, list, tuple)
    for name in names:
        if name not in PEERS:
            raise InputError(f"--{argument} {name!r} is no peer; give some of {', '.join(PEERS)}.")
    return names
