"""`tacit vocab`: a vocabulary that learns the words a campaign found."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.console import console, print_json, speaks_plainly
from tacit.cli.discover import typed_by
from tacit.errors import InputError, RunError
from tacit.keyboard.vocabulary import Provenance, ProvenanceKind, Vocabulary
from tacit.keyboard.words import is_placeholder, marked, pieces

if TYPE_CHECKING:  # Numba would come with it
    from tacit.discovery.campaign_folder import CampaignFolder

app = typer.Typer(help="Make and extend vocabularies.", no_args_is_help=True)


@app.callback()
def _vocab() -> None:
    """A group, also while it has one command."""


@app.command("extend")
@speaks_plainly
def extend(
    vocabulary: Annotated[Path, typer.Option(help="The vocabulary that the campaign started from.")],
    words: Annotated[Path, typer.Option(help="The folder of a finished campaign (`tacit discover --out`).")],
    out: Annotated[Path, typer.Option(help="Where the new vocabulary.json goes; a file there is not replaced.")],
    data: Annotated[
        str | None, typer.Option(help="Clients to measure the out-of-vocabulary rate on, before and after.")
    ] = None,
    split: Annotated[str, typer.Option(help="Which of those clients: those that the campaign did not ask.")] = "test",
    most: Annotated[int | None, typer.Option(help="Take at most so many words, those with the highest counts.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Add the words that a campaign found, and say what that changes for people whose text it never saw."""
    from tacit.discovery.campaign_folder import CampaignFolder

    if out.exists():
        raise InputError(f"{out} exists, and a vocabulary is never replaced; give another --out or remove it.")
    if most is not None and most < 1:
        raise InputError(f"--most {most} takes no word; ask for 1 or more.")
    old = Vocabulary.load(vocabulary)
    folder = CampaignFolder.reading(words)
    if folder.settings.get("vocabulary_sha256") != old.sha256:
        raise InputError(
            f"the campaign {words} started from another vocabulary than {vocabulary}; give the one it started from."
        )
    ranked = _ranked(folder)
    taken = [word for word in ranked if is_word(word, lowercase=old.lowercase)]
    new = extended(old, taken[:most], _origin(folder, old))
    out.parent.mkdir(parents=True, exist_ok=True)
    new.save(out)
    facts: dict[str, Any] = {
        "vocabulary": str(out),
        "size": new.size,
        "added": len(new.words) - len(old.words),
        "not_words": len(ranked) - len(taken),
        "provenance": new.provenance.kind,
        "sha256": new.sha256,
    }
    if data is not None:
        typed = typed_by(data, old, split=split, shown=not json)
        learned = frozenset(new.words) - frozenset(old.words)
        facts["held_out"] = {
            "split": split,
            "clients": typed.clients,
            "words_typed": int(typed.typed.sum()),
            "oov_rate_before": typed.oov_rate(),
            "oov_rate_after": typed.oov_rate(learned),
        }
    print_json(facts) if json else _show(facts)


def is_word(word: str, *, lowercase: bool) -> bool:
    """Whether any text is ever cut into this one word; noise often is not (`ab;`, `7.`)."""
    return not is_placeholder(word) and pieces(marked(word, lowercase=lowercase)) == [word]


def extended(old: Vocabulary, learned: list[str], provenance: Provenance) -> Vocabulary:
    """The old words with their old ids, and the learned ones after them; InputError when there is none to add."""
    fresh = [word for word in dict.fromkeys(learned) if word not in set(old.words)]
    if not fresh:
        raise InputError("the campaign found no word that could be added; ask more users, or a larger epsilon.")
    return Vocabulary(words=(*old.words, *fresh), provenance=provenance, lowercase=old.lowercase)


def _ranked(folder: "CampaignFolder") -> list[str]:
    """The found words by estimated count where users counted, else by votes."""
    from tacit.jobs.discover import RESULT

    try:
        found = json_format.loads((folder.path / RESULT).read_text(encoding="utf-8"))["found"]
    except FileNotFoundError:
        raise RunError(f"'{folder.path}' is not finished; run its `tacit discover` again to go on.") from None
    except (ValueError, KeyError) as error:
        raise RunError(f"'{folder.path / RESULT}' is damaged ({error}); run its `tacit discover` again.") from error
    return [row["word"] for row in sorted(found, key=lambda row: -row.get("count", row["votes"]))]


def _origin(folder: "CampaignFolder", old: Vocabulary) -> Provenance:
    """Where the words come from now; private where a simulation's choices leave the campaign's clients unprotected."""
    from tacit.discovery.settings import Campaign

    beside = ("format", "assignment", "population_sha256", "vocabulary_sha256")
    campaign = Campaign.from_record({name: value for name, value in folder.settings.items() if name not in beside})
    unprotected = campaign.seed is not None or campaign.resample_users
    terms = campaign.terms
    how = f"words discovered with local epsilon {terms.local_epsilon:g} a report, {terms.contributions} a user"
    if unprotected:
        how += " (a simulation: fixed seed or resampled users, so nothing is promised to its clients)"
    kind: ProvenanceKind = "private" if unprotected or old.provenance.kind == "private" else "discovered"
    return Provenance(kind=kind, description=f"{old.provenance.description}; and {how}")


def _show(facts: dict[str, Any]) -> None:
    console.print(f"[bold]{facts['vocabulary']}[/]: {facts['size']:,} ids, {facts['added']:,} of them new")
    if facts["not_words"]:
        console.print(f"  left out   {facts['not_words']:,} that no text is ever cut into")
    if held := facts.get("held_out"):
        console.print(
            f"  {held['oov_rate_before']:.2%} of words were out of vocabulary, now {held['oov_rate_after']:.2%} "
            f"({held['words_typed']:,} words of {held['clients']:,} {held['split']} clients)"
        )
