"""`tacit evaluate`: how one or several models do on clients' text, client by client, and who fares worst."""

import hashlib
import json
import math
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

import tacit
from tacit.cli.bars import counting_bar
from tacit.cli.console import console, print_json, speaks_plainly
from tacit.errors import InputError
from tacit.privacy import Ledger, Participation
from tacit.privacy.rounding import rounded_up
from tacit.runs import RoundRow, Run, write_whole

if TYPE_CHECKING:
    from tacit.evaluation.intervals import Estimate
    from tacit.keyboard.metrics import Counts

AT_ONCE = 64  # clients whose sentences are in memory together
EXACT = "SIMULATION ONLY: exact numbers; no server would have them"


@speaks_plainly
def evaluate(
    models: Annotated[list[Path], typer.Argument(help="Finished runs or model folders; the first is compared with.")],
    data: Annotated[Path, typer.Option(help="A cache of clients' text, with the models' vocabulary.")],
    clients: Annotated[int, typer.Option(help="Clients to ask; 0 is all of the split.")] = 0,
    split_name: Annotated[str, typer.Option(help="Which clients: test, validation or train.")] = "test",
    sentences: Annotated[int, typer.Option(help="Sentences of a client, evenly spread over its text.")] = 64,
    words: Annotated[int, typer.Option(help="Words of a sentence; the rest of a longer one is not used.")] = 20,
    zcdp: Annotated[
        float | None, typer.Option(help="Release a histogram of accuracy over clients for every model, with this zCDP.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is given.")] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="The run folder that keeps a release and its ledger.")] = None,
    workers: Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Never changes the result.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Accuracy of models over clients: quantiles, the worst decile, and who gains from one model over another."""
    if (zcdp is None) != (out is None):
        raise InputError("--zcdp and --out belong together: a release is kept with its ledger row, or not made.")
    if zcdp is not None and not 0 < zcdp < math.inf:
        raise InputError(f"--zcdp {zcdp:g} promises nothing or releases nothing; give a number above 0.")
    if out is not None and (out / "run.db").is_file():
        raise InputError(f"'{out}' exists already, and what was released is never released again; give another --out.")
    if clients < 0 or sentences < 1 or words < 1:
        raise InputError("--clients must be 0 or more, --sentences and --words 1 or more.")
    names = _names(models)
    counted, asked = _count(models, names, data, split_name, clients, (sentences, words), workers, quiet=as_json)
    record = {
        "data": str(data),
        "split_name": split_name,
        "asked": len(asked),
        "simulation_only": _exact(counted),
        "released": None if zcdp is None or out is None else _release(counted, asked, zcdp, delta, out),
    }
    if as_json:
        print_json(record)
        return
    _show(record)


def _names(models: Sequence[Path]) -> list[str]:
    names = [str(path) for path in models]
    if len(set(names)) < len(names):
        raise InputError("a model was named twice, and comparing it with itself says nothing; name each once.")
    return names


def _count(
    models: Sequence[Path],
    names: Sequence[str],
    data: Path,
    split_name: str,
    clients: int,
    size: tuple[int, int],
    workers: int,
    *,
    quiet: bool,
) -> "tuple[dict[str, list[Counts]], list[int]]":
    """Each model's counts of each asked client, and who was asked: the first of a public random order."""
    from tacit.cli.models import load_model
    from tacit.cli.trainer import use_cores
    from tacit.evaluation.asking import first_asked
    from tacit.evaluation.fairness import shared_vocabulary
    from tacit.evaluation.federated import HeldOut
    from tacit.evaluation.federated import evaluate as count_clients
    from tacit.population import Cache
    from tacit.training import Cores, Hardware

    hardware = Hardware(workers=workers)
    use_cores(hardware)
    cache = Cache.open(data)
    loaded = {name: load_model(path) for name, path in zip(names, models, strict=True)}
    digests = {name: vocabulary.sha256 for name, (_, _, vocabulary) in loaded.items()}
    shared_vocabulary({**digests, str(data): cache.manifest.vocabulary.sha256})
    asked = first_asked(cache.clients(split_name), clients)
    if len(asked) < 2:
        raise InputError(f"{len(asked)} clients of the {split_name} split say nothing about many; import more clients.")
    cores = Cores(hardware)
    counted: dict[str, list[Counts]] = {name: [] for name in names}
    for start in _with_progress(range(0, len(asked), AT_ONCE), len(asked), quiet=quiet):
        held_out = HeldOut.read(cache, asked[start : start + AT_ONCE], sentences=size[0], words=size[1])
        for name, (network, _, _) in loaded.items():
            counted[name].extend(count_clients(network, held_out, cores=cores).clients)
    return counted, [int(client) for client in asked]


def _exact(counted: "dict[str, list[Counts]]") -> dict[str, Any]:
    from tacit.evaluation.fairness import advantage_of, spread_of

    first, *others = counted
    return {
        "what": EXACT,
        "models": {name: asdict(spread_of(each)) for name, each in counted.items()},
        "against_the_first": {name: asdict(advantage_of(counted[name], counted[first])) for name in others},
    }


def _release(
    counted: "dict[str, list[Counts]]", asked: list[int], zcdp: float, delta: float, out: Path
) -> dict[str, Any]:
    """A noised histogram of accuracy per model, in a run folder with its ledger row before anybody reads it."""
    import numpy as np

    from tacit.evaluation.fairness import QUANTILES, accuracies_of
    from tacit.evaluation.histograms import Buckets, Cells, mean_from, quantile_from
    from tacit.evaluation.private_release import Question, guarantee_for, release
    from tacit.evaluation.questionnaire import ACCURACY
    from tacit.mechanisms import fresh_key
    from tacit.training import generator_for

    cells = Cells(slices=Buckets(), bins=ACCURACY)
    questions = []
    for name, each in counted.items():
        accuracies = accuracies_of(each)
        chosen = np.full(len(asked), cells.size - 1, np.int64)
        there = ~np.isnan(accuracies)
        chosen[there] = cells.of(np.zeros(int(there.sum())), accuracies[there])
        questions.append(Question(name=name, cells=cells, chosen=chosen))
    key = fresh_key()
    guarantee = guarantee_for(len(questions), zcdp=zcdp)
    histograms, row = release(questions, guarantee, step=0, generator=generator_for(key, "evaluation histogram", 0))
    versions = {"tacit": tacit.__version__, "numpy": np.__version__, "python": platform.python_version()}
    facts = {"kind": "evaluation", "versions": versions, "created": time.time(), "delta": delta, "finished": True}
    with Run.create(out, f"models = {json.dumps(list(counted))}\n", facts, key) as run, run.locked():
        content = json.dumps({name: each.as_row() for name, each in histograms.items()}).encode()
        path = run.path / "checkpoints" / "release-000000.json"
        write_whole(path, content)
        done = RoundRow(
            round=0,
            checkpoint=path.name,
            digest=hashlib.sha256(content).hexdigest(),
            release=row.to_record(),
            measures={},
        )
        run.commit(done, clients=np.sort(np.array(asked)), finished=time.time(), seconds=0.0)
        run.destroy_noise_key()
    promised = Ledger((row,)).composition(Participation(rounds=1, min_separation=1, max_participations=1))
    return {
        "run": str(out),
        "zcdp": promised.zcdp,
        "epsilon": promised.epsilon(delta),
        "delta": delta,
        "stddev_of_a_count": guarantee.seed_stddev,
        "models": {
            name: {
                "mean": mean_from(each),
                "quantiles": {q: quantile_from(each, q) for q in QUANTILES},
                "histogram": each.as_row(),
            }
            for name, each in histograms.items()
        },
    }


def _show(record: dict[str, Any]) -> None:
    exact, released = record["simulation_only"], record["released"]
    if released is not None:
        console.print(
            f"RELEASED: zCDP {rounded_up(released['zcdp'])}, epsilon {rounded_up(released['epsilon'])} at delta "
            f"{released['delta']:g}, per client (run folder {released['run']})"
        )
        console.print(_table(released["models"], ("mean", "quantiles")))
    console.print(f"{EXACT} ({record['asked']:,} clients asked)")
    console.print(_table(exact["models"], ("mean", "worst_decile", "quantiles")))
    first = next(iter(exact["models"]))
    for name, each in exact["against_the_first"].items():
        console.print(
            f"{name} against {first}: accuracy {_said(each['mean'], sign=True)}; better for "
            f"{each['better'].value:.0%} of clients, worse for {each['worse'].value:.0%}; worst decile "
            f"{each['worst_decile']:+.4f}"
        )


def _table(models: dict[str, Any], columns: Sequence[str]) -> Table:
    quantiles = {"5%": 0.05, "median": 0.5, "95%": 0.95}
    heads = [head.replace("_", " ") for head in columns if head != "quantiles"]
    table = Table("top-1 accuracy over clients", *heads, *quantiles, box=None, pad_edge=False)
    for name, row in models.items():
        cells = [_said(row[column]) for column in columns if column != "quantiles"]
        table.add_row(name, *cells, *(_said(row["quantiles"][q]) for q in quantiles.values()))
    return table


def _said(found: "Estimate", *, sign: bool = False) -> str:
    form = "+.4f" if sign else ".4f"
    return f"{found.value:{form}} ({found.low:{form}} to {found.high:{form}})"


def _with_progress(starts: range, clients: int, *, quiet: bool) -> Iterator[int]:
    """The starts, with a bar on a terminal; a client counts when its group is done."""
    bar = counting_bar(quiet=quiet)
    with bar:
        task = bar.add_task("clients", total=clients)
        for start in starts:
            yield start
            bar.update(task, completed=min(start + starts.step, clients))
