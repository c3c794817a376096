"""Where clients come sooner than mechanisms were designed for, BandMF loses its lead over a BLT: after training, too.

arXiv:2408.08868 prefers the BLT to BandMF because separations are guessed before a run. `wrong_guesses.py` says what a
wrong guess costs in loss; here the models are trained. The recipe is that of `utility_of_mechanisms.py` (252 rounds, 42
apart, 6 times, blogs-en), its BLT and BandMF, both for rms, designed for clients that come 84 rounds apart. Noise
multipliers follow from the exact sensitivity to clients as they come, 42 apart: every run has the same rho. Server
rates are those of the right designs: nobody tunes anew for a guess that is not known to be wrong.

    python benchmarks/utility/wrong_separation.py --cache caches/blogs2k --runs runs/utility --crossed mechanisms.jsonl
    ... --smoke   # a minute: whether it works, not what is found

The right designs are cells of `utility_of_mechanisms.py`: its run folders are read here, and played where they are not
there. Killed at any time, the same command continues.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cells import Cell, Played, play
from crossed_pairs import remember_pair
from remembered_rows import markdown, remember_row
from utility_of_mechanisms import BANDED, FACTS, LEVELS, MECHANISMS, ROUNDS, SERVER, Plan, left_by, stable, tuned

from tacit.design.blt import design_blt
from tacit.design.catalogue.banded import BANDED as BAND_MF
from tacit.design.losses import losses
from tacit.design.mechanism import DesignProblem
from tacit.design.workload import PREFIX
from tacit.privacy import Participation
from tacit.privacy.strategy import Strategy

BLT = "blt-6-rms"
GUESSED = (84,)  # clients come 42 apart, twice as soon
LEVEL = LEVELS[0]


def _for_its_bands(problem: DesignProblem) -> Strategy:
    """BandMF for clients as far apart as it has bands, whoever comes; how often they come is nothing to it."""
    served = Participation.worst_case(problem.participation.rounds, problem.parameters.bands)
    return BAND_MF.build(replace(problem, participation=served))


FOR_ITS_BANDS = replace(BAND_MF, name="banded-for-its-bands", build=_for_its_bands)  # a recipe names it by this module


@dataclass(frozen=True)
class Guess:
    """A mechanism, and the separation that it was designed for."""

    mechanism: str
    separation: int

    def right(self, served: Participation) -> bool:
        return self.separation == served.min_separation

    def label(self) -> str:
        return f"{MECHANISMS[self.mechanism].label.removesuffix(', for rms')} for {self.separation}"

    def keys(self, served: Participation) -> dict[str, Any]:
        """The keys of [privacy] that choose the strategy."""
        if self.mechanism == BANDED:
            return {
                "mechanism": {"name": "wrong_separation:FOR_ITS_BANDS", "bands": self.separation},
                "objective": "rms",
            }
        found = design_blt(Participation.worst_case(served.rounds, self.separation), buffers=3, objective="rms")
        theta, omega = ([stable(number) for number in numbers] for numbers in (found.theta, found.omega))
        return {"mechanism": {"name": "blt", "theta": theta, "omega": omega}}


def guesses(served: Participation) -> list[Guess]:
    """The right ones and the wrong ones; in a smoke test separations are shorter, too."""
    apart = [served.min_separation, *(round(at * served.rounds / ROUNDS) for at in GUESSED)]
    return [Guess(mechanism, separation) for separation in apart for mechanism in (BLT, BANDED)]


def cells(plan: Plan) -> Iterator[Cell]:
    for seed in range(1, plan.seeds + 1):
        for guess in guesses(plan.served):
            yield cell(plan, guess, seed)


def cell(plan: Plan, guess: Guess, seed: int) -> Cell:
    """A right guess is the cell of `utility_of_mechanisms.py`."""
    rate = tuned(guess.mechanism, LEVEL)
    if guess.right(plan.served):
        return plan.cell(name(plan, guess, seed), guess.mechanism, LEVEL, rate, seed)
    keys = guess.keys(plan.served)
    return plan.cell(name(plan, guess, seed), guess.mechanism, LEVEL, rate, seed, keys)


def name(plan: Plan, guess: Guess, seed: int) -> str:
    """Of a cell and its folder."""
    right = plan.name(guess.mechanism, LEVEL, seed)
    return right if guess.right(plan.served) else f"{guess.mechanism}-for-{guess.separation}-{seed}"


def remember(plan: Plan, done: dict[str, Played], file: str) -> None:
    """Rows of every arm and seed, and of the pairs over seeds and clients."""
    experiment, seeds = f"{plan.text.name}, guessed separation", range(1, plan.seeds + 1)
    runs = {each: [done[name(plan, each, seed)] for seed in seeds] for each in guesses(plan.served)}
    for guess, mine in runs.items():
        for seed, run in zip(seeds, mine, strict=True):
            facts = {fact: run.last(f"test_{measure}") for fact, measure in FACTS.items()}
            remember_row(file, experiment, guess.label(), seed, facts)
    for one, other in pairs(plan.served):
        these, those = ([run.folder for run in runs[each]] for each in (one, other))
        named = f"{one.label()} - {other.label()}"
        remember_pair(file, f"{experiment}, pairs", named, these, those, tuple(FACTS))


def pairs(served: Participation) -> Iterator[tuple[Guess, Guess]]:
    """BandMF less BLT at each guess; then each wrong guess less the right one."""
    for separation in dict.fromkeys(each.separation for each in guesses(served)):
        yield Guess(BANDED, separation), Guess(BLT, separation)
    for guess in guesses(served):
        if not guess.right(served):
            yield guess, Guess(guess.mechanism, served.min_separation)


def designs(path: Path) -> str:
    """Markdown: what each design promises clients as they come, before any training; nothing is drawn."""
    plan = Plan(Path(path.stem.removeprefix("utility-")), 0, ROUNDS)
    lines = [["designed for a separation of", "max / rms loss", "models' rms loss", "noise left in a weight"]]
    for guess in guesses(plan.served):
        section = cell(plan, guess, seed=1).recipe.privacy
        strategy = section.strategy(plan.served, section.matrix(plan.served))
        assert strategy is not None
        sums, models = (losses(strategy, plan.served, of) for of in (PREFIX, SERVER))
        left = left_by(strategy, LEVEL, plan.served)
        lines.append(
            [guess.label(), f"{sums.max_loss:.2f} / {sums.rms_loss:.2f}", f"{models.rms_loss:.1f}", f"{left:.3f}"]
        )
    return markdown(lines, numbers=3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="of `tacit data import`")
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are, or are made")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=2, help="cells side by side, each on one core")
    parser.add_argument("--smoke", action="store_true", help="a minute: whether it works, not what is found")
    parser.add_argument("--crossed", metavar="FILE", help="remember cells and pairs in this file of remembered/")
    given = parser.parse_args()
    plan = Plan(given.cache, 3 if given.smoke else given.seeds, 24 if given.smoke else ROUNDS, given.smoke)
    done = play(list(cells(plan)), given.runs, at_once=given.at_once)
    if given.crossed:
        remember(plan, done, given.crossed)


if __name__ == "__main__":
    main()
