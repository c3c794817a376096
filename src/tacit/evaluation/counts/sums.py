"""Sums of whole numbers over devices: the question, simulated clients who answer it, and what may leave the aggregator.

One device adds a vector of whole numbers to all cells. Of each sum its part has the sum's L2 norm at most, so all of it
has the root of the sum of their squares. That is the clip norm of the release: `Guarantee` makes the noise of it.
Released values are rounded to whole numbers. What one device computes, `device_part.SumsQuestion` says.
"""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.counts.cell_list import CellSum, ListedSum
from tacit.evaluation.counts.collect import CellsQuestion
from tacit.evaluation.counts.device_part import SumsQuestion
from tacit.evaluation.counts.release import THE_AGGREGATOR, AddNoise, NoiseBy, guarantee_within
from tacit.evaluation.counts.statistics import HasSentences, TypedText
from tacit.evaluation.release_cost import ReleaseCost
from tacit.federation.collector import Answered
from tacit.federation.report_layout import BoundedLayout, clipped
from tacit.privacy.strategy import Independent
from tacit.secure_aggregation.counts import secure_total
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.statements import NoisedSum
from tacit.statements.ledger import COUNT_SUM, Release

IntArray = NDArray[np.int64]
NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class ReleasedSums:
    """What left the aggregator, as `numpy.load` reads it from a file."""

    sums: Mapping[str, IntArray]  # by statistic, (cells,) each, in units, noised and rounded
    vocabulary: tuple[str, ...]  # the words that cells stand for, in order; empty where all of them are a list's
    stddev: float  # of the noise in every cell, in units
    reports: int
    ngrams: tuple[str, ...] = ()  # of the cells of a list, each with blanks between its words
    units: IntArray = field(default_factory=lambda: NONE)  # of those cells

    @cached_property
    def content(self) -> bytes:
        """Of an .npz file: each sum (cells,) by its name, and `vocabulary`, `stddev` and `reports`; of the sum `cells`
        also `ngrams` and `units`.
        """
        listed = {"ngrams": np.array(self.ngrams, np.str_), "units": self.units} if self.ngrams else {}
        file = io.BytesIO()
        np.savez_compressed(
            file,
            allow_pickle=False,
            vocabulary=np.array(self.vocabulary, np.str_),
            stddev=np.float64(self.stddev),
            reports=np.int64(self.reports),
            **self.sums,
            **listed,
        )
        return file.getvalue()

    @classmethod
    def from_content(cls, content: bytes, names: tuple[str, ...]) -> Self:
        """What `content` was of. Raises: ValueError, KeyError for another file."""
        try:
            with np.load(io.BytesIO(content)) as file:
                found = cls(
                    sums={name: file[name] for name in names},
                    vocabulary=tuple(map(str, file["vocabulary"])),
                    stddev=float(file["stddev"]),
                    reports=int(file["reports"]),
                    ngrams=tuple(map(str, file["ngrams"])) if CellSum.statistic in names else (),
                    units=file["units"] if CellSum.statistic in names else NONE,
                )
        except zipfile.BadZipFile as error:
            raise ValueError(str(error)) from error
        vars(found)["content"] = content  # these very bytes, whatever another zlib would make of the same numbers
        return found


@dataclass(frozen=True, kw_only=True)
class SumQuestion(CellsQuestion):
    """What devices are asked in the one step of a run of sums. See `federation.collector.Question`.

    vocabulary: the words that cells stand for; empty where only what was released already is read, or all cells are
    those of a list.
    """

    kind: ClassVar[str] = "count"
    step: ClassVar[int] = 0
    round: ClassVar[int] = 0
    suffix: ClassVar[str] = ".npz"
    computation: SumsQuestion
    vocabulary: tuple[str, ...]

    @property
    def layout(self) -> BoundedLayout:
        """See CellsQuestion."""
        return self.computation.sums

    def released(
        self,
        answered: Answered,
        cost: ReleaseCost,
        *,
        add_noise: AddNoise,
        first_user: int = 0,
        noise: NoiseBy = THE_AGGREGATOR,
    ) -> tuple[ReleasedSums, tuple[Release, ...]]:
        """The sums with Gaussian noise of `Guarantee.seed_stddev` in every cell, and their row of the ledger.

        add_noise: adds normal noise that nobody knows to all cells at once, unless others did: noise says who.
        """
        guarantee = guarantee_within(self.layout.clip_norm, zcdp=cost.rho)
        noised = noise.noised(answered.values, guarantee.seed_stddev, add_noise).astype(np.int64)
        listed = self.computation.cells
        found = ReleasedSums(
            sums=dict(zip(map(str, self.computation.statistics), self.layout.apart(noised), strict=True)),
            vocabulary=self.vocabulary,
            stddev=noise.deviation(guarantee.seed_stddev),
            reports=answered.reports,
            ngrams=listed.names if isinstance(listed, ListedSum) else (),
            units=listed.units if isinstance(listed, ListedSum) else NONE,
        )
        row = NoisedSum(
            round=self.step,
            what=COUNT_SUM,
            strategy_record=Independent().to_record(),
            clip_norm=guarantee.clip_norm,
            noise_multiplier=guarantee.noise_multiplier,
            reports=answered.reports,
            dropped=answered.dropped,
            decryptors=noise.decryptors,
            honest_decryptors=noise.honest,
        )
        return found, (row,)

    def to_file(self, released: ReleasedSums) -> bytes:
        """What was released, as the run folder has it."""
        return released.content

    def from_file(self, content: bytes) -> ReleasedSums:
        """What `to_file` wrote. Raises: ValueError, KeyError."""
        return ReleasedSums.from_content(content, tuple(map(str, self.computation.statistics)))


class ClientsSummed:
    """What simulated clients have, exactly, added up client by client, so that no table of clients times cells is made.
    All of it in units.

    typed, sent: (cells of all sums,) before clipping and after. shortened: of each sum, clients who were scaled down.
    """

    def __init__(self, computation: SumsQuestion) -> None:
        self._computation = computation
        self.typed, self.sent = (np.zeros(computation.sums.length, np.int64) for _ in range(2))
        self.shortened = [0] * len(computation.statistics)

    def add(self, text: TypedText) -> None:
        """One more client. Raises: what a statistic does."""
        for number, (each, start) in enumerate(
            zip(self._computation.statistics, self._computation.sums.starts[:-1], strict=True)
        ):
            cells, counts = each.counted(text)
            within = clipped(counts, each.layout.clip_norm)
            self.typed[start + cells] += counts
            self.sent[start + cells] += within
            self.shortened[number] += not np.array_equal(counts, within)


@dataclass(frozen=True, kw_only=True)
class SimulatedSums:
    """A collector of clients whose sum is at hand.

    secure: how reports are added up so that nobody sees one; None: in the clear.
    """

    clients: IntArray  # their numbers
    known: ClientsSummed
    text: HasSentences
    secure: SimulatedProtocol | None

    def init(self) -> Any:
        """See Collector: nothing is carried."""
        return ()

    def collect(self, state: Any, question: SumQuestion, *, seed: bytes = b"") -> tuple[Answered, Any]:
        """The sum of these very clients. Raises: InputError where it may not fit into its words."""
        question.layout.check_reports(len(self.clients))
        total = self.known.sent if self.secure is None else self._summed_securely(question, self.secure)
        return Answered(total, len(self.clients), np.sort(self.clients)), state

    def _summed_securely(self, question: SumQuestion, secure: SimulatedProtocol) -> IntArray:
        layout, playing = question.layout, self.clients[: secure.devices]
        reports = [question.computation.report_of(self.text, int(each)).astype(np.int64) for each in playing]
        most = layout.largest * len(self.clients)
        return secure_total(secure, reports, self.known.sent - sum(reports), most=most, each=layout.largest)
