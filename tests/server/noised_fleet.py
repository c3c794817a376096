"""Devices that report nothing, and decryptors that add the noise of a plan: what is summed is their noise alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from tests.server.sealed_fleet import DRAW, SEED, SealedFleet
from tests.support.device.operator import a_plan, privacy_of
from tests.support.server.fleet import KEY
from tests.support.server.sealing import Here
from tests.support.training.tiny import tiny_values

from tacit.device.report_body import body_of
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.signing import digest
from tacit.protocol.train import TrainDocument
from tacit.recipe import Recipe
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.served import aggregation_of
from tacit.server.store import round_states
from tacit.training import RoundPlan
from tacit.training.rounds import TrainingState, initial_state, run_round
from tacit.training.secure_updates import RoundEncoding

GOAL, ROUNDS, PARAMETERS = 2, 4, 3000


def noised_recipe(decryptors: Sequence[Here], honest: int = 1, mechanism: str = "blt-b400", **more: Any) -> Recipe:
    """Of real devices whose sums get noise from all of these decryptors."""
    phones = {
        "population": "keyboards",
        "devices": 1000,
        "decryptors": [f"http://127.0.0.1:1 {each.desk.identity} {each.desk.box}" for each in decryptors],
        "noise": "decryptors",
        "honest_decryptors": honest,
    }
    values = tiny_values(
        Path("cache"),
        deployment=phones,
        aggregation={"kind": "secure"},
        rounds={"rounds": ROUNDS, "report_goal": GOAL, "min_separation": 2},
        privacy={"mechanism": {"name": mechanism}, "noise_multiplier": 6.0},
        **more,
    )
    return Recipe.model_validate({**values, "run": {}})


def plan_of(recipe: Recipe, **changed: Any) -> Plan:
    assert recipe.deployment is not None
    text, kept = recipe.to_toml(), recipe.deployment
    return a_plan(
        "cd" * 32,
        text=text,
        run="noised",
        privacy={**{name: getattr(privacy_of(text), name) for name in ("rounds", "report_goal")}},
        aggregation=aggregation_of(kept, "encoded", threshold=GOAL).model_copy(update=changed),
    )


@dataclass
class NoisedFleet(SealedFleet):
    """Devices of a plan whose decryptors add the noise."""

    honest: int = 1
    mechanism: str = "blt-b400"
    recipe: Recipe = field(init=False)
    rounds: RoundPlan = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self.decryptors:
            each.operator = KEY.public
            each.restart()
        self.recipe = noised_recipe(self.decryptors, self.honest, self.mechanism)
        self.rounds, self.plan = self.recipe.plan(), plan_of(self.recipe)
        signed, population = KEY.plan(self.plan.to_json()).to_json(), self.plan.population
        said = {"population": population, "kind": "train", "plan": signed, "plan_digest": digest(self.plan.to_json())}
        round_states.enter_run(self.store, self.plan.run, **said)

    def sealed(self, task: RoundTask, device: int) -> bytes:
        """A zero update: no rounding is drawn for it."""
        question = task.question(TrainDocument)
        assert question.encoded is not None
        encoded = question.encoded
        how = RoundEncoding(encoding=encoded.encoding(), signs=bytes.fromhex(encoded.signs))
        nothing = np.zeros(encoded.parameters, np.float32)
        words = how.encoded(nothing, norm=np.float32(0), loss=np.float32(0), seed=SEED, client=device)
        return body_of(self.plan, task, ReportBody(words, True, None, None), "", draw=DRAW)

    def first_state(self, collector: ServedRounds) -> TrainingState:
        return initial_state(jnp.zeros(PARAMETERS), self.rounds, collector)

    def released(self, collector: ServedRounds, state: TrainingState, round: int) -> tuple[Any, TrainingState]:
        """(what the round's devices and decryptors make, (PARAMETERS,); the state after it)."""
        found: list[Any] = []
        collect = collector.collect

        def watched(*args: Any, **how: Any) -> Any:
            answered, after = collect(*args, **how)
            found.append(np.asarray(answered.values))
            return answered, after

        collector.collect = watched  # type: ignore[method-assign]
        try:
            state, _ = run_round(state, round, plan=self.rounds, key=bytes(range(16)), collector=collector)
        finally:
            collector.collect = collect  # type: ignore[method-assign]
        collector.released(round)
        return found[-1], state
