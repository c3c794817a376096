"""Words of a discovery run on keyboard B: their shares, what they change, what is refused before anything is typed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.jobs.finished_discovery import finished
from tests.support.discovery.typed_words import KNOWN, SETTINGS, asked
from tests.support.jobs.jobs_with_runs import ONE, without_places

import tacit
from tacit.data import VocabularyChoice
from tacit.data.typed_sentences import Share
from tacit.errors import InputError, RunError
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.type_ab.measures import MEASURES, total
from tacit.evaluation.type_ab.replay import Keyboard, type_sentences
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.evaluation.type_ab.typist import POPULATION
from tacit.jobs.phone_models import phone_model
from tacit.jobs.type_ab.more_words import read_more_words
from tacit.jobs.type_ab.setup import open_test
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.lexicon import Lexicon
from tacit.keyboard.phone_model import PhoneModel
from tacit.progress import silent
from tacit.statements import EvaluationFacts
from tacit.statements.run_facts import facts_of

THREE = replace(KNOWN, words=("the", "of", "and"))  # as many as a strip shows
FEW = Share(split="train", users=8)
MODEL = PhoneModel(name="a model", reader=None, vocabulary=KNOWN, digest="")  # type: ignore[arg-type]


def counted(*counts: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"word": word, "votes": 1, "count": count, "of_reports": 100} for word, count in counts]


@pytest.fixture(scope="module")
def model(clients: Path) -> str:
    """The trigram of what the clients type in three words."""
    THREE.save(clients / "three.json")
    words = VocabularyChoice(file=clients / "three.json")
    tacit.import_data(str(clients / "typed.parquet"), clients / "cache", vocabulary=words)
    return f"trigram:{clients / 'cache'}"


@pytest.fixture(scope="module")
def found(clients: Path) -> Path:
    """A discovery run, which finds `covid`, `selfie` and a little noise."""
    return asked(clients, clients / "found", vocabulary=THREE).run.path


def typed(clients: Path, model: str, out: str, found: Path | None, **changed: Any) -> Any:
    settings = TypingSettings(share=FEW, more_words=None if found is None else str(found))
    data = str(clients / "typed.parquet")
    return tacit.type_ab(model, model, data, clients / out, settings=settings, hardware=ONE, **changed)


class TestShares:
    def test_a_word_s_is_its_count_of_all_reports(self, tmp_path: Path) -> None:
        rows = counted(("selfie", 10.0), ("ab;", 40.0), ("brunch", 20.0), ("of", 9.0), ("nobody", -3.0))
        more = read_more_words(str(finished(tmp_path, rows)), MODEL)
        assert more.words.words == ("brunch", "selfie")
        np.testing.assert_allclose(np.exp(more.words.log_shares), (0.2, 0.1))
        assert more.words.others == pytest.approx(0.7)
        assert more.origin == "words discovered with local epsilon 8 a report, 2 a user"

    def test_of_more_than_the_whole_they_are_divided(self, tmp_path: Path) -> None:
        more = read_more_words(str(finished(tmp_path, counted(("selfie", 90.0), ("brunch", 30.0)))), MODEL)
        np.testing.assert_allclose(np.exp(more.words.log_shares), (0.75, 0.25))
        assert more.words.others == 0

    def test_a_simulation_says_that_it_promises_nothing(self, tmp_path: Path) -> None:
        more = read_more_words(str(finished(tmp_path, counted(("selfie", 9.0)), seed=3)), MODEL)
        assert "nothing is promised to its clients" in more.origin


class TestTyped:
    def test_b_knows_them_and_a_does_not(self, clients: Path, model: str, found: Path) -> None:
        """The slow reference: both keyboards made by hand, no run and no cores."""
        result = typed(clients, model, "typed", found)
        phone, more = phone_model("a", model), read_more_words(str(found), phone_model("b", model)).words
        assert {"covid", "selfie"} <= set(more.words)
        touch, lexicon = POPULATION.touch, Lexicon.from_words(THREE.words, POPULATION.touch.layout)
        test = open_test(model, model, str(clients / "typed.parquet"), TypingSettings(share=FEW), silent)
        for side, words in (("a", None), ("b", more)):
            decoder = Decoder(lexicon if words is None else lexicon.with_words(words.words), touch)
            extra = {} if words is None else {"more_words": words}
            keyboard = Keyboard(model=phone, decoder=decoder, **extra)
            tallies = [
                type_sentences(keyboard, POPULATION, each.sentences, seed=0, user=each.name)
                for each in test.typed.users
            ]
            for name, measure in MEASURES.items():
                np.testing.assert_equal(result.exact["measures"][name][side], measure.of(total(tallies)))
        accuracy = result.exact["measures"]["accuracy"]
        assert accuracy["b"] > accuracy["a"], "what is typed so often is foreseen once it is known"

    def test_it_is_said_and_gone_on_with(self, clients: Path, model: str, found: Path) -> None:
        first = typed(clients, model, "said", found, release=ReleaseCost(epsilon=8.0), noise_seed=1)
        words = len(read_more_words(str(found), phone_model("b", model)).words.words)
        assert first.record["more_words"]["words"] == words
        said = " ".join(str(first).split())
        assert f"with {words} more words of {found.name}" in said and "only that changes" in said
        assert "nothing can" in str(typed(clients, model, "without", None))
        resumed: Any = tacit.resume(first.run.path)
        assert without_places(resumed.to_record()) == without_places(first.to_record())
        facts = facts_of(first.run)
        assert isinstance(facts, EvaluationFacts)
        assert facts.subjects[2].startswith("beside the second, words of the discovery run found (SHA-256 ")
        assert tacit.verify(first.run.path).holds

    def test_other_words_are_another_run(self, clients: Path, model: str, found: Path) -> None:
        typed(clients, model, "again", found)
        other = asked(clients, clients / "other", replace(SETTINGS, seed=2), vocabulary=THREE).run.path
        with pytest.raises(RunError, match="more_words"):
            typed(clients, model, "again", other)
        with pytest.raises(RunError, match="more_words"):
            typed(clients, model, "again", None)


class TestRefused:
    def test_a_run_that_sought_beyond_other_words(self, clients: Path, model: str) -> None:
        of_two = asked(clients, clients / "of two").run.path
        with pytest.raises(
            InputError, match=r"another vocabulary than that of trigram.*with the model's own vocabulary"
        ):
            typed(clients, model, "refused", of_two)
        assert not (clients / "refused").exists()

    def test_words_that_nobody_counted(self, tmp_path: Path) -> None:
        run = finished(tmp_path, [{"word": "selfie", "votes": 5}])
        with pytest.raises(InputError, match=r"nobody counted .*--counting-users"):
            read_more_words(str(run), MODEL)

    @pytest.mark.parametrize("rows", [counted(), counted(("of", 5.0), ("ab;", 5.0), ("selfie", -1.0))])
    def test_no_word_at_all(self, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
        with pytest.raises(InputError, match="found no word that a model lacks"):
            read_more_words(str(finished(tmp_path, rows)), MODEL)

    def test_what_is_no_finished_discovery(self, clients: Path, model: str, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="is not finished"):
            read_more_words(str(finished(tmp_path, None)), MODEL)
        for other in (tmp_path, clients / "three.json", tmp_path / "nowhere"):
            with pytest.raises(InputError, match="is no run of `tacit discover`; give the folder of one"):
                read_more_words(str(other), MODEL)
        another = typed(clients, model, "another", None).run.path
        with pytest.raises(InputError, match="only `tacit discover` finds words"):
            read_more_words(str(another), MODEL)
