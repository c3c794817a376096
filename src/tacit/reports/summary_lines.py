"""What is said of a result in a few lines, where a page would be too much: what the command prints when it is done.

Each function takes a result's record, or what it is read from, and gives blocks: text, warnings and tables.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from tacit.networks.metrics import ALL_TOKENS, METRICS, OF_ALL, OF_KNOWN, OVER_CLIENTS
from tacit.plurals import quantity
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Labels, Paragraph, Table
from tacit.reports.judgement import counted_how, failures, points, summary_lines
from tacit.reports.release import Interval, said
from tacit.statements.statement import SURPRISING

if TYPE_CHECKING:
    from tacit.reports.summary import RunSummary

BAR_WIDTH = 40  # characters


# -- runs that train ---------------------------------------------------------------------------------------------------


def of_training(summary: "RunSummary", test: Mapping[str, float], rounds: int) -> list[Block]:
    """Accuracy and price, with what is surprising about it."""
    blocks: list[Block] = [Paragraph(_accuracy(summary, test, rounds))]
    if test:
        others = summary_lines(summary)
        blocks += [Paragraph(f"beside it: {others}")] if others else []
        blocks.append(Paragraph(counted_how(summary, test["clients"])))
    blocks.append(Labels(failures(summary)))
    stated = summary.statement
    if not summary.private:
        return [*blocks, Paragraph("privacy: NON-PRIVATE, no noise was added")]
    if stated is None:
        return blocks
    figures = stated.figures
    happened = f"under what happened in {quantity(rounds, 'round')}"
    planned = f"as planned, for a rule ended it after {quantity(rounds, 'round')} by what was released"
    at = f"at delta {figures['delta']:g}, per client, {planned if 'holds' in figures else happened}"
    blocks += [
        Paragraph(f"privacy: {_cost(figures)} {at}"),
        Labels(tuple(label for label in stated.labels if label.name in SURPRISING)),
    ]
    if further := figures.get("extrapolated"):
        text = f"EXTRAPOLATED to {further['report_goal']:,} reports a round, a run that was not made: {_cost(further)}"
        blocks.append(Paragraph(text))
    return blocks


def _accuracy(summary: "RunSummary", test: Mapping[str, float], rounds: int) -> str:
    if not test:
        return f"stopped after {rounds:,} of {quantity(summary.planned_rounds, 'round')}; go on with `{summary.resume}`"
    how = "on the server's own clients" if summary.deployed else "as only a simulation knows it"
    return (
        f"accuracy on {test['clients']:.0f} clients never trained on: top-1 {test['top1_accuracy']:.2%}, "
        f"top-3 {test['top3_accuracy']:.2%} {OF_KNOWN} (exact, {how}; {test['oov_rate']:.1%} {OF_ALL} are unknown)"
    )


def _cost(of: Mapping[str, Any]) -> str:
    holds = of.get("in_all", of)[of.get("holds", "realised")]  # of everything together, where updates are not all
    return f"zCDP {rounded_up(holds['zcdp'])}, epsilon {rounded_up(holds['epsilon'])}"


def of_profile(spent: Mapping[str, Any], meanings: Mapping[str, str]) -> list[Block]:
    """Where the time went, from `Profile.to_record`: the phases of the rounds, then what ran beside them."""
    whole = spent["seconds"]
    phases = spent["phases"]
    order = [*(name for name in meanings if name in phases), *(name for name in phases if name not in meanings)]
    rows = [(name, phases[name], whole, meanings.get(name, "between these")) for name in order]
    workers = dict(spent.get("workers") or {"count": 0})  # none of a cluster's
    capacity = workers.pop("count") * whole
    rows += [(f"workers {name}", seconds, capacity, "of all workers' time") for name, seconds in workers.items()]
    rows.append(("disk writing", spent["disk"]["writing"], whole, "beside the next round"))
    shares = [f"{seconds / of:.1%}" if of else "" for _, seconds, of, _ in rows]
    cells = tuple(
        (name, f"{seconds:.2f}", share, said) for (name, seconds, _, said), share in zip(rows, shares, strict=True)
    )
    return [Paragraph(f"where {whole:.1f} seconds went"), Table(cells, ("", "seconds", "share", ""))]


# -- runs that ask clients ---------------------------------------------------------------------------------------------


def of_promise(promise: Mapping[str, Any]) -> list[Block]:
    """One line of what an evaluation released; a second where the noise can be taken away."""
    if promise["kind"] == "nothing":
        return [Paragraph("NOTHING WAS RELEASED")]
    cost = f"epsilon {rounded_up(promise['epsilon'])} at delta {promise['delta']:g}"
    blocks: list[Block] = [Paragraph(f"RELEASED ({promise['kind']}): {cost}, per client")]
    if promise["key_source"] != OPERATING_SYSTEM:
        seeded = f"randomness came from {promise['key_source']}; who knows it can take the noise away"
        blocks.append(Paragraph(f"FIXED SEED: {seeded}"))
    return blocks


def of_evaluation(found: Mapping[str, Any]) -> list[Block]:
    """What was released of each model, and what is exact where clients were simulated, apart."""
    exact, released = found["simulation_only"], found["released"]
    shown = [*of_promise(found["promise"]), *([] if released is None else _models(released))]
    if exact is None:
        return shown
    return [
        *shown,
        Paragraph(f"{exact['what']} ({found['asked']:,} clients asked)"),
        *_models(exact),
        _by_word(found, exact),
    ]


def _by_word(found: Mapping[str, Any], exact: Mapping[str, Any]) -> Paragraph:
    """Why `tacit train` says another accuracy of the same model."""
    from tacit.reports.evaluate import by_word

    return Paragraph(by_word(found, exact))


def _models(found: Mapping[str, Any]) -> list[Block]:
    from tacit.reports.evaluate import SHOWN  # numba comes with it

    first = next(iter(found["models"]))
    figures = {
        name: {OVER_CLIENTS: row["mean"], "worst decile": row["worst_decile"]}
        | {shown: row["quantiles"][q] for shown, q in SHOWN.items()}
        for name, row in found["models"].items()
    }
    rows = tuple(
        (shown if name == first else "", name, said(of_each[shown], form=".2%"))
        for shown in figures[first]
        for name, of_each in figures.items()
    )
    beside = [
        f"{name} against {first}: {OVER_CLIENTS} {points(Interval.from_plain(row['mean']))}; better for "
        f"{said(row['better'], form='.0%')} of clients, worse for {said(row['worse'], form='.0%')}"
        for name, row in found["against_the_first"].items()
    ]
    head = ("", "model", f"top-1 {OF_KNOWN}")
    return [Table(rows, head), *map(Paragraph, beside)]


def of_personalization(record: Mapping[str, Any]) -> list[Block]:
    """What the best strategy changes and what each policy does, both exact; and what was released. Of real devices the
    same of what was released.
    """
    exact, released = record["simulation_only"], record["released"]
    found = released if exact is None else exact
    assert found is not None  # of real devices something was released
    metric = next(iter(next(iter(found["strategies"].values()))))  # of a release the first that was asked; else top-1
    means = {name: Interval.from_plain(each[metric]["mean"]).value for name, each in found["strategies"].items()}
    best = max((name for name, mean in means.items() if not math.isnan(mean)), key=means.__getitem__, default=None)
    if exact is None:
        lines = _released_change(record, found, best, metric)
        return [*of_promise(record["promise"]), *map(Paragraph, lines)]
    assert best is not None  # of exact numbers none is unknown
    row, counting_all = (found["strategies"][best][name] for name in (metric, ALL_TOKENS))
    mean, change = (Interval.from_plain(row[name]) for name in ("mean", "relative"))
    gaining, losing = (Interval.from_plain(row[name][cut]) for name, cut in (("gaining", "0.02"), ("losing", "0.0")))
    relative = "unknown" if math.isnan(change.value) else f"{change.value:+.1%}"
    lines = [
        f"{exact['evaluated']:,} of {record['asked']:,} clients evaluated",
        f"best {best}: accuracy {mean.value:+.4f} ({mean.low:+.4f} to {mean.high:+.4f}), {relative} relative; "
        f"{gaining.value:.0%} gain at least 0.02, {losing.value:.0%} lose; of all tokens "
        f"{said(counting_all['mean'], form='+.4f')}",
    ]
    lines += [
        f"{each['name']}: accuracy {Interval.from_plain(each['gain']).value:+.4f}, "
        f"{Interval.from_plain(each['harmed']).value:.0%} lose ({each['users']:,} users that did not design it)"
        for each in exact["policies"]
    ]
    return [*(Paragraph(f"SIMULATION ONLY: {line}") for line in lines), *of_promise(record["promise"])]


def _released_change(record: Mapping[str, Any], found: Mapping[str, Any], best: str | None, metric: str) -> list[str]:
    """The best strategy and each policy by released histograms alone."""
    lines = [f"{record['asked']:,} devices asked; accuracy before {said(found['baseline_mean'], form='.2%')}"]
    if best is None:
        return [*lines, "of every strategy the noise leaves unknown what it changes"]
    row = found["strategies"][best][metric]
    lines.append(
        f"best {best}: {METRICS[metric].title} {said(row['mean'], form='+.4f')}; "
        f"{said(row['losing'].get('0.0'), form='.0%')} lose"
    )
    lines += [
        f"{each['name']}: accuracy {said(each['mean'], form='+.4f')}, "
        f"{said(each['losing'].get('0.0'), form='.0%')} lose (devices that did not design it)"
        for each in found["policies"]
    ]
    return lines


def of_discovery(record: Mapping[str, Any]) -> list[Block]:
    """How many words, how much of what is typed they are, and what was promised."""
    coverage, truth, guarantee = record["coverage"], record["simulation"], record["guarantee"]
    lines = [f"{record['words']:,} words from {record['users']:,} users, each asked once"]
    if coverage:
        lines.append(
            f"  coverage   {coverage['value']:.1%} ({coverage['low']:.1%} to {coverage['high']:.1%}) of the unknown "
            f"words that users contribute, estimated from {record['counting_users']:,} others"
        )
    lines += [] if truth is None else _of_simulated_words(truth, record["words"])
    for level, condition in (
        ("local", ""),
        ("central", f" at delta {guarantee['central_delta']:g}, if nobody sees reports before they are summed"),
    ):
        item, user = (rounded_up(guarantee[f"{level}_epsilon_{unit}"]) for unit in ("item", "user"))
        lines.append(f"  {level:10} epsilon {item} for one answer, {user} for all of a user{condition}")
    kept = record["anonymity"]
    lines.append(
        f"  anonymity  fewer than {kept['k']} contributors: output with probability at most {kept['delta']:g}"
        if kept
        else "  anonymity  none was asked for: rare words can be output"
    )
    return [
        Paragraph(line)
        for line in (*lines, *(f"  {record['run']}/{name}" for name in FOUND if truth or "simulation" not in name))
    ]


def _of_simulated_words(truth: Mapping[str, Any], words: int) -> list[str]:
    """What no server of real devices would know."""
    left_out = truth["words_left_out"].items()
    return [
        f"  simulation {truth['coverage']:.1%} of all unknown words typed (at most {truth['largest_coverage']:.1%} by "
        f"any {words:,} words); {truth['words_nobody_typed']:,} words that nobody typed",
        *(f"  left out   {count:,} words typed that are {name}" for name, count in left_out if count),
    ]


FOUND = ("words.csv", "simulation/report.html", "report/statement.md")


# -- accounts and data -------------------------------------------------------------------------------------------------


def of_account(figures: Mapping[str, Any]) -> list[Block]:
    """Of a run of any kind: planned beside realised; of histograms step by step; of local reports in words."""
    if "guarantee" in figures:
        lines = figures["guarantee"]["statement"] if figures["guarantee"] else ["NOTHING WAS RELEASED"]
        return [Paragraph(line) for line in lines]
    if "promise" not in figures:
        return _of_trained(figures)
    promise = figures["promise"]
    blocks = of_promise(promise)
    if promise["kind"] == "central":
        blocks.append(Paragraph(f"zCDP {rounded_up(promise['zcdp'], 6)}"))
        what = (
            [f"sums within the norm {norm:.6g}" for norm in promise["clip_norm"]]
            if "clip_norm" in promise
            else [f"{count} histograms" for count in promise["histograms"]]
        )
        for step, (each, spread) in enumerate(zip(what, promise["stddev_of_a_count"], strict=True), start=1):
            blocks.append(Paragraph(f"step {step}: {each}, standard deviation of a count {spread:.4g}"))
    return blocks


def _of_trained(figures: Mapping[str, Any]) -> list[Block]:
    columns = [name for name in ("planned", "realised") if figures[name]]
    planned = figures["planned"]
    rows = [
        (name.replace("_", " "), *(_shown(name, figures[column][name]) for column in columns))
        for name in planned
        if name != "sequences"
    ]
    for at, share in enumerate(planned.get("sequences", ())):
        alone = [figures[column]["sequences"][at] for column in columns]
        for name in ("noise_multiplier", "zcdp"):
            title = f"{name.replace('_', ' ')}, {share['what']} alone"
            rows.append((title, *(_shown(name, each[name]) for each in alone)))
    blocks: list[Block] = [
        Table(tuple(rows), ("", *columns)),
        Paragraph(f"{figures['released_rounds']} of {planned['rounds']} rounds are released."),
    ]
    if not figures["private"]:
        blocks.append(Paragraph("NON-PRIVATE: no noise was added, so nothing is promised."))
    if larger := figures["extrapolated"]:
        cost = " ".join(f"{name} {_shown(key, larger['realised'][key])}," for name, key in COSTS.items())
        goal = f"with {larger['report_goal']} reports a round"
        blocks.append(Paragraph(f"EXTRAPOLATED, not a guarantee of this run: {goal}, realised {cost.rstrip(',')}."))
    if "audited" in figures:
        blocks.append(Paragraph(f"CANARIES: nobody should use this run's model. {figures['audited']}"))
    return blocks


COSTS = {"zCDP": "zcdp", "epsilon": "epsilon"}


def _shown(name: str, value: float) -> str:
    if name in COSTS.values():
        return rounded_up(value, 6)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def of_preview(facts: Mapping[str, Any]) -> list[Block]:
    """How clients' text would be read, what of it, and its beginning."""
    lines = [facts["source"], *(f"  read as    {each}" for each in facts["how_read"])]
    lines.append(f"  clients    {facts['clients']:,} ({_of_splits(facts['splits'])})")
    lines.append(f"  texts      {facts['texts']:,}, {facts['characters']:,} characters")
    if facts["earliest"] is None:
        lines.append("  times      none")
    else:
        undated = f"; {facts['undated_texts']:,} texts without" if facts["undated_texts"] else ""
        lines.append(f"  times      {_moment(facts['earliest'])} to {_moment(facts['latest'])}{undated}")
    lines += [f"  left out   {count:,} {what}" for what, count in facts["left_out"].items() if count]
    lines += [f"  LOOKS WRONG: {doubt}" for doubt in facts["doubts"]]
    for client in facts["first"]:
        lines.append(f"  {client['client_id']} ({quantity(client['of'], 'text')})")
        lines += [f"    {text!r}" for text in client["texts"]]
    return [Paragraph(line) for line in lines]


def _of_splits(splits: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in splits.items())


def _moment(seconds: int) -> str:
    """In UTC; the bare number where no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:,} s"


def of_data(facts: Mapping[str, Any]) -> list[Block]:
    """Clients, words, words per client with a bar for each decade, and where the vocabulary comes from."""
    words, vocabulary = facts["words_per_client"], facts["vocabulary"]
    left_out = {**facts["left_out"], "clients without a sentence": facts["clients_without_sentences"]}
    lines = [
        f"{facts['cache']}: {facts['source']}",
        f"  clients    {facts['clients']:,} ({_of_splits(facts['splits'])})",
        f"  sentences  {facts['sentences']:,}",
        f"  words      {facts['words']:,}, {facts['oov_rate']:.2%} out of vocabulary",
        f"  vocabulary {vocabulary['size']:,} ids, {vocabulary['provenance']}: {vocabulary['description']}",
    ]
    if vocabulary["provenance"] == "private":
        lines.append("  VOCABULARY FROM PRIVATE TEXT: no guarantee covers its words")
    lines += [f"  left out   {count:,} {what}" for what, count in left_out.items() if count]
    lines.append(f"  words per client: median {words['median']:,.0f}, mean {words['mean']:,.0f}")
    tallest = max(bar["clients"] for bar in words["histogram"])
    for bar in dropwhile(lambda bar: not bar["clients"], words["histogram"]):
        length = -(-bar["clients"] * BAR_WIDTH // tallest)  # rounded up: nobody disappears
        lines.append(f"  {bar['from']:>9,} - {bar['below'] - 1:<9,} {'█' * length} {bar['clients']:,}")
    return [Paragraph(line) for line in lines]
