"""Plans of rounds whose updates are encoded."""

from typing import Any

from tests.support.training.tiny import (
    MECHANISMS,
    tiny_recipe,
)

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.training import RoundPlan

KEY = bytes(range(16))
SECURE = {"aggregation": {"kind": "secure"}}
ONE = Hardware(workers=1)


def plan_of(cache: Cache, mechanism: str = "blt", **sections: Any) -> RoundPlan:
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS[mechanism], **{**SECURE, **sections})
    return recipe.designed().plan(recipe.matrix())
