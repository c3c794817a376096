"""What a model of several runs promises: the statements of all, and what their releases cost a client together.

A client may have taken part in each run. Their zCDP adds up, and epsilon follows from the sum: for whoever took part in
all of them it is what holds, for everybody else an upper bound. Nothing is released by putting models together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, TacitError
from tacit.files import read_bounded
from tacit.parsing import parsed_json
from tacit.privacy.composition import Composition
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.statements.count_facts import EvaluationFacts
from tacit.statements.statement import formats
from tacit.statements.train_facts import TrainingFacts
from tacit.statements.verify import CheckedLine, compared, verify

SCHEMA, VERSION = "tacit.mixture.promise", 1


@dataclass(frozen=True, kw_only=True)
class ComposedPromise:
    """What is promised of a model by the parts that it is made of.

    statements: by part, the record of its run's statement. public: by part, the public text that it was made from and
    nothing else. Raises: InputError for a statement whose releases have no central noise.
    """

    statements: Mapping[str, Record]
    public: Mapping[str, str]

    def __post_init__(self) -> None:
        assert self.composition.sequences or not self.statements  # refuses what cannot be composed here

    @property
    def composition(self) -> Composition:
        """All releases together."""
        return Composition(
            tuple(each for part, record in self.statements.items() for each in _realised(part, record).sequences)
        )

    def costs(self) -> dict[str, float]:
        """The zCDP of each part that released something."""
        return {part: _realised(part, record).zcdp for part, record in self.statements.items()}

    @property
    def delta(self) -> float:
        """The largest of the parts', at which epsilon is given; 0 where there is none."""
        return max((float(_facts(part, each).delta) for part, each in self.statements.items()), default=0.0)

    @property
    def epsilon(self) -> float:
        """Of all releases together at `delta`; 0 where nothing was released."""
        return self.composition.epsilon(self.delta) if self.statements else 0.0

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "zcdp": self.composition.zcdp,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "public": dict(self.public),
            "statements": dict(self.statements),
        }

    def says(self) -> str:
        """All of it in a sentence."""
        text = ", ".join(f"{part} of {source}" for part, source in self.public.items())
        if not self.statements:
            return f"public text alone ({text}); nothing is promised to anybody"
        of = " and ".join(self.statements)
        cost = f"epsilon {rounded_up(self.epsilon)} at delta {self.delta:.3g}"
        return f"{cost} for {of} together, composed; public: {text}"


def check(record: Any) -> tuple[CheckedLine, ...]:
    """Each statement of a promise line by line, and the figures of all together computed again.

    Raises: InputError where it is no such promise.
    """
    if not isinstance(record, Mapping) or (record.get("schema"), record.get("version")) != (SCHEMA, VERSION):
        raise InputError("this is no promise of a mixture that this version reads; use the version that wrote it.")
    statements, public = record.get("statements"), record.get("public")
    if not isinstance(statements, Mapping) or not isinstance(public, Mapping):
        raise InputError("the promise lacks its statements or its public texts; ask for the whole file.")
    lines = [
        CheckedLine(name=f"{line.name} of {part}", complaint=line.complaint)
        for part, each in statements.items()
        for line in verify(each)
    ]
    try:
        again = ComposedPromise(statements=statements, public=public).to_record()
    except TacitError as error:
        return (*lines, CheckedLine(name="epsilon", complaint=f"nothing follows from the statements: {error}"))
    figures = ("zcdp", "epsilon", "delta")
    return (*lines, *compared({name: record.get(name) for name in figures}, {name: again[name] for name in figures}))


def read(file: Path) -> Record:
    """The promise of a mixture, as its folder has it. Raises: InputError where its figures do not follow from its
    statements.
    """
    record: Record = parsed_json(read_bounded(file))
    if wrong := [line for line in check(record) if not line.holds]:
        raise InputError(f"'{file}' does not hold ({wrong[0].name}: {wrong[0].complaint}); mix the model again.")
    return record


def _facts(part: str, record: Record) -> TrainingFacts | EvaluationFacts:
    try:
        facts = formats()[record["format"]].FACTS.from_record(record["facts"])
    except (KeyError, TypeError) as error:
        raise InputError(f"what {part} comes with is no statement ({error}).") from error
    if not isinstance(facts, TrainingFacts | EvaluationFacts):
        raise InputError(f"{part} releases local reports, whose cost does not add to that of noised sums.")
    return facts


def _realised(part: str, record: Record) -> Composition:
    facts = _facts(part, record)
    found = facts.holding if isinstance(facts, TrainingFacts) else facts.guarantee
    if not isinstance(found, Composition):
        raise InputError(f"{part} has released no noised sum, so there is no cost to add.")
    return found
