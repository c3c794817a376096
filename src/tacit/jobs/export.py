"""`tacit.export`: a trained model as the files that a keyboard loads, with its guarantee."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.errors import InputError, RunError, of_type
from tacit.extras import of_extra
from tacit.files import PathLike, as_path, check_file, check_folder, write_whole
from tacit.jobs.open_run import opened
from tacit.jobs.phone_models import TRIGRAM
from tacit.jobs.result import JobResult
from tacit.jobs.statement import statement
from tacit.keyboard.dictionaries.combined_list import DICTIONARY
from tacit.keyboard.dictionaries.entries import BEGINNING, Dictionary, checked_locale
from tacit.keyboard.dictionaries.from_model import LOCALE
from tacit.keyboard.exported import TRAIN, Exported, Promise, is_exported
from tacit.keyboard.prompts import prompts_for
from tacit.networks.models import PROMISE, WEIGHTS
from tacit.parsing import parsed_json
from tacit.progress import Progress, silent
from tacit.runs import Run
from tacit.runs.journal import DATABASE

if TYPE_CHECKING:  # JAX would come with them
    from tacit.data import Source
    from tacit.keyboard.model_folder import TrainedModel
    from tacit.keyboard.phone_model import PhoneModel
    from tacit.reports.blocks import Block

POST_PROCESSING = "an export computes from the model alone, so it releases nothing new and costs no privacy"
UNKNOWN = "nothing is known of the text that the model was made from; a finished run has a statement: export that"
PROMISE_ENDING = ".promise.json"  # behind the name of a dictionary
PRIVATE_WORDS = (
    "The words were counted on private text: whoever gets the folder gets them, and nothing is promised for them."
)


@dataclass(frozen=True, kw_only=True)
class Export(JobResult):
    """A folder with a model as keyboards load it."""

    exported: Exported
    locale: str  # that its dictionary names

    def blocks(self) -> "list[Block]":
        """What people read of it: files and sizes, what is promised, and how to ask it for words."""
        from tacit.reports.blocks import Paragraph, Table

        manifest, folder = self.exported.manifest, self.exported.folder
        rows = tuple((name, f"{file.bytes:,}", file.sha256[:16]) for name, file in manifest.files.items())
        said = f"{manifest.privacy.says}; {POST_PROCESSING}."
        kind, listed = manifest.network["kind"], DICTIONARY in manifest.files
        untrained = f"No {TRAIN}: a network of the kind {kind} does not say how it trains (docs/on-device-training.md)."
        return [
            Table(rows, ("file", "bytes", "SHA-256")),
            *([] if TRAIN in manifest.files or self.exported.counted else [Paragraph(untrained)]),
            Paragraph(f"Privacy: {said}"),
            *([Paragraph(PRIVATE_WORDS)] if manifest.vocabulary.provenance.kind == "private" else []),
            *(
                [Paragraph(f"{DICTIONARY} says locale={self.locale}; --locale names another language.")]
                if listed
                else []
            ),
            Paragraph(f"Ask it for next words: tacit suggest {folder} '{prompts_for(self.exported.vocabulary())[2]}'"),
        ]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON, the manifest with its folder: what `tacit export --json` prints."""
        return {
            "schema": "tacit.export",
            "version": 1,
            "folder": str(self.exported.folder),
            "locale": self.locale,
            **self.exported.manifest.to_record(),
        }


@dataclass(frozen=True, kw_only=True)
class DictionaryExport(JobResult):
    """A file or folder with a model's words as keyboards import them."""

    path: Path
    dictionary: Dictionary
    version: int | None  # of the format; None: a list for makedict
    bytes: int
    promise: Path | None = None  # the file with the statements of all runs behind a mixture

    def counts(self) -> dict[str, int]:
        """How many words there are, and how many follow one word, a sentence's beginning, and two words."""
        following = {"beginning": 0, "one": 0, "two": 0}
        for context, followers in self.dictionary.followers.items():
            name = "two" if len(context) == 2 else "beginning" if context == (BEGINNING,) else "one"
            following[name] += len(followers)
        return {"words": len(self.dictionary.entries), **following}

    def blocks(self) -> "list[Block]":
        """What people read of it: how much there is, what is promised, and where it goes."""
        from tacit.reports.blocks import Paragraph, Table

        counts = self.counts()
        rows = (
            ("words", f"{counts['words']:,}"),
            ("begin sentences", f"{counts['beginning']:,}"),
            ("follow one word", f"{counts['one']:,}"),
            ("follow two words", f"{counts['two']:,}"),
            ("bytes", f"{self.bytes:,}"),
            ("format", "a list" if self.version is None else str(self.version)),
            ("locale", self.dictionary.attributes["locale"]),
        )
        return [
            Table(rows, ("dictionary", str(self.path))),
            Paragraph(f"{self.dictionary.attributes['description']}; {POST_PROCESSING}."),
            *(
                [Paragraph(f"The statements of all runs behind it: tacit verify {self.promise}")]
                if self.promise
                else []
            ),
            Paragraph("Ask it as a keyboard's engine does: tacit type MODEL --engine COMMAND (docs/dictionary.md)."),
        ]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit export --dictionary --json` prints."""
        return {
            "schema": "tacit.dictionary",
            "version": 1,
            "path": str(self.path),
            "format": self.version,
            "bytes": self.bytes,
            "promise": None if self.promise is None else str(self.promise),
            "attributes": dict(self.dictionary.attributes),
            **self.counts(),
        }


def export(
    run: Run | PathLike,
    out: PathLike,
    *,
    quantize: str | None = None,
    locale: str = LOCALE,
    offensive: PathLike | None = None,
    shortcuts: PathLike | None = None,
) -> Export:
    """Write a model as ONNX graphs, weights, words and a dictionary into the folder `out`, whole or not at all.

    run: a finished run, a pre-training, or a model folder; only a run has a privacy statement, which goes with the
    model. A counted model or a mixture becomes its arrays, its words and the graph of its network, without a
    dictionary.
    out: the folder to write.
    quantize: "int8" or "int4" for smaller graphs, left out float32.
    locale: the language of the words, as the dictionary names it.
    offensive, shortcuts: as in `export_dictionary`. An export that is at `out` is replaced, and nothing else. An export
    releases nothing new: it is computed from the model.

    Raises: InputError where there is no model, its network cannot be exported, or `out` is something else; RunError
    where the files are not what a run wrote.
    """
    of_type("quantize", quantize, str, type(None))
    locale, target = checked_locale(locale), as_path("out", out)
    check_folder("--out", target)
    source = _source(run)
    of_extra("export", "onnx")
    from tacit.jobs.dictionary_files import read_given
    from tacit.keyboard.counted_export import write_counted_export
    from tacit.keyboard.export import Exporting, check_place, write_export
    from tacit.networks.model_files import is_counted, read_files

    check_place(target)
    given = read_given(offensive, shortcuts)
    if is_counted(source):
        if (offensive, shortcuts) != (None, None):
            raise InputError("counts have no dictionary beside them; give --offensive with --dictionary.")
        counted = write_counted_export(read_files(source), _of_counted(source).privacy, target, quantize=quantize)
        return Export(exported=counted, locale=locale)
    model, origin = _model(run, source)
    request = Exporting(model, origin.privacy, origin.date, locale, given, quantize)
    return Export(exported=write_export(request, target, run=origin.run), locale=locale)


def export_dictionary(
    run: Run | PathLike,
    path: PathLike,
    *,
    trigrams: bool = False,
    locale: str = LOCALE,
    offensive: PathLike | None = None,
    shortcuts: PathLike | None = None,
    words_from: str | None = None,
    most_words: int | None = None,
    progress: Progress = silent,
) -> DictionaryExport:
    """Write a model's words, and what follows them, as the file at `path` that open keyboards import (format 202).

    path: the file to write. locale: the language of the words. most_words: of public text, at most. run: as in
    `export`, or a counted model or a mixture, whose promise is written to `path` with PROMISE_ENDING behind its name.
    trigrams: also what follows two words, as a folder of format 403, which no keyboard imports but engines open.
    offensive: a file of words that are only suggested where a user allows it, one in each line. shortcuts: a file of
    words, a tab and what stands in their place. words_from: a source of public text (`public:FILE`), of which the
    `most_words` most frequent words stand in the dictionary beside those of the model, left out 60,000. Otherwise as
    `export`; ONNX is not needed. Raises: as `export`, and SourceError from the text.
    """
    from tacit.jobs.dictionary_files import (
        COMBINED,
        check_dictionary_place,
        read_given,
        read_more_words,
        write_dictionary,
    )
    from tacit.keyboard.dictionaries.format_202 import VERSION
    from tacit.keyboard.dictionaries.format_403 import VERSION as WITH_TRIGRAMS
    from tacit.keyboard.dictionaries.from_model import dictionary_of
    from tacit.networks.model_files import read_files

    of_type("trigrams", trigrams, bool)
    locale, target, source = checked_locale(locale), as_path("path", path), _source(run)
    check_dictionary_place(target, trigrams=trigrams)
    given = read_given(offensive, shortcuts)
    text = _public_text(words_from, most_words)
    model, origin = _phone_model(run, source)
    if text is not None:
        given = replace(given, more=read_more_words(text, model.vocabulary, most_words, progress))
    dictionary = dictionary_of(model, origin.privacy, locale=locale, date=origin.date, pairs=trigrams, given=given)
    promise = target.with_name(target.name + PROMISE_ENDING) if origin.composed else None
    if promise is not None:
        check_file("--dictionary", promise)
    size = write_dictionary(dictionary, target, trigrams=trigrams)
    if promise is not None:
        write_whole(promise, (read_files(source).folder / PROMISE).read_bytes())
    version = WITH_TRIGRAMS if trigrams else None if target.suffix == COMBINED else VERSION
    return DictionaryExport(path=target, dictionary=dictionary, version=version, bytes=size, promise=promise)


def _public_text(words_from: str | None, most_words: int | None) -> "Source | None":
    """Raises: InputError for text that is not public, or a number of words without a text."""
    from tacit.data import open_source
    from tacit.data.formats.public_text import PublicText

    of_type("words_from", words_from, str, type(None))
    of_type("most_words", most_words, int, type(None))
    if most_words is not None and (words_from is None or most_words < 1):
        raise InputError(f"most_words={most_words} must be 1 or more, of a text; give --words-from public:FILE.")
    if words_from is None:
        return None
    source = open_source(words_from)
    if not isinstance(source, PublicText):
        raise InputError(
            f"{words_from!r} may be clients' text, whose words nothing protects in a dictionary; give "
            "--words-from public:FILE.parquet, or count them by a discovery run."
        )
    return source


def _phone_model(run: Run | PathLike, source: Path) -> "tuple[PhoneModel, _Origin]":
    """As `_model`, of a counted model, too; JAX is not loaded for one."""
    from tacit.keyboard.phone_model import load_phone_model, phone_model_of
    from tacit.networks.model_files import is_counted

    if is_counted(source):
        return load_phone_model(source), _of_counted(source)
    model, origin = _model(run, source)
    return phone_model_of(model), origin


def _source(run: Run | PathLike) -> Path:
    """Where the model is. Raises: InputError for the trigram of a cache, which has no files."""
    source = run.path if isinstance(run, Run) else as_path("run", run)
    if str(source).startswith(TRIGRAM):
        raise InputError(
            f"'{source}' has no files of its own; name a run, a model folder, or what `tacit ngram` wrote."
        )
    return source


def _model(run: Run | PathLike, source: Path) -> "tuple[TrainedModel, _Origin]":
    """Raises: InputError where there is none, or it is an export; RunError where a run did not write it."""
    from tacit.keyboard.model_folder import load_model

    if is_exported(source):
        raise InputError(f"'{source}' is an export already; name the run or the model folder that it was made from.")
    model = load_model(source)
    return model, _of_run(run, model) if (source / DATABASE).is_file() else _of_folder(model)


def rehearse_export(run: Run) -> None:
    """Make what an export of a finished run writes, and write nothing; but for the dictionary, which asks the model for
    every word and takes seconds. Raises: as `export`.
    """
    from tacit.keyboard.export import PARTS, Exporting
    from tacit.keyboard.model_folder import load_model

    model = load_model(run.path)
    origin = _of_run(run, model)
    request = Exporting(model, origin.privacy, origin.date)
    for part in (part for name, part in PARTS.items() if name != DICTIONARY):
        part(request)


class _Origin(NamedTuple):
    """Where a model comes from."""

    privacy: Promise
    date: int  # when its run began, or its weights were written, in seconds since 1970
    run: str | None = None  # the seal of the run
    composed: bool = False  # whether it is of several runs, whose promise lies beside it


def _of_run(run: Run | PathLike, model: "TrainedModel") -> _Origin:
    """What a run says of its model. Raises: RunError where the model is not the one that it wrote."""
    with opened(run) as found:
        names = found.files_at("model")
        strange = [name for name in names if name not in found.files]
        if strange or not found.finished:
            what = f"'{found.path / strange[0]}' is not what the run wrote" if strange else "the run is not finished"
            raise RunError(f"{what}, so its statement is not that of a model; `tacit resume {found.path}` ends a run.")
        for name in names:
            found.kept(name)
        seal, created = found.seal, int(found.metadata.created)
        if model.public_text is not None:
            return _of_folder(model)._replace(date=created, run=seal)
        stated = statement(found)
        record: Mapping[str, Any] = parsed_json(stated.to_json())
    labelled = f" (labelled {', '.join(label.name for label in stated.labels)})" if stated.labels else ""
    says = f"the run's privacy statement{labelled} goes with the model, in the manifest"
    return _Origin(Promise(kind="statement", says=says, statement=record), created, seal)


def _of_folder(model: "TrainedModel") -> _Origin:
    folder = model.path / "model" if (model.path / "model" / WEIGHTS).is_file() else model.path
    return _Origin(_public_or_unknown(model), int((folder / WEIGHTS).stat().st_mtime))


def _of_counted(source: Path) -> _Origin:
    """Of n-grams, or a mixture, whose promise names the statement of each run. Raises: InputError where its figures do
    not follow from those.
    """
    from tacit.networks.model_files import read_files
    from tacit.statements.composed import read

    files = read_files(source)
    date = int((files.folder / WEIGHTS).stat().st_mtime)
    if files.public_text is not None:
        says = f"the model was made from {files.public_text} and from nothing else; nothing is promised to anybody"
        return _Origin(Promise(kind="public text", says=says, public_text=files.public_text), date)
    if not (files.folder / PROMISE).is_file():
        return _Origin(Promise(kind="unknown", says=UNKNOWN), date)
    record = read(files.folder / PROMISE)
    says = "the statements of all runs behind the mixture, and what they cost together, go with it"
    return _Origin(Promise(kind="statement", says=says, statement=record), date, composed=True)


def _public_or_unknown(model: "TrainedModel") -> Promise:
    if model.public_text is not None:
        says = f"the model was made from {model.public_text} and from nothing else; nothing is promised to anybody"
        return Promise(kind="public text", says=says, public_text=model.public_text)
    return Promise(kind="unknown", says=UNKNOWN)
