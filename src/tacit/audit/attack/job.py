"""`tacit.audit_attack`: the published attack on keyboards' models, played on tacit's own training, view by view."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType

import numpy as np
from numpy.typing import NDArray

from tacit.audit.attack.membership import findings_of
from tacit.audit.attack.population import Population, checked_size, population, pretrained
from tacit.audit.attack.public_text import PublicText, public_text
from tacit.audit.attack.result import AttackResult, ViewResult
from tacit.audit.attack.scores import Guesses, sentence_scores, word_scores
from tacit.audit.attack.sentences import Reader, Sentence
from tacit.audit.attack.settings import AttackSettings
from tacit.audit.attack.views import View, names, silence, views
from tacit.audit.attack.words import Experience, Ids, certainty, changed, evidence, experience, likeliest, risen
from tacit.data import Cache, VocabularyChoice
from tacit.data.formats.shipped import Chat, Novels
from tacit.data.vocabulary_choice import NOVELS
from tacit.errors import InputError, of_type
from tacit.files import PathLike
from tacit.jobs.import_data import import_data
from tacit.jobs.run_start import checked_cache
from tacit.networks.cifg.network import Cifg
from tacit.privacy.participation import whole
from tacit.progress import Progress, counted, silent
from tacit.text.vocabulary import EOS, PAD
from tacit.training.randomness import key_from_seed

GUESSING, ATTACKING = "guessing sentences", "attacking"  # the stages, a step a person and a view
OPTIONS = ("clients", "cohort", "noise_multiplier", "sentence_clients", "tied")  # of the command


def audit_attack(
    data: Cache | PathLike | None = None,
    *,
    public: Cache | PathLike | None = None,
    settings: AttackSettings | None = None,
    only: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> AttackResult:
    """Read people's words and sentences from what a server sees of training (arXiv:2210.16947), defences off and on.

    data: a cache of clients, whose texts are never shown; None: the chat that tacit ships, in the words of its novels.
    public: a cache of public text in the same vocabulary, which the network learns and the guesser knows; None: the
    novels that tacit ships.
    settings: how many people, how large a network, how much noise.
    only: names of views, such as "upload" and "release"; None: all of them.
    seed: of the choice of people, of their sentences and of noise; whoever knows it could take the noise away.
    progress: gets each event in this thread.

    Raises: InputError for an unknown view, too few clients, or two vocabularies; CacheError.
    """
    of_type("settings", settings, AttackSettings, NoneType)
    whole("seed", seed, 0)
    of_type("only", only, list, tuple, NoneType)
    asked = settings or AttackSettings()
    if unknown := [name for name in only or () if name not in names(asked)]:
        raise InputError(f"the view {unknown[0]!r} is unknown; it is one of {', '.join(names(asked))}.")
    with tempfile.TemporaryDirectory(prefix="tacit-attack-") as folder:
        clients, novels = _caches(data, public, asked, Path(folder), progress)
        checked_size(clients, asked)
        network = Cifg(
            vocabulary=clients.manifest.vocabulary.size,
            embedding=asked.embedding,
            units=asked.units,
            tied=asked.tied,
        )
        model = pretrained(network, novels, asked, seed, progress)
        people = population(clients, network, model, asked, seed=seed, progress=progress)
        known = public_text(novels, model, asked.words)
    key, command = key_from_seed(seed), _command(asked, {"data": data, "public": public}, only, seed)
    chosen = [view for name, view in views(people, asked, key).items() if only is None or name in only]
    learnt, reader = experience(people, known), Reader(network, model, known, asked.words)
    quiet, frequent = silence(people, asked, key), known.most_frequent(learnt.words, known.words)
    some = range(0 if asked.tied else min(asked.sentence_clients, asked.clients))
    blind = [
        reader.read(quiet(target).update, frequent, most=asked.sentences)
        for target in counted(some, GUESSING, progress, total=len(some))
    ]
    found = [
        _played(view, people, known, learnt, reader, blind, asked)
        for view in counted(chosen, ATTACKING, progress, total=len(chosen))
    ]
    return AttackResult(
        views=found,
        findings=findings_of(chosen, people, known, learnt, asked, seed=seed, command=command, progress=progress),
        settings=asked,
        seed=seed,
        source=clients.manifest.source,
        clip_norm=people.clip_norm,
        parameters=people.parameters,
    )


def _caches(
    data: Cache | PathLike | None,
    public: Cache | PathLike | None,
    asked: AttackSettings,
    folder: Path,
    progress: Progress,
) -> tuple[Cache, Cache]:
    """The clients and the public text, in one vocabulary."""
    if data is None:
        if public is not None:
            raise InputError("public text is given and no clients; give data, in the same vocabulary.")
        words = VocabularyChoice(public=(NOVELS,))
        novels = import_data(
            Novels(), folder / "novels", vocabulary=words, vocabulary_size=asked.vocabulary, progress=progress
        )
        same = VocabularyChoice(file=novels.vocabulary_path)
        return import_data(Chat(), folder / "chat", vocabulary=same, progress=progress), novels
    clients = checked_cache(data, progress=progress)
    if public is None:
        same = VocabularyChoice(file=clients.vocabulary_path)
        return clients, import_data(Novels(), folder / "novels", vocabulary=same, progress=progress)
    others = checked_cache(public, progress=progress)
    if others.manifest.vocabulary.sha256 != clients.manifest.vocabulary.sha256:
        raise InputError(
            f"{others.path} and {clients.path} have two vocabularies; import the public text again with "
            f"--vocabulary {clients.vocabulary_path}."
        )
    return clients, others


def _played(
    view: View,
    people: Population,
    public: PublicText,
    learnt: Experience,
    reader: Reader,
    blind: list[list[Sentence]],
    asked: AttackSettings,
) -> ViewResult:
    """The attack on every target through one view. blind: sentences that were guessed, of so many targets."""
    classes = {"words": public.words, "rare": public.rare}
    named: dict[str, list[Ids]] = {name: [] for name in classes}
    proof: list[NDArray[np.float64]] = []
    read: list[list[Sentence]] = []
    for target in range(asked.clients):
        seen = view.seen(target)
        exact = risen(seen.update) if view.bias_alone else changed(seen.update)
        proof.append(evidence(seen, public, learnt) if seen.noise else certainty(seen.update, exact))
        for name, among in classes.items():
            words = likeliest(proof[-1], public, learnt, rare=name == "rare") if seen.noise else exact
            named[name].append(words[among[words]])
        if view.sentences and target < len(blind):
            read.append(reader.read(seen.update, named["words"][-1], most=asked.sentences))
    typed = [sentences_of(people.targets.sentences[target]) for target in range(len(read))]
    scores = {
        name: word_scores(
            Guesses(
                typed=[people.targets.typed(target) for target in range(asked.clients)],
                attacked=named[name],
                guessed=[public.most_frequent(len(words), among) for words in named[name]],
                evidence=proof,
                outside=[people.outsiders.typed(target) for target in range(asked.clients)],
            ),
            among,
        )
        for name, among in classes.items()
    }
    return ViewResult(
        view=view.name,
        says=view.says,
        threat_model=view.threat_model,
        people=view.people,
        sentences=sentence_scores(typed, read, blind) if read else None,
        **scores,
    )


def sentences_of(batch: NDArray[np.int32]) -> list[Sentence]:
    """The sentences of a client's padded batch, without BOS and EOS."""
    rows = [row[1:][(row[1:] != PAD) & (row[1:] != EOS)] for row in batch if row.any()]
    return [tuple(map(int, row)) for row in rows]


def _command(
    asked: AttackSettings, caches: Mapping[str, Cache | PathLike | None], only: Sequence[str] | None, seed: int
) -> str:
    """What makes the same figures again, but for settings that have no option."""
    default = AttackSettings()
    changed_ones = [name for name in OPTIONS if getattr(asked, name) != getattr(default, name)]
    given = [
        *(f"--{name} CACHE" for name, cache in caches.items() if cache is not None),
        *(f"--{name.replace('_', '-')} {getattr(asked, name)}".removesuffix(" True") for name in changed_ones),
        *([] if only is None else [f"--views {','.join(only)}"]),
    ]
    return " ".join(["tacit audit attack", *given, f"--seed {seed}"])
