"""The sentences of a statement about real devices without identities: who keeps them apart, and who adds them up."""

from collections.abc import Mapping
from typing import Any

from tacit.parsing import parsed_json
from tacit.privacy.separation import DeviceSeparation
from tacit.runs.metadata import DeploymentUsed

OURS = "tacit.server."  # a collector of this software, by its qualified name
LOGGED = "log"  # a note: where the transparency log has the run's plan
BUILDS = "builds"  # a note: the builds of a server that served the run, one after another


def cohort_rule(used: DeploymentUsed, report_goal: int) -> str:
    """Who keeps two participations of a device apart, and what each end could do about it."""
    first = (
        f"the first {report_goal:,} reports of a round are used, of devices that come when they may; no server knows "
        "which device came before, so each device keeps the separation for itself, and nobody else enforces it"
    )
    counted = "" if used.most is None else f", and whatever comes after {used.most:,} of its own"
    by_index = (
        f"it refuses a round whose number, which the operator signs, is less than {used.rounds:,} above that of its "
        f"last one{counted}, so that the limits are known before training and hold however fast the rounds are; a "
        "server that gave its rounds other numbers would have signed what two devices can hold against each other"
        if used.rounds is not None
        else ""
    )
    by_timer = (
        f"it stays away for {hours(used.timer_seconds)} by its own clock, from before it sends anything; how many "
        "rounds that was follows from when the server logged them, a round being taken to begin when the one before "
        "it finished, so that a server which logged its rounds closer together than they were would promise too much"
        if used.timer_seconds is not None
        else ""
    )
    expected = "" if used.rounds is not None else ". The planned limits are an expectation, and the realised ones hold"
    return f"{first}: {'; besides, '.join(each for each in (by_index, by_timer) if each)}{expected}"


def hours(seconds: float) -> str:
    """A timer for people."""
    return f"{seconds / 3600:g} hours"


def aggregation(collector: str, encoded: str | None, used: DeploymentUsed) -> str:
    """Who adds up what devices send; encoded: what is done to an update first."""
    integers = (
        "" if encoded is None else f". Each update is {encoded}, and the integers are added modulo a power of two"
    )
    if not collector.startswith(OURS):
        return (
            f"by a collector that is no part of this software ({collector}); that a round's sum has one report of a "
            f"device, with an update no longer than the clip norm, is its promise and the devices'{integers}"
        )
    return (
        f"by the server of this software ({collector}); a device clips its update, and sends one report of a round, by "
        f"itself{integers}. {_seen_by_the_server(used)}. "
        "A device that sends more than its share weakens the model, and not the guarantee "
        "of the others"
    )


def counted(collector: str, used: DeploymentUsed, *, local: bool, sums: bool) -> str:
    """Who adds up what devices count of themselves; local: each randomised its report first; sums: it is whole numbers
    within a norm, and no histograms.
    """
    if not collector.startswith(OURS):
        what = "whole numbers within the norm" if sums else "one unit in one cell of each histogram"
        return (
            f"by a collector that is no part of this software ({collector}); that a step's sum has one report of a "
            f"device, of {what}, is its promise and the devices'"
        )
    report = (
        "answers one histogram, drawn by itself, with a report that it randomised before it left"
        if local
        else "scales its whole numbers down to the norm, by itself"
        if sums
        else "counts itself in one cell of each histogram, by itself"
    )
    liar = (
        f"moves {'the cells by the norm' if sums else 'each count by one'}, no more"
        if not used.decryptors
        else ("moves counts as far as it likes, since nobody sees its report")
    )
    return (
        f"by the server of this software ({collector}); a device {report}, once in the run. "
        f"{_seen_by_the_server(used)}. A device that does not say what is so {liar}, and takes nothing from the "
        "guarantee of the others"
    )


def realised_once(participations: int) -> str:
    """What is realised where nobody can measure it and each device takes part once."""
    return (
        f"Realised, from the log of the run, which counts {participations:,} participations of devices without "
        "identities: a device takes part in one step of the run, once, and sees to that by itself. It counts under the "
        "assumption that when a device comes does not depend on what anyone typed. A device that keeps this has the "
        "guarantee, whatever the others do; one that does not (a record lost) has less, and takes nothing from the "
        "others."
    )


LOOKED_AT_OF_COUNTS = (
    "of each step how many devices reported and how many were dropped, and its time, without noise; the folder does "
    "not say who they were",
)


def voted(collector: str, used: DeploymentUsed) -> str:
    """Who adds up the votes of reports that devices randomised."""
    if not collector.startswith(OURS):
        return (
            f"by a collector that is no part of this software ({collector}); that a group's sum has what so many "
            "devices reported, each once, is its promise and the devices'"
        )
    liar = (
        "votes once for as many answers as an honest one does, and for whichever it likes"
        if not used.decryptors
        else "moves votes as far as it likes, since nobody sees its report"
    )
    return (
        f"by the server of this software ({collector}); a device sends how many of its reports support each answer, "
        f"once in the run. {_seen_by_the_server(used, noised=False)}. A device that sends what it did not draw {liar}, "
        "so that counts, and the anonymity below, hold as far as devices report honestly; it takes nothing from the "
        "local guarantee of the others"
    )


def _seen_by_the_server(used: DeploymentUsed, *, noised: bool = True) -> str:
    """noised: whether the server adds noise to a sum."""
    if used.decryptors:
        return _one_message(used, noised=noised)
    return (
        "The server sees each report as it comes and keeps sums of several only; nothing but the connection keeps a "
        "report from others"
    )


def _one_message(used: DeploymentUsed, *, noised: bool = True) -> str:
    """Who opens sums, and who could open more."""
    count, corrupt = used.decryptors, used.corrupt_decryptors
    then = (
        f", in which the noise of all {count:,} is, each drawn by its decryptor and seen by nobody else"
        if used.contributors
        else ", before it adds noise"
        if noised
        else ""
    )
    quorum = (count + corrupt) // 2 + 1  # OneMessageRound.quorum
    return (
        f"A report reaches the server encrypted under a key of the device's own, which only {quorum:,} or more of "
        f"{count:,} decryptors together can recover; they give the sum of the keys of one set of devices a round, and "
        f"the "
        f"server opens that sum alone{then}. {corrupt:,} decryptors that work with the server learn no "
        f"more; that the decryptors belong to different people this software cannot know, nor that the server made up "
        f"no "
        "devices"
    )


def logged(notes: Mapping[str, Any]) -> str:
    """Where everybody can see the plan that devices had, and which builds served them. notes: the run's."""
    if (kept := notes.get(LOGGED)) is None:
        return ". What devices were asked is in no transparency log"
    proof = kept["proof"]
    plan, head = parsed_json(kept["signed_plan"]["document"]), parsed_json(proof["head"]["document"])
    tokens = (
        "A device shows a single-use token for each task, signed blindly (RFC 9474), so that none takes part without "
        "the operator's code, and the server cannot tell by it which device came"
        if plan["enrolment"] == "tokens"
        else "Devices need no enrolment (enrolment: none), so whoever reaches the server may take part, as often as it "
        "likes"
    )
    attested = plan["attestation"]
    builds = ", then ".join(f"{each['sha256']} of tacit {each['version']}" for each in notes.get(BUILDS, []))
    ran = f"The server ran the build {builds}, by its word" if builds else "Which build the server ran is not noted"
    runs = (
        f"{ran}; nothing attests it (attestation: none)"
        if attested["server"] == "none"
        else f"{ran}; before it accepts the plan, a device checks what {attested['server']!r} attests of the server's "
        "environment"
    )
    theirs = (
        "nothing attests what a device is or runs (attestation: none)"
        if attested["devices"] == "none"
        else f"a device gets tokens for what {attested['devices']!r} attests of it alone"
    )
    return (
        f". What devices were asked is entry {proof['index']:,} of the operator's transparency log (RFC 9162), leaf "
        f"{kept['leaf']}, under the head of size {head['size']:,} with the root {head['root']}, signed by the key "
        f"{kept['operator']}; a device takes part in no plan that it is not shown there. {runs}. The plan "
        f"names the code of devices ({plan['code']}); {theirs}. "
        f"{tokens}"
    )


def looked_at(evaluation_clients: int, every: int, test_clients: int) -> tuple[str, ...]:
    """What is used without any guarantee when devices train."""
    return (
        f"the text of up to {evaluation_clients:,} validation clients every {every:,} rounds and of up to "
        f"{test_clients:,} test clients at the end, of the server's own cache (accuracies without noise, which the "
        "run's folder keeps and the report leaves out)",
        "of each round how many devices reported and how many were dropped, and its time, without noise, which the "
        "run's folder keeps and the report leaves out; the folder does not say who they were",
        "whatever was tried on the same devices before this run to choose its settings",
    )


def _listed(rules: list[str]) -> str:
    return " and ".join([", ".join(rules[:-1]), rules[-1]] if len(rules) > 1 else rules)


def participations_of_log(participations: int, limits: str, kept: DeviceSeparation) -> str:
    """What is realised where nobody can measure it; limits: those that follow, in words."""
    rules = []
    if kept.rounds is not None:
        rules.append(f"stays away from the {kept.rounds - 1:,} rounds after one of its own")
    if kept.timer_seconds is not None:
        rules.append(f"stays away for {hours(kept.timer_seconds)}")
    if kept.most is not None:
        rules.append(f"takes part in {kept.most:,} rounds at most")
    return (
        f"Realised, from the log of the run, which counts {participations:,} participations of devices without "
        f"identities: whoever {_listed(rules)} came at most so: {limits}. It counts under the assumption that "
        "when a device comes does not depend on what anyone typed. A device that keeps this has the guarantee, "
        "whatever the others do; one that does not (a clock set forward, a record lost) has less, and takes nothing "
        "from the others."
    )
