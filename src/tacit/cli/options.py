"""Options that several commands share, and what makes a command of a function: a dataclass stands for its options."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from tacit.cli.console import refusing_in_one_line
from tacit.cli.from_settings import Named, Options, Setting, declared_by
from tacit.errors import InputError, conceivable

if TYPE_CHECKING:  # JAX would come with it
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.integrations import Logs
    from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Host = Annotated[str, typer.Option(help="The address to listen on; one that others reach needs TLS.")]
TlsCert = Annotated[Path | None, typer.Option(help="The certificate with its chain, in PEM.")]
TlsKey = Annotated[Path | None, typer.Option(help="Its key, in PEM.")]
BehindProxy = Annotated[bool, typer.Option("--behind-proxy", help="A proxy ends TLS, and alone reaches this address.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder, finished or not.")]
OwnDelta = Annotated[
    float | None, typer.Option(help="The delta at which epsilon is given; left out, min(1e-5, n^-1.1) of n clients.")
]
Population = Annotated[
    Path | None, typer.Option(help="Enter it in the budget of these clients (docs/budgets.md), which may refuse it.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the recipe, such as rounds.rounds=100 (KEY= leaves it out); may be given several times.",
    ),
]
Workers = Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Never changes the result.")]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Fix all randomness: whoever knows the seed can take the noise away (the statement says so first)."
    ),
]


@dataclasses.dataclass(frozen=True)
class SecureOptions:
    """How devices' counts are added up so that nobody sees one device's."""

    secure_sum: Annotated[
        str | None, typer.Option(help="Sum what devices send by secure aggregation: masks, or one-message.")
    ] = None
    secure_devices: Annotated[
        int | None,
        typer.Option(
            help="Of each group so many play its whole protocol; the others are added modulo the same 2^b.",
            show_default="8",
        ),
    ] = None

    def protocol(self) -> "SimulatedProtocol | None":
        """None where none is asked for. Raises: InputError for an unknown protocol, or too few devices."""
        from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol

        if self.secure_sum is None and self.secure_devices is not None:
            raise InputError("--secure-devices plays a protocol, and none is named; add --secure-sum masks.")
        given = {} if self.secure_devices is None else {"devices": self.secure_devices}
        return None if self.secure_sum is None else SimulatedProtocol(protocol=self.secure_sum, **given)  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """What is released of an evaluation; without any of the three, nothing."""

    zcdp: Annotated[float | None, typer.Option(help="Release the histograms with noise of this zCDP.")] = None
    epsilon: Annotated[float | None, typer.Option(help="Or of this epsilon at --delta.")] = None
    delta: OwnDelta = None
    local_epsilon: Annotated[
        float | None, typer.Option(help="Or let every device randomise its one report itself, with this epsilon.")
    ] = None

    def release(self, secure_sum: "SimulatedProtocol | None") -> "ReleaseCost | None":
        """Raises: InputError for two prices, one that is none, or a secure sum of nothing that is released."""
        from tacit.evaluation.release_cost import ReleaseCost

        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"--delta {self.delta:g} is not between 0 and 1; 1e-6 is usual.")
        given = any(each is not None for each in (self.zcdp, self.epsilon, self.local_epsilon))
        if secure_sum and not given:
            raise InputError(
                "--secure-sum adds up what is released, and nothing is; give --zcdp, --epsilon or --local-epsilon."
            )
        return ReleaseCost(**dataclasses.asdict(self), secure_sum=secure_sum) if given else None


@dataclasses.dataclass(frozen=True)
class LogOptions:
    """Who else is told."""

    log: Annotated[
        list[str] | None,
        typer.Option(
            help="Also tell tensorboard:FOLDER or mlflow:URI what may be published of each step; may be given "
            "several times (docs/integrations.md)."
        ),
    ] = None
    log_exact: Annotated[
        bool,
        typer.Option("--log-exact", help="Tell them exact losses and accuracies too, which no guarantee covers."),
    ] = False

    def logs(self, run: Path) -> "Logs":
        """They listen, to what happens in a run folder. Raises: InputError."""
        from tacit.integrations import Logs

        return Logs(self.log or (), exact=self.log_exact, run=run.resolve().name)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command of the house: groups of options are filled in, and whatever is refused is one line and exit code 2."""
    return refusing_in_one_line(with_options(function))


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command in which a parameter that is annotated with a dataclass becomes its options, filled in.

    Typer sees one option for each field (`from_settings`), in the order in which the command names its parameters.
    Of `Options[Settings]` the command gets the options, and makes the settings itself.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[type, list[Setting]]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if (kind := _group(annotation)) is not None:
            named = next((each for each in get_args(annotation) if isinstance(each, Named)), Named())
            groups[parameter.name] = kind, [*declared_by(kind, named)]
            parameters.extend(each.parameter for each in groups[parameter.name][1])
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation))

    @functools.wraps(command)
    def filled(**values: Any) -> None:
        for name, value in values.items():
            conceivable(f"--{name.replace('_', '-')}", value)
        for name, (kind, declared) in groups.items():
            options: Options[Any] = Options(kind, declared, {each.name: values.pop(each.name) for each in declared})
            values[name] = options.settings() if dataclasses.is_dataclass(hints[name]) else options
        command(**values)

    filled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    filled.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return filled


def _group(annotation: Any) -> type | None:
    """The dataclass that the parameter stands for; None of one option."""
    own = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    kind = get_args(own)[0] if get_origin(own) is Options else own
    return kind if dataclasses.is_dataclass(kind) and isinstance(kind, type) else None
