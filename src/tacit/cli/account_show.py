"""How `tacit account` shows a guarantee: a table for eyes, an object for programs."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from tacit.cli.console import console, print_json
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.strategy import Record, Strategy

LONG = 100  # characters; the values of a whole matrix say nothing to eyes
EXACT = "Exact, zero-out adjacency, for clients that keep the participation limits and the clip norm."
BOUND = (
    "A proved UPPER BOUND: the exact worst case of this strategy is out of reach. "
    "Zero-out adjacency, for clients that keep the participation limits and the clip norm."
)


def figures_of_mechanism(guarantee: Guarantee, delta: float) -> Record:
    """Everything that `tacit account` says of a mechanism, as plain values."""
    served = guarantee.participation
    encoded = {} if guarantee.clip_inflation == 1 else {"clip_inflation": guarantee.clip_inflation}
    return {
        **mechanism_of(guarantee.strategy),
        "rounds": served.rounds,
        "rounds_between": served.rounds_between,
        "min_separation": served.min_separation,
        "max_participations": served.max_participations,
        "noise_multiplier": guarantee.noise_multiplier,
        **encoded,
        "sensitivity_squared": guarantee.sensitivity_squared,
        "sensitivity": guarantee.sensitivity,
        "exact": guarantee.exact,
        "zcdp": guarantee.zcdp,
        "mu": guarantee.mu,
        "epsilon": guarantee.epsilon(delta),
        "delta": delta,
    }


def mechanism_of(strategy: Strategy | None) -> Record:
    """A strategy's record with its kind under "mechanism", without the values of a whole matrix."""
    record: Record = strategy.to_record() if strategy else {}
    named = {"mechanism": record.pop("kind", None), **record}
    return {name: value for name, value in named.items() if not (isinstance(value, str) and len(value) > LONG)}


def show(figures: Mapping[str, Any], as_json: bool, *, note: str | None = None) -> None:
    """The figures of a mechanism, then a note: left out, whether they are exact or a bound."""
    if as_json:
        print_json(figures)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in figures.items():
        if name != "exact":
            table.add_row(name.replace("_", " "), _shown(value))
    console.print(table)
    console.print(note or (EXACT if figures["exact"] else BOUND))


def _shown(value: Any) -> str:
    if isinstance(value, list) and len(value) > 8:
        return f"{len(value)} numbers: {', '.join(f'{number:.6g}' for number in value[:4])}, ..."
    return f"{value:.6g}" if isinstance(value, float) else str(value)
