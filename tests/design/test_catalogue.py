"""The catalogue: every file of it is in the table, and a build is asked for what it can do."""

from importlib import import_module
from pathlib import Path

import pytest

from tacit.design import catalogue
from tacit.design.catalogue import MECHANISMS
from tacit.design.catalogue.blt import BLT
from tacit.design.families import FAMILIES, in_numbers
from tacit.design.mechanism import ChosenMechanism, Mechanism
from tacit.design.workload import Workload
from tacit.errors import InputError
from tacit.privacy.participation import Participation

SERVED = Participation(rounds=12, min_separation=4, max_participations=3)
FILES = sorted(
    path.stem for path in Path(catalogue.__file__).parent.glob("*.py") if path.stem not in ("__init__", "table")
)


@pytest.mark.parametrize("file", FILES)
def test_what_a_file_defines_is_in_the_table(file: str) -> None:
    entries: list[Mechanism] = []
    for value in vars(import_module(f"tacit.design.catalogue.{file}")).values():
        entries += [each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Mechanism)]
    assert entries and all(MECHANISMS.get(each.name) is each for each in entries)


@pytest.mark.parametrize("name", MECHANISMS)
def test_another_workload_is_designed_for_or_refused(name: str) -> None:
    mechanism = MECHANISMS[name]
    once = Participation(rounds=12, min_separation=12, max_participations=1) if name == "dense" else SERVED
    if mechanism.any_workload:
        assert mechanism.strategy(once, workload=Workload(momentum=0.9)) != mechanism.strategy(once)
        return
    with pytest.raises(InputError, match=f"'{name}' has no design for what a server makes"):
        mechanism.strategy(once, workload=Workload(momentum=0.9))


def test_a_strategy_is_remembered_whoever_listens() -> None:
    first = BLT.strategy(SERVED, progress=lambda event: None)
    assert BLT.strategy(SERVED) is first


def test_a_device_and_the_catalogue_know_the_same_mechanisms() -> None:
    assert list(FAMILIES) == list(MECHANISMS)
    for name, family in FAMILIES.items():
        assert (family.parameters, family.matrix) == (MECHANISMS[name].parameters, MECHANISMS[name].matrix)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_device_reckons_with_the_strategy_that_the_catalogue_makes(name: str) -> None:
    mechanism = MECHANISMS[name]
    for parameters in (*mechanism.examples, mechanism.parameters()):
        said = ChosenMechanism(mechanism=mechanism, parameters=parameters)
        found = in_numbers(name, parameters, SERVED)
        assert (found is None) == said.needs_design
        assert found is None or found == said.strategy(SERVED)
