"""A timer keeps what its rounds allow, whatever was planned: planned, promised and realised participation of real runs.

Training on the population simulator: the training clients of a cache are its devices, each with hours of its own and a
timer, and the first reports of a round are used. Nobody enforces the plan's min separation. Of every run: the plan
(min separation, participations), what the timer promises by the times of the rounds (arXiv:2305.18465, section 2.2:
`timed_participation`), what the log of participations realised, the guarantee of each, and what the
privacy statement says. One plan is what the simulator gave before (`tacit simulate`, another seed); one is too
optimistic: it takes the clients divided by the report goal for the separation, and its statement warns.

    python benchmarks/utility/realised_participation.py --cache caches/blogs2k --runs runs/realised
    ... --table                          from finished cells
    ... --runs runs/smoke --smoke        a few minutes: does it work

The cache: `tacit data import DATA/blogs-en --out caches/blogs2k --vocabulary-size 2000 --vocabulary-from PUBLIC`.
Takes about 5 minutes of CPU time. Killed at any time, the same command goes on.
"""

import argparse
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from cells import Cell, Played, cell, chosen, figure, options, play, read, small

from tacit.data import Cache
from tacit.population.devices import Population, RoundRules
from tacit.population.settings import SimulationSettings
from tacit.population.simulation import Simulation, simulate
from tacit.privacy import Participation
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.accounts import accounts_of
from tacit.statements.run_facts import statement_of
from tacit.training import key_from_seed
from tacit.training.randomness import seed_for

REPORT_GOAL, LARGER = 20, 6500
NOISE = 4 * 7 * REPORT_GOAL / LARGER  # four times the papers' noise on the mean; see pretraining_saves_rounds.py
TIMERS = (24.0, 72.0)  # hours
REHEARSAL = 1_000_003  # the seed of the simulation that the sober plan is made from


def main() -> None:
    parser = options(__doc__, seeds=1, rounds=300)
    parser.add_argument("--timers", type=float, nargs="+", default=TIMERS, metavar="HOURS")
    asked = parser.parse_args()
    if asked.smoke:
        asked.rounds, asked.timers = 30, [1.0]
    if asked.figure:
        raise SystemExit("--figure: this experiment is a table; use --table.")
    cells = chosen(planned(asked), asked.only)
    runs = read(cells, asked.runs) if asked.table else play(cells, asked.runs, at_once=asked.at_once)
    found = {name: Found.of(run) for name, run in runs.items()}
    if asked.table:
        print(table(found))
    for name, of in {} if asked.table else found.items():
        figure("realised_participation", cell=name, **of.record())


def planned(asked: argparse.Namespace) -> list[Cell]:
    clients = len(Cache.open(asked.cache).clients("train"))
    cells = []
    for seed in range(1, asked.seeds + 1):
        for timer in asked.timers:
            happened = rehearsed(clients, timer, asked.rounds).realised
            optimist = Participation.worst_case(asked.rounds, min(clients // REPORT_GOAL, asked.rounds))
            cells.append(one(asked, f"sober-{timer:g}h-{seed}", timer, happened, seed))
            cells.append(one(asked, f"optimistic-{timer:g}h-{seed}", timer, optimist, seed))
    return cells


@cache
def rehearsed(clients: int, timer: float, rounds: int) -> Simulation:
    """What `tacit simulate` shows before anything is trained."""
    rules = RoundRules(report_goal=REPORT_GOAL, timer_hours=timer)
    who = Population(devices=clients)
    return simulate(SimulationSettings(population=who, rules=rules, rounds=rounds, seed=REHEARSAL))


def one(asked: argparse.Namespace, name: str, timer: float, plan: Participation, seed: int) -> Cell:
    sections: dict[str, dict[str, Any]] = {
        "rounds": {
            "rounds": asked.rounds,
            "report_goal": REPORT_GOAL,
            "min_separation": plan.min_separation,
            "max_participations": plan.max_participations,
        },
        "population": {"timer_hours": timer},
        "privacy": {
            "mechanism": {"name": "tree-variance-reduced"},
            "noise_multiplier": NOISE,
            "extrapolate_to": LARGER,
        },
        "evaluation": {"every": asked.rounds},
    }
    return cell(name, small(sections), cache=asked.cache, seed=seed)


class Found(NamedTuple):
    """Of one run: three participations and their guarantees, and how the statement begins."""

    planned: Participation
    promised: Participation
    realised: Participation
    zcdp: tuple[float, ...]  # of the three, with the run's own noise
    days: float
    labels: tuple[str, ...]
    stated_zcdp: float

    @classmethod
    def of(cls, run: Played) -> "Found":
        """Raises: SystemExit where the rehearsed simulation is not what the run's log says, which would be a bug."""
        recipe = Recipe.from_toml(run.metadata.recipe)
        simulated = again(run, recipe)
        with Run.open(run.folder) as folder:
            accounts, statement = accounts_of(folder), statement_of(folder)
            came = folder.participations()[1]
        who = np.sort(np.array([each.clients for each in simulated.happened]), axis=1).ravel()
        clients = Cache.open(recipe.data.cache).clients("train")
        if not np.array_equal(np.sort(clients[who].reshape(simulated.rounds, -1), axis=1).ravel(), came):
            raise SystemExit(f"'{run.folder}': the cohorts of the run are not those of its simulation.")
        if accounts.realised is None:
            raise SystemExit(f"'{run.folder}' has released no round.")
        guarantee = recipe.guarantee()
        three = (accounts.participation, simulated.promised, accounts.realised.sequences[0].guarantee.participation)
        return cls(
            *three,
            zcdp=tuple(guarantee.with_participation(each).zcdp for each in three),
            days=simulated.days,
            labels=tuple(f"{label.name}: {label.meaning}" for label in statement.labels),
            stated_zcdp=statement.figures["realised"]["zcdp"],
        )

    def record(self) -> dict[str, Any]:
        three = zip(("planned", "promised", "realised"), (self.planned, self.promised, self.realised), strict=True)
        return {
            **{
                name: {"rounds_between": each.rounds_between, "max_participations": each.max_participations}
                for name, each in three
            },
            "zcdp": self.zcdp,
            "stated_zcdp": self.stated_zcdp,
            "days": self.days,
            "labels": self.labels,
        }


def again(run: Played, recipe: Recipe) -> Simulation:
    """The simulation that chose the cohorts of a run: a function of its fixed seed (see `tacit.jobs.train.job`)."""
    if recipe.population is None or recipe.run.seed is None:
        raise SystemExit(f"'{run.folder}' was not trained on a simulated population with a fixed seed.")
    key = key_from_seed(recipe.run.seed)
    seed = int.from_bytes(seed_for(key, "population")[:7], "little")
    rules = recipe.population.rules(recipe.rounds.report_goal)
    who = Population(devices=run.metadata.population)
    return simulate(SimulationSettings(population=who, rules=rules, rounds=recipe.rounds.rounds, seed=seed))


def table(found: dict[str, Found]) -> str:
    """Markdown: MinS / MaxP and zCDP, as planned, promised by the timer, realised; and what the statement warns of."""
    scale = (REPORT_GOAL / LARGER) ** 2
    lines = [
        f"| plan | days | MinS / MaxP planned | promised by the timer | realised | zCDP at {LARGER:,} reports, planned "
        "| promised | realised | statement |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name, of in found.items():
        shown = [f"{each.rounds_between} / {each.max_participations}" for each in of[:3]]
        costs = [f"{cost * scale:.3g}" for cost in of.zcdp]
        warned = next((label for label in of.labels if label.startswith("WEAKER")), "no warning")
        plan = name.rsplit("-", 1)[0].replace("-", ", timer ")
        lines.append(f"| {plan} | {of.days:.1f} | {' | '.join(shown)} | {' | '.join(costs)} | {warned} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
