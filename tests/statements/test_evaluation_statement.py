"""The statement of an evaluation on devices: what was released of whom, centrally or locally, recomputable."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.statements.facts import CENTRAL, LOCAL
from tests.support.statements.releases import counted, noised

from tacit.errors import AccountingError, InputError, UnknownRelease
from tacit.privacy import Participation
from tacit.statements import EvaluationFacts, count
from tacit.statements.statement import checksum, statement
from tacit.statements.verify import verify


def failing(record: Any) -> list[str]:
    return [line.name for line in verify(record) if not line.holds]


@pytest.mark.parametrize("facts", [CENTRAL, LOCAL], ids=["central", "local"])
def test_it_verifies_line_by_line(facts: EvaluationFacts) -> None:
    record = json.loads(statement(facts).to_json())
    assert record["format"] == "tacit evaluation statement 1"
    assert EvaluationFacts.from_record(record["facts"]) == facts
    assert not failing(record)
    assert {"epsilon", "delta", "facts.releases.1.kind", "items.7.text"} <= {line.name for line in verify(record)}
    record["epsilon"] *= 0.9
    assert failing(record) == ["epsilon"]


def test_a_client_of_one_of_two_steps_pays_once() -> None:
    figures = count.figures(CENTRAL)
    assert figures["zcdp"] == pytest.approx(1 / 18) and figures["kind"] == "central"
    assert figures["histograms"] == [11, 9]
    assert figures["stddev_of_a_count"] == pytest.approx([3 * 11**0.5, 3 * 3])
    said = {item.number: item.text for item in statement(CENTRAL).items}
    assert "rho = 0.0555556" in said["3c"] and "at delta = 1e-06" in said["3c"]
    assert "11 histograms over 20 clients, with noise; 9 histograms over 20 clients, with noise" in said["2b"]
    assert "40 clients" in said["2a"] and "the exact figures of the simulation" in said["2a"]
    assert "2 steps, each client in at most 1" in said["3b"] and "9.95 and 9" in said["3b"]
    assert "everything one client holds" in said["2c"] and "Zero-out" in said["2d"]


SUMS = replace(
    CENTRAL,
    of="device statistics",
    subjects=("word_pairs of the first 9 words of the vocabulary, within the norm 2.5",),
    participation=Participation(rounds=1, min_separation=1, max_participations=1),
    releases=(replace(noised(0, 1, 40), what="sum of counts", clip_norm=2.5),),
)


def test_sums_are_promised_by_their_norm() -> None:
    made = statement(SUMS)
    said = {item.number: item.text for item in made.items}
    assert made.figures["clip_norm"] == [2.5] and "histograms" not in made.figures
    assert made.figures["stddev_of_a_count"] == pytest.approx([3 * 2.5])
    assert "Released: 1 sum over 40 clients, with noise in every cell." in said["2b"]
    assert "A client adds whole numbers of L2 norm 2.5 at most" in said["3b"] and "histogram" not in made.markdown()
    record = json.loads(made.to_json())
    assert EvaluationFacts.from_record(record["facts"]) == SUMS and not failing(record)
    record["clip_norm"] = [1.0]
    assert failing(record) == ["clip_norm"]


def test_a_norm_of_no_histograms_is_only_a_sums() -> None:
    (row,) = SUMS.releases
    with pytest.raises(InputError, match=r"clip_norm=2\.5 is not the root of a number of histograms"):
        replace(SUMS, releases=(replace(row, what="evaluation histogram"),))
    with pytest.raises(InputError, match="the ledger holds both"):
        replace(CENTRAL, releases=(noised(0, 11, 20), replace(noised(1, 9, 20), what="sum of counts")))


def test_local_reports_promise_their_epsilon_against_everybody() -> None:
    made = statement(LOCAL)
    said = {item.number: item.text for item in made.items}
    assert (made.figures["kind"], made.figures["epsilon"], made.figures["delta"]) == ("local", 2.0, 0.0)
    assert "stddev_of_a_count" not in made.figures and made.figures["histograms"] == [2]
    assert said["1"].startswith("Local:") and "Replace-one" in said["2d"]
    assert "epsilon = 2" in said["3c"] and "against everybody" in said["3c"]
    assert "2 histograms over 40 clients, from randomised reports" in said["2b"]


def test_what_weakens_it_stands_first() -> None:
    loud = tuple(replace(each, noise_multiplier=0.05) for each in (noised(0, 11, 20), noised(1, 9, 20)))
    made = statement(replace(CENTRAL, releases=loud, key_source="fixed seed 4"))
    assert [label.name for label in made.labels] == ["FIXED SEED", "VERY LARGE EPSILON"]
    assert made.markdown().startswith("**FIXED SEED: randomness came from fixed seed 4")
    assert not statement(CENTRAL).labels


@pytest.mark.parametrize(
    ("facts", "changes", "error", "says"),
    [
        (CENTRAL, {"delta": 0.0}, InputError, "not a probability"),
        (LOCAL, {"delta": 1e-6}, InputError, "at delta 0"),
        (CENTRAL, {"asked": 39}, InputError, "40 participations of 39 clients are more than 1"),
        (LOCAL, {"asked": 39}, InputError, "the releases are of more"),
        (CENTRAL, {"releases": ()}, AccountingError, "empty"),
        (CENTRAL, {"releases": (*CENTRAL.releases, counted(1, 1, 0))}, UnknownRelease, "account each kind"),
        (LOCAL, {"participation": Participation.worst_case(2, 1)}, AccountingError, "asked in 2 rounds"),
        (CENTRAL, {"key_source": "dice"}, InputError, "fixed seed N"),
        (CENTRAL, {"unit": "word"}, InputError, "unit='word'"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(
    facts: EvaluationFacts, changes: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        replace(facts, **changes)


def test_a_changed_release_is_found_even_with_a_new_checksum() -> None:
    record = json.loads(statement(CENTRAL).to_json())
    record["facts"]["releases"][0]["noise_multiplier"] = 6.0
    assert "facts.releases.0.noise_multiplier" in failing(record)
    record["checksums"]["releases.0.noise_multiplier"] = checksum("releases.0.noise_multiplier", 6.0)
    assert failing(record) == ["facts"]  # one sequence has one noise multiplier
