"""`tacit.audit_mechanism`: every mechanism and part of a round keeps its promise; the rest is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.training.tiny import tiny_toml

import tacit
from tacit.audit.finding import Findings
from tacit.audit.mechanism.case import Sums
from tacit.audit.mechanism.catalogue import PARTS
from tacit.design.catalogue import MECHANISMS
from tacit.errors import InputError
from tacit.privacy import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Independent
from tacit.progress import Event, StageBegan

RUNS = 2000
LIMITS = Participation(rounds=6, min_separation=2, max_participations=3)
GUARANTEE = Guarantee(participation=LIMITS, strategy=Independent(), clip_norm=2.0, noise_multiplier=0.5)


def own_noise(contributions: Sums, seed: int) -> NDArray[Any]:
    """Somebody's own noise, in the units of the guarantee: rounds of independent noise."""
    return contributions + GUARANTEE.seed_stddev * np.random.default_rng(seed).normal(size=contributions.shape)


@pytest.mark.parametrize("name", [*MECHANISMS, *PARTS])
def test_every_promise_is_kept_and_nearly_reached(name: str) -> None:
    found = tacit.audit_mechanism(name, runs=RUNS, confidence=0.999, seed=5)
    assert not found.broken
    for each in found.findings:
        reached = each.figures.get("attainable", each.claim)
        assert reached <= each.claim * (1 + 1e-9)
        if each.subject != "clipping, not finite":  # whose promise is kept by adding nothing
            assert each.estimate == pytest.approx(reached, rel=0.15)


def test_findings_can_be_made_again() -> None:
    found = tacit.audit_mechanism("lambda-cgd", runs=RUNS)
    (first,) = found.findings
    assert found.command.endswith(f"--seed {first.seed}") and "lambda-cgd" in found.command
    (again,) = tacit.audit_mechanism("lambda-cgd", runs=RUNS, seed=first.seed).findings
    assert again == first
    (other,) = tacit.audit_mechanism("lambda-cgd", runs=RUNS).findings
    assert other.lower != first.lower
    record = json.loads(json.dumps(found.to_record()))
    assert record["findings"][0]["lower"] == first.lower
    assert "lambda-cgd" in str(found)


def test_the_confidence_is_that_of_all_bounds_together() -> None:
    found = tacit.audit_mechanism("tree", runs=RUNS, confidence=0.98)
    assert [each.confidence for each in found.findings] == [pytest.approx(1 - 0.02 / 4)] * 4


def test_noise_of_ones_own_is_held_to_a_guarantee() -> None:
    assert not tacit.audit_mechanism(GUARANTEE, release=own_noise, runs=20_000, seed=1).broken
    louder = Guarantee(participation=LIMITS, strategy=Independent(), clip_norm=2.0, noise_multiplier=0.6)
    found = tacit.audit_mechanism(louder, release=own_noise, runs=20_000, seed=1)
    assert found.broken and "BROKEN" in str(found)
    with pytest.raises(InputError, match="give the Guarantee that it is to keep"):
        tacit.audit_mechanism("tree", release=own_noise)


def test_a_recipe_is_audited_at_its_own_limits_and_noise(tmp_path: Path) -> None:
    (recipe := tmp_path / "r.toml").write_text(tiny_toml(tmp_path / "cache"))
    stages: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, StageBegan):
            stages.append(event.stage)

    found = tacit.audit_mechanism(recipe, runs=20_000, seed=1, progress=listen)
    from tacit.recipe import Recipe

    assert isinstance(found, Findings) and not found.broken
    promised = Recipe.load(recipe).plan().updates.mu
    assert found.findings[0].claim == promised
    assert found.findings[0].lower > 0.9 * promised
    assert stages == [f"auditing {each.subject}" for each in found.findings]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mechanism": "tre"}, "did you mean tree"),
        ({"mechanism": "nothing-like-it"}, "Or a part of a round: clipping"),
        ({"mechanism": "missing.toml"}, "there is no recipe 'missing.toml'"),
        ({"mechanism": "blt-b400", "runs": 100}, "runs=100 cannot tell blt-b400's mu=3 from one that is 10% larger"),
        ({"mechanism": "blt-b400", "runs": 0}, "runs=0 is no number of runs"),
        ({"mechanism": "blt-b400", "runs": "9"}, "runs='9' is of the type str"),
        ({"mechanism": "blt-b400", "confidence": 1.0}, "confidence=1.0"),
        ({"mechanism": "blt-b400", "law": "laplace"}, "law='laplace' is none"),
        ({"mechanism": 3}, "mechanism=3 is no path"),
        ({"mechanism": "blt-b400", "seed": "x"}, "seed='x' is of the type str"),
    ],
)
def test_what_cannot_be_audited_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tacit.audit_mechanism(**arguments)


def test_a_run_without_noise_is_refused_and_told_what_it_shows() -> None:
    bare = Guarantee(participation=LIMITS, strategy=None, clip_norm=2.0, noise_multiplier=0)
    with pytest.raises(InputError, match="would show what a sum shows of each client: all of it"):
        tacit.audit_mechanism(bare)
