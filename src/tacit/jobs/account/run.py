"""The guarantee of a run of any kind, from its ledger and its log of participations."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.federation.kinds import KINDS
from tacit.files import PathLike
from tacit.jobs.open_run import opened
from tacit.jobs.result import JobResult
from tacit.jobs.train.mixture_run import mixture_run_at
from tacit.privacy.composition import Composition
from tacit.privacy.delta import DELTA_TOO_LARGE, publishing_warning
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.runs import Run
from tacit.runs.journal import DATABASE
from tacit.runs.metadata import AskingMetadata, DiscoveryMetadata, TrainingMetadata
from tacit.statements import count, discover
from tacit.statements.accounts import (
    Spent,
    accounts_of,
    figures_of,
    reading,
    run_figures,
    spent,
    spent_by_step,
    trained,
)
from tacit.statements.audited import audited
from tacit.statements.statement import WEAKER

if TYPE_CHECKING:
    from tacit.reports.blocks import Block


@dataclass(frozen=True, kw_only=True)
class RunAccount(JobResult):
    """What a run promises at `delta`: planned (None where the cost is a setting, or for local reports), realised (None
    before the first release), and spent after each step (empty for local reports, whose costs do not add up).

    `clients` are those to whom it is promised; `figures` are the same as plain values. Of a run that makes a mixture
    `realised` is of everything together, and `parts` are the accounts of its runs.
    """

    planned: Composition | None
    realised: Composition | LocalGuarantee | None
    spent: tuple[Spent, ...] = field(repr=False)
    delta: float
    clients: int
    figures: Mapping[str, Any] = field(repr=False)
    parts: "Mapping[str, RunAccount]" = field(default_factory=dict, repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What nobody may overlook: that clients came more often or sooner than planned, so that the plan promised too
        much; a delta that allows to publish a client's data outright.
        """
        planned, realised = self.planned, self.realised
        found = []
        if planned and isinstance(realised, Composition) and realised.zcdp > planned.zcdp * (1 + 1e-9):
            found.append(f"{WEAKER.name}: {WEAKER.meaning}")
        private = realised is not None and (isinstance(realised, LocalGuarantee) or realised.private)
        if private and self.delta > 0 and (warning := publishing_warning(self.delta, self.clients)):
            found.append(f"{DELTA_TOO_LARGE}: {warning}")
        found += [each for part in self.parts.values() for each in part.warnings]
        return tuple(dict.fromkeys(found))

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit account run --json` prints."""
        return {"schema": "tacit.account.run", "version": 1, **self.figures, "warnings": list(self.warnings)}

    def blocks(self) -> "list[Block]":
        """What people read of it, without the warnings."""
        from tacit.reports import mixture, summary_lines

        return mixture.account_blocks(self.figures) if self.parts else summary_lines.of_account(self.figures)

    def _repr_html_(self) -> str:
        """Planned beside realised, as a notebook shows it; of local reports the guarantee in words."""
        from tacit.reports.train_published import FIGURES, figure_text

        if self.parts:
            from tacit.reports.page import to_html_fragment

            return to_html_fragment(self.blocks())
        if isinstance(self.realised, LocalGuarantee):
            return "".join(f"<p>{html.escape(line)}</p>" for line in self.realised.sentences())
        columns = {
            name: figures_of(each, self.delta) or {}
            for name, each in (("planned", self.planned), ("realised", self.realised))
        }
        rows = [name for name in (columns["planned"] or columns["realised"]) if name != "sequences"]
        cells = "".join(
            f"<tr><th>{html.escape(FIGURES.get(name, name.replace('_', ' ')))}</th>"
            + "".join(f"<td>{html.escape(figure_text(name, each.get(name)))}</td>" for each in columns.values())
            + "</tr>"
            for name in rows
        )
        return f"<table><tr><th></th><th>planned</th><th>realised</th></tr>{cells}</table>"


def account_run(run: Run | PathLike, *, delta: float | None = None) -> RunAccount:
    """What a run of any kind promises as realised: participations from its log, the mechanism from its ledger.

    run: its folder, or what `open_run` gave. delta: left out, the one that the run was begun with. A run that is under
    way may be read. Raises: InputError for a kind of run that promises nothing, UnknownRelease for a ledger that is not
    understood, RunError (damaged).
    """
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"--delta {delta} is not a probability between 0 and 1; give for example 1e-10.")
    if (mixture := mixture_run_at(run)) is not None:
        return _of_mixture(mixture, delta)
    with opened(run) as found, reading(found):
        if isinstance(found.metadata, TrainingMetadata):
            return _of_training(found, delta)
        if isinstance(found.metadata, AskingMetadata):
            return _of_evaluation(found, found.metadata, delta)
        if isinstance(found.metadata, DiscoveryMetadata):
            return _of_discovery(found, found.metadata, found.metadata.delta if delta is None else delta)
        raise InputError(
            f"'{found.path}' is a run of `tacit {found.kind}`, which has no account: {KINDS[found.kind].unstated}."
        )


def _of_mixture(path: Path, delta: float | None) -> RunAccount:
    from tacit.jobs.train.mixture_summary import PARTS, mixture_summary  # JAX comes with it

    found = mixture_summary(path)
    at = found.delta if delta is None else delta
    begun = {part: path / name for part, name in PARTS.items() if (path / name / DATABASE).is_file()}
    return RunAccount(
        planned=None,
        realised=found.promise.composition if found.promise.statements else None,
        spent=(),
        delta=at,
        clients=found.clients,
        figures=found.account(at),
        parts={part: account_run(of, delta=delta) for part, of in begun.items()},
    )


def stated(run: Run | PathLike, *, delta: float | None = None) -> bytes:
    """The statement of a run as a file that `tacit verify` reads; of a mixture its promise, with those of its parts.

    Raises: as `tacit.statement`.
    """
    from tacit.jobs.statement import statement

    mixture = mixture_run_at(run)
    if mixture is None:
        return statement(run, delta=delta).to_json().encode()
    from tacit.jobs.train.mixture_summary import promise_of
    from tacit.reports.page import to_json

    return to_json(promise_of(mixture, delta).to_record())


def _of_training(run: Run, delta: float | None) -> RunAccount:
    accounts, found = accounts_of(run, delta), audited(run)
    audit = {} if found is None else {"audited": found.sentence(accounts.planned.mu)}
    return RunAccount(
        planned=accounts.planned,
        realised=accounts.realised,
        spent=tuple(spent(accounts)),
        delta=accounts.delta,
        clients=trained(run).population,
        figures={**run_figures(run, accounts), **audit},
    )


def _of_evaluation(run: Run, metadata: AskingMetadata, delta: float | None) -> RunAccount:
    facts = count.evaluation_facts(run, delta)
    realised = None if facts is None else facts.guarantee
    at = 0.0 if facts is None else facts.delta
    promise = {"kind": "nothing"} if facts is None else count.figures(facts)
    return RunAccount(
        planned=None,
        realised=realised,
        spent=tuple(spent_by_step(run, at)) if isinstance(realised, Composition) else (),
        delta=at,
        clients=metadata.asked,
        figures={"run": str(run.path), "of": run.kind, "finished": run.finished, "promise": promise},
    )


def _of_discovery(run: Run, metadata: DiscoveryMetadata, delta: float) -> RunAccount:
    realised = discover.facts(run, delta).guarantee if run.steps_done else None
    guarantee = None if realised is None else realised.to_record()
    return RunAccount(
        planned=None,
        realised=realised,
        spent=(),
        delta=delta,
        clients=metadata.population,
        figures={"run": str(run.path), "of": run.kind, "finished": run.finished, "guarantee": guarantee},
    )
