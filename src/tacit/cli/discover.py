"""`tacit discover`: the words that people type and a vocabulary lacks, without seeing anyone's text."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.analytics.alphabet import Alphabet
from tacit.analytics.campaign import Anonymity, Campaign
from tacit.analytics.campaign_folder import CampaignFolder
from tacit.analytics.contributions import Terms
from tacit.analytics.discovery import discover
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.discover_outcome import outcome_of, write_outcome
from tacit.cli.discover_progress import DiscoveryProgress, reading_bar
from tacit.errors import InputError
from tacit.keyboard.vocabulary import SPECIALS, Vocabulary, count_words
from tacit.population import Cache, open_source
from tacit.population.manifest import MANIFEST
from tacit.population.typed_words import TypedWords, cached_typed_words, read_typed_words

PRINTABLE = "printable"


@speaks_plainly
def discover_words(
    data: Annotated[
        str, typer.Option(help="The clients: a source as of `tacit data import`, or a cache with a larger vocabulary.")
    ],
    vocabulary: Annotated[
        Path, typer.Option(help="The vocabulary.json that phones have; its words are never reported.")
    ],
    out: Annotated[Path, typer.Option(help="The campaign's folder; an interrupted one goes on where it was.")],
    local_epsilon: Annotated[
        float, typer.Option(help="What each report of a device costs at most (local DP, one word).")
    ],
    users_per_layer: Annotated[
        int, typer.Option(help="Users asked in each layer of each pass; nobody is asked twice.")
    ],
    contributions: Annotated[int, typer.Option(help="K: reports of each user; what is missing is padded.")] = 1,
    sampler: Annotated[str, typer.Option(help="Which K: random (uniform) or greedy (most typed).")] = "random",
    passes: Annotated[
        int, typer.Option(help="Tries built one after another, each without the words found before.")
    ] = 1,
    prefixes: Annotated[int, typer.Option(help="L: the most prefixes kept in a layer.")] = 1000,
    depth: Annotated[int, typer.Option(help="D: layers of a trie; words have at most D-1 characters.")] = 15,
    k_anonymity: Annotated[
        str | None, typer.Option(help="k,delta: what fewer than k users contributed is kept with probability <= delta.")
    ] = None,
    alphabet: Annotated[
        str, typer.Option(help="The characters of words, as one text; `printable` is Python's 99 and the end.")
    ] = PRINTABLE,
    more_characters: Annotated[str, typer.Option(help="Characters besides the alphabet's: áéíñóúü for Spanish.")] = "",
    randomizer: Annotated[
        str, typer.Option(help="subset-selection, projective-geometry (short reports) or k-ary (a baseline).")
    ] = "subset-selection",
    counting_users: Annotated[
        int | None, typer.Option(help="Fresh users who say how often the words are typed.", show_default="as a layer")
    ] = None,
    allocation: Annotated[
        str, typer.Option(help="Users by layer: even, or middle (as many in all, more in layers 4 to 8).")
    ] = "even",
    resample_users: Annotated[
        bool,
        typer.Option("--resample-users", help="SIMULATE as many users as needed, each with a random client's text."),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Fix all randomness of a SIMULATION: whoever knows it can undo the protection.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Where the central epsilon is read; it changes nothing else.")] = 1e-10,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Find frequent unknown words under local differential privacy, layer by layer of a trie."""
    campaign = Campaign(
        terms=Terms(
            local_epsilon=local_epsilon,
            contributions=contributions,
            sampler=sampler,  # type: ignore[arg-type]  # Terms names the known ones
            randomizer=randomizer,  # type: ignore[arg-type]
        ),
        users_per_layer=users_per_layer,
        passes=passes,
        prefixes=prefixes,
        depth=depth,
        alphabet=(Alphabet() if alphabet == PRINTABLE else Alphabet(alphabet)).with_characters(more_characters),
        anonymity=_anonymity(k_anonymity),
        counting_users=users_per_layer if counting_users is None else counting_users,
        allocation=allocation,  # type: ignore[arg-type]
        resample_users=resample_users,
        seed=seed,
    )
    if not 0 < delta < 1:
        raise InputError(f"--delta {delta:g} is not between 0 and 1; 1e-10 is usual.")
    known = Vocabulary.load(vocabulary)
    typed = typed_by(data, known, split="train", shown=not json)
    if not json:
        _warn(campaign, typed)
    digests = {"population_sha256": typed.sha256, "vocabulary_sha256": known.sha256}
    with CampaignFolder.opened(out, {**campaign.to_record(), **digests}) as folder:
        with DiscoveryProgress(campaign, quiet=json) as progress:
            found = discover(
                campaign,
                typed,
                folder,
                assignment=folder.assignment,
                known=frozenset(known.words),
                watcher=progress.layer_done,
            )
        outcome = outcome_of(campaign, found, typed, out, delta=delta)
        write_outcome(folder, outcome)
    print_json(outcome.summary) if json else _show(outcome.summary)


def typed_by(data: str, known: Vocabulary, *, split: str, shown: bool) -> TypedWords:
    """What a split's clients typed beyond a vocabulary, cut as the keyboard cuts.

    From a source, or from a cache as far as the cache's own vocabulary spells it. Raises: SourceError, CacheError.
    """
    words = frozenset(known.words)
    if (Path(data) / MANIFEST).is_file():
        cache = Cache.open(Path(data))
        spelled = [None] * SPECIALS + list(Vocabulary.load(cache.vocabulary_path).words)
        return cached_typed_words(cache, spelled, words, split=split)
    with reading_bar(shown=shown) as progress:
        source = open_source(data)
        return read_typed_words(
            source, lambda texts: count_words(texts, lowercase=known.lowercase), words, split=split, progress=progress
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


def _warn(campaign: Campaign, typed: TypedWords) -> None:
    """What makes this a simulation, before anything is asked."""
    if campaign.resample_users:
        complaints.print(
            f"[bold]SIMULATED POPULATION[/]: {campaign.users:,} users with the texts of {typed.clients:,} clients, "
            "drawn with replacement; nothing is promised to those clients."
        )
    if campaign.seed is not None:
        complaints.print(f"[bold red]FIXED SEED {campaign.seed}: a simulation; its randomness protects nobody.[/]")


def _show(summary: dict[str, Any]) -> None:
    """The figures for people."""
    coverage, truth = summary["coverage"], summary["simulation"]
    console.print(f"[bold]{summary['words']:,} words[/] from {summary['users']:,} users, each asked once")
    if coverage:
        console.print(
            f"  coverage   {coverage['value']:.1%} ({coverage['low']:.1%} to {coverage['high']:.1%}) of the unknown "
            f"words that users contribute, estimated from {summary['counting_users']:,} others"
        )
    console.print(
        f"  simulation {truth['coverage']:.1%} of all unknown words typed (at most {truth['largest_coverage']:.1%} by "
        f"any {summary['words']:,} words); {truth['words_nobody_typed']:,} words that nobody typed"
    )
    for name, count in truth["words_left_out"].items():
        if count:
            console.print(f"  left out   {count:,} words typed that are {name}")
    for line in summary["guarantee"]["lines"]:
        console.print(f"  {line}", soft_wrap=True, markup=False)
    console.print(f"  {summary['run']}/words.csv", soft_wrap=True)
