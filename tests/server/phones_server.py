"""A server of a run in a thread, and its devices in another."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
from tests.support.server.loopback import swarming
from tests.support.training.tiny import tiny_cache, tiny_recipe
from tests.support.waiting import until
from tests.swarm import SwarmSettings

import tacit
from tacit.errors import StoreError
from tacit.recipe import Recipe
from tacit.server.serve import Address, ServeResult, Serving
from tacit.server.store import round_states
from tacit.server.store.store import Store

PHONES = {"population": "phones", "devices": 60, "pause_minutes": 0.0, "over_selection": 2.0}
QUICK = {"selecting_minutes": 0.1, "reporting_minutes": 0.1}  # a round that nobody can take part in is given up soon
ROUNDS, TOKEN = 9, "the administrator's own token"


def recipe_for_phones(folder: Path) -> Recipe:
    cache = tiny_cache(folder / "cache", {"validation": 5, "test": 6})
    made = tiny_recipe(cache.path, deployment=PHONES | QUICK, rounds={"rounds": ROUNDS})
    return made.model_copy(update={"run": made.run.model_copy(update={"seed": None})})


class Server:
    """A server of the run with its devices, for as long as the block lasts."""

    def __init__(self, recipe: Recipe, out: Path) -> None:
        self.recipe, self.out = recipe, out
        self.stop, self.ready = threading.Event(), threading.Event()
        self.told: list[Serving] = []
        self.ended: list[ServeResult | StoreError] = []

    def serve(self) -> None:
        def serving(each: Serving) -> None:
            self.told.append(each)
            self.ready.set()

        options = {"workers": 1, "address": Address(port=0), "admin_token": TOKEN}
        try:
            self.ended.append(tacit.serve([self.recipe], self.out, serving=serving, stop=self.stop, **options))  # type: ignore[arg-type]
        except StoreError as error:
            self.ended.append(error)

    def asks(self, method: str, path: str) -> httpx.Response:
        """As the administrator."""
        right = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.request(method, self.told[0].url + path, headers=right, timeout=60).raise_for_status()

    def released(self) -> list[int]:
        with closing(Store.open(f"sqlite:///{self.out / 'store.db'}")) as store:
            return [each.round for each in round_states.attempts(store, "tiny") if each.state == round_states.RELEASED]

    def open_rounds(self) -> int:
        rounds = self.asks("GET", "/admin/runs/tiny/rounds").json()["rounds"]
        return sum(each["state"] not in (round_states.RELEASED, round_states.ABANDONED) for each in rounds)


@contextmanager
def served(recipe: Recipe, out: Path, *, devices: bool = True) -> Iterator[Server]:
    server = Server(recipe, out)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        until(lambda: server.ready.is_set() or server.ended)
        if not devices or server.ended:
            yield server
            return
        (told,) = server.told
        with swarming(
            SwarmSettings(server=told.url, operator_key=told.operator_key, population="phones", devices=60, waits=0.1)
        ):
            yield server
    finally:
        server.stop.set()
        thread.join()
