"""What a discovery run found: estimates for anybody, and beside them what only a simulation knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.data.unknown_words import TypedWords
from tacit.discovery.rounds import Discovery
from tacit.discovery.settings import DiscoverySettings
from tacit.jobs.account.run import RunAccount, account_run
from tacit.jobs.result import JobResult
from tacit.parsing import parsed_json
from tacit.randomizers import Estimate
from tacit.records import json_ready, to_plain
from tacit.reports import summary_lines
from tacit.reports.blocks import Block
from tacit.reports.discover import page
from tacit.reports.page import ReportFiles, to_html_fragment
from tacit.runs import Run
from tacit.statements import Statement
from tacit.statements.device_text import LOGGED
from tacit.statements.discover import asked

COLUMNS = ("word", "pass", "layer", "votes", "count", "low", "high", "of_reports")  # of words.csv, and of `to_arrow`


@dataclass(frozen=True, kw_only=True)
class DiscoveredWord:
    """A word, where it ended (pass and layer, from 1) and with how many votes.

    count: the estimate of how many of the `of_reports` counting reports were this word; None where nobody counted.
    """

    word: str
    turn: int
    layer: int
    votes: int
    count: Estimate | None
    of_reports: int | None

    def row(self) -> dict[str, Any]:
        """One value for each of COLUMNS; the last four where users counted."""
        found = {"word": self.word, "pass": self.turn, "layer": self.layer, "votes": self.votes}
        if self.count is None:
            return found
        counted = {"count": self.count.value, "low": self.count.low, "high": self.count.high}
        return {**found, **counted, "of_reports": self.of_reports}


def words_of(found: Discovery) -> tuple[DiscoveredWord, ...]:
    """The words of all layers in the order found, with their counts."""
    counts = found.counts
    words = [
        (word, layer.release.turn, layer.release.layer, votes)
        for layer in found.layers
        for word, votes in zip(layer.words, layer.grown.word_votes, strict=True)
    ]
    return tuple(
        DiscoveredWord(
            word=word,
            turn=turn,
            layer=layer,
            votes=votes,
            count=counts.counts[at] if counts else None,
            of_reports=counts.reports if counts else None,
        )
        for at, (word, turn, layer, votes) in enumerate(words)
    )


def figures_of(
    settings: DiscoverySettings, stated: Statement, *, words: int, coverage: Estimate | None, confidence: float | None
) -> dict[str, Any]:
    """The figures that are published beside the words."""
    return {
        "words": words,
        "users": stated.figures["users"],
        "counting_users": settings.counting_users,
        "resampled_users": settings.resample_users,
        "seed": settings.seed,
        "coverage": coverage._asdict() if coverage else None,
        "confidence": confidence,
        "guarantee": stated.figures["guarantee"],
        "anonymity": stated.figures["anonymity"],
    }


@dataclass(frozen=True, kw_only=True)
class SimulationFigures:
    """What the server of a real run never learns, because it has nobody's text; counted in occurrences.

    `coverage`: the share of all unknown words typed that are found now; `largest_coverage`: that of as many words, had
    the most typed been known; `words_left_out`: occurrences that no device could report, by why.
    """

    clients: int
    coverage: float
    largest_coverage: float
    words_nobody_typed: int
    words_left_out: Mapping[str, int]

    @classmethod
    def from_discovery(
        cls, settings: DiscoverySettings, found: Sequence[str], typed: TypedWords
    ) -> "SimulationFigures":
        """Of the words found in a population."""
        totals, words = typed.totals, set(found)
        everything = int(totals.sum()) + typed.beyond_spelling
        position = {word: number for number, word in enumerate(typed.words)}
        hit = np.array([position[word] for word in found if word in position], np.int64)
        largest = np.sort(totals)[::-1][: len(words)].sum()
        spelt = np.fromiter((settings.alphabet.spells(word) for word in typed.words), bool, len(typed.words))
        long = np.fromiter((len(word) >= settings.depth for word in typed.words), bool, len(typed.words))
        return cls(
            clients=typed.clients,
            coverage=float(totals[hit].sum() / everything) if everything else 0.0,
            largest_coverage=float(largest / everything) if everything else 0.0,
            words_nobody_typed=len(words) - len(hit),
            words_left_out={
                "outside the alphabet": int(totals[~spelt].sum()),
                "too long for the depth": int(totals[spelt & long].sum()),
                "not spelt in the cache": typed.beyond_spelling,
            },
        )


@dataclass(frozen=True, kw_only=True)
class DiscoveryResult(JobResult):
    """The words in the order found, what they cost, and the run folder that says so.

    coverage: the estimated share of contributed unknown words that the found ones cover, at `confidence`; None where
    nobody counted, or counting said nothing but noise. `simulation` is what no server could know, None of real devices.
    """

    run: Run
    settings: DiscoverySettings
    words: tuple[DiscoveredWord, ...] = field(repr=False)  # thousands
    coverage: Estimate | None
    confidence: float | None
    simulation: SimulationFigures | None
    statement: Statement = field(repr=False)
    report: ReportFiles | None

    @classmethod
    def from_run(
        cls, run: Run, settings: DiscoverySettings, found: Discovery, typed: TypedWords | None, statement: Statement
    ) -> "DiscoveryResult":
        """Of a run all of whose layers are done."""
        counts = found.counts
        return cls(
            run=run,
            settings=settings,
            words=words_of(found),
            coverage=counts.coverage if counts else None,
            confidence=counts.confidence if counts else None,
            simulation=None if typed is None else SimulationFigures.from_discovery(settings, found.words, typed),
            statement=statement,
            report=None,
        )

    @property
    def account(self) -> RunAccount:
        """What everything in the run's ledger promises."""
        return account_run(self.run, delta=self.statement.figures["guarantee"]["central_delta"])

    def rows(self) -> list[dict[str, Any]]:
        """A row of COLUMNS for each word in the order found."""
        return [word.row() for word in self.words]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit discover --json` prints."""
        return {
            "schema": "tacit.discovery",
            "version": 1,
            "run": str(self.run.path),
            **figures_of(
                self.settings,
                self.statement,
                words=len(self.words),
                coverage=self.coverage,
                confidence=self.confidence,
            ),
            "simulation": None if self.simulation is None else to_plain(self.simulation),
        }

    def found(self) -> dict[str, Any]:
        """What its pages are made from: see `reports.discover.page`; and what a stranger checks the words by."""
        return {
            "figures": self.to_record(),
            "found": self.rows(),
            "statement": self.statement.to_record(),
            "released": self.released(),
        }

    def released(self) -> dict[str, Any]:
        """What every step output, the settings that say what it may be, and the plan that devices had, if any."""
        steps = [(step.file, self.run.path / "steps" / step.file) for step in self.run.steps()]
        return {
            "settings": asked(self.run),
            "steps": {file.removesuffix(".json"): parsed_json(path.read_bytes()) for file, path in steps},
            "logged": self.run.notes.get(LOGGED),
        }

    def blocks(self) -> list[Block]:
        """What people read of it in a few lines."""
        return summary_lines.of_discovery(self.to_record())

    def to_arrow(self) -> Any:
        """The words as columns of an Arrow table: COLUMNS, null where nobody counted."""
        import pyarrow as pa

        whole, real = pa.int64(), pa.float64()
        kinds = (pa.string(), whole, whole, whole, real, real, real, whole)
        return pa.Table.from_pylist(self.rows(), schema=pa.schema(list(zip(COLUMNS, kinds, strict=True))))

    def to_pandas(self) -> Any:
        """The same as a table of pandas, which must be installed."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        return to_html_fragment(page(json_ready(self.found())).blocks)
