"""The facts of a training run's statement, as the run's folder has them."""

import itertools

from tacit.errors import AccountingError, RunError
from tacit.privacy.composition import Composition, ReleasedSequence
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.runs import Run
from tacit.runs.metadata import SecureSumUsed
from tacit.statements import device_text
from tacit.statements.accounts import Accounts, accounts_of, extrapolation_of, trained
from tacit.statements.audited import AUDIT, audited
from tacit.statements.ledger import CLIP_ESTIMATE
from tacit.statements.participation_log import separation_of
from tacit.statements.run_facts import (
    ENDED,
    IN_THE_CLEAR,
    PROTOCOLS,
    PUBLIC_DATA,
    SEEN_ALL_THE_SAME,
    account_run_command,
    budget_of,
    resume_command,
)
from tacit.statements.train_facts import BY_HAND, EXACT, RELEASED, SideRelease, TrainingFacts


def facts(run: Run, delta: float | None = None) -> TrainingFacts:
    """Of a run that trains. Raises: AccountingError before its first round."""
    accounts = accounts_of(run, delta)
    if accounts.realised is None:
        raise AccountingError(
            f"'{run.path}' has released no round, and nothing is to be stated about nothing; "
            f"do a first round with `{resume_command(run)}`."
        )
    return training_facts(run, accounts)


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
        clip_norms=()
        if accounts.realised is None
        else _clip_norms_in_force(accounts.planned, accounts.realised.sequences[0]),
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
        aggregation=_summed_by(run),
        extrapolation=extrapolation_of(run, accounts.planned),
        participations=accounts.log.participations if happened else None,
        seal=run.seals[accounts.released] if happened else None,
        budget=budget_of(run),
        decryptors=0 if training.secure is None else training.secure.decryptors,
        honest_decryptors=1 if training.secure is None else training.secure.honest_decryptors,
        ended=_ended(run, accounts),
        audited=audited(run),
    )


def _ended(run: Run, accounts: Accounts) -> str:
    """By what it was decided that the run ends early; "" where it was not. Raises: RunError where the note is no such.

    A run that a kill left between that note and its end has no further round, so it is ended, too.
    """
    how = run.notes.get(ENDED, "")
    if how not in ("", RELEASED, EXACT, BY_HAND):
        raise RunError(f"'{run.path}' notes {how!r} as how it ended; use the version that wrote it.")
    return how if 0 < accounts.released < accounts.participation.rounds else ""


def _cohort_rule(run: Run, limits: Participation, report_goal: int) -> str:
    """How the limits are kept: by real devices, by the draw, by the timers of a simulated population, or by nobody that
    we know.
    """
    simulated, hooks, deployed = trained(run).simulated, trained(run).hooks, trained(run).deployment
    if deployed is not None:
        return device_text.cohort_rule(deployed, report_goal)
    drawn = (
        f"uniformly among those who came fewer than {limits.max_participations:,} times and last came at least "
        f"{limits.min_separation:,} rounds before; when there are too few, the run stops"
    )
    if run.notes.get(AUDIT) is not None:
        return (
            "canaries of an audit come from rounds on that were fixed beforehand, as often as the limits let anybody; "
            f"each round draws the others of its {report_goal:,} clients {drawn}"
        )
    if own := hooks.get("collector", hooks.get("sampler")):
        which = "collector, which asks the devices" if "collector" in hooks else "sampler, which draws the cohorts"
        return (
            f"who takes part is up to a {which} ({own}) and is no part of this software; nobody else enforces the "
            "planned limits, so they are an expectation and the realised ones, by its log, are what holds"
        )
    if simulated is None:
        return f"each round draws exactly {report_goal:,} clients {drawn}"
    return (
        f"in a simulation of who comes, the first {report_goal:,} reports of a round are used, and every device keeps "
        f"a timer of {simulated['timer_hours']:g} hours; how many rounds that is, nobody enforces, so the planned "
        "limits are an expectation and the realised ones are what holds"
    )


def _summed_by(run: Run) -> str:
    """Who sums the updates; of a collector of the program's own, what the guarantee takes on its word."""
    own, secure, deployed = trained(run).hooks.get("collector"), trained(run).secure, trained(run).deployment
    if own is not None and deployed is not None:
        how = device_text.aggregation(own, None if secure is None else _encoded(secure), deployed)
        return how + device_text.logged(run.notes)
    if own is not None:
        encoding = "" if secure is None else f", {_encoded(secure)},"
        return (
            f"by a collector that is no part of this software ({own}); that each device is in a round's sum once, with "
            f"an update no longer than the clip norm{encoding} is its promise"
        )
    if secure is None:
        return IN_THE_CLEAR
    return (
        f"simulated; every update was {_encoded(secure)}; the integers were added modulo 2^{secure.bits}, and only "
        f"sums were decoded, none of fewer than {secure.threshold:,} reports{_kept(secure)}. {_played(secure)}; the "
        f"randomness of rounding follows from the run's key{'' if secure.decryptors else f'; {SEEN_ALL_THE_SAME}'}"
    )


def _kept(secure: SecureSumUsed) -> str:
    """Who the decryptors of a simulation were."""
    if not secure.decryptors:
        return ""
    return (
        f" and none without the noise of all {secure.decryptors:,} decryptors, which were simulated: they and the "
        f"server "
        "were one process, with keys that follow from the run's, so that whoever ran it could know everything"
    )


def _played(secure: SecureSumUsed) -> str:
    if secure.protocol is None:
        return "The protocol that would keep the summands from the server was not run"
    beside = " beside the decryptors, without whose noise no device helps to open a sum" if secure.decryptors else ""
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


def _clip_norms_in_force(planned: Composition, updates: ReleasedSequence) -> tuple[tuple[int, float], ...]:
    """Those that were in force where the clip norm is adapted; none where it is fixed."""
    if all(each.what != CLIP_ESTIMATE for each in planned.sequences):
        return ()
    return updates.clip_norms


def _first_text(run: Run) -> tuple[str, ...]:
    first = trained(run).first_model
    return () if first is None else (f"the text that the first model was trained on ({first.public_text})",)


def _looked_at(run: Run) -> tuple[str, ...]:
    evaluation = trained(run).evaluation
    if trained(run).deployment is not None:
        return device_text.looked_at(evaluation["clients"], evaluation["every"], evaluation["test_clients"])
    return (
        f"the text of up to {evaluation['clients']:,} validation clients every {evaluation['every']:,} rounds and of "
        f"up to {evaluation['test_clients']:,} test clients at the end (accuracies without noise, which the run's "
        "folder keeps and the report leaves out; none of these clients is trained on)",
        "of each round the mean training loss of its cohort, the share of clipped updates, the number of dropped "
        "clients and its time, without noise, which the run's folder keeps and the report leaves out",
        "the log of who took part when, for the realised MinS and MaxP (zero-out neighbours have the same log, and the "
        "report says no more of it)",
        "whatever was tried on the same clients before this run to choose its settings",
    )
