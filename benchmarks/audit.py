"""What audits find and how tight they are: a JSON line for each figure, with its goal.

    python benchmarks/audit.py                      all rows, a quarter of an hour
    python benchmarks/audit.py --only mechanisms    one of them
    python benchmarks/audit.py --peer PYTHON        beside jax-privacy's estimators, in a Python that has it

jax-privacy 2.0.0 is read by a process of its own, so that the two need not fit together:
`python -m venv peer && peer/bin/pip install jax-privacy==2.0.0`, then `--peer peer/bin/python`. The row `one-run` wants
what `tacit demo` leaves in the folder that it is called in.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.audit.court.job import false_alarms
from tacit.audit.mechanism.scores import scores_of
from tacit.audit.mechanism.streams import NoisedSums, case_of_sums
from tacit.audit.one_run.settings import CanarySettings
from tacit.privacy import Guarantee
from tacit.privacy.empirical.normal_scores import mu_of_normal_samples
from tacit.privacy.empirical.sequential import evidence_of_less_noise, first_alarm
from tacit.privacy.empirical.thresholds import epsilon_by_threshold, mu_by_threshold
from tacit.privacy.gaussian import epsilon_of_mu
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, Independent

Row = dict[str, Any]

LIMITS = Participation(rounds=12, min_separation=4, max_participations=3)
ONE_ROUND = Participation(rounds=1, min_separation=1, max_participations=1)
DELTA = 1e-5
DEMO = Path(tacit.__file__).with_name("demo.toml")
SEED = 1
PARTS = {1000: 40, 10_000: 10, 100_000: 1}  # scores of either kind: sets of so many that figures are means of
NULL = (1000, 40)
BOUNDS = ("bonferroni", "split")  # of theirs: epsilon_from_gdp shows as much of runs without any canary
# Of the estimators of jax-privacy whose scores are in a file: what each shows of epsilon, set by set.
PEER = """
import json, sys
import numpy as np
from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Split
found = {}
with np.load(sys.argv[1]) as held:
    for size, sets in json.loads(sys.argv[2]).items():
        found[size] = []
        for begin in range(0, int(size) * sets, int(size)):
            within = slice(begin, begin + int(size))
            auditor = CanaryScoreAuditor(held["present"][within], held["absent"][within])
            by_split, by_all = (
                float(auditor.epsilon_clopper_pearson(0.05, 1e-5, threshold_strategy=how))
                for how in (Split(seed=begin), Bonferroni())
            )
            gdp = float(auditor.epsilon_from_gdp(0.05, 1e-5))
            found[size].append({"epsilon_from_gdp": gdp, "bonferroni": by_all, "split": by_split})
print(json.dumps(found))
"""


def mechanisms(peer: str | None) -> Iterator[Row]:
    """Every mechanism and part of a round: how near the bound comes to the claim, and what all took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = tacit.audit_mechanism(seed=SEED)
    seconds = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    # Of a tree's sums alone the claim counts more than is released, and what is not finite adds nothing.
    reached = [each for each in found.findings if not each.subject.endswith(("its sums alone", "not finite"))]
    yield {
        "figure": "lower bound of mu over the claim, the least",
        "value": min(each.lower / each.claim for each in reached),
        "goal": 0.99,
        "promises": len(reached),
        "confidence_of_all": 0.99,
        "runs_of_each": found.findings[0].samples,
    }
    yield {"figure": "bounds above the claim", "value": len(found.broken), "goal": 0, "of": len(found.findings)}
    yield {"figure": "all mechanism audits, seconds", "value": seconds["seconds"], "goal": 60, **seconds}


def planted_fault(peer: str | None, repetitions: int = 2000, within: int = 2000) -> Iterator[Row]:
    """Noise that is 10% too small, found one run after the other; beside a test of so many runs at once."""
    promised = Guarantee.for_zcdp(4.5, participation=ONE_ROUND, strategy=Independent(), clip_norm=1.0)
    nothing = np.zeros((1, repetitions * within), np.float32)
    for name, factor in ("found", 0.9), ("false alarms", 1.0):
        played = replace(promised, noise_multiplier=factor * promised.noise_multiplier)
        noise = NoisedSums(played)(nothing, SEED).reshape(repetitions, within) / promised.seed_stddev
        alarms = [first_alarm(evidence_of_less_noise(each), confidence=0.99) for each in noise]
        early = [each for each in alarms if each is not None]
        row = {"figure": f"10% less noise, sequential, {within:,} runs: {name}", "value": len(early) / repetitions}
        yield row | ({"goal": 0.99, "median_runs": float(np.median(early))} if name == "found" else {"goal": 0.01})
    random = np.random.default_rng(SEED)
    for runs in (2000, 8000, 32_000, 128_000):
        pairs = (0.9 * random.normal(size=(2, runs // 2)) + np.array([[0.0], [3.0]]) for _ in range(50))
        share = np.mean([mu_by_threshold(*pair, confidence=0.99).lower > 3 for pair in pairs])
        yield {"figure": f"the same by Clopper and Pearson at {runs:,} runs: found", "value": float(share)}


def beside_jax_privacy(peer: str | None) -> Iterator[Row]:
    """Epsilon at delta 1e-5 shown by the same scores at 95%: of a published BLT at mu = 1, played by the stream."""
    guarantee = Guarantee.for_zcdp(0.5, participation=LIMITS, strategy=PUBLISHED_BLT["b400"], clip_norm=1.0)
    case = case_of_sums("blt-b400", guarantee)
    assert case.known is not None
    (absent,), (present,) = scores_of(case, case.known.weights[None], 200_000, SEED)
    theirs = {} if peer is None else _of_peer(peer, absent, present, PARTS)
    for size, sets in PARTS.items():
        shown = [
            _ours(absent[begin : begin + size], present[begin : begin + size]) for begin in range(0, size * sets, size)
        ]
        ours, beside = _means(shown), _means(theirs.get(str(size), []))
        yield {
            "figure": f"epsilon shown by {size:,} runs with the canary and as many without, mean of {sets}",
            "value": max(ours.values()),
            "goal": max((beside[name] for name in BOUNDS if name in beside), default=None),
            "true": epsilon_of_mu(guarantee.mu, DELTA),
            "ours": ours,
            "jax_privacy": beside,
        }
    yield from _of_nobody(peer, absent)


def one_run(peer: str | None) -> Iterator[Row]:
    """The demo's recipe once, with 1,000 canaries: what all released models show, and the last alone."""
    if not Path("runs/demo-data").exists():
        yield {"figure": "one run", "value": None, "not_run": "there is no runs/demo-data here; `tacit demo` makes it"}
        return
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = CanarySettings(canaries=1000, sentences=0)
        found = tacit.audit_run(DEMO, settings=settings, out=Path(folder) / "run", seed=12)
    for each in found.findings:
        if each.measure == "mu":
            yield {
                "figure": f"one run, 1,000 canaries: lower bound of mu over the claim, {each.subject}",
                "value": each.lower / each.claim,
                "goal": 0.8 if each.subject == "all models: known directions" else None,
                "claim": each.claim,
                "estimate": each.estimate,
            }
    yield {"figure": "one run, seconds", "value": time.perf_counter() - began}


def randomizers(peer: str | None) -> Iterator[Row]:
    """Local randomizers: exactly to 12 values, by likelihood ratios at 1,000; shuffled sums; words of too few."""
    began = time.perf_counter()
    found = tacit.audit_randomizer(seed=SEED)
    exact = [each for each in found.findings if each.confidence == 1]
    yield {
        "figure": "exact epsilon of 2 to 12 values over the claim, the least",
        "value": min(each.lower / each.claim for each in exact),
        "goal": 1.0 - 1e-12,
    }
    large = [each for each in found.findings if each.delta == 0 and each.confidence < 1]
    least = min(each.lower / each.claim for each in large)
    yield {"figure": "epsilon shown of 1,000 values over the claim, the least", "value": least, "goal": 0.97}
    for each in found.findings:
        if each.samples_of == "sums":
            yield {"figure": each.subject, "value": each.lower, **each.figures}
    words = found.findings[-1]
    yield {"figure": f"{words.subject}: output", "value": words.estimate, "at_most": words.claim, **words.figures}
    above = sum(each.broken for each in found.findings)
    yield {"figure": "randomizers: bounds above the claim", "value": above, "goal": 0}
    yield {"figure": "randomizers, seconds", "value": time.perf_counter() - began}


def device(peer: str | None) -> Iterator[Row]:
    """Every strategy of an operator against the shipped device: in how many ways it told a text."""
    began = time.perf_counter()
    found = tacit.audit_device(seed=SEED)
    yield {"figure": "device: ways that told a text", "value": len(found.broken), "goal": 0, "of": len(found.findings)}
    yield {"figure": "device, seconds", "value": time.perf_counter() - began, "goal": 120}


def attack(peer: str | None) -> Iterator[Row]:
    """The published attack: what it reads without defence, and what of releases."""
    began = time.perf_counter()
    found = tacit.audit_attack(seed=SEED)
    for each in found.views:
        yield {
            "figure": f"attack on {each.says}: recall of words",
            "value": each.words.recall.value,
            "goal": 0.9 if each.view == "upload" else None,
            "precision": each.words.precision.value,
            "gain_over_guessing": [each.words.advantage.low, each.words.advantage.value, each.words.advantage.high],
            "rare_words_gain": [each.rare.advantage.low, each.rare.advantage.value, each.rare.advantage.high],
        }
    yield {"figure": "attack, seconds", "value": time.perf_counter() - began, "goal": 300}


def museum(peer: str | None) -> Iterator[Row]:
    """Historic faults found, mended versions kept, and how often one would be refuted by chance."""
    began = time.perf_counter()
    found = tacit.audit_court(seed=SEED)
    seconds = time.perf_counter() - began
    yield {"figure": "museum: faults found", "value": len(found.found), "goal": 12, "of": len(found.exhibits)}
    yield {"figure": "museum: mended versions refuted", "value": len(found.alarms), "goal": 0}
    yield {"figure": "museum, seconds", "value": seconds, "goal": 600}
    alarms = false_alarms(range(100))
    yield {
        "figure": "museum: mended versions refuted over 100 trials",
        "value": alarms.refuted / alarms.versions,
        "goal": 0.01,
        "trials_with_an_alarm": alarms.with_alarm,
    }


def _of_nobody(peer: str | None, absent: Any) -> Iterator[Row]:
    """The same where nobody was there: both samples are of runs without the canary, and epsilon is 0."""
    size, sets = NULL
    one, other = absent[: size * sets], absent[size * sets : 2 * size * sets]
    shown = {
        "ours": [_ours(one[begin : begin + size], other[begin : begin + size]) for begin in range(0, size * sets, size)]
    }
    if peer is not None:
        shown["jax_privacy"] = list(_of_peer(peer, one, other, {size: sets})[str(size)])
    for whose, all_of_them in shown.items():
        for name in all_of_them[0]:
            yield {
                "figure": f"no canary, {size:,} runs each: how often epsilon above 0 is shown, {whose}, {name}",
                "value": float(np.mean([each[name] > 0 for each in all_of_them])),
                "goal": 0.05,
                "mean_epsilon": _means(all_of_them)[name],
            }


def _ours(absent: Any, present: Any) -> Mapping[str, float]:
    return {
        "normal law": epsilon_of_mu(mu_of_normal_samples(absent, present, confidence=0.95).lower, DELTA),
        "mu by thresholds": epsilon_of_mu(mu_by_threshold(absent, present, confidence=0.95).lower, DELTA),
        "thresholds, corrected": epsilon_by_threshold(absent, present, DELTA, confidence=0.95).lower,
        "thresholds, split": epsilon_by_threshold(absent, present, DELTA, confidence=0.95, how="split").lower,
    }


def _means(shown: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([each[name] for each in shown])) for name in (shown[0] if shown else ())}


def _of_peer(
    peer: str, absent: Any, present: Any, parts: Mapping[int, int]
) -> Mapping[str, Sequence[Mapping[str, float]]]:
    with tempfile.TemporaryDirectory() as folder:
        scores = Path(folder) / "scores.npz"
        np.savez(scores, absent=absent, present=present)
        command = [peer, "-c", PEER, str(scores), json.dumps(parts)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {peer} could not run jax-privacy's estimators: {done.stderr.strip()[-500:]}")
    return dict(json.loads(done.stdout))


ROWS: dict[str, Callable[[str | None], Iterator[Row]]] = {
    "mechanisms": mechanisms,
    "planted-fault": planted_fault,
    "jax-privacy": beside_jax_privacy,
    "one-run": one_run,
    "randomizers": randomizers,
    "device": device,
    "attack": attack,
    "museum": museum,
}


def main() -> None:
    """Print the rows that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=ROWS, help="one of the rows")
    parser.add_argument("--peer", help="a Python in which jax-privacy is installed")
    given = parser.parse_args()
    for name, rows in ROWS.items():
        if given.only in (None, name):
            for row in rows(given.peer):
                print(json.dumps({"row": name, **row}), flush=True)


if __name__ == "__main__":
    main()
