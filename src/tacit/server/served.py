"""What `tacit serve` is given, whatever its kind: one run for real devices, as its file says it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from tacit.jobs.devices import RealDevices
from tacit.progress import Progress
from tacit.protocol.fields import QuestionDocument
from tacit.protocol.messages import AggregationSettings, Plan
from tacit.protocol.operator_key import OperatorKey
from tacit.runs import Run
from tacit.server.rounds.one_message_rounds import DecryptorTransport
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store

if TYPE_CHECKING:
    from tacit.recipe.deployment_section import DeploymentSection

Enrolment: TypeAlias = Literal["none", "tokens"]  # tokens: a device shows a single-use token for every task


class ServedJob(ABC):
    """One run for real devices, as its file says it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """By which devices know it."""

    @property
    @abstractmethod
    def deployment(self) -> "DeploymentSection":
        """Who the devices are, and how rounds wait."""

    @property
    def needs(self) -> tuple[int, int]:
        """(devices without which its rounds cannot all fill, reports of a round)."""
        return 1, 1

    @classmethod
    @abstractmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """What `to_toml` wrote, or somebody. Raises: InputError, RecipeError naming the key."""

    @abstractmethod
    def to_toml(self) -> str:
        """All of it."""

    @abstractmethod
    def placed(self, data: Path | None) -> Self:
        """The same with whole paths to files that can be used; data: a cache in place of its own. Raises: InputError,
        CacheError.
        """

    @abstractmethod
    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """The open run folder, new or resumed, before any device is asked. Raises: as the job."""

    @abstractmethod
    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """Do the job to its end. Raises: as the job."""

    @abstractmethod
    def document(self, question: Any) -> tuple[QuestionDocument, bytes]:
        """A question of its kind as devices get it, and the content that the round begins with. Raises: InputError,
        TrainingError for what no real device can be asked.
        """

    @staticmethod
    @abstractmethod
    def plan(run: Run, enrolment: Enrolment) -> Plan:
        """The plan of such a run. Raises: InputError for one that asks no devices."""

    def collector(
        self,
        store: Store,
        blobs: BlobStore,
        key: OperatorKey,
        *,
        decryptors: Sequence[DecryptorTransport] = (),
        **how: Any,
    ) -> ServedRounds:
        """Asks its devices. how: as `ServedRounds`."""
        devices = getattr(self, "devices", None)
        return ServedRounds(store, blobs, key, document=self.document, devices=devices, decryptors=decryptors, **how)


@dataclass(frozen=True, kw_only=True)
class ServedAnalytics(ServedJob):
    """A run that asks each device once: the first devices to check in form a group, and each device ensures by itself
    that it answers once.
    """

    devices: RealDevices

    @property
    def name(self) -> str:
        """See ServedJob."""
        return self.devices.name

    @property
    def deployment(self) -> "DeploymentSection":
        """See ServedJob."""
        return self.devices.deployment


def aggregation_of(
    section: "DeploymentSection", kind: Literal["plain", "encoded"], *, threshold: int
) -> AggregationSettings:
    """How reports are summed; where there are decryptors they open sums. kind: without them."""
    decryptors = section.named_decryptors()
    return AggregationSettings(
        kind="sealed" if decryptors else kind,
        threshold=threshold,
        keepers=tuple(each.identity for each in decryptors),
        boxes=tuple(each.box for each in decryptors),
        corrupt=section.corrupt_decryptors if decryptors else 0,
        contributors=tuple(each.identity for each in decryptors) if section.contributors else (),
        honest=section.honest_decryptors,
    )
