"""A recipe of a whole predictor: a public n-gram model, private counts that bend it, and a network beside it.

One budget pays for all of it. The counts take a share of the zCDP, the rounds of `[training]` the rest; without that
section there are no rounds, the network is of public text, and the counts have everything.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import tomli_w
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from tacit.errors import InputError, RecipeError
from tacit.evaluation.counts.device_part import StatisticSum, SumsQuestion
from tacit.files import PathLike, as_path, read_bounded
from tacit.parsing import parsed_toml
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.recipe.changes import made_with, options, said
from tacit.recipe.complaint import first_complaint
from tacit.recipe.experiment import Recipe, differences, without_none
from tacit.recipe.recipe_files import read_recipe
from tacit.recipe.sections import BELOW, NOISES, DataSection, RunSection, Section

SECTION = "mixture"  # by which such a recipe is known
WORDS, PAIRS = "word_counts", "word_pairs"  # the sums that a mixture is bent by


def _one_or_several(value: object) -> object:
    return (value,) if isinstance(value, str | Path) else tuple(value) if isinstance(value, list) else value


def _a_list(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(
            f"mixture.sums = {value!r} is one text, and a list of sums is asked for; write "
            "`--set 'mixture.sums=[\"word_counts:5000 norm 20 unit 16\"]'`, say."
        )
    return value


class MixtureSection(Section):
    """What the predictor is made of."""

    public: Path = Field(strict=False)  # a cache of public text over the same words: it sets a public network's weight
    # Of `tacit ngram`, one or several, which become one model; left out, `public` is counted.
    ngram: Annotated[tuple[Annotated[Path, Field(strict=False)], ...], BeforeValidator(_one_or_several)] = ()
    network: Path | None = Field(default=None, strict=False)  # of `tacit pretrain`; left out, there is none
    weight: float | None = Field(default=None, gt=0, le=1)  # the network's; left out, 0.6 after rounds
    # As `tacit count` reads them.
    sums: Annotated[tuple[str, ...], BeforeValidator(_a_list)] = Field(default=(), strict=False)
    cells: Path | None = Field(default=None, strict=False)  # or a list of `tacit plan counts --cells`
    counts_share: float = Field(default=1.0, gt=0, le=1)  # of the zCDP; the rest is the rounds'

    @model_validator(mode="after")
    def _counts_what_a_mixture_is_bent_by(self) -> Self:
        if (self.cells is None) == (not self.sums):
            said = "neither is given" if self.cells is None else "both are given"
            raise ValueError(f"mixture.sums and mixture.cells each say what is counted, and {said}; give one.")
        try:
            named = [str(each) for each in SumsQuestion(self.parsed_sums()).statistics] if self.sums else []
        except InputError as error:
            raise ValueError(f"mixture.sums: {error}") from error
        if self.sums and WORDS not in named:
            raise ValueError(
                f"mixture.sums={list(self.sums)} lack {WORDS}, by which words are bent; add '{WORDS}:5000 norm 20 unit "
                "16', say."
            )
        if len(set(self.ngram)) < len(self.ngram):
            raise ValueError(f"mixture.ngram={list(map(str, self.ngram))} names a model twice; name each once.")
        if self.weight is not None and self.network is None:
            raise ValueError(f"mixture.weight={self.weight:g} is a network's, and none is named; give mixture.network.")
        return self

    def parsed_sums(self) -> tuple[StatisticSum, ...]:
        """What devices count. Raises: InputError naming what cannot be read."""
        return tuple(map(StatisticSum.from_text, self.sums))


class BudgetSection(Section):
    """What everything together may cost a client."""

    epsilon: float | None = Field(default=None, gt=0)  # at delta
    zcdp: float | None = Field(default=None, gt=0)  # or rho
    delta: float | None = Field(default=None, gt=0, lt=1)  # left out: below 1/population, see privacy.delta
    population: Path | None = Field(default=None, strict=False)  # in whose budget counts and rounds are entered

    @model_validator(mode="after")
    def _says_one_price(self) -> Self:
        if (self.epsilon is None) == (self.zcdp is None):
            said = "both are given" if self.epsilon is not None else "neither is given"
            raise ValueError(f"privacy.epsilon and privacy.zcdp each say the whole price, and {said}; give one.")
        return self

    def rho(self, clients: int) -> float:
        """The zCDP of everything, for so many clients."""
        if self.zcdp is not None:
            return self.zcdp
        assert self.epsilon is not None  # one of the two is
        return zcdp_for_epsilon(self.epsilon, self.delta_for(clients)) * BELOW

    def delta_for(self, clients: int) -> float:
        """Its own, or else the default for so many clients."""
        return default_delta(clients) if self.delta is None else self.delta


class HeldOutSection(Section):
    """On how many held-out clients each part is measured; looking at them has no guarantee, and the page says so."""

    test_clients: int = Field(default=200, ge=2)  # an interval needs two
    sentences: int = Field(default=16, ge=1, le=1_000)  # of each


class MixtureRecipe(Section):
    """A whole predictor."""

    name: str = Field(min_length=1)
    data: DataSection
    mixture: MixtureSection
    privacy: BudgetSection
    training: dict[str, Any] | None = None  # the sections of a recipe; its text, its noise and its seed follow
    evaluation: HeldOutSection = HeldOutSection()
    run: RunSection = RunSection()

    @model_validator(mode="after")
    def _divides_its_budget(self) -> Self:
        share = self.mixture.counts_share
        if self.training is None and share < 1:
            raise ValueError(
                f"mixture.counts_share={share:g} leaves the rest to rounds, and there are none; add [training], or "
                "drop mixture.counts_share."
            )
        if self.training is not None and share == 1:
            raise ValueError(
                "mixture.counts_share=1 leaves nothing to the rounds of [training]; give 0.5, say, or drop [training]."
            )
        if self.training is not None and self.mixture.network is None:
            raise ValueError(
                "the rounds of [training] begin from a network of public text, and none is named; give mixture.network."
            )
        return self

    @classmethod
    def from_argument(cls, recipe: object) -> Self:
        """A recipe as it is, or else the one in a file. Raises: InputError for what is neither, RecipeError."""
        return recipe if isinstance(recipe, cls) else cls.load(as_path("recipe", recipe))

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Of a file. Raises: RecipeError naming file, key and rule."""
        path = as_path("path", path)
        text = read_recipe(path)
        if text is None:
            raise RecipeError(f"there is no recipe '{path}'; give a file in TOML.")
        return cls.from_toml(text, where=str(path))

    @classmethod
    def from_toml(cls, text: str, *, where: str = "recipe") -> Self:
        """Raises: RecipeError naming `where`, the key and the rule."""
        try:
            values = parsed_toml(text)
        except ValueError as error:
            raise RecipeError(f"{where} is not TOML: {error}; mend that line.") from error
        return cls._from_values(values, where)

    @classmethod
    def _from_values(cls, values: Mapping[str, Any], where: str) -> Self:
        try:
            recipe = cls.model_validate(values)
        except ValidationError as error:
            raise RecipeError(f"{where}: {first_complaint(error, cls, values)}") from error
        recipe.rounds(1, where=where)  # refuses here what is wrong in [training], at the largest delta
        return recipe

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """See `Recipe.changed`; the rounds' keys are below "training"."""
        given = without_none(self.model_dump(mode="json", exclude_unset=True))
        where = f"the recipe {self.name!r} with {said(changes)}"
        for key, value in changes.items():
            self._check_has_rounds(key, value, where)
        return made_with(lambda values: self._from_values(values, where), given, changes)

    def _check_has_rounds(self, key: str, value: Any, where: str) -> None:
        """RecipeError for a key of rounds that there are none of, or that is not said to be theirs."""
        section = key.partition(".")[0]
        of_rounds = section in Recipe.model_fields.keys() - type(self).model_fields.keys()
        if self.training is not None and of_rounds:
            raise RecipeError(
                f"{where}: {key} is a key of rounds, and those of a mixture are below 'training'. This works: "
                f"`{options({f'training.{key}': value})}`."
            )
        shared = key == "mixture.counts_share" and value not in (None, 1)
        if self.training is None and (of_rounds or shared or (section == "training" and value is not None)):
            network = self.mixture.network
            given = {
                "data": self.data.cache,
                "epsilon": "8" if self.privacy.epsilon is None else f"{self.privacy.epsilon:g}",
                "public": self.mixture.public,
                "init": "NETWORK" if network is None else network,
                "training-share": 0.5,
            }
            asked = " ".join(f"--{name} {shlex.quote(str(each))}" for name, each in given.items())
            raise RecipeError(
                f"{where}: {key} is a key of a recipe with rounds, and this one makes counts alone. `tacit recipe new "
                f"{asked}` writes one with both."
            )

    def to_toml(self) -> str:
        """Every key with its value; `from_toml` gives the same recipe back."""
        return tomli_w.dumps(without_none(self.model_dump(mode="json")))

    def differences(self, other: Self) -> list[str]:
        """See `Recipe.differences`."""
        return differences(self, other)

    def counts_rho(self, clients: int) -> float:
        """The zCDP of the counts, for so many clients."""
        return self.privacy.rho(clients) * self.mixture.counts_share

    def rounds(self, clients: int, *, where: str = "recipe") -> Recipe | None:
        """What `[training]` trains for so many clients, from the public network; None where there are no rounds.

        Raises: RecipeError naming the key, and one that is the mixture's to say.
        """
        if self.training is None:
            return None
        given = dict(self.training)
        privacy, model = given.get("privacy", {}), given.get("model", {})
        said = [f"training.{name}" for name in ("name", "data", "run", "deployment") if name in given]
        if isinstance(privacy, Mapping):
            said += [f"training.privacy.{name}" for name in (*NOISES, "delta", "population") if name in privacy]
        if isinstance(model, Mapping) and "init" in model:
            said.append("training.model.init")
        if said:
            raise RecipeError(
                f"{where}: {said[0]} follows from the mixture's own sections (mixture.network, [data], [privacy], "
                "[run]), and counts are of a simulation; drop it."
            )
        if not isinstance(privacy, Mapping) or not isinstance(model, Mapping):
            raise RecipeError(f"{where}: training.privacy and training.model are sections; write [training.privacy].")
        values = {
            **given,
            "name": f"{self.name}, rounds",
            "data": {"cache": str(self.data.cache)},
            "model": {**model, "init": str(self.mixture.network)},
            "privacy": {
                **privacy,
                "zcdp": self.privacy.rho(clients) * (1 - self.mixture.counts_share),
                "delta": self.privacy.delta_for(clients),
                **({} if self.privacy.population is None else {"population": str(self.privacy.population)}),
            },
            "run": self.run.model_dump(exclude_none=True),
        }
        return Recipe.from_toml(tomli_w.dumps(values), where=f"{where}, [training]")


def is_mixture(recipe: object) -> bool:
    """Whether the path of a recipe leads to one of a mixture; of what cannot be read, that it is none."""
    try:
        return SECTION in parsed_toml(read_bounded(as_path("recipe", recipe)).decode("utf-8-sig"))
    except (OSError, ValueError, InputError):
        return False
