"""How much should a client do in a round? Accuracy by the rounds, and by the zCDP that they cost, for 1 to 32 steps.

Rounds are the currency of privacy: a client's noised updates are paid for, what it computes before is not. So the same
sentences are cut into batches of 16, 8, 4, ...: the more batches, the more steps of SGD before the update is clipped.

Four questions, each with cells of its own (`--only`):

b*         316 thousand parameters (2,000 words), 120 rounds of 40 clients with 64 sentences, no noise: which
           batch, client rate, server rate and clip norm; one seed, judged on validation clients
tune-*     with noise, 81 thousand parameters, 252 rounds of 20 clients with 16 sentences: the server rate for each
           number of steps and level; a seed of its own, judged on validation clients
steps-*    the same with the rates found, three seeds, judged on test clients: accuracy per zCDP
recipe-*   what `tacit recipe new` writes for a small population: 64 sentences in batches of 16 or 4, 120 rounds under
           the noise of epsilon 2: three seeds, judged on test clients

    python benchmarks/utility/local_steps.py --cache caches/blogs2k --runs runs/local-steps --only 'b*'
    python benchmarks/utility/local_steps.py --cache caches/blogs2k --runs runs/local-steps --only 'tune-*'
    python benchmarks/utility/local_steps.py --cache caches/blogs2k --runs runs/local-steps --only 'steps-*'
    ... --table, or --figure docs/results/local-steps      from the finished cells

The zCDP is that of a production run (extrapolate_to): the runs here have 20 clients a round and protect nobody.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cells import Cell, Played, cell, chosen, figure, options, paired, play, read, save, small, spread
from utility_of_mechanisms import ACCURACY, DELTA, SECTIONS, Level, interval, middle

from tacit.privacy.gaussian import zcdp_for_epsilon

LEVELS = (Level(2, 1000), Level(8, 1000))
STEPS = {1: 16, 2: 8, 4: 4, 8: 2}  # local steps of 16 sentences, and the batch
TRIED = (0.7, 1.4, 2.0)  # server rates
TIMES, GOAL, TUNING_SEED = 6, 20, 101
RECIPES = ((16, 4.0), (4, 4.0), (4, 2.0), (4, 1.0))  # (batch, client rate) with 64 sentences


@dataclass(frozen=True)
class Setting:
    """One of the search: 64 sentences a client."""

    batch: int
    client_rate: float
    server_rate: float
    clip_norm: float = 0.5
    momentum: float = 0.9

    @property
    def name(self) -> str:
        more = "" if self.clip_norm == 0.5 else f"-clip{self.clip_norm:g}"
        more += "" if self.momentum == 0.9 else f"-m{100 * self.momentum:g}"
        return f"b{self.batch}-c{self.client_rate:g}-s{self.server_rate:g}{more}"


SEARCH = (
    Setting(64, 2, 2),
    Setting(64, 2, 4),
    Setting(64, 4, 4),
    Setting(16, 1, 2),
    Setting(16, 2, 1),
    Setting(16, 2, 2),
    Setting(16, 2, 4),
    Setting(16, 2, 8),
    Setting(16, 2, 16),
    Setting(16, 4, 2),
    Setting(16, 1, 8),
    Setting(16, 2, 4, clip_norm=2.0),
    Setting(16, 2, 1, clip_norm=2.0),
    Setting(4, 0.5, 8),
    Setting(4, 1, 4, momentum=0.95),
    Setting(4, 1, 8),
    Setting(4, 1, 16),
    Setting(4, 2, 4),
    Setting(4, 2, 8),
    Setting(2, 1, 8),
)

# What tune-* found: the server's rate for each number of steps at each level.
RATES: Mapping[int, tuple[float, ...]] = {1: (1.4, 2.0), 2: (1.4, 2.0), 4: (1.4, 2.0), 8: (1.4, 2.0)}


def planned(asked: argparse.Namespace) -> Iterator[Cell]:
    """The cells of all three questions; the last by seeds, so that one that is stopped has whole seeds."""
    for each in SEARCH:
        sections: dict[str, dict[str, Any]] = {
            "client": {
                "batch_size": each.batch,
                "sentences": 64,
                "learning_rate": each.client_rate,
                "precision": "float32",
            },
            "server": {"learning_rate": each.server_rate, "momentum": each.momentum, "cooldown": 0.3},
            "rounds": {"rounds": 120, "report_goal": 40, "min_separation": 120},
            "privacy": {"mechanism": {"name": "none"}, "clip_norm": each.clip_norm},
            "evaluation": {"every": 30, "clients": 300, "test_clients": 300},
        }
        yield cell(each.name, small(sections), cache=asked.cache, seed=1)
    for steps in STEPS:
        for level in LEVELS:
            for rate in TRIED:
                yield private(asked, trial(steps, level, rate), steps, level, rate, TUNING_SEED)
    for seed in range(1, asked.seeds + 1):
        for batch, client_rate in RECIPES:
            yield private(
                asked, f"recipe-b{batch}-c{client_rate:g}-{seed}", 1, LEVELS[0], 1.4, seed, (batch, client_rate)
            )
        for steps in STEPS:
            for level, rate in zip(LEVELS, RATES[steps], strict=True):
                yield private(asked, name(steps, level, seed), steps, level, rate, seed)


def trial(steps: int, level: Level, rate: float) -> str:
    return f"tune-{steps}-{level.name}-{rate:g}"


def name(steps: int, level: Level, seed: int) -> str:
    return f"steps-{steps}-{level.name}-{seed}"


def private(
    asked: argparse.Namespace,
    name: str,
    steps: int,
    level: Level,
    rate: float,
    seed: int,
    recipe: tuple[int, float] | None = None,
) -> Cell:
    """recipe: (batch, client rate) of a client with 64 sentences; None: 16 sentences in so many steps."""
    client = {**SECTIONS["client"], "batch_size": STEPS[steps]}
    if recipe is not None:
        client |= {"batch_size": recipe[0], "learning_rate": recipe[1], "sentences": 64}
    rounds = asked.rounds if recipe is None else min(120, asked.rounds)
    sections: dict[str, Mapping[str, Any]] = {
        **SECTIONS,
        "client": client,
        "server": {**SECTIONS["server"], "learning_rate": rate},
        "rounds": {
            "rounds": rounds,
            "report_goal": GOAL,
            "min_separation": rounds // TIMES,
            "max_participations": TIMES,
        },
        "privacy": {
            "mechanism": {"name": "blt", "buffers": 3},
            "clip_norm": 1.0,
            "zcdp": level.zcdp,
            "delta": DELTA,
            "extrapolate_to": level.reports,
        },
        "evaluation": {"every": rounds // TIMES, "clients": 200, "test_clients": 400, "sentences": 16},
    }
    return cell(name, sections, cache=asked.cache, seed=seed)


def table(asked: argparse.Namespace, done: Mapping[str, Played]) -> str:
    """Markdown: the search, what tuning found, and accuracy by steps and zCDP with paired differences."""
    lines = [
        "| batch | steps | client rate | server rate | clip norm | momentum | top-1 after 30 | 60 | 90 | 120 rounds "
        "| cross-entropy |",
        "|--:" * 11 + "|",
    ]
    for each in [each for each in SEARCH if each.name in done]:
        curves = done[each.name].curves
        reached = [f"{100 * curves[f'validation_{ACCURACY}'][at]:.2f}" for at in (30, 60, 90, 120)]
        settings = (each.batch, 64 // each.batch, each.client_rate, each.server_rate, each.clip_norm, each.momentum)
        loss = f"{done[each.name].last('validation_cross_entropy'):.3f}"
        lines.append("| " + " | ".join([*(f"{value:g}" for value in settings), *reached, loss]) + " |")
    lines += [
        "",
        "| steps | level | " + " | ".join(f"rate {rate:g}" for rate in TRIED) + " |",
        "|--:|---" + "|--:" * len(TRIED) + "|",
    ]
    for steps in STEPS:
        for level in LEVELS:
            trials = [done.get(trial(steps, level, rate)) for rate in TRIED]
            said = ["" if each is None else f"{100 * each.last(f'validation_{ACCURACY}'):.2f}" for each in trials]
            if any(said):
                lines.append(f"| {steps} | {level.says} | " + " | ".join(said) + " |")
    lines += [
        "",
        "| level | zCDP | steps | server rate | seeds | top-1, % | less one step's | cross-entropy | less one step's |",
        "|---" * 9 + "|",
    ]
    for level, steps, runs, alone in grid(asked, done):
        both = sorted(runs.keys() & alone.keys())
        cells = [
            level.says,
            f"{zcdp_for_epsilon(level.epsilon, DELTA):.4g}",
            str(steps),
            f"{RATES[steps][LEVELS.index(level)]:g}",
            str(len(runs)),
        ]
        for measure in (ACCURACY, "cross_entropy"):
            of = [[each[seed].last(f"test_{measure}") for seed in both] for each in (alone, runs)]
            apart = paired(*of) if steps > 1 and len(both) > 1 else None
            cells += [
                middle([each.last(f"test_{measure}") for each in runs.values()], measure),
                interval(apart, measure),
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


Runs = Mapping[int, Played]  # by seed


def grid(asked: argparse.Namespace, done: Mapping[str, Played]) -> Iterator[tuple[Level, int, Runs, Runs]]:
    """(level, steps, the runs, those with one step) where there are runs."""

    def runs(steps: int, level: Level) -> Runs:
        names = {seed: name(steps, level, seed) for seed in range(1, asked.seeds + 1)}
        return {seed: done[each] for seed, each in names.items() if each in done}

    for level in LEVELS:
        for steps in STEPS:
            if mine := runs(steps, level):
                yield level, steps, mine, runs(1, level)


def draw(asked: argparse.Namespace, done: Mapping[str, Played]) -> None:
    """Left: accuracy over the rounds without noise, the best setting of each batch. Right: accuracy by zCDP."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn, (left, right) = pyplot.subplots(1, 2, figsize=(10.4, 4.2), layout="constrained")
    for batch in sorted({each.batch for each in SEARCH}, reverse=True):
        mine = [done[each.name] for each in SEARCH if each.batch == batch and each.name in done]
        best = max(mine, key=lambda run: run.last(f"validation_{ACCURACY}"))
        curve = sorted(best.curves[f"validation_{ACCURACY}"].items())
        steps = 64 // batch
        left.plot(
            [at for at, _ in curve], [100 * value for _, value in curve], "o-", markersize=3, label=steps_of(steps)
        )
    left.set(title="316 thousand parameters, no noise", xlabel="rounds", ylabel="top-1 accuracy, validation (%)")
    for steps in STEPS:
        points = [(level, runs) for level, each, runs, _ in grid(asked, done) if each == steps]
        paid = [zcdp_for_epsilon(level.epsilon, DELTA) for level, _ in points]
        bands = [spread([100 * run.last(f"test_{ACCURACY}") for run in runs.values()]) for _, runs in points]
        right.plot(paid, [band.mean for band in bands], "o-", markersize=3, label=steps_of(steps))
        right.fill_between(paid, [band.low for band in bands], [band.high for band in bands], alpha=0.2, linewidth=0)
    right.set(
        title="81 thousand parameters, BLT, 252 rounds",
        xlabel="zCDP at 1,000 reports (extrapolated)",
        ylabel="top-1 accuracy, test (%)",
        xscale="log",
    )
    paid = [zcdp_for_epsilon(level.epsilon, DELTA) for level in LEVELS]
    right.xaxis.set_minor_formatter("")  # labels of a short log axis overlap
    right.set_xticks(paid, [f"{each:.3g}" for each in paid])
    for axis in (left, right):
        axis.legend(frameon=False)
    save(drawn, asked.figure)


def steps_of(steps: int) -> str:
    return f"{steps} local step{'s' * (steps > 1)}"


def main() -> None:
    asked = options(__doc__ or "", seeds=3, rounds=252)
    given = asked.parse_args()
    if given.smoke:
        given.seeds, given.rounds = 2, 12
    cells: Sequence[Cell] = chosen(list(planned(given)), given.only)
    if given.table or given.figure:
        done = read(cells, given.runs)
        if given.figure:
            draw(given, done)
        if given.table:
            print(table(given, done))
        return
    done = play(cells, given.runs, at_once=given.at_once)
    for each, run in done.items():
        ends = {f"{split}_{ACCURACY}": round(run.last(f"{split}_{ACCURACY}"), 6) for split in ("validation", "test")}
        figure("cell", run=each, **ends, client_seconds=round(run.client_seconds, 1))


if __name__ == "__main__":
    main()
