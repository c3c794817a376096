"""What people give a command that it cannot take: of every command, every option and argument with whatever is wrong.

`world` makes a folder of things that are right, next to things that are not; `bad_calls` are the calls in it, each with
the exit codes that it may have. Nothing of it may begin any work.
"""

import copy
import hashlib
import json
import os
import shutil
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import jax
import tomli_w
import typer
from tests.support.made_runs import write_run
from tests.support.training.tiny import SETTINGS, tiny_cache, tiny_toml

import tacit
from tacit.cli.commands import COMMANDS, app
from tacit.design.catalogue import MECHANISMS
from tacit.keyboard.model_folder import write_model
from tacit.privacy import Tree
from tacit.statements.page_bundle import BUNDLE, digest_of

HOSTILE = "m[/red]\x1b[31m\u202e\udcff"  # markup, a colour, writing backwards, half a character
LONG = "x" * 5_000
HUGE = "1" + "0" * 23
REFUSED, FAILS = (2,), (1, 2)  # 1: a statement of which a line fails


class Call(NamedTuple):
    """A command line, and the exit codes that are right for it."""

    words: tuple[str, ...]
    codes: tuple[int, ...] = REFUSED


# What an option of each type cannot be.
WHOLE = ("x", "", "1.5", "nan", "-1", HUGE, f"-{HUGE}", HOSTILE, "0x10")
REAL = ("x", "", "nan", "inf", "-inf", "1e400", "1e300", "1e-320", "-1", HOSTILE)
TEXT = (HOSTILE, LONG, "nan", "inf", "1e400", HUGE, "1:2:nan", "0:1:1e-999999999", "1:1000000000")
FOUND = (  # files and folders that are none of those that commands read
    *("missing", "empty", "binary", "deep.json", "deeper.json", "list.json", "null.json", "nan.json", "latin.toml"),
    *("folder", HOSTILE, LONG, "empty/below", "hostile/m[/red]\x1b[31m\n"),
)
FILE_OUT = ("folder", "pipe", "empty/below", LONG)
FOLDER_OUT = ("empty", "pipe", "empty/below", LONG, "foreign")

LIMITS = ("--rounds", "24", "--min-separation", "6", "--max-participations", "4")
NOISE = ("--noise-multiplier", "2")
PLAN = ("--population", "1M", "--rounds", "100")
MODEL_OUT = ("--data", "cache", "--out", "new")

# What any text can be, and any list of words.
ANYTHING = {
    ("account population", "clients"),
    ("device", "population"),
    ("discover", "alphabet"),
    ("discover", "more_characters"),
    ("suggest", "prompts"),
    ("view", "host"),
    ("view", "token"),
    ("recipe new", "name"),
    ("export", "locale"),  # nan is a language, Min Nan
    ("export", "offensive"),
    ("tune", "public"),
    ("data import", "word_list"),
    ("data import", "language"),  # nan again
}

MAY_BE_EMPTY = {("plan production", "settings"), ("export", "shortcuts")}  # all stays as it is

# A call of each command that would do something, if nothing in it were changed.
RIGHT: dict[str, tuple[str, ...]] = {
    "demo": ("--out", "new"),
    "data import": ("folder:text", "--out", "new", "--word-list", "words.txt"),
    "data show": ("cache",),
    "vocab candidates": ("--vocabulary", "vocabulary.json", "--larger", "vocabulary.json", "--out", "new"),
    "vocab extend": ("--vocabulary", "vocabulary.json", "--words", "run", "--out", "new"),
    "discover": (
        *("--data", "folder:text", "--vocabulary", "vocabulary.json", "--out", "new", "--local-epsilon", "6"),
        *("--users-per-layer", "5", "--resample-users", "--prefixes", "4", "--depth", "3"),
    ),
    "pretrain": ("cache", "--out", "new", "--embedding", "4", "--units", "4", "--declared-public"),
    "ngram": ("cache", "--out", "new", "--declared-public"),
    "mix": ("model", "--out", "new", "--counts", "run"),  # neither is what it takes
    "tune": ("recipe.toml", "--out", "new"),
    "recipe new": ("--data", "cache", "--epsilon", "8", "--anyway", "--out", "new"),
    "recipe list": (),
    "recipe show": ("own-data", "--out", "new"),
    "train": ("recipe.toml", "--out", "new"),
    "resume": ("unfinished",),
    "finish": ("run",),  # which is finished
    "export": ("model", "--out", "new"),
    "count": ("words:10", "--data", "cache", "--out", "out", "--epsilon", "4"),
    "evaluate": ("model", *MODEL_OUT, "--epsilon", "4"),
    "ladder": ("cache", "--public", "cache", "--declared-public", "--model", "model"),
    "suggest": ("model", "I will see"),
    "keyboard": ("model",),  # refused all the same, where there is no terminal
    "personalize": ("model", *MODEL_OUT, "--undated", "order"),
    "type": ("model", "trigram:cache", *MODEL_OUT, "--epsilon", "4"),
    "plan steps": (*PLAN, "--zcdp", "0.5"),
    "plan run": (*PLAN, "--report-goal", "100"),
    "plan target": (*PLAN, "--zcdp", "0.5"),
    "plan timer": (*PLAN, "--report-goal", "100", "--rounds-per-day", "20"),
    "plan rounds": (*PLAN, "--report-goal", "100", "--zcdp", "0.5"),
    "plan production": (
        *("--population", "100k", "--rounds", "20", "--report-goal-max", "200", "--target-zcdp", "0.5"),
        *("--cache", "cache", "--out", "new", "--mechanism", "tree"),
    ),
    "plan counts": ("--public", "cache", "--clients", "100", "--epsilon", "8"),
    "plan epsilon": ("--population", "3000", "--mechanism", "tree"),
    "plan recipe": ("recipe.toml",),
    "simulate": ("--population", "4k", "--report-goal", "10", "--rounds", "10", "--out", "new"),
    "design compare": LIMITS,
    "audit attack": ("--data", "cache", "--public", "cache", "--clients", "20", "--cohort", "20"),
    "account run": ("run",),
    "account population": ("new", "--clients", "all", "--zcdp", "1"),
    "account shuffle": ("--local-epsilon", "4", "--reports", "10000", "--domain", "100"),
    "account populations": ("--populations", "1e5", "--local-epsilons", "4"),
    "account user": ("--user-epsilon", "4", "--contributions", "2", "--users", "1000", "--domain", "50"),
    "account strategy": ("strategy.json", *LIMITS, *NOISE),
    "account log": ("rounds.csv", "--timer", "6h", "--mechanism", "tree", *NOISE),
    "account amplified": (
        *("--mechanism", "banded-toeplitz", "--coefficients", "1,0.5", "--rounds", "90", "--population", "60000"),
        *("--batch", "100", *NOISE),
    ),
    "verify": ("statement.json",),
    "audit run": ("recipe.toml", "--out", "new"),
    "publish": ("page", "--operator-key", "new"),
    "report": ("run",),
    "docs": ("planning", "--print"),
    "compare": ("run", "unfinished", "--out", "new"),
    "decryptor": ("--state", "new", "--least-reports", "9"),
    "device": (
        *("--server", "http://127.0.0.1:9", "--data", "cache", "--state", "new", "--client", "0", "--once"),
        *("--operator-key", "ab" * 32),
    ),
    "serve": ("recipe.toml", "--out", "new", "--port", "0"),
    # Of an address that is no machine's: whatever else is right, it never begins to serve.
    "view": ("run", "--host", "192.0.2.1", "--token", "sixteen characters", "--port", "0"),
    "doctor": (),
    "audit device": (),
    "audit randomizer": ("k-ary", "--campaigns", "100", "--shuffles", "100"),
    "audit court": (),
    "audit mechanism": ("tree",),
    **{f"design {name}": LIMITS for name in MECHANISMS},
    **{f"account {name}": (*LIMITS, *NOISE) for name in MECHANISMS},
}


# -- the folder --------------------------------------------------------------------------------------------------------


def world(at: Path) -> None:
    """Fill an empty folder, which is to be the current one, with what is right and what is wrong."""
    cache = tiny_cache(at / "cache")
    write_model(at / "model", SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_json.encode())
    write_run(at / "run", strategy=Tree())
    write_run(at / "unfinished", strategy=Tree(), done=7)
    files = {
        "recipe.toml": tiny_toml(Path("cache")),
        "vocabulary.json": cache.vocabulary_json,
        "words.txt": "good\nmorning\nnight\n",
        "rounds.csv": "round,finished\n" + "".join(f"{round},{3600 * round}\n" for round in range(30)),
        "strategy.json": '{"kind": "tree", "restarts": [8], "variance_reduced": false}',
        "statement.json": tacit.statement(at / "run").to_json(),
        "empty": "",
        "deep.json": "[" * 100_000,
        "deeper.json": '{"a":' * 900 + "1" + "}" * 900,
        "list.json": "[]",
        "null.json": "null",
        "nan.json": '{"format": NaN, "kind": 1e999}',
    }
    for name, text in files.items():
        (at / name).write_text(text)
    (at / "binary").write_bytes(bytes(range(256)) * 40)
    (at / "latin.toml").write_bytes('caf\xe9 = "x"'.encode("latin-1"))
    os.mkfifo(at / "pipe")
    for folder in ("folder", "foreign", "text", "hostile/m[/red]\x1b[31m\n"):
        (at / folder).mkdir(parents=True)
    (at / "foreign" / "thesis.txt").write_text("dear to somebody")
    for name in ("ann", "bob"):
        (at / "text" / f"{name}.txt").write_text("good morning\ngood night\n")
    page = {"index.html": hashlib.sha256(b"a page").hexdigest()}
    (at / "page").mkdir()
    (at / "page" / "index.html").write_text("a page")
    (at / "page" / BUNDLE).write_text(json.dumps({"digest": digest_of(page), "files": page, "publisher": None}))
    for make in (_damaged_caches, _damaged_runs, _damaged_statements, _damaged_models, _bad_recipes):
        make(at)


def _damaged_caches(at: Path) -> None:
    for file in sorted((at / "cache").iterdir()):
        for how, content in (("gone", None), ("cut", file.read_bytes()[:-1]), ("other", bytes(file.stat().st_size))):
            folder = at / "damaged" / f"cache-{file.name}-{how}"
            shutil.copytree(at / "cache", folder)
            if content is None:
                (folder / file.name).unlink()
            else:
                (folder / file.name).write_bytes(content)


# What somebody wrote into a run's database.
EDITS = {
    "no-format": "DELETE FROM metadata",
    "no-json": "UPDATE metadata SET value = '{'",
    "deep": "UPDATE metadata SET value = '" + "[" * 100_000 + "'",
    "content": "UPDATE journal SET content = '7'",
    "content-json": "UPDATE journal SET content = '{'",
    "content-deep": "UPDATE journal SET content = '" + "[" * 100_000 + "' WHERE entry = 2",
    "kinds": "UPDATE journal SET kind = 'x'",
    "seal": "UPDATE journal SET seal = x'00' WHERE entry = 1",
    "blob": "UPDATE participants SET clients = x'01' WHERE step = 0",
    "text": "UPDATE participants SET clients = 'x' WHERE step = 0",
    "fewer": "DELETE FROM participants WHERE step = 1",
    "entries": "DELETE FROM journal WHERE entry = 1",
    "no-journal": "DROP TABLE journal",
    "no-participants": "DROP TABLE participants",
}


def _damaged_runs(at: Path) -> None:
    for kind in ("run", "unfinished"):
        for name, edit in EDITS.items():
            folder = at / "damaged" / f"{kind}-{name}"
            shutil.copytree(at / kind, folder)
            with closing(sqlite3.connect(folder / "run.db")) as database, database:
                assert database.execute(edit).rowcount, f"{name} changes nothing"
            database.close()
        content = (at / kind / "run.db").read_bytes()
        begin = content.index(b"CREATE TABLE")  # where something stands: half of a database may be empty pages
        middle = content[:begin] + bytes(range(256)) + content[begin + 256 :]
        for name, damaged in (("cut", content[:3000]), ("overwritten", middle), ("none", b"x" * 5000), ("empty", b"")):
            folder = at / "damaged" / f"{kind}-db-{name}"
            shutil.copytree(at / kind, folder)
            (folder / "run.db").write_bytes(damaged)
        for name, text in (("none", None), ("other", 'kind = "tune"\n'), ("no-toml", 'kind = "train"\n[[\n')):
            folder = at / "damaged" / f"{kind}-settings-{name}"
            shutil.copytree(at / kind, folder)
            (folder / "settings.toml").unlink()
            if text is not None:
                (folder / "settings.toml").write_text(text)


WRONG = (None, "x", -1, 1e999, [], {}, True, 10**400, "\x1b[31m")


def _damaged_statements(at: Path) -> None:
    """Every fact as something that it is not, its checksum with it, so that only the fact's own rule is left."""
    whole = json.loads((at / "statement.json").read_text())
    (at / "damaged" / "statement-half.json").write_text((at / "statement.json").read_text()[:500])
    places = [name for name in _leaves(whole["facts"])]
    for number, place in enumerate(places):
        for wrong in (WRONG[number % len(WRONG)], WRONG[(number + 4) % len(WRONG)]):
            record = copy.deepcopy(whole)
            *above, last = place
            inside = record["facts"]
            for key in above:
                inside = inside[key]
            if inside[last] == wrong:
                continue
            inside[last] = wrong
            name = f"statement-{'.'.join(map(str, place))}-{WRONG.index(wrong)}.json"
            (at / "damaged" / name).write_text(json.dumps(record))


def _leaves(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield above
        return
    for key, each in inner:
        yield from _leaves(each, (*above, key))


def _damaged_models(at: Path) -> None:
    for file in sorted((at / "model").iterdir()):
        for how, content in (("gone", None), ("list", b"[]"), ("binary", bytes(range(256))), ("deep", b"[" * 100_000)):
            folder = at / "damaged" / f"model-{file.name}-{how}"
            shutil.copytree(at / "model", folder)
            if content is None:
                (folder / file.name).unlink()
            else:
                (folder / file.name).write_bytes(content)


def _bad_recipes(at: Path) -> None:
    right = tomllib.loads((at / "recipe.toml").read_text())
    for section, values in right.items():
        if not isinstance(values, dict):
            continue
        for key in values:
            for number, wrong in enumerate(("x\x1b[31m", -1, float("nan"), float("inf"), True, [], 10**23, 1e300)):
                if not (key == "seed" and wrong == 10**23) and not (key == "cache" and number == 0):
                    _write_recipe(at, f"{section}-{key}-{number}", {**right, section: {**values, key: wrong}})
        _write_recipe(at, f"{section}-misspelt", {**right, section: {**values, "rouds": 3}})
        _write_recipe(at, f"{section}-text", {**right, section: "x"})
    _write_recipe(at, "null-in-path", {**right, "data": {"cache": "a\0b"}})
    _write_recipe(at, "unknown-section", {**right, "sevrer": {"momentum": 0.9}})
    (at / "damaged" / "recipe-deep.toml").write_text("x = " + "[" * 50_000)


def _write_recipe(at: Path, name: str, values: Mapping[str, Any]) -> None:
    try:
        (at / "damaged" / f"recipe-{name}.toml").write_text(tomli_w.dumps(values))
    except (TypeError, ValueError):  # TOML has no whole number of this size
        return


# -- the calls ---------------------------------------------------------------------------------------------------------


def bad_calls(at: Path) -> list[Call]:
    """Every call, in one order; `at` is the folder that `world` filled."""
    found = commands()
    assert found.keys() == RIGHT.keys(), "a new command needs a right call here"
    calls = [call for name, command in found.items() for call in _of(name, command)]
    calls += [Call((*name.split(), *words), codes) for name, words, codes in _with_damaged(at)]
    calls += [Call(("nonsense",)), Call((HOSTILE,)), Call(("--nonsense",)), Call(("data", HOSTILE))]
    return calls


def commands() -> dict[str, Any]:
    """Every command that does something, by its words."""
    root, found = typer.main.get_command(app), {}
    for name in COMMANDS:
        made = root.made(name)  # type: ignore[attr-defined]
        if not hasattr(made, "commands"):
            found[name] = made
        else:
            inner = getattr(made, "made", made.commands.get)
            found |= {f"{name} {each}": inner(each) for each in made.commands}
    return found


def _of(name: str, command: Any) -> Iterator[Call]:
    """The right call of a command with one thing wrong in it."""
    words, right = tuple(name.split()), RIGHT[name]
    yield Call((*words, *right, "--unknown", "1"))
    yield Call((*words, *right, f"extra{HOSTILE}"))
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    if any(each.required for each in command.params):
        yield Call(words)
    for parameter in command.params:
        for wrong in _wrong(name, parameter):
            if parameter.param_type_name == "argument":
                place = arguments.index(parameter)
                if right[place] != wrong:
                    yield Call((*words, *right[:place], wrong, *right[place + 1 :]))
            elif parameter.opts[0] not in right or parameter.is_flag:
                yield Call((*words, *right, parameter.opts[0], wrong))
            elif (place := right.index(parameter.opts[0]) + 1) and right[place] != wrong:
                yield Call((*words, *right[:place], wrong, *right[place + 1 :]))


def _wrong(name: str, parameter: Any) -> tuple[str, ...]:
    """What a parameter cannot be, by its type and where that says too little by its name."""
    if parameter.name == "help":
        return ()
    kind = _kind(parameter.type_descriptor.annotation)
    if kind is bool:
        return () if name == "suggest" else ("1",)  # one word too many, which here is another prompt
    if (name, parameter.name) in ANYTHING:
        return (HOSTILE,)
    if kind is Path:
        if name == "account population" or parameter.name == "state":
            return FOLDER_OUT
        if parameter.name == "journal" or (name.startswith("plan") and parameter.name == "report"):
            return FOLDER_OUT[:-1]
        if name == "plan production" and parameter.name in ("cache", "model"):  # neither need be there yet
            return ("empty", "binary", "list.json", HOSTILE) if parameter.name == "cache" else (HOSTILE,)
        if (name, parameter.name) == ("publish", "operator_key"):  # made where it is missing
            return FOUND[1:]
        if (name, parameter.name) in MAY_BE_EMPTY:
            return tuple(each for each in FOUND if each != "empty")
        if parameter.name == "out" and not name.startswith(("design", "vocab", "recipe")):
            any_folder = name in ("compare", "report", "plan production", "simulate")
            return FOLDER_OUT[:-1] if any_folder else FOLDER_OUT
        return FILE_OUT if parameter.name in ("figure", "out", "statement_file") else FOUND
    numbers = parameter.name in (
        "coefficients",
        "theta",
        "omega",
        "server_learning_rates",
        "learning_rate",
    )  # of any size
    return {int: WHOLE, float: REAL}.get(kind, tuple(wrong for wrong in TEXT if not (numbers and wrong == HUGE)))


def _kind(annotation: Any) -> Any:
    if get_origin(annotation) is Literal:
        return str
    inner = [each for each in get_args(annotation) if each is not type(None)]
    return _kind(inner[0]) if inner else annotation


def _with_damaged(at: Path) -> Iterator[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    """Calls with things that were right once."""
    for path in sorted((at / "damaged").iterdir()):
        name = str(path.relative_to(at))
        match path.name.partition("-")[0]:
            case "cache":
                yield "data show", (name, "--verify"), REFUSED
                yield "pretrain", (name, "--out", "new"), REFUSED
                yield "ngram", (name, "--out", "new", "--declared-public"), REFUSED
                yield "evaluate", ("model", "--data", name), REFUSED
                yield "ladder", (name,), REFUSED
                yield "ladder", ("cache", "--public", name, "--declared-public"), REFUSED
                yield "type", ("model", "model", "--data", name, "--out", "new"), REFUSED
            case "model":
                yield "evaluate", (name, "--data", "cache"), REFUSED
                yield "ladder", ("cache", "--model", name), REFUSED
                yield "suggest", (name, "I will see"), REFUSED
                yield "export", (name, "--out", "new"), REFUSED
                yield "personalize", (name, *MODEL_OUT), REFUSED
                yield "type", ("model", name, *MODEL_OUT), REFUSED
            case "statement":
                yield "verify", (name,), FAILS
            case "recipe":
                yield "train", (name, "--out", "new"), REFUSED
            case _:
                yield "resume", (name,), REFUSED
                yield "finish", (name,), REFUSED
                yield "report", (name,), REFUSED
                yield "account run", (name,), REFUSED if "settings" not in name else (0, 2)  # which it does not need
                yield "verify", (name,), FAILS
                yield "compare", ("run", name, "--out", "new"), REFUSED
