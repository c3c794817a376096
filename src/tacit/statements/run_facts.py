"""What the statement of a run is made from, as its folder has it."""

import itertools
import shlex
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import AccountingError, InputError, RunError
from tacit.privacy.composition import Composition, ReleasedSequence
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.records import from_plain
from tacit.runs import Run
from tacit.runs.metadata import AskingMetadata, DiscoveryMetadata, SecureSumUsed, TrainingMetadata
from tacit.statements import device_text
from tacit.statements.accounts import Accounts, accounts_of, extrapolation_of, ledger_of, participation_of, trained
from tacit.statements.count_facts import DiscoveryFacts, EvaluationFacts
from tacit.statements.ledger import CLIP_ESTIMATE
from tacit.statements.local_releases import LocalReports
from tacit.statements.markdown import one_line
from tacit.statements.participation_log import separation_of
from tacit.statements.population import PopulationSpent
from tacit.statements.statement import Statement, evaluation_figures, statement
from tacit.statements.train_facts import SideRelease, TrainingFacts

PUBLIC_DATA = {  # by the vocabulary's kind
    "public": ("the text that the vocabulary was counted in",),
    "word list": ("the word list that became the vocabulary",),
    "discovered": ("the text or list that the vocabulary began with",),
    "private": (),
}

IN_THE_CLEAR = "simulated in the clear"
PROTOCOLS = {"masks": "pairwise masks", "one-message": "one encrypted message of each and keepers"}
BUDGET = "budget"  # a note: the state of the population's after the run was settled
EXACT_FIGURES = "the exact figures under 'simulation' in the folder and in its report, counted in the clients' own text"
SEEN_ALL_THE_SAME = (  # by whom, in a simulation and in what it simulates
    "a simulation hides nothing from whoever runs it, and by the protocol alone a server would still learn each exact "
    "sum and who is in it"
)


def statement_of(run: Run, delta: float | None = None) -> Statement:
    """The privacy statement of what a run has released so far, at `delta` (left out: the one it was begun with).

    Raises: AccountingError where nothing is released, InputError for a kind of run that releases nothing.
    """
    return statement(facts_of(run, delta))


def facts_of(run: Run, delta: float | None = None) -> TrainingFacts | DiscoveryFacts | EvaluationFacts:
    """What the statement of a run follows from; raises as `statement_of`."""
    if isinstance(run.metadata, TrainingMetadata):
        accounts = accounts_of(run, delta)
        if accounts.realised is None:
            raise AccountingError(
                f"'{run.path}' has released no round, and nothing is to be stated about nothing; "
                f"do a first round with `{resume_command(run)}`."
            )
        return training_facts(run, accounts)
    if isinstance(run.metadata, DiscoveryMetadata):
        return discovery_facts(run, delta)
    facts = evaluation_facts(run, delta)
    if facts is None:
        raise AccountingError(
            f"'{run.path}' has released nothing, and nothing is to be stated about nothing; ask for a release with "
            "--zcdp, --epsilon or --local-epsilon."
        )
    return facts


# -- training ----------------------------------------------------------------------------------------------------------


def training_facts(run: Run, accounts: Accounts) -> TrainingFacts:
    """Of a run that trains; before its first round of the plan alone."""
    planned, *sides = accounts.planned.sequences
    happened = [] if accounts.realised is None else [each.guarantee for each in accounts.realised.sequences]
    training = trained(run)
    report_goal, vocabulary = training.report_goal, training.vocabulary
    return TrainingFacts(
        planned=planned.guarantee,
        realised=happened[0] if happened else None,
        also_released=tuple(
            SideRelease(what=each.what, planned=each.guarantee, realised=other)
            for each, other in itertools.zip_longest(sides, happened[1:])
        ),
        clip_norms=() if accounts.realised is None else _clip_norms(accounts.planned, accounts.realised.sequences[0]),
        delta=accounts.delta,
        population=training.population,
        report_goal=report_goal,
        cohort_rule=_cohort_rule(run, accounts.participation, report_goal),
        separation=separation_of(run),
        vocabulary_kind=vocabulary["kind"],
        vocabulary_description=vocabulary["description"],
        released=(
            "the model after every round, and the report beside this statement, which says nothing of clients' text "
            "but what follows from released sums"
        ),
        looked_at=_looked_at(run),
        public_data=PUBLIC_DATA[vocabulary["kind"]] + _first_text(run),
        verify_command=account_run_command(run, accounts.delta),
        key_source=training.key_source,
        unit="client" if training.deployment is None else "device",
        aggregation=_aggregation(run),
        extrapolation=extrapolation_of(run, accounts.planned),
        participations=accounts.log.participations if happened else None,
        seal=run.seals[accounts.released] if happened else None,
        budget=budget_of(run),
        keepers=0 if training.secure is None else training.secure.keepers,
    )


def _cohort_rule(run: Run, limits: Participation, report_goal: int) -> str:
    """How the limits are kept: by real devices, by the draw, by the timers of a simulated population, or by nobody that
    we know.
    """
    simulated, hooks, deployed = trained(run).simulated, trained(run).hooks, trained(run).deployment
    if deployed is not None:
        return device_text.cohort_rule(deployed, report_goal)
    if own := hooks.get("collector", hooks.get("sampler")):
        which = "collector, which asks the devices" if "collector" in hooks else "sampler, which draws the cohorts"
        return (
            f"who takes part is up to a {which} ({own}) and is no part of this software; nobody else enforces the "
            "planned limits, so they are an expectation and the realised ones, by its log, are what holds"
        )
    if simulated is None:
        return (
            f"each round draws exactly {report_goal:,} clients uniformly among those who came fewer than "
            f"{limits.max_participations:,} times and last came at least {limits.min_separation:,} rounds "
            "before; when there are too few, the run stops"
        )
    return (
        f"in a simulation of who comes, the first {report_goal:,} reports of a round are used, and every device keeps "
        f"a timer of {simulated['timer_hours']:g} hours; how many rounds that is, nobody enforces, so the planned "
        "limits are an expectation and the realised ones are what holds"
    )


def _aggregation(run: Run) -> str:
    """Who sums the updates; of a collector of the program's own, what the guarantee takes on its word."""
    own, secure, deployed = trained(run).hooks.get("collector"), trained(run).secure, trained(run).deployment
    if own is not None and deployed is not None:
        how = device_text.aggregation(own, None if secure is None else _encoded(secure), deployed)
        return how + device_text.logged(run.notes.get(device_text.LOGGED))
    if own is not None:
        asked = "" if secure is None else f", {_encoded(secure)},"
        return (
            f"by a collector that is no part of this software ({own}); that each device is in a round's sum once, with "
            f"an update no longer than the clip norm{asked} is its promise"
        )
    if secure is None:
        return IN_THE_CLEAR
    return (
        f"simulated; every update was {_encoded(secure)}; the integers were added modulo 2^{secure.bits}, and only "
        f"sums were decoded, none of fewer than {secure.threshold:,} reports{_kept(secure)}. {_played(secure)}; the "
        f"randomness of rounding follows from the run's key{'' if secure.keepers else f'; {SEEN_ALL_THE_SAME}'}"
    )


def _kept(secure: SecureSumUsed) -> str:
    """Who the keepers of a simulation were."""
    if not secure.keepers:
        return ""
    return (
        f" and none without the noise of all {secure.keepers:,} keepers, which were simulated: they and the server "
        "were one process, with keys that follow from the run's, so that whoever ran it could know everything"
    )


def _played(secure: SecureSumUsed) -> str:
    if secure.protocol is None:
        return "The protocol that would keep the summands from the server was not run"
    beside = " beside the keepers, without whose noise no device helps to open a sum" if secure.keepers else ""
    return (
        f"Of each round {secure.protocol_clients:,} clients played the whole protocol that keeps the summands from the "
        f"server, {PROTOCOLS[secure.protocol]}, with fresh keys{beside}{_vanished(secure)}; the integers of the others "
        "were added without keys, which gives the same sum"
    )


def _vanished(secure: SecureSumUsed) -> str:
    if not secure.protocol_dropout:
        return ""
    return (
        f", and each vanished on the way with a chance of {secure.protocol_dropout:g}; one that vanished before it "
        "reported is in no sum and in the log all the same, and where too few were left nothing was released and "
        "another cohort was asked; the log has both"
    )


def _encoded(secure: SecureSumUsed) -> str:
    """What was done to an update, and what that costs."""
    return (
        "encoded as integers (arXiv:2305.18465, Algorithm 2: scale times clip norm "
        f"{secure.scale * secure.clip_norm:.6g}, {secure.parameters:,} coordinates padded to {secure.dimension:,}, "
        f"{secure.bits} bits each), which lengthens it by a factor of at most {rounded_up(secure.inflation, 6)} (that "
        f"a coordinate of it is clipped has probability at most {secure.clipping_probability:.1e}, and costs accuracy "
        "and no privacy)"
    )


def _clip_norms(planned: Composition, updates: ReleasedSequence) -> tuple[tuple[int, float], ...]:
    """Those that were in force where the clip norm is adapted; none where it is fixed."""
    if all(each.what != CLIP_ESTIMATE for each in planned.sequences):
        return ()
    return updates.clip_norms


def _first_text(run: Run) -> tuple[str, ...]:
    first = trained(run).first_model
    return () if first is None else (f"the text that the first model was trained on ({first.public_text})",)


def _looked_at(run: Run) -> tuple[str, ...]:
    asked = trained(run).evaluation
    if trained(run).deployment is not None:
        return device_text.looked_at(asked["clients"], asked["every"], asked["test_clients"])
    return (
        f"the text of up to {asked['clients']:,} validation clients every {asked['every']:,} rounds and of "
        f"up to {asked['test_clients']:,} test clients at the end (accuracies without noise, which the run's folder "
        "keeps and the report leaves out; none of these clients is trained on)",
        "of each round the mean training loss of its cohort, the share of clipped updates, the number of dropped "
        "clients and its time, without noise, which the run's folder keeps and the report leaves out",
        "the log of who took part when, for the realised MinS and MaxP (zero-out neighbours have the same log, and the "
        "report says no more of it)",
        "whatever was tried on the same clients before this run to choose its settings",
    )


# -- discovery ---------------------------------------------------------------------------------------------------------


def discovery_facts(run: Run, delta: float | None = None) -> DiscoveryFacts:
    """Of a run that finds words. Raises: InputError for another kind, AccountingError before a first layer."""
    metadata = run.of_kind(DiscoveryMetadata, "only `tacit discover` finds words; give the folder of one")
    asked = tomllib.loads(run.settings)
    anonymity = asked.get("anonymity")
    return DiscoveryFacts(
        releases=ledger_of(run).local_reports,
        seal=run.seal,
        budget=budget_of(run),
        central_delta=metadata.delta if delta is None else delta,
        population=metadata.population,
        resampled=asked["resample_users"],
        key_source=metadata.key_source,
        sampler=asked["reports"]["sampler"],
        anonymity=None if anonymity is None else Anonymity(k=anonymity["k"], delta=anonymity["delta"]),
        vocabulary_kind=metadata.vocabulary_kind,
        vocabulary_description=metadata.vocabulary_description,
        aggregation=_voted(run, metadata, asked.get("secure_sum")),
        looked_at=(
            ("the figures under 'simulation' in result.json, counted in the clients' own text",)
            if metadata.deployment is None
            else device_text.LOOKED_AT_OF_COUNTS
        ),
        on_devices=metadata.deployment is not None,
        verify_command=f"tacit verify {shlex.quote(str(_published_path(run) / 'report' / 'statement.json'))}",
    )


def _voted(run: Run, asked: DiscoveryMetadata, secure: Mapping[str, Any] | None) -> str:
    """Who adds up the reports of a group."""
    if asked.deployment is None or asked.asked_by is None:
        return _summed(secure)
    logged = device_text.logged(run.notes.get(device_text.LOGGED))
    return device_text.voted(asked.asked_by, asked.deployment) + logged


def _summed(secure: Mapping[str, Any] | None) -> str:
    """Who adds up the reports of a group, by its run's settings."""
    if secure is None:
        return IN_THE_CLEAR
    return (
        f"simulated secure aggregation by {PROTOCOLS[secure['protocol']]}: of each group {secure['devices']:,} "
        "devices, or all of fewer, play the whole protocol, the reports of the others are added in the clear modulo "
        f"the same power of two, and the total is the plain sum to the bit; {SEEN_ALL_THE_SAME}"
    )


# -- evaluation --------------------------------------------------------------------------------------------------------


def evaluation_facts(run: Run, delta: float | None = None) -> EvaluationFacts | None:
    """Of a run that asked clients about models; None where nothing is released. InputError for another."""
    asked = run.metadata
    if not isinstance(asked, AskingMetadata):
        raise InputError(f"'{run.path}' is a run of `tacit {run.kind}`, which evaluates nothing; give one that does.")
    ledger, settings = ledger_of(run), tomllib.loads(run.settings)
    if not ledger.releases:
        return None
    local = isinstance(ledger.releases[0], LocalReports)
    return EvaluationFacts(
        of=asked.of,
        subjects=_subjects(settings),
        source=asked.source,
        split="devices" if asked.deployment else settings["data"]["split"],
        asked=asked.asked,
        delta=0.0 if local else asked.delta if delta is None else delta,
        aggregation=_counted(run, asked, local=local, secure=settings.get("release", {}).get("secure_sum")),
        looked_at=device_text.LOOKED_AT_OF_COUNTS if asked.deployment else (EXACT_FIGURES,),
        verify_command=f"tacit verify {shlex.quote(str(_published_path(run) / 'report' / 'statement.json'))}",
        key_source=asked.key_source,
        unit="client" if asked.deployment is None else "device",
        participation=participation_of(run, run.steps_done),
        releases=ledger.releases,
        seal=run.seal,
        budget=budget_of(run),
        separation=separation_of(run),
    )


def _counted(run: Run, asked: AskingMetadata, *, local: bool, secure: Mapping[str, Any] | None) -> str:
    """Who adds up what clients count."""
    if asked.deployment is None or asked.asked_by is None:
        return _summed(secure)
    logged = device_text.logged(run.notes.get(device_text.LOGGED))
    return device_text.counted(asked.asked_by, asked.deployment, local=local) + logged


def _subjects(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The models by the names of their folders and their weights, words beside them, and how they are fine-tuned."""
    models = settings["models"] if "models" in settings else [settings["model"]]
    return (*map(_named, models), *_words_beside(settings), *settings.get("strategies", ()))


def _named(model: Mapping[str, str]) -> str:
    """A trained model with the digest of its weights; one that was counted on a cache without: it would be of text."""
    name = Path(model["path"]).name
    if "sha256" in model:
        return f"{name} (SHA-256 of its weights {model['sha256'][:16]}...)"
    return f"{name} (word counts of the training clients of a cache of that name, without a guarantee)"


def _words_beside(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Discovered words that the second keyboard of a test of typing has beside its model's: those of a release."""
    words = settings.get("more_words")
    if words is None:
        return ()
    digest = f"SHA-256 {settings['more_words_sha256'][:16]}..."
    return (f"beside the second, words of the discovery run {Path(words).name} ({digest}; it has its own statement)",)


def promise_of(run: Run, delta: float | None = None) -> Record:
    """What an evaluation has released promises to each asked client, as plain values; kind "nothing" if it has not."""
    facts = evaluation_facts(run, delta)
    return {"kind": "nothing"} if facts is None else evaluation_figures(facts)


# -- population --------------------------------------------------------------------------------------------------------


def budget_of(run: Run) -> PopulationSpent | None:
    """The budget of a run's population after it, or as it was entered while it is under way; None without one."""
    if run.metadata.budget is None:
        return None
    state = run.notes.get(BUDGET, run.metadata.budget.state)
    return from_plain(PopulationSpent, state, error=RunError, where=f"the budget in '{run.path}'")


# -- commands ----------------------------------------------------------------------------------------------------------


def account_run_command(run: Run, delta: float) -> str:
    """The command line that derives the figures from the run folder again."""
    return f"tacit account run {shlex.quote(str(_published_path(run)))} --delta {delta!r}"


def _published_path(run: Run) -> Path:
    """The run's folder as a statement names it: of an absolute path, which tells of people and machines, its name."""
    return Path(run.path.name) if run.path.is_absolute() else run.path


def resume_command(run: Run) -> str:
    """The command line that carries the run on; of one that real devices train, the server's."""
    if separation_of(run) is not None:
        return "tacit serve RECIPE" if run.kind == "train" else "tacit serve FILE"
    return f"tacit resume {one_line(shlex.quote(str(run.path)))}"


def created(run: Run) -> str:
    """When the run began, in UTC, to the minute."""
    return datetime.fromtimestamp(run.metadata.created, UTC).strftime("%Y-%m-%d %H:%M UTC")
