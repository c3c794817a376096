"""`tacit.new_recipe`: a recipe for the clients of a cache, a reason beside each value, or why there is none."""

from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from tacit.data import Cache
from tacit.errors import InputError, conceivable, of_type
from tacit.files import PathLike, as_path, check_file, write_whole
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.plan.free_model import free_model_for
from tacit.jobs.result import JobResult
from tacit.privacy.rounding import rounded_up
from tacit.progress import Progress, silent
from tacit.statements.statement import PROTECTIVE_EPSILON

if TYPE_CHECKING:  # JAX comes with them
    from tacit.planning.new_recipe import RecipeProposal
    from tacit.recipe import Recipe
    from tacit.recipe.model_section import ModelSection
    from tacit.reports.blocks import Block


@dataclass(frozen=True, kw_only=True)
class NewRecipe(JobResult):
    """A recipe that was made for a cache, and what is expected of it."""

    proposal: "RecipeProposal"
    path: Path | None  # where it was written

    def __repr__(self) -> str:
        where = "" if self.path is None else f", {str(self.path)!r}"
        return f"NewRecipe({self.recipe.name!r}: {self.proposal.judgement.verdict}{where})"

    @property
    def recipe(self) -> "Recipe":
        """What `tacit.train` takes."""
        return self.proposal.recipe

    def to_toml(self) -> str:
        """The recipe as a file, a reason beside each value."""
        return self.proposal.to_toml()

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit recipe new --json` prints."""
        made, shape = self.proposal, self.proposal.shape
        return {
            "schema": "tacit.recipe",
            "version": 1,
            "path": None if self.path is None else str(self.path),
            "recipe": self.recipe.model_dump(mode="json"),
            "reasons": dict(made.reasons),
            "clients": made.clients,
            "epsilon": made.epsilon,
            "delta": made.delta,
            **made.judgement.to_record(),
            "expected_loss": made.loss,
            "learnt": shape.learnt,
            "kept": shape.share_kept,
            "noise_in_a_weight": shape.noise,
            **({f"gain_{name}": value for name, value in made.gains._asdict().items()} if made.learning.start else {}),
        }

    def blocks(self) -> "list[Block]":
        """What people read of it in a few lines."""
        from tacit.reports.blocks import Paragraph

        made, shape = self.proposal, self.proposal.shape
        times = shape.participation.max_participations
        lines = [
            made.judgement.says(),
            f"{made.clients:,} training clients, epsilon {made.epsilon:g} at delta {made.delta:g}:",
            f"  rounds     {shape.rounds} of {shape.report_goal:,} clients; each takes part {times} times at most, "
            f"{shape.min_separation} rounds apart",
            f"  mechanism  {self.recipe.privacy.mechanism_name}",
        ]
        if not made.learning.start:
            lines.append(f"  lost       about {made.loss:.0%} of what these clients would teach without privacy")
        if made.epsilon > PROTECTIVE_EPSILON:
            lines.append(
                f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself, and the statement will say so"
            )
        if self.path is not None:
            lines.append(f"{self.path} says why each value is what it is; next: tacit train {self.path} --out RUN")
            with_text = "with --public CACHE, of public text over the same words,"
            how = with_text if made.free is None else "without --network-alone"
            lines.append(f"{how} it would be a mixture with counts")
        return [Paragraph(line) for line in lines]


def new_recipe(
    data: Cache | PathLike,
    *,
    epsilon: float,
    delta: float | None = None,
    init: PathLike | None = None,
    public: Cache | PathLike | None = None,
    out: PathLike | None = None,
    name: str | None = None,
    anyway: bool = False,
    progress: Progress = silent,
) -> NewRecipe:
    """A complete recipe for the training clients of a cache at this epsilon; nothing they typed is looked at.

    data: the clients' cache.
    epsilon: what the run may cost a client, at `delta`.
    delta: left out, that of so many clients.
    init: a model of `tacit.pretrain` to begin from, over the same vocabulary.
    public: a cache of public text, whose best free model is measured: over that the recipe is judged. Left out, the
    text that `init` was made of, where it is at hand.
    out: the file to write; None writes none.
    name: what reports call the run.
    anyway: a recipe that is too noisy, too.

    Raises: InputError where it is too noisy, saying which epsilon or how many clients would work, or where `out` is
    there and is something else; CacheError.
    """
    check_asked(epsilon, delta, name)
    from tacit.networks.language_model import parameter_count
    from tacit.planning.new_recipe import Corpus, propose

    cache = open_cache(data)
    path = None if out is None else as_path("out", out)
    if path is not None:
        check_file("--out", path)
    splits = cache.manifest.splits
    corpus = Corpus(cache=cache.path, **{split: splits.get(split, 0) for split in ("train", "validation", "test")})
    first = None if init is None else first_section(as_path("init", init), cache)
    called = f"{cache.path.name}-epsilon-{epsilon:g}" if name is None else name
    words = cache.manifest.vocabulary.size
    made = propose(
        corpus,
        name=called,
        epsilon=float(epsilon),
        size=lambda section: parameter_count(section.settings(words)),
        delta=delta,
        first=first,
    )
    if made.prospect == "too noisy" and not anyway:
        raise InputError(_refusal(made, corpus.cache))
    made = replace(made, free=free_model_for(None if first is None else first.init, public, progress=progress))
    if path is not None:
        write_recipe(path, made.to_toml())
    return NewRecipe(proposal=made, path=path)


def check_asked(epsilon: float, delta: float | None, name: str | None) -> None:
    """Raises: InputError for what is no budget, no delta or no name."""
    for argument, value in (("epsilon", epsilon), ("delta", delta)):
        of_type(argument, value, Real, *((NoneType,) if argument == "delta" else ()))
        conceivable(f"{argument} =", value)
    if not epsilon > 0:
        raise InputError(f"epsilon={epsilon:g} is no budget; give a number above 0: 8 is usual, 1 is strict.")
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"delta={delta:g} is not between 0 and 1; leave it out for that of the clients.")
    of_type("name", name, str, NoneType)
    conceivable("name =", name)
    if name == "":
        raise InputError("name='' is empty, and reports call the run by it; give one, or leave it out.")


def first_section(path: Path, cache: Cache) -> "ModelSection":
    """The section of a model to begin from. Raises: InputError where it is not of public text, or of other words."""
    from tacit.keyboard.model_folder import load_first_model, load_model
    from tacit.recipe.model_section import section_for
    from tacit.text.vocabulary import Vocabulary

    network = load_model(path).network
    load_first_model(path, network, Vocabulary.from_json(cache.vocabulary_json))
    return section_for(network).model_copy(update={"init": path})


def write_recipe(path: Path, text: str) -> None:
    """A recipe as a file. Raises: InputError where another file is there: it may have been edited."""
    if path.is_file() and path.read_bytes() != text.encode():
        raise InputError(f"'{path}' is there and says something else, perhaps your own changes; give another --out.")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())


def _refusal(made: "RecipeProposal", cache: Path) -> str:
    """Why it is too noisy, and what would work."""
    if made.learning.start:
        why = (
            "would not be better than the public model alone, which costs no privacy: take that as it is "
            "(`tacit evaluate` tells how good it is)"
        )
    else:
        why = f"would end with about {made.shape.expected:.0%} of what there is to learn, the commonest words"
    ways = []
    if (epsilon := made.working_epsilon) is not None:
        least = made.written_epsilon
        written = (
            f" (from epsilon {rounded_up(least)} on a recipe is written too: MAY NOT PAY OFF)"
            if least is not None and least < epsilon
            else ""
        )
        ways.append(f"epsilon {rounded_up(epsilon)} for these clients{written}")
    if (clients := made.working_clients) is not None:
        ways.append(f"{clients:,} training clients at this epsilon")
    if not made.learning.start:
        ways.append("a model of public text to begin from (`tacit pretrain`, then --init)")
    return (
        f"TOO NOISY. At epsilon {made.epsilon:g}, a model of the {made.clients:,} training clients of '{cache}' {why}. "
        f"What would work: {'; '.join(ways)}; --anyway writes the recipe all the same."
    )
