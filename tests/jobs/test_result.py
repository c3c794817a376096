"""Every result is printed as its command prints it."""

import importlib
import inspect
import pkgutil

import pytest

import tacit.jobs
from tacit.cli.blocks import print_blocks
from tacit.jobs.result import JobResult
from tacit.jobs.suggest import Suggestions
from tacit.keyboard.suggest import Suggestion

RESULTS = sorted(
    {
        found
        for module in pkgutil.walk_packages(tacit.jobs.__path__, "tacit.jobs.")
        for found in vars(importlib.import_module(module.name)).values()
        if inspect.isclass(found) and found.__module__.startswith("tacit.jobs") and "blocks" in vars(found)
    },
    key=lambda each: each.__name__,
)


def test_there_are_results() -> None:
    assert {"TrainingResult", "EvaluationResult", "PlanResult", "Diagnosis", "UserAccount"} <= {
        each.__name__ for each in RESULTS
    }


@pytest.mark.parametrize("result", [each for each in RESULTS if each.__name__ != "Result"])  # that is a protocol
def test_whoever_has_blocks_is_printed_by_them(result: type) -> None:
    assert issubclass(result, JobResult) and result.__str__ is JobResult.__str__


def test_a_result_is_printed_as_its_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    result = Suggestions(model="m", after=(("If the", (Suggestion("file", 0.25), Suggestion("\x1b[2J", 0.125))),))
    print_blocks(result.blocks())
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert str(result).splitlines() == shown and "If the" in shown[-1] and "\x1b" not in str(result)
