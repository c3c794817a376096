"""The options of `tacit discover` that say what a campaign is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.errors import InputError
from tacit.privacy.local_anonymity import Anonymity

if TYPE_CHECKING:  # Numba would come with it
    from tacit.discovery.settings import Campaign

PRINTABLE = "printable"


@dataclass(frozen=True, kw_only=True)
class CampaignOptions:
    """One field an option; `campaign` checks them together."""

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
    more_characters: Annotated[str, typer.Option(help="Characters besides the alphabet's: áéíñóúü for Spanish.")] = ""
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

    def campaign(self) -> "Campaign":
        """The campaign that was asked for. InputError names what cannot be."""
        from tacit.discovery.alphabet import Alphabet
        from tacit.discovery.device import Terms
        from tacit.discovery.settings import Campaign

        terms = Terms(
            local_epsilon=self.local_epsilon,
            contributions=self.contributions,
            sampler=self.sampler,  # type: ignore[arg-type]  # Terms names the known ones
            randomizer=self.randomizer,  # type: ignore[arg-type]
        )
        alphabet = Alphabet() if self.alphabet == PRINTABLE else Alphabet(self.alphabet)
        return Campaign(
            terms=terms,
            users_per_layer=self.users_per_layer,
            passes=self.passes,
            prefixes=self.prefixes,
            depth=self.depth,
            alphabet=alphabet.with_characters(self.more_characters),
            anonymity=_anonymity(self.k_anonymity),
            counting_users=self.users_per_layer if self.counting_users is None else self.counting_users,
            allocation=self.allocation,  # type: ignore[arg-type]  # Campaign names the known ones
            resample_users=self.resample_users,
            seed=self.seed,
        )


def _anonymity(given: str | None) -> Anonymity | None:
    if given is None:
        return None
    k, _, delta = given.partition(",")
    try:
        return Anonymity(k=int(k), delta=float(delta))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"--k-anonymity {given!r} is not k,delta; write for example 20,1e-3.") from error
