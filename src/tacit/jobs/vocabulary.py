"""`tacit.extend_vocabulary`: a vocabulary that learns the words that a run found, of discovery or of counts."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.errors import InputError, RunError
from tacit.files import PathLike, as_path, check_file
from tacit.jobs.discover.job import settings_of, typed_by, vocabulary_digest
from tacit.jobs.discover.result import DiscoveryResult
from tacit.parsing import parsed_json
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.progress import Progress, silent
from tacit.reports.discover import RESULT
from tacit.runs import Run
from tacit.runs.metadata import CountMetadata
from tacit.statements.count import facts, figures
from tacit.text.vocabulary import Provenance, ProvenanceKind, Vocabulary


@dataclass(frozen=True, kw_only=True)
class HeldOutChange:
    """What the learned words change for clients whose text the run never saw: shares of everything they typed."""

    split: str
    clients: int
    words_typed: int
    oov_rate_before: float
    oov_rate_after: float


@dataclass(frozen=True, kw_only=True)
class Extension:
    """A vocabulary with learned words behind the old ones; `not_words` were found that no text is cut into."""

    vocabulary: Vocabulary
    path: Path | None  # where it was saved
    added: int
    not_words: int
    held_out: HeldOutChange | None

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit vocab extend --json` prints."""
        record: dict[str, Any] = {
            "schema": "tacit.vocabulary",
            "version": 1,
            "vocabulary": str(self.path),
            "size": self.vocabulary.size,
            "added": self.added,
            "not_words": self.not_words,
            "provenance": self.vocabulary.provenance.kind,
            "sha256": self.vocabulary.sha256,
        }
        return record if self.held_out is None else {**record, "held_out": vars(self.held_out)}


def extend_vocabulary(
    vocabulary: Vocabulary | PathLike, words: DiscoveryResult | PathLike, *, most: int | None = None
) -> Vocabulary:
    """The vocabulary with its old ids and, after them, the `most` frequent of the words found (None: all of them).

    vocabulary: the words before, or their file. most: words to add, at most. words: a finished discovery run that
    started from this vocabulary, or its result; or a finished count of candidates (`count.new_words`). Raises:
    InputError where it started from another, or no word can be added; RunError where it is not finished.
    """
    old = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary.load(as_path("vocabulary", vocabulary))
    if isinstance(words, DiscoveryResult):
        return _extended(old, words.run, most, named=str(words.run.path)).vocabulary
    with Run.open(as_path("words", words)) as run:
        return _extended(old, run, most, named=str(words)).vocabulary


def extend_file(
    vocabulary: PathLike,
    words: PathLike,
    out: PathLike,
    *,
    most: int | None = None,
    data: str | None = None,
    split: str = "test",
    progress: Progress = silent,
) -> Extension:
    """The same from a file into a new file, and what it changes for a split's clients where `data` names them.

    Raises: InputError where `out` is there, since a vocabulary is never replaced; else as `extend_vocabulary`.
    """
    out = as_path("out", out)
    if out.exists():
        raise InputError(f"{out} exists, and a vocabulary is never replaced; give another --out or remove it.")
    check_file("--out", out)
    if most is not None and most < 1:
        raise InputError(f"--most {most} takes no word; ask for 1 or more.")
    old = Vocabulary.load(as_path("vocabulary", vocabulary))
    with Run.open(as_path("words", words)) as run:
        made = _extended(old, run, most, named=str(words), vocabulary=str(vocabulary))
    out.parent.mkdir(parents=True, exist_ok=True)
    made.vocabulary.save(out)
    held_out = None if data is None else _held_out(data, old, made.vocabulary, split, progress)
    return Extension(
        vocabulary=made.vocabulary, path=out, added=made.added, not_words=made.not_words, held_out=held_out
    )


def _extended(
    old: Vocabulary, run: Run, most: int | None, *, named: str, vocabulary: str = "this vocabulary"
) -> Extension:
    counted = run.kind == CountMetadata.kind
    if not counted and vocabulary_digest(run) != old.sha256:
        raise InputError(
            f"the run {named} started from another vocabulary than {vocabulary}; give the one it started from."
        )
    ranked = _counted(run) if counted else _ranked(run)
    taken = [word for word in ranked if old.cuts(word)]  # noise often is no word (`ab;`, `7.`)
    fresh = [word for word in dict.fromkeys(taken[:most]) if word not in set(old.words)]
    if not fresh:
        raise InputError("the run found no word that could be added; ask more users, or a larger epsilon.")
    origin = replace(
        _counted_origin(run, old) if counted else _origin(run, old), discovered=old.provenance.discovered + len(fresh)
    )
    new = replace(old, words=(*old.words, *fresh), provenance=origin)
    return Extension(vocabulary=new, path=None, added=len(fresh), not_words=len(ranked) - len(taken), held_out=None)


def found_by(run: Run) -> list[dict[str, Any]]:
    """The rows of a finished discovery run, as `DiscoveredWord.row` has them. Raises: RunError."""
    path = run.path / RESULT
    try:
        found: list[dict[str, Any]] = parsed_json(run.kept(RESULT))["found"]
    except FileNotFoundError:
        raise RunError(f"'{run.path}' is not finished; run its `tacit discover` again to go on.") from None
    except (ValueError, KeyError) as error:
        raise RunError(f"'{path}' is damaged ({error}); run its `tacit discover` again.") from error
    return found


def how_discovered(run: Run) -> str:
    """A phrase: at which price words were found, and whether that protects anybody."""
    reports = settings_of(run).reports
    how = f"words discovered with local epsilon {reports.local_epsilon:g} a report, {reports.contributions} a user"
    if _unprotected(run):
        how += " (a simulation: fixed seed or resampled users, so nothing is promised to its clients)"
    return how


def _unprotected(run: Run) -> bool:
    settings = settings_of(run)
    return settings.seed is not None or settings.resample_users


def _counted(run: Run) -> list[str]:
    from tacit.jobs.count.new_words import found_words  # JAX comes with it

    return [each.word for each in found_words(run)]


def _ranked(run: Run) -> list[str]:
    """The found words by estimated count where users counted, else by votes."""
    return [row["word"] for row in sorted(found_by(run), key=lambda row: -row.get("count", row["votes"]))]


def _origin(run: Run, old: Vocabulary) -> Provenance:
    """Where the words come from now; private where a simulation's choices leave the run's clients unprotected."""
    private = _unprotected(run) or old.provenance.kind == "private"
    kind: ProvenanceKind = "private" if private else "discovered"
    return Provenance(kind=kind, description=f"{old.provenance.description}; and {how_discovered(run)}")


def _counted_origin(run: Run, old: Vocabulary) -> Provenance:
    """The same of candidates that were counted."""
    kept = figures(facts(run))
    how = f"words counted at central epsilon {kept['epsilon']:g} and delta {kept['delta']:g}"
    fixed = kept["key_source"] != OPERATING_SYSTEM
    if fixed:
        how += " (a simulation with a fixed seed, so nothing is promised to its clients)"
    kind: ProvenanceKind = "private" if fixed or old.provenance.kind == "private" else "discovered"
    return Provenance(kind=kind, description=f"{old.provenance.description}; and {how}")


def _held_out(data: str, old: Vocabulary, new: Vocabulary, split: str, progress: Progress) -> HeldOutChange:
    typed = typed_by(data, old, split=split, progress=progress)
    return HeldOutChange(
        split=split,
        clients=typed.clients,
        words_typed=int(typed.typed.sum()),
        oov_rate_before=typed.oov_rate(),
        oov_rate_after=typed.oov_rate(frozenset(new.words) - frozenset(old.words)),
    )
