"""Mechanisms on the command line, made from the catalogue: a sub-command for each, an option for each parameter; and
what stands beside a mechanism: who may come how often, and how much noise is added.
"""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer

from tacit.cli.groups import Later
from tacit.cli.options import command
from tacit.cli.values import numbers, rounds
from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import ChosenMechanism, Mechanism, Parameters
from tacit.errors import InputError
from tacit.jobs.account.job import account, delta_or_default
from tacit.privacy.encoding import Encoding
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Strategy


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParticipationOptions:
    """Who may come how often."""

    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")]
    rounds_between: Annotated[
        int | None,
        typer.Option(help="Rounds strictly between two participations of a client: the papers' MinS."),
    ] = None
    min_separation: Annotated[
        int | None,
        typer.Option(help="Distance in rounds between two participations of a client: b = MinS + 1."),
    ] = None
    max_participations: Annotated[
        int | None,
        typer.Option(help="Most rounds a client takes part in (MaxP); left out, as many as the separation allows."),
    ] = None

    def participation(self) -> Participation:
        """InputError unless the separation is given in just one of its two conventions."""
        most = self.max_participations
        if self.rounds_between is not None and self.min_separation is None:
            return Participation.from_rounds_between(
                rounds=self.rounds, rounds_between=self.rounds_between, max_participations=most
            ).of_a_run()
        if self.min_separation is not None and self.rounds_between is None:
            worst = Participation.worst_case(self.rounds, self.min_separation).of_a_run()
            if most is None:
                return worst
            return Participation(rounds=self.rounds, min_separation=self.min_separation, max_participations=most)
        both = f"both ({self.rounds_between} and {self.min_separation})"
        given = "neither" if self.rounds_between is None else both
        raise InputError(
            f"{given} of --rounds-between and --min-separation given; give exactly one: "
            "--rounds-between is the papers' MinS, --min-separation is MinS + 1."
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise:
    """How much noise is added to what, or what it is to promise."""

    noise_multiplier: Annotated[
        float | None,
        typer.Option(help="Standard deviation of each seed, in clip norms; else --zcdp or --epsilon."),
    ] = None
    zcdp: Annotated[float | None, typer.Option(help="The rho to reach; the noise multiplier for it is computed.")] = (
        None
    )
    epsilon: Annotated[
        float | None,
        typer.Option(help="The epsilon to reach at --delta; the noise multiplier for it is computed."),
    ] = None
    delta: Annotated[float | None, typer.Option(help="The delta at which epsilon is given; left out, 1e-10,")] = None
    clients: Annotated[
        int | None, typer.Option(help="or that of a run with so many training clients: min(1e-5, n^-1.1).")
    ] = None
    clip_inflation: Annotated[
        float | None,
        typer.Option(help="The factor by which encoding for secure aggregation lengthens a clipped update."),
    ] = None
    secagg_dimension: Annotated[
        int | None, typer.Option(help="Or computed: the coordinates of an encoded update, padding included,")
    ] = None
    secagg_scale: Annotated[float | None, typer.Option(help="the factor before rounding to integers,")] = None
    secagg_clip_norm: Annotated[float | None, typer.Option(help="and the clip norm before encoding.")] = None

    @property
    def read_at(self) -> float:
        """The delta at which epsilon is given. Raises: InputError where two are asked for, or nobody is protected."""
        return delta_or_default(self.delta, self.clients)

    def guarantee(self, strategy: Strategy, participation: Participation) -> Guarantee:
        """With clip norm 1: what is promised does not depend on it."""
        return account(
            strategy,
            participation,
            noise_multiplier=self.noise_multiplier,
            zcdp=self.zcdp,
            epsilon=self.epsilon,
            delta=self.delta,
            clients=self.clients,
            clip_inflation=self._inflation(),
        )

    def _inflation(self) -> float:
        encoding = (self.secagg_clip_norm, self.secagg_dimension, self.secagg_scale)
        if all(value is None for value in encoding):
            return 1.0 if self.clip_inflation is None else self.clip_inflation
        clip_norm, dimension, scale = encoding
        if self.clip_inflation is not None or clip_norm is None or dimension is None or scale is None:
            raise InputError(
                "give --clip-inflation, or all three of --secagg-dimension, --secagg-scale and --secagg-clip-norm; "
                "exactly one of the two ways."
            )
        return Encoding(
            parameters=dimension, dimension=dimension, clip_norm=clip_norm, scale=scale, report_goal=1
        ).inflation


class Option(NamedTuple):
    """A parameter of a mechanism as an option: what Typer sees, and how its text is read."""

    name: str
    annotation: Any
    default: Any
    read: Callable[[Any], Any]

    def given(self, value: Any) -> dict[str, Any]:
        """The parameter, where the option was given."""
        return {} if value == self.default else {self.name: self.read(value)}


def options_of(parameters: type[Parameters]) -> list[Option]:
    """One for each field; lists of numbers are read from text."""
    hints = get_type_hints(parameters, include_extras=True)
    return [_option(field, hints[field.name]) for field in dataclasses.fields(parameters)]


def _option(field: "dataclasses.Field[Any]", hint: Any) -> Option:
    kind, meaning = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, field.name)
    help_of = typer.Option(help=meaning)
    listed = [each for each in (kind, *get_args(kind)) if get_origin(each) is tuple]
    if listed:
        read = rounds if get_args(listed[0])[0] is int else numbers
        return Option(field.name, Annotated[str, help_of], "", lambda text: read(text, field.name))
    return Option(field.name, Annotated[kind, help_of], field.default, lambda value: value)


def of_every_mechanism(act: Callable[..., None], **instead: Callable[..., None]) -> dict[str, Later]:
    """A sub-command for each mechanism of the catalogue, by its name.

    act: has a parameter `chosen`, a ChosenMechanism, in whose place the mechanism's own options stand; its other
    parameters are options of every sub-command. instead: what other function acts for a mechanism, by its name.
    """
    return {
        name: Later(mechanism.explains, partial(_acting, instead.get(name, act), mechanism))
        for name, mechanism in MECHANISMS.items()
    }


def _acting(act: Callable[..., None], mechanism: Mechanism) -> Callable[..., None]:
    """`act` for one mechanism, with its own options."""
    hints, own = get_type_hints(act, include_extras=True), options_of(mechanism.parameters)

    def acting(**values: Any) -> None:
        given: dict[str, Any] = {}
        for option in own:
            given |= option.given(values.pop(option.name))
        act(chosen=ChosenMechanism(mechanism=mechanism, parameters=mechanism.parameters_from(given)), **values)

    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(act).parameters.values():
        if parameter.name == "chosen":
            shown += [_parameter(option.name, option.annotation, option.default) for option in own]
        else:
            shown.append(_parameter(parameter.name, hints[parameter.name], parameter.default))
    acting.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    acting.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    acting.__doc__ = f"{mechanism.explains}\n\n{' '.join((act.__doc__ or '').split())}".rstrip()
    return command(acting)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


# -- any of them by an option ------------------------------------------------------------------------------------------


def _options_of_all() -> dict[str, Option]:
    """What any mechanism takes, each once, with the words of the first that takes it."""
    found: dict[str, Option] = {}
    for each in MECHANISMS.values():
        for option in options_of(each.parameters):
            found.setdefault(option.name, option)
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Named:
    """A mechanism by its name, or a strategy of a file."""

    mechanism: Annotated[str, typer.Option(help=f"{', '.join(MECHANISMS)}, or a strategy file FILE.json.")]

    def chosen(self) -> ChosenMechanism | Path:
        """The mechanism, or the file. InputError where an option is given that the mechanism does not take."""
        name, options = self.mechanism, _options_of_all().values()
        if name not in MECHANISMS and not name.endswith(".json"):
            raise InputError(f"--mechanism {name!r} is none of {', '.join(MECHANISMS)}, nor a strategy file FILE.json.")
        own = {option.name: option for option in options_of(MECHANISMS[name].parameters)} if name in MECHANISMS else {}
        given: dict[str, Any] = {}
        for option in options:
            value = getattr(self, option.name)
            if option.given(value) and option.name not in own:
                raise InputError(f"--{option.name} says nothing to --mechanism {name}; leave it out.")
            given |= own[option.name].given(value) if option.name in own else {}
        if name not in MECHANISMS:
            return Path(name)
        mechanism = MECHANISMS[name]
        return ChosenMechanism(mechanism=mechanism, parameters=mechanism.parameters_from(given))


if TYPE_CHECKING:

    class AnyMechanism(_Named):
        """The group of options of commands that account any mechanism: its name, and whatever any of them takes."""
else:
    AnyMechanism = dataclasses.make_dataclass(
        "AnyMechanism",
        [
            (option.name, option.annotation, dataclasses.field(default=option.default))
            for option in _options_of_all().values()
        ],
        bases=(_Named,),
        frozen=True,
        kw_only=True,
    )
