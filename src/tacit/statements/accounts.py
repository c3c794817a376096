"""What a run folder says about privacy, as guarantees and figures: planned and as it happened, and the price of every
prefix of its steps; `run_facts.py` makes the facts of a statement of it.

Everything is computed from the folder alone: what was released stands in the ledger, who took part in the log.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import RunError, UnknownRelease
from tacit.privacy import Guarantee, Participation
from tacit.privacy.composition import Composition, ReleasedSequence
from tacit.privacy.strategy import Banded, Dense, Record, Strategy, strategy_from_record
from tacit.runs import Run, TrainingMetadata
from tacit.statements.ledger import MODEL_UPDATE, Ledger, ledger_record, release_from, strategy_of
from tacit.statements.participation_log import ParticipationLog, log_of
from tacit.statements.train_facts import Extrapolation

# A tree's exact sensitivity takes up to 4 ms where clients come often, so a curve has at most this many points.
CURVE_POINTS = 256
MATRIX_CURVE_POINTS = 32  # of a full matrix, where a point may cost a tenth of a second


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What the first `rounds` rounds of a run cost, under the participation that happened in them."""

    rounds: int
    zcdp: float
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """A run folder's promises, read once: each of everything that is released together, the model updates first.

    `realised` is None while no round is released.
    """

    planned: Composition
    realised: Composition | None
    ledger: Ledger
    log: ParticipationLog  # of the released rounds
    delta: float

    @property
    def released(self) -> int:
        """Rounds whose model update was released."""
        return sum(each.what == MODEL_UPDATE for each in self.ledger.releases)

    @property
    def participation(self) -> Participation:
        """Who was planned to come how often: of the model updates."""
        return self.planned.sequences[0].guarantee.participation

    @property
    def strategy(self) -> Strategy | None:
        """The factorization of the model updates' noise; None where none was added."""
        return self.planned.sequences[0].guarantee.strategy


@contextmanager
def reading(run: Run) -> Iterator[None]:
    """A damaged folder, or one with a value that is not as this version writes it, is a RunError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise RunError(f"'{run.path}/run.db' is damaged ({error}); restore it from a copy.") from error
    except (KeyError, TypeError) as error:
        raise RunError(
            f"'{run.path}/run.db' lacks or misnames a value ({error}); use the version that wrote it."
        ) from error


def trained(run: Run) -> TrainingMetadata:
    """What `tacit train` recorded of a run. Raises: InputError for another kind."""
    return run.of_kind(TrainingMetadata, "give a run of `tacit train`")


def accounts_of(run: Run, delta: float | None = None) -> Accounts:
    """Planned and realised guarantee at `delta` (left out: the recipe's).

    A run that is being trained may be read: rounds released after the first look are left out.
    Raises: UnknownRelease where the ledger holds what the accountant does not understand or nobody asked for.
    """
    rows = run.steps()
    ledger = Ledger(tuple(release_from(each) for row in rows for each in row.releases), matrix=_kept_matrix(run))
    released = len(rows)
    log = log_of(run, released)
    planned, realised = planned_in_all(run), None
    if released:
        realised = ledger.composition(log.realised(released))
        _check_sequences(planned, realised)
    return Accounts(
        planned=planned,
        realised=realised,
        ledger=ledger,
        log=log,
        delta=trained(run).delta if delta is None else delta,
    )


def _check_sequences(planned: Composition, realised: Composition) -> None:
    """UnknownRelease unless just those sequences were released that were planned."""
    expected, found = ([each.what for each in composition.sequences] for composition in (planned, realised))
    if expected != found:
        raise UnknownRelease(
            f"the ledger holds {found} and the run was asked to release {expected}; "
            "account it with the version that wrote it."
        )


def planned_in_all(run: Run) -> Composition:
    """The planned promise of the run, before its first round: of the model updates first, then of what is released
    beside them.
    """
    training = trained(run)
    participation = Participation(**training.participation)
    sequences = {MODEL_UPDATE: training.guarantee, **training.also_released}
    matrix = _kept_matrix(run)
    return Composition(
        tuple(
            ReleasedSequence(what=what, guarantee=_guarantee(participation, values, matrix))
            for what, values in sequences.items()
        )
    )


def matrix_of(run: Run) -> Banded | Dense | None:
    """The strategy matrix that a run keeps; None where its recipe says the strategy.

    Raises: UnknownRelease where it is lost, or not the one that the run began with.
    """
    strategy = strategy_of(trained(run).guarantee["strategy"], _kept_matrix(run))
    return strategy if isinstance(strategy, Banded | Dense) else None


def _kept_matrix(run: Run) -> Banded | Dense | None:
    strategy = None if run.strategy is None else strategy_from_record(run.strategy)
    return strategy if isinstance(strategy, Banded | Dense) else None


def _guarantee(participation: Participation, values: Mapping[str, Any], matrix: Banded | Dense | None) -> Guarantee:
    return Guarantee(
        participation=participation,
        strategy=strategy_of(values["strategy"], matrix),
        clip_norm=values["clip_norm"],
        noise_multiplier=values["noise_multiplier"],
        clip_inflation=values.get("clip_inflation", 1.0),  # of runs begun before there was any: summed in the clear
    )


def guarantee_record(guarantee: Guarantee) -> Record:
    """What `planned_in_all` reads of one sequence, besides the participation."""
    return {
        "strategy": ledger_record(guarantee.strategy),
        "clip_norm": guarantee.clip_norm,
        "noise_multiplier": guarantee.noise_multiplier,
        "clip_inflation": guarantee.clip_inflation,
    }


def figures_of(promised: Composition | None, delta: float) -> Record | None:
    """What is promised as plain values; None where nothing is, because nothing was released.

    `zcdp` and `epsilon` are of everything together. Sensitivity, noise multiplier and clip norm are the model
    updates'; where other sequences go with them, `sequences` has those of each and its share of the zCDP.
    """
    if promised is None:
        return None
    guarantee = promised.sequences[0].guarantee
    limits = guarantee.participation
    shares = [
        {
            "what": each.what,
            "noise_multiplier": each.guarantee.noise_multiplier,
            "clip_norm": each.guarantee.clip_norm,
            "zcdp": each.guarantee.zcdp,
        }
        for each in promised.sequences
    ]
    return {
        "rounds": limits.rounds,
        "min_separation": limits.min_separation,
        "rounds_between": limits.rounds_between,
        "max_participations": limits.max_participations,
        "sensitivity_squared": guarantee.sensitivity_squared,
        "noise_multiplier": guarantee.noise_multiplier,
        "clip_norm": guarantee.clip_norm,
        "zcdp": promised.zcdp,
        "epsilon": promised.epsilon(delta),
        "delta": delta,
        **({"sequences": shares} if len(shares) > 1 else {}),
    }


def spent(accounts: Accounts, rounds: Iterable[int] | None = None) -> list[Spent]:
    """The price after each of `rounds` and after the last, from 0 rounds (free) on, in increasing order.

    Each prefix is accounted by the separation and the count that happened in it, so the price never falls.
    Left out, `rounds` is all of them. More than CURVE_POINTS (of a full matrix MATRIX_CURVE_POINTS) are thinned evenly;
    the last always stays.
    """
    released = accounts.released
    costs = [Spent(rounds=0, zcdp=0.0, epsilon=0.0)]
    if accounts.realised is None:
        return costs
    chosen = range(1, released + 1) if rounds is None else rounds
    wanted = sorted({each for each in chosen if 0 < each <= released} | {released})
    most = MATRIX_CURVE_POINTS if isinstance(accounts.strategy, Dense) else CURVE_POINTS
    if len(wanted) > most:
        kept = np.linspace(0, len(wanted) - 1, most).round().astype(int)
        wanted = [wanted[at] for at in kept]
    for first in wanted:
        promised = accounts.realised.with_participation(accounts.log.prefix(first))
        cost = Spent(rounds=first, zcdp=promised.zcdp, epsilon=promised.epsilon(accounts.delta))
        costs.append(cost)
    return costs


def extrapolation_of(run: Run, planned: Composition) -> Extrapolation | None:
    """The larger cohort that the run stands in for; None where it stands for itself, or adds no noise."""
    larger, report_goal = trained(run).extrapolate_to, trained(run).report_goal
    if larger is None or larger <= report_goal or not planned.private:
        return None
    return Extrapolation.scaled(planned.sequences[0].guarantee, report_goal=report_goal, to=larger)


def run_figures(run: Run, accounts: Accounts) -> Record:
    """Planned beside realised, as plain values; what is extrapolated to a larger cohort is apart and says so."""
    larger = extrapolation_of(run, accounts.planned)
    extrapolated: Record | None = None
    if larger is not None and accounts.realised is not None:
        factor = larger.report_goal / trained(run).report_goal
        scaled = {
            name: figures_of(each.with_noise(factor), accounts.delta)
            for name, each in (("planned", accounts.planned), ("realised", accounts.realised))
        }
        extrapolated = {"report_goal": larger.report_goal, **scaled}
    strategy = accounts.strategy
    return {
        "run": str(run.path),
        "finished": run.finished,
        "private": accounts.planned.private,
        "strategy": ledger_record(strategy),
        "released_rounds": accounts.released,
        "planned": figures_of(accounts.planned, accounts.delta),
        "realised": figures_of(accounts.realised, accounts.delta),
        "zcdp": accounts.realised.zcdp if accounts.realised else 0.0,
        "epsilon": accounts.realised.epsilon(accounts.delta) if accounts.realised else 0.0,
        "delta": accounts.delta,
        "extrapolated": extrapolated,
    }


# -- every kind of run -------------------------------------------------------------------------------------------------


def ledger_of(run: Run) -> Ledger:
    """What a run of any kind has released so far. UnknownRelease where a release is not understood."""
    return Ledger(tuple(release_from(each) for step in run.steps() for each in step.releases), matrix=_kept_matrix(run))


def participation_of(run: Run, steps: int) -> Participation:
    """Who took part in the first `steps` steps, measured from the log where it says so."""
    return log_of(run, steps).realised(steps)


def spent_by_step(run: Run, delta: float) -> list[Spent]:
    """The price after each step of a run that adds noise, from none (free) on; few steps: each is accounted anew."""
    costs = [Spent(rounds=0, zcdp=0.0, epsilon=0.0)]
    sums = ledger_of(run).noised_sums
    for steps in range(1, run.steps_done + 1):
        promised = Ledger(tuple(each for each in sums if each.round < steps)).composition(participation_of(run, steps))
        costs.append(Spent(rounds=steps, zcdp=promised.zcdp, epsilon=promised.epsilon(delta)))
    return costs
