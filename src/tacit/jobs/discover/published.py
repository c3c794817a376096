"""Whether the list of words that a discovery published follows from the votes that it published.

`report/record.json` has the settings, what each step output, and of a served run the plan that its devices had. From
that alone the run is played again. The digest of the outputs is a fact of the statement, so neither is exchanged alone.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from tacit.discovery.replay import Replayed, replayed
from tacit.discovery.rounds import step_content
from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError, TacitError
from tacit.jobs.discover.result import figures_of, words_of
from tacit.parsing import parsed_json, parsed_toml
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.records import first_difference, from_plain, json_ready, to_plain
from tacit.reports.discover import PUBLISHED_KEYS
from tacit.reports.record_files import schema_of
from tacit.runs.metadata import DiscoveryMetadata
from tacit.statements import DiscoveryFacts, Statement
from tacit.statements.local_releases import digest_of_outputs
from tacit.statements.statement import leaves
from tacit.statements.statement import statement as statement_of
from tacit.statements.verify import CheckedLine, compared

SCHEMA = schema_of(DiscoveryMetadata.kind)


def list_lines(
    record: Mapping[str, Any],
    stated: Mapping[str, Any],
    *,
    shown: Mapping[str, Any] | None = None,
    plan: str | None = None,
) -> tuple[CheckedLine, ...]:
    """Every step, word and figure of a published record, checked against the statement published beside it.

    stated: the statement's record, whose own lines are checked elsewhere. shown: the published report.json. plan: the
    SHA-256 of the plan that a device had, by its own record. Raises: InputError where the record is of a version that
    published no outputs.
    """
    released = record.get("released")
    if not isinstance(released, Mapping):
        raise InputError(
            "the published record has no outputs of steps, from which the words would follow: it is of a version "
            "before; verify its statement.json alone."
        )
    try:
        facts = DiscoveryFacts.from_record(stated["facts"])
        settings = from_plain(DiscoverySettings, released["settings"], where="the published settings")
        again = replayed(settings, facts.releases, released["steps"])
    except (TacitError, LookupError, TypeError, AttributeError) as error:
        return (CheckedLine(name="list", complaint=f"it cannot be played again: {error}"),)
    return (
        CheckedLine(name="list.schema", complaint=_first({"schema": record.get("schema")}, {"schema": SCHEMA})),
        CheckedLine(name="list.statement", complaint=_first({"": record.get("statement")}, {"": stated})),
        CheckedLine(name="list.settings", complaint=_of_settings(settings, facts)),
        CheckedLine(name="list.outputs", complaint=_of_outputs(released, facts)),
        *(CheckedLine(name=f"list.{step}", complaint=complaint) for step, complaint in again.complaints.items()),
        *_of_words(record, settings, statement_of(facts), again),
        *([] if shown is None else [CheckedLine(name="list.report.json", complaint=_of_shown(shown, record))]),
        *_of_plan(settings, released, plan),
    )


def _of_settings(settings: DiscoverySettings, facts: DiscoveryFacts) -> str | None:
    """What the settings say and no release shows, against the statement's facts."""
    source = OPERATING_SYSTEM if settings.seed is None else f"fixed seed {settings.seed}"
    wanted = {
        "anonymity": to_plain(settings.anonymity),
        "sampler": settings.reports.sampler,
        "resampled": settings.resample_users,
        "key_source": source,
    }
    return _first(to_plain({name: getattr(facts, name) for name in wanted}), wanted)


def _of_outputs(released: Mapping[str, Any], facts: DiscoveryFacts) -> str | None:
    digests = (
        (f"{name}.json", hashlib.sha256(step_content(output)).hexdigest()) for name, output in released["steps"].items()
    )
    if (found := digest_of_outputs(released["settings"], digests)) == facts.outputs:
        return None
    return f"they have the SHA-256 {found[:16]}..., and the statement is of {str(facts.outputs)[:16]}..."


def _of_words(
    record: Mapping[str, Any], settings: DiscoverySettings, stated: Statement, again: Replayed
) -> Iterator[CheckedLine]:
    """The words and figures that people read."""
    if again.found is None:
        yield CheckedLine(name="list.words", complaint="no list follows from these outputs")
        return
    words, counts = words_of(again.found), again.found.counts
    figures = figures_of(
        settings,
        stated,
        words=len(words),
        coverage=counts.coverage if counts else None,
        confidence=counts.confidence if counts else None,
    )
    rows = {"found": [word.row() for word in words]}
    yield CheckedLine(name="list.words", complaint=_first({"found": record.get("found")}, rows))
    published = {name: figures[name] for name in PUBLISHED_KEYS}
    yield CheckedLine(name="list.figures", complaint=_first({"figures": record.get("figures")}, {"figures": published}))


def _of_shown(shown: Mapping[str, Any], record: Mapping[str, Any]) -> str | None:
    """The figures and words that the report has for programs, against the record that it was made from."""
    figures = record.get("figures")
    published = {name: figures.get(name) for name in PUBLISHED_KEYS} if isinstance(figures, Mapping) else {}
    wanted = {**published, "found": record.get("found")}
    return _first({name: shown.get(name) for name in wanted}, wanted)


def _of_plan(settings: DiscoverySettings, released: Mapping[str, Any], plan: str | None) -> Iterator[CheckedLine]:
    """That the plan which devices had, of a served run, has the published settings; and is the one of that digest."""
    if (logged := released.get("logged")) is None:
        if plan is not None:
            yield CheckedLine(name="list.device", complaint="no plan is published, so no device had it")
        return
    try:
        text = str(logged["signed_plan"]["document"])
        asked = parsed_toml(parsed_json(text)["recipe"])
        own = {each.name: asked[each.name] for each in fields(DiscoverySettings) if each.name in asked}
        planned = to_plain(from_plain(DiscoverySettings, own, where="the plan's settings"))
        differs = first_difference(planned, to_plain(settings))
    except (TacitError, LookupError, TypeError, ValueError) as error:
        text, differs = "", f"it cannot be read: {error}"
    yield CheckedLine(name="list.plan", complaint=differs and f"devices had another plan than is published: {differs}")
    if plan is not None:
        same = hashlib.sha256(text.encode()).hexdigest() == plan.lower()
        yield CheckedLine(name="list.device", complaint=None if same else "the device had another plan than this one")


def _first(stated: Mapping[str, Any], computed: Mapping[str, Any]) -> str | None:
    """The first value that is not what it should be, with its name; None where all are."""
    lines = compared(dict(leaves(stated)), dict(leaves(json_ready(computed))))
    return next((f"{line.name}: {line.complaint}" for line in lines if not line.holds), None)
