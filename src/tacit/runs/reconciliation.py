"""A run's ledger, its log of who took part and its files held against each other, and against what is enforced.

The journal's seals say that nothing was changed since it was written; this says that what was written can be true. Both
are needed: whoever computes every seal anew still has to tell a story without contradictions.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import RunError
from tacit.runs.draft import STEPS
from tacit.runs.entries import StepEntry
from tacit.runs.folder import Run
from tacit.runs.journal import RESTORE
from tacit.runs.metadata import AskingMetadata, DiscoveryMetadata, SecureSumUsed, TrainingMetadata

FEW = 50_000_000  # clients of which a table is kept by number
NEVER = np.iinfo(np.int64).min // 2  # when a client took part that never did


def reconciled(run: Run) -> Run:
    """The run, if what it says of itself agrees; a run that is under way may be given.

    Each step has as many participants as clients were summed or dropped in each of its releases, whose round it is;
    its sums have the decryptors, the encoding and the least reports that the run says of all;
    they are clients that there are, no more than there are, and none more often or sooner than the draw allows, where
    the draw is ours; where devices have no identities none is named, and the rounds finished one after another; a file
    of a step that is still there is the one that the step names, and at most one is there that no step names (a process
    was killed before its row). Raises: RunError naming the first that differs.
    """
    steps = run.steps()  # whoever trains may add steps meanwhile
    if _deployed(run):
        run.check_counted()
        _check_times(run, len(steps))
        _check_steps(run, steps, run.counts()[: len(steps)])
    else:
        step_of, client_of = run.participations()
        ends = np.searchsorted(step_of, np.arange(len(steps) + 1))
        _check_steps(run, steps, np.diff(ends))
        _check_clients(run, ends, client_of[: ends[-1]])
    _check_files(run, steps)
    return run


def _check_steps(run: Run, steps: list[StepEntry], counts: NDArray[np.int64]) -> None:
    """counts: (steps,) how many took part in each. Raises: RunError for the first step that cannot be."""
    for step, count in zip(steps, counts.tolist(), strict=True):
        if complaint := _of_step(run, step, count):
            raise _refusal(run, f"step {step.step}", complaint)


def _refusal(run: Run, where: str, complaint: str) -> RunError:
    return RunError(f"{where} of '{run.path}' {complaint}, so ledger and log are not of one run; {RESTORE}.")


# -- a step ------------------------------------------------------------------------------------------------------------


def _of_step(run: Run, step: StepEntry, participants: int) -> str | None:
    """What of one step cannot be, given how many took part in it."""
    sums = [each for each in step.releases if each.get("kind") == "noised sum"]
    for each in sums:
        if each.get("round") != step.step:
            return f"released a sum of round {each.get('round')!r}"
        if complaint := _of_sum(each, participants, own_log="collector" in _hooks(run) and not _deployed(run)):
            return complaint
        if isinstance(run.metadata, TrainingMetadata) and (complaint := _of_secure_sum(each, run.metadata.secure)):
            return complaint
        if isinstance(run.metadata, AskingMetadata):
            used = run.metadata.deployment
            many, honest = (0, 1) if used is None else (used.contributors, used.honest_decryptors)
            if complaint := _of_noise(each, many, honest):
                return complaint
    of_devices = isinstance(run.metadata, AskingMetadata) or (
        isinstance(run.metadata, DiscoveryMetadata) and _deployed(run)
    )
    users = sum(_whole(each, "users") for each in step.releases)
    if of_devices and not sums and (users > participants if _deployed(run) else users != participants):
        return f"has reports of {users:,} devices and {participants:,} participations"
    if isinstance(run.metadata, TrainingMetadata) and not sums:
        return "released nothing"
    return None


def _of_sum(release: Mapping[str, Any], participants: int, *, own_log: bool) -> str | None:
    """Ours has whoever trained; what a collector of the program's own logs has at least whoever is in the sum."""
    reports, dropped = _whole(release, "reports"), _whole(release, "dropped")
    fits = reports <= participants if own_log else reports + dropped == participants
    if reports < 0 or dropped < 0 or not fits:
        return f"has {reports:,} reports and {dropped:,} dropped clients, and {participants:,} participations"
    return None


def _of_secure_sum(release: Mapping[str, Any], secure: SecureSumUsed | None) -> str | None:
    """What a run says of its sums of integers must be so of each, since its statement says it of all."""
    many, honest = (0, 1) if secure is None else (secure.decryptors, secure.honest_decryptors)
    if complaint := _of_noise(release, many, honest):
        return complaint
    if secure is None:
        return None
    if _whole(release, "reports") < secure.threshold:
        return f"opened a sum of {_whole(release, 'reports'):,} reports, fewer than the threshold {secure.threshold:,}"
    inflated = release.get("clip_inflation")
    if release.get("what") == "model update" and not (isinstance(inflated, float) and inflated >= secure.inflation):
        return f"counts no encoding, which lengthens updates by a factor of {secure.inflation:.6g}"
    return None


def _of_noise(release: Mapping[str, Any], decryptors: int, honest: int) -> str | None:
    """Of a sum with the noise of so many decryptors, of whom so many are relied on."""
    if _whole(release, "decryptors") != decryptors and ("decryptors" in release or decryptors):
        return f"released a sum without the noise of just {decryptors:,} decryptors"
    if _whole(release, "honest_decryptors") != honest and ("honest_decryptors" in release or honest > 1):
        return f"released a sum that does not rely on {honest:,} honest decryptors"
    return None


def _whole(release: Mapping[str, Any], name: str) -> int:
    """A number of a release; -1 where it is none."""
    value = release.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _hooks(run: Run) -> Mapping[str, str]:
    return run.metadata.hooks if isinstance(run.metadata, TrainingMetadata) else {}


def _deployed(run: Run) -> bool:
    return getattr(run.metadata, "deployment", None) is not None


def _check_times(run: Run, steps: int) -> None:
    """Raises: RunError for a step that finished before the one before it, which a timer cannot be counted by."""
    before = run.metadata.created
    for step, finished, _ in run.times()[:steps]:
        if finished < before:
            raise _refusal(run, f"step {step}", f"finished {before - finished:.3g} seconds before it can have begun")
        before = finished


# -- clients -----------------------------------------------------------------------------------------------------------


def _check_clients(run: Run, ends: NDArray[np.int64], clients: NDArray[np.int64]) -> None:
    """Raises: RunError for clients that there are not, or that our draw would not have drawn."""
    metadata = run.metadata
    most = {TrainingMetadata: "population", AskingMetadata: "asked"}
    known = next((getattr(metadata, name) for cls, name in most.items() if isinstance(metadata, cls)), None)
    if not len(clients) or known is None or "collector" in _hooks(run):  # its clients are pseudonyms, of any number
        return
    there = metadata.data.clients if isinstance(metadata, TrainingMetadata) else None
    outside = (clients < 0) | (clients >= (there if there is not None else np.iinfo(np.int64).max))
    if outside.any():
        at = int(np.argmax(outside))
        step = int(np.searchsorted(ends, at, side="right")) - 1
        raise _refusal(run, f"step {step}", f"names the client {clients[at]}, and there are {there:,} in the cache")
    places = clients if int(clients.max()) < FEW else np.unique(clients, return_inverse=True)[1]
    different = np.count_nonzero(np.bincount(places))
    if different > known:
        raise _refusal(run, "the log", f"names {different:,} clients, and there are {known:,} to take part")
    if isinstance(metadata, TrainingMetadata) and metadata.simulated is None and "sampler" not in metadata.hooks:
        _check_limits(run, metadata, ends, clients, places)


def _check_limits(
    run: Run,
    metadata: TrainingMetadata,
    ends: NDArray[np.int64],
    clients: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
    """places: the clients, numbered without large gaps. Raises: RunError for the first client that took part sooner or
    more often than the uniform draw lets one.
    """
    try:
        sooner, often = metadata.participation["min_separation"], metadata.participation["max_participations"]
    except KeyError as error:
        raise RunError(f"the metadata of '{run.path}' lacks {error}; use the version that wrote it.") from error
    last = np.full(int(places.max()) + 1, NEVER)
    times = np.zeros(len(last), np.int64)
    for step, (begin, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        present = places[begin:end]
        wrong = (step - last[present] < sooner) | (times[present] >= often)
        if wrong.any():
            at = int(np.argmax(wrong))
            client = int(present[at])
            raise _refusal(
                run,
                f"step {step}",
                f"names the client {clients[begin + at]}, which took part {times[client]:,} times before, last in step "
                f"{last[client]:,}; the draw keeps {sooner:,} steps between and lets one take part {often:,} times",
            )
        last[present] = step
        times[present] += 1


# -- files -------------------------------------------------------------------------------------------------------------


def _check_files(run: Run, steps: list[StepEntry]) -> None:
    """Raises: RunError for a file in `steps/` that is not the one of its step, or where steps are missing to files."""
    digests = {step.file: step for step in steps}
    unknown = []
    for name in run.files_at(STEPS):
        file = run.path / name
        step = digests.get(file.name)
        if step is None:
            unknown.append(name)
            continue
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except FileNotFoundError:  # whoever trains has removed it meanwhile
            continue
        if digest != step.digest:
            raise RunError(f"'{file}' is not the file that step {step.step} names (its SHA-256 differs); {RESTORE}.")
    if len(unknown) > 1 and len(run.steps()) == len(steps):
        raise RunError(
            f"'{run.path}' has {len(unknown)} files of steps that its journal does not know ('{unknown[0]}' is the "
            f"first), and a kill leaves one at most: the journal has lost its end; {RESTORE}."
        )
