"""What local randomizers promise once reports are shuffled, and to how many users and words they are of use.

`tacit account shuffle`, `tacit account populations`, `tacit account user`.
"""

from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.console import complaints
from tacit.cli.options import Json, command
from tacit.cli.values import numbers, typed
from tacit.privacy.local_shuffling import Kind


@command
def shuffle(
    local_epsilon: Annotated[float, typer.Option(help="The local guarantee of each report.")],
    reports: Annotated[int, typer.Option(help="How many reports are shuffled together: users times contributions.")],
    delta: Annotated[float, typer.Option(help="The delta at which the central epsilon is given.")] = 1e-10,
    randomizer: Annotated[
        Kind, typer.Option(help="How reports are made; any: the bound that holds for every randomizer.")
    ] = "subset-selection",
    domain: Annotated[int | None, typer.Option(help="Values a report is about; needed for all but any.")] = None,
    as_json: Json = False,
) -> None:
    """From a local to a central guarantee: upper and lower bounds, valid ones only."""
    from tacit.jobs.account.local import account_shuffle

    made = account_shuffle(local_epsilon, reports, delta=delta, randomizer=randomizer, domain=domain)
    say_blocks(made, as_json)


@command
def populations(
    populations: Annotated[
        str, typer.Option(help="Sizes of populations, such as the users of each language.")
    ] = "1e5,1e6,1e7,1e8",
    local_epsilons: Annotated[str, typer.Option(help="Local guarantees to compare.")] = "2,4,6,8",
    domain: Annotated[int, typer.Option(help="Values a report is about: prefixes times symbols, and one more.")] = (
        100_001
    ),
    first_domain: Annotated[int, typer.Option(help="The same in the first layer: symbols, and one more.")] = 101,
    groups: Annotated[int, typer.Option(help="Groups of different users: layers times passes.")] = 15,
    contributions: Annotated[int, typer.Option(help="Answers of one user.")] = 1,
    k_anonymity: Annotated[
        str, typer.Option(help="k,delta: what fewer than k of a group typed is kept with that probability at most.")
    ] = "20,1e-6",
    delta: Annotated[float, typer.Option(help="The delta of the central guarantee.")] = 1e-10,
    central_epsilon: Annotated[
        float | None, typer.Option(help="The smallest populations that are promised this, not --populations.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a population of each size can find at what epsilon, and what is promised centrally."""
    from tacit.jobs.account.local import account_populations
    from tacit.planning.discovery import DiscoveryPlan
    from tacit.privacy.local_anonymity import Anonymity

    plan = DiscoveryPlan(
        domain=domain,
        groups=groups,
        contributions=contributions,
        anonymity=typed(k_anonymity, "k-anonymity", Anonymity, "20,1e-3"),
        central_delta=delta,
        first_domain=first_domain,
    )
    sizes = [int(size) for size in numbers(populations, "populations", "1e5,1e6")]
    with complaints.status("bounding tails"):
        rows = account_populations(
            sizes, numbers(local_epsilons, "local-epsilons", "2,4"), plan, central_epsilon=central_epsilon
        )
    say_blocks(rows, as_json)


@command
def user(
    user_epsilon: Annotated[float, typer.Option(help="The local guarantee for everything a user answers.")],
    contributions: Annotated[int, typer.Option(help="K: the words that a user could answer for.")],
    users: Annotated[int, typer.Option(help="How many users are asked.")],
    domain: Annotated[int, typer.Option(help="Values an answer is about.")],
    count: Annotated[float, typer.Option(help="How many of them have the word whose count is estimated.")] = 0.0,
    as_json: Json = False,
) -> None:
    """One of K words at the whole epsilon, or all K at epsilon / K: which estimates better?"""
    from tacit.jobs.account.local import account_user

    made = account_user(user_epsilon, contributions, users=users, domain=domain, count=count)
    say_blocks(made, as_json)
