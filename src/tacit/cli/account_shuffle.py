"""What local randomizers promise once reports are shuffled, and to how many people and words they are of use.

`tacit account shuffle`, `tacit account populations`, `tacit account person`.
"""

from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.account_options import Json
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.errors import InputError
from tacit.planning.discovery import Campaigning, Outlook, outlooks, user_level
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_shuffling import Kind, shuffle_epsilon
from tacit.privacy.rounding import rounded_up

NOTE = (
    "For one report changed, against those who see only the shuffled reports or their sum. Below the lower figure the "
    "promise would be false; above the upper one it is proved."
)
POPULATIONS_NOTE = (
    "Found: the fewest holders in one group with which a string is kept in half of all cases, and their share of the "
    "contributions. Central: for one answer, proved."
)


@speaks_plainly
def account_shuffle(
    local_epsilon: Annotated[float, typer.Option(help="The local guarantee of each report.")],
    reports: Annotated[int, typer.Option(help="How many reports are shuffled together: users times contributions.")],
    delta: Annotated[float, typer.Option(help="The delta at which the central epsilon is given.")] = 1e-10,
    randomizer: Annotated[
        Kind, typer.Option(help="subset-selection, or any: the bound that holds for every randomizer.")
    ] = "subset-selection",
    domain: Annotated[
        int | None, typer.Option(help="Values a report is about; Subset Selection's bound needs it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """From a local to a central guarantee: upper and lower bounds, valid ones only."""
    made = shuffle_epsilon(local_epsilon, reports, delta, randomizer, domain)
    if as_json:
        print_json(
            {
                "epsilon_upper": made.epsilon_upper,
                "epsilon_lower": made.epsilon_lower,
                "theorem": made.theorem,
                "local_epsilon": local_epsilon,
                "reports": reports,
                "delta": delta,
                "randomizer": randomizer,
                "domain": domain,
            }
        )
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("central epsilon, proved", rounded_up(made.epsilon_upper))
    table.add_row("no less than", f"{made.epsilon_lower:.4g}")
    table.add_row("delta", f"{delta:g}")
    table.add_row("theorem", made.theorem)
    console.print(table)
    console.print(NOTE)


@speaks_plainly
def account_populations(
    populations: Annotated[
        str, typer.Option(help="Sizes of populations, such as the users of each language.")
    ] = "1e5,1e6,1e7,1e8",
    local_epsilons: Annotated[str, typer.Option(help="Local guarantees to compare.")] = "2,4,6,8",
    domain: Annotated[int, typer.Option(help="Values a report is about: prefixes times symbols, and one more.")] = (
        100_001
    ),
    groups: Annotated[int, typer.Option(help="Groups of different people: layers times passes.")] = 15,
    contributions: Annotated[int, typer.Option(help="Answers of one person.")] = 1,
    k_anonymity: Annotated[
        str, typer.Option(help="k,delta: what fewer than k of a group typed is kept with that probability at most.")
    ] = "20,1e-6",
    delta: Annotated[float, typer.Option(help="The delta of the central guarantee.")] = 1e-10,
    as_json: Json = False,
) -> None:
    """Which populations can be served at what epsilon: what can be found, and what is promised centrally."""
    given = _numbers(k_anonymity, "k-anonymity")
    if len(given) != 2:
        raise InputError(f"--k-anonymity {k_anonymity!r} is not k,delta: write 20,1e-6.")
    campaigning = Campaigning(
        domain=domain,
        groups=groups,
        contributions=contributions,
        anonymity=Anonymity(k=int(given[0]), delta=given[1]),
        central_delta=delta,
    )
    sizes = [int(size) for size in _numbers(populations, "populations")]
    epsilons = _numbers(local_epsilons, "local-epsilons")
    with complaints.status("bounding tails"):
        rows = outlooks(sizes, epsilons, campaigning)
    if as_json:
        print_json({"rows": [row.to_record() for row in rows]})
        return
    _show(rows)


@speaks_plainly
def account_person(
    user_epsilon: Annotated[float, typer.Option(help="The local guarantee for everything a person answers.")],
    contributions: Annotated[int, typer.Option(help="K: the words that a person could answer for.")],
    users: Annotated[int, typer.Option(help="How many people are asked.")],
    domain: Annotated[int, typer.Option(help="Values an answer is about.")],
    count: Annotated[float, typer.Option(help="How many of them have the word whose count is estimated.")] = 0.0,
    as_json: Json = False,
) -> None:
    """One of K words at the whole epsilon, or all K at epsilon / K: the same promise, which estimates better?"""
    made = user_level(user_epsilon, contributions, users, domain, count)
    if as_json:
        print_json(made.to_record())
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(f"one of {contributions} words, epsilon {user_epsilon:g}", f"{made.one_word_deviation:.4g}")
    shared = f"all {contributions} words, epsilon {user_epsilon / contributions:g} each"
    table.add_row(shared, f"{made.all_words_deviation:.4g}")
    console.print(table)
    console.print(
        f"Standard deviations of the estimated number of people, exact, Subset Selection: take {made.better}."
    )


def _show(rows: list[Outlook]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("population", "local epsilon", "people a group", "found from", "share", "central epsilon"):
        table.add_column(heading, justify="right")
    for row in rows:
        share = row.findable_share
        table.add_row(
            f"{row.population:,}",
            f"{row.local_epsilon:g}",
            f"{row.users_per_group:,}",
            "nothing" if share is None else f"{row.findable_count:,.0f}",
            "-" if share is None else f"{share:.2g}",
            rounded_up(row.central.epsilon_upper, 3),
        )
    console.print(table)
    console.print(POPULATIONS_NOTE)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{option} {text!r} is not a list of numbers: write 1e5,1e6.") from None
