"""The attack on people's words: it must succeed where nothing defends, and must not where noise does."""

import dataclasses
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, norm, t
from tests.support.audit.typists import SETTINGS, caches, texts

import tacit
from tacit.aggregation.clipping import clip
from tacit.audit.attack.job import sentences_of
from tacit.audit.attack.membership import findings_of
from tacit.audit.attack.population import Population, population, pretrained
from tacit.audit.attack.public_text import PublicText, public_text
from tacit.audit.attack.scores import Guesses, sentence_scores, shown, similarity, word_scores
from tacit.audit.attack.sentences import Reader
from tacit.audit.attack.settings import AttackSettings
from tacit.audit.attack.views import Seen, View, names, silence, views
from tacit.audit.attack.words import Experience, changed, evidence, experience, likeliest, risen
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.intervals import mean_of
from tacit.networks.cifg.network import Cifg
from tacit.progress import silent
from tacit.text.vocabulary import OOV, PAD, SPECIALS

KEY = b"attack" + bytes(10)


@dataclass(frozen=True)
class Played:
    """A population, what everybody knows, and what an attacker has learnt."""

    clients: Cache
    public: Cache
    people: Population
    known: PublicText
    learnt: Experience

    def view(self, name: str, settings: AttackSettings = SETTINGS) -> View:
        return views(self.people, settings, KEY)[name]

    def guesses(self, view: View, *, of_outsiders: bool = False) -> Guesses:
        """What the attacker names through a view. of_outsiders: of people who took no part."""
        named, proof = [], []
        for target in range(SETTINGS.clients):
            seen = view.seen(target)
            proof.append(np.zeros(len(self.known.frequency)) if seen.noise == 0 else self.evidence(seen))
            exact = changed(seen.update)
            named.append(likeliest(proof[-1], self.known, self.learnt) if seen.noise else exact)
        typed = [self.people.targets.typed(target) for target in range(SETTINGS.clients)]
        outside = [self.people.outsiders.typed(target) for target in range(SETTINGS.clients)]
        return Guesses(
            typed=outside if of_outsiders else typed,
            attacked=named,
            guessed=[self.known.most_frequent(len(words), self.known.words) for words in named],
            evidence=proof,
            outside=outside,
        )

    def evidence(self, seen: Seen) -> NDArray[np.float64]:
        return evidence(seen, self.known, self.learnt)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    clients, public = caches(tmp_path_factory.mktemp("attack"))
    network = Cifg(vocabulary=clients.manifest.vocabulary.size, embedding=SETTINGS.embedding, units=SETTINGS.units)
    model = pretrained(network, public, SETTINGS, 0, silent)
    people = population(clients, network, model, SETTINGS, seed=0, progress=silent)
    known = public_text(public, model, SETTINGS.words)
    return Played(clients, public, people, known, experience(people, known))


# -- the theorem that the attack rests on --------------------------------------------------------------------------


def test_the_output_bias_moves_by_how_often_words_were_typed_less_their_probabilities(played: Played) -> None:
    people, rate = played.people, SETTINGS.learning_rate
    for target in range(8):
        batch = people.targets.sentences[target]
        targets = batch[:, 1:]
        scores = np.asarray(people.network.logits(people.model, batch[:, :-1]), np.float64)
        likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
        likely /= likely.sum(axis=-1, keepdims=True)
        there = targets != PAD
        counts = np.bincount(targets[there], minlength=people.network.vocabulary)
        expected = likely[there].sum(axis=0)
        moved = people.tree(people.targets.updates[target]).output_bias
        np.testing.assert_allclose(moved, rate / there.sum() * (counts - expected), atol=1e-6)
        words = np.flatnonzero(counts > expected)
        assert risen(people.tree(people.targets.updates[target])).tolist() == words[words >= SPECIALS].tolist()
        assert np.isin(words, np.append(people.targets.typed(target), [OOV, 2])).all()  # none that was not typed


def test_the_rows_of_an_untied_input_move_where_a_word_was_read_and_nowhere_else(played: Played) -> None:
    people = played.people
    for target in range(SETTINGS.clients):
        moved = (people.tree(people.targets.updates[target]).embedding != 0).any(axis=1)
        read = people.targets.sentences[target]
        followed = np.unique(read[:, :-1][read[:, 1:] != PAD])
        assert np.flatnonzero(moved).tolist() == followed.tolist()


# -- power, and its absence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["upload", "clipped"])
def test_without_a_defence_the_words_are_read(played: Played, name: str) -> None:
    found = word_scores(played.guesses(played.view(name)), played.known.words)
    assert found.recall.value >= 0.99 and found.precision.value == 1 and found.advantage.low > 0
    assert found.advantage.low > 0.5 and found.exhausted >= 23


def test_encoding_hides_nothing(played: Played) -> None:
    seen = played.view("encoded").seen(0)
    assert (seen.update.embedding != 0).mean() > 0.9 and 0 < seen.noise < 0.01 * played.people.clip_norm
    found = word_scores(played.guesses(played.view("encoded")), played.known.words)
    assert found.recall.value > 0.9 and found.precision.value > 0.9


def test_the_bias_alone_reads_nine_words_of_ten(played: Played) -> None:
    people = played.people
    shares = [
        np.isin(people.targets.typed(target), risen(people.tree(people.targets.updates[target]))).mean()
        for target in range(SETTINGS.clients)
    ]
    assert np.mean(shares) >= 0.9


def test_what_was_read_of_one_person_is_no_better_than_guessing_about_another(played: Played) -> None:
    found = word_scores(played.guesses(played.view("upload"), of_outsiders=True), played.known.words)
    assert found.advantage.low <= 0 and found.recall.value < 0.3


def test_a_sum_names_everybody_s_words(played: Played) -> None:
    two, all_of_them = (
        word_scores(played.guesses(played.view(name)), played.known.words) for name in ("sum-2", "sum-60")
    )
    assert two.recall.value >= 0.99 and two.advantage.low > 0
    assert 0.3 < two.precision.value < 0.7
    assert all_of_them.precision.value < 0.1 and all_of_them.recall.value >= 0.99


@pytest.mark.parametrize("name", ["release", "release-rest-known", "models", "models-rest-known"])
def test_noise_of_the_papers_leaves_a_guess(played: Played, name: str) -> None:
    found = word_scores(played.guesses(played.view(name)), played.known.words)
    assert not shown(found.advantage, found.people, 8) and abs(found.advantage.value) < 0.05
    assert not shown(found.individual, found.people, 8)  # of four views, and of advantages


def test_the_same_attacker_reads_words_through_little_noise(played: Played) -> None:
    quiet = dataclasses.replace(SETTINGS, noise_multiplier=1e-3)
    found = word_scores(played.guesses(played.view("release-rest-known", quiet)), played.known.words)
    assert found.advantage.low > 0 and found.recall.value > 0.9 and found.rank.value > 0.99


def test_views_go_by_the_names_that_are_listed_beforehand(played: Played) -> None:
    assert list(views(played.people, SETTINGS, KEY)) == names(SETTINGS)


# -- what is seen --------------------------------------------------------------------------------------------------


def test_sums_are_of_clipped_updates_with_the_target_among_them(played: Played) -> None:
    people = played.people
    own = [people.clipped(people.targets, at) for at in range(SETTINGS.clients)]
    norms = [float(np.linalg.norm(update)) for update in own]
    assert max(norms) <= people.clip_norm * (1 + 1e-5) and np.isclose(norms, people.clip_norm).sum() >= 4
    np.testing.assert_allclose(own[0], clip(people.targets.updates[0], people.clip_norm).update, rtol=1e-5)
    last = SETTINGS.clients - 1
    two = played.view("sum-2").seen(last).update
    for seen, expected in zip(two, people.tree(own[last] + own[0]), strict=True):
        np.testing.assert_allclose(seen, expected, atol=1e-6)
    rest = people.sums[60] - np.sum(own, axis=0)
    assert 0 < np.linalg.norm(rest) <= people.clip_norm * (60 - SETTINGS.clients)


@pytest.mark.parametrize(("name", "times"), [("release-rest-known", 1), ("models-rest-known", np.sqrt(2))])
def test_noise_is_what_the_promise_says(played: Played, name: str, times: float) -> None:
    view, people = played.view(name), played.people
    seen = view.seen(0)
    own = people.tree(people.clipped(people.targets, 0))
    noise = np.concatenate([np.ravel(one - other) for one, other in zip(seen.update, own, strict=True)])
    assert seen.noise == pytest.approx(times * 7 * people.clip_norm)
    assert noise.std() == pytest.approx(seen.noise, rel=0.05)
    assert view.promise is not None and view.promise.mu == pytest.approx(times / 7)
    assert not np.array_equal(seen.update.output_bias, view.seen(1).update.output_bias)


# -- the pieces, each beside what is slow and obvious --------------------------------------------------------------


def test_evidence_is_a_ratio_of_normal_densities(played: Played) -> None:
    known, learnt, noise = played.known, played.learnt, 0.01
    update = played.people.tree(np.random.default_rng(3).normal(0, noise, played.people.parameters).astype(np.float32))
    found = evidence(Seen(update, noise), known, learnt)
    width = update.embedding.shape[1]
    for word in (5, 17, 300):
        along = float(known.centre @ update.output[:, word] + update.output_bias[word])
        deviation = noise * np.sqrt(known.centre @ known.centre + 1)
        laws_of_one = norm(learnt.risen, np.hypot(deviation, learnt.spread)), norm(0, deviation)
        one = laws_of_one[0].logpdf(max(along, -deviation)) - laws_of_one[1].logpdf(max(along, -deviation))
        laws = [multivariate_normal(np.zeros(width), noise**2 + more) for more in (learnt.row / width, 0.0)]
        other = laws[0].logpdf(update.embedding[word]) - laws[1].logpdf(update.embedding[word])
        assert found[word] == pytest.approx(one + other, rel=1e-4)


def test_ranks_are_shares_of_pairs() -> None:
    evidence_of = np.array([9.0, 9, 9, 9, 1, 2, 2, 3])  # specials first
    among = np.arange(8) >= SPECIALS
    typed, outside = np.array([5, 7]), np.array([4])
    guesses = Guesses(
        typed=[typed, typed],
        attacked=[np.array([5, 6]), np.array([7])],
        guessed=[np.array([4, 5]), np.array([4])],
        evidence=[evidence_of, evidence_of],
        outside=[outside, outside],
    )
    found = word_scores(guesses, among)
    pairs = [(evidence_of[t] > evidence_of[o]) + (evidence_of[t] == evidence_of[o]) / 2 for t in (5, 7) for o in (4, 6)]
    assert found.rank.value == pytest.approx(np.mean(pairs))
    assert found.individual.value == pytest.approx(np.mean(pairs) - 0)
    assert (found.precision.value, found.recall.value) == (0.75, 0.5)
    assert (found.guess_recall.value, found.advantage.value) == (0.25, 0.25)
    assert found.f1.value == pytest.approx((0.5 + 2 / 3) / 2) and found.exhausted == 0


def test_a_gain_is_shown_where_the_interval_of_all_comparisons_is_above_0() -> None:
    values = np.array([0.1, 0.5, 0.3, 0.4, 0.2])
    error = values.std(ddof=1) / np.sqrt(5)
    for comparisons in (1, 2, 10, 100):
        low = values.mean() - t.ppf(1 - 0.025 / comparisons, 4) * error
        assert shown(mean_of(values), 5, comparisons) == (low > 0), comparisons
    assert shown(mean_of(values), 5, 1) and not shown(mean_of(values), 5, 100)


def test_sentences_are_paired_as_well_as_they_can_be() -> None:
    true, read = [(1, 2, 3), (4, 5), (6,)], [(4, 5), (1, 3, 2)]
    best = max(
        sum(similarity(one, read[at]) for one, at in zip(true, order, strict=True) if at < len(read))
        for order in itertools.permutations(range(3))
    )
    found = sentence_scores([true, true], [read, read], [[], read])
    assert found.similarity.value == pytest.approx(best / 3) and found.exact.value == pytest.approx(1 / 3)
    assert found.guess_similarity.value == pytest.approx(best / 6)
    assert similarity((1, 2, 3, 4), (1, 3, 4)) == 0.75 and similarity((), (1,)) == 0


def test_sentences_are_read_from_an_upload_and_not_from_noise(played: Played) -> None:
    people, known = played.people, played.known
    reader = Reader(people.network, people.model, known, SETTINGS.words)
    few = sorted(range(SETTINGS.clients), key=lambda at: len(people.targets.typed(at)))[:8]
    typed = [sentences_of(people.targets.sentences[target]) for target in few]
    read = [
        reader.read(people.tree(people.targets.updates[target]), people.targets.typed(target), most=4) for target in few
    ]
    quiet = silence(people, SETTINGS, KEY)
    blind = [reader.read(quiet(target).update, people.targets.typed(target), most=4) for target in few]
    found = sentence_scores(typed, read, blind)  # even who knows the words does not know their order
    assert found.similarity.value > 0.6 and found.exact.value > found.guess_exact.value and found.advantage.low > 0


# -- promises ------------------------------------------------------------------------------------------------------


def _findings(played: Played, chosen: Sequence[View]) -> dict[str, float]:
    found = findings_of(
        chosen, played.people, played.known, played.learnt, SETTINGS, seed=0, command="tacit audit attack"
    )
    return {f"{each.subject} {each.measure}": each.lower - each.claim for each in found.findings}


def test_all_findings_hold_together(played: Played) -> None:
    chosen = [played.view(name) for name in ("clipped", "release", "release-rest-known", "models-rest-known")]
    found = findings_of(chosen, played.people, played.known, played.learnt, SETTINGS, seed=0, command="again").findings
    assert len(found) == 5 and {each.confidence for each in found} == {1 - 0.01 / 5}
    assert [each.claim for each in found if each.measure == "mu"] == pytest.approx([1 / 7, np.sqrt(2) / 7])
    assert np.isinf(found[0].claim) and found[0].lower > 0  # nothing is promised, and much shown


def test_promises_are_kept_and_a_release_with_less_noise_than_it_says_is_caught(played: Played) -> None:
    honest = played.view("release-rest-known")
    kept = _findings(played, [honest])
    assert len(kept) == 2 and max(kept.values()) < 0
    loud = played.view("release-rest-known", dataclasses.replace(SETTINGS, noise_multiplier=0.05))
    broken = _findings(played, [replace(loud, promise=honest.promise)])
    assert min(broken.values()) > 0


# -- the job -------------------------------------------------------------------------------------------------------


def test_the_job_says_what_it_found_and_finds_the_same_again(played: Played) -> None:
    asked = dataclasses.replace(SETTINGS, cohort=24)
    one, other = (
        tacit.audit_attack(
            played.clients, public=played.public, settings=asked, only=["clipped", "release-rest-known"], seed=5
        )
        for _ in range(2)
    )
    assert one.to_record() == other.to_record()
    record = json.loads(json.dumps(one.to_record()))
    assert record["schema"] == "tacit.audit.attack" and [view["better_than_guessing"] for view in record["views"]] == [
        True,
        False,
    ]
    assert not one.findings.broken and one.view("release-rest-known").sentences is not None
    typed = [sentence for person in texts(1, 160, 1, 5).values() for sentence in person if len(sentence.split()) > 2]
    assert len(typed) > 100 and not [each for each in typed if each in f"{one} {json.dumps(record)}"]
    assert (
        "one release, all others known" in str(one)
        and "attack --data CACHE --public CACHE --clients 24" in one.findings.command
    )


@pytest.mark.long
def test_on_what_people_typed_on_a_help_channel_an_upload_tells_all_and_a_release_nothing() -> None:
    asked = AttackSettings(cohort=200, sentence_clients=6)
    found = tacit.audit_attack(settings=asked, only=["upload-bias", "upload", "release", "release-rest-known"])
    bias, upload = found.view("upload-bias").words, found.view("upload")
    assert bias.recall.low >= 0.9 and bias.precision.value > 0.99 and bias.f1.value > 0.95
    assert upload.words.recall.low >= 0.99 and upload.rare.recall.low >= 0.99 and found.better(upload)
    assert upload.sentences is not None and upload.sentences.advantage.low > 0.1
    for name in ("release", "release-rest-known"):
        view = found.view(name)
        assert view.sentences is not None and view.sentences.advantage.low <= 0
        assert not found.better(view) and abs(view.words.advantage.value) < 0.01
    assert not found.findings.broken


def test_a_tied_network_gives_words_away_by_its_bias(played: Played) -> None:
    asked = dataclasses.replace(SETTINGS, cohort=24, tied=True)
    found = tacit.audit_attack(played.clients, public=played.public, settings=asked, only=["upload", "release"])
    assert found.view("upload").words.recall.value > 0.9 and found.view("upload").sentences is None
    assert not found.better(found.view("release"))


def test_what_cannot_be_attacked_is_refused(played: Played) -> None:
    with pytest.raises(InputError, match="need 6,600 training clients"):
        tacit.audit_attack(played.clients, public=played.public, settings=AttackSettings(pretraining=64))
    with pytest.raises(InputError, match="no clients; give data"):
        tacit.audit_attack(public=played.public)
    with pytest.raises(InputError, match="'sum-3' is unknown; it is one of upload-bias, upload"):
        tacit.audit_attack(
            played.clients, public=played.public, settings=dataclasses.replace(SETTINGS, cohort=24), only=["sum-3"]
        )
    for wrong in ({"clients": 19}, {"cohort": 50}, {"noise_multiplier": 0.0}, {"confidence": 0.4}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            AttackSettings(**wrong)
