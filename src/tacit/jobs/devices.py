"""Real devices that each answer once in a run: what a served file says of them beside the job's own settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from pydantic import ValidationError

from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError
from tacit.federation.collector import Collector
from tacit.runs.metadata import DeploymentUsed

if TYPE_CHECKING:
    from tacit.recipe.deployment_section import DeploymentSection

KEYS = ("name", "deployment")  # in a run's settings, and in a served file


@dataclass(frozen=True, kw_only=True)
class RealDevices:
    """Devices without identities that a server asks for one report each, and never again in the run.

    name: the run's, by which devices know it. deployment: who they are, how rounds wait, and who opens sums; each
    device sees to it by itself that it answers once, so there is no separation to choose. Raises: InputError.
    """

    name: str
    deployment: "DeploymentSection"

    def __post_init__(self) -> None:
        if self.deployment.timer_hours is not None or not self.deployment.round_index:
            raise InputError(
                "[deployment] has timer_hours or round_index, which keep two participations of a device apart, and "
                "here each device answers once; drop them."
            )

    def check_noise(self, *, local: bool) -> None:
        """Raises: InputError where decryptors are to add noise to reports that each device randomises itself."""
        if local and self.deployment.contributors:
            raise InputError(
                "deployment.noise='decryptors', and devices of this run randomise their reports themselves, so that no "
                "sum gets noise; drop it."
            )

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, where: str) -> Self:
        """That of a served file, or of a run's settings. Raises: InputError naming the key."""
        from tacit.recipe.deployment_section import DeploymentSection  # recipes load what trains

        name, section = table.get("name"), table.get("deployment")
        if not isinstance(name, str) or not isinstance(section, dict):
            raise InputError(f"{where} needs a name and a section [deployment]; docs/deploy.md has one.")
        try:
            return cls(name=name, deployment=DeploymentSection.model_validate(section))
        except ValidationError as error:
            raise InputError(f"{where}: {_first_complaint(error)}") from None

    def to_plain(self) -> dict[str, Any]:
        """KEYS with their values, for TOML."""
        section = self.deployment.model_dump(mode="json")
        return {"name": self.name, "deployment": {name: value for name, value in section.items() if value is not None}}

    def used(self, rounds: int) -> DeploymentUsed:
        """What a run of so many rounds records of them."""
        return DeploymentUsed.from_section(self.deployment, rounds=rounds, timer_seconds=None, most=1)


class DevicesCollector(Collector, Protocol):
    """Asks real devices."""

    @property
    def devices(self) -> RealDevices:
        """Whom it asks, and the name of the run that they know."""
        ...


def check_served(settings: DiscoverySettings) -> None:
    """Raises: InputError for what only a simulation has."""
    for name, value in (("seed", settings.seed), ("secure_sum", settings.secure_sum)):
        if value is not None:
            raise InputError(
                f"{name} is of a simulation, and real devices draw from their own operating systems and send their "
                "reports to a server; drop it. Decryptors that open sums alone are [deployment] decryptors."
            )
    if settings.resample_users:
        raise InputError("resample_users is of a simulation, and nobody stands for several real devices; drop it.")


def _first_complaint(error: ValidationError) -> str:
    """About the first wrong key of the section."""
    first = error.errors()[0]
    key = ".".join(("deployment", *map(str, first["loc"])))
    if first["type"] == "value_error":
        return first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        return f"the key {key!r} is missing; give it."
    return f"{key} = {first['input']!r}: {first['msg']} (docs/recipes.md lists the keys of [deployment])."
