"""The report as a page: the templates beside this file, filled with what the summary knows."""

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from tacit.privacy.rounding import rounded_up
from tacit.reports.figure import Drawing
from tacit.reports.training import RunSummary
from tacit.statements import Statement
from tacit.statements.accounts import figures_of
from tacit.statements.statement import SECTIONS

Block = tuple[str, list[str]]  # ("paragraph" | "list" | "code", lines)

QUALITY = {
    "top1_accuracy": "top-1 accuracy",
    "top3_accuracy": "top-3 accuracy",
    "cross_entropy": "cross-entropy, nats a word",
    "oov_rate": "words out of vocabulary",
    "words": "words typed",
    "clients": "clients",
    "client_accuracy_q25": "top-1 accuracy, lower quartile of clients",
    "client_accuracy_q50": "top-1 accuracy, median client",
    "client_accuracy_q75": "top-1 accuracy, upper quartile of clients",
}
FIGURES = {
    "rounds": "rounds",
    "rounds_between": "MinS: rounds between two participations of a client, at least",
    "min_separation": "min separation (MinS + 1)",
    "max_participations": "MaxP: participations of a client, at most",
    "sensitivity_squared": "squared sensitivity, in squared clip norms",
    "noise_multiplier": "noise multiplier",
    "clip_norm": "clip norm (planned: the first; realised: the last)",
    "zcdp": "zCDP",
    "epsilon": "epsilon",
    "delta": "delta",
}


def html_page(summary: RunSummary, tiles: Mapping[str, str], drawings: Sequence[Drawing]) -> str:
    """One file with everything in it: no script, nothing is fetched."""
    return _fill("report.html.j2", summary, tiles, drawings)


def markdown_page(summary: RunSummary, tiles: Mapping[str, str], drawings: Sequence[Drawing]) -> str:
    """The same in Markdown, its figures beside it."""
    return _fill("report.md.j2", summary, tiles, drawings)


def blocks(text: str) -> list[Block]:
    """An item's text as what it is made of: paragraphs, lists ("- ") and code (four spaces)."""
    found: list[Block] = []
    for part in text.split("\n\n"):
        lines = part.split("\n")
        if all(line.startswith("    ") for line in lines):
            found.append(("code", [line[4:] for line in lines]))
        elif all(line.startswith("- ") for line in lines):
            found.append(("list", [line[2:] for line in lines]))
        else:
            found.append(("paragraph", lines))
    return found


def _fill(template: str, summary: RunSummary, tiles: Mapping[str, str], drawings: Sequence[Drawing]) -> str:
    environment = Environment(
        loader=PackageLoader("tacit.reports", "templates"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["blocks"] = blocks
    environment.filters["cell"] = _cell
    statement = summary.statement
    return environment.get_template(template).render(
        run=summary,
        tiles=tiles,
        drawings=drawings,
        quality=_quality(summary),
        rounds=_rounds(summary),
        privacy=_privacy(summary),
        settings=_settings(summary),
        origin=_origin(summary),
        own_items=[item for item in statement.items if item.number] if statement else [],
        other_items=[item for item in statement.items if not item.number] if statement else [],
        statement_markdown=_as_section(statement) if statement else "",
        sections=SECTIONS,
    )


def _as_section(statement: Statement) -> str:
    """The statement in Markdown as a section of a page: its title, then its labels, all one level deeper."""
    labels, title, items = statement.markdown().partition("# Privacy statement\n")
    text = f"{title}\n{labels}{items}".replace("\n\n\n", "\n\n")
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in text.splitlines())


def _cell(value: str) -> str:
    """Text inside a table of Markdown."""
    return value.replace("|", "\\|").replace("\n", " ")


def _quality(summary: RunSummary) -> list[tuple[str, str, str]]:
    """(name, on validation clients at the last evaluation, on test clients)."""
    validation, test = summary.last_validation, summary.test
    return [
        (shown, _measure(name, validation.get(name)), _measure(name, test.get(name)))
        for name, shown in QUALITY.items()
        if name in validation or name in test
    ]


def _measure(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if "accuracy" in name or name == "oov_rate":
        return f"{value:.2%}"
    return f"{value:,.0f}" if name in {"words", "clients"} else f"{value:.3f}"


def _rounds(summary: RunSummary) -> list[tuple[str, str]]:
    totals = summary.rounds.totals
    if not totals:
        return []
    return [
        ("clients per second", f"{totals['clients_per_second']:,.1f}"),
        ("time in rounds", _duration(totals["training_seconds"])),
        ("participations", f"{totals['participations']:,.0f}"),
        ("clients dropped (no finite update)", f"{totals['dropped_clients']:,.0f}"),
        (
            "training loss, first round → last",
            f"{totals['loss_first_round']:.3f} → {totals['loss_last_round']:.3f}",
        ),
        (
            "updates clipped, first round → last",
            f"{totals['clipped_first_round']:.0%} → {totals['clipped_last_round']:.0%}",
        ),
        *_clip_norm(summary),
    ]


def _clip_norm(summary: RunSummary) -> list[tuple[str, str]]:
    """Of a run that adapts its clip norm."""
    rounds = summary.rounds
    if rounds.clip_estimate is None:
        return []
    return [
        ("clip norm in force, first round → last", f"{rounds.clip_norm[0]:.4g} → {rounds.clip_norm[-1]:.4g}"),
        ("estimate of the clip norm, last round", f"{rounds.clip_estimate[-1]:.4g}"),
    ]


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if minutes < 1:
        return f"{seconds:.1f} s"
    return f"{minutes} min {int(seconds % 60)} s" if hours < 1 else f"{hours} h {minutes % 60} min"


def _privacy(summary: RunSummary) -> list[tuple[str, str, str]]:
    """(name, planned, realised)."""
    accounts = summary.accounts
    planned = figures_of(accounts.planned, accounts.delta) or {}
    realised = figures_of(accounts.realised, accounts.delta) or {}
    rows = [
        (shown, _figure(name, planned.get(name)), _figure(name, realised.get(name))) for name, shown in FIGURES.items()
    ]
    for at, share in enumerate(planned.get("sequences", ())):  # what the zCDP of everything together is made of
        happened = realised["sequences"][at] if realised else {}
        for name in ("noise_multiplier", "zcdp"):
            title = f"{FIGURES[name]}, {share['what']} alone"
            rows.append((title, _figure(name, share[name]), _figure(name, happened.get(name))))
    return rows


def _figure(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return rounded_up(value, 6) if name in {"zcdp", "epsilon"} else f"{value:.6g}"


def _settings(summary: RunSummary) -> list[tuple[str, str]]:
    return [(key, _value(value)) for key, value in summary.settings.items()]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _origin(summary: RunSummary) -> list[tuple[str, str]]:
    """Where model, words and numbers come from."""
    facts = summary.facts
    data, versions = facts["data"], facts["versions"]
    return [
        ("run folder", str(summary.path)),
        ("begun", summary.created),
        ("clients' text", str(data["source"])),
        ("training clients", f"{facts['population']:,}"),
        ("vocabulary", f"{data['vocabulary_size']:,} words ({facts['vocabulary']['kind']})"),
        ("vocabulary from", facts["vocabulary"]["description"]),
        ("model parameters", f"{facts['parameters']:,}"),
        ("keys from", facts["key_source"]),
        ("cache digest", data["cache_digest"]),
        ("vocabulary digest", data["vocabulary_sha256"]),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]
