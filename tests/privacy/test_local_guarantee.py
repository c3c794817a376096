"""What local randomizers promise at each level."""

import json
import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_guarantee import Group, LocalGuarantee
from tacit.privacy.local_shuffling import Kind, shuffle_epsilon

GROUPS = (Group(50_000, 101), Group(50_000, 10_001), Group(20_000, 501))


def guarantee(**changed: Any) -> LocalGuarantee:
    settings: dict[str, Any] = dict(item_epsilon=6.0, contributions=1, groups=GROUPS, central_delta=1e-8)
    return LocalGuarantee(**{**settings, **changed})


class TestLevels:
    def test_a_person_adds_up_what_the_answers_cost(self) -> None:
        assert guarantee(contributions=4).user_epsilon == 24.0

    @pytest.mark.parametrize("randomizer", ["subset-selection", "any"])
    def test_central_is_the_worst_group(self, randomizer: Kind) -> None:
        """Every group by itself, and no more than the worst of them: nothing adds up over groups."""
        made = guarantee(randomizer=randomizer, contributions=2)
        alone = [
            shuffle_epsilon(6.0, 2 * group.users, 1e-8, randomizer, group.domain).epsilon_upper for group in GROUPS
        ]
        assert made.central.epsilon_upper == pytest.approx(max(alone), rel=1e-4)

    def test_more_groups_cost_nothing(self) -> None:
        assert guarantee(groups=GROUPS * 10).central == guarantee().central

    def test_user_level_is_group_privacy(self) -> None:
        """K answers: (K eps, delta (e^(K eps) - 1)/(e^eps - 1)) from (eps, delta) for one, all within 1e-8."""
        made = guarantee(contributions=3)
        epsilon = made.central_user_epsilon / 3
        assert made.central.epsilon_upper < epsilon < 1.5 * made.central.epsilon_upper
        # The delta of one answer, found again from its epsilon: K of them stay within what was promised.
        one = next(
            delta
            for delta in np.geomspace(1e-8 / 3, 1e-12, 200)
            if guarantee(contributions=3, central_delta=float(delta)).central.epsilon_upper >= epsilon * (1 - 1e-5)
        )
        factor = math.expm1(3 * epsilon) / math.expm1(epsilon)
        assert one * factor <= 1e-8 * 1.05
        assert factor > 3

    def test_one_answer_is_a_persons_all(self) -> None:
        made = guarantee()
        assert made.central_user_epsilon == made.central.epsilon_upper

    def test_never_above_the_local_one(self) -> None:
        made = guarantee(groups=(Group(2, 101),), contributions=5)
        assert made.central_user_epsilon <= made.user_epsilon


class TestWhatIsPublished:
    def test_sentences_say_every_level_and_assumption(self) -> None:
        said = "\n".join(guarantee(contributions=2).sentences())
        for part in (
            "Local, for one answer: epsilon = 6.",
            "everything a user answered (2 answers): epsilon = 12.",
            "Central, for one answer",
            "at delta = 1e-08",
            "privacy blanket",
            "3 questions",
            "20000 at the fewest",
            "nobody in common",
            "shuffles or sums",
            "operating system",
        ):
            assert part in said
        assert "SIMULATION" not in said

    def test_a_seed_is_said_first(self) -> None:
        made = guarantee(randomness="seed 7")
        assert made.sentences()[0].startswith("SIMULATION")
        assert "seed 7" in made.sentences()[0]
        assert made.to_record()["randomness"] == "seed 7"

    def test_record_is_json_and_complete(self) -> None:
        made = guarantee(contributions=2)
        record = json.loads(json.dumps(made.to_record()))
        assert record["local_epsilon_item"] == 6.0
        assert record["local_epsilon_user"] == 12.0
        assert record["reports_of_smallest_group"] == 40_000
        assert record["central_epsilon_item_lower"] <= record["central_epsilon_item"] <= record["central_epsilon_user"]
        assert record["statement"] == made.sentences()
        assert set(record["assumptions"]) == {"devices", "disjoint", "shuffler", "others"}

    def test_anonymity(self) -> None:
        assert Anonymity(k=20, delta=1e-6).sentence() == (
            "Anonymity: a string that fewer than 20 of those asked typed is output with probability at most 1e-06, "
            "for each given string."
        )

    @pytest.mark.parametrize(
        ("changed", "named"),
        [
            ({"groups": ()}, "groups of users"),
            ({"groups": (Group(0, 101),)}, "a group of 0"),
            ({"groups": (Group(10, 1),)}, "domain=1"),
            ({"contributions": 0}, "contributions=0"),
            ({"item_epsilon": 0.0}, "epsilon=0"),
            ({"item_epsilon": math.inf}, "epsilon=inf"),
        ],
        ids=repr,
    )
    def test_bad_input(self, changed: dict[str, Any], named: str) -> None:
        with pytest.raises(InputError, match=named):
            guarantee(**changed)
