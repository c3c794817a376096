"""The options of `tacit account`, and what they make: a participation, a guarantee, a strategy."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tacit.errors import InputError
from tacit.jobs.account import account
from tacit.privacy.encoding import clip_inflation
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import (
    PUBLISHED_BLT,
    BandedInverse,
    BandedToeplitz,
    Blt,
    Independent,
    Strategy,
    Tree,
    strategy_from_record,
)

Restarts = Annotated[str, typer.Option(help="Rounds at which a new tree begins, counted from 0: 128,1152.")]
Published = Annotated[str | None, typer.Option(help=f"Published parameters: {', '.join(PUBLISHED_BLT)}.")]
Theta = Annotated[str, typer.Option(help="Or decays of the buffers, in (0, 1]: 0.99,0.7.")]
Omega = Annotated[str, typer.Option(help="With their weights, above 0: 0.1,0.2.")]
Coefficients = Annotated[str, typer.Option(help="The coefficients, from the diagonal down: 1.0,0.5,0.375.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@dataclass(frozen=True, kw_only=True)
class Limits:
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
            )
        if self.min_separation is not None and self.rounds_between is None:
            worst = Participation.worst_case(self.rounds, self.min_separation)
            if most is None:
                return worst
            return Participation(rounds=self.rounds, min_separation=self.min_separation, max_participations=most)
        both = f"both ({self.rounds_between} and {self.min_separation})"
        given = "neither" if self.rounds_between is None else both
        raise InputError(
            f"{given} of --rounds-between and --min-separation given; give exactly one: "
            "--rounds-between is the papers' MinS, --min-separation is MinS + 1."
        )


@dataclass(frozen=True, kw_only=True)
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
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is given.")] = 1e-10
    clip_inflation: Annotated[
        float | None,
        typer.Option(help="The factor by which encoding for secure aggregation lengthens a clipped update."),
    ] = None
    secagg_dimension: Annotated[
        int | None, typer.Option(help="Or computed: the coordinates of an encoded update, padding included,")
    ] = None
    secagg_scale: Annotated[float | None, typer.Option(help="the factor before rounding to integers,")] = None
    secagg_clip_norm: Annotated[float | None, typer.Option(help="and the clip norm before encoding.")] = None

    def guarantee(self, strategy: Strategy, participation: Participation) -> Guarantee:
        """With clip norm 1: what is promised does not depend on it."""
        return account(
            strategy,
            participation,
            noise_multiplier=self.noise_multiplier,
            zcdp=self.zcdp,
            epsilon=self.epsilon,
            delta=self.delta,
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
        return clip_inflation(clip_norm, dimension, scale)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A mechanism by its name, with the options that it takes."""

    mechanism: Annotated[
        str, typer.Option(help="tree, blt, gaussian, banded-toeplitz, banded-inverse, or a strategy file FILE.json.")
    ]
    restarts: Restarts = ""
    strategy: Published = None
    theta: Theta = ""
    omega: Omega = ""
    coefficients: Coefficients = ""

    def made(self) -> Strategy:
        """The strategy; InputError where an option is given that the mechanism does not take."""
        takes = {
            "tree": {"restarts"},
            "blt": {"strategy", "theta", "omega"},
            "gaussian": set(),
            "banded-toeplitz": {"coefficients"},
            "banded-inverse": {"coefficients"},
        }
        name = self.mechanism
        if name not in takes and not name.endswith(".json"):
            raise InputError(f"--mechanism {name!r} is none of {', '.join(takes)}, nor a strategy file FILE.json.")
        for option in ("restarts", "strategy", "theta", "omega", "coefficients"):
            if getattr(self, option) and option not in takes.get(name, set()):
                raise InputError(f"--{option} says nothing to --mechanism {name}; leave it out.")
        match name:
            case "tree":
                return Tree(restarts=rounds_listed(self.restarts, "restarts"))
            case "blt":
                return blt_from(self.strategy, self.theta, self.omega)
            case "gaussian":
                return Independent()
            case "banded-toeplitz":
                return BandedToeplitz(coefficients=reals(self.coefficients, "coefficients"))
            case "banded-inverse":
                return BandedInverse(coefficients=reals(self.coefficients, "coefficients"))
            case _:
                return strategy_from_file(Path(name))


def blt_from(published: str | None, theta: str, omega: str) -> Blt:
    """Published parameters or one's own; InputError unless just one of the two is given."""
    if published is None and theta and omega:
        return Blt(theta=reals(theta, "theta"), omega=reals(omega, "omega"))
    if published is None or theta or omega:
        raise InputError("give either --strategy, or --theta together with --omega; exactly one of the two ways.")
    if published not in PUBLISHED_BLT:
        raise InputError(f"strategy {published!r} is none of {', '.join(PUBLISHED_BLT)}; or give --theta and --omega.")
    return PUBLISHED_BLT[published]


def strategy_from_file(path: Path) -> Strategy:
    """The strategy of a JSON file: its record alone, or under the key "strategy" of something larger."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no strategy file '{path}'; write one with `tacit design ... --out`.") from None
    except ValueError as error:
        raise InputError(f"'{path}' is not JSON ({error}); write one with `tacit design ... --out`.") from error
    if isinstance(record, dict) and "kind" not in record:
        record = record.get("strategy")
    if not isinstance(record, dict):
        raise InputError(
            f"'{path}' holds no record of a strategy (an object with the key 'kind'); "
            "write one with `tacit design ... --out`."
        )
    return strategy_from_record(record)


def reals(text: str, name: str) -> tuple[float, ...]:
    """The numbers of an option `--name 0.99,0.7`."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(f"--{name} {text!r} is not a list of numbers; write for example 0.99,0.7.") from error


def rounds_listed(text: str, name: str) -> tuple[int, ...]:
    """The rounds of an option `--name 128,1152`."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(f"--{name} {text!r} is not a list of rounds; write for example 128,1152.") from error
