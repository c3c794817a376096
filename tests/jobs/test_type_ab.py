"""`tacit.type_ab`: what is counted, what survives a kill, what is released, and what is refused before it begins."""

import json
import math
import pickle
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from tests.support.jobs.jobs_with_runs import without_places

import tacit
from tacit.compute import Hardware
from tacit.compute.processes import Processes
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.data.clients import split_of
from tacit.data.typed_sentences import Share
from tacit.errors import CacheError, InputError, RunError, SourceError
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.type_ab.launch_rule import DECIDING
from tacit.evaluation.type_ab.measures import MEASURES, total
from tacit.evaluation.type_ab.replay import type_sentences
from tacit.evaluation.type_ab.settings import TypingSettings, variants
from tacit.evaluation.type_ab.typist import POPULATION
from tacit.jobs.count_steps import Lines
from tacit.jobs.phone_models import phone_model
from tacit.jobs.type_ab import workers as typing_workers
from tacit.jobs.type_ab.run import read, typed_once
from tacit.jobs.type_ab.setup import open_test
from tacit.progress import Advanced, Event, silent

SAID = ("See you at the station tomorrow", "We will be there all morning", "I see all of them at the station")
PEOPLE = {f"person {n}": [f"{SAID[n % 3]}. {SAID[(n // 3) % 3]}!", f"Call me on {n % 5}"] for n in range(40)}
OTHERS = {f"other {n}": ["Them see station the at you. Morning all there be will we"] for n in range(30)}
ONE = Hardware(workers=1)
TRAIN = Share(split="train", users=12)


@dataclass(frozen=True)
class World:
    """Text, and two trigrams over the same words: `good` was counted on such text, `bad` on its words in disorder."""

    folder: Path
    cache: Cache
    good: str
    bad: str

    def typed(self, out: str, a: str | None = None, b: str | None = None, **changed: Any) -> Any:
        settings = TypingSettings(share=TRAIN)
        asked = {"data": "folder:" + str(self.folder / "people"), "settings": settings, "hardware": ONE, **changed}
        data = asked.pop("data")
        return tacit.type_ab(a or self.bad, b or self.good, data, self.folder / out, **asked)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    at = tmp_path_factory.mktemp("typing")
    (at / "people").mkdir()
    for name, texts in PEOPLE.items():
        (at / "people" / f"{name}.txt").write_text("\n\n".join(texts))
    cache = tacit.import_data(TextsOf(PEOPLE), at / "good", vocabulary=VocabularyChoice(private=True))
    words = VocabularyChoice(file=cache.vocabulary_path)
    tacit.import_data(TextsOf(OTHERS), at / "bad", vocabulary=words)
    return World(folder=at, cache=cache, good=f"trigram:{at / 'good'}", bad=f"trigram:{at / 'bad'}")


@pytest.fixture(scope="module")
def improved(world: World) -> Any:
    """Nothing is released of it."""
    return world.typed("improved")


@pytest.fixture(scope="module")
def released(world: World) -> Any:
    """With noise, and with phrases in the line."""
    settings = TypingSettings(share=TRAIN, compose=0.3)
    return world.typed("released", release=ReleaseCost(epsilon=8.0), settings=settings)


class TestWhatIsCounted:
    def test_a_model_that_knows_the_text_is_improved(self, world: World, improved: Any) -> None:
        result = improved
        accuracy = result.exact["measures"]["accuracy"]
        assert accuracy["b"] > accuracy["a"] and accuracy["difference"].low > 0
        assert "accuracy" in result.exact["decision"]["better"] and result.judgement == "improved"
        assert world.typed("worse", world.good, world.bad).judgement == "worse"

    def test_measures_are_those_of_every_user_typed_for_itself(self, world: World) -> None:
        """The slow reference: no run, no lines, no cores."""
        settings = TypingSettings(share=TRAIN)
        test = open_test(world.bad, world.good, f"folder:{world.folder / 'people'}", settings, silent)
        found = world.typed("exact", seed=5).exact["measures"]
        for keyboard, side in ((test.a, "a"), (test.b, "b")):
            tallies = [
                type_sentences(keyboard, POPULATION, user.sentences, seed=5, user=user.name)
                for user in test.typed.users
            ]
            for name, measure in MEASURES.items():
                expected = measure.of(total(tallies))  # NumPy and `sum` add in other orders, and that of 3.12 exactly
                assert found[name][side] == pytest.approx(expected, rel=1e-12) or math.isnan(expected)

    def test_a_model_against_itself_changes_nothing_at_all(self, world: World) -> None:
        result = world.typed("itself", world.good, world.good)
        assert result.judgement == "neutral"
        assert {tuple(row["difference"]) for row in result.exact["measures"].values() if row["a"] == row["a"]} == {
            (0.0,) * 3
        }
        assert "same model" in " ".join(str(result).split())

    def test_a_cache_is_typed_as_far_as_it_spells(self, world: World) -> None:
        few = TextsOf({name: [text.replace("station", "airport") for text in texts] for name, texts in PEOPLE.items()})
        cache = tacit.import_data(
            few, world.folder / "airport", vocabulary=VocabularyChoice(file=world.cache.vocabulary_path)
        )
        typed = world.typed("spelled", data=cache).exact["typed"]
        assert typed["unspelled"] > 0 and typed["untypable"] >= typed["unspelled"]
        whole = world.typed("whole", data=few).exact["typed"]
        assert whole["unspelled"] == 0 and whole["words"] == typed["words"] + typed["unspelled"]

    def test_of_different_vocabularies_the_report_says_so(self, world: World) -> None:
        small = world.folder / "words.txt"
        small.write_text("the\nat\nsee\nyou\n")
        tacit.import_data(TextsOf(PEOPLE), world.folder / "small", vocabulary=VocabularyChoice(word_list=small))
        result = world.typed("apart", f"trigram:{world.folder / 'small'}")
        words = len(set(words_of(world.cache)))
        assert f"A knows 4 words and B {words} , 4 of them the same".replace(" ,", ",") in str(result).replace(
            "\n", " "
        )

    @pytest.mark.parametrize("condition", ["search", "rescore"])
    def test_a_trigram_may_search(self, world: World, condition: Any) -> None:
        """Where it ranks alone, too, the models correct alike, and differ in what they suggest."""
        settings = TypingSettings(share=TRAIN, condition=condition, search=world.good)
        result = world.typed(condition, settings=settings)
        measures = result.exact["measures"]
        assert measures["accuracy"]["difference"].low > 0
        from_cache = world.typed(f"{condition} of a cache", data=world.cache, settings=replace(settings, search=None))
        assert from_cache.record["search"] == "trigram:good"

    def test_phrases_are_offered_where_they_are_asked_for(self, improved: Any, released: Any) -> None:
        assert released.exact["measures"]["compose trigger rate"]["b"] > 0
        assert math.isnan(improved.exact["measures"]["compose picked rate"]["b"])


def words_of(cache: Cache) -> tuple[str, ...]:
    """The words of a cache's vocabulary."""
    return tuple(json.loads(cache.vocabulary_json)["words"])


class TestSensitivity:
    def test_every_parameter_is_halved_and_doubled(self, world: World) -> None:
        settings = TypingSettings(share=replace(TRAIN, users=4), sensitivity=3)
        result = world.typed("varied", settings=settings)
        found = result.exact["sensitivity"]
        assert found["users"] == 3 and set(found["as_it_is"]["measures"]) == set(DECIDING)
        asked = [(each.parameter, each.factor) for each in variants(POPULATION)]
        assert [(each["parameter"], each["factor"]) for each in found["variants"]] == asked
        slow = next(each for each in found["variants"] if each["parameter"] == "interval" and each["factor"] == 2)
        as_it_is = found["as_it_is"]["measures"]["words a minute"]
        assert 0.5 < slow["measures"]["words a minute"]["a"] / as_it_is["a"] < 0.75, "looks cost what they cost"
        files = [path.name for path in result.report.everything.figures]
        assert files == ["changes.png", "sensitivity.png"]
        assert "3 of the users typed again" in str(result)
        kept = result.run.path / "simulation" / "sensitivity.jsonl"
        kept.write_text(kept.read_text().replace('"seconds": ', '"seconds": 1', 1))
        with pytest.raises(RunError, match=r"sensitivity\.jsonl' is not what the run wrote"):
            world.typed("varied", settings=settings)


class TestKilled:
    SCRIPT = """
import os, signal, sys
import tacit
from tacit.compute import Hardware
from tacit.data.typed_sentences import Share
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.jobs.type_ab import workers as typing_workers
from tacit.progress import Advanced

typing_workers.WORTH = 1  # so little text would be typed by one process

def killed(event):
    if event == Advanced("typing", 5):
        os.kill(os.getpid(), signal.SIGKILL)

a, b, data, out = sys.argv[1:]
settings = TypingSettings(share=Share(split="train", users=12))
tacit.type_ab(a, b, data, out, settings=settings, release=ReleaseCost(epsilon=4.0), noise_seed=1,
              hardware=Hardware(workers=2), progress=killed)
"""

    @pytest.mark.nightly
    def test_after_kill_9_it_ends_with_the_same_table(self, world: World) -> None:
        """With another number of workers, too."""
        out = world.folder / "killed"
        asked = (world.bad, world.good, f"folder:{world.folder / 'people'}", str(out))
        done = subprocess.run([sys.executable, "-c", self.SCRIPT, *asked], capture_output=True, text=True)
        assert done.returncode == -9, done.stderr
        lines = (out / "simulation" / "tallies.jsonl").read_bytes()
        assert lines.count(b"\n") == 5
        (out / "simulation" / "tallies.jsonl").write_bytes(lines + b'{"user": 3, "a": {"wor')  # torn in the middle
        heard: list[Event] = []
        resumed: Any = tacit.resume(out, hardware=ONE, progress=heard.append)
        assert Advanced("typing", 5) not in heard and Advanced("typing", 12) in heard
        whole = world.typed("not killed", release=ReleaseCost(epsilon=4.0), noise_seed=1)
        assert without_places(resumed.to_record()) == without_places(whole.to_record())
        kept = [(result.run.path / "simulation" / "tallies.jsonl").read_bytes() for result in (resumed, whole)]
        assert kept[0] == kept[1]

    def test_other_processes_type_the_same(self, world: World, improved: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """With what is sent to a process pickled in this one; that real ones do is in the test above."""
        monkeypatch.setattr(typing_workers, "WORTH", 1)
        began: list[int] = []

        class Watched(Processes):
            def __init__(self, workers: int, work: Any) -> None:
                began.append(workers)
                super().__init__(workers, work)
                self._sent = [pickle.dumps(work) for _ in range(workers)]

            def stream(self, items: Any) -> Any:
                typists = cycle([pickle.loads(each) for each in self._sent])
                for item in items:
                    yield pickle.loads(pickle.dumps(next(typists)(pickle.loads(pickle.dumps(item)))))

        monkeypatch.setattr(typing_workers, "Processes", Watched)
        two = world.typed("by two processes", hardware=Hardware(workers=2))
        assert began == [2] and without_places(two.to_record()) == without_places(improved.to_record())

    def test_text_in_memory_is_given_again(self, world: World) -> None:
        first = world.typed("memory", data=TextsOf(PEOPLE))
        with pytest.raises(InputError, match=r"text that stood in memory; go on with tacit\.type_ab"):
            tacit.resume(first.run.path)
        again = world.typed("memory", data=TextsOf(PEOPLE))
        assert again.to_record() == first.to_record()

    @pytest.mark.usefixtures("improved")
    def test_other_text_and_other_models_are_refused(self, world: World) -> None:
        with pytest.raises(RunError, match="typed_sha256"):
            world.typed("improved", data=TextsOf({name: texts[::-1] for name, texts in PEOPLE.items()}))
        with pytest.raises(RunError, match=r"models"):
            world.typed("improved", world.good)
        with pytest.raises(RunError, match=r"seed was 0 and is now 1"):
            world.typed("improved", seed=1)

    def test_a_line_changed_after_the_end_is_found(self, world: World, improved: Any) -> None:
        out = shutil.copytree(improved.run.path, world.folder / "damaged")
        path = out / "simulation" / "tallies.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"words"', b'"wurds"', 1))
        with pytest.raises(RunError, match=r"tallies\.jsonl"):
            tacit.resume(out)

    @pytest.mark.parametrize(
        "line", ['{"a": {}}', "[1]", '"x"', "7", '{"user": 1, "a": [1], "b": {}}', '{"user": 1, "a": {"words": 1}}']
    )
    def test_a_line_that_says_something_else_is_named(self, line: str, tmp_path: Path) -> None:
        lines = Lines(tmp_path / "tallies.jsonl")
        lines.path.write_text(f"{line}\n")
        with pytest.raises(RunError, match=r"line 1 of '.*tallies\.jsonl' is not what this version writes"):
            list(read(lines, typed_once))


class TestRelease:
    def test_it_is_stated_and_verified(self, released: Any) -> None:
        result = released
        assert tacit.verify(result.run.path).holds
        statement = tacit.statement(result.run)
        assert statement.title == "Privacy statement of an evaluation of typing"
        text = statement.markdown()
        assert "4 histograms over 12 clients" in text and "simulation" in text
        assert result.account.to_record()["promise"]["histograms"] == [4]
        assert set(result.released["measures"]) == set(DECIDING)

    def test_the_page_to_publish_has_nothing_exact(self, released: Any) -> None:
        result = released
        published = json.loads(result.report.json.read_text())
        assert "simulation_only" not in published and "run" not in published
        exact = result.exact
        secret = [f"{exact['typed']['words']:,.0f} words of", "SIMULATION ONLY"]
        secret += [f"{row['a']:.2%}" for row in exact["measures"].values() if row["unit"] == "%" and row["a"] > 0.01]
        whole = result.report.everything.markdown.read_text()
        assert all(each in whole for each in secret)
        assert not [each for each in secret if each in result.report.markdown.read_text()]
        assert not list(result.report.html.parent.glob("*.png"))

    def test_the_page_to_publish_names_no_place_and_has_no_digest_of_text(self, world: World, released: Any) -> None:
        """A digest of a cache is an exact one of clients' text, against which guesses of it could be checked."""
        digests = [phone_model("b", each).digest for each in (world.bad, world.good)]
        pages = list((released.run.path / "report").iterdir())
        assert {each.name for each in pages} == {
            "report.html",
            "report.json",
            "report.md",
            "record.json",
            "statement.json",
        }
        for page in pages:
            text = page.read_text()
            assert not [each for each in (str(world.folder), *(digest[:16] for digest in digests)) if each in text], (
                page
            )
            assert "good" in text and "bad" in text

    def test_models_of_one_name_are_told_apart(self, world: World) -> None:
        for name in ("one", "other"):
            shutil.copytree(world.folder / ("good" if name == "one" else "bad"), world.folder / name / "cache")
        result = world.typed("alike", f"trigram:{world.folder}/one/cache", f"trigram:{world.folder}/other/cache")
        assert "A is trigram:one/cache, B is trigram:other/cache." in " ".join(str(result).split())

    def test_noise_is_of_the_promised_size(self, world: World) -> None:
        """Of a loose price every count is nearly right, of a tight one they are not."""
        exact = None
        for epsilon, least, most in ((1_000.0, 0.0, 0.5), (0.5, 5.0, 60.0)):
            result = world.typed(f"noised {epsilon}", release=ReleaseCost(epsilon=epsilon), noise_seed=7)
            histograms = [row["histogram"] for row in result.released["measures"].values()]
            counts = [count for each in histograms for count in each["counts"][0]]
            exact = counts if exact is None else exact
            spread = (sum((x - y) ** 2 for x, y in zip(counts, exact, strict=True)) / len(counts)) ** 0.5
            assert least <= spread <= most
            assert histograms[0]["stddev"][0][0] == pytest.approx(spread, rel=0.3, abs=0.5)

    def test_devices_may_randomise_themselves(self, world: World) -> None:
        result = world.typed("local", release=ReleaseCost(local_epsilon=6.0))
        assert result.record["promise"]["kind"] == "local" and tacit.verify(result.run.path).holds

    def test_without_a_cost_nothing_is_released(self, improved: Any) -> None:
        result = improved
        assert result.released is None and "NOTHING WAS RELEASED" in str(result)
        assert "NOTHING WAS RELEASED" in result.report.markdown.read_text()

    def test_a_population_s_budget_is_told(self, world: World) -> None:
        budget = world.folder / "budget"
        tacit.begin_population(budget, clients="the people", zcdp=1.0)
        world.typed("counted", release=ReleaseCost(zcdp=0.25), population=budget)
        assert "0.25" in str(tacit.account_population(budget))
        with pytest.raises(InputError, match="nothing under a promise"):
            world.typed("free", population=budget)
        assert not (world.folder / "free").exists()


class TestRefused:
    @pytest.mark.parametrize(
        ("changed", "error", "complaint"),
        [
            (
                {"data": TextsOf({f"u{n}": "всё будет хорошо" for n in range(9)})},
                InputError,
                "no word of .* can be typed",
            ),
            ({"data": TextsOf({"somebody": "the only one"})}, (InputError, SourceError), "user|no client"),
            ({"data": "folder:nowhere"}, SourceError, "nowhere"),
            ({"data": "nowhere"}, SourceError, "nowhere"),
            ({"seed": -1}, InputError, r"seed=-1 must be 0 or more"),
            ({"a": "nowhere"}, InputError, "'nowhere' holds no model"),
            ({"b": "trigram:nowhere"}, CacheError, "nowhere"),
            ({"settings": TypingSettings(condition="search")}, InputError, "needs a trigram to search with"),
            ({"settings": TypingSettings(share=Share(split="nobody"))}, (InputError, SourceError), "nobody"),
        ],
    )
    def test_before_anything_is_written(
        self, world: World, changed: dict[str, Any], error: Any, complaint: str
    ) -> None:
        changed = {"settings": TypingSettings(share=TRAIN), **changed}
        with pytest.raises(error, match=complaint):
            world.typed("refused", **changed)
        assert not (world.folder / "refused").exists()

    def test_a_search_over_other_words(self, world: World) -> None:
        words = world.folder / "two.txt"
        words.write_text("the\nat\n")
        tacit.import_data(TextsOf(PEOPLE), world.folder / "two", vocabulary=VocabularyChoice(word_list=words))
        search = f"trigram:{world.folder / 'two'}"
        with pytest.raises(InputError, match="the same ids would stand for different words"):
            world.typed("refused", settings=TypingSettings(share=TRAIN, condition="rescore", search=search))

    def test_a_vocabulary_of_another_script(self, world: World) -> None:
        words = world.folder / "greek.txt"
        words.write_text("καλημέρα\nκόσμε\n")
        tacit.import_data(TextsOf(PEOPLE), world.folder / "greek", vocabulary=VocabularyChoice(word_list=words))
        with pytest.raises(InputError, match="only 0 of 2 words can be typed with the layout 'qwerty'"):
            world.typed("refused", f"trigram:{world.folder / 'greek'}")

    def test_a_folder_of_something_else(self, world: World) -> None:
        with pytest.raises(RunError, match="is no run folder, so it is left alone"):
            world.typed("people")


def test_it_says_who_typed_of_how_many(world: World, improved: Any) -> None:
    """Printed, and in both pages."""
    of_split = sum(split_of(f"person {n}.txt") == "train" for n in range(len(PEOPLE)))
    said = f"12 of the {of_split} users in the train split of "
    pages = [(improved.run.path / name / "report.md").read_text() for name in ("report", "simulation")]
    for text in (str(improved), *pages):
        assert said in " ".join(text.split())
    whole = world.typed(
        "whole split", data=world.cache, settings=TypingSettings(share=Share(split="test", sentences=1))
    )
    assert f"All {whole.record['of_split']} users in the test split" in " ".join(str(whole).split())


def test_lines_fit_a_terminal(world: World, released: Any) -> None:
    lines = [line for line in str(released).splitlines() if str(world.folder) not in line]
    assert max(map(len, lines)) <= 80
    assert "PRate(+%)  Acc(+%)  SC trig(+%)  SC PRate(+%)  WMR(-%)  WPM(+%)" in lines
