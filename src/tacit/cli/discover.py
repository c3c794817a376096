"""`tacit discover`: the words that clients type and a vocabulary lacks, without seeing anyone's text."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, Population, SecureOptions, command
from tacit.cli.values import k_and_delta
from tacit.privacy.local_anonymity import Anonymity

if TYPE_CHECKING:  # Numba would come with it
    from tacit.discovery.settings import DiscoverySettings
    from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol

PRINTABLE = "printable"


@dataclass(frozen=True, kw_only=True)
class DiscoveryOptions:
    """One field an option; `settings` checks them together."""

    local_epsilon: Annotated[
        float, typer.Option(help="What each report of a device costs at most (local DP, one word).")
    ]
    users_per_layer: Annotated[int, typer.Option(help="Users asked in each layer of each pass; nobody is asked twice.")]
    contributions: Annotated[int, typer.Option(help="K: reports of each user; what is missing is padded.")] = 1
    sampler: Annotated[str, typer.Option(help="Which K: random (uniform) or greedy (most typed).")] = "random"
    passes: Annotated[int, typer.Option(help="Tries built one after another, each without the words found before.")] = 1
    prefixes: Annotated[int, typer.Option(help="L: the most prefixes kept in a layer.")] = 1000
    depth: Annotated[int, typer.Option(help="D: layers of a trie; words have at most D-1 characters.")] = 15
    k_anonymity: Annotated[
        str | None, typer.Option(help="k,delta: what fewer than k users contributed is kept with probability <= delta.")
    ] = None
    alphabet: Annotated[
        str, typer.Option(help="The characters of words, as one text; `printable` is Python's 99 and the end.")
    ] = PRINTABLE
    more_characters: Annotated[str, typer.Option(help="Besides the alphabet's: áéíñóúüÁÉÍÑÓÚÜ for Spanish.")] = ""
    randomizer: Annotated[
        str, typer.Option(help="subset-selection, projective-geometry (short reports) or k-ary (a baseline).")
    ] = "subset-selection"
    counting_users: Annotated[
        int | None, typer.Option(help="Fresh users who say how often the words are typed.", show_default="as a layer")
    ] = None
    allocation: Annotated[
        str, typer.Option(help="Users by layer: even, or middle (as many in all, more in layers 4 to 8).")
    ] = "even"
    resample_users: Annotated[
        bool,
        typer.Option("--resample-users", help="SIMULATE as many users as needed, each with a random client's text."),
    ] = False
    seed: Annotated[
        int | None, typer.Option(help="Fix all randomness of a SIMULATION: whoever knows it can undo the protection.")
    ] = None

    def settings(self, secure_sum: "SimulatedProtocol | None" = None) -> "DiscoverySettings":
        """What was asked for. InputError names what cannot be."""
        from tacit.discovery.alphabet import Alphabet
        from tacit.discovery.settings import DiscoverySettings, LocalReportSettings

        alphabet = Alphabet() if self.alphabet == PRINTABLE else Alphabet(self.alphabet)
        k, delta = (None, 0.0) if self.k_anonymity is None else k_and_delta(self.k_anonymity, "k-anonymity")
        return DiscoverySettings(
            reports=LocalReportSettings(
                local_epsilon=self.local_epsilon,
                contributions=self.contributions,
                sampler=self.sampler,  # type: ignore[arg-type]  # the settings name the known ones
                randomizer=self.randomizer,
            ),
            users_per_layer=self.users_per_layer,
            passes=self.passes,
            prefixes=self.prefixes,
            depth=self.depth,
            alphabet=alphabet.with_characters(self.more_characters),
            anonymity=None if k is None else Anonymity(k=k, delta=delta),
            counting_users=self.users_per_layer if self.counting_users is None else self.counting_users,
            allocation=self.allocation,  # type: ignore[arg-type]
            resample_users=self.resample_users,
            seed=self.seed,
            secure_sum=secure_sum,
        )


@command
def discover_words(
    data: Annotated[
        str, typer.Option(help="The clients: a source as of `tacit data import`, or a cache with a larger vocabulary.")
    ],
    vocabulary: Annotated[
        Path, typer.Option(help="The vocabulary.json that devices have; its words are never reported.")
    ],
    out: Annotated[Path, typer.Option(help="The run folder; an interrupted run there goes on where it was.")],
    options: DiscoveryOptions,
    secure: SecureOptions,
    delta: Annotated[
        float | None,
        typer.Option(help="Where the central epsilon is read; left out, min(1e-5, n^-1.1) of n clients."),
    ] = None,
    population: Population = None,
    json: Json = False,
) -> None:
    """Find frequent unknown words under local differential privacy, layer by layer of a trie."""
    from tacit.jobs.discover.job import discover

    settings = options.settings(secure.of())
    with display(json, out) as progress:
        result = discover(data, vocabulary, out, settings, delta=delta, population=population, progress=progress)
    say_blocks(result, json)
