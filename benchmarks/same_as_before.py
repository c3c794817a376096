"""The claim: after a reorganisation every number, bit and byte is what it was, except keys renamed on purpose.

    same_as_before.py record CHECKOUT --out OLD                 what a checkout's command computes, about five minutes
    same_as_before.py record CHECKOUT --out OLD --which application   the same, from one application layer (4a0d271) on
    same_as_before.py record CHECKOUT --out NEW --which new     the same cases, in the words of today's command line
    same_as_before.py compare OLD NEW --renames RENAMES.json    what is equal, the first differences; status 1 if any
    same_as_before.py list                                      the cases

A case is one or more commands `tacit ...` over a small made-up population that this file writes. Its record,
OUT/records/CASE.json, holds the exit status and output of each command and all that it left in its folder: weights
and arrays by their SHA-256, run.db with the digest of the whole state after each round, the ledger, participations
and metrics, and every report, statement, recipe and table in full. Where a number is compared it is compared to the
last bit. What tells the time (MASKED, CLOCKS) or the machine's folders is replaced; figures are compared by name only.

RENAMES.json has up to three objects, each from old to new, applied to the old record:

    {"keys": {"facts": "metadata", "files/*/*.db/times": null}, "values": {"tree-full": "full-tree"},
     "text": {"tacit strategy": "tacit plan production"}}

A key without "/" is renamed wherever it stands; one with "/" is a path from the top of a record, `*` stands for any
one part (in the new path for the old one's), a prefix renames all below it, and null drops it. A value is a whole
string; a text is any part of one. Each rule that was never needed is told, and so is how many values were dropped.

A new command line is said in NEW_COMMANDS, by the case's name. Commands run one at a time, in processes forked from one
that has imported the checkout: the imports, three seconds, are paid once.
"""

import argparse
import atexit
import base64
import difflib
import hashlib
import importlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

Flat = dict[str, Any]  # path of keys with "/" -> value

ENTRY = {"old": "tacit.cli:main", "application": "tacit.cli:main", "new": "tacit.cli:main"}
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "NO_COLOR": "1",
    "COLUMNS": "200",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
WARM = ("jax", "optax", "numba", "jinja2", "matplotlib.figure", "matplotlib.backends.backend_agg")  # imported once, too
SHOWN = 8  # differences of a case
GONE = "gone on purpose"


# -- cases -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """One or more commands; all that they write goes into the folder NAME, which is the record's `files`."""

    name: str
    old: tuple[str, ...]
    needs: tuple[str, ...] = ()  # cases whose folders it reads
    writes: Mapping[str, str] = field(default_factory=dict)  # files that are there before the first command
    copies: Mapping[str, str] = field(default_factory=dict)  # folders of other cases that it changes, from -> to
    files: bool = True  # whether its files are compared; not those of what was refused
    kill_in: str | None = None  # the run whose first command is killed (SIGKILL) between two of its rounds

    def commands(self, which: str) -> tuple[str, ...]:
        """What to call: the old words, or the new ones where they differ."""
        return tuple(in_words_of(which, new_command(each)) if which != "old" else each for each in self.old)


# How the new command line says it: pattern -> words, one after another.
NEW_COMMANDS = (
    (r"^strategy ", "plan production "),
    (r"^design full-tree", "design tree-full"),
    (r"^design tree (.*)--variance-reduced", r"design tree-variance-reduced \1"),
    (r"^account gaussian", "account independent"),
    (r"^account blt --strategy (\w+)", r"account blt-\1"),
    (r"^account person ", "account user "),
    (r"--mechanism blt --strategy (\w+)", r"--mechanism blt-\1"),
    (r"(?<![-\w])tree-reduced\b", "tree-variance-reduced"),
    (r"banded-square-root", "square-root"),
    (r"--metrics top1,", "--metrics top1_accuracy,"),
)


def new_command(command: str) -> str:
    """The command in today's words."""
    for pattern, words in NEW_COMMANDS:
        command = re.sub(pattern, words, command)
    return command


# How today's command line and recipes say what those of the one application layer said: pattern -> words.
LATER_WORDS = ((r"\bstands_in_for\b", "extrapolate_to"), (r"--stop-if-drowned\b", "--stop-if-diverged"))


def in_words_of(which: str, text: str) -> str:
    """A command or a recipe in the words of `application`, or in today's."""
    for pattern, words in LATER_WORDS if which == "new" else ():
        text = re.sub(pattern, words, text)
    return text


SECTIONS: dict[str, dict[str, Any]] = {
    "data": {"cache": "world/cache"},
    "model": {"embedding": 8, "units": 16},
    "client": {"batch_size": 4, "learning_rate": 0.5, "sentences": 12, "words": 8},
    "server": {},
    "rounds": {"rounds": 8, "report_goal": 6, "min_separation": 4},
    "evaluation": {"every": 4, "clients": 5, "test_clients": 5, "sentences": 8},
}
NOISE = {"noise_multiplier": 0.3, "clip_norm": 0.5}
ONCE = {"rounds": {"max_participations": 1}}
FOLLOW = {"clipping": {"initial": 0.2, "quantile": 0.6}}

# Every strategy that a recipe accepts: name -> what its sections say besides SECTIONS.
MECHANISMS: dict[str, dict[str, dict[str, Any]]] = {
    "none": {"privacy": {"mechanism": "none", "clip_norm": 0.5}},
    "independent": {"privacy": {"mechanism": "independent"}},
    "tree": {"privacy": {"mechanism": "tree"}},
    "tree-restarts": {"privacy": {"mechanism": "tree", "restarts": [3, 5]}},
    "tree-variance-reduced": {"privacy": {"mechanism": "tree-variance-reduced"}},
    "tree-variance-reduced-restarts": {"privacy": {"mechanism": "tree-variance-reduced", "restarts": [5]}},
    "tree-full": {"privacy": {"mechanism": "tree-full"}},
    "blt-published": {"privacy": {"mechanism": "blt", "blt": "b400"}},
    "blt-numbers": {"privacy": {"mechanism": "blt", "theta": [0.9, 0.5], "omega": [0.2, 0.1]}},
    "blt-buffers": {"privacy": {"mechanism": "blt", "buffers": 2}},
    "banded-toeplitz-numbers": {"privacy": {"mechanism": "banded-toeplitz", "coefficients": [1.0, 0.6, 0.25]}},
    "banded-toeplitz-bands": {"privacy": {"mechanism": "banded-toeplitz", "bands": 3}},
    "banded-inverse-numbers": {"privacy": {"mechanism": "banded-inverse", "coefficients": [1.0, -0.4, -0.1]}},
    "banded-inverse-bands": {"privacy": {"mechanism": "banded-inverse", "bands": 3, "objective": "rms"}},
    "square-root": {"privacy": {"mechanism": "banded-toeplitz", "coefficients": [1.0, 0.5, 0.375]}},
    "inverse-square-root": {"privacy": {"mechanism": "banded-inverse", "coefficients": [1.0, -0.5, -0.125]}},
    "lambda-cgd": {"privacy": {"mechanism": "banded-inverse", "coefficients": [1.0, -0.5]}},
    "banded": {"privacy": {"mechanism": "banded", "bands": 3}},
    "dense": {"privacy": {"mechanism": "dense"}, **ONCE},
}
# What else changes what is trained.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "zcdp": {"privacy": {"mechanism": "tree", "noise_multiplier": None, "zcdp": 4.0, "delta": 1e-6}},
    "stands-in": {"privacy": {"mechanism": "blt", "blt": "b1000", "stands_in_for": 650}},
    "clipping-none": {"privacy": {"mechanism": "none", "clip_norm": None}, **FOLLOW},
    "clipping-independent": {"privacy": {"mechanism": "independent", "clip_norm": None}, **FOLLOW},
    "clipping-tree": {"privacy": {"mechanism": "tree-variance-reduced", "restarts": [4], "clip_norm": None}, **FOLLOW},
    "population": {
        "privacy": {"mechanism": "tree", "noise_multiplier": 1.0},
        "rounds": {"report_goal": 3, "min_separation": 2},
        "population": {"timer_hours": 0.5, "over_selection": 1.5},
    },
    "client-server": {
        "privacy": {"mechanism": "independent"},
        "model": {"tied": True},
        "client": {"epochs": 2, "proximal": 0.1, "precision": "bfloat16"},
        "server": {"method": "adam", "learning_rate": 0.01, "cooldown": 0.5},
    },
    "server-sgd": {"privacy": {"mechanism": "none", "clip_norm": 0.5}, "server": {"method": "sgd"}},
    "server-nesterov": {"privacy": {"mechanism": "none", "clip_norm": 0.5}, "server": {"method": "nesterov"}},
    "server-adagrad": {"privacy": {"mechanism": "none", "clip_norm": 0.5}, "server": {"method": "adagrad"}},
    "server-yogi": {"privacy": {"mechanism": "none", "clip_norm": 0.5}, "server": {"method": "yogi"}},
}
# Long enough to be killed in the middle.
KILLED: dict[str, dict[str, dict[str, Any]]] = {
    "blt-numbers": MECHANISMS["blt-numbers"],
    "banded": MECHANISMS["banded"],
    "clipping-tree": VARIANTS["clipping-tree"],
}


def recipe_toml(name: str, changes: Mapping[str, Mapping[str, Any]]) -> str:
    """A recipe: SECTIONS with changes, None taking a key away. JSON's numbers, texts and lists are TOML's."""
    sections: dict[str, dict[str, Any]] = {}
    for key in dict.fromkeys((*SECTIONS, *changes)):
        usual = NOISE if key == "privacy" and changes[key].get("mechanism") != "none" else SECTIONS.get(key, {})
        merged = {**usual, **changes.get(key, {})}
        sections[key] = {name: value for name, value in merged.items() if value is not None}
    lines = [f"name = {json.dumps(name)}"]
    for key, values in sections.items():
        lines += [f"\n[{key}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


MECHANISM_KEYS = ("restarts", "theta", "omega", "buffers", "bands", "coefficients")


def in_new_words(text: str) -> str:
    """A recipe in the grammar of [privacy.mechanism]; what is no recipe as it is."""
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return text
    privacy = sections.get("privacy", {})
    if not isinstance(privacy.get("mechanism"), str):
        return text
    name, published = privacy.pop("mechanism"), privacy.pop("blt", None)
    mechanism = {"name": name if published is None else f"{name}-{published}"}
    mechanism |= {key: privacy.pop(key) for key in MECHANISM_KEYS if key in privacy}
    lines = [f"{key} = {json.dumps(value)}" for key, value in sections.items() if not isinstance(value, dict)]
    for key, values in sections.items():
        if isinstance(values, dict):
            lines += [f"\n[{key}]", *(f"{inner} = {json.dumps(value)}" for inner, value in values.items())]
    lines += ["\n[privacy.mechanism]", *(f"{key} = {json.dumps(value)}" for key, value in mechanism.items())]
    return "\n".join(lines) + "\n"


def training_cases() -> Iterator[Case]:
    """Every mechanism and variant, without interruption, and three killed and resumed."""
    for name, changes in {**MECHANISMS, **VARIANTS}.items():
        folder = f"train-{name}"
        command = f"train {folder}/{name}.toml --out {folder}/run --seed 3 --workers 1 --json"
        yield Case(name=folder, old=(command,), writes={f"{name}.toml": recipe_toml(name, changes)})
    for name, changes in KILLED.items():
        folder = f"resume-{name}"
        longer = {**changes, "rounds": {"rounds": 60, "max_participations": 10}, "evaluation": {"every": 30}}
        began = f"train {folder}/{name}.toml --out {folder}/run --seed 5 --workers 1 --json"
        resumed = f"resume {folder}/run --workers 1 --json"
        recipe = {f"{name}.toml": recipe_toml(name, longer)}
        yield Case(name=folder, old=(began, resumed), writes=recipe, kill_in="run")
        yield Case(name=f"whole-{name}", old=(began.replace(folder, f"whole-{name}"),), writes=recipe)


def told(name: str, *commands: str, **more: Any) -> Case:
    """A case whose commands name its folder by @."""
    return Case(name=name, old=tuple(command.replace("@", name) for command in commands), **more)


PAIR = "train-tree/run train-none/run"
MODEL = "train-tree/run"
TRAINED = "--data world/cache --split-name train --seed 4 --out @/run --workers 1"
FINE = "--batch-size 4 --learning-rate 0.1,1.0 --token-buckets 15,25 --workers 1 --seed 3"
FIND = (
    "--vocabulary world/few/vocabulary.json --local-epsilon 6 --depth 8 --prefixes 30 --users-per-layer 1500 "
    "--alphabet abcdefghijklmnopqrstuvwxyz --resample-users --seed 1"
)
TOWN = "--population 6000 --rounds 100 --report-goal-max 120"
BORNE = "--small-report-goal 20 --small-noise-multiplier 1"
JOBS = [
    told(
        "data",
        "data import folder:world/corpus --word-list world/words.txt --out @/listed --json",
        "data import folder:world/corpus --vocabulary-from-private --vocabulary-size 40 --lowercase --out @/own --json",
        "data import world/typed.parquet --vocabulary world/cache/vocabulary.json --out @/typed --json",
        "data import folder:world/corpus --vocabulary-from world/public.parquet --out @/public --json",
        "data show @/listed --verify --json",
        "data show @/own",
    ),
    told(
        "pretrain",
        "pretrain world/public --out @/model --embedding 8 --units 16 --sentences 400 --every 200 --batch-size 16 "
        "--words 8 --held-out 2 --seed 2 --json",
    ),
    told(
        "train-init",
        "train @/init.toml --init pretrain/model --out @/run --seed 3 --workers 2 --json",
        needs=("pretrain",),
        writes={"init.toml": recipe_toml("init", MECHANISMS["tree"])},
    ),
    told(
        "train-text",
        "train @/tree.toml --out @/run --seed 4",
        writes={"tree.toml": recipe_toml("text", MECHANISMS["tree"])},
    ),
    told(
        "report",
        "report @/run --json",
        "report @/run",
        "account run @/run --json",
        "account run @/run --delta 1e-6 --statement @/account.json",
        "verify @/run/report/statement.json --json",
        "verify @/account.json",
        needs=("train-tree-restarts",),
        copies={"train-tree-restarts/run": "run"},
    ),
    told("verify-matrix", "verify train-dense/run/report/statement.json --json", needs=("train-dense",)),
    told(
        "verify-clipping", "verify train-clipping-tree/run/report/statement.json --json", needs=("train-clipping-tree",)
    ),
    told(
        "verify-changed", "verify @/statement.json --json", needs=("train-tree",), copies={"train-tree/run/report": "."}
    ),
    told(
        "compare",
        f"compare {PAIR} --out @/figure --json",
        f"compare {PAIR} --out @/figure",
        "compare train-blt-numbers/run train-banded/run --out @/figure --json",
        needs=("train-tree", "train-none", "train-blt-numbers", "train-banded"),
    ),
    told(
        "evaluate",
        f"evaluate {PAIR} --data world/cache --workers 1 --json",
        f"evaluate {PAIR} --data world/cache --workers 1 --split-name train --clients 20 --words 6",
        needs=("train-tree", "train-none"),
    ),
    told(
        "evaluate-epsilon",
        f"evaluate {PAIR} {TRAINED} --epsilon 9 --delta 1e-5 --json",
        "account run @/run --json",
        needs=("train-tree", "train-none"),
    ),
    told(
        "evaluate-local",
        f"evaluate {PAIR} {TRAINED} --local-epsilon 5 --json",
        needs=("train-tree", "train-none"),
    ),
    told(
        "personalize",
        f"personalize {MODEL} --data world/typed --split-name train {FINE} --slices tokens,joint --metrics "
        "top1,cross_entropy --out @/run --json",
        needs=("train-tree",),
    ),
    told(
        "personalize-gate",
        f"personalize {MODEL} --data world/cache --undated order --split last:3 --split-name train {FINE} --gate auto "
        "--epsilon 20 --out @/run --json",
        f"personalize {MODEL} --data world/cache --undated order --split last:3 --split-name train {FINE} --gate auto "
        "--epsilon 20 --out @/run",
        needs=("train-tree",),
    ),
    told(
        "personalize-local",
        f"personalize {MODEL} --data world/typed --split-name train {FINE} --layers output --gate 0.5 --proximal 0.1 "
        "--local-epsilon 8 --out @/run --json",
        needs=("train-tree",),
    ),
    told(
        "discover",
        f"discover --data folder:world/corpus {FIND} --k-anonymity 5,1e-3 --out @/run --json",
        "verify @/run/report/statement.json --json",
        "vocab extend --vocabulary world/few/vocabulary.json --words @/run --out @/extended.json "
        "--data folder:world/corpus --most 20 --json",
    ),
    told(
        "discover-projective",
        f"discover --data world/cache {FIND} --randomizer projective-geometry --contributions 2 --sampler greedy "
        "--passes 2 --allocation middle --out @/run --json",
    ),
    told("discover-k-ary", f"discover --data folder:world/corpus {FIND} --randomizer k-ary --out @/run"),
    told(
        "tune",
        "tune @/tune.toml --out @/tuned --server-learning-rates 0.5,1 --quantiles 0.5 --rounds 6 --report-goal 5 "
        "--large-report-goal 60 --workers 1 --public 'made-up text' --json",
        writes={"tune.toml": recipe_toml("tune", VARIANTS["stands-in"] | {"run": {"seed": 11}})},
    ),
    told(
        "strategy",
        f"strategy {TOWN} --cache world/cache --tuning tune/tuned --target-epsilon 20 --timer-hours 24 "
        "--recipe @/base.toml --out @/tuned --json",
        f"strategy {TOWN} --cache world/cache {BORNE} --target-epsilon 12 --timer-hours auto --acceptable-days 3 "
        "--out @/production --json",
        needs=("tune",),
        writes={"base.toml": recipe_toml("base", MECHANISMS["tree"])},
    ),
    told(
        "strategy-text",
        f"strategy {TOWN} {BORNE} --cache nowhere --target-zcdp 2 --timer-hours 24 --mechanism tree-reduced --secagg "
        "--out @/production",
    ),
    told(
        "simulate",
        "simulate --population 4k --report-goal 10 --rounds 60 --timer-hours 12 --out @/folder --json",
        "simulate --settings @/mine.toml --population 2k --report-goal 20 --rounds 40 --timer-hours 6 --clock upload "
        "--dropout 0.2 --seed 7 --json",
        "simulate --population 2k --report-goal 20 --rounds 30 --timer-hours 72",
        "account log @/folder/rounds.csv --timer 12h --mechanism tree --noise-multiplier 7 --json",
        writes={"mine.toml": "[population.availability]\nzones = [[-8, 0.25], [-5, 0.75]]\nnight.idle = 0.9\n"},
    ),
]

ES = "--population 4.21M --rounds 2000"
PLANS = {
    "steps": f"{ES} --zcdp 0.35 --rounds-per-day 300 --most-reports 6500 --mechanism tree-reduced",
    "steps-timer": f"{ES} --timer 48h --epsilon 6 --rounds-per-day 250 --availability 0.8 --mechanism blt-b400",
    "run": f"{ES} --report-goal 6500 --rounds-per-day 250 --seconds-per-visit 36 --joules-per-visit 2 "
    "--mechanism tree-reduced --mechanism blt-b400 --mechanism banded-square-root --mechanism independent",
    "run-all": "--population 50k --rounds 128 --report-goal 500 --min-separation 32 --megabytes-per-visit 3",
    "target": f"{ES} --epsilon 4 --mechanism tree-reduced --mechanism blt-b400 --mechanism tree",
    "target-out-of-reach": f"{ES} --epsilon 1 --most-reports 20000 --mechanism blt-b400",
    "timer": f"{ES} --rounds-per-day 150 --report-goal 6500 --mechanism blt-b400 --epsilon 4",
    "rounds": f"{ES} --report-goal 6500 --zcdp 0.5 --rounds-per-day 150 --mechanism tree-reduced --mechanism blt-b400",
}
SMALL = "--rounds 64 --min-separation 16"
DESIGNS = {
    "blt": f"{SMALL} --buffers 3",
    "blt-rms": "--rounds 64 --rounds-between 15 --max-participations 2 --buffers 2 --objective rms",
    "blt-range": "--rounds 64:256 --min-separation 16,32 --buffers 2",
    "banded-toeplitz": f"{SMALL} --bands 8",
    "banded-inverse": f"{SMALL} --bands 4",
    "banded-inverse-falling": f"{SMALL} --bands 4 --falling --objective rms",
    "lambda-cgd": SMALL,
    "square-root": f"{SMALL} --bands 8",
    "inverse-square-root": f"{SMALL} --bands 8",
    "banded": f"{SMALL} --bands 8",
    "dense": "--rounds 48 --min-separation 48 --max-participations 1",
    "full-tree": SMALL,
    "tree": SMALL,
    "tree-reduced": f"{SMALL} --variance-reduced --objective rms",
    "independent": SMALL,
}
LIMITS = "--rounds 2000 --rounds-between 313 --max-participations 6"
FEW = "--rounds 40 --min-separation 8 --noise-multiplier 2"
ACCOUNTS = {
    "tree": f"{LIMITS} --noise-multiplier 7",
    "tree-restarts": f"{LIMITS} --restarts 128,1152 --epsilon 6",
    "tree-secagg": f"{LIMITS} --zcdp 0.5 --secagg-dimension 4194304 --secagg-scale 1448 --secagg-clip-norm 5",
    "blt": "--strategy b400 --rounds 2000 --min-separation 401 --noise-multiplier 5",
    "blt-numbers": f"--theta 0.9,0.5 --omega 0.2,0.1 {FEW} --clip-inflation 1.01",
    "gaussian": "--noise-multiplier 1 --delta 1e-6",
    "gaussian-rounds": FEW,
    "banded-toeplitz": f"--coefficients 1,0.5,0.25 {FEW}",
    "banded-inverse": f"--coefficients 1,-0.5 {FEW}",
    "amplified": "--rounds 40 --population 30000 --batch 100 --noise-multiplier 1 --mechanism banded-toeplitz "
    "--coefficients 1,0.5,0.25",
    "shuffle": "--local-epsilon 4 --reports 100000 --domain 1000",
    "shuffle-any": "--local-epsilon 2 --reports 100000 --randomizer any",
    "populations": "--populations 1e5,1e6 --local-epsilons 4,8",
    "person": "--user-epsilon 8 --contributions 4 --users 10000 --domain 1000 --count 50",
    "log": "world/rounds.csv --timer 20h --mechanism blt --strategy b100 --noise-multiplier 3 --clock upload",
}


def figure_cases() -> Iterator[Case]:
    """Commands that compute without text: plans, designs and accounts, for programs and (some) for people."""
    for name, options in PLANS.items():
        command = name.split("-")[0]
        yield told(f"plan-{name}", f"plan {command} {options} --json", f"plan {command} {options}")
    simulated = "plan timer --population 6000 --rounds 60 --report-goal 60 --noise-multiplier 1 --noise-at 20 "
    yield told(
        "plan-timer-simulated", f"{simulated} --simulate --acceptable-days 3 --zcdp 9 --mechanism tree-reduced --json"
    )
    known = ("blt", "banded-toeplitz", "banded-inverse", "full-tree", "tree")
    for name, options in DESIGNS.items():
        stem = name if name == "lambda-cgd" else re.sub("-(rms|range|falling|reduced)$", "", name)
        command = f"design {stem} {options}"
        account = f"account strategy @/strategy.json --rounds 64 {FEW.removeprefix('--rounds 40')} --json"
        more = (account, command) if name in known else ()
        yield told(f"design-{name}", f"{command} --out @/strategy.json --json", *more)
    yield told(
        "design-compare", f"design compare {SMALL} --slow --json", f"design compare {SMALL} --objective rms --json"
    )
    people = ("tree", "shuffle", "populations", "person", "amplified")
    for name, options in ACCOUNTS.items():
        stem = re.sub("-(restarts|secagg|numbers|rounds|any)$", "", name)
        command = f"account {stem} {options}"
        yield told(f"account-{name}", f"{command} --json", *((command,) if name in people else ()))


def bad_recipe(**privacy: Any) -> str:
    return recipe_toml("bad", {"privacy": privacy})


def bad_cases() -> Iterator[Case]:
    """What is refused: exit status and the sentence."""
    for name, text in {
        "unknown-key": bad_recipe(mechanism="tree", noise=3),
        "two-noises": bad_recipe(mechanism="tree", zcdp=1.0),
        "two-ways": bad_recipe(mechanism="blt", blt="b400", buffers=2),
        "restarts": bad_recipe(mechanism="independent", restarts=[3]),
        "dense-twice": bad_recipe(mechanism="dense"),
        "rising": bad_recipe(mechanism="banded-toeplitz", coefficients=[1.0, 2.0]),
        "population": recipe_toml("bad", {**MECHANISMS["tree"], "rounds": {"report_goal": 60}}),
        "clipping-blt": recipe_toml(
            "bad", {"privacy": {"mechanism": "blt", "blt": "b400", "clip_norm": None}, **FOLLOW}
        ),
        "no-toml": "name = \n",
    }.items():
        yield told(
            f"bad-recipe-{name}", "train @/bad.toml --out @/run --seed 1", writes={"bad.toml": text}, files=False
        )
    other = {"bad.toml": recipe_toml("other", MECHANISMS["none"])}
    yield told(
        "bad-runs",
        "train nowhere.toml --out @/run",
        f"train @/bad.toml --out {MODEL}",
        "resume world",
        "report nowhere",
        "report evaluate-epsilon/run",
        "compare train-tree/run evaluate-epsilon/run",
        "verify world/cache/vocabulary.json",
        f"evaluate {MODEL} --data world/cache --zcdp 1 --epsilon 1",
        f"evaluate {MODEL} --data world/few --seed 1",
        f"personalize {MODEL} --data world/cache --split never --out @/p",
        f"personalize {MODEL} --data world/cache --out @/p --seed 1",
        f"discover --data folder:world/corpus {FIND} --delta 2 --out @/d",
        f"discover --data folder:world/corpus {FIND.replace('--resample-users', '')} --out @/d",
        f"discover --data folder:world/corpus {FIND} --contributions 3 --out discover/run",
        "vocab extend --vocabulary world/cache/vocabulary.json --words discover/run --out @/v.json",
        "tune @/bad.toml --out @/t --large-report-goal 2",
        needs=("train-tree", "evaluate-epsilon", "discover"),
        writes=other,
        files=False,
    )
    yield told(
        "bad-figures",
        "account tree --rounds 10 --noise-multiplier 1",
        "account tree --rounds 10 --min-separation 2",
        "account blt --theta 0.9 --omega 1.2 --rounds 10 --min-separation 2 --noise-multiplier 1",
        "account strategy nowhere.json --rounds 10 --min-separation 2 --noise-multiplier 1",
        "account log world/rounds.csv --timer 48 --mechanism tree --noise-multiplier 7",
        "account shuffle --local-epsilon 4 --reports 1000",
        "design blt --rounds 64 --min-separation 16 --buffers 0",
        "design banded-toeplitz --rounds 64 --min-separation 16 --bands 65",
        "design dense --rounds 64 --min-separation 16",
        "plan run --population 100 --rounds 10 --report-goal 1000",
        "plan target --population 1M --rounds 10",
        "plan steps --population many --rounds 10",
        "simulate --population 4k --report-goal 10 --rounds 20",
        "strategy --population 6000 --report-goal-max 120 --out @/s",
        "data import folder:world/corpus --out @/c",
        "data import folder:nowhere --word-list world/words.txt --out @/c",
        "data show world/corpus",
        files=False,
    )


def all_cases() -> dict[str, Case]:
    """By name, in an order in which each comes after what it needs."""
    cases = [*training_cases(), *JOBS, *figure_cases(), *bad_cases()]
    return {case.name: case for case in cases}


def with_needs(names: Iterable[str], cases: Mapping[str, Case]) -> set[str]:
    """The names and, of each, what it needs."""
    found: set[str] = set()
    for name in names:
        if name not in cases:
            raise SystemExit(f"there is no case {name!r}; see `list`")
        found |= {name} | with_needs(cases[name].needs, cases)
    return found


# -- the made-up world -------------------------------------------------------------------------------------------------

SYLLABLES = ("ba", "ke", "lo", "mi", "su", "ta", "ne", "ro")
WORDS = tuple(a + b for a in SYLLABLES for b in SYLLABLES)[:56]
UNKNOWN = ("kebala", "romisu", "tanelo", "sutami", "loneke")
CLIENTS = 80
HOUR = 3600


def sentence(draw: random.Random) -> str:
    """Words of which each mostly follows from the one before; one in ten is not in the word list."""
    at, words = draw.randrange(len(WORDS)), []
    for _ in range(draw.randint(2, 9)):
        words.append(draw.choice(UNKNOWN) if draw.random() < 0.1 else WORDS[at])
        at = (3 * at + 1) % len(WORDS) if draw.random() < 0.85 else draw.randrange(len(WORDS))
    return " ".join(words) + "."


def make_world(folder: Path) -> None:
    """Clients as text files and, with times, as Parquet; public text; word lists; the times of rounds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = random.Random(7)
    clients = {f"client-{n:03d}": [sentence(draw) for _ in range(draw.randint(3, 14))] for n in range(CLIENTS)}
    (folder / "corpus").mkdir(parents=True)
    for name, texts in clients.items():
        (folder / "corpus" / f"{name}.txt").write_text("\n\n".join(texts) + "\n")
    rows = [(name, text, 10**9 + at * HOUR) for name, texts in clients.items() for at, text in enumerate(texts)]
    names, typed, times = (list(column) for column in zip(*rows, strict=True))
    stamps = pa.array(times, pa.timestamp("s", tz="UTC"))
    pq.write_table(pa.table({"client_id": names, "text": typed, "timestamp": stamps}), folder / "typed.parquet")
    pq.write_table(pa.table({"text": [sentence(draw) for _ in range(4000)]}), folder / "public.parquet")
    (folder / "words.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "few.txt").write_text("\n".join(WORDS[:50]) + "\n")
    logged = "".join(f"{n},{10**9 + n * HOUR + n % 7}\n" for n in range(100))
    (folder / "rounds.csv").write_text("round,finished\n" + logged)


IMPORTS = (
    "data import folder:world/corpus --word-list world/words.txt --out world/cache --json",
    "data import folder:world/corpus --word-list world/few.txt --out world/few --json",
    "data import world/typed.parquet --vocabulary world/cache/vocabulary.json --out world/typed --json",
    "data import public:world/public.parquet --vocabulary world/cache/vocabulary.json --out world/public --json",
)


# -- running -----------------------------------------------------------------------------------------------------------


def serve(entry: str, source: str) -> None:
    """Import the command once, then fork a process for each line of JSON on standard input (see Checkout)."""
    lines, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    module, name = entry.split(":")
    main = getattr(importlib.import_module(module), name)
    for each in WARM:
        importlib.import_module(each)
    found = Path(str(sys.modules["tacit"].__file__)).resolve()
    if not found.is_relative_to(Path(source).resolve()):
        raise SystemExit(f"tacit was imported from {found}, not from {source}")
    for line in lines:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            _be_the_command(main, asked)
        print(json.dumps(child), file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), file=answers, flush=True)


def _be_the_command(main: Callable[[], None], asked: Mapping[str, Any]) -> None:
    """What the script `tacit` does, in a forked process; never returns."""
    for descriptor, path in ((0, os.devnull), (1, asked["stdout"]), (2, asked["stderr"])):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), descriptor)
    sys.argv = ["tacit", *asked["argv"]]
    code: Any = 1
    try:
        main()
        code = 0
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


@dataclass
class Checkout:
    """The command of a checkout, as a server that forks (see `serve`)."""

    server: subprocess.Popen[str]
    work: Path

    def call(self, command: str, kill_in: Path | None = None) -> dict[str, Any]:
        """What a command said and its exit status. kill_in: the run folder after some rounds of which it is killed."""
        texts = {name: self.work.parent / name for name in ("stdout", "stderr")}
        asked = {"argv": shlex.split(command), **{name: str(path) for name, path in texts.items()}}
        print(json.dumps(asked), file=self.server.stdin, flush=True)
        child = self._answer()
        if kill_in is not None:
            _kill_after_rounds(child, kill_in)
        status = self._answer()
        out, err = (texts[name].read_text() for name in texts)
        if kill_in is not None:
            return {"command": command, "killed": status == -signal.SIGKILL}
        # Progress, which has its own time, is on standard error too: only why a command failed is kept from there.
        why = {"stderr": _lines(err[max(err.find("error: "), 0) :])} if status else {}
        return {"command": command, "exit": status, "stdout": _said(out), **why}

    def _answer(self) -> int:
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        if not line:
            raise SystemExit("the process that imported the checkout has died")
        return int(json.loads(line))


def _kill_after_rounds(child: int, run: Path, rounds: int = 3) -> None:
    """SIGKILL as soon as so many rounds are committed; a run that ends before is left alone."""
    while not (run / "run.db").exists() or _count(run / "run.db") < rounds:
        if not Path(f"/proc/{child}").exists():
            return
        time.sleep(0.002)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _count(database: Path) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as opened:
        tables = {name for (name,) in opened.execute("SELECT name FROM sqlite_master")}
        if "journal" in tables:
            return int(opened.execute("SELECT COUNT(*) FROM journal WHERE kind = 'step'").fetchone()[0])
        return int(opened.execute(f"SELECT COUNT(*) FROM {'steps' if 'steps' in tables else 'rounds'}").fetchone()[0])


@contextmanager
def running(checkout: Path, which: str, work: Path) -> Iterator[Checkout]:
    """The command of `checkout`, called in the folder `work`."""
    source = checkout.resolve() / "src"
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(source)}
    environment.setdefault("JAX_COMPILATION_CACHE_DIR", "/tmp/jaxcache")
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, "serve", ENTRY[which], str(source)],
        cwd=work,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Checkout(server, work)
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()


def record(checkout: Path, out: Path, which: str, only: Sequence[str]) -> None:
    """Run the cases in OUT/work and write OUT/records/CASE.json."""
    cases = all_cases()
    wanted = with_needs(only or cases, cases)
    out = out.resolve()
    if out.exists() and any(out.iterdir()) and not (out / "records").is_dir():
        raise SystemExit(f"{out} is no earlier recording, and would be emptied; choose another --out")
    work, records = out / "work", out / "records"
    shutil.rmtree(out, ignore_errors=True)
    records.mkdir(parents=True)
    work.mkdir()
    make_world(work / "world")
    with running(checkout, which, work) as tacit:
        for command in IMPORTS:
            if (made := tacit.call(command))["exit"]:
                raise SystemExit(f"{command}: {made['stderr']}")
        for case in cases.values():
            if case.name in wanted:
                begun = time.perf_counter()
                found = normalised(_carried_out(case, tacit, which), work)
                text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False)
                (records / f"{case.name}.json").write_text(text + "\n", encoding="utf-8")
                codes = [each.get("exit", "killed") for each in found["commands"].values()]
                print(f"{case.name}: exit {codes}, {time.perf_counter() - begun:.1f} s", flush=True)


def _carried_out(case: Case, tacit: Checkout, which: str) -> dict[str, Any]:
    folder = tacit.work / case.name
    folder.mkdir()
    if not case.commands(which):
        return {"commands": {}, GONE: True}
    for name, text in case.writes.items():
        (folder / name).write_text(text if which == "old" else in_words_of(which, in_new_words(text)))
    for begin, end in case.copies.items():
        shutil.copytree(tacit.work / begin, folder / end, dirs_exist_ok=True)
    if case.name == "verify-changed":
        _tamper(folder / "statement.json")
    commands = {}
    for number, command in enumerate(case.commands(which)):
        kill_in = folder / case.kill_in if case.kill_in and not number else None
        commands[str(number)] = tacit.call(command, kill_in)
    return {"commands": commands, "files": folder_record(folder) if case.files else "not compared"}


def _tamper(statement: Path) -> None:
    """Halve what a statement claims of its zCDP."""
    text = statement.read_text()
    statement.write_text(re.sub(r'("zcdp": )([0-9.]+)', lambda m: f"{m[1]}{float(m[2]) / 2}", text))


# -- what a folder holds -----------------------------------------------------------------------------------------------

FIGURES = {".png", ".svg", ".pdf"}
NOTHING = {"lock", "noise.key"}


def folder_record(folder: Path) -> dict[str, Any]:
    """Every file by its name, in the folders' structure."""
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            found[path.name] = folder_record(path) or "empty folder"
        elif path.name not in NOTHING and not path.name.endswith(("-wal", "-shm")):
            found[path.name] = file_record(path)
    return found


def file_record(path: Path) -> Any:
    """A file as far as it can be read: JSON, TOML and databases as values, text as lines, all else by its SHA-256."""
    if path.suffix in FIGURES:
        return "a figure"
    if path.suffix == ".db":
        return database_record(path)
    if path.suffix == ".safetensors":
        return tensors_record(path.read_bytes())
    content = path.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    match path.suffix:
        case ".json":
            return json.loads(text)
        case ".jsonl":
            return [json.loads(line) for line in text.splitlines()]
        case ".toml":
            return {"text": _lines(text), "values": _toml(text)}
        case ".html":
            return _lines(re.sub(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+", "a figure", text))
        case ".md" | ".csv" | ".txt":
            return _lines(text)
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def database_record(path: Path) -> dict[str, Any]:
    """Every table: one of two columns with a primary key as an object, others as rows; JSON in cells as values."""
    found: dict[str, Any] = {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(tables):
            cursor = database.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            rows = sorted(([_cell(cell) for cell in row] for row in cursor), key=lambda row: json.dumps(row))
            if names[1:] == ["value"]:
                found[table] = {row[0]: row[1] for row in rows}
            elif table in ("rounds", "steps"):
                found[table] = {str(row[0]): dict(zip(names, row, strict=True)) for row in rows}
            else:
                found[table] = {"columns": names, "rows": rows}
    return found


def _cell(cell: Any) -> Any:
    """A cell; JSON (an object, a list, a text in quotes) as what it says."""
    if isinstance(cell, bytes):
        return base64.b64encode(cell).decode()
    try:
        return json.loads(cell) if isinstance(cell, str) else cell
    except ValueError:
        return cell


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return "no TOML"


def tensors_record(content: bytes) -> dict[str, Any]:
    """A safetensors file: its SHA-256, and that of each array."""
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    header.pop("__metadata__", None)
    arrays = {}
    for name, array in header.items():
        begin, end = array["data_offsets"]
        digest = hashlib.sha256(body[begin:end]).hexdigest()
        arrays[name] = {"dtype": array["dtype"], "shape": str(array["shape"]), "sha256": digest}
    return {"sha256": hashlib.sha256(content).hexdigest(), "arrays": arrays}


def _said(text: str) -> Any:
    """Standard output: one JSON object, or lines."""
    try:
        return json.loads(text)
    except ValueError:
        return _lines(text)


def _lines(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


# -- what differs between two recordings of one checkout ---------------------------------------------------------------

MASKED = (  # paths of values that tell the time or the versions, or hang on the salt that each run draws
    "*head/sha256",
    "*/seal",
    "*/budget.seal",
    "*/checksums/releases.*.decryptors",
    "*/checksums/releases.*.keepers",
    "*/journal/rows/*/2/salt",
    "*/journal/rows/*/2/finished",
    "*/journal/rows/*/2/seconds",
    "*/journal/rows/*/2/files/*",
    "*/journal/rows/*/3",
    "commands/*/stdout/profile/*",
    "*/created",
    "*/versions/*",
    "*/clients_per_second",
    "*/training_seconds",
    "*/per_round/seconds/*",
    "*/*.db/times/*",
    "commands/*/stdout/seconds",
    "commands/*/stdout/mechanisms/*/seconds",
    "commands/*/stdout/speed/*",
)
CLOCKS = (  # in lines for people
    (r"\bthe seal [0-9a-f]{64}", "the seal <seal>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<when>"),
    (r"\btacit \d[\w.]*, jax [\w.]+, numpy [\w.]+, python [\w.]+", "<versions>"),
    (r"(?m)^seconds +\S+$", "<seconds>"),
    (r"(?m)^([A-F]  .*\S) +[\d.]+$", r"\1 <clients per second>"),
    (r".*(clients per second|time in rounds).*", r"<\1>"),
)


def normalised(found: Mapping[str, Any], work: Path) -> dict[str, Any]:
    """A record without times, versions and this machine's folders."""
    return dict(_normalised(found, "", str(work)))


def _normalised(value: Any, path: str, work: str) -> Any:
    if isinstance(value, dict):
        return {key: _normalised(each, f"{path}/{key}".lstrip("/"), work) for key, each in value.items()}
    if isinstance(value, list):
        return [_normalised(each, f"{path}/{at}", work) for at, each in enumerate(value)]
    if value is not None and any(fnmatchcase(path, pattern) for pattern in MASKED):
        return "<masked>"
    if isinstance(value, str):
        value = value.replace(work, "<work>")
        for pattern, shown in CLOCKS:
            value = re.sub(pattern, shown, value)
    return value


# -- comparing ---------------------------------------------------------------------------------------------------------


def flat(value: Any, path: str = "") -> Flat:
    """Every value by its path; an empty object or list counts as a value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: Flat = {}
    for key, each in children:
        found |= flat(each, f"{path}/{str(key).replace('/', '|')}".lstrip("/"))
    return found or {path: value}


class Renames:
    """What was renamed on purpose (see the top of this file), and which of it was met."""

    def __init__(self, rules: Mapping[str, Mapping[str, str | None]]) -> None:
        unknown = rules.keys() - {"keys", "values", "text"}
        if unknown:
            raise SystemExit(f"renames have keys, values and text, not {sorted(unknown)}")
        self._keys, self._values, self._text = (rules.get(kind, {}) for kind in ("keys", "values", "text"))
        self.used: set[str] = set()
        self.dropped = 0

    def unused(self) -> list[str]:
        return sorted({*self._keys, *self._values, *self._text} - self.used)

    def apply(self, old: Flat) -> Flat:
        """The old record in the new words."""
        found: Flat = {}
        for path, value in old.items():
            new = self._path(path)
            if new is None:
                self.dropped += 1
            else:
                found[new] = self._value(value)
        return found

    def _path(self, path: str) -> str | None:
        parts = path.split("/")
        for rule, wanted in self._keys.items():
            begin = rule.split("/")
            if len(begin) == 1 and rule in parts:
                self.used.add(rule)
                if wanted is None:
                    return None
                parts = [wanted if part == rule else part for part in parts]
            elif len(begin) > 1 and len(parts) >= len(begin) and all(map(fnmatchcase, parts, begin)):
                self.used.add(rule)
                if wanted is None:
                    return None
                stars = (part for part, pattern in zip(parts, begin, strict=False) if pattern == "*")
                parts = [next(stars) if part == "*" else part for part in wanted.split("/")] + parts[len(begin) :]
        return "/".join(parts)

    def _value(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value in self._values:
            self.used.add(value)
            return self._values[value]
        for old, new in self._text.items():
            if old in value:
                self.used.add(old)
                value = value.replace(old, str(new))
        return value


# What a run folder is called before and after; the same things on both sides of a comparison.
GRAMMAR = {
    "asked",
    "recipe",
    "format",
    "kind",
    "finished",
    "precision",
    "profile",
    "hooks",
}  # said elsewhere, or in new words


NEW_FILES = {"record.json"}  # that runs leave besides since
NEW_IN_JSON = {"schema", "version", "profile", "rounds", "kind"}  # said besides since


def canonical(value: Any) -> Any:
    """A record in one shape, whichever layout of run folders it was made with; recipes' own text is left out."""
    if isinstance(value, list):
        named = [each.get("mechanism", each.get("name")) for each in value if isinstance(each, dict)]
        if value and len(named) == len(value) == len(set(map(str, named))) and all(isinstance(n, str) for n in named):
            return canonical(dict(zip(named, value, strict=True)))  # by name: the catalogue has an order of its own
        return [canonical(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value and value.keys() <= NEW_FILES:
        return "empty folder"
    left_out = {key for key in value if key.endswith((".html", ".toml"))} | NEW_FILES
    found = {key: canonical(each) for key, each in value.items() if key not in left_out}
    if isinstance(found.get("stdout"), dict):
        found["stdout"] = {key: each for key, each in found["stdout"].items() if key not in NEW_IN_JSON}
    if isinstance(found.get("report.md"), str):  # the settings' names are in the new grammar
        lines = found["report.md"].splitlines()
        found["report.md"] = "\n".join(line for line in lines if not line.startswith(("| model.kind", "| privacy.")))
    if "run.db" in found:
        found.pop("checkpoints", found.pop("steps", None))
        found["run.db"] = _canonical_database(found["run.db"])
    if isinstance(found.get("report.json"), dict):
        found["report.json"] = _canonical_report(found["report.json"])
    if isinstance(found.get("model"), dict) and isinstance(found["model"].get("settings.json"), dict):
        found["model"]["settings.json"].pop("kind", None)
    return found


def _canonical_database(database: dict[str, Any]) -> dict[str, Any]:
    facts = {**database.get("facts", {}), **database.get("metadata", {}), **database.get("notes", {})}
    steps = {}
    for number, row in database.get("rounds", database.get("steps", {})).items():
        released = row.get("releases", row.get("release"))
        steps[number] = {
            "file": row.get("file", row.get("checkpoint")),
            "digest": row["digest"],
            "measures": row["measures"],
            "releases": [
                {key: each for key, each in release.items() if key != "kind"}
                for release in (released if isinstance(released, list) else [released])
            ],
        }
    tables: dict[str, Any] = {
        name: {**database[name], "columns": ["step" if each == "round" else each for each in database[name]["columns"]]}
        for name in ("metrics", "participations", "times")
        if name in database
    }
    return {"facts": {key: each for key, each in facts.items() if key not in GRAMMAR}, "steps": steps, **tables}


def _canonical_report(report: dict[str, Any]) -> dict[str, Any]:
    report = {key: each for key, each in report.items() if key not in ("schema", "version")}
    facts = report.pop("facts", None) or report.pop("metadata", None)
    if isinstance(facts, dict):
        report["facts"] = {key: each for key, each in facts.items() if key not in GRAMMAR}
    if isinstance(report.get("settings"), dict):
        spoken = ("privacy.", "model.kind", "kind")
        report["settings"] = {key: each for key, each in report["settings"].items() if not key.startswith(spoken)}
    return report


def differences(old: Flat, new: Flat) -> list[str]:
    """One line for each value that is not the same; numbers to the last bit, and 1 is not 1.0."""
    found = []
    for path in sorted(old.keys() | new.keys()):
        if path not in new:
            found.append(f"- {path}: {old[path]!r}")
        elif path not in old:
            found.append(f"+ {path}: {new[path]!r}")
        elif "\n" in str(old[path]) + str(new[path]) and old[path] != new[path]:
            lines = difflib.unified_diff(str(old[path]).split("\n"), str(new[path]).split("\n"), lineterm="", n=0)
            found += [f"~ {path}: {line}" for line in lines if not line.startswith(("---", "+++", "@@"))]
        elif repr(old[path]) != repr(new[path]):
            found.append(f"~ {path}: {old[path]!r} is now {new[path]!r}")
    return found


def compare(old: Path, new: Path, renames: Renames, only: Sequence[str], shown: int) -> bool:
    """Print what is equal and the first differences of each case; whether all is equal."""
    names = sorted({path.stem for folder in (old, new) for path in (folder / "records").glob("*.json")})
    wanted = [name for name in names if not only or any(fnmatchcase(name, each) for each in only)]
    equal = gone = 0
    for name in wanted:
        files = [folder / "records" / f"{name}.json" for folder in (old, new)]
        missing = [str(path) for path in files if not path.exists()]
        if missing:
            print(f"{name}: NOT RECORDED: {', '.join(missing)}")
            continue
        before, after = (flat(canonical(recorded(path))) for path in files)
        if GONE in after:
            print(f"{name}: {GONE}")
            gone += 1
            continue
        before, after = without_commands(renames.apply(before)), without_commands(after)
        found = differences(before, after)
        equal += not found
        print(f"{name}: {len(before):,} values equal" if not found else f"{name}: {len(found):,} DIFFERENCES")
        for line in found[:shown]:
            print(f"    {line[:400]}")
    for rule in [] if only else renames.unused():
        print(f"never needed: {rule!r}")
    print(f"{equal} of {len(wanted)} cases equal, {gone} {GONE}; {renames.dropped:,} values dropped on purpose")
    return bool(equal) and equal + gone == len(wanted)


def recorded(path: Path) -> dict[str, Any]:
    """A record, masked by today's masks whatever was masked when it was made."""
    return normalised(json.loads(path.read_text(encoding="utf-8")), Path("<work>"))


def without_commands(record: Flat) -> Flat:
    """Without the words of the command line, which are not what is computed."""
    return {path: value for path, value in record.items() if not fnmatchcase(path, "commands/*/command")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    recording = parts.add_parser("record", help="what the command of a checkout computes")
    recording.add_argument("checkout", type=Path)
    recording.add_argument("--out", type=Path, required=True, help="a folder, emptied first")
    recording.add_argument("--which", choices=sorted(ENTRY), default="old", help="the words of the command line")
    recording.add_argument("--only", nargs="+", default=[], help="these cases, and what they need")
    comparing = parts.add_parser("compare", help="two recordings; exit status 1 on differences")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--renames", type=Path, help="JSON of what was renamed on purpose")
    comparing.add_argument("--only", nargs="+", default=[], help="these cases, by name or pattern")
    comparing.add_argument("--shown", type=int, default=SHOWN, help="differences to print of a case")
    parts.add_parser("list", help="the cases")
    serving = parts.add_parser("serve")
    serving.add_argument("entry")
    serving.add_argument("source")
    given = parser.parse_args()
    if given.part == "record":
        record(given.checkout, given.out, given.which, given.only)
    elif given.part == "compare":
        rules = json.loads(given.renames.read_text(encoding="utf-8")) if given.renames else {}
        sys.exit(not compare(given.old, given.new, Renames(rules), given.only, given.shown))
    elif given.part == "serve":
        serve(given.entry, given.source)
    else:
        for case in all_cases().values():
            print(case.name, *case.old, sep="\n    tacit ")


if __name__ == "__main__":
    main()
