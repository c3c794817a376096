"""The participants of federated analytics: simulated clients of a cache, or real devices without identities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.evaluation.accuracy import first_shuffled
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.release_cost import ReleaseCost
from tacit.federation.collector import Answered, Collector
from tacit.files import PathLike
from tacit.jobs.devices import RealDevices
from tacit.jobs.run_start import checked_cache
from tacit.keyboard.model_folder import TrainedModel
from tacit.keyboard.phone_model import PhoneModel
from tacit.networks.language_model import settings_of
from tacit.progress import Progress
from tacit.runs.metadata import DeploymentUsed

NOBODY_ANSWERS = 1e-6  # a chance that nobody takes


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Clients of a cache, each as its own device; their exact answers are known."""

    cache: Cache
    split_name: str
    clients: NDArray[np.int64]  # their numbers, in the order of asking
    more: ClassVar[str] = "import more clients"

    @property
    def count(self) -> int:
        """How many are asked."""
        return len(self.clients)

    members = count  # of whom they are asked

    @property
    def vocabulary(self) -> dict[str, str]:
        """SHA-256 of the words of their text, under its name."""
        return {str(self.cache.path): self.cache.manifest.vocabulary.sha256}

    @property
    def source(self) -> str:
        """Where their text comes from."""
        return self.cache.manifest.source

    @property
    def recorded(self) -> dict[str, Any]:
        """As the metadata of a run has them."""
        return {"source": self.source}

    def to_settings(self, split_name: str, vocabulary: str, models: Sequence[TrainedModel] = ()) -> dict[str, Any]:
        """As the settings of a run name them."""
        path, digest = str(self.cache.path.resolve()), self.cache.manifest.digest
        return {"data": {"path": path, "sha256": digest, "split": split_name}}

    def named(self, models: Sequence[TrainedModel | PhoneModel]) -> tuple[str, ...]:
        """The models as a report names them: as they were given."""
        return tuple(map(str, models))

    def about(self, split_name: str) -> dict[str, Any]:
        """As a report names them."""
        return {"data": str(self.cache.path), "split_name": split_name}

    def __str__(self) -> str:
        """As an error names them, after their number."""
        return f"clients of the {self.split_name} split"


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Real devices, which check in when they may; nobody else has their exact answers."""

    count: int  # how many are asked
    steps: int
    real: RealDevices
    collector_class: str
    vocabulary: ClassVar[dict[str, str]] = {}  # each device looks whether it has the words of the model
    more: ClassVar[str] = "ask more (clients)"

    @property
    def deployment(self) -> DeploymentUsed:
        """What each keeps by itself: it is in one step, once."""
        return self.real.used(self.steps)

    @property
    def members(self) -> int:
        """About how many there are, of whom they are asked."""
        return self.real.deployment.devices

    @property
    def source(self) -> str:
        """Where their text comes from."""
        return f"what was typed on devices of the population '{self.real.deployment.population}'"

    @property
    def recorded(self) -> dict[str, Any]:
        """As the metadata of a run has them."""
        return {"source": self.source, "deployment": self.deployment, "asked_by": self.collector_class}

    def to_settings(self, split_name: str, vocabulary: str, models: Sequence[TrainedModel] = ()) -> dict[str, Any]:
        """As the settings of a run name them, with what devices have to know of the models.

        vocabulary: the SHA-256 of the words that their text has to be cut into.
        """
        networks = [
            {name: value for name, value in settings_of(each.network).items() if value is not None} for each in models
        ]
        about_models = {"networks": networks} if networks else {}
        return {**self.real.to_plain(), "vocabulary": vocabulary, **about_models}

    def named(self, models: Sequence[TrainedModel | PhoneModel]) -> tuple[str, ...]:
        """The models as a report names them: by their folders, where that tells them apart. Where they lie on the
        server is nobody's business.
        """
        names = tuple(Path(str(each)).resolve().name for each in models)
        if len(set(names)) == len(names):
            return names
        return tuple(f"{name} {number}" for number, name in enumerate(names, start=1))

    def about(self, split_name: str) -> dict[str, Any]:
        """As a report names them."""
        return {"population": self.real.deployment.population}

    def __str__(self) -> str:
        """As an error names them, after their number."""
        return "devices"


def clients_or_devices(
    data: Cache | PathLike | None,
    split_name: str,
    clients: int,
    cost: ReleaseCost | None,
    collector: Collector | None,
    progress: Progress,
    *,
    steps: int = 1,
) -> Simulated | Devices:
    """clients: the most clients, or the number of devices. steps: into how many groups they are divided. Raises:
    InputError, CacheError.
    """
    if collector is None:
        if data is None:
            raise InputError("whose text models are asked about is not said; give a cache, or a collector of devices.")
        cache = checked_cache(data, progress=progress)
        numbers = first_shuffled(cache.clients(split_name), clients)
        return Simulated(cache=cache, split_name=split_name, clients=numbers)
    real = getattr(collector, "devices", None)
    if not isinstance(real, RealDevices):
        raise InputError(
            f"the collector {type(collector).__name__} does not say whom it asks, so nothing can be promised to them; "
            "give it `devices`, a tacit.jobs.devices.RealDevices."
        )
    if data is not None:
        raise InputError("devices have their own text; leave the cache out, or the collector.")
    if cost is None:
        raise InputError(
            "of devices nothing is known but what is released; give a price (zcdp, epsilon or local_epsilon)."
        )
    if cost.secure_sum is not None:
        raise InputError("secure_sum is played by a simulation; of devices the collector sums, so leave it out.")
    if clients < 1:
        raise InputError("how many devices are asked is not said; give clients.")
    if clients > (there := real.deployment.devices):
        raise InputError(f"clients={clients:,} are more than the {there:,} devices that there are; ask fewer.")
    cls = type(collector)
    return Devices(count=clients, steps=steps, real=real, collector_class=f"{cls.__module__}:{cls.__qualname__}")


def check_answered(task: CountQuestion) -> None:
    """Raises: InputError where devices that draw which histogram they answer may leave one without an answer."""
    many = len(task.histograms)
    if task.local_epsilon is None or many * (1 - 1 / many) ** task.devices <= NOBODY_ANSWERS:
        return
    least = int(np.ceil(np.log(NOBODY_ANSWERS / many) / np.log1p(-1 / many)))
    raise InputError(
        f"each of {task.devices:,} devices draws which of {many} histograms it answers, and some histogram might have "
        f"no answer; ask {least:,} devices or more in each step, or for fewer histograms."
    )


class AllReleased:
    """The devices of a run whose releases are complete: nothing more is asked of them."""

    def __init__(self, run: Path, devices: RealDevices) -> None:
        self._run, self.devices = run, devices

    def init(self) -> Any:
        """See Collector: nothing is carried."""
        return ()

    def collect(self, state: Any, question: CountQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        """Raises: RunError."""
        raise RunError(
            f"step {question.step} of '{self._run}' is not released, and its devices are asked by the server; go on "
            "with the `tacit serve` that began it."
        )


def clients_or_devices_of(
    run: Path, settings: Mapping[str, Any]
) -> tuple[str | None, dict[str, Any], Collector | None]:
    """The clients or devices of a run, by its settings: (the cache, or None; the name of the split, where there is one;
    the collector of devices that have answered, or None).
    """
    if "deployment" in settings:
        return None, {}, AllReleased(run, RealDevices.from_table(settings, where=f"the settings of '{run}'"))
    return settings["data"]["path"], {"split_name": settings["data"]["split"]}, None
