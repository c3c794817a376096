"""`tacit.audit_run`: canaries join one training of a recipe, and what was released says what leaked of them."""

import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.audit.finding import Finding, Findings
from tacit.audit.one_run.settings import CanarySettings
from tacit.compute import Hardware
from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.progress import Event, Noted, Progress, StageEnded, silent, together
from tacit.records import to_plain
from tacit.reports.blocks import Block, Paragraph, Table
from tacit.statements.audited import AUDIT, SCORES, Audited
from tacit.version import __version__

if TYPE_CHECKING:  # what trains is loaded when it is asked to
    from tacit.audit.one_run.exposure import Exposure
    from tacit.audit.one_run.places import CanaryCohorts
    from tacit.audit.one_run.scores import Seen
    from tacit.privacy import Guarantee
    from tacit.recipe import Recipe
    from tacit.runs import Run
    from tacit.training.hooks import Hooks

CODE = "audit"  # of what is told on the way
KNOWS = (
    "chose what canaries send, knows the first model, the mechanism and in which rounds each canary comes, and nothing "
    "of other clients"
)
THREATS = {
    "all": f"{KNOWS}; sees all released models, hence every round's noised sum",
    "last": f"{KNOWS}; sees the last model and none between",
}


@dataclass(frozen=True, kw_only=True)
class RunFindings(Findings):
    """The findings of a run with canaries, and how well its model knows random sentences that users typed."""

    run: Path
    canaries: int
    exposures: "tuple[Exposure, ...]" = ()

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        more = {"run": str(self.run), "canaries": self.canaries, "exposures": [e.to_record() for e in self.exposures]}
        return {**super().to_record(), **more}

    def blocks(self) -> list[Block]:
        """Those of all findings, then the exposures."""
        found = super().blocks() if self.findings else []
        if self.broken:
            often = 1 - self.broken[0].confidence
            said = (
                f"Of a run that leaks just what it claims, a bound lies above the claim in {often:.2g} of all audits: "
                "audit again, with another --seed, --out and a higher --confidence, before you believe it."
            )
            found.append(Paragraph(said))
        if self.exposures:
            head = ("repeats", "users", "sentences", "mean exposure, bits", "largest", "chance of that")
            rows = tuple(
                (f"{e.repeats}", f"{e.users}", f"{e.sentences}", f"{e.mean:.2f}", f"{e.largest:.2f}", f"{e.chance:.3g}")
                for e in self.exposures
            )
            said = "Random sentences that users typed, ranked by the last model; one that it never saw has 1.44 bits:"
            found += [Paragraph(said), Table(rows, head=head)]
        return [*found, Paragraph(f"The run, whose model has canaries in it and is of no use: {self.run}")]


def audit_run(
    recipe: "Recipe | PathLike",
    *,
    settings: CanarySettings = CanarySettings(),  # noqa: B008  (frozen)
    out: PathLike | None = None,
    data: PathLike | None = None,
    init: PathLike | None = None,
    seed: int | None = None,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> RunFindings:
    """Train once by a recipe with canaries among its clients, and bound from below what its releases leak.

    Canaries come as often as the recipe lets anybody, in place of others, so that a round's report goal stays. Called
    again with the same arguments it goes on, or reads what is finished, with the same figures.

    recipe, data, init: as of `tacit.train`. settings: the canaries.
    out: the run folder to make; left out, runs/audit-RECIPE. The clients with the canaries
    are beside it, OUT-clients.
    seed: fixes the noise as well as the canaries; left out, noise has a fresh key, and canaries those of seed 0.
    hardware: changes the speed only.
    progress: gets each event in this thread.

    Raises: InputError for too few canaries or too many, for a recipe without noise, of real devices, with a simulated
    population or a clip norm that adapts, and where the run at `out` is another tacit's; what `tacit.train` does.
    """
    from tacit.jobs.train.job import as_called

    of_type("settings", settings, CanarySettings)
    asked = as_called(recipe, data=data, init=init, population=None, seed=seed, model=None)
    place = as_path("out", out) if out is not None else Path("runs") / f"audit-{_name(recipe)}"
    check_recipe(asked, settings)
    hardware.apply()
    run = _begun(asked, place, settings, seed or 0, hardware, progress)
    with run:
        _train(run, settings, seed or 0, hardware, progress)
        return _found(run, settings, seed or 0, _command(recipe, settings, out=out, data=data, init=init, seed=seed))


def check_recipe(recipe: "Recipe", settings: CanarySettings) -> None:
    """Raises: InputError for a recipe that no canary can say anything of."""
    from tacit.audit.one_run.canaries import check_words

    if settings.canaries and recipe.privacy.mechanism_name == "none":
        raise InputError(
            f"the recipe {recipe.name!r} adds no noise, so it promises nothing that scores could refute: every bound "
            "on mu would grow with the canaries. What its model remembers, exposure shows: give --canaries 0."
        )
    if recipe.population is not None:
        raise InputError(
            "[population] says who comes, and canaries come as often as they may; the promise holds whoever comes, so "
            "drop the section."
        )
    if recipe.clipping is not None:
        raise InputError(
            "[clipping] moves the clip norm by what clients send, and canaries are of a fixed one; audit the recipe "
            "with privacy.clip_norm in place of [clipping]."
        )
    check_words(recipe.client.settings())


def _name(recipe: "Recipe | PathLike") -> str:
    from tacit.recipe import Recipe

    if isinstance(recipe, Recipe):
        raise InputError("a Recipe has no file to name the run after; give out=, the run folder to make.")
    return as_path("recipe", recipe).stem


def _begun(
    recipe: "Recipe", out: Path, settings: CanarySettings, seed: int, hardware: Hardware, progress: Progress
) -> "Run":
    """The run folder with its canaries, before the first round or as it was left."""
    from tacit.audit.one_run.joined import description, joined
    from tacit.jobs.opened_cache import open_cache
    from tacit.jobs.run_start import check_place
    from tacit.jobs.train.run import begin
    from tacit.runs import Run

    clients = out.with_name(f"{out.name}-clients")
    evaluation = recipe.evaluation.model_copy(update={"baselines": False})  # which say nothing of canaries
    begins = recipe.model_copy(
        update={"data": recipe.data.model_copy(update={"cache": clients}), "evaluation": evaluation}
    )
    people = open_cache(recipe.data.cache)
    if (out / "run.db").is_file():
        with Run.open(out) as found:
            _check_same(found, description(people, settings, seed))
            hooks = _hooks(_guarantee_of(found), begins, people.manifest.vocabulary.size, settings, seed)
        return begin(begins, out, hooks=hooks, hardware=hardware, progress=progress, anyway=True)
    check_place(out)
    planned = begins.with_delta(begins.privacy.delta_for(len(people.clients("train")) + _joining(settings)))
    designed = planned.designed()
    guarantee = designed.plan(designed.matrix()).updates
    if settings.canaries:
        settings.check_enough(guarantee.checked().mu)
    hooks = _hooks(guarantee, begins, people.manifest.vocabulary.size, settings, seed)
    people.verify(progress)
    joined(people, clients, seed, settings)
    try:
        return begin(begins, out, hooks=hooks, hardware=hardware, progress=progress, anyway=True)
    except BaseException:
        if not (out / "run.db").is_file():
            shutil.rmtree(clients)
        raise


def _joining(settings: CanarySettings) -> int:
    return settings.canaries + settings.sentence_users


def _check_same(run: "Run", expected: str) -> None:
    """Raises: InputError where the run was begun with other canaries, or by another version."""
    from tacit.statements.accounts import trained

    began = trained(run)
    if (version := began.versions.get("tacit")) != __version__:
        raise InputError(
            f"'{run.path}' was begun by tacit {version}, and this is {__version__}: a finding is of one version's "
            "code; give another --out, or audit with that version."
        )
    if began.data.source != expected:
        raise InputError(
            f"'{run.path}' was begun with other clients or canaries ({began.data.source}), not: {expected}; give "
            "those, or another --out."
        )


def _guarantee_of(run: "Run") -> "Guarantee":
    """Of the model updates, as the run began."""
    from tacit.statements.accounts import planned_in_all

    return planned_in_all(run).sequences[0].guarantee


def _hooks(guarantee: "Guarantee", recipe: "Recipe", vocabulary: int, settings: CanarySettings, seed: int) -> "Hooks":
    """What makes a training one with canaries."""
    from tacit.audit.one_run.canaries import CanaryUpdates, jax_seed
    from tacit.audit.one_run.places import CanaryCohorts, places, whitening
    from tacit.audit.one_run.released import WatchedOptimizer
    from tacit.training.hooks import Hooks

    goal = recipe.rounds.report_goal
    blocks = [settings.alike] * settings.groups + [1] * settings.sentence_users
    cohorts = CanaryCohorts(guarantee.participation, places(guarantee, blocks, report_goal=goal))
    optimizer = None
    if settings.canaries:
        weights = whitening(guarantee)[0][_starts(cohorts, settings)[0]]
        optimizer = WatchedOptimizer(recipe.server.settings(), weights, report_goal=goal)
    return Hooks(sampler=cohorts, algorithm=CanaryUpdates(jax_seed(seed), vocabulary), optimizer=optimizer)


def _starts(cohorts: "CanaryCohorts", settings: CanarySettings) -> tuple[Any, Any]:
    """(the different first rounds of canaries with gradients, which of them is each group's)."""
    return np.unique(cohorts.starts[: settings.canaries : settings.alike], return_inverse=True)


def _train(run: "Run", settings: CanarySettings, seed: int, hardware: Hardware, progress: Progress) -> None:
    """The rounds that the run lacks, and the scores before the states that they are in are destroyed."""
    from tacit.jobs.train.run import carry_on
    from tacit.recipe import Recipe
    from tacit.statements.accounts import trained
    from tacit.training.loop import STAGE

    if run.finished:
        return
    with run.locked():
        run.note(AUDIT, to_plain(_stated(settings, seed)))  # before anything is released
    recipe = Recipe.from_toml(run.settings, where=str(run.path))
    hooks = _hooks(_guarantee_of(run), recipe, trained(run).data.vocabulary_size, settings, seed)

    def keep(event: Event) -> None:
        ended = event == StageEnded(STAGE) and run.steps_done == recipe.rounds.rounds
        if ended and settings.canaries and SCORES not in run.notes:
            run.note(SCORES, _scores(run, recipe, hooks, settings, seed))

    progress(Noted(CODE, f"{_joining(settings):,} clients of this run are canaries: its model is of no use."))
    carry_on(run, hardware=hardware, hooks=hooks, progress=together(progress, keep))


def _scores(run: "Run", recipe: "Recipe", hooks: "Hooks", settings: CanarySettings, seed: int) -> dict[str, Any]:
    """What the last checkpoint shows of each group, as plain values."""
    from tacit.audit.one_run.canaries import coins, jax_seed
    from tacit.audit.one_run.scores import scores
    from tacit.data import Cache
    from tacit.jobs.train.learner import learner_of
    from tacit.training.checkpoint import read_checkpoint

    last = run.steps()[-1]
    arrays = read_checkpoint(run.path / "steps" / last.file, last.digest)
    start = learner_of(run, recipe, Cache.open(recipe.data.cache), hooks).start
    of_group, sums = _starts(hooks.sampler, settings)[1], arrays[".optimizer.sums"]  # type: ignore[arg-type]
    moved, canaries = (arrays[".model"] - start)[None], jax_seed(seed)
    return {
        "all": scores(canaries, sums, of_group).tolist(),
        "last": scores(canaries, moved, np.zeros_like(of_group)).tolist(),
        "included": coins(canaries, settings.groups).tolist(),
        "dimension": len(start),
        "alike": settings.alike,
    }


def _found(run: "Run", settings: CanarySettings, seed: int, command: str) -> RunFindings:
    """What the notes and the model of a finished run say; kept in the run, and in its report."""
    from tacit.audit.one_run.exposure import exposures
    from tacit.audit.one_run.joined import random_sentences
    from tacit.jobs.rehearsal import as_it_is
    from tacit.jobs.train.release import write_reports
    from tacit.keyboard.model_folder import load_model
    from tacit.statements.accounts import trained

    typed = random_sentences(seed, settings, trained(run).data.vocabulary_size)
    found = RunFindings(
        audit="one run with canaries",
        findings=_bounds(run, settings, seed) if settings.canaries else (),
        command=command,
        run=run.path,
        canaries=_joining(settings),
        exposures=exposures(load_model(run.path), typed, seed),
    )
    stated = to_plain(_stated(settings, seed, found))
    if run.notes.get(AUDIT) != stated:
        with run.locked():
            run.note(AUDIT, stated)
            write_reports(run, as_it_is)
    return found


def _stated(settings: CanarySettings, seed: int, found: RunFindings | None = None) -> Audited:
    """What the run's statement says; before anything is found, that there are canaries."""
    return Audited(
        canaries=settings.canaries,
        users=settings.sentence_users,
        sees=settings.see,
        confidence=settings.confidence,
        tacit=__version__,
        command=_command("RECIPE", settings, seed=seed),
        mu_shown=None if found is None or not found.findings else found.findings[0].lower,
    )


def _bounds(run: "Run", settings: CanarySettings, seed: int) -> tuple[Finding, ...]:
    """Of all released models and of the last, or of the last alone."""
    from tacit.audit.one_run.scores import Seen

    noted = run.notes.get(SCORES)
    if noted is None:
        raise InputError(f"'{run.path}' was ended by something else than an audit, without scores; give another --out.")
    found: list[Finding] = []
    for what in ("all", "last") if settings.see == "all" else ("last",):
        seen = Seen(
            scores=np.array(noted[what]),
            included=np.array(noted["included"]),
            dimension=noted["dimension"],
            alike=noted["alike"],
        )
        found += _of(run, settings, seed, seen, what)
    return tuple(found)


def _of(run: "Run", settings: CanarySettings, seed: int, seen: "Seen", what: str) -> tuple[Finding, ...]:
    """The bounds of one auditor, the one that assumes most first."""
    from tacit.privacy.gaussian import epsilon_of_mu
    from tacit.statements.accounts import planned_in_all, trained

    promised, delta, level = planned_in_all(run), trained(run).delta, settings.confidence
    subject = "all models" if what == "all" else "the last model"
    known, compared = seen.known_directions(level), seen.in_against_out(level)
    guessed, right, guesses = seen.guesses(level)
    margin = known.estimate - known.lower  # as far above: with it, an interval for what such a score shows
    common = Finding(
        subject=f"{subject}: known directions",
        measure="mu",
        claim=promised.mu,
        lower=known.lower,
        estimate=known.estimate,
        confidence=level,
        samples=int(seen.included.sum()) * seen.alike,
        samples_of="canaries that were in",
        threat_model=THREATS[what],
        seed=seed,
        figures={"groups": len(seen.scores), "alike": seen.alike, "upper": known.estimate + margin},
    )
    return (
        common,
        replace(
            common,
            measure="epsilon",
            delta=delta,
            claim=promised.epsilon(delta),
            lower=epsilon_of_mu(known.lower, delta),
            estimate=epsilon_of_mu(known.estimate, delta) if known.estimate > 0 else 0.0,
        ),
        replace(
            common,
            subject=f"{subject}: in against out",
            lower=compared.lower,
            estimate=compared.estimate,
            samples=settings.canaries,
            samples_of="canaries, by coins in or out",
        ),
        replace(
            common,
            subject=f"{subject}: guessed coins",
            lower=guessed,
            estimate=None,
            samples=guesses,
            samples_of=f"guesses, {right} right, of {len(seen.scores)} coins",
        ),
    )


def _command(recipe: "Recipe | PathLike", settings: CanarySettings, **given: Any) -> str:
    """The command line that finds the same. given: its other options."""
    standard = CanarySettings()
    for name in ("alike", "sentences", "repeats", "users", "see", "confidence"):
        value = getattr(settings, name)
        if value != getattr(standard, name):
            given[name] = ",".join(map(str, value)) if isinstance(value, tuple) else value
    options = [f"--{name} {shlex.quote(str(value))}" for name, value in given.items() if value is not None]
    called = shlex.quote(str(recipe)) if isinstance(recipe, str | Path) else "RECIPE"
    return " ".join([f"tacit audit {called} --canaries {settings.canaries}", *options])
