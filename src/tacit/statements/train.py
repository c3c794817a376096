"""The statement of a run that trains: its facts, sentences item by item, labels and figures.

Figures in sentences are rounded up, never down.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TypeVar

from tacit.errors import AccountingError, RunError
from tacit.privacy.composition import Composition, ReleasedSequence
from tacit.privacy.guarantee import OPERATING_SYSTEM, Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record, Strategy
from tacit.runs import Run
from tacit.runs.metadata import SecureSumUsed
from tacit.statements import device_text
from tacit.statements.accounts import Accounts, accounts_of, extrapolation_of, trained
from tacit.statements.device_text import participations_of_log
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
from tacit.statements.statement import (
    PLANNED,
    PROTECTIVE_EPSILON,
    WEAKER,
    Item,
    Label,
    budget_label,
    delta_label,
    numbered,
)
from tacit.statements.train_facts import ADJACENCIES, BY_HAND, EXACT, RELEASED, UNITS, SideRelease, TrainingFacts

FACTS = TrainingFacts
P = TypeVar("P")
FLOATING_POINT = (
    "the analysis is of real numbers. Noised sums are released on a grid that is chosen before the data; what floating "
    "point changes all the same is bounded in docs/floating-point.md, and not added here."
)
CLIP_NORMS_SHOWN = 12  # of more, only the first, the last and the extremes


def items(facts: TrainingFacts) -> list[Item]:
    """What is said, item by item."""
    texts = (
        setting(facts),
        accesses(facts),
        output(facts),
        UNITS[facts.unit],
        ADJACENCIES[facts.adjacency],
        accounting(facts),
        assumptions(facts),
        formal(facts),
        verifiability(facts),
    )
    if facts.extrapolation is None:
        return list(numbered(texts))
    return [*numbered(texts), Item("", "EXTRAPOLATED: not a guarantee of this run", extrapolated(facts))]


def title(facts: TrainingFacts) -> str:
    """Of the statement."""
    return "Privacy statement" if facts.realised else "Privacy statement, planned"


def figures(facts: TrainingFacts) -> Record:
    """What is promised as plain values, as planned and as it happened."""
    found: Record = {
        "delta": facts.delta,
        "unit": facts.unit,
        "adjacency": facts.adjacency,
        "key_source": facts.key_source,
        "private": facts.planned_in_all.private,
        **_planned_and_realised(facts),
    }
    if facts.extrapolation:
        found["extrapolated"] = {
            "report_goal": facts.extrapolation.report_goal,
            **_planned_and_realised(facts.at_larger_cohort()),
        }
    if facts.ended in (RELEASED, EXACT):
        found["holds"] = "planned"  # the number of rounds followed from what was released
    if facts.simulated:
        found["simulated"] = asdict(facts.simulated)
    return found


def labels(facts: TrainingFacts) -> tuple[Label, ...]:
    """What weakens the guarantee."""
    found = [] if facts.realised else [PLANNED]
    planned, holds = facts.planned_in_all, facts.realised_in_all or facts.planned_in_all
    if not facts.planned.private:
        found.append(Label("NON-PRIVATE", "no noise was added, so this run promises nothing to anybody."))
    elif not planned.private:
        bare = ", ".join(each.what for each in planned.sequences if not each.guarantee.private)
        found.append(Label("NON-PRIVATE", f"released without noise: {bare}; so nothing is promised to anybody."))
    if facts.vocabulary_kind == "private":
        meaning = "the list of words was counted in clients' own text; there is no guarantee for the vocabulary."
        found.append(Label("VOCABULARY FROM PRIVATE TEXT", meaning))
    if facts.key_source != OPERATING_SYSTEM:
        meaning = f"randomness came from {facts.key_source}; whoever knows the seed can take the noise away."
        found.append(Label("FIXED SEED", meaning))
    if holds.zcdp > planned.zcdp * (1 + 1e-9):
        found.append(WEAKER)
    if holds.private:
        found.extend(delta_label(facts.delta, facts.population))
    epsilon = holds.epsilon(facts.delta)
    if holds.private and epsilon > PROTECTIVE_EPSILON:
        figure = rounded_up(epsilon, 6)
        meaning = f"an epsilon above {PROTECTIVE_EPSILON} protects nobody by itself; this run's is {figure}."
        found.append(Label("VERY LARGE EPSILON", meaning))
    found.extend(budget_label(facts.budget))
    if facts.extrapolation:
        goal = facts.extrapolation.report_goal
        meaning = f"the last section speaks of {goal:,} reports a round, a run that was not made."
        found.append(Label("EXTRAPOLATED", meaning))
    return tuple(found)


def _planned_and_realised(facts: TrainingFacts) -> Record:
    """The figures of the model updates; where other sequences were released, theirs, and those of all together."""
    delta = facts.delta
    figures: Record = _both(facts.planned, facts.realised, lambda each: _figures(each, delta))
    if facts.also_released:
        figures["also_released"] = [
            {"what": each.what, **_both(each.planned, each.realised, lambda each: _figures(each, delta))}
            for each in facts.also_released
        ]
        figures["in_all"] = _both(
            facts.planned_in_all, facts.realised_in_all, lambda each: _promise_figures(each, delta)
        )
    return figures


def _both(planned: P, realised: P | None, figures: Callable[[P], Record]) -> Record:
    """As planned, and as realised where anything is."""
    return {"planned": figures(planned), **({"realised": figures(realised)} if realised else {})}


def _figures(guarantee: Guarantee, delta: float) -> Record:
    limits = guarantee.participation
    return {
        "strategy": guarantee.strategy.kind if guarantee.strategy else None,
        "rounds": limits.rounds,
        "min_separation": limits.min_separation,
        "rounds_between": limits.rounds_between,
        "max_participations": limits.max_participations,
        "sensitivity_squared": guarantee.sensitivity_squared,
        "exact": guarantee.exact,
        "noise_multiplier": guarantee.noise_multiplier,
        "clip_norm": _finite(guarantee.clip_norm),
        "clip_inflation": guarantee.clip_inflation,
        **_promise_figures(guarantee, delta),
    }


def _promise_figures(guarantee: Guarantee | Composition, delta: float) -> Record:
    figures = {"zcdp": guarantee.zcdp, "mu": guarantee.mu, "epsilon": guarantee.epsilon(delta)}
    return {**{name: _finite(value) for name, value in figures.items()}, "delta": delta}


def _finite(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


# -- what it follows from, as the run's folder has it ------------------------------------------------------------------


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


# -- sentences ---------------------------------------------------------------------------------------------------------


def setting(facts: TrainingFacts) -> str:
    """Item 1."""
    if facts.decryptors:
        kind = trusted_decryptors(
            facts.decryptors, facts.honest_decryptors, noise="the mechanism", simulated=facts.separation is None
        )
    elif facts.planned.private:
        kind = "A central guarantee: the server is trusted to run the mechanism as described."
    else:
        kind = "None: no noise was added. A central guarantee would be the setting."
    return f"{kind} Aggregation of clients' updates: {facts.aggregation}."


def trusted_decryptors(decryptors: int, honest: int, *, noise: str, simulated: bool, has: str = "The model") -> str:
    """Whom a guarantee trusts whose noise so many decryptors add, of whom so many are honest. has: the noise of all."""
    added = (
        f"each add the whole noise of {noise} to every sum before anybody opens it, and one decryptor's noise is what "
        "is accounted. It holds against the server and all decryptors but one, if one decryptor is honest and no sum "
        "is opened without it"
        if honest == 1
        else f"each add 1/{honest} of the variance of the noise of {noise} to every sum before anybody opens it, and "
        f"the noise of {honest:,} of them is what is accounted. It holds against the server and all other decryptors, "
        f"if at least {honest:,} of {decryptors:,} decryptors are honest and no sum is opened without them"
    )
    who = (
        "whoever simulates a run is all of them, and could know everything"
        if simulated
        else "that the decryptors belong to different people, and how many are honest, this software cannot know"
    )
    return (
        f"A central guarantee that needs no trusted server: {decryptors:,} decryptors {added}; {who}. {has} has "
        f"the noise of all, {(decryptors / honest) ** 0.5:.3g} times the standard deviation that is accounted."
    )


def accesses(facts: TrainingFacts) -> str:
    """Item 2a."""
    promise = "The guarantee applies to" if facts.planned.private else "There is no guarantee for"
    guessed = "" if facts.separation is None else "about "
    clients = "clients" if facts.separation is None else "devices, by the operator's word"
    lines = [
        f"{promise} the use of clients' text in a single training run over a population of {guessed}"
        f"{facts.population:,} {clients}, for every client that keeps the participation limits; one that does not keep "
        "them does not weaken the guarantee of the others.",
        "Trying settings on the same clients and choosing a model by what it scores are not part of the run and "
        "have no guarantee.",
        f"Vocabulary ({facts.vocabulary_kind}): {facts.vocabulary_description}.",
        "Public data: " + ("; ".join(facts.public_data) or "none") + ".",
        "Looked at without any guarantee: " + ("; ".join(facts.looked_at) or "nothing else") + ".",
        *([facts.budget.sentence()] if facts.budget else []),
    ]
    if facts.vocabulary_kind == "private":
        lines.append("The vocabulary itself was taken from private text and has no guarantee.")
    if facts.vocabulary_kind == "discovered":
        lines.append(
            "Some of its words were discovered under local differential privacy; that discovery's own "
            "statement covers them, and this one does not."
        )
    return "\n\n".join(lines)


def output(facts: TrainingFacts) -> str:
    """Item 2b."""
    sums = "privatised sums" if facts.planned.private else "sums, un-noised,"
    rounds = (facts.realised or facts.planned).participation.rounds
    text = (
        f"Released: {facts.released}. Technically the mechanism's output is the full sequence of {sums} of all "
        f"{rounds:,} rounds, so what is said here holds for every intermediate model "
        "too, those sent to devices included."
    )
    if facts.also_released:
        names = ", ".join(each.what for each in facts.also_released)
        text += f" Besides the model updates, sums of these were released: {names}."
    return text


def accounting(facts: TrainingFacts) -> str:
    """Item 3a."""
    if not facts.planned_in_all.private:
        return "None; there is nothing to account."
    exact = all(each.guarantee.exact for promised in _promised(facts) for each in promised.sequences)
    worst = "its exact worst-case sensitivity" if exact else "a proved upper bound of its worst-case sensitivity"
    text = (
        f"zCDP of the whole sequence of rounds as one Gaussian mechanism, {described(facts.planned.strategy)}, by "
        f"{worst} over all participation patterns; converted to (epsilon, delta) exactly by the Gaussian "
        "mechanism's own privacy curve (arXiv:1805.06530, Theorem 8), which is what PLD accounting approximates."
    )
    if facts.also_released:
        others = "; ".join(f"{each.what} by {described(each.planned.strategy)}" for each in facts.also_released)
        text += f" The zCDP of the other sequences is added: {others}."
    return text


def assumptions(facts: TrainingFacts) -> str:
    """Item 3b."""
    guarantee = facts.planned
    encoded = (
        f", and at most {rounded_up(guarantee.clip_inflation, 6)} times that once encoded for secure aggregation"
        if guarantee.clip_inflation > 1
        else ""
    )
    norm = "the clip norm in force" if facts.clip_norms else f"{guarantee.clip_norm:.6g}"
    each = f", {whose_noise(facts.honest_decryptors)} of {facts.decryptors:,} decryptors" if facts.decryptors else ""
    noise = (
        f"Gaussian seeds of standard deviation {guarantee.noise_multiplier:.6g} x {norm}{each}, with "
        f"keys from {facts.key_source}; {FLOATING_POINT}"
        if guarantee.private
        else f"No noise; randomness of the simulation came from {facts.key_source}."
    )
    lines = [
        f"- Planned: {_limits(guarantee.participation)}.",
        *_participations(facts),
        f"- A client's update of a round has norm at most {norm} (clipped as one vector{encoded}) "
        f"and weight one; the mean divides by the constant report goal {facts.report_goal:,}, whatever number "
        f"{'came' if facts.realised else 'comes'}.",
        *([f"- {_ended_by(facts)}"] if facts.ended else []),
        *([f"- {_clip_norms(facts)}"] if facts.clip_norms else []),
        f"- {noise}",
        *(f"- {_side_assumption(each)}" for each in facts.also_released),
    ]
    return "\n".join(lines)


def _participations(facts: TrainingFacts) -> list[str]:
    """Who took part and what enforces it; of a planned run, who is to, and what a simulation saw."""
    if facts.realised and facts.separation is not None and facts.participations is not None:
        limits = _limits(facts.realised.participation)
        return [
            f"- {participations_of_log(facts.participations, limits, facts.separation)}",
            f"- Participation is enforced so: {facts.cohort_rule}.",
        ]
    if facts.realised:
        return [
            f"- Realised, measured from the log of the run, {facts.participations:,} participations: "
            f"{_limits(facts.realised.participation)}. It counts under "
            "the assumption that when a client comes does not depend on what anyone typed.",
            f"- Participation is enforced by the cohort rule: {facts.cohort_rule}.",
        ]
    seen = []
    if facts.simulated is not None:
        seen.append(
            f"- In a simulation, not in any run: {_limits(facts.simulated)}. {facts.simulation} The simulation is a "
            "model of devices; what real ones do is measured when they have done it."
        )
    return [*seen, f"- Participation is to be enforced so: {facts.cohort_rule}."]


def _ended_by(facts: TrainingFacts) -> str:
    """Why there are fewer rounds than planned, and what that does to the figures."""
    assert facts.realised is not None  # checked
    done, planned = facts.realised.participation.rounds, facts.planned.participation.rounds
    ended = f"The run ended after {done:,} of {planned:,} planned rounds,"
    if facts.ended == RELEASED:
        return (
            f"{ended} by a rule of the program's own that was given the released models and no exact number; that it "
            "looked at nothing else is the word of whoever ran it. Its decision follows from releases, so that "
            "it costs nothing beside the planned figures."
        )
    if facts.ended == EXACT:
        return (
            f"{ended} by a rule of the program's own that was given exact accuracies of validation clients. Those have "
            "no guarantee, and when it ended tells of them; for the clients that were trained on, the planned figures "
            "hold."
        )
    return (
        f"{ended} by the decision of whoever ran it, who can have seen exact accuracies and losses on the way. If the "
        "decision followed from what was released, or from held-out clients, the planned figures hold; if it followed "
        "from neither, as where a budget was spent, the realised ones; if from the losses of clients that were trained "
        "on, it has no guarantee."
    )


def formal(facts: TrainingFacts) -> str:
    """Item 3c."""
    if not facts.planned_in_all.private:
        return f"None: zCDP is infinite, and epsilon is infinite at every delta (delta = {facts.delta:g})."
    realised = facts.realised_in_all
    if realised is None:
        return (
            "As planned, and not as it happened, because nothing has: the run would be "
            f"{promise(facts.planned_in_all, facts.delta)}. Figures are rounded up."
        )
    fixed = ", had the number of rounds been fixed beforehand," if facts.ended else ","
    text = (
        f"As planned, the run is {promise(facts.planned_in_all, facts.delta)}. "
        f"As realised{fixed} it is {promise(realised, facts.delta)}. Figures are rounded up."
    )
    if facts.ended in (RELEASED, EXACT):
        text += " It was not, so the planned figures are those that hold."
    if facts.also_released:
        parts = ", ".join(f"{each.what} {rounded_up(each.guarantee.zcdp, 6)}" for each in realised.sequences)
        text += f" Of the realised rho: {parts}."
    if facts.vocabulary_kind == "private":
        text += " Neither covers the vocabulary."
    if facts.vocabulary_kind == "discovered":
        text += " Neither covers the vocabulary, which has the guarantee of its discovery."
    return text


def verifiability(facts: TrainingFacts) -> str:
    """Item 3d."""
    commands: list[str | None] = []
    for sequences in zip(*(promised.sequences for promised in _promised(facts)), strict=True):
        commands.extend(account_command(each.guarantee, facts.delta) for each in sequences)
    if facts.realised is None:
        return (
            "The planned figures are re-derived from the parameters alone by\n\n"
            f"{_listing([*commands, facts.verify_command])}\n\n"
            "After the run, `tacit account run` gives the realised ones. The mechanism and the accountant are programs "
            "whose source can be read."
        )
    return (
        "Every figure is re-derived from the ledger or from the parameters alone by\n\n"
        f"{_listing([facts.verify_command, *commands])}\n\n"
        "The record of this statement holds all that its figures, labels and sentences follow from: "
        f"`tacit verify` recomputes every line of it{sealed(facts.seal)}. The mechanism, the accountant and the "
        "verifier are one program whose source can be read."
    )


def sealed(seal: str | None) -> str:
    """What ties a statement to its run, where the run has a seal."""
    if seal is None:
        return ""
    return f", and of the run folder that its facts are those of the ledger and log with the seal {seal}"


def _listing(commands: Iterable[str | None]) -> str:
    """Command lines to run, each once."""
    return "\n".join(f"    {command}" for command in dict.fromkeys(commands) if command)


def extrapolated(facts: TrainingFacts) -> str:
    """The last section, of a run that was not made."""
    larger = facts.at_larger_cohort()
    realised = larger.realised_in_all
    return (
        f"This run had {facts.report_goal:,} reports a round and noise multiplier "
        f"{facts.planned.noise_multiplier:.6g}. The same run with {larger.report_goal:,} reports a round and noise "
        f"multiplier {larger.planned.noise_multiplier:.6g} has the same noise on the mean; if its model were as good "
        f"and its participation the same, it would be {promise(larger.planned_in_all, facts.delta)} as planned"
        + (f" and {promise(realised, facts.delta)} as realised" if realised else "")
        + ". That run was not made."
    )


def account_command(guarantee: Guarantee, delta: float) -> str | None:
    """The `tacit account` command line that re-derives a guarantee's figures; None where there is none."""
    mechanism = None if guarantee.strategy is None else guarantee.strategy.account_command()
    if mechanism is None:
        return None
    limits = guarantee.participation
    encoded = "" if guarantee.clip_inflation == 1 else f"--clip-inflation {guarantee.clip_inflation!r} "
    return (
        f"tacit account {mechanism} --rounds {limits.rounds} --min-separation {limits.min_separation} "
        f"--max-participations {limits.max_participations} --noise-multiplier {guarantee.noise_multiplier!r} "
        f"{encoded}--delta {delta!r}"
    )


def described(strategy: Strategy | None) -> str:
    """The mechanism in a few words."""
    return "independent noise every round" if strategy is None else strategy.describe()


def promise(guarantee: Composition, delta: float) -> str:
    """The formal guarantee in one clause."""
    return (
        f"rho-zCDP with rho = {rounded_up(guarantee.zcdp, 6)}, hence (epsilon, delta)-DP with epsilon = "
        f"{rounded_up(guarantee.epsilon(delta), 6)} at delta = {delta:g}"
    )


def _clip_norms(facts: TrainingFacts) -> str:
    """Which clip norms were in force; of many, the first, the last and the extremes."""
    held = facts.clip_norms
    text = (
        "The clip norm follows the released counts of short updates, and changes only where the noise of the updates "
        "starts afresh"
    )
    if len(held) > CLIP_NORMS_SHOWN:
        norms = [norm for _, norm in held]
        return (
            f"{text}: {norms[0]:.6g} at first, {norms[-1]:.6g} at last, {len(held) - 1:,} changes, never below "
            f"{min(norms):.6g} or above {max(norms):.6g}."
        )
    return f"{text}: {'; '.join(f'{norm:.6g} from round {at:,} on' for at, norm in held)} (rounds counted from 0)."


def _side_assumption(side: SideRelease) -> str:
    guarantee = side.planned
    seeds = (
        f"Gaussian seeds of standard deviation {guarantee.noise_multiplier:.6g} x {guarantee.clip_norm:.6g}"
        if guarantee.private
        else "no noise"
    )
    return (
        f"{side.what}: a client's summand has norm at most {guarantee.clip_norm:.6g}; {seeds}; "
        f"planned {_limits(guarantee.participation)}"
        + (f"; realised {_limits(side.realised.participation)}." if side.realised else ".")
    )


def _promised(facts: TrainingFacts) -> tuple[Composition, ...]:
    """As planned, and as it happened where anything has."""
    realised = facts.realised_in_all
    return (facts.planned_in_all, realised) if realised else (facts.planned_in_all,)


def _limits(participation: Participation) -> str:
    return (
        f"{participation.rounds:,} rounds, each client in at most {participation.max_participations:,} of them "
        f"(MaxP), two of them at least {participation.min_separation:,} rounds apart (MinS = "
        f"{participation.rounds_between:,} rounds in between)"
    )


def whose_noise(honest: int) -> str:
    """Of how many decryptors the noise is that is accounted; "of N decryptors" follows."""
    return "of each" if honest == 1 else f"of any {honest:,} together"
