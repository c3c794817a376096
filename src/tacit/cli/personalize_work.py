"""From the settings of `tacit personalize` to a finished run folder, resumable at every client.

    RUN/recipe.toml                     what was asked
    RUN/simulation/outcomes.jsonl       each device's report, EXACT: only a simulation has it, without any promise
    RUN/checkpoints/release-000000.json the noised histograms of a step, and in run.db the ledger row that names them

A killed process leaves whole lines, and at most one torn one that is computed again. The noise of a step follows from
the run's key, so a step that is done again before its row is committed gives the same release.
"""

import hashlib
import json
import os
import platform
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tomli_w
from numpy.typing import NDArray

import tacit
from tacit.analytics import SubsetSelection
from tacit.cli.models import WEIGHTS, load_model
from tacit.errors import InputError, RunError
from tacit.evaluation.asking import first_asked
from tacit.evaluation.deltas import Deltas
from tacit.evaluation.fairness import shared_vocabulary
from tacit.evaluation.histograms import Histogram
from tacit.evaluation.personalization import (
    ClientOutcome,
    SkippedClient,
    Strategy,
    TemporalSplit,
    personalize_clients,
)
from tacit.evaluation.private_release import Question, exactly, guarantee_for, release, release_locally
from tacit.evaluation.questionnaire import Answers, Questionnaire
from tacit.mechanisms import fresh_key
from tacit.population import Cache
from tacit.privacy.ledger import RoundRelease
from tacit.runs import RoundRow, Run, write_whole
from tacit.training import Cores, Hardware, generator_for, key_from_seed

FEWEST = 2  # clients of a group that have a spread, hence an interval
OUTCOMES = Path("simulation") / "outcomes.jsonl"
Steps = tuple[Mapping[str, Histogram], ...]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What is released and at what price: kind "nothing", "central" (zcdp, epsilon at delta) or "local" (epsilon)."""

    kind: str = "nothing"
    zcdp: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """All that a run has found: exact numbers, and what was released of them, if anything."""

    asked: NDArray[np.int64]
    deltas: Deltas  # of the asked clients that could be measured, in the order of asking
    fresh: Deltas  # of these, the clients that no policy was designed on; all without a gate
    skipped: Mapping[str, int]
    exact: Answers
    released: Answers | None


@dataclass(frozen=True, kw_only=True)
class Work:
    """One evaluation to be done: every setting that changes its result."""

    model: Path
    data: Path
    split_name: str
    clients: int  # asked at most; 0: all of the split
    strategies: tuple[Strategy, ...]  # one or more, with the same stopping rule
    split: TemporalSplit
    questionnaire: Questionnaire
    harm_weight: float
    promise: Promise
    seed: int | None = None

    def to_toml(self, model_digest: str, data_digest: str) -> str:
        """The settings as the run folder keeps them; a resume compares them."""
        asked = self.questionnaire
        return tomli_w.dumps(
            {
                "model": {"path": str(self.model.resolve()), "sha256": model_digest},
                "data": {"path": str(self.data.resolve()), "sha256": data_digest, "split": self.split_name},
                "clients": self.clients,
                "strategies": [str(each) for each in self.strategies],
                "stop": {"max_tokens": self.strategies[0].max_tokens, "epochs": self.strategies[0].epochs},
                "split": asdict(self.split),
                "gate": {"levels": list(asked.levels), "harm_weight": self.harm_weight},
                "histograms": {
                    "metrics": list(asked.metrics),
                    "slices": list(asked.slices),
                    "tokens": list(asked.tokens.cuts),
                    "baseline": list(asked.baseline.cuts),
                    "changes": {metric: list(asked.changes[metric].cuts) for metric in asked.metrics},
                },
                "promise": asdict(self.promise),
                **({} if self.seed is None else {"seed": self.seed}),
            }
        )


def open_or_begin(work: Work, out: Path) -> Run:
    """A new run folder, or the one at `out` where it has the same settings.

    Raises: InputError for a model and a cache of different vocabularies, a split without clients, or too few for a
    gate; RunError where `out` was begun with other settings, naming the first that differs.
    """
    cache = Cache.open(work.data)
    settings = work.to_toml(_check_model(work, cache), cache.manifest.digest)
    asked = asked_clients(work, cache)
    if (out / "run.db").is_file():
        run = Run.open(out)
        difference = first_difference(tomllib.loads(run.recipe), tomllib.loads(settings))
        if difference:
            run.close()
            raise RunError(f"'{out}' was begun with other settings ({difference}); give those, or another --out.")
        return run
    facts = {
        "kind": "personalization",
        "versions": {
            "tacit": tacit.__version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "created": time.time(),
        "source": cache.manifest.source,
        "strategies": [str(each) for each in work.strategies],
        "asked": len(asked),
        "delta": work.promise.delta,
        "key_source": "operating system" if work.seed is None else f"fixed seed {work.seed}",
        "finished": False,
    }
    return Run.create(out, settings, facts, fresh_key() if work.seed is None else key_from_seed(work.seed))


def first_difference(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> str | None:
    """The first setting that differs, as `name was X and is now Y`; None where none does."""
    for name in sorted(old.keys() | new.keys()):
        before, now, where = old.get(name), new.get(name), f"{path}{name}"
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            if found := first_difference(before, now, f"{where}."):
                return found
        elif before != now:
            return f"{where} was {before} and is now {now}"
    return None


def asked_clients(work: Work, cache: Cache) -> NDArray[np.int64]:
    """Who is asked, in a public random order. With a gate the first half designs it, the other half judges it."""
    asked = first_asked(cache.clients(work.split_name), work.clients)
    least = 2 * FEWEST if work.questionnaire.gated else FEWEST
    if len(asked) < least:
        raise InputError(
            f"{len(asked)} clients of the {work.split_name} split were asked for, and {least} are the fewest that say "
            "anything; ask more, or import more clients."
        )
    return asked


def evaluate_clients(work: Work, run: Run, hardware: Hardware, told: Callable[[int, int], None]) -> None:
    """Every asked client that has no line in the run folder yet; `told(done, of)` after each.

    Hold the run's lock. What is written is the same whoever was interrupted when.
    """
    cache, cores = Cache.open(work.data), Cores(hardware)
    network, _, _ = load_model(work.model)
    asked = asked_clients(work, cache)
    lines = run.path / OUTCOMES
    lines.parent.mkdir(exist_ok=True)
    _drop_torn_line(lines)
    done = {row["client"] for row in _rows(lines)}
    missing = [int(client) for client in asked if int(client) not in done]
    told(len(done), len(asked))
    with lines.open("ab") as file:

        def keep(each: ClientOutcome | SkippedClient) -> None:
            file.write((json.dumps(each.as_row()) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
            done.add(each.client)
            told(len(done), len(asked))

        if missing:
            personalize_clients(network, cache, missing, work.strategies, work.split, cores=cores, progress=keep)


def findings(work: Work, run: Run) -> Evaluated:
    """What the devices' reports say, exactly, and released as promised; releases what is not released yet.

    Hold the run's lock while the run is not finished.
    """
    asked = asked_clients(work, Cache.open(work.data))
    rows = {row["client"]: row for row in _rows(run.path / OUTCOMES)}
    reports = [rows[int(client)] for client in asked]
    skipped: dict[str, int] = {}
    for row in reports:
        if "skipped" in row:
            skipped[row["skipped"]] = skipped.get(row["skipped"], 0) + 1
    groups = np.array_split(np.arange(len(asked)), 2) if work.questionnaire.gated else [np.arange(len(asked))]
    for group in groups:
        if sum("skipped" not in reports[at] for at in group) < FEWEST:
            reasons = "; ".join(f"{count}: {reason}" for reason, count in sorted(skipped.items()))
            raise InputError(
                f"of {len(group)} clients too few could be evaluated to say anything (of all {len(asked)}, left out "
                f"{reasons}); ask more clients, or split otherwise (--split, --gate-share, --undated)."
            )
    parts = [_measured([reports[at] for at in group]) for group in groups]
    silent = [len(group) - len(part) for group, part in zip(groups, parts, strict=True)]
    if unmeasured := sum(part.unmeasured for part in parts):
        skipped["no test word is in the vocabulary"] = unmeasured

    def answered(answer: Callable[[int, list[Question]], Mapping[str, Histogram]]) -> Answers:
        return _answers(work, parts, silent, answer)

    exact = answered(lambda step, questions: exactly(questions))
    released = None
    if work.promise.kind != "nothing":
        released = answered(
            lambda step, questions: _released(work, run, step, len(groups), asked[groups[step]], questions)
        )
    everybody = _measured(reports)
    return Evaluated(
        asked=asked,
        deltas=everybody,
        fresh=parts[-1],
        skipped=dict(sorted(skipped.items())),
        exact=exact,
        released=released,
    )


def _answers(
    work: Work,
    parts: list[Deltas],
    silent: list[int],
    answer: Callable[[int, list[Question]], Mapping[str, Histogram]],
) -> Answers:
    """Ask the first group, choose policies by what it answered, ask the second group about them."""
    asked = work.questionnaire
    first = asked.about_strategies(parts[0], silent[0])
    if not asked.gated:
        return Answers(questionnaire=asked, steps=(answer(0, first),), policies=())
    designed = answer(0, [*first, *asked.about_rules(parts[0], silent[0])])
    policies = asked.policies(designed, work.harm_weight)
    second = asked.about_strategies(parts[1], silent[1])
    judged = answer(1, [*second, *asked.about_policies(policies, parts[1], silent[1])])
    return Answers(questionnaire=asked, steps=(designed, judged), policies=policies)


def _released(
    work: Work, run: Run, step: int, steps: int, clients: NDArray[np.int64], questions: list[Question]
) -> Mapping[str, Histogram]:
    """The step's release: the one on disk, or a new one, on disk before its ledger row is."""
    path = run.path / "checkpoints" / f"release-{step:06d}.json"
    central = work.promise.kind == "central"
    if step < run.rounds_done or (path.exists() and not central):
        return _read_release(path, {each.name: each for each in questions})
    generator = generator_for(run.noise_key, "evaluation histogram", step)
    row: RoundRelease | None = None
    if central:
        guarantee = guarantee_for(len(questions), zcdp=work.promise.zcdp, steps=steps)
        histograms, row = release(questions, guarantee, step=step, generator=generator)
    else:
        epsilon = work.promise.epsilon
        histograms = release_locally(
            questions, lambda cells: SubsetSelection(domain=cells, epsilon=epsilon), generator=generator
        )
    content = json.dumps({name: _release_row(each) for name, each in histograms.items()}).encode()
    write_whole(path, content)
    if row is not None:
        done = RoundRow(
            round=step,
            checkpoint=path.name,
            digest=hashlib.sha256(content).hexdigest(),
            release=row.to_record(),
            measures={},
        )
        run.commit(done, clients=np.sort(clients), finished=time.time(), seconds=0.0)
    return histograms


def _release_row(histogram: Histogram) -> dict[str, Any]:
    flat = [*histogram.counts.ravel().tolist(), histogram.silent]
    spread = [*histogram.variance.ravel().tolist(), histogram.silent_variance]
    return {"counts": flat, "variance": spread, "asked": histogram.asked}


def _read_release(path: Path, questions: Mapping[str, Question]) -> dict[str, Histogram]:
    try:
        rows = json.loads(path.read_bytes())
        return {
            name: Histogram.of(each.cells, rows[name]["counts"], rows[name]["variance"], rows[name]["asked"])
            for name, each in questions.items()
        }
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"'{path}' does not hold what the ledger says was released ({error}); restore it.") from error


def _check_model(work: Work, cache: Cache) -> str:
    """The digest of the weights. InputError where the cache's ids are not this model's words."""
    _, _, vocabulary = load_model(work.model)
    shared_vocabulary({str(work.model): vocabulary.sha256, str(work.data): cache.manifest.vocabulary.sha256})
    inside = work.model / "model" / WEIGHTS
    return hashlib.sha256((inside if inside.is_file() else work.model / WEIGHTS).read_bytes()).hexdigest()


def _measured(reports: list[dict[str, Any]]) -> Deltas:
    return Deltas.of([ClientOutcome.from_row(row) for row in reports if "skipped" not in row])


def _rows(lines: Path) -> Iterator[dict[str, Any]]:
    """Each whole line; SkippedClient's have the key "skipped"."""
    if lines.exists():
        for number, line in enumerate(lines.read_bytes().splitlines(), start=1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise RunError(
                    f"line {number} of '{lines}' is damaged ({error}); remove it to compute it again."
                ) from error


def _drop_torn_line(lines: Path) -> None:
    """What a killed process wrote after its last whole line."""
    if lines.exists():
        content = lines.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_whole(lines, whole)
