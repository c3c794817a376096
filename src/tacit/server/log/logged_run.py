"""A served run and the transparency log: what its folder keeps of its entry, and whether a log has it, or a bundle."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tacit.code_digest import build_digest
from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path, read_bounded
from tacit.jobs.open_run import opened
from tacit.parsing import parsed_json
from tacit.protocol.bounded_http import Server, connected
from tacit.protocol.fields import Digest, Document, PublicKey
from tacit.protocol.log_proofs import is_included, leaf_of, plan_entry, root_of
from tacit.protocol.messages import InclusionProof, Plan, ShownLog, SignedPlan, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.requests import whole_log
from tacit.protocol.signing import digest, is_signed
from tacit.runs import Run
from tacit.server.log.logged_bundle import bundle_lines
from tacit.server.log.transparency import entries_of
from tacit.server.plans import plan_of
from tacit.statements.device_text import BUILDS, LOGGED
from tacit.statements.page_bundle import BUNDLE, PageBundle
from tacit.statements.verify import CheckedLine
from tacit.version import __version__

RECORD = "record.json"  # in a published report


class LoggedRun(Document):
    """What a run's folder keeps."""

    operator: PublicKey
    leaf: Digest
    signed_plan: SignedPlan
    proof: InclusionProof


def keep_logged(run: Run, signed: SignedPlan, proof: InclusionProof, key: OperatorKey) -> None:
    """In the folder of an open run, once: where it was entered first stays. Raises: InputError for another operator."""
    if LOGGED in run.notes:
        began = str(run.notes[LOGGED]["operator"])
        if began != key.public:
            raise InputError(
                f"the run '{run.path}' began with the operator's key {began[:16]}..., which its devices have pinned, "
                f"and this one is {key.public[:16]}...; put the file of that key back (--operator-key)."
            )
    else:
        leaf = leaf_of(plan_entry(digest(signed.document))).hex()
        kept = LoggedRun(operator=key.public, leaf=leaf, signed_plan=signed, proof=proof)
        run.note(LOGGED, kept.model_dump(mode="json"))


def plan_text(run: Run, plan: Plan) -> str | None:
    """The text of the plan that devices of an open run were given; None before the first. plan: as this build makes it.

    Raises: InputError where that says anything else but of its code, for a run has one plan for ever.
    """
    if LOGGED not in run.notes:
        return None
    return same_text(_kept(run).signed_plan.document, plan, where=f"the run '{run.path}'")


def _kept(run: Run) -> LoggedRun:
    """Of a run that has it. Raises: InputError."""
    return LoggedRun.from_json(json.dumps(run.notes[LOGGED]))


def same_text(text: str, plan: Plan, *, where: str) -> str:
    """The text, which says what the plan says. where: it is from. Raises: InputError."""
    if not is_same_plan(Plan.from_json(text), plan):
        raise InputError(
            f"{where} has another plan ({digest(text)[:16]}...) than this recipe gives in this version of tacit, and "
            "devices were told that one: give this run another name, or go on with the recipe and the version of tacit "
            "that it began with."
        )
    return text


def is_same_plan(one: Plan, other: Plan) -> bool:
    """Whether the two say the same of all but the code: a run goes on under a server that was mended."""
    return one == other.model_copy(update={"code": one.code})


def note_build(run: Run) -> None:
    """Add the build that serves an open run from now on, where it is another than the last one."""
    build, before = {"version": __version__, "sha256": build_digest()}, run.notes.get(BUILDS, [])
    if before[-1:] != [build]:
        run.note(BUILDS, [*before, build])


def verify_log(run: Run | PathLike, log: PathLike, *, certificates: Path | None = None) -> tuple[CheckedLine, ...]:
    """Whether the plan that devices were given is the run's, and is in this log: what `tacit verify --log` adds.

    certificates: PEM, in place of the system's, for the address of a server. run: its folder, or the `report` folder
    that it published; or the folder of a built page, whose bundle is looked for. log: a file of entries, such as the
    operator's or one that somebody kept, the `log.json` of a page, or the address of a server. Raises: InputError for a
    run that was not served, and for what is no log; ServerError.
    """
    of_type("log", log, str, Path)
    if not isinstance(run, Run) and (as_path("run", run) / BUNDLE).is_file():
        bundle, shown = PageBundle.in_folder(as_path("run", run)), _shown(log, certificates)
        return bundle_lines(bundle, [*_entries(log, shown)], shown)
    if not isinstance(run, Run) and (as_path("run", run) / RECORD).is_file():
        return _published_in(as_path("run", run) / RECORD, log, certificates)
    with opened(run) as found:
        if LOGGED not in found.notes:
            raise InputError(f"'{found.path}' is of no run that was served, so no log has its plan; leave --log out.")
        try:
            kept = _kept(found)
            given, head = kept.signed_plan.read(Plan), kept.proof.head.read(TreeHead)
        except InputError as error:
            return (_unread(error),)
        plan = plan_of(found, given.enrolment)
    own = CheckedLine(
        name="log.plan",
        complaint=None if is_same_plan(given, plan) else "devices were given another plan than the run's",
    )
    return (own, *_in_log(kept, head, _entries(log, _shown(log, certificates))))


def _published_in(record: Path, log: PathLike, certificates: Path | None) -> tuple[CheckedLine, ...]:
    """The plan that a report has published; `tacit verify` holds it against the report's settings."""
    released = parsed_json(read_bounded(record)).get("released")
    if not isinstance(released, dict) or released.get("logged") is None:
        raise InputError(f"'{record}' has no plan of a run that was served, so no log has it; leave --log out.")
    try:
        kept = LoggedRun.from_json(json.dumps(released["logged"]))
        head = kept.proof.head.read(TreeHead)
    except InputError as error:
        return (_unread(error),)
    return _in_log(kept, head, _entries(log, _shown(log, certificates)))


def _unread(error: InputError) -> CheckedLine:
    return CheckedLine(name="log", complaint=f"what the folder keeps of it cannot be read: {error}")


def _in_log(kept: LoggedRun, head: TreeHead, entries: Sequence[str]) -> tuple[CheckedLine, ...]:
    """That a plan was signed, and stands in the log where its proof says."""
    checks = {
        "log.signatures": next(_unsigned(kept), None),
        "log.proof": None if _is_proved(kept, head) else "the proof does not show that the plan was in the log",
        "log.entries": _missing(kept, head, entries),
    }
    return tuple(CheckedLine(name=name, complaint=complaint) for name, complaint in checks.items())


def _unsigned(kept: LoggedRun) -> Iterator[str]:
    if not is_signed(Plan, kept.signed_plan, kept.operator):
        yield "the plan is not signed by the operator that the run names"
    if not is_signed(TreeHead, kept.proof.head, kept.operator):
        yield "the head of the log is not signed by the operator that the run names"


def _is_proved(kept: LoggedRun, head: TreeHead) -> bool:
    path = [bytes.fromhex(each) for each in kept.proof.path]
    leaf = leaf_of(plan_entry(digest(kept.signed_plan.document)))
    return leaf.hex() == kept.leaf and is_included(leaf, kept.proof.index, head.size, path, bytes.fromhex(head.root))


def _missing(kept: LoggedRun, head: TreeHead, entries: Sequence[str]) -> str | None:
    index = kept.proof.index
    if len(entries) < head.size:
        return f"the log has {len(entries)} entries, and it had {head.size} when the run began: it is another, or older"
    if root_of(map(leaf_of, entries[: head.size])).hex() != head.root:
        return f"the first {head.size} entries of the log are not those that it had when the run began"
    if entries[index] != plan_entry(digest(kept.signed_plan.document)):
        return f"entry {index} of the log is not the plan of this run"
    return None


def _shown(log: PathLike, certificates: Path | None) -> ShownLog | None:
    """A log with its head, a server's or a page's; None of a file of entries. Raises: InputError; ServerError."""
    if "://" in str(log):
        with connected(Server.from_url(str(log)), certificates=certificates) as connection:
            return connection.held(whole_log())
    content = _content(log)
    return ShownLog.from_json(content.decode("utf-8", "replace")) if content.startswith(b"{") else None


def _entries(log: PathLike, shown: ShownLog | None) -> Sequence[str]:
    """Raises: InputError."""
    return entries_of(_content(log), log) if shown is None else shown.entries


def _content(log: PathLike) -> bytes:
    """Raises: InputError."""
    try:
        return read_bounded(as_path("log", log))
    except OSError as error:
        raise InputError(
            f"--log '{log}' cannot be read ({error.strerror}); give a file or a server's https://."
        ) from None
