"""Pre-training on public text, before the first private round [paper 1, section 2.3].

Central training that looks at held-out public text now and then, keeps the model that did best there, stops when it
has long not done better, and survives kill -9. A private run that begins from its model pays nothing for it: no phone's
text was used.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.files import sweep_drafts, write_whole
from tacit.training.central import CentralState, CentralTraining, central_start, central_states
from tacit.training.checkpoint import leaves, load_checkpoint, save_checkpoint
from tacit.training.client import Loss, Model

STATE = "pretraining.json"  # names the checkpoint it belongs to, and is written after it


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """How long, and when to stop."""

    central: CentralTraining = field(default_factory=CentralTraining)
    sentences: int = 1_000_000  # at most; the learning rate falls to 0 along a cosine of this length
    every: int = 50_000  # sentences from one look at held-out text to the next
    patience: int = 5  # looks without a better one, after which training stops

    def __post_init__(self) -> None:
        for name in ("sentences", "every", "patience"):
            if getattr(self, name) < 1:
                raise InputError(f"pretraining {name}={getattr(self, name)} must be at least 1.")


class Look(NamedTuple):
    """One look at held-out public text."""

    sentences: int  # trained on before it
    loss: float  # nats a word of the last training steps; nan before the first
    held_out: float  # nats a word of the held-out text


class Pretrained(NamedTuple):
    """What pre-training gives."""

    model: Model  # the one that did best on held-out text
    looks: tuple[Look, ...]
    stopped_early: bool

    @property
    def best(self) -> Look:
        return min(self.looks, key=lambda look: look.held_out)


class _Held(NamedTuple):
    """What a checkpoint holds: where training is, and the best model so far."""

    training: CentralState
    best: Model


def pretrain(
    folder: Path,
    loss: Loss,
    start: Model,
    cache: Cache,
    clients: NDArray[np.int64],
    *,
    plan: Pretraining,
    key: bytes,
    identity: Mapping[str, Any],
    measure: Callable[[Model], float],
    watch: Callable[[CentralState, tuple[Look, ...]], None],
) -> Pretrained:
    """Train on the pooled text of `clients`, from `start` or from where `folder` says an earlier call was stopped.

    measure(model) is the cross-entropy on held-out text, lower is better; watch is called after every block of steps.
    identity: JSON values that must be the same when training is continued (the data, the network, the seed).
    Deterministic given the key, however often it is interrupted. Raises: InputError when there is nothing to train on
    or the folder was begun with other settings; TrainingError when training diverges; RunError for a damaged folder.
    """
    asked = json.loads(json.dumps({**identity, **asdict(plan)}))
    held = _Held(central_start(start, plan.sentences, plan.central), jax.tree.map(np.asarray, start))
    folder.mkdir(parents=True, exist_ok=True)
    held, looks = _found(folder, asked, held)
    if not looks:
        looks = (Look(0, float("nan"), measure(start)),)
    if not _exhausted(looks, plan):
        for training in central_states(
            loss, held.training, cache, clients, sentences=plan.sentences, settings=plan.central, key=key
        ):
            due = training.sentences // plan.every > looks[-1].sentences // plan.every
            if due or training.sentences >= plan.sentences:
                look = Look(training.sentences, training.loss, measure(training.model))
                better = look.held_out < min(earlier.held_out for earlier in looks)
                held, looks = _Held(training, training.model if better else held.best), (*looks, look)
                _keep(folder, asked, held, looks)
            watch(training, looks)
            if _exhausted(looks, plan):
                break
    return Pretrained(held.best, looks, stopped_early=looks[-1].sentences < plan.sentences)


def _exhausted(looks: tuple[Look, ...], plan: Pretraining) -> bool:
    """Whether there is nothing left to do, or nothing to be gained by it."""
    best = min(range(len(looks)), key=lambda i: looks[i].held_out)
    return looks[-1].sentences >= plan.sentences or len(looks) - 1 - best >= plan.patience


def _keep(folder: Path, asked: dict[str, Any], held: _Held, looks: tuple[Look, ...]) -> None:
    """Checkpoint first, then the file that names it: killed in between, the earlier pair is still whole."""
    name = f"at-{held.training.sentences:012d}.safetensors"
    digest = save_checkpoint(folder / name, leaves(held))
    state = {"asked": asked, "looks": [_plain(look) for look in looks], "checkpoint": name, "digest": digest}
    write_whole(folder / STATE, (json.dumps(state, indent=1) + "\n").encode())
    for old in folder.glob("at-*.safetensors"):
        if old.name != name:
            old.unlink()


def _plain(look: Look) -> list[float | None]:
    return [None if math.isnan(value) else value for value in look]


def _found(folder: Path, asked: dict[str, Any], like: _Held) -> tuple[_Held, tuple[Look, ...]]:
    """What an earlier call left, or `like` and no looks."""
    sweep_drafts(folder)
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
        begun = state["asked"]
        looks = tuple(
            Look(int(seen), float("nan") if loss is None else loss, held_out) for seen, loss, held_out in state["looks"]
        )
        checkpoint, digest = folder / state["checkpoint"], state["digest"]
    except FileNotFoundError:
        return like, ()
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"'{folder / STATE}' is damaged ({error}); remove the folder and begin again.") from error
    if begun != asked:
        raise InputError(f"'{folder}' was begun with {_difference(begun, asked)}; give the same, or another --out.")
    held: _Held = load_checkpoint(checkpoint, like, digest)
    training = held.training._replace(sentences=int(held.training.sentences), loss=float(held.training.loss))
    return held._replace(training=training), looks


def _difference(begun: dict[str, Any], asked: dict[str, Any], prefix: str = "") -> str:
    """The settings that differ: `sentences=5 (now 6)`."""
    parts = []
    for name in sorted(begun.keys() | asked.keys()):
        before, now = begun.get(name), asked.get(name)
        if isinstance(before, dict) and isinstance(now, dict) and before != now:
            parts.append(_difference(before, now, f"{prefix}{name}."))
        elif before != now:
            parts.append(f"{prefix}{name}={before} (now {now})")
    return ", ".join(parts)
