"""`tacit serve` of one round, for pages that come from elsewhere: `elsewhere.browser.test.ts` and others run it.

`python real_server.py FOLDER ORIGIN...` exports a tiny model, serves a round of two reports and sends one of them, of a
device that is no page. It writes a line of JSON when devices can come, and one when the round is released.
"""

import json
import sys
import threading
from pathlib import Path

from tests.support.training.tiny import SETTINGS, tiny_cache, tiny_recipe
from tests.swarm import Swarm, SwarmSettings

import tacit
from tacit.server.serve import Serving
from tacit.training.pretrain import Pretraining

PATIENCE = 900.0  # seconds for which the other device lives
SECTIONS = {
    "rounds": {"rounds": 1, "report_goal": 2, "min_separation": 1},
    "privacy": {"mechanism": {"name": "independent"}, "noise_multiplier": 1.0},
    "deployment": {"population": "default", "devices": 40, "pause_minutes": 0.0, "over_selection": 1.0},
}


def main(folder: Path, origins: list[str]) -> None:
    """Until the round is released, or the process is ended."""
    cache = tiny_cache(folder / "cache")
    settings = Pretraining(sentences=64, every=64)
    tacit.pretrain(cache, folder / "start", model=SETTINGS, settings=settings, declared_public=True)
    tacit.export(folder / "start", folder / "phone")
    made = tiny_recipe(cache.path, **SECTIONS)
    recipe = made.model_copy(update={"run": made.run.model_copy(update={"seed": None})})  # or devices know the noise

    def serving(told: Serving) -> None:
        swarm = SwarmSettings(
            server=told.url, operator_key=told.operator_key, population="default", devices=1, waits=0.1, tasks=1
        )
        threading.Thread(target=lambda: Swarm(swarm).run(PATIENCE), daemon=True).start()
        say(server=told.url, key=told.operator_key, phone=str(folder / "phone"))

    address = tacit.Address(port=0)
    done = tacit.serve([recipe], folder / "served", workers=1, address=address, web_origins=origins, serving=serving)
    checked = tacit.verify_log(done.runs[0], folder / "served" / "operator.log")
    say(finished=done.finished, complaints=[each.complaint for each in checked if not each.holds])


def say(**what: object) -> None:
    """A line of JSON."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
