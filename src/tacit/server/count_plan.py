"""The plan of a run that asks real devices for counts: what its folder says that it promises, and what is asked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from tacit.code_digest import code_digest
from tacit.errors import InputError
from tacit.evaluation.counts.release import guarantee_for, guarantee_within
from tacit.evaluation.release_cost import ReleaseCost
from tacit.federation.report_layout import BoundedLayout
from tacit.jobs.count_steps import cost_of_release
from tacit.jobs.devices import KEYS, RealDevices
from tacit.protocol.messages import UNATTESTED, VERSION, HistogramPrivacy, LocalPrivacy, Plan, Separation, SumPrivacy
from tacit.runs import Run
from tacit.runs.metadata import AskingMetadata
from tacit.server.served import Enrolment, aggregation_of

ABOUT_THE_RUN = (
    "model",
    "models",
    "networks",
    "vocabulary",
    "cells",
    "clients",
    "release",
    *KEYS,
)  # of a run's settings


def plan_of_counts(
    run: Run, enrolment: Enrolment, counted: Callable[[Run, Mapping[str, Any]], tuple[int, ...] | BoundedLayout]
) -> Plan:
    """The plan of a run that asks real devices to count.

    counted: by the run and its settings, how many histograms each step has; or of sums the layout of the one step.
    Raises: InputError for a run that asks no devices.
    """
    metadata, settings = run.of_kind(AskingMetadata, "give one that asks for counts"), run.settings_table
    cost = cost_of_release(settings)
    if cost is None or metadata.deployment is None:
        raise InputError(f"'{run.path}' asks no devices at a price, so nothing can be promised to them.")
    devices = RealDevices.from_table(settings, where=f"the settings of '{run.path}'")
    found = counted(run, settings)
    steps = 1 if isinstance(found, BoundedLayout) else len(found)
    goal = metadata.asked // steps  # the fewest of a step
    common: dict[str, Any] = {"report_goal": goal, "rounds": steps, "max_participations": 1}
    return Plan(
        version=VERSION,
        kind=run.kind,
        population=devices.deployment.population,
        run=devices.name,
        recipe=_published(run.kind, settings),
        code=code_digest(),
        privacy=_privacy(found, cost, metadata.delta, common),
        separation=Separation(rounds=steps, timer_seconds=None, clock="start"),
        aggregation=aggregation_of(devices.deployment, "plain", threshold=goal),
        vocabulary=settings["vocabulary"],
        attestation=UNATTESTED,
        enrolment=enrolment,
    )


def _privacy(
    counted: tuple[int, ...] | BoundedLayout, cost: ReleaseCost, delta: float, common: Mapping[str, Any]
) -> HistogramPrivacy | LocalPrivacy | SumPrivacy:
    """What is promised. common: what privacy of every kind says."""
    if cost.local_epsilon is not None:
        zcdp = cost.local_epsilon**2 / 2  # arXiv:1605.02065, Proposition 1.4
        return LocalPrivacy(kind="local", zcdp=zcdp, local_epsilon=cost.local_epsilon, **common)
    guarantee = (
        guarantee_within(counted.clip_norm, zcdp=cost.rho)
        if isinstance(counted, BoundedLayout)
        else guarantee_for(counted[0], zcdp=cost.rho, steps=len(counted))
    )
    noised = {
        "zcdp": guarantee.zcdp,
        "epsilon": guarantee.epsilon(delta),
        "delta": delta,
        "noise_multiplier": guarantee.noise_multiplier,
        **common,
    }
    if isinstance(counted, BoundedLayout):
        return SumPrivacy(kind="sums", clip_norm=guarantee.clip_norm, **noised)
    return HistogramPrivacy(kind="histograms", histograms=counted, **noised)


def _published(kind: str, settings: Mapping[str, Any]) -> str:
    """What is asked, as `evaluation.in_plan` and `evaluation.counts.device_part` read it; models by the names of their
    folders: where they lie here is no device's business.
    """
    models = settings.get("models") or [settings[name] for name in ("model",) if name in settings]
    named = [
        {"name": Path(each["path"]).name, "sha256": each["sha256"], "network": network}
        for each, network in zip(models, settings.get("networks", []), strict=True)
    ]
    own = {name: value for name, value in settings.items() if name not in ABOUT_THE_RUN}
    about = {name: settings[name] for name in ("clients", "release", *KEYS)}
    return tomli_w.dumps({"kind": kind, **about, **({"models": named} if named else {}), "settings": own})
