"""Whether the folder of a run that made a mixture is what it says: statements, parts, and the model itself."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.files import read_bounded
from tacit.jobs.mix import FILES
from tacit.jobs.open_run import opened
from tacit.jobs.statement import statement
from tacit.jobs.train.mixture import make
from tacit.jobs.train.mixture_folder import COUNTS, MIXED, RECIPE, TRAINING, Begun
from tacit.networks.models import PROMISE, SETTINGS
from tacit.parsing import parsed_json
from tacit.recipe.mixture import MixtureRecipe
from tacit.runs.budget import ROUNDING
from tacit.statements.composed import ComposedPromise
from tacit.statements.verify import CheckedLine

PARTS = {"counts": COUNTS, "network": TRAINING}  # the folder of each part's run, by its name in a promise


def mixture_lines(out: Path, promise: Mapping[str, Any]) -> tuple[CheckedLine, ...]:
    """What a promise does not say of itself: that its statements are those of the runs beside the model, that they cost
    no more than was asked, and that the model is the one that these parts make. promise: whose own lines hold.
    """
    return (*_of_parts(out, promise), _of_budget(out, promise), *_of_model(out), _of_copy(out))


def _of_parts(out: Path, promise: Mapping[str, Any]) -> Iterator[CheckedLine]:
    stated = promise["statements"]
    for part, name in PARTS.items():
        if not (out / name).is_dir() and part not in stated:
            continue
        yield CheckedLine(name=f"statement of {part}", complaint=_apart(out / name, stated.get(part)))


def _apart(run: Path, stated: object) -> str | None:
    """Why a statement is not that of the run; None where it is."""
    if stated is None:
        return f"the promise lacks it, and '{run}' is there"
    try:
        with opened(run) as found:
            own = parsed_json(statement(found).to_json())
    except TacitError as error:
        return str(error)
    return None if _placeless(own) == _placeless(stated) else f"it is not that of the run in '{run}'"


def _placeless(statement: Any) -> Any:
    """A statement without the command that says where it lies: a copy of a run is what the run is. Texts alone have it,
    and nothing but a command of tacit is left out of them.
    """
    facts = statement.get("facts") if isinstance(statement, Mapping) else None
    command = facts.get("verify_command") if isinstance(facts, Mapping) else None
    left_out = command if isinstance(command, str) and command.startswith("tacit ") else None

    def without(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: without(each) for name, each in value.items() if name != "verify_command"}
        if isinstance(value, list):
            return [without(each) for each in value]
        return value.replace(left_out, "") if left_out and isinstance(value, str) else value

    return without(statement)


def _same_promise(there: Path, made: Path) -> bool:
    """But for where it lies."""
    promises = [parsed_json(read_bounded(each)) for each in (there, made)]
    statements = [{part: _placeless(each) for part, each in promise.pop("statements").items()} for promise in promises]
    return bool(promises[0] == promises[1] and statements[0] == statements[1])


def _same(name: str, there: Path, made: Path) -> bool:
    """To the byte; a promise is read, since commands in it have the path of the run."""
    if there.read_bytes() == made.read_bytes():
        return True
    try:
        return name == PROMISE and _same_promise(there, made)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False


def _of_budget(out: Path, promise: Mapping[str, Any]) -> CheckedLine:
    """Together, and the counts alone: what the recipe asked for."""
    complaint = None
    try:
        recipe, begun = MixtureRecipe.load(out / RECIPE), Begun.read(out)
        settled = begun.settled(recipe)
        costs = ComposedPromise(statements=promise["statements"], public=promise["public"]).costs()
        allowed = {
            "counts": settled.counts_rho(begun.clients),
            "all parts together": settled.privacy.rho(begun.clients),
        }
        spent = {"counts": costs.get("counts", 0.0), "all parts together": sum(costs.values())}
        for name, rho in allowed.items():
            if spent[name] > rho * (1 + ROUNDING):
                complaint = f"{name} cost {spent[name]:.6g} of zCDP, and the recipe asked for {rho:.6g}"
    except TacitError as error:
        complaint = str(error)
    return CheckedLine(name="budget of the recipe", complaint=complaint)


def _of_model(out: Path) -> Iterator[CheckedLine]:
    """Each file of the model against what its parts make."""
    with tempfile.TemporaryDirectory() as place:
        again, failed = Path(place) / MIXED, None
        try:
            recipe, begun = MixtureRecipe.load(out / RECIPE), Begun.read(out)
            if begun.weight is None and recipe.training is not None:  # it followed from public text, not from the parts
                written = parsed_json(read_bounded(out / MIXED / SETTINGS))
                begun = replace(begun, weight=float(written["network_weight"]) or None)
            make(out, recipe, begun, again)
        except (TacitError, OSError, ValueError, KeyError, TypeError) as error:
            failed = f"its parts make no model: {error}"
        for name in FILES:
            there, made = ((folder / name) for folder in (out / MIXED, again))
            if failed is None and not there.exists() and not made.exists():
                continue
            same = failed is None and there.exists() and made.exists() and _same(name, there, made)
            complaint = None if same else failed or "it is not what the parts of this run make"
            yield CheckedLine(name=f"file {MIXED}/{name}", complaint=complaint)


def _of_copy(out: Path) -> CheckedLine:
    """The promise that is published is that of the model."""
    file, complaint = out / "report" / PROMISE, None
    try:
        if parsed_json(read_bounded(file)) != parsed_json(read_bounded(out / MIXED / PROMISE)):
            complaint = "it is not the promise of the model"
    except (OSError, ValueError) as error:
        complaint = f"it cannot be read ({error}); `tacit train` writes it"
    return CheckedLine(name=f"file report/{PROMISE}", complaint=complaint)
