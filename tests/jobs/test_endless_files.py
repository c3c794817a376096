"""A pipe that nobody writes to and a device that never ends, in place of each file that somebody may name."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import tacit
from tacit.cli.serve import _token
from tacit.data.vocabulary_choice import VocabularyChoice
from tacit.device.device import enrolment_code_in
from tacit.device.policy import Policy
from tacit.errors import InputError
from tacit.jobs.account.job import read_round_times, strategy_from_file
from tacit.jobs.decryptor import _identities
from tacit.jobs.import_data import make_vocabulary
from tacit.population.settings import SimulationSettings
from tacit.protocol.bounded_http import Server, connected
from tacit.protocol.operator_key import OperatorKey
from tacit.recipe import Recipe
from tacit.server.jobs import jobs_of
from tacit.server.log.logged_run import _entries
from tacit.server.serve import _codes
from tacit.text.vocabulary import Vocabulary
from tacit.text.words import AS_TYPED

READERS: dict[str, Callable[[Path], object]] = {
    "verify": tacit.verify,
    "account strategy": strategy_from_file,
    "account timer": read_round_times,
    "--enrolment-codes": _codes,
    "--enrolment-code": enrolment_code_in,
    "--admin-token-file": _token,
    "--certificates": lambda file: connected(Server.from_url("https://a.example"), certificates=file).__enter__(),
    "identities": _identities,
    "operator's key": OperatorKey.in_file,
    "policy": Policy.load,
    "recipe": Recipe.load,
    "served": lambda file: jobs_of([file], None),
    "settings": SimulationSettings.read,
    "vocabulary": Vocabulary.load,
    "--word-list": lambda file: make_vocabulary(
        VocabularyChoice(word_list=file),
        None,  # type: ignore[arg-type]  # no source is asked
        size=None,
        writing=AS_TYPED,
        called=None,  # type: ignore[arg-type]
    ),
    "--log": lambda file: _entries(file, None),
}


@pytest.mark.parametrize("name", READERS)
def test_it_is_refused_at_once(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for endless in (tmp_path / "pipe", Path("/dev/zero")):
        if name == "operator's key" and endless.name == "zero":
            continue  # others may read it, which is refused before
        with pytest.raises(InputError, match=r"(is a pipe or a device|is no file), whose end .*; give a file"):
            READERS[name](endless)


def test_a_file_of_more_than_is_meant_is_not_read_to_its_end(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 36)  # of nothing, on no disk
    with pytest.raises(InputError, match="more than 67,108,864 bytes"):
        tacit.verify(tmp_path / "large")
