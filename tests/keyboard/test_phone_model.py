"""A model as the phone holds it: the same answers as the trained one, without an accelerator's libraries."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.keyboard.tabled import drawn, table_of, words_of
from tests.support.networks.gru import Gru

from tacit.errors import InputError
from tacit.keyboard.model_folder import load_model, write_model
from tacit.keyboard.phone_model import PhoneModel, load_phone_model
from tacit.keyboard.suggest import TypingSession
from tacit.keyboard.user_words import UserWords
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import LanguageModel
from tacit.text.vocabulary import EOS, OOV

WORDS = words_of(*(f"w{number}" for number in range(56)))
UNTIED, TIED = (Cifg(vocabulary=60, embedding=4, units=6, tied=tied) for tied in (False, True))


def folder_of(network: LanguageModel, folder: Path) -> Path:
    write_model(folder, network, network.init(jax.random.key(3)), WORDS.to_json().encode())
    return folder


@pytest.mark.parametrize("network", [UNTIED, TIED, Gru()], ids=str)
def test_it_answers_as_the_trained_model(network: LanguageModel, tmp_path: Path) -> None:
    folder = folder_of(network, tmp_path / "run" / "model")
    phone, trained = load_phone_model(tmp_path / "run"), load_model(folder)
    assert phone.digest == trained.digest and str(phone) == str(tmp_path / "run")
    assert phone.next_words("w1 unheard. w2", 56) == trained.next_words("w1 unheard. w2", 56)


def test_it_loads_no_accelerator(tmp_path: Path) -> None:
    folder = folder_of(UNTIED, tmp_path / "model")
    code = f"""
import sys
from tacit.keyboard.phone_model import load_phone_model
session = load_phone_model({str(folder)!r}).typing({{"mine": 2}})
session.commit("w1")
session.next_words(), session.compose("w", threshold=0.001), session.rescore(["w1", "mine"])
heavy = {{"jax", "numba", "pyarrow", "scipy", "onnxruntime", "matplotlib", "pydantic"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no model"):
        load_phone_model(tmp_path)
    (file := tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="holds no model"):
        load_phone_model(file)
    folder = folder_of(UNTIED, tmp_path / "model")
    for setting, sentence in (('"units": 6', "do not belong together"), ('"unit": 6', "cannot be built")):
        (folder / "settings.json").write_text(
            '{"kind": "cifg", "vocabulary": 60, "embedding": 5, "tied": false, ' + setting + "}"
        )
        with pytest.raises(InputError, match=sentence):
            load_phone_model(folder)
    (folder_of(UNTIED, folder) / "vocabulary.json").write_text(words_of("one", "two").to_json())
    with pytest.raises(InputError, match="do not belong together"):
        load_phone_model(folder)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("[" * 100_000, "is damaged"),
        ('{"kind": ["cifg"]}', "is damaged .*kind=.'cifg'. is of the type list"),
        ('{"kind": null}', "is damaged .*kind=None"),
        ('{"kind": ".cifg:Cifg"}', "kind='.cifg:Cifg' is unknown"),
        ('{"kind": "os/system:Cifg"}', "kind='os/system:Cifg' is unknown"),
    ],
)
def test_settings_of_no_network_are_refused(settings: str, sentence: str, tmp_path: Path) -> None:
    folder = folder_of(UNTIED, tmp_path / "model")
    (folder / "settings.json").write_text(settings)
    for load in (load_phone_model, load_model):
        with pytest.raises(InputError, match=sentence):
            load(folder)


# -- sessions ------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([*WORDS.words[:5], "unheard"]), max_size=4), st.integers(0, 3))
def test_log_probabilities_are_the_softmax_and_forks_go_their_own_way(typed: list[str], more: int) -> None:
    model = PhoneModel(name="m", reader=drawn(0, 60, 2.0), vocabulary=WORDS, digest="")
    session = model.typing()
    session.commit(" ".join(typed))
    before = session.log_probabilities.copy()
    assert before.dtype == np.float32 and np.exp(before.astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)
    fork = session.fork()
    fork.commit("w9 " * more)
    assert (session.log_probabilities == before).all()
    other = model.typing()
    other.commit(" ".join([*typed, *["w9"] * more]))
    assert (fork.log_probabilities == other.log_probabilities).all()


THREE = words_of("one", "two", "three")
ROWS = {"<bos>": {"one": 0.5, "two": 0.2, "<oov>": 0.2, "<eos>": 0.1}, "<oov>": {"three": 1.0}}


def test_candidates_are_rescored_and_unknown_ones_share_what_is_unknown() -> None:
    """0.2 is for unknown words; of the user's own 3 tokens of 2 words, "mine" has 2 / (3 + 2)."""
    session = TypingSession(table_of(THREE, ROWS), THREE)
    asked = ("One", "two", "x", "y", "x", "three")
    assert np.exp(session.rescore(asked)) == pytest.approx([0.5, 0.2, 0.1, 0.1, 0.1, 0.0])
    session = TypingSession(table_of(THREE, ROWS), THREE, user_words={"mine": 1, "Mine": 1, "yours": 1, "two": 9})
    shares = [0.2 * 2 / 5, 0.2 / 5, 0.2 * 2 / 5, 0.5]
    assert np.exp(session.rescore(["mine", "yours", "x", "one"])) == pytest.approx(shares)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "one"]), st.integers(1, 9)))
def test_with_the_words_of_the_user_it_is_still_a_distribution(user_words: dict[str, int]) -> None:
    session = TypingSession(table_of(THREE, ROWS), THREE, user_words=user_words)
    everything = {*THREE.words, *user_words}
    shown = session.next_words(len(everything))
    assert {each.word for each in shown} == everything
    shares = [each.probability for each in shown]
    assert shares == sorted(shares, reverse=True)
    others = float(np.exp(session.rescore(["nobody's"])[0]))
    assert sum(shares) + others + float(np.exp(session.log_probabilities[EOS])) == pytest.approx(1.0)
    assert others > 0 and np.exp(session.log_probabilities[OOV]) == pytest.approx(0.2)


def test_a_user_s_word_is_shown_and_read_as_unknown() -> None:
    session = TypingSession(table_of(THREE, ROWS), THREE, user_words={"mine": 9})
    assert [each.word for each in session.next_words(3)] == ["one", "two", "mine"]
    session.commit("mine")
    assert session.next_words(1)[0].word == "three"


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"two words": 1}, "'two words' is not one word"),
        ({"": 1}, "'' is not one word"),
        ({"a.": 1}, "not one word"),
        ({"<url>": 1}, "not one word"),
        ({"mine": 0}, "was typed 0 times"),
        ({"mine": 1.5}, "is of the type float"),
        (["mine"], "user_words=.* is of the type list"),
    ],
)
def test_what_is_no_dictionary_is_refused(counts: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TypingSession(table_of(THREE, ROWS), THREE, user_words=counts)


# -- words with shares of their own, as discovered ones have ----------------------------------------------------------


def test_shares_divide_the_probability_of_unknown_words_and_a_decoder_s_log_probabilities_sum_to_one() -> None:
    shares = {"selfie": 0.5, "brunch": 0.25, "two": 0.1}  # "two" is known
    own = UserWords.by_share(shares, THREE)
    assert own.words == ("selfie", "brunch") and own.others == 0.25
    plain = TypingSession(table_of(THREE, ROWS), THREE)
    session = TypingSession(table_of(THREE, ROWS), THREE, user_words=own)
    logs, unknown = session.with_own_words, math.exp(plain.log_probabilities[OOV])
    assert logs.shape == (THREE.size + 2,) and np.exp(logs.astype(np.float64)).sum() == pytest.approx(1.0, abs=1e-6)
    assert np.exp(logs[[-2, -1, OOV]]) == pytest.approx([0.5 * unknown, 0.25 * unknown, 0.25 * unknown], rel=1e-5)
    assert session.rescore(["selfie", "brunch", "other"]) == pytest.approx([*logs[-2:], logs[OOV]], abs=1e-6)
    assert plain.with_own_words is plain.log_probabilities
    everything = UserWords.by_share({"selfie": 1.0}, THREE)
    assert TypingSession(table_of(THREE, ROWS), THREE, user_words=everything).with_own_words[OOV] == -math.inf


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ({"selfie": 0.0}, "the share 0 of 'selfie' is none"),
        ({"selfie": math.nan}, "the share nan of 'selfie' is none"),
        ({"selfie": 0.6, "brunch": 0.6}, r"sum to 1\.2"),
        ({"two words": 0.1}, "'two words' is not one word"),
        ({"selfie": "0.1"}, "the share of 'selfie'=.* is of the type str"),
    ],
)
def test_what_are_no_shares(shares: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        UserWords.by_share(shares, THREE)
