"""What is left of a model's accuracy follows from one number: the noise in its weights, whatever put it there.

Small trainings on real text at rising noise, with several mechanisms, report goals, clip norms, learning rates, numbers
of rounds and networks, from random and from public weights. Each is held against the same recipe without noise: the
share of its accuracy that is kept, against the ratio that `planning/noise_forecast.py` gives before training. The
curve was fitted on one text and predicted others; how noise is measured was chosen later, by all of them.

    tacit data import DATA/chat-en --out caches/chat2k --vocabulary-size 2000 --vocabulary-from PUBLIC.parquet
    tacit data import DATA/blogs-en --out caches/blogs2k --vocabulary caches/chat2k/vocabulary.json
    tacit data import docstrings --out caches/docstrings2k --vocabulary-size 2000
    tacit data import public:PUBLIC.parquet --out caches/public2k --vocabulary caches/chat2k/vocabulary.json
    tacit pretrain caches/public2k --out runs/public --embedding 32 --units 64 --tied --sentences 60000 --seed 1
    ... --cache caches/chat2k --held-out caches/blogs2k caches/docstrings2k \
        --public runs/public --runs runs/outlook
    ... --table, or --figure docs/results/noise-forecast           from finished cells
    ... --again docs/results/noise-forecast.md --table             what was kept from that page, the ratios anew
    ... --again docs/results/noise-forecast.md --measures          other measures of noise against the same runs

About 25 CPU-minutes; killed at any time, the same command goes on.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import utility_of_mechanisms
from cells import Cell, Played, cell, chosen, figure, options, play, read, save
from scipy.optimize import minimize

from tacit.data import Cache
from tacit.design.losses import prefix_errors, workload_errors
from tacit.design.workload import PREFIX, Workload
from tacit.networks.language_model import parameter_count
from tacit.planning.noise_forecast import FACTOR, LEAST, PARAMETERS, SIZE, STEP, NoiseForecast, share_kept
from tacit.privacy import Guarantee, Independent, Participation
from tacit.recipe import Recipe
from tacit.recipe.sections import PrivacySection, RoundsSection

VARIES = 0.05  # of a share: runs of two seeds without noise differ by that
REFUSED = 0.2  # share kept from which on a run is said to have learnt something
PULLS = (0.0, 0.001, 0.0015, 0.002, 0.003)
FRESH = Independent()
WIDTH = 8  # columns of the table of every run
VOCABULARY = 2000  # words of the caches above
LEVELS = (0.2, 0.4, 0.8, 1.6)  # noise in the sum of a weight's steps, by prefix sums
SECTIONS: dict[str, dict[str, Any]] = {
    "model": {"embedding": 32, "units": 64, "tied": True},
    "client": {"batch_size": 16, "learning_rate": 4.0, "sentences": 16},
    "server": {"learning_rate": 1.0},
    "rounds": {"rounds": 120, "report_goal": 20, "min_separation": 40},
    "privacy": {"clip_norm": 1.0, "mechanism": {"name": "blt"}},
}


class Family(NamedTuple):
    """Recipes that differ from the base in `changes`, and from one another in their noise."""

    changes: Mapping[str, Mapping[str, Any]]
    levels: tuple[float, ...] = LEVELS
    seeds: tuple[int, ...] = (1,)
    noiseless: str | None = None  # whose runs without noise are the same


FAMILIES: dict[str, Family] = {
    "base": Family({}, (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)),
    "five": Family({"rounds": {"report_goal": 5}}),
    "independent": Family({"privacy": {"mechanism": {"name": "independent"}}}, noiseless="base"),
    "slow": Family({"server": {"learning_rate": 0.2}}),
    "clipped": Family({"privacy": {"clip_norm": 0.25}}),
    "short": Family({"rounds": {"rounds": 40, "min_separation": 20}}),
    "separate": Family({"model": {"tied": False}}),
    "public": Family({"model": {"init": "PUBLIC"}}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "tree": Family({"privacy": {"mechanism": {"name": "tree"}}}, noiseless="base"),
    "sgd": Family({"server": {"method": "sgd", "learning_rate": 10.0}}, (0.2, 0.8)),
    "wide": Family({"model": {"embedding": 96, "units": 192}, "rounds": {"report_goal": 10}}, (0.2, 0.4, 0.8)),
    "gentle": Family({"client": {"learning_rate": 1.0}}),
    "long": Family(
        {"rounds": {"rounds": 400, "report_goal": 5}, "privacy": {"mechanism": {"name": "independent"}}},
        (0.8, 1.2, 1.6),  # fresh noise in many rounds is what training repairs best
    ),
    "rate-0.05": Family({"server": {"learning_rate": 0.05}}, ()),
    "rate-0.5": Family({"server": {"learning_rate": 0.5}}, ()),
    "rate-2": Family({"server": {"learning_rate": 2.0}}, ()),
}
HELD_OUT = ("base", "public")


def main() -> None:
    parser = options(__doc__, seeds=1, rounds=120)
    parser.add_argument("--held-out", type=Path, nargs="*", default=[])
    parser.add_argument("--public", type=Path, required=True)
    parser.add_argument("--again", type=Path, help="a page with the table of every run: judge those by today's outlook")
    parser.add_argument("--measures", action="store_true", help="hold other measures of noise against the same runs")
    asked = parser.parse_args()
    if asked.smoke:
        SECTIONS["rounds"] |= {"rounds": 4, "min_separation": 4}
    runs: Mapping[str, Played] = {}
    if asked.again:
        points = list(again(asked))
    else:
        cells = chosen(list(planned(asked)), asked.only)
        finished = asked.table or asked.figure
        runs = read(cells, asked.runs) if finished else play(cells, asked.runs, at_once=asked.at_once)
        points = found(asked, runs)
    if asked.measures:
        measures(points)
    elif asked.figure:
        draw(asked, points)
    elif asked.table:
        print(table(asked, points, runs))
    else:
        for point in points:
            said = {
                name: getattr(point, name) for name in ("noise", "ratio", "kept", "expected", "low", "high", "nats")
            }
            figure("noise", text=point.text, family=point.family, level=point.level, **said)


def planned(asked: argparse.Namespace) -> Iterator[Cell]:
    for name, family in FAMILIES.items():
        yield from cells_of(asked, asked.cache, name, family)
    for text in asked.held_out:
        for name in HELD_OUT if vocabulary(text) == vocabulary(asked.cache) else HELD_OUT[:1]:
            yield from cells_of(asked, text, name, FAMILIES[name]._replace(levels=LEVELS))


def vocabulary(text: Path) -> str:
    return Cache.open(text).manifest.vocabulary.sha256


def cells_of(asked: argparse.Namespace, text: Path, name: str, family: Family) -> Iterator[Cell]:
    for seed in range(1, asked.seeds + 1):
        for level in ((0.0,) if family.noiseless is None else ()) + family.levels:
            yield one(asked, text, name, family, level, seed)


def one(asked: argparse.Namespace, text: Path, name: str, family: Family, level: float, seed: int) -> Cell:
    sections = {key: {**SECTIONS.get(key, {}), **family.changes.get(key, {})} for key in SECTIONS}
    if "init" in sections["model"]:
        sections["model"]["init"] = str(asked.public)
    sections["evaluation"] = {
        "every": sections["rounds"]["rounds"],
        "clients": 20,
        "test_clients": 200,
        "sentences": 16,
    }
    noise = {"noise_multiplier": multiplier(sections, level)} if level else {"mechanism": {"name": "none"}}
    sections["privacy"] |= noise
    return cell(f"{text.name}-{name}-{level:g}-{seed}", sections, cache=text, seed=seed)


def multiplier(sections: dict[str, dict[str, Any]], level: float) -> float:
    """The noise multiplier that brings so much into the sum of a weight's steps; what momentum smooths is left out."""
    server, clip = sections["server"], sections["privacy"]["clip_norm"]
    gain = server["learning_rate"] / (1 - (0.9 if server.get("method") != "sgd" else 0.0))
    served = RoundsSection(**sections["rounds"]).participation()
    strategy = PrivacySection(noise_multiplier=1.0, **sections["privacy"]).designed(served).strategy(served)
    assert strategy is not None  # a level is one of noise
    error = prefix_errors(strategy, served.rounds)[1]
    return float(f"{level / gain / clip * sections['rounds']['report_goal'] / error:.6g}")


class Point(NamedTuple):
    """A run with noise against the same run without."""

    text: str
    family: str
    level: float
    noise_forecast: NoiseForecast
    kept: float  # measured
    nats: float  # worse in cross-entropy

    @property
    def noise(self) -> float:
        return self.noise_forecast.noise

    @property
    def ratio(self) -> float:
        return self.noise_forecast.ratio

    @property
    def expected(self) -> float:
        return self.noise_forecast.share_kept

    @property
    def low(self) -> float:
        return self.noise_forecast.interval[0]

    @property
    def high(self) -> float:
        return self.noise_forecast.interval[1]

    @property
    def inside(self) -> bool:
        """Whether it kept what the interval says, within what the accuracy of two runs varies by."""
        return self.low - VARIES <= self.kept <= self.high + VARIES


def found(asked: argparse.Namespace, runs: Mapping[str, Played]) -> list[Point]:
    """All runs with noise whose twin without is finished, too."""
    points = []
    for text in (asked.cache, *asked.held_out):
        for name, family in FAMILIES.items():
            for level in sorted({*family.levels, *LEVELS}):
                for seed in range(1, asked.seeds + 1):
                    noisy = runs.get(f"{text.name}-{name}-{level:g}-{seed}")
                    quiet = runs.get(f"{text.name}-{family.noiseless or name}-0-{seed}")
                    if noisy is not None and quiet is not None:
                        points.append(point(text.name, name, level, noisy, quiet))
    return points


def point(text: str, family: str, level: float, noisy: Played, quiet: Played) -> Point:
    kept = noisy.last("test_top1_accuracy") / quiet.last("test_top1_accuracy")
    worse = noisy.last("test_cross_entropy") - quiet.last("test_cross_entropy")
    recipe = Recipe.from_toml(noisy.metadata.recipe)
    return judged(text, family, level, recipe, noisy.metadata.parameters, kept, worse)


def judged(text: str, family: str, level: float, recipe: Recipe, parameters: int, kept: float, worse: float) -> Point:
    noise_forecast = NoiseForecast(
        guarantee=recipe.guarantee(),
        report_goal=recipe.rounds.report_goal,
        learning_rate=recipe.server.learning_rate,
        server=recipe.server.workload(),
        parameters=parameters,
    )
    return Point(text, family, level, noise_forecast, kept, worse)


def again(asked: argparse.Namespace) -> Iterator[Point]:
    """The runs of a page, of which it says what was kept (to a hundredth) and lost; the rest is reckoned anew.

    A family's runs stand there by their level.
    """
    rows: dict[tuple[str, str], list[list[str]]] = {}
    for line in asked.again.read_text(encoding="utf-8").splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if len(cells) == WIDTH and cells[1] in FAMILIES:
            rows.setdefault((cells[0], cells[1]), []).append(cells)
    for (text, name), mine in rows.items():
        family = FAMILIES[name]
        levels = family.levels if text == asked.cache.name else LEVELS
        for level, cells in zip(levels, mine, strict=True):
            recipe = one(asked, Path(text), name, family, level, 1).recipe
            parameters = parameter_count(recipe.model.settings(VOCABULARY))
            yield judged(text, name, level, recipe, parameters, float(cells[4].strip("%")) / 100, float(cells[-1]))


def measures(points: list[Point]) -> None:
    """JSON lines: each measure of noise, its scale and, if asked, its power of the step fitted to all runs; then the
    designs of `utility_of_mechanisms`, at equal rate and guarantee, by the noise that is left at each pull.
    """
    for pull in (None, *PULLS):
        for power in (True, False):
            noise = [noise_by(each, pull) for each in points]
            best = minimize(wrong, [math.log(0.5)] + [0.0] * power, args=(points, noise), method="Nelder-Mead")
            said = {
                "scale": round(math.exp(best.x[0]), 3),
                "power": round(float(best.x[1]), 3) if power else None,
                "rms": round(math.sqrt(best.fun), 4),
            }
            missed = missing(best.x, points, noise)
            for family in ("independent", "long", "tree"):  # where something, and not nearly all, is kept
                of = [m for m, each in zip(missed, points, strict=True) if each.family == family]
                kept = [each.kept for each in points if each.family == family]
                said[family] = round(float(np.mean([m for m, k in zip(of, kept, strict=True) if 0.02 < k < 0.95])), 2)
            figure("measure", noise="prefix sums" if pull is None else "models", pull=pull, **said)
    level, rate = utility_of_mechanisms.LEVELS[0], 1.4
    served = Participation(rounds=252, min_separation=42, max_participations=6)
    for name, each in utility_of_mechanisms.MECHANISMS.items():
        if each.rates[0] == rate:
            section = PrivacySection(zcdp=level.zcdp, **utility_of_mechanisms.asked(name, served))
            server = utility_of_mechanisms.SERVER
            made_for = server if section.workload == "server" else PREFIX
            section = section.designed(served, workload=made_for)
            strategy = section.strategy(served, section.matrix(served, workload=made_for), made_for)
            assert strategy is not None  # all of these mechanisms add noise
            guarantee = Guarantee.for_zcdp(level.zcdp, participation=served, strategy=strategy, clip_norm=1.0)
            unit = rate * guarantee.noise_multiplier / utility_of_mechanisms.GOAL
            left = {
                f"{pull:g}": round(unit * workload_errors(strategy, server, 252, pull * rate).rms, 4) for pull in PULLS
            }
            figure("design", mechanism=name, rate=rate, left=left)


def noise_by(each: Point, pull: float | None) -> float:
    """The noise in a weight: of the models, or, without a pull, the level of the prefix sums."""
    found, rounds = each.noise_forecast, each.noise_forecast.guarantee.participation.rounds
    if pull is None:
        return each.level * (gain_of(found.server, rounds) * (1 - found.server.momentum))
    assert found.guarantee.strategy is not None  # a point is a run with noise
    error = workload_errors(found.guarantee.strategy, found.server, rounds, pull * found.reach).rms
    return found.reach * error * found.guarantee.noise_multiplier / found.report_goal


def gain_of(server: Workload, rounds: int) -> float:
    """What the server makes of fresh noise, beside what plain sums do."""
    return workload_errors(FRESH, server, rounds).rms / prefix_errors(FRESH, rounds)[1]


def missing(by: Sequence[float], points: list[Point], noise: list[float]) -> list[float]:
    """Kept less expected, with the scale and the power of the step."""
    scale, power = math.exp(by[0]), by[1] if len(by) > 1 else 0.0
    return [
        each.kept
        - share_kept(
            n
            / scale
            * (STEP / each.noise_forecast.step) ** power
            * (each.noise_forecast.parameters / PARAMETERS) ** SIZE
        )
        for each, n in zip(points, noise, strict=True)
    ]


def wrong(by: Sequence[float], points: list[Point], noise: list[float]) -> float:
    return float(np.mean(np.square(missing(by, points, noise))))


def table(asked: argparse.Namespace, points: list[Point], runs: Mapping[str, Played]) -> str:
    """Markdown: how wrong the curve is, by text; every run; the accuracies without noise."""
    lines = ["| text | runs | error of the share, rms | the largest | within the interval | learnt, though refused |"]
    lines += ["|---|--:|--:|--:|--:|--:|"]
    for text in dict.fromkeys(each.text for each in points):
        mine = [each for each in points if each.text == text]
        errors = [each.kept - each.expected for each in mine]
        refused = sum(each.high < LEAST and each.kept > REFUSED for each in mine)
        lines.append(
            f"| {text} | {len(mine)} | {math.sqrt(sum(e * e for e in errors) / len(mine)):.3f} "
            f"| {max(errors, key=abs):+.2f} | {sum(each.inside for each in mine)} | {refused} |"
        )
    lines += ["", "| text | recipes | noise in a weight | ratio | kept | expected | interval | nats worse |"]
    lines += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    for each in points:
        lines.append(
            f"| {each.text} | {each.family} | {each.noise:.3f} | {each.ratio:.2f} | {each.kept:.0%} "
            f"| {each.expected:.0%} | {each.low:.0%} to {each.high:.0%}{'' if each.inside else ' (outside)'} "
            f"| {each.nats:+.2f} |"
        )
    lines += ["", "| text | recipes | top-1 without noise | before the first round |", "|---|---|--:|--:|"]
    for name, quiet in sorted(runs.items()):
        if "-0-" in name:
            text, rest = name.split("-", 1)
            start = quiet.curves["validation_top1_accuracy"][0]
            lines.append(f"| {text} | {rest[:-4]} | {quiet.last('test_top1_accuracy'):.2%} | {start:.2%} |")
    return "\n".join(lines)


def draw(asked: argparse.Namespace, points: list[Point]) -> None:
    """The share kept against the ratio, the text of most runs and the others side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import PercentFormatter

    drawing, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    ratios = [10 ** (-1.3 + 2.1 * at / 100) for at in range(101)]
    titles = (asked.cache.name, ", ".join(p.name for p in asked.held_out))
    for axes, title, here in zip(panels, titles, (True, False), strict=True):
        axes.plot(ratios, [share_kept(ratio) for ratio in ratios], color="#24292f")
        low, high = ([share_kept(ratio * by) for ratio in ratios] for by in (FACTOR, 1 / FACTOR))
        axes.fill_between(ratios, low, high, color="#24292f", alpha=0.1, linewidth=0)
        mine = [each for each in points if (each.text == asked.cache.name) == here]
        for number, label in enumerate(dict.fromkeys(label_of(each, here) for each in mine)):
            of = [each for each in mine if label_of(each, here) == label]
            mark = "os^Dv*PX<>hd"[number % 12]
            axes.plot([p.ratio for p in of], [p.kept for p in of], mark, label=label, markersize=5, alpha=0.8)
        axes.set_xscale("log")
        axes.set(xlabel="noise over signal", title=title)
        axes.grid(color="#eaeef2")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7)
    panels[0].set_ylabel("accuracy kept, of that without noise")
    panels[0].yaxis.set_major_formatter(PercentFormatter(1))
    save(drawing, asked.figure)


def label_of(each: Point, here: bool) -> str:
    return each.family if here else f"{each.text}, {each.family}"


if __name__ == "__main__":
    main()
