"""Every field that the `report/` of a training may have, and why it may."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# Every value that report.json, record.json and statement.json of a training may hold, and why: "setting" (what was
# asked, before any text was read), "plan" (follows from settings), "log" (who took part when, the same for zero-out
# neighbours: limits and their price, no more), "noised" (computed from noised sums), "asked of the model" (what the
# released model answers to sentences that are the same for every run), "sealed" (hidden by a salt that nobody knows). A
# field that is in none of them does not pass.
PUBLISHABLE: dict[str, str] = {
    r"run|name|finished|private|rounds|rounds_planned|labels\.\*|figures\.\*": "plan",
    r"warnings\.\*\.(name|meaning)": "log",
    r"planned|realised|opening": "log",  # the sentence has the price, and settings
    r"suggestions\.\*\.(prompt|words\.\*\.(word|probability))": "asked of the model",
    r"(planned|realised)\.(sequences\.\*\.)?(what|rounds|min_separation|rounds_between|max_participations)": "log",
    r"(planned|realised)\.(sequences\.\*\.)?(sensitivity_squared|noise_multiplier|zcdp|epsilon|delta)": "log",
    r"(planned|realised)\.(sequences\.\*\.)?clip_norm": "noised",
    r"spent\.\*\.(rounds|zcdp|epsilon)": "log",
    r"per_round\.(clip_norm|clip_estimate|private_loss)\.\*": "noised",
    r"settings\..*": "setting",
    r"schema|version|path|created|resume|metadata\.deployment(\..*)?": "setting",  # of record.json, as all below
    r"delta": "plan",
    r"released|labels\.\*\.(name|meaning)": "log",
    r"rounds\.(clip_norm|clip_estimate|private_loss)(\.\*)?": "noised",
    r"suggestions\.[^.]+\.\*\.\*": "asked of the model",
    r"metadata\.(versions\..*|created|key_source|asked|recipe|vocabulary\..*|population|report_goal|delta)": "setting",
    r"metadata\.(participation|guarantee|also_released|evaluation|hooks|first_model|simulated)(\..*)?": "setting",
    r"metadata\.(parameters|extrapolate_to|secure(\..*)?)": "setting",
    r"metadata\.(why_mechanism|foreseen)": "plan",
    r"metadata\.data\.(cache|source|vocabulary_sha256|vocabulary_size)": "setting",
    r"statement|extrapolated": "log",
    r"statement\.(format|title|unit|adjacency|key_source|private|delta)": "setting",
    r"statement\.(labels|items)\.\*\.(name|meaning|number|title|text)": "log",
    r"statement\.checksums\..*": "log",  # of the facts, each on its own
    r"(statement\.)?(extrapolated\.)?(also_released\.\*\.)?(in_all\.)?(planned|realised)\."
    r"(what|strategy|rounds|min_separation|rounds_between|max_participations|sensitivity_squared|exact|noise_multiplier"
    r"|clip_inflation|zcdp|mu|epsilon|delta)": "log",
    r"(statement\.)?(extrapolated\.)?(also_released\.\*\.)?(planned|realised)\.clip_norm": "noised",
    r"(statement\.)?(extrapolated\.)?also_released\.\*\.what": "setting",
    r"(statement\.)?extrapolated\.report_goal": "setting",
    r"statement\.facts\.(delta|population|report_goal|cohort_rule|vocabulary_kind|vocabulary_description)": "setting",
    r"statement\.facts\.(released|looked_at\.\*|verify_command|public_data\.\*|key_source|unit|adjacency)": "setting",
    r"statement\.facts\.(aggregation|extrapolation(\..*)?|also_released\.\*\.what)": "setting",
    r"statement\.facts\.(also_released\.\*\.)?mechanism\.(strategy(\..*)?|clip_norm|noise_multiplier|clip_inflation)": (
        "setting"
    ),
    r"statement\.facts\.(also_released\.\*\.)?(planned|realised)(\.(rounds|min_separation|max_participations))?": "log",
    r"statement\.facts\.clip_norms\.\*\.\*": "noised",
    r"statement\.facts\.participations": "log",
    r"statement\.facts\.budget(\.(population|clients|runs|zcdp|zcdp_allowed|delta|settled))?": "log",
    r"statement\.facts\.budget\.(local_epsilon|local_epsilon_allowed)": "log",
    r"statement\.facts\.budget\.seal": "sealed",  # of plans and prices alone
    r"statement\.facts\.seal": "sealed",
}

FIELD = re.compile("|".join(f"(?:{pattern})" for pattern in PUBLISHABLE))
FILES = {"report.html", "report.md", "report.json", "record.json", "statement.json"}
DRAWN = {"privacy_spent.png", "clip_norm.png", "training_loss.png"}


def leaves(value: Any, name: str = "") -> Iterator[str]:
    """The name of each value, `*` for a place in a list."""
    if isinstance(value, Mapping | list) and value:
        for key, inner in value.items() if isinstance(value, Mapping) else (("*", each) for each in value):
            yield from leaves(inner, f"{name}.{key}" if name else key)
    elif value not in ({}, []):
        yield name


def slipped_into(folder: Path) -> set[str]:
    """Files and fields of the `report` of a training that are not listed."""
    found = {file.name for file in folder.iterdir()} - FILES - DRAWN
    for name, prefix in (("report.json", ""), ("record.json", ""), ("statement.json", "statement.")):
        if (folder / name).exists():
            names = (f"{prefix}{leaf}" for leaf in leaves(json.loads((folder / name).read_text())))
            found |= {name for name in names if not FIELD.fullmatch(name)}
    return found
