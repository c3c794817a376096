"""`tacit discover`: the words that people type and a vocabulary lacks, without seeing anyone's text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.bars import import_bar
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.discover_options import CampaignOptions
from tacit.cli.discover_progress import DiscoveryProgress
from tacit.cli.options import with_options
from tacit.data import Cache, open_source
from tacit.data.manifest import MANIFEST
from tacit.data.unknown_words import TypedWords, cached_typed_words, read_typed_words
from tacit.errors import InputError
from tacit.keyboard.vocabulary import SPECIALS, Vocabulary, count_words
from tacit.privacy.rounding import rounded_up

if TYPE_CHECKING:  # Numba would come with them
    from tacit.discovery.settings import Campaign


@speaks_plainly
@with_options
def discover_words(
    data: Annotated[
        str, typer.Option(help="The clients: a source as of `tacit data import`, or a cache with a larger vocabulary.")
    ],
    vocabulary: Annotated[
        Path, typer.Option(help="The vocabulary.json that phones have; its words are never reported.")
    ],
    out: Annotated[Path, typer.Option(help="The campaign's folder; an interrupted one goes on where it was.")],
    options: CampaignOptions,
    delta: Annotated[float, typer.Option(help="Where the central epsilon is read; it changes nothing else.")] = 1e-10,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Find frequent unknown words under local differential privacy, layer by layer of a trie."""
    from tacit.discovery.campaign_folder import CampaignFolder
    from tacit.discovery.rounds import discover
    from tacit.jobs.discover import outcome_of, write_outcome

    campaign = options.campaign()
    if not 0 < delta < 1:
        raise InputError(f"--delta {delta:g} is not between 0 and 1; 1e-10 is usual.")
    known = Vocabulary.load(vocabulary)
    asked = {**campaign.to_record(), "vocabulary_sha256": known.sha256}
    CampaignFolder.check(out, asked)  # before all clients are read
    typed = typed_by(data, known, split="train", shown=not json)
    campaign.check_population(typed.clients)  # before there is a folder
    if not json:
        _warn(campaign, typed)
    with CampaignFolder.opened(out, {**asked, "population_sha256": typed.sha256}) as folder:
        with DiscoveryProgress(campaign, quiet=json) as progress:
            found = discover(
                campaign,
                typed,
                folder,
                assignment=folder.assignment,
                known=frozenset(known.words),
                watcher=progress.layer_done,
            )
        outcome = outcome_of(campaign, found, typed, folder, known=known, delta=delta)
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
    with import_bar(shown=shown) as progress:
        source = open_source(data)
        return read_typed_words(
            source, lambda texts: count_words(texts, lowercase=known.lowercase), words, split=split, progress=progress
        )


def _warn(campaign: "Campaign", typed: TypedWords) -> None:
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
    guarantee = summary["guarantee"]
    for level, condition in (
        ("local", ""),
        ("central", f" at delta {guarantee['central_delta']:g}, if nobody sees reports before they are summed"),
    ):
        item, user = (rounded_up(guarantee[f"{level}_epsilon_{unit}"]) for unit in ("item", "user"))
        console.print(f"  {level:10} epsilon {item} for one answer, {user} for all of a person{condition}")
    anonymity = summary["anonymity"]
    console.print(
        f"  anonymity  fewer than {anonymity['k']} contributors: output with probability at most {anonymity['delta']:g}"
        if anonymity
        else "  anonymity  none was asked for: rare words can be output"
    )
    for name in ("words.csv", "report/statement.md"):
        console.print(f"  {summary['run']}/{name}", soft_wrap=True)
