"""The one table of kinds: what each kind of run is called, and where each floor of the platform has its part of it.

A part is named "module:name" and loaded when it is used, so this file imports no room, and any room may read it. A new
kind is a line here, and its files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of run. Each part is "module:name", or a module."""

    name: str  # in run folders, in settings.toml, of the command
    metadata: str  # what a run records of itself when it begins: a `runs.metadata.Metadata`
    resume: str  # goes on with an open run, and takes of `jobs.resume` the arguments that mean something to it
    # Makes its pages: `released_page` takes the record of `report/`, `page` that of `simulation/`; a kind without such
    # a record has no such function.
    page: str
    records: str | None = None  # makes both records of a run that is under way from its folder; None: they are read
    # More blocks of its live page: takes the open run or None, the record that is shown, whether exact numbers may be.
    live: str | None = None
    statement: str | None = None  # the module of its privacy statement: `statements.statement.formats` says what it has
    unstated: str | None = None  # why there is none


@dataclass(frozen=True, kw_only=True)
class FederatedKind(Kind):
    """A kind of run that asks real devices; its name is on the wire, too."""

    version: int = 1  # of what a device computes, and of the document that it is asked with
    leaves: str  # a device in each round, in words for its owner
    question: str  # the document that a round's task carries: a `protocol.fields.QuestionDocument`
    device: str  # what a device does: a `device.task_handler.TaskHandler`, made of its text and its trainer
    server: str  # what `tacit serve` is given: a `server.served.ServedJob`
    contributes: str | None = (
        None  # what decryptors add to its sums: a `contributor.contributor.RunNoise`; None: nothing
    )


KINDS: Mapping[str, Kind] = {
    each.name: each
    for each in (
        FederatedKind(
            name="train",
            metadata="tacit.runs.metadata:TrainingMetadata",
            resume="tacit.jobs.train.job:resume_training",
            page="tacit.reports.train",
            records="tacit.reports.train_record:records_of_run",
            leaves="a clipped update of a model, made of its text",
            question="tacit.protocol.train:TrainDocument",
            device="tacit.device.train:TrainHandler",
            server="tacit.server.train:ServedTraining",
            contributes="tacit.contributor.train:TrainNoise",
            live="tacit.view.pages.rounds:blocks",
            statement="tacit.statements.train",
        ),
        FederatedKind(
            name="discover",
            metadata="tacit.runs.metadata:DiscoveryMetadata",
            resume="tacit.jobs.discover.job:resume",
            page="tacit.reports.discover",
            leaves="reports on a word that it types, randomised here",
            question="tacit.protocol.discover:DiscoverDocument",
            device="tacit.device.discover:DiscoverHandler",
            server="tacit.server.discover:ServedWords",
            live="tacit.view.pages.words:blocks",
            statement="tacit.statements.discover",
        ),
        FederatedKind(
            name="evaluate",
            metadata="tacit.runs.metadata:EvaluationMetadata",
            resume="tacit.jobs.evaluate.job:resume_evaluation",
            page="tacit.reports.evaluate",
            leaves="in which cell its accuracy lies",
            question="tacit.protocol.count:EvaluateDocument",
            device="tacit.device.count:ModelHandler",
            server="tacit.server.count_files:ServedEvaluation",
            contributes="tacit.contributor.count:CountNoise",
            statement="tacit.statements.count",
        ),
        FederatedKind(
            name="personalize",
            metadata="tacit.runs.metadata:PersonalizationMetadata",
            resume="tacit.jobs.personalize.job:resume_personalization",
            page="tacit.reports.personalize",
            leaves="in which cell its gain by fine-tuning lies",
            question="tacit.protocol.count:PersonalizeDocument",
            device="tacit.device.count:ModelHandler",
            server="tacit.server.count_files:ServedPersonalization",
            contributes="tacit.contributor.count:CountNoise",
            live="tacit.view.pages.people:blocks",
            statement="tacit.statements.count",
        ),
        FederatedKind(
            name="count",
            metadata="tacit.runs.metadata:CountMetadata",
            resume="tacit.jobs.count.job:resume_count",
            page="tacit.reports.count",
            leaves="counts of its text within the plan's bounds",
            question="tacit.protocol.count:CountDocument",
            device="tacit.device.count:StatisticHandler",
            server="tacit.server.count_files:ServedCount",
            contributes="tacit.contributor.count:CountNoise",
            statement="tacit.statements.count",
        ),
        Kind(
            name="type",
            metadata="tacit.runs.metadata:TypingMetadata",
            resume="tacit.jobs.type_ab.job:resume_typing",
            page="tacit.reports.type_ab",
            statement="tacit.statements.count",
        ),
        Kind(
            name="tune",
            metadata="tacit.runs.metadata:TuningMetadata",
            resume="tacit.jobs.tune.job:resume_tuning",
            page="tacit.reports.tune",
            unstated="its trials are runs in the folder, each with its own account; name one of them",
        ),
        Kind(
            name="pretrain",
            metadata="tacit.runs.metadata:PretrainingMetadata",
            resume="tacit.jobs.pretrain:resume_pretraining",
            page="tacit.reports.pretrain",
            records="tacit.reports.pretrain:records_of",
            unstated="it reads public text, and nothing is promised to anybody",
        ),
    )
}
FEDERATED: Mapping[str, FederatedKind] = {name: kind for name, kind in KINDS.items() if isinstance(kind, FederatedKind)}


def loaded(part: str) -> Any:
    """What a part names: an attribute of a module, or the module."""
    module, _, name = part.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found
