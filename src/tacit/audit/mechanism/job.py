"""Audits of mechanisms, as one function: of the catalogue, of a recipe, or of anybody's code under a guarantee."""

import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.audit.finding import Findings
from tacit.audit.mechanism.case import Case, Release
from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.privacy import Guarantee
from tacit.privacy.empirical.samples import error_of
from tacit.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.audit.mechanism.scores import Law
    from tacit.recipe import Recipe

RUNS = 500_000
CONFIDENCE = 0.99
MOST_RUNS = 10**9


def audit_mechanism(
    mechanism: "PathLike | Recipe | Guarantee | None" = None,
    *,
    release: Release | None = None,
    runs: int = RUNS,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    law: "Law" = "normal",
    progress: Progress = silent,
) -> Findings:
    """How much a mechanism leaks at least, of the worst client that its guarantee allows, beside what is claimed.

    mechanism: a name of the catalogue; a recipe, whose mechanism, limits, clip norm and noise are played; None: all of
    the catalogue; a guarantee, for noise of one's own. release: whose noise, of a guarantee (`case.Release`); None:
    tacit's. runs: of each case, half with the canary. confidence: with which none of all bounds is above its true
    value. seed: drawn from the system where None; the findings name it. law: "any" where scores need not be normal.

    Raises: InputError for an unknown name, too few runs, no noise, and a release without a guarantee.
    """
    of_type("runs", runs, int)
    of_type("confidence", confidence, float)
    if seed is not None:
        of_type("seed", seed, int)
        if seed < 0:
            raise InputError(f"seed={seed} is below 0; give a whole number from 0 on.")
    if not 0 < runs <= MOST_RUNS:
        raise InputError(f"runs={runs} is no number of runs; give one from 1 to {MOST_RUNS:,}.")
    if law not in ("normal", "any"):
        raise InputError(f"law={law!r} is none; give 'normal', or 'any' for scores of unknown law.")
    error = error_of(confidence)
    cases = _cases(mechanism, release)
    # Each bound may be wrong by its share of the error, so that together they are as often wrong as was asked.
    each = 1 - error / len(cases)
    from tacit.audit.mechanism.scores import audit, check_runs

    for case in cases:
        check_runs(case, runs, confidence=each)
    chosen = secrets.randbits(63) if seed is None else seed
    findings = [audit(case, runs=runs, confidence=each, seed=chosen, law=law, progress=progress) for case in cases]
    return Findings(audit="mechanism", findings=findings, command=_command(mechanism, runs, confidence, chosen))


def _cases(mechanism: "PathLike | Recipe | Guarantee | None", release: Release | None) -> Sequence[Case]:
    from tacit.audit.mechanism.catalogue import all_cases, cases_of, cases_of_recipe
    from tacit.audit.mechanism.streams import case_of_sums
    from tacit.recipe import Recipe

    if isinstance(mechanism, Guarantee):
        return [case_of_sums("noise of one's own" if release else "noised sums", mechanism, release)]
    if release is not None:
        raise InputError("release= is audited against a promise; give the Guarantee that it is to keep as mechanism.")
    if mechanism is None:
        return all_cases()
    if isinstance(mechanism, Recipe) or _is_recipe(mechanism):
        return cases_of_recipe(Recipe.from_argument(mechanism))
    return cases_of(str(as_path("mechanism", mechanism)))


def _is_recipe(mechanism: PathLike) -> bool:
    from tacit.recipe.shipped_recipes import shipped

    text = str(as_path("mechanism", mechanism))
    return text.endswith(".toml") or (":" not in text and "/" in text) or text in shipped() or Path(text).is_file()


def _command(mechanism: object, runs: int, confidence: float, seed: int) -> str:
    given = "--all" if mechanism is None else shlex.quote(str(mechanism))
    if isinstance(mechanism, Guarantee) or not (mechanism is None or isinstance(mechanism, str | Path)):
        return f"tacit.audit_mechanism(..., runs={runs}, confidence={confidence}, seed={seed})"
    return f"tacit audit mechanism {given} --runs {runs} --confidence {confidence:g} --seed {seed}"
