"""`tacit type`: what a model changes for somebody who types, against another, on the same text with the same slips."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, Population, Price, SecureOptions, command
from tacit.compute import Hardware

if TYPE_CHECKING:  # numba would come with it
    from tacit.evaluation.type_ab.settings import TypingSettings


@dataclass(frozen=True, kw_only=True)
class TypingOptions:
    """Who types what, and on which keyboard."""

    split_name: Annotated[str, typer.Option(help="Whose text is typed: test, validation or train.")] = "test"
    users: Annotated[int, typer.Option(help="Users who type; 0 is all of the split.")] = 0
    sentences: Annotated[int, typer.Option(help="Sentences of a user, evenly spread over its text; 0 is all.")] = 20
    words: Annotated[int, typer.Option(help="Words of a sentence, its first; 0 is all.")] = 40
    layout: Annotated[str, typer.Option(help="The keys: qwerty or qwerty-es.")] = "qwerty"
    condition: Annotated[
        str,
        typer.Option(
            help="network: the model is in the decoder's search; rescore: a trigram searches and the model ranks anew; "
            "search: a trigram does both and the model only suggests."
        ),
    ] = "network"
    search: Annotated[
        str | None, typer.Option(help="That trigram, as trigram:CACHE; left out, that of the cache in --data.")
    ] = None
    more_words: Annotated[
        str | None, typer.Option(help="A finished discovery run, whose words keyboard B knows beside its model's.")
    ] = None
    compose: Annotated[
        float | None, typer.Option(help="Offer phrases in the line from this probability on; left out, none.")
    ] = None
    language_weight: Annotated[
        float | None, typer.Option(help="Of the model against the taps; left out, the decoder's own.")
    ] = None
    sensitivity: Annotated[
        int, typer.Option(help="So many users type again with every parameter of the typist halved and doubled.")
    ] = 0

    def settings(self) -> "TypingSettings":
        """Raises: InputError for what cannot be."""
        from tacit.data.typed_sentences import Share
        from tacit.evaluation.type_ab.settings import TypingSettings

        share = Share(split=self.split_name, users=self.users, sentences=self.sentences, words=self.words)
        return TypingSettings.on(
            self.layout,
            share=share,
            condition=self.condition,
            search=self.search,
            more_words=self.more_words,
            compose=self.compose,
            language_weight=self.language_weight,
            sensitivity=self.sensitivity,
        )


@command
def type_ab(
    a: Annotated[str, typer.Argument(help="A run, a model folder, an exported folder, or trigram:CACHE.")],
    b: Annotated[str, typer.Argument(help="The model that may take its place, the same way.")],
    data: Annotated[
        str, typer.Option(help="The text: a source as of `tacit data import`, or a cache as far as it spells words.")
    ],
    out: Annotated[Path, typer.Option(help="The run folder to make, or to go on with.")],
    options: TypingOptions,
    price: Price,
    secure: SecureOptions,
    seed: Annotated[int, typer.Option(help="Of the users and their slips, the same on A and on B.")] = 0,
    population: Population = None,
    noise_seed: Annotated[
        int | None, typer.Option(help="Fix the noise of the release: who knows the seed can take it away.")
    ] = None,
    workers: Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Never changes the result.")] = 0,
    json: Json = False,
) -> None:
    """Have simulated users type held-out text on two keyboards, and say whether B is improved, neutral or worse."""
    with display(json, out) as progress:
        result = tacit.type_ab(
            a,
            b,
            data,
            out,
            settings=options.settings(),
            release=price.release(secure.of()),
            population=population,
            seed=seed,
            noise_seed=noise_seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say_blocks(result, json)
