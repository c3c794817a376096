"""What a plan says about models: the networks and the settings of the job under its own names, as a device reads them.

What stays the same in a run stands in its plan, as TOML. A device makes the same questions of it as the server, so that
both know what lies where in a report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.cells import Buckets
from tacit.evaluation.counts.device_part import settings_in, table_of
from tacit.evaluation.device_part import ModelsQuestion, NetworkWithParameters, StrategiesQuestion
from tacit.evaluation.personalize.gate import GatePolicy, GateRule
from tacit.evaluation.settings import EvaluationSettings, PersonalizationSettings
from tacit.federation.report_layout import MOST_CELLS, MOST_HISTOGRAMS
from tacit.networks.language_model import LanguageModel, model_of, parameter_count
from tacit.networks.models import MODELS
from tacit.records import from_plain

Computation: TypeAlias = ModelsQuestion | StrategiesQuestion
FloatArray: TypeAlias = NDArray[np.float32]
EVALUATE = "evaluate"  # the kind of plan that has no strategies
MOST_WORDS = 1_000  # of a sentence that judges
MOST_TRAINED = 10**7  # words in all strategies of a personalization together


@dataclass(frozen=True, kw_only=True)
class QuestionOfPlan:
    """What a plan's TOML says, as a device reads it.

    words: how many ids the device's vocabulary has. Raises: InputError where a device cannot know what is asked, or
    would have to run another's code.
    """

    kind: str
    recipe: str
    words: int

    @cached_property
    def networks(self) -> tuple[LanguageModel, ...]:
        """Of each model."""
        return tuple(self._network(each) for each in self._list("models"))

    @cached_property
    def _table(self) -> Mapping[str, Any]:
        return table_of(self.recipe)

    def computation(
        self, models: Sequence[FloatArray], policies: Sequence[Mapping[str, Any]] | None = None
    ) -> Computation:
        """What a task asks of this device. models: the parameters of each, in order. policies: that are to be judged,
        as plain values; None: they are designed of the answers.
        """
        if len(models) != len(self.networks):
            raise InputError(f"{len(models)} models came, and its plan has {len(self.networks)}.")
        found = tuple(
            NetworkWithParameters(*each)
            for each in zip(self.networks, map(_unravelled, self.networks, models), strict=True)
        )
        if self.kind == EVALUATE:
            settings = from_plain(EvaluationSettings, self._own, where="its settings")
            if settings.words > MOST_WORDS:
                raise InputError(f"it reads {settings.words:,} words of a sentence, and a device {MOST_WORDS:,}.")
            return ModelsQuestion(models=found, sentences=settings.sentences, words=settings.words)
        judged = None if policies is None else tuple(map(_policy, policies))
        for rule in (rule for policy in judged or () for rule in policy.rules):
            if rule is not None and rule.strategy >= len(self.settings.strategies):
                raise InputError(f"a policy names strategy {rule.strategy}, which there is not.")
        computation = StrategiesQuestion(model=found[0], settings=self.settings, policies=judged)
        try:
            assert computation.histograms
        except KeyError as error:
            raise InputError(f"a policy is called {error}, which no device knows.") from None
        return computation

    @cached_property
    def settings(self) -> PersonalizationSettings:
        """Of a personalization."""
        if not isinstance(self._own.get("strategies"), dict):
            raise InputError("it says no strategies of a personalization.")
        found = PersonalizationSettings.from_plain(self._own)
        _check_effort(found)
        return found

    @property
    def _own(self) -> Mapping[str, Any]:
        return settings_in(self._table)

    def _network(self, said: Any) -> LanguageModel:
        network = said.get("network") if isinstance(said, dict) else None
        settings = dict(network) if isinstance(network, dict) else {}
        kind = settings.pop("kind", None)
        if kind not in MODELS:
            raise InputError(f"its network is {kind!r}, and this device has the code of {', '.join(MODELS)} alone.")
        return model_of(kind, {**settings, "vocabulary": self.words})

    def _list(self, name: str) -> list[Any]:
        found = self._table.get(name)
        if not isinstance(found, list) or not found:
            raise InputError(f"it names no {name}.")
        return found


def _check_effort(settings: PersonalizationSettings) -> None:
    """That what a few lines of TOML ask for is not beyond all measure. Raises: InputError."""
    strategies, slices = len(settings.strategies), len(settings.tokens) * len(settings.baseline)
    efforts = (
        (
            "histograms",
            strategies * (len(settings.metrics) * (1 + len(settings.slices)) + len(settings.levels)),
            MOST_HISTOGRAMS,
        ),
        ("cells of a histogram", slices * max(map(len, settings.changes.values()), default=1), MOST_CELLS),
        ("words to train on", sum(each.most_tokens for each in settings.strategies), MOST_TRAINED),
    )
    for what, count, most in efforts:
        if count > most:
            raise InputError(f"it asks for {count:,} {what}, and a device does {most:,}.")


def _unravelled(network: LanguageModel, model: FloatArray) -> Any:
    """Raises: InputError where the model has not as many numbers as the network."""
    if (count := parameter_count(network)) != model.size:
        raise InputError(
            f"a model has {model.size:,} numbers, and its network {count:,} with this device's vocabulary."
        )
    shape = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), jax.eval_shape(network.init, jax.random.key(0)))
    return ravel_pytree(shape)[1](jnp.asarray(model))


def _policy(said: Mapping[str, Any]) -> GatePolicy:
    rules = tuple(None if rule is None else GateRule(**rule) for rule in said["rules"])
    return GatePolicy(name=said["name"], buckets=Buckets(said["cuts"]), rules=rules)
