"""The statement: every item of the papers' Appendix A, and whatever weakens it on the first lines."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.statements.facts import HAPPENED, PLAN, PROMISE, TRAINING

from tacit.errors import InputError
from tacit.privacy import Blt, Guarantee, Independent, Participation, Toeplitz, Tree
from tacit.privacy.strategy import Banded, BandedInverse, BandedToeplitz, Dense
from tacit.statements import TrainingFacts
from tacit.statements.statement import statement
from tacit.statements.train_facts import Extrapolation, SideRelease
from tacit.statements.train_sentences import account_command

# arXiv:2305.18465, Appendix A (after arXiv:2303.00654, Section 5.3), in its order, with what each must say.
APPENDIX_A = [
    ("1. DP setting", ["central guarantee", "trusted", "simulated in the clear"]),
    (
        "2a. Data accesses covered",
        [
            "single training run",
            "4,210,000",
            "evaluation on validation clients; tuning of the server learning rate",
            "Trying settings on the same clients and choosing a model by what it scores",
            "does not weaken the guarantee of the others",
            "public novels",
        ],
    ),
    (
        "2b. Final mechanism output",
        ["the final model", "full sequence of privatised sums", "intermediate model"],
    ),
    ("2c. Unit of privacy", ["Device level", "group privacy"]),
    ("2d. Adjacency", ["Zero-out", "replaced by zeros"]),
    ("3a. Type of accounting", ["zCDP", "tree aggregation", "exact"]),
    (
        "3b. Accounting assumptions",
        [
            "at most 6",
            "MinS = 313",
            "MinS = 399",
            "report goal 6,500",
            "operating system",
            "cohort rule: exactly",
        ],
    ),
    ("3c. Formal DP statement", ["0.806123", "8.5261", "at delta = 1e-10", "As planned", "As realised"]),
    (
        "3d. Transparency and verifiability",
        ["tacit account run runs/novels", "tacit account tree --rounds 2000", "`tacit verify`", "source can be read"],
    ),
]


def changed(**changes: Any) -> TrainingFacts:
    return replace(TRAINING, **changes)


def test_every_item_of_appendix_a_is_there_in_order() -> None:
    text = statement(TRAINING).markdown()
    places = [text.index(title) for title, _ in APPENDIX_A]
    assert places == sorted(places)
    for (title, must_say), begin, end in zip(APPENDIX_A, places, [*places[1:], len(text)], strict=True):
        for phrase in must_say:
            assert phrase in text[begin:end], f"{title} does not say {phrase!r}"
    assert text.startswith("# Privacy statement")  # nothing to warn of


WITHOUT_NOISE = Guarantee(participation=PLAN, strategy=None, clip_norm=5.0, noise_multiplier=0.0)
SMALL = replace(PROMISE, noise_multiplier=0.54)


@pytest.mark.parametrize(
    ("label", "facts"),
    [
        ("NON-PRIVATE", changed(planned=WITHOUT_NOISE, realised=WITHOUT_NOISE)),
        ("VOCABULARY FROM PRIVATE TEXT", changed(vocabulary_kind="private")),
        ("FIXED SEED", changed(key_source="fixed seed 7")),
        ("WEAKER THAN PLANNED", changed(planned=HAPPENED, realised=PROMISE)),
        (
            "EXTRAPOLATED",
            changed(report_goal=5000, extrapolation=Extrapolation(report_goal=6500, noise_multiplier=9.1)),
        ),
    ],
)
def test_what_weakens_the_guarantee_stands_on_the_first_line(label: str, facts: TrainingFacts) -> None:
    made = statement(facts)
    assert made.markdown().startswith(f"**{label}: ")
    assert [each["name"] for each in made.to_record()["labels"]] == [label]


def test_an_epsilon_that_protects_nobody_says_so() -> None:
    hardly = replace(SMALL, noise_multiplier=0.05)
    names = [label.name for label in statement(changed(planned=hardly, realised=hardly, report_goal=500)).labels]
    assert names == ["VERY LARGE EPSILON"]


def test_all_labels_come_before_everything_else() -> None:
    facts = changed(planned=WITHOUT_NOISE, realised=WITHOUT_NOISE, vocabulary_kind="private", key_source="fixed seed 1")
    head = statement(facts).markdown().split("# Privacy statement")[0]
    for label in ("NON-PRIVATE", "VOCABULARY FROM PRIVATE TEXT", "FIXED SEED"):
        assert f"**{label}: " in head


def test_without_noise_no_epsilon_is_claimed() -> None:
    made = statement(changed(planned=WITHOUT_NOISE, realised=WITHOUT_NOISE))
    formal = next(item.text for item in made.items if item.number == "3c")
    assert formal.startswith("None")
    assert "zCDP is infinite" in formal
    assert made.to_record()["planned"]["zcdp"] == made.to_record()["realised"]["epsilon"] == "inf"


def test_a_private_vocabulary_is_left_out_of_the_promise() -> None:
    made = statement(changed(vocabulary_kind="private"))
    assert "Neither covers the vocabulary" in next(item.text for item in made.items if item.number == "3c")


def test_a_discovered_vocabulary_has_the_guarantee_of_its_campaign() -> None:
    made = statement(changed(vocabulary_kind="discovered"))
    assert not any(label.name.startswith("VOCABULARY") for label in made.labels)
    assert "has the guarantee of its discovery" in next(item.text for item in made.items if item.number == "3c")
    assert "that discovery's own statement covers them" in made.markdown()


def test_the_extrapolated_figures_never_mix_with_the_runs_own() -> None:
    larger = Extrapolation.scaled(SMALL, report_goal=500, to=6500)
    assert larger.noise_multiplier == pytest.approx(7.02)  # the papers' 0.54 at 500 for 7 at 6,500
    made = statement(changed(planned=SMALL, realised=SMALL, report_goal=500, extrapolation=larger))
    *own, extrapolated = made.items
    larger_rho = replace(SMALL, noise_multiplier=7.02).zcdp
    assert extrapolated.title.startswith("EXTRAPOLATED")
    assert f"{larger_rho:.4f}" in extrapolated.text
    assert not any(f"{larger_rho:.4f}" in item.text for item in own)
    record = made.to_record()
    assert record["planned"]["zcdp"] == SMALL.zcdp
    assert record["extrapolated"]["planned"]["zcdp"] == pytest.approx(larger_rho)
    assert "extrapolated" not in statement(TRAINING).to_record()


def test_the_record_is_json_with_the_figures_in_full() -> None:
    record = json.loads(json.dumps(statement(TRAINING).to_record(), allow_nan=False))
    assert record["planned"]["sensitivity_squared"] == 79
    assert record["planned"]["zcdp"] == PROMISE.zcdp
    assert record["realised"]["epsilon"] == HAPPENED.epsilon(1e-10)
    assert [item["number"] for item in record["items"]] == [
        "1",
        "2a",
        "2b",
        "2c",
        "2d",
        "3a",
        "3b",
        "3c",
        "3d",
    ]


@pytest.mark.parametrize("zcdp", [0.1, 0.3, 1 / 3, 0.8061224, 12345.678, 1e-7])
def test_printed_figures_never_understate(zcdp: float) -> None:
    promise = Guarantee.for_zcdp(zcdp, participation=PLAN, strategy=Tree(), clip_norm=1.0)
    made = statement(changed(planned=promise, realised=promise))
    formal = next(item.text for item in made.items if item.number == "3c")
    printed = float(formal.split("rho = ")[1].split(",")[0])
    assert promise.zcdp * (1 - 1e-9) <= printed <= promise.zcdp * (1 + 1e-5)


@pytest.mark.parametrize(
    "strategy",
    [
        Independent(),
        Tree(restarts=(128,), variance_reduced=True),
        Blt(theta=(0.9,), omega=(0.5,)),
        BandedToeplitz(coefficients=(1.0, 0.5)),
        BandedInverse(coefficients=(1.0, -0.5)),
    ],
    ids=repr,
)
def test_strategies_are_described_and_have_a_command(strategy: Any) -> None:
    promise = replace(PROMISE, strategy=strategy)
    command = account_command(promise, 1e-10)
    assert command is not None
    assert command in statement(changed(planned=promise, realised=promise)).markdown()


def test_a_strategy_without_a_command_points_to_the_run_alone() -> None:
    promise = replace(PROMISE, strategy=Toeplitz(coefficients=(1.0,) * 2000))
    made = statement(changed(planned=promise, realised=promise))
    assert account_command(promise, 1e-10) is None
    assert "tacit account run runs/novels" in made.markdown()
    assert "a Toeplitz strategy of 2000 coefficients" in made.markdown()


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (Banded(np.eye(20)[:, [0]] + [[1.0, 0.0]]), "a banded strategy matrix of 20 rounds and 2 bands"),
        (Dense(np.eye(20)), "a strategy matrix of 20 rounds"),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_matrix_is_described_by_its_size(strategy: Any, said: str) -> None:
    once = Participation(rounds=20, min_separation=20, max_participations=1)
    promise = replace(PROMISE, strategy=strategy, participation=once)
    text = statement(changed(planned=promise, realised=promise, participations=130_000)).markdown()
    assert said in text
    assert "exact worst-case sensitivity" in text


def test_a_bound_is_said_to_be_one() -> None:
    promise = replace(PROMISE, strategy=BandedInverse((1.0, -0.3, -0.6)))
    made = statement(changed(planned=promise, realised=promise))
    accounting = next(item.text for item in made.items if item.number == "3a")
    assert "a proved upper bound of its worst-case sensitivity" in accounting
    assert made.figures["planned"]["exact"] is False


BITS = Guarantee(participation=PLAN, strategy=Tree(), clip_norm=0.5, noise_multiplier=9.0)
HISTOGRAM = replace(BITS, strategy=Independent(), clip_norm=1.0)
BESIDE = (
    SideRelease(what="clip estimate", planned=BITS, realised=BITS.with_participation(HAPPENED.participation)),
    SideRelease(what="evaluation histogram", planned=HISTOGRAM, realised=HISTOGRAM),
)


def test_what_is_released_beside_the_updates_is_counted_and_named() -> None:
    made = statement(changed(also_released=BESIDE))
    text = {item.number: item.text for item in made.items}
    rho = PROMISE.zcdp + BITS.zcdp + HISTOGRAM.zcdp
    assert made.figures["in_all"]["planned"]["zcdp"] == pytest.approx(rho)
    assert [each["what"] for each in made.figures["also_released"]] == ["clip estimate", "evaluation histogram"]
    assert made.figures["planned"]["zcdp"] == PROMISE.zcdp
    assert f"rho = {rho:.4f}" in text["3c"] and "clip estimate 0.370371" in text["3c"]
    assert "zCDP of the other sequences is added" in text["3a"]
    assert "evaluation histogram: a client's summand has norm at most 1" in text["3b"]
    assert "sums of these were released: clip estimate, evaluation histogram" in text["2b"]
    assert "--noise-multiplier 9.0" in text["3d"]


def test_a_sequence_without_noise_makes_the_whole_run_non_private() -> None:
    bare = Guarantee(participation=PLAN, strategy=None, clip_norm=1.0, noise_multiplier=0.0)
    made = statement(changed(also_released=(SideRelease(what="gaussian sum: losses", planned=bare, realised=bare),)))
    assert [label.name for label in made.labels] == ["NON-PRIVATE"]
    assert "released without noise: gaussian sum: losses" in made.labels[0].meaning
    assert next(item.text for item in made.items if item.number == "3c").startswith("None")


def test_a_larger_cohort_makes_every_sequence_quieter_alike() -> None:
    larger = Extrapolation.scaled(PROMISE, report_goal=6500, to=13_000)
    made = statement(changed(also_released=BESIDE, extrapolation=larger))
    planned = made.figures["in_all"]["planned"]["zcdp"]
    assert made.figures["extrapolated"]["in_all"]["planned"]["zcdp"] == pytest.approx(planned / 4)


RESTARTED = replace(PROMISE, strategy=Tree(restarts=(128, 1152)), clip_norm=0.1)


def test_a_clip_norm_that_changed_at_restarts_is_said() -> None:
    held = ((0, 0.1), (128, 4.2), (1152, 4.7))
    made = statement(changed(planned=RESTARTED, realised=replace(RESTARTED, clip_norm=4.7), clip_norms=held))
    text = next(item.text for item in made.items if item.number == "3b")
    assert "0.1 from round 0 on; 4.2 from round 128 on; 4.7 from round 1,152 on" in text
    assert "standard deviation 7 x the clip norm in force" in text
    assert TrainingFacts.from_record(json.loads(made.to_json())["facts"]) == made.facts
    fresh = replace(RESTARTED, strategy=Independent())
    every = tuple((at, 1.0 + at) for at in range(2000))
    many = statement(
        changed(planned=replace(fresh, clip_norm=1.0), realised=replace(fresh, clip_norm=2000.0), clip_norms=every)
    )
    text = next(item.text for item in many.items if item.number == "3b")
    assert "1 at first, 2000 at last, 1,999 changes, never below 1 or above 2000" in text


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ((), "differ in more than participation"),
        (((0, 0.2), (128, 4.7)), "the run began with clip norm 0.1"),
        (((1, 0.1), (128, 4.7)), "begin with"),
        (((0, 0.1), (127, 4.7)), "change in round 127, where the noise does not start afresh"),
        (((0, 0.1), (128, 1.0), (128, 4.7)), "not increasing"),
        (((0, 0.1), (5000, 4.7)), "not increasing rounds of the 2000 released"),
        (((0, 0.1), (128, 4.6)), "differ in more than participation"),
    ],
)
def test_clip_norms_that_no_ledger_would_account_are_refused(held: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        changed(planned=RESTARTED, realised=replace(RESTARTED, clip_norm=4.7), clip_norms=held)


def test_facts_without_clip_norms_are_written_as_before() -> None:
    assert "clip_norms" not in TRAINING.to_record()


def test_encoding_for_secure_aggregation_is_said() -> None:
    encoded = replace(PROMISE, clip_inflation=1.01)
    made = statement(changed(planned=encoded, realised=encoded, aggregation="secure aggregation"))
    text = {item.number: item.text for item in made.items}
    assert "at most 1.01 times that once encoded for secure aggregation" in text["3b"]
    assert "--clip-inflation 1.01" in text["3d"]
    assert made.figures["planned"]["sensitivity_squared"] == pytest.approx(79 * 1.01**2)


@pytest.mark.parametrize("extrapolation", [None, Extrapolation(report_goal=65_000, noise_multiplier=70.0)])
@pytest.mark.parametrize("also", [(), BESIDE])
@pytest.mark.parametrize("mechanism", [PROMISE, WITHOUT_NOISE, replace(WITHOUT_NOISE, clip_norm=math.inf)])
def test_the_facts_survive_json(mechanism: Guarantee, also: Any, extrapolation: Extrapolation | None) -> None:
    facts = changed(
        planned=mechanism,
        realised=mechanism.with_participation(HAPPENED.participation),
        also_released=also,
        extrapolation=extrapolation if mechanism.private else None,
    )
    assert TrainingFacts.from_record(json.loads(json.dumps(facts.to_record(), allow_nan=False))) == facts


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("population", "many"),
        ("population", True),
        ("looked_at", "evaluation"),
        ("looked_at", [1]),
        ("planned", {"rounds": 3}),
        ("mechanism", None),
        ("also_released", [{}]),
        ("extrapolation", 3),
        ("strategy", "tree"),
    ],
)
def test_facts_of_the_wrong_kind_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        TrainingFacts.from_record({**TRAINING.to_record(), name: value})


def test_facts_without_an_extrapolation_have_no_larger_cohort() -> None:
    with pytest.raises(InputError, match="extrapolate nothing"):
        TRAINING.at_larger_cohort()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"unit": "example"}, "unit='example'"),
        ({"adjacency": "replace-one"}, "adjacency='replace-one'"),
        ({"vocabulary_kind": "mixed"}, "vocabulary_kind='mixed'"),
        ({"key_source": "clock"}, "key_source='clock'"),
        ({"delta": 0.0}, "delta=0.0"),
        ({"realised": replace(HAPPENED, noise_multiplier=8.0)}, "more than participation"),
        (
            {"extrapolation": Extrapolation(report_goal=65_000, noise_multiplier=700.0)},
            "noise multiplier 70 ",
        ),
        ({"extrapolation": Extrapolation(report_goal=500, noise_multiplier=0.54)}, "more than 6500 reports"),
        (
            {
                "planned": WITHOUT_NOISE,
                "realised": WITHOUT_NOISE,
                "extrapolation": Extrapolation(report_goal=65_000, noise_multiplier=0.0),
            },
            "nothing to extrapolate",
        ),
    ],
)
def test_facts_that_contradict_each_other_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        changed(**changes)


def test_infinite_clip_norm_of_a_run_without_privacy_is_plain_json() -> None:
    unclipped = replace(WITHOUT_NOISE, clip_norm=math.inf)
    record = statement(changed(planned=unclipped, realised=unclipped)).to_record()
    assert json.loads(json.dumps(record, allow_nan=False))["planned"]["clip_norm"] == "inf"
