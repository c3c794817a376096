"""What a person sees while words are looked for: a line that moves on a terminal, elsewhere a line for each layer."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from tacit.cli.bars import counting_bar
from tacit.cli.console import complaints

if TYPE_CHECKING:  # Numba would come with them
    from tacit.discovery.rounds import Layer
    from tacit.discovery.settings import Campaign

BEST = 5  # words shown, those with most votes


class DiscoveryProgress:
    """Prefixes alive, users asked, and the words with most votes so far."""

    def __init__(self, campaign: "Campaign", *, quiet: bool = False) -> None:
        self._campaign, self._quiet = campaign, quiet
        self._votes: dict[str, int] = {}
        self._users = 0
        self._bar = counting_bar(quiet=quiet, says=True)
        self._task = self._bar.add_task("layers", total=campaign.passes * campaign.depth, shown="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def layer_done(self, layer: "Layer") -> None:
        """Show what a layer left."""
        self._votes.update(zip(layer.words, layer.word_votes, strict=True))
        asked = layer.release
        self._users += asked.users
        ranked = sorted(self._votes, key=lambda word: -self._votes[word])[:BEST]
        best = [word if word.isprintable() else ascii(word) for word in ranked]  # noise may have a carriage return
        shown = (
            f"pass {asked.turn} layer {asked.layer}: {len(layer.prefixes):,} prefixes alive, {self._users:,} users, "
            f"{len(self._votes):,} words {' '.join(best)}"
        )
        done = (asked.turn - 1) * self._campaign.depth + asked.layer
        self._bar.update(self._task, completed=done, shown=shown)
        if self._bar.disable and not self._quiet:
            complaints.print(shown, markup=False)
