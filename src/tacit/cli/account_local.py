"""What local randomizers promise once reports are shuffled, and to how many users and words they are of use.

`tacit account shuffle`, `tacit account populations`, `tacit account user`.
"""

from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, say
from tacit.cli.options import Json, command
from tacit.cli.values import k_and_delta, numbers
from tacit.jobs.account_local import (
    Outlooks,
    ShuffleAccount,
    account_populations,
    account_shuffle,
    account_user,
)
from tacit.planning.discovery import DiscoveryPlan, UserLevel
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_shuffling import Kind
from tacit.privacy.rounding import rounded_up

NOTE = (
    "For one report changed, against those who see only the shuffled reports or their sum. Below the lower figure the "
    "promise would be false; above the upper one it is proved."
)
POPULATIONS_NOTE = (
    "Found: the fewest holders in one group with which a string is kept in half of all cases, and their share of the "
    "contributions. Central: for one answer, proved."
)


@command
def shuffle(
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
    made = account_shuffle(local_epsilon, reports, delta=delta, randomizer=randomizer, domain=domain)
    say(made, as_json, _show_bounds)


@command
def populations(
    populations: Annotated[
        str, typer.Option(help="Sizes of populations, such as the users of each language.")
    ] = "1e5,1e6,1e7,1e8",
    local_epsilons: Annotated[str, typer.Option(help="Local guarantees to compare.")] = "2,4,6,8",
    domain: Annotated[int, typer.Option(help="Values a report is about: prefixes times symbols, and one more.")] = (
        100_001
    ),
    groups: Annotated[int, typer.Option(help="Groups of different users: layers times passes.")] = 15,
    contributions: Annotated[int, typer.Option(help="Answers of one user.")] = 1,
    k_anonymity: Annotated[
        str, typer.Option(help="k,delta: what fewer than k of a group typed is kept with that probability at most.")
    ] = "20,1e-6",
    delta: Annotated[float, typer.Option(help="The delta of the central guarantee.")] = 1e-10,
    as_json: Json = False,
) -> None:
    """Which populations can be served at what epsilon: what can be found, and what is promised centrally."""
    k, share = k_and_delta(k_anonymity)
    plan = DiscoveryPlan(
        domain=domain,
        groups=groups,
        contributions=contributions,
        anonymity=Anonymity(k=k, delta=share),
        central_delta=delta,
    )
    sizes = [int(size) for size in numbers(populations, "populations", "1e5,1e6")]
    with complaints.status("bounding tails"):
        rows = account_populations(sizes, numbers(local_epsilons, "local-epsilons", "2,4"), plan)
    say(rows, as_json, _show)


@command
def user(
    user_epsilon: Annotated[float, typer.Option(help="The local guarantee for everything a user answers.")],
    contributions: Annotated[int, typer.Option(help="K: the words that a user could answer for.")],
    users: Annotated[int, typer.Option(help="How many users are asked.")],
    domain: Annotated[int, typer.Option(help="Values an answer is about.")],
    count: Annotated[float, typer.Option(help="How many of them have the word whose count is estimated.")] = 0.0,
    as_json: Json = False,
) -> None:
    """One of K words at the whole epsilon, or all K at epsilon / K: the same promise, which estimates better?"""
    made = account_user(user_epsilon, contributions, users=users, domain=domain, count=count)
    say(made, as_json, _show_user)


def _show_bounds(made: ShuffleAccount) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("central epsilon, proved", rounded_up(made.bounds.epsilon_upper))
    table.add_row("no less than", f"{made.bounds.epsilon_lower:.4g}")
    table.add_row("delta", f"{made.delta:g}")
    table.add_row("theorem", made.bounds.theorem)
    console.print(table)
    console.print(NOTE)


def _show_user(made: UserLevel) -> None:
    K, epsilon = made.contributions, made.user_epsilon
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(f"one of {K} words, epsilon {epsilon:g}", f"{made.one_word_deviation:.4g}")
    table.add_row(f"all {K} words, epsilon {epsilon / K:g} each", f"{made.all_words_deviation:.4g}")
    console.print(table)
    console.print(f"Standard deviations of the estimated number of users, exact, Subset Selection: take {made.better}.")


def _show(found: Outlooks) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("population", "local epsilon", "users a group", "found from", "share", "central epsilon"):
        table.add_column(heading, justify="right")
    for row in found.rows:
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
