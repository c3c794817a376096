"""What a campaign found, as figures and files: estimates for anybody, and beside them what only a simulation knows."""

import csv
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.unknown_words import TypedWords
from tacit.discovery.campaign_folder import CampaignFolder
from tacit.discovery.rounds import Discovery
from tacit.discovery.settings import Campaign
from tacit.keyboard.vocabulary import Vocabulary
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.records import json_ready
from tacit.statements import DiscoveryFacts, Statement
from tacit.statements.statement import statement as statement_of

WORDS = "words.csv"
RESULT = "result.json"
STATEMENT = "report/statement"
COLUMNS = ("word", "pass", "layer", "votes", "count", "low", "high", "of_reports")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`summary` has figures and the guarantee, `rows` a row of COLUMNS for each word in the order found."""

    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    statement: Statement


def outcome_of(
    campaign: Campaign, found: Discovery, typed: TypedWords, folder: CampaignFolder, *, known: Vocabulary, delta: float
) -> Outcome:
    """Everything that is printed and written of a finished campaign; the guarantee follows from the folder's ledger."""
    rows = [
        {"word": word, "pass": layer.release.turn, "layer": layer.release.layer, "votes": votes}
        for layer in found.layers
        for word, votes in zip(layer.words, layer.word_votes, strict=True)
    ]
    if found.counts:
        for row, count in zip(rows, found.counts.counts, strict=True):
            row |= {"count": count.value, "low": count.low, "high": count.high, "of_reports": found.counts.reports}
    coverage = found.counts.coverage if found.counts else None
    statement = statement_of(facts_of(campaign, typed, folder, known=known, delta=delta))
    summary = {
        "run": str(folder.path),
        "words": len(rows),
        "users": statement.figures["users"],
        "counting_users": campaign.counting_users,
        "resampled_users": campaign.resample_users,
        "seed": campaign.seed,
        "coverage": coverage._asdict() if coverage else None,
        "confidence": found.counts.confidence if found.counts else None,
        "guarantee": statement.figures["guarantee"],
        "anonymity": statement.figures["anonymity"],
        "simulation": simulation_facts(campaign, found, typed),
    }
    return Outcome(summary=summary, rows=rows, statement=statement)


def facts_of(
    campaign: Campaign, typed: TypedWords, folder: CampaignFolder, *, known: Vocabulary, delta: float
) -> DiscoveryFacts:
    """What the statement is made from: the ledger on disk, and what only the command knows."""
    return DiscoveryFacts(
        releases=folder.ledger().local_reports,
        central_delta=delta,
        population=typed.clients,
        resampled=campaign.resample_users,
        key_source=OPERATING_SYSTEM if campaign.seed is None else f"fixed seed {campaign.seed}",
        sampler=campaign.terms.sampler,
        anonymity=campaign.anonymity,
        vocabulary_kind=known.provenance.kind,
        vocabulary_description=known.provenance.description,
        looked_at=(f"the figures under `simulation` in {RESULT}, counted in the clients' own text",),
        verify_command=f"tacit verify {folder.path / STATEMENT}.json",
    )


def simulation_facts(campaign: Campaign, found: Discovery, typed: TypedWords) -> dict[str, Any]:
    """What the server of a real campaign never learns, because it has nobody's text.

    `coverage`: the share of all unknown words typed (occurrences) that are found now; `largest_coverage`: that of as
    many words, had the most typed been known; `words_left_out`: occurrences that no device could report.
    """
    totals, words = typed.totals, set(found.words)
    everything = int(totals.sum()) + typed.beyond_spelling
    position = {word: number for number, word in enumerate(typed.words)}
    hit = np.array([position[word] for word in found.words if word in position], np.int64)
    largest = np.sort(totals)[::-1][: len(words)].sum()
    spelt = np.fromiter((campaign.alphabet.spells(word) for word in typed.words), bool, len(typed.words))
    long = np.fromiter((len(word) >= campaign.depth for word in typed.words), bool, len(typed.words))
    return {
        "clients": typed.clients,
        "coverage": float(totals[hit].sum() / everything) if everything else 0.0,
        "largest_coverage": float(largest / everything) if everything else 0.0,
        "words_nobody_typed": len(words) - len(hit),
        "words_left_out": {
            "outside the alphabet": int(totals[~spelt].sum()),
            "too long for the depth": int(totals[spelt & long].sum()),
            "not spelt in the cache": typed.beyond_spelling,
        },
    }


def write_outcome(folder: CampaignFolder, outcome: Outcome) -> None:
    """words.csv, result.json and the statement in the campaign's folder."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(outcome.rows)
    folder.write_result(WORDS, text.getvalue())
    record = {**outcome.summary, "found": outcome.rows}
    folder.write_result(RESULT, json.dumps(json_ready(record), ensure_ascii=False, indent=1) + "\n")
    folder.write_result(f"{STATEMENT}.json", outcome.statement.to_json())
    folder.write_result(f"{STATEMENT}.md", outcome.statement.markdown())
