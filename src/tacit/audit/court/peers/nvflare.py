"""NVFlare: the sparse vector filter at its defaults, and the percentile filter, which promises nothing."""

import importlib.metadata
import json
import logging
import sys
from typing import Any

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

WEIGHTS = 20_000
SIDES = (("absent", -1.0), ("present", 1.0))


def filtered(kind: Any, weights: Any) -> DXO:
    return kind().process_dxo(DXO(DataKind.WEIGHT_DIFF, data={"w": np.array(weights)}), Shareable(), FLContext())


def sparse(runs: int) -> dict[str, Any]:
    """What the filter says that a call spent; a release that says nothing of it has the epsilon it was given."""
    end = SVTPrivacy().gamma
    said = filtered(SVTPrivacy, np.full(WEIGHTS, end)).meta.get("svt_privacy_budget", {})
    return {
        "case": "sparse",
        "subject": f"the sparse vector filter on {WEIGHTS:,} weights, defaults",
        "claim": said.get("epsilon_total", SVTPrivacy().epsilon),
        "delta": 0.0,
        **{
            side: [float(filtered(SVTPrivacy, np.full(WEIGHTS, sign * end)).data["w"].sum()) for _ in range(runs)]
            for side, sign in SIDES
        },
    }


def percentile(runs: int) -> dict[str, Any]:
    return {
        "case": "percentile",
        "subject": "the percentile filter, defaults",
        "claim": None,
        "delta": 1e-5,
        **{
            side: [float(filtered(PercentilePrivacy, [sign, 0.5, 0.25]).data["w"].sum()) for _ in range(runs)]
            for side, sign in SIDES
        },
    }


settings = json.load(sys.stdin)
logging.disable(logging.CRITICAL)
np.random.seed(settings["seed"])
shared = {
    "measure": "epsilon",
    "law": "any",
    "threat_model": "what one client sends is seen; any update may be another",
}
cases = [{**shared, **case(min(settings["runs"], 1000))} for case in (sparse, percentile)]
package = f"nvflare {importlib.metadata.version('nvflare')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
