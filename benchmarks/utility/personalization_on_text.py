"""For whom a model of one's own pays: SGD by epochs, caches without SGD, and both, on held-out clients of real text.

Federated Personalization Evaluation (paper 5, arXiv:1910.10252). Every client is cut in time: 70% to train on, 10% for
the gate, 20% to test on (the paper: 80% and 20%). Prints, with 95% intervals over clients, by words of the vocabulary
and by all tokens as the paper counts:

- what each strategy changes, of all clients and by how many tokens they have to train on, and who loses;
- strategies against each other, by the same clients;
- what a gate lets through, and what those gain whom it refuses, were they not refused;
- policies of each family (SGD of one epoch as the paper's, SGD of several, caches, all of them), with and without
  gates, chosen on one half of the clients and judged on the other, both ways round;
- whom it pays: slopes with the tokens and with the accuracy before;
- the same of another user's text: what is not the user's own, but that of the kind of text.

    python benchmarks/utility/personalization_on_text.py --model runs/tied --cache caches/chat-en caches/blogs-en \
        --split validation --clients 150 60 --runs runs [--table] [--figure docs/results/personalization]

One JSON line per figure, or Markdown; resumable: the same command goes on where it was killed, and once finished prints
again in seconds. `--clients 8` is a smoke test.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from cells import save
from numpy.typing import NDArray
from slopes import slope_of

import tacit
from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache, CacheManifest
from tacit.data.splits import Parts
from tacit.evaluation.counts.answers import policies_of
from tacit.evaluation.counts.histograms import Buckets
from tacit.evaluation.counts.queries import Queries
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.intervals import UNKNOWN, Estimate, mean_of, share_of
from tacit.evaluation.personalize.deltas import Deltas, Pairs
from tacit.evaluation.personalize.fine_tuning import FineTuning, Grid
from tacit.evaluation.personalize.gate import LEVELS, GatePolicy, accepted, chance_of_gains, followed
from tacit.evaluation.personalize.outcome_rows import outcome_of, row_of
from tacit.evaluation.personalize.outcomes import ClientOutcome, SkippedClient, TemporalSplit
from tacit.evaluation.personalize.policies import HARM_LEVEL
from tacit.evaluation.personalize.population import personalize_clients
from tacit.evaluation.personalize.summary import summarise
from tacit.evaluation.settings import PersonalizationSettings
from tacit.networks.metrics import ALL_TOKENS, TOP1
from tacit.progress import Advanced, Event
from tacit.records import json_ready

MOST = 40_000  # tokens: more than four epochs of anybody here
LONG = 10_000  # the paper's other T, of its figure 3: more than one epoch of anybody here
PAPER = FineTuning()  # its best: B=5, L=0.1, one epoch or 5,000 tokens
SGD = (
    PAPER,
    *Grid(batch_size=(5,), learning_rate=(0.1,), max_tokens=(LONG,)).strategies(),
    *Grid(batch_size=(5,), learning_rate=(0.1,), epochs=(2, 4), max_tokens=(MOST,)).strategies(),
    *Grid(batch_size=(5,), learning_rate=(0.1,), epochs=(8,), max_tokens=(LONG,)).strategies(),
    *Grid(batch_size=(5,), learning_rate=(0.3,), max_tokens=(LONG,)).strategies(),
    *Grid(batch_size=(20,), learning_rate=(1.0,), max_tokens=(LONG,)).strategies(),
)
CACHES = Grid(batch_size=(), learning_rate=(), unigram=(0.05, 0.1, 0.2), bigram=(0.05, 0.1, 0.2, 0.3)).strategies()
BOTH = tuple(replace(how, bigram=0.1) for how in SGD[1:4])
STRATEGIES = (*SGD, *CACHES, *BOTH)
FAMILIES: Mapping[str, Sequence[FineTuning]] = {
    "SGD, one epoch": [how for how in SGD if how.epochs == 1],
    "SGD": SGD,
    "caches": CACHES,
    "all": STRATEGIES,
}
DRAWN = (PAPER, SGD[2], CACHES[1], CACHES[5], BOTH[1])  # two epochs, a cache of words, one of pairs, and both
OF_OTHERS = (SGD[1], SGD[2], CACHES[1], CACHES[4], BOTH[1])  # one and two epochs, both caches, two epochs with a cache
PAIRS = ((CACHES[5], SGD[1]), (BOTH[0], SGD[1]), (BOTH[1], SGD[2]), (BOTH[1], CACHES[5]))  # compared by tokens
OTHERS = 100  # of each text are also given another's
TOKENS = Buckets((200.0, 500.0, 1000.0, 2500.0))
SHARES = ("use a model of their own", "gain 0.02 or more", "lose", "lose more than 0.02", "surely lose")  # of users
LOSING = "by tokens, who loses"  # a table of shares
ACCURACIES = {TOP1: "words", ALL_TOKENS: "all tokens"}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, required=True)
    options.add_argument("--cache", type=Path, nargs="+", required=True)
    options.add_argument("--clients", type=int, nargs="+", default=[0], help="of each, in a public order; 0: all")
    options.add_argument("--split", default="validation", help="whose clients; nothing may have been chosen on them")
    options.add_argument("--runs", type=Path, required=True, help="where the run folders go")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--table", action="store_true", help="Markdown in place of JSON")
    options.add_argument("--figure", type=Path, help="also draw PNG and SVG")
    asked = options.parse_args()
    numbers = asked.clients * len(asked.cache) if len(asked.clients) == 1 else asked.clients
    found = {cache.name: evaluated(asked, cache, clients) for cache, clients in zip(asked.cache, numbers, strict=True)}
    for name, text in found.items():
        tables = text.tables()
        print(text.as_markdown(name, tables) if asked.table else "\n".join(lines(name, tables)), flush=True)
    if asked.figure:
        draw(found, asked.figure)


def lines(name: str, tables: Mapping[str, Sequence[Mapping[str, object]]]) -> Iterator[str]:
    for table, rows in tables.items():
        yield from (json.dumps(json_ready({"text": name, "table": table, **row})) for row in rows)


def evaluated(asked: argparse.Namespace, cache: Path, clients: int) -> "Text":
    """Every strategy on the first clients of a public order."""

    def said(event: Event) -> None:
        if isinstance(event, Advanced) and event.done % 10 == 0:
            print(f"# {cache.name}: {event.done} clients", flush=True)

    settings = PersonalizationSettings(
        split_name=asked.split,
        clients=clients,
        strategies=STRATEGIES,
        split=TemporalSplit(gate=0.125),
        levels=LEVELS,
        tokens=TOKENS,
    )
    out = asked.runs / f"personalize-{cache.name}"
    exact = tacit.personalize(
        asked.model, cache, out, settings=settings, seed=1, hardware=Hardware(workers=asked.workers), progress=said
    ).found.exact
    assert exact is not None  # of simulated clients it is known
    first = exact.deltas.of_clients(np.arange(min(OTHERS, len(exact.deltas))))
    others = of_another(asked, cache, first, settings.split)
    opened = tacit.open_data(cache)
    parts = [settings.split.parts(opened.timestamps(client)) for client in exact.deltas.clients.tolist()]
    sentences = np.array([part.train.size for part in parts if isinstance(part, Parts)])
    return Text(
        deltas=exact.deltas, skipped=exact.skipped, asked=len(exact.clients), others=others, sentences=sentences
    )


@dataclass(frozen=True, kw_only=True)
class Swapped:
    """Clients who are tested on their own text and train on that of another with about as many tokens."""

    cache: Cache
    split: TemporalSplit
    giver: Mapping[int, int]  # whose text a client trains on

    @property
    def manifest(self) -> CacheManifest:
        return self.cache.manifest

    def timestamps(self, client: int) -> NDArray[np.int64]:
        return self.cache.timestamps(client)

    def padded(self, client: int, rows: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        giver = self.giver[client]
        mine, given = (self.split.parts(self.timestamps(each)) for each in (client, giver))
        assert isinstance(mine, Parts) and isinstance(given, Parts)  # both were evaluated
        if not np.isin(rows, mine.train).all():
            return self.cache.padded(client, rows, length)
        return self.cache.padded(giver, np.random.default_rng(client).permutation(given.train), length)


def of_another(asked: argparse.Namespace, path: Path, deltas: Deltas, split: TemporalSplit) -> Deltas:
    """What OF_OTHERS change for these clients by the text of others; kept client by client."""
    by_tokens = deltas.clients[np.argsort(deltas.tokens, kind="stable")].tolist()
    pairs = zip(by_tokens[::2], by_tokens[1::2], strict=False)
    giver = {client: other for one, two in pairs for client, other in ((one, two), (two, one))}
    kept = asked.runs / f"others-{path.name}.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    missing = [client for client in giver if client not in {row["client"] for row in rows}]
    model = tacit.load_model(asked.model)
    with kept.open("a") as file:

        def keep(outcome: ClientOutcome | SkippedClient) -> None:
            rows.append(row_of(outcome))
            print(json.dumps(rows[-1]), file=file, flush=True)

        if missing:
            swapped: Any = Swapped(cache=tacit.open_data(path), split=split, giver=giver)
            cores = Cores(Hardware(workers=asked.workers))
            network, parameters = model.network, model.parameters
            personalize_clients(network, parameters, swapped, missing, OF_OTHERS, split, cores=cores, progress=keep)
    return Deltas.from_outcomes([outcome_of(row) for row in rows if row["client"] in giver])


@dataclass(frozen=True, kw_only=True)
class Text:
    """What was found of one text's clients."""

    deltas: Deltas
    skipped: Mapping[str, int]
    asked: int
    others: Deltas  # of some of the clients, by OF_OTHERS
    sentences: NDArray[np.int64]  # (clients,) to train on

    def tables(self) -> dict[str, list[dict[str, object]]]:
        """Every figure, by table."""
        return {
            "clients": [{"asked": self.asked, "evaluated": len(self.deltas), **self.skipped, **self._before()}],
            "strategies": [self._strategy(how) for how in STRATEGIES],
            "by tokens, words": [self._by_tokens(how, TOP1) for how in STRATEGIES],
            "by tokens, all tokens": [self._by_tokens(how, ALL_TOKENS) for how in STRATEGIES],
            LOSING: [self._losing(how) for how in DRAWN],
            "by tokens, differences of words": [self._between(*pair, TOP1) for pair in PAIRS],
            "by tokens, differences of all tokens": [self._between(*pair, ALL_TOKENS) for pair in PAIRS],
            "amount of text": list(self._amounts()),
            "against the paper's best": [self._against(how, PAPER) for how in STRATEGIES if how != PAPER],
            "both against the cache alone": [self._against(how, CACHES[4]) for how in BOTH],
            "gates": [self._gate(how, level) for how in DRAWN for level in LEVELS],
            "policies": list(self._policies()),
            "slopes": [self._slopes(how) for how in DRAWN],
            "another's text": [self._of_another(how) for how in OF_OTHERS],
        }

    def as_markdown(self, name: str, tables: Mapping[str, Sequence[Mapping[str, object]]]) -> str:
        """The same for a page."""
        parts = []
        for table, rows in tables.items():
            heads = list(rows[0])
            body = "\n".join(f"| {' | '.join(written(table, head, row[head]) for head in heads)} |" for row in rows)
            parts.append(f"### {name}: {table}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n{body}\n")
        return "\n".join(parts)

    def change(self, how: FineTuning, metric: str) -> NDArray[np.float64]:
        """What the strategy changes for each client (n,)."""
        return self.deltas.change[metric][:, STRATEGIES.index(how)]

    def buckets(self) -> dict[str, NDArray[np.bool_]]:
        """Who is in each bucket of train tokens that has at least five users."""
        bucket = TOKENS.of(self.deltas.tokens)
        members = {label: bucket == number for number, label in enumerate(TOKENS.labels())}
        return {f"{label} ({of.sum()})": of for label, of in members.items() if of.sum() >= 5}

    def by_bucket(self, how: FineTuning, metric: str) -> dict[str, Estimate]:
        """Mean change in each bucket."""
        change = self.change(how, metric)
        return {label: mean_of(change[of]) for label, of in self.buckets().items()}

    def _before(self) -> dict[str, object]:
        return {f"before, {said}": mean_of(self.deltas.baseline[metric]) for metric, said in ACCURACIES.items()}

    def _strategy(self, how: FineTuning) -> dict[str, object]:
        found = summarise(self.change(how, TOP1), self.deltas.baseline[TOP1])
        return {
            "strategy": str(how),
            "words": found.mean,
            "all tokens": mean_of(self.change(how, ALL_TOKENS)),
            "gain 0.02 or more": found.gaining[0.02],
            "lose": found.losing[0.0],
            "lose more than 0.02": found.losing[0.02],
            "surely lose": self._surely_lose(how),
        }

    def _surely_lose(self, how: FineTuning) -> Estimate:
        """Of whose test words the sign test says so at 5%: fewer than 5% of users would by chance."""
        test = self.deltas.test
        surely = chance_of_gains(Pairs(gained=test.lost, lost=test.gained))[:, STRATEGIES.index(how)] <= HARM_LEVEL
        return share_of(int(surely.sum()), len(self.deltas))

    def _by_tokens(self, how: FineTuning, metric: str) -> dict[str, object]:
        return {"strategy": str(how), **self.by_bucket(how, metric)}

    def _losing(self, how: FineTuning) -> dict[str, object]:
        change = self.change(how, TOP1)
        lose = {label: share_of(int(np.sum(change[of] < 0)), int(of.sum())) for label, of in self.buckets().items()}
        return {"strategy": str(how), **lose}

    def _between(self, how: FineTuning, other: FineTuning, metric: str) -> dict[str, object]:
        change = self.change(how, metric) - self.change(other, metric)
        means = {label: mean_of(change[of]) for label, of in self.buckets().items()}
        return {"strategy": str(how), "less": str(other), **means}

    def _amounts(self) -> Iterator[dict[str, object]]:
        """What a bucket of tokens is in sentences, and how good the global model is there."""
        for label, of in self.buckets().items():
            low, middle, high = np.quantile(self.sentences[of], [0.1, 0.5, 0.9])
            before = {f"before, {said}": mean_of(self.deltas.baseline[key][of]) for key, said in ACCURACIES.items()}
            said = f"{middle:.0f} ({low:.0f} to {high:.0f})"
            yield {"tokens (users)": label, "sentences, median (10% to 90%)": said, **before}

    def _gate(self, how: FineTuning, level: float) -> dict[str, object]:
        """Whom a gate lets through, and what its refusals cost and spare."""
        passes = accepted(self.deltas, level)[:, STRATEGIES.index(how)]
        free, users = self.change(how, TOP1), len(self.deltas)
        change = np.where(passes, free, 0.0)
        return {
            "strategy": str(how),
            "level": level,
            "use a model of their own": share_of(int(passes.sum()), users),
            "words": mean_of(change),
            "all tokens": mean_of(np.where(passes, self.change(how, ALL_TOKENS), 0.0)),
            "less no gate": mean_of(change - free),
            "words of those let through": mean_of(free[passes]) if passes.sum() > 1 else UNKNOWN,
            "words of those refused": mean_of(free[~passes]) if (~passes).sum() > 1 else UNKNOWN,
            "lose": share_of(int(np.sum(change < 0)), users),
            "lose more than 0.02": share_of(int(np.sum(change < -0.02)), users),
        }

    def _against(self, how: FineTuning, other: FineTuning) -> dict[str, object]:
        of = {
            said: mean_of(self.change(how, metric) - self.change(other, metric)) for metric, said in ACCURACIES.items()
        }
        return {"strategy": str(how), "less": str(other), **of}

    def _policies(self) -> Iterator[dict[str, object]]:
        """Chosen on each half and judged on the other; all users together, each by a policy that never saw it."""
        halves = np.arange(len(self.deltas)) % 2  # the order is a public random one
        for family, ways in FAMILIES.items():
            columns = [STRATEGIES.index(how) for how in ways]
            both = [_of_strategies(self.deltas.of_clients(halves == half), columns) for half in (0, 1)]
            chosen = [_policies_of(ways, ours) for ours in both]
            for number, policy in enumerate(chosen[0]):
                pairs = [(chosen[half][number], both[1 - half]) for half in (0, 1)]
                changes = {
                    said: np.concatenate([_changes(of, deltas, metric) for of, deltas in pairs])
                    for metric, said in ACCURACIES.items()
                }
                words, users = changes["words"], len(self.deltas)
                yield {
                    "family": family,
                    "policy": policy.name,
                    "use a model of their own": share_of(sum(int(followed(*pair)[0].sum()) for pair in pairs), users),
                    **{said: mean_of(change) for said, change in changes.items()},
                    "lose": share_of(int(np.sum(words < 0)), users),
                    "lose more than 0.02": share_of(int(np.sum(words < -0.02)), users),
                    "rules": "; ".join(_rules(of, ways) for of, _ in pairs),
                }

    def _slopes(self, how: FineTuning) -> dict[str, object]:
        """The accuracy before is that of the gate's words: those of the test share their luck with the change."""
        change, before = self.change(how, TOP1), self.deltas.gate_baseline
        assert before is not None
        known = ~np.isnan(before)
        return {
            "strategy": str(how),
            "per doubling of train tokens": slope_of(np.log2(np.maximum(self.deltas.tokens, 1)), change),
            "per unit of accuracy before": slope_of(before[known], change[known]),
        }

    def _of_another(self, how: FineTuning) -> dict[str, object]:
        """The same clients by their own text and by another's."""
        place = {client: at for at, client in enumerate(self.deltas.clients.tolist())}
        rows = [place[client] for client in self.others.clients.tolist()]
        found: dict[str, object] = {"strategy": str(how), "users": len(rows)}
        for metric, said in ACCURACIES.items():
            own, given = self.change(how, metric)[rows], self.others.change[metric][:, OF_OTHERS.index(how)]
            found |= {
                said: mean_of(own),
                f"{said}, another's": mean_of(given),
                f"{said}, own less": mean_of(own - given),
            }
        return found


def _of_strategies(deltas: Deltas, columns: Sequence[int]) -> Deltas:
    """The same clients, asked about some of the strategies."""
    gate = deltas.gate
    assert gate is not None
    return replace(
        deltas,
        change={metric: change[:, columns] for metric, change in deltas.change.items()},
        diverged=deltas.diverged[:, columns],
        test=replace(deltas.test, gained=deltas.test.gained[:, columns], lost=deltas.test.lost[:, columns]),
        gate=replace(gate, gained=gate.gained[:, columns], lost=gate.lost[:, columns]),
    )


def _policies_of(ways: Sequence[FineTuning], deltas: Deltas) -> tuple[GatePolicy, ...]:
    """As `tacit personalize --gate auto` chooses them of these clients' exact answers."""
    asked = Queries(strategies=tuple(map(str, ways)), tokens=TOKENS, levels=LEVELS)
    answers = exactly([*asked.about_strategies(deltas, 0), *asked.about_rules(deltas, 0)])
    return policies_of(asked, answers, PersonalizationSettings().harm_weight)


def _changes(policy: GatePolicy, deltas: Deltas, metric: str) -> NDArray[np.float64]:
    deploys, strategy = followed(policy, deltas)
    return np.where(deploys, deltas.change[metric][np.arange(len(deltas)), strategy], 0.0)


def _rules(policy: GatePolicy, ways: Sequence[FineTuning]) -> str:
    said = [
        "global model"
        if rule is None
        else f"{ways[rule.strategy]}{'' if rule.level >= 1 else f' (gate {rule.level:g})'}"
        for rule in policy.rules
    ]
    if len(set(said)) == 1:
        return said[0]
    return "; ".join(f"{of}: {how}" for of, how in zip(policy.buckets.labels(), said, strict=True))


def written(table: str, head: str, value: object) -> str:
    """A cell of a table; – where too few users are left to say."""
    if not isinstance(value, Estimate):
        return str(value)
    share = head in SHARES or (table == LOSING and head != "strategy")
    form = ".0%" if share else ".4f" if head.startswith("before") else "+.4f"
    return "–" if np.isnan(value.value) else f"{value.value:{form}} ({value.low:{form}} to {value.high:{form}})"


def draw(found: Mapping[str, Text], path: Path) -> None:
    """Mean change by tokens, a panel a text and metric."""
    import matplotlib.pyplot as plt

    size = (5.2 * len(found), 7.5)
    figure, axes = plt.subplots(2, len(found), figsize=size, squeeze=False, sharey="row", layout="constrained")
    for column, (name, text) in enumerate(found.items()):
        for row, (metric, said) in enumerate(ACCURACIES.items()):
            panel = axes[row][column]
            for number, how in enumerate(DRAWN):
                of = text.by_bucket(how, metric)
                at = np.arange(len(of)) + 0.12 * (number - (len(DRAWN) - 1) / 2)
                means = np.array([*of.values()])
                errors = np.abs(means[:, 1:].T - means[:, 0])
                panel.errorbar(at, means[:, 0], errors, marker="os^Dv"[number], capsize=2, lw=1, label=str(how))
            panel.axhline(0, color="black", lw=0.6)
            panel.set_title(f"{name}: accuracy of {said}", fontsize=10)
            panel.set_xticks(range(len(of)), [label.replace(" (", "\n(") for label in of], fontsize=7)
            panel.set_ylabel("mean change" if column == 0 else "")
    for panel in axes[-1]:
        panel.set_xlabel("tokens to train on (users)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    main()
