"""A device's checks, each taken out in turn: the tests of the device notice every time. What is broken is a copy."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import REPOSITORY

REFUSALS, MATRICES = "device/test_refusals.py", "device/test_matrix_plans.py"
STRANGERS = "device/test_strangers.py"
TEXTS = "device/test_text_independence.py"
LOSSES = "device/test_loss_of_state.py"
AUDIT = "audit/test_device.py"


class Mutant(NamedTuple):
    """A line of the package, what stands there instead, and the tests that have to fail."""

    file: str
    line: str
    instead: str
    tests: str
    named: str


MUTANTS = {
    "who signed the task": Mutant(
        "device/session.py", "or not is_signed(RoundTask, signed_task, operator)", "", REFUSALS, "another_operator"
    ),
    "who signed the plan": Mutant(
        "device/session.py", "if not is_signed(Plan, signed, operator):", "if False:", REFUSALS, "changed_on_its_way"
    ),
    "which plan a task names": Mutant(
        "device/session.py", "if name != task.plan:", "if False:", REFUSALS, "task_of_another_plan"
    ),
    "that the log has the plan": Mutant(
        "protocol/log_check.py", "if entry not in entries:", "if False:", "server/test_transparency.py", "device"
    ),
    "that the log is the one that was signed": Mutant(
        "protocol/log_check.py",
        "if (head.size, head.root) !=",
        "if False and (head.size, head.root) !=",
        "server/test_transparency.py",
        "device",
    ),
    "that the log only grew": Mutant(
        "protocol/log_check.py",
        "if any(one != other",
        "if False and any(one != other",
        "server/test_transparency.py",
        "device",
    ),
    "zCDP from the plan's numbers": Mutant(
        "federation/cost.py",
        "if zcdp is None or not found <= zcdp * (1 + ROUNDING):",
        "if zcdp is None:",
        REFUSALS,
        "a_plan_that",
    ),
    "epsilon from zCDP": Mutant(
        "federation/cost.py",
        "not cost.epsilon <= epsilon * (1 + ROUNDING)",
        "not cost.epsilon <= 9 * epsilon",
        REFUSALS,
        "epsilon",
    ),
    "the budget over all runs": Mutant(
        "device/session.py",
        "if not elsewhere + zcdp <= policy",
        "if False and not elsewhere + zcdp <= policy",
        REFUSALS,
        "budget",
    ),
    "how much encoding lengthens": Mutant(
        "device/train_cost.py",
        "if inflation > cost.inflation",
        "if False and inflation > cost.inflation",
        REFUSALS,
        "coarsely",
    ),
    "rounds between participations": Mutant(
        "device/separation.py",
        "task.round - seen.parts[-1].round < apart.rounds:",
        "task.round - seen.parts[-1].round < apart.rounds - 1:",
        REFUSALS,
        "too_soon",
    ),
    "that an epoch has one key of tokens": Mutant(
        "device/tokens.py",
        "if sum(each.startswith(epoch_entries(key.epoch)) for each in shown.entries) > 1:",
        "if False:",
        "server/test_tokens.py",
        "one_device_alone",
    ),
    "that code and token are shown in two turns": Mutant(
        "device/tokens.py",
        'record.keep_tokens({**kept, "left": left})\n        return None',
        'record.keep_tokens({**kept, "left": left})',
        "device/test_linkability.py",
        "which_code",
    ),
    "that both keys signed a hand-over": Mutant(
        "protocol/log_check.py",
        'if not is_signature("hand-over", signed.document, signature, key):',
        "if False:",
        "protocol/test_key_rotation.py",
        "test_a_key_rotation",
    ),
    "that a critical key is known": Mutant(
        "protocol/fields.py", "if field is None:", "if False:", REFUSALS, "must_is_refused"
    ),
    "that a key stands once": Mutant(
        "protocol/fields.py", "        strict_json(text)\n", "", "protocol/test_messages.py", "stands_twice"
    ),
    "clocks that are set back": Mutant(
        "device/separation.py", "now < seen.latest:", "False:", "device/test_device.py", "clock_that_was_set_back"
    ),
    # -- text ----------------------------------------------------------------------------------------------------------
    "that nobody sees what text raises": Mutant(
        "device/report_body.py", "except Exception as error:", "except KeyError as error:", TEXTS, "raises and plain"
    ),
    "that an update which is not finite is the zero update": Mutant(
        "device/report_body.py", "if report.usable:", "if True:", TEXTS, "tells and plain"
    ),
    "that a report is as long whatever it says": Mutant(
        "protocol/bodies.py", ".encode().ljust(HEADER)", ".encode()", "protocol/test_bodies.py", "wrote_is_read"
    ),
    "that a report leaves at a time of its own": Mutant(
        "device/session.py", "if rest > 0:", "if False:", TEXTS, "long_reading"
    ),
    "that the report which says nothing is made before": Mutant(
        "device/report_body.py", "return nothing, why", "return prepared.nothing(draw), why", AUDIT, "nothing_of_the"
    ),
    "that no clock which can be set holds a report back": Mutant(
        "device/session.py",
        "rest = leaves - self.machine.steady()",
        "rest = now + held_back - self.machine.clock()",
        AUDIT,
        "nothing_of_the",
    ),
    # -- matrices ------------------------------------------------------------------------------------------------------
    "the SHA-256 of a matrix": Mutant(
        "device/transport.py",
        "if hashlib.sha256(content).hexdigest() != file.sha256:",
        "if False:",
        MATRICES,
        "not_the_plans",
    ),
    "that its numbers are numbers": Mutant(
        "protocol/matrix_files.py",
        "if not abs(numbers.flat[at]) <= LARGEST:",
        "if False:",
        MATRICES,
        "squares or none",
    ),
    "that it has the plan's rounds": Mutant(
        "device/train_cost.py", "if said.rounds != rounds:", "if False:", MATRICES, "round"
    ),
    "that its kind is the mechanism's": Mutant(
        "device/train_cost.py", "if kind is not KINDS[said.kind]:", "if kind is None:", MATRICES, "another_kind or kind"
    ),
    "that it is no larger than devices take": Mutant(
        "protocol/matrix_files.py", "if rounds * bands > MOST_MATRIX:", "if False:", MATRICES, "bounded or bands"
    ),
    "that its worst pattern can be searched for": Mutant(
        "protocol/matrix_files.py", "and rounds > MOST_SEARCHED:", "and False:", MATRICES, "bounded"
    ),
    "what its owner lets it fetch": Mutant(
        "device/policy.py",
        "if said.bytes > self.largest_model_mb",
        "if False and said.bytes > self.largest_model_mb",
        MATRICES,
        "owner",
    ),
    "noise of later rounds": Mutant(
        "privacy/matrices.py", "if np.triu(matrix, 1).any():", "if False:", MATRICES, "later"
    ),
    "that participations overlap": Mutant(
        "privacy/sensitivity_matrix.py",
        "for lag in range(1, bands):",
        "for lag in range(0):",
        MATRICES,
        "cost or pays",
    ),
    "that updates may push either way": Mutant(
        "privacy/sensitivity_matrix.py",
        "2 * float(np.abs((columns[early, lag:] * columns[early + lag, : bands - lag]).sum(axis=1)).sum())",
        "2 * float((columns[early, lag:] * columns[early + lag, : bands - lag]).sum())",
        MATRICES,
        "cost",
    ),
    "how often a device may come": Mutant(
        "device/train_cost.py",
        "worst = participation if bounded else Participation",
        "worst = participation if False else Participation",
        MATRICES,
        "cost",
    ),
    "the journal": Mutant(
        "device/record.py",
        "            for each in self._others:",
        "            for each in ():",
        LOSSES,
        "one_place_lost",
    ),
    "that a report may have left": Mutant(
        "device/session.py", "left or not error.unsent", "left", STRANGERS, "may_have_left"
    ),
    "whose form an error has": Mutant(
        "protocol/problem_kinds.py", " and kind.status == status == found.status", "", STRANGERS, "status_twice"
    ),
    "what was lost": Mutant(
        "device/record.py",
        "losses.add(Loss(epoch, now, max(budget_zcdp - spent, 0.0)",
        "losses.add(Loss(epoch, now, 0.0",
        LOSSES,
        "both_places",
    ),
    "that a file is the last": Mutant(
        "device/state_file.py",
        "return Standing.LAST if self._is_last() else Standing.COPY",
        "return Standing.LAST",
        LOSSES,
        "both_places",
    ),
    "that a run was under way": Mutant(
        "device/separation.py", "if seen.first_round > 0:", "if False:", LOSSES, "under_way"
    ),
    "what other runs cost": Mutant(
        "device/record.py",
        "SELECT plan, zcdp FROM participations WHERE plan != ?",
        "SELECT plan, zcdp FROM participations WHERE plan != ? AND 0",
        LOSSES,
        "one_budget",
    ),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy that may be broken."""
    copy = tmp_path_factory.mktemp("broken") / "tacit"
    shutil.copytree(REPOSITORY / "src" / "tacit", copy, ignore=shutil.ignore_patterns("__pycache__"))
    yield copy
    shutil.rmtree(copy)


def tried(package: Path, tests: Sequence[str], named: str) -> "subprocess.CompletedProcess[str]":
    """These tests of the device against the copy."""
    files = [str(REPOSITORY / "tests" / each) for each in tests]
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-k", named]
    there = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *files]
    return subprocess.run(command, cwd=REPOSITORY, env=there, capture_output=True, text=True)


@pytest.mark.nightly  # the default tests run each of them
def test_with_all_of_them_the_tests_hold(package: Path) -> None:
    tests = sorted({each.tests for each in MUTANTS.values()})
    found = tried(package, tests, " or ".join(f"({each.named})" for each in MUTANTS.values()))
    assert found.returncode == 0, found.stdout[-2000:]


# Each is a process of seconds: a few in `make long`, the others in `make nightly`.
FEW = {"who signed the task", "that nobody sees what text raises", "the journal"}
ONE_BY_ONE = [pytest.param(name, marks=pytest.mark.long if name in FEW else pytest.mark.nightly) for name in MUTANTS]


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_without_it_one_fails(name: str, package: Path) -> None:
    mutant = MUTANTS[name]
    file = package / mutant.file
    whole = file.read_text(encoding="utf-8")
    try:
        file.write_text(whole.replace(mutant.line, mutant.instead), encoding="utf-8")
        found = tried(package, [mutant.tests], mutant.named)
    finally:
        file.write_text(whole, encoding="utf-8")
    assert found.returncode == 1, found.stdout[-2000:]


def test_each_is_one_line_of_the_package_and_the_page_counts_them() -> None:
    for name, mutant in MUTANTS.items():
        assert (REPOSITORY / "src" / "tacit" / mutant.file).read_text(encoding="utf-8").count(mutant.line) == 1, name
    assert f"takes {len(MUTANTS)} of these checks out" in (REPOSITORY / "docs" / "device.md").read_text(
        encoding="utf-8"
    )
