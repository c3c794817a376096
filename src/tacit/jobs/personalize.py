"""From the settings of `tacit personalize` to what was found, resumable at every client (`evaluation_folder`)."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.asking import first_asked
from tacit.evaluation.deltas import Deltas
from tacit.evaluation.fairness import shared_vocabulary
from tacit.evaluation.histograms import Histogram
from tacit.evaluation.personalization import ClientOutcome, SkippedClient, Strategy, TemporalSplit, personalize_clients
from tacit.evaluation.queries import Answers, Questionnaire
from tacit.evaluation.release import Question, exactly
from tacit.jobs import histograms as evaluation_folder
from tacit.jobs.evaluation_promise import Promise
from tacit.jobs.histograms import Lines, released_step, weights_digest
from tacit.keyboard.model_folder import load_model
from tacit.runs import Run

FEWEST = 2  # clients of a group that have a spread, hence an interval
OUTCOMES = Path("simulation") / "outcomes.jsonl"


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """All that a run has found: exact numbers, and what was released of them, if anything."""

    asked: NDArray[np.int64]
    deltas: Deltas  # of the asked clients that could be measured, in the order of asking
    fresh: Deltas  # of these, the clients that no policy was designed on; all without a gate
    skipped: Mapping[str, int]
    undated: int  # sentences of the evaluated clients that are in no part because their time is unknown
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
    facts = {
        "kind": "personalization",
        "source": cache.manifest.source,
        "strategies": [str(each) for each in work.strategies],
        "asked": len(asked),
    }
    return evaluation_folder.open_or_begin(out, settings, facts, promise=work.promise, seed=work.seed)


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
    network = load_model(work.model).parameters
    asked = asked_clients(work, cache)
    lines = Lines(run.path / OUTCOMES)
    lines.drop_torn_line()
    done = {row["client"] for row in lines.rows()}
    missing = [int(client) for client in asked if int(client) not in done]
    told(len(done), len(asked))

    def keep(each: ClientOutcome | SkippedClient) -> None:
        lines.append([each.as_row()])
        done.add(each.client)
        told(len(done), len(asked))

    if missing:
        personalize_clients(network, cache, missing, work.strategies, work.split, cores=cores, progress=keep)


def findings(work: Work, run: Run) -> Evaluated:
    """What the devices' reports say, exactly, and released as promised; releases what is not released yet.

    Hold the run's lock while the run is not finished.
    """
    asked = asked_clients(work, Cache.open(work.data))
    rows = {row["client"]: row for row in Lines(run.path / OUTCOMES).rows()}
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
            lambda step, questions: released_step(
                run, work.promise, questions, step=step, steps=len(groups), clients=asked[groups[step]]
            )
        )
    everybody = _measured(reports)
    return Evaluated(
        asked=asked,
        deltas=everybody,
        fresh=parts[-1],
        skipped=dict(sorted(skipped.items())),
        undated=sum(row["undated"] for row in reports if "skipped" not in row),
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


def _check_model(work: Work, cache: Cache) -> str:
    """The digest of the weights. InputError where the cache's ids are not this model's words."""
    words = load_model(work.model).vocabulary
    shared_vocabulary({str(work.model): words.sha256, str(work.data): cache.manifest.vocabulary.sha256})
    return weights_digest(work.model)


def _measured(reports: list[dict[str, Any]]) -> Deltas:
    return Deltas.of([ClientOutcome.from_row(row) for row in reports if "skipped" not in row])
