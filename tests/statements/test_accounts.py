"""A run folder's ledger and log as guarantees: the price of every prefix of its rounds."""

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.support.made_runs import DELTA, release, write_adaptive_run, write_run

from tacit.privacy import Blt, Independent, Tree
from tacit.privacy.measured_participation import realised_participation
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy
from tacit.runs import Run
from tacit.runs.metadata import DeploymentUsed
from tacit.statements import Ledger, Statement
from tacit.statements.accounts import CURVE_POINTS, Accounts, accounts_of, spent
from tacit.statements.participation_log import LoggedClients
from tacit.statements.run_facts import statement_of
from tacit.statements.verify import verify


@given(
    log=st.sets(st.tuples(st.integers(0, 11), st.integers(0, 4)), max_size=40),
    strategy=st.sampled_from([Tree(), Tree(restarts=(5,)), PUBLISHED_BLT["b100"], Independent(), None]),
)
def test_the_cost_of_each_prefix_is_that_of_a_run_that_ended_there(
    log: set[tuple[int, int]], strategy: Strategy | None
) -> None:
    rounds, noise = 12, 2.0 if strategy else 0.0
    ledger = Ledger(tuple(release(round, strategy, noise) for round in range(rounds)))
    both = np.array(sorted(log), np.int64).reshape(-1, 2)
    when, who = both[:, 0], both[:, 1]
    whole = ledger.composition(realised_participation(rounds, when, who))
    read = Accounts(planned=whole, realised=whole, ledger=ledger, log=LoggedClients(when, who), delta=DELTA)
    costs = spent(read)
    assert [cost.rounds for cost in costs] == list(range(rounds + 1))
    assert costs[0].zcdp == costs[0].epsilon == 0
    for cost in costs[1:]:
        first = when < cost.rounds
        slow = Ledger(ledger.releases[: cost.rounds]).guarantee(
            realised_participation(cost.rounds, when[first], who[first])
        )
        assert (cost.zcdp, cost.epsilon) == (slow.zcdp, slow.epsilon(DELTA))
    assert [cost.zcdp for cost in costs] == sorted(cost.zcdp for cost in costs)


def test_long_runs_are_cost_at_evaluations_and_thinned(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Blt(theta=(0.9,), omega=(0.1,)), rounds=600, every=50)
    with Run.open(path) as run:
        read = accounts_of(run)
    assert [cost.rounds for cost in spent(read, [200, 400])] == [0, 200, 400, 600]
    every = spent(read)
    assert len(every) == CURVE_POINTS + 1 and every[-1].rounds == 600
    assert every[-1].zcdp == (read.realised.zcdp if read.realised else None)


def test_a_part_of_ones_own_stands_in_the_statement_in_place_of_what_it_replaced(tmp_path: Path) -> None:
    def stated(name: str, hooks: dict[str, str]) -> Statement:
        with Run.open(write_run(tmp_path / name, strategy=Tree(), hooks=hooks)) as run:
            return statement_of(run)

    usual = stated("usual", {})
    sampled = stated("sampled", {"sampler": "mine:InTurn()"})
    collected = stated("collected", {"collector": "mine:Phones"})
    uniform, clear = "clients uniformly among those who came fewer", "simulated in the clear"
    assert uniform in usual.markdown() and clear in usual.markdown()
    assert uniform not in sampled.markdown() and clear in sampled.markdown()
    assert "up to a sampler, which draws the cohorts (mine:InTurn())" in sampled.markdown()
    assert uniform not in collected.markdown() and clear not in collected.markdown()
    assert "by a collector that is no part of this software (mine:Phones)" in collected.markdown()
    for made in (usual, sampled, collected):
        assert all(line.holds for line in verify(json.loads(made.to_json())))


def test_real_devices_stand_in_the_statement_with_whoever_adds_them_up(tmp_path: Path) -> None:
    devices = DeploymentUsed(population="phones", devices=100, rounds=5, timer_seconds=7200.0)
    said = {}
    for name, collector in (("ours", "tacit.server.rounds.rounds:ServedRounds"), ("theirs", "mine:Phones")):
        path = write_run(tmp_path / name, strategy=Tree(), deployment=devices, hooks={"collector": collector})
        with Run.open(path) as run:
            made = statement_of(run)
        assert all(line.holds for line in verify(json.loads(made.to_json())))
        said[name] = made.markdown()
        assert "refuses a round whose number, which the operator signs, is less than 5 above" in said[name]
        assert "besides, it stays away for 2 hours by its own clock" in said[name]
        assert "draws exactly" not in said[name] and "simulated in the clear" not in said[name]
    assert "by the server of this software (tacit.server.rounds.rounds:ServedRounds)" in said["ours"]
    assert "The server sees each report as it comes" in said["ours"]
    sealed = DeploymentUsed(
        population="phones", devices=100, rounds=5, timer_seconds=None, decryptors=4, corrupt_decryptors=1
    )
    hooks = {"collector": "tacit.server.rounds.rounds:ServedRounds"}
    with Run.open(write_run(tmp_path / "sealed", strategy=Tree(), deployment=sealed, hooks=hooks)) as run:
        shown = statement_of(run).markdown()
    assert "which only 3 or more of 4 decryptors together can recover" in shown and "The server sees" not in shown
    assert "no part of this software (mine:Phones)" in said["theirs"] and "The server sees" not in said["theirs"]


def test_the_statement_of_adaptive_clipping_verifies_and_names_the_clip_norms(tmp_path: Path) -> None:
    path = write_adaptive_run(tmp_path / "run")
    with Run.open(path) as run:
        made = statement_of(run)
        costs = [cost.zcdp for cost in spent(accounts_of(run))]
    assert made.facts.clip_norms == ((0, 1.0), (8, 2.5))
    assert "1 from round 0 on; 2.5 from round 8 on" in made.markdown()
    assert costs == sorted(costs) and costs[-1] == made.figures["in_all"]["realised"]["zcdp"]
    record = json.loads(made.to_json())
    assert all(line.holds for line in verify(record))
    record["facts"]["clip_norms"][1][0] = 7
    failed = {line.name for line in verify(record) if not line.holds}
    assert failed == {"facts.clip_norms.1", "facts"}, "a change that no restart allows has no statement"
