"""Counts on real devices, of models and of text: their served files, which say what is asked under the jobs' names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import tomli_w

from tacit.data.splits import TemporalSplit
from tacit.errors import InputError
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.device_part import SumsQuestion, sums_in
from tacit.evaluation.counts.model_queries import histograms_about
from tacit.evaluation.counts.sums import SumQuestion
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings, EvaluationSettings, PersonalizationSettings
from tacit.federation.report_layout import BoundedLayout
from tacit.jobs.count import opened as count_run
from tacit.jobs.count.job import count
from tacit.jobs.devices import KEYS, RealDevices
from tacit.jobs.evaluate import run as evaluation_run
from tacit.jobs.evaluate.job import evaluate
from tacit.jobs.personalize import run as personalization_run
from tacit.jobs.personalize.job import personalize, settings_of
from tacit.networks.model_files import read_files
from tacit.parsing import parsed_toml
from tacit.progress import Progress
from tacit.protocol.count import HistogramsDocument
from tacit.protocol.messages import Plan
from tacit.records import from_plain, to_plain
from tacit.runs import Run
from tacit.server.count import document
from tacit.server.count_plan import plan_of_counts
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.served import Enrolment, ServedAnalytics
from tacit.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class _Histograms(ServedAnalytics):
    """What every such file has: a name, [deployment] and the price [release]."""

    release: ReleaseCost

    def __post_init__(self) -> None:
        self.devices.check_noise(local=self.release.local_epsilon is not None)

    def _common(self, kind: str) -> dict[str, Any]:
        return {"kind": kind, **self.devices.to_plain(), "release": self.release.to_plain()}

    def document(self, question: CountQuestion | SumQuestion) -> tuple[HistogramsDocument, bytes]:
        """See ServedJob."""
        return document(question)


@dataclass(frozen=True, kw_only=True)
class ServedCount(_Histograms):
    """A file of kind "count", which names the vocabulary that the devices' text is cut into; see ServedJob."""

    vocabulary: Path
    settings: CountSettings

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """See ServedJob."""
        table, common = _read(text, where)
        vocabulary = table.pop("vocabulary", None)
        if not isinstance(vocabulary, str):
            raise InputError(
                f"{where} names no vocabulary, the words that the text of its devices is cut into; add vocabulary = "
                "'FILE'."
            )
        settings = CountSettings.from_table(table, where=where)
        return cls(**common, vocabulary=Path(vocabulary), settings=settings)

    def to_toml(self) -> str:
        """See ServedJob."""
        rest = {name: getattr(self.settings, name) for name in ("split_name", "clients")}
        record = {**rest, **self.settings.counted(), **self.settings.list_file()}
        return tomli_w.dumps({**self._common("count"), "vocabulary": str(self.vocabulary), **record})

    def placed(self, data: Path | None) -> Self:
        """See ServedJob; it reads no cache: devices have the text."""
        Vocabulary.load(self.vocabulary)
        cells = self.settings.cells
        if cells is not None and cells.path is not None:
            cells = replace(cells, path=cells.path.absolute())
        settings = replace(self.settings, cells=cells)
        return replace(self, vocabulary=self.vocabulary.absolute(), settings=settings)

    @staticmethod
    def plan(run: Run, enrolment: Enrolment) -> Plan:
        """See ServedJob."""
        return plan_of_counts(run, enrolment, _counted_by)

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """See ServedJob."""
        return count_run.begun(self.settings, self.release, Vocabulary.load(self.vocabulary), out, collector)

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """See ServedJob."""
        count(
            None,
            out,
            settings=self.settings,
            release=self.release,
            vocabulary=self.vocabulary,
            collector=collector,
            progress=progress,
        )


def _counted_by(run: Run, settings: Mapping[str, Any]) -> tuple[int, ...] | BoundedLayout:
    """See `plan_of_counts`."""
    if "sums" not in settings:
        return (len(settings["statistics"]),)
    return SumsQuestion(sums_in(settings["sums"])).sums


@dataclass(frozen=True, kw_only=True)
class _AboutModels(_Histograms):
    """What both kinds of files about models have besides: the models."""

    models: tuple[Path, ...]

    def placed(self, data: Path | None) -> Self:
        """See ServedJob; it reads no cache: devices have the text."""
        for model in self.models:
            read_files(model)
        return type(self)(**{**vars(self), "models": tuple(each.absolute() for each in self.models)})


@dataclass(frozen=True, kw_only=True)
class ServedEvaluation(_AboutModels):
    """A file of kind "evaluate"; see ServedJob."""

    settings: EvaluationSettings

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """See ServedJob."""
        common, rest = _read_models(text, "models", where)
        return cls(**common, settings=from_plain(EvaluationSettings, rest, where=where))

    def to_toml(self) -> str:
        """See ServedJob."""
        models = {"models": list(map(str, self.models))}
        return tomli_w.dumps({**self._common("evaluate"), **models, **to_plain(self.settings)})

    @staticmethod
    def plan(run: Run, enrolment: Enrolment) -> Plan:
        """See ServedJob."""
        return plan_of_counts(run, enrolment, lambda run, settings: (len(histograms_about(len(settings["models"]))),))

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """See ServedJob."""
        return evaluation_run.begun(self.models, self.settings, self.release, out, collector)

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """See ServedJob."""
        evaluate(
            self.models,
            settings=self.settings,
            release=self.release,
            out=out,
            collector=collector,
            progress=progress,
        )


@dataclass(frozen=True, kw_only=True)
class ServedPersonalization(_AboutModels):
    """A file of kind "personalize"; see ServedJob."""

    settings: PersonalizationSettings

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """See ServedJob."""
        common, rest = _read_models(text, "model", where)
        return cls(**common, settings=personalization_settings(rest, where=where))

    def to_toml(self) -> str:
        """See ServedJob."""
        return tomli_w.dumps({**self._common("personalize"), "model": str(self.models[0]), **self.settings.to_plain()})

    @staticmethod
    def plan(run: Run, enrolment: Enrolment) -> Plan:
        """See ServedJob."""
        return plan_of_counts(run, enrolment, lambda run, settings: settings_of(run).queries.sizes)

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """See ServedJob."""
        return personalization_run.begun(self.models[0], self.settings, self.release, out, collector)

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """See ServedJob."""
        personalize(
            self.models[0],
            None,
            out,
            settings=self.settings,
            release=self.release,
            collector=collector,
            progress=progress,
        )


def personalization_settings(said: Mapping[str, Any], *, where: str) -> PersonalizationSettings:
    """The settings that a file says: as a run keeps them, where strategies may stand in a list, a split as `time:0.8`
    with `gate_share` and `undated` beside it, and what is left out has its default. Raises: InputError naming the key.
    """
    own = dict(said)
    strategies = own.get("strategies")
    if isinstance(strategies, Mapping):
        own["strategies"] = list(strategies.values())
    if isinstance(own.get("split"), str):
        own["split"] = to_plain(
            TemporalSplit.parse(own["split"], gate=own.pop("gate_share", 0.0), undated=own.pop("undated", "drop"))
        )
    if isinstance(own.get("strategies"), list) and not own["strategies"]:
        del own["strategies"]
    return from_plain(PersonalizationSettings, own, where=where)


def _read_models(text: str, models: str, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what every file about models has, the rest). Raises: InputError naming the key."""
    rest, common = _read(text, where)
    named = rest.pop(models, None)
    paths = [named] if isinstance(named, str) else named
    if not isinstance(paths, list) or not paths or not all(isinstance(each, str) for each in paths):
        raise InputError(f"{where} names no {models}; give the folder of a finished run, or of a model.")
    return {**common, "models": tuple(map(Path, paths))}, rest


def _read(text: str, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the job's own keys, what every file has). Raises: InputError naming the key."""
    try:
        table = parsed_toml(text)
    except ValueError as error:
        raise InputError(f"{where} is no TOML: {error}; mend that line.") from None
    if "release" not in table:
        raise InputError(
            f"{where} has no section [release], the price at which counts of devices are released; give zcdp, epsilon "
            "or local_epsilon there."
        )
    if "seed" in table:
        raise InputError(f"{where} has a seed, by which whoever knows it takes the noise away; drop it.")
    common = {
        "devices": RealDevices.from_table(table, where=where),
        "release": from_plain(ReleaseCost, table["release"], where=f"[release] of {where}"),
    }
    return {name: value for name, value in table.items() if name not in ("kind", "release", *KEYS)}, common
