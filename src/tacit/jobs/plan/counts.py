"""Which counts of clients' text suit a population: sums over the first words, or a list of chosen cells."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path, check_file
from tacit.jobs.result import ReportedResult
from tacit.jobs.run_start import checked_cache
from tacit.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.data import Cache
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.planning.cells import ProposedCells
    from tacit.planning.counts import ProposedSums
    from tacit.reports.blocks import Block


@dataclass(frozen=True, kw_only=True)
class CountPlan(ReportedResult):
    """What to count, and why."""

    KIND = "plan, before anything is run"
    TITLE = "What to count of clients' text"

    clients: int
    rho: float
    source: str  # the public text that stood in for clients'
    sums: "ProposedSums | None"  # None where a list was asked for
    cells: "ProposedCells | None"

    def answer(self) -> str:
        """What to count, at which price."""
        if self.cells is not None:
            what = f"{len(self.cells.cells.ngrams):,} chosen n-grams"
        else:
            assert self.sums is not None  # one of the two
            what = " and ".join(f"{each} of the first {each.words:,} words" for each in self.sums.sums)
        return f"Of {self.clients:,} clients, at zCDP {self.rho:.4g}, count {what}."

    @property
    def asked(self) -> tuple[str, ...]:
        """The arguments of `tacit count`."""
        if self.cells is not None:
            return ("--cells", str(self.cells.cells.path))
        assert self.sums is not None  # one of the two
        return tuple(f"{each}:{each.words} norm {each.norm:g} unit {each.unit}" for each in self.sums.sums)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit plan counts --json` prints."""
        found: dict[str, Any] = {"schema": "tacit.plan.counts", "version": 1, "clients": self.clients, "zcdp": self.rho}
        found |= {"public": self.source, "asked": list(self.asked)}
        if self.cells is not None:
            listed = self.cells.cells
            found["cells"] = {
                "sha256": listed.sha256,
                "cells": len(listed.ngrams),
                "norm": listed.norm,
                "parts": list(self.cells.parts),
                "power": self.cells.power,
                "believed": list(self.cells.worth),
            }
        if self.sums is not None:
            found["sums"] = [
                {**each.to_plain(), "believed": self.sums.believed[str(each)], "stddev": self.sums.stddev[str(each)]}
                for each in self.sums.sums
            ]
        return found

    def blocks(self) -> "list[Block]":
        """What people read: each setting with its reason, and the command."""
        from tacit.reports.blocks import Paragraph, Table

        said = [Paragraph(f"{self.clients:,} clients, {self.rho:.4g} of zCDP; {self.source} stands in for their text.")]
        rows = self._of_cells() if self.cells is not None else self._of_sums()
        asked = " ".join(each if each.startswith("--") or " " not in each else f'"{each}"' for each in self.asked)
        command = Paragraph(f"tacit count {asked} --data CACHE --split-name train --zcdp {self.rho:.6g} --out RUN")
        return [*said, Table(rows, ("setting", "value", "because")), command]

    def _of_sums(self) -> tuple[tuple[str, ...], ...]:
        from tacit.planning.counts import BELIEVED, LENGTH

        assert self.sums is not None  # the caller's to know
        rows = []
        for each in self.sums.sums:
            believed, stddev = self.sums.believed[str(each)], self.sums.stddev[str(each)]
            rows += [
                (
                    f"{each} words",
                    f"{each.words:,}",
                    f"{believed:,} cells are expected above {BELIEVED:g} of the noise",
                ),
                (
                    f"{each} norm",
                    f"{each.norm:g}",
                    f"of {LENGTH} words: a larger one adds noise of {stddev:.3g} in a cell",
                ),
                (f"{each} unit", f"{each.unit}", "rounding loses little in texts hundreds of times as long"),
            ]
        return tuple(rows)

    def _of_cells(self) -> tuple[tuple[str, ...], ...]:
        assert self.cells is not None  # the caller's to know
        found, listed = self.cells, self.cells.cells
        rows = [
            ("list", str(listed.path), f"SHA-256 {listed.sha256[:16]}..., chosen by public text alone"),
            ("norm", f"{listed.norm:,}", "in units: rounding loses little"),
            ("weights", f"frequency^-{found.power:g}", "by which most is believed of what is typed"),
        ]
        for length, (part, worth) in enumerate(zip(found.parts, found.worth, strict=True), start=1):
            many = sum(len(each) == length for each in listed.ngrams)
            why = f"{part:.0%} of the squared norm; {worth:.0%} of what is typed has its deviation believed"
            rows.append((f"n-grams of {length}", f"{many:,}", why if many else "noise would hide them"))
        return tuple(rows)


def plan_counts(
    public: "Cache | PathLike",
    *,
    clients: int,
    release: "ReleaseCost",
    cells: PathLike | None = None,
    progress: Progress = silent,
) -> CountPlan:
    """What to count of so many clients at a price, from public text alone: sums, or a list of cells.

    clients: how many are counted. release: the price. public: a cache of public text over the clients' vocabulary.
    cells: the file of a list to write; left out, sums over the first words are chosen. Raises: InputError where the
    text is not public, noise would hide every count, the price is local, or the file is there and is another;
    CacheError.
    """
    from tacit.evaluation.release_cost import ReleaseCost

    of_type("clients", clients, int)
    of_type("release", release, ReleaseCost)
    path = None if cells is None else as_path("cells", cells)
    if path is not None:
        check_file("--cells", path)
    cache, rho = checked_cache(public, progress=progress), release.asking(max(2, clients)).rho
    told: dict[str, Any] = {"clients": clients, "rho": rho, "source": cache.manifest.source}
    if path is None:
        from tacit.planning.counts import proposed_sums

        sums = proposed_sums(cache, clients=clients, rho=rho)
        if not sums.sums:
            raise InputError(
                f"the noise of rho={rho:g} hides every count of {clients:,} clients; ask more of them, or spend more."
            )
        return CountPlan(**told, sums=sums, cells=None)
    from dataclasses import replace

    from tacit.planning.cells import cells_for

    found = cells_for(cache, clients=clients, rho=rho)
    if path.is_file() and path.read_bytes() != found.cells.text.encode():
        raise InputError(f"'{path}' is there and says something else; give another --cells.")
    return CountPlan(**told, sums=None, cells=replace(found, cells=found.cells.save(path)))
