"""A population of devices, round after round, before anything is trained."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.files import as_path, check_folder, write_whole
from tacit.jobs.result import ReportedResult
from tacit.progress import Progress, StageBegan, StageEnded, silent

if TYPE_CHECKING:  # numba would come with them
    from tacit.population.settings import SimulationSettings
    from tacit.population.simulation import Simulation
    from tacit.reports.blocks import Block
    from tacit.reports.figure import Figure

SCHEMA, VERSION = "tacit.simulation", 1


@dataclass(frozen=True, kw_only=True)
class SimulationResult(ReportedResult):
    """A simulated run, and the files of it that were written into `out`."""

    simulation: "Simulation"
    record: dict[str, Any]  # its figures
    out: Path | None = None
    files: tuple[str, ...] = ()

    KIND = "simulation of devices, before anything is trained"
    TITLE = "Who would come, how often, and how long it would take"

    def answer(self) -> str:
        """How long the run takes, and how often devices come."""
        from tacit.reports.simulation import answer

        return answer(self.simulation)

    def details(self) -> "list[Block]":
        """The figures of the run, and what is to be known of them."""
        from tacit.reports.simulation import caveats, table

        return [table(self.record), *caveats(self.simulation, self.record)]

    def to_record(self) -> dict[str, Any]:
        """The figures of the run, and its files, as plain values for JSON."""
        written = {"files": list(self.files)} if self.files else {}
        return {"schema": SCHEMA, "version": VERSION, **self.record, **written}

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the rounds, for a data frame."""
        from tacit.population.simulation import COLUMNS

        return dict(zip(COLUMNS, map(list, zip(*self.simulation.rows(), strict=True)), strict=True))

    def blocks(self) -> "list[Block]":
        """What people read of it."""
        from tacit.reports.simulation import blocks

        return blocks(self.simulation, self.record, self.out)

    def figures(self) -> "tuple[Figure, ...]":
        """The run over its days, by the hour of the day, and who came how often."""
        from tacit.reports.simulation import figures

        return figures(self.simulation)


def simulate(
    settings: "SimulationSettings | str | Path", *, out: str | Path | None = None, progress: Progress = silent
) -> SimulationResult:
    """Who would come, how often, and how long it would take: realised MinS and MaxP, days, wasted work.

    settings: a value, or a TOML file of it. out: a folder for its report, rounds.csv, summary.json, the settings and
    figures. Raises: ParticipationError where the rounds do not end, with what would fit.
    """
    from tacit.population.settings import SimulationSettings
    from tacit.population.simulation import simulate as run_simulation

    chosen = (
        settings if isinstance(settings, SimulationSettings) else SimulationSettings.read(as_path("settings", settings))
    )
    folder = None if out is None else as_path("out", out)
    if folder is not None:
        check_folder("out", folder)  # before the work
    run = run_simulation(chosen, progress=progress)
    progress(StageBegan("counting who came"))
    record = run.to_record()
    files: tuple[str, ...] = ()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        files = tuple(write_simulation(run, folder))
    progress(StageEnded("counting who came"))
    return SimulationResult(simulation=run, record=record, out=folder, files=files)


def write_simulation(run: "Simulation", folder: Path) -> list[str]:
    """Write rounds.csv, summary.json, settings.toml, the figures and the report into a folder that is there; their
    names.
    """
    from tacit.population.simulation import COLUMNS
    from tacit.reports.figure_files import write_figure
    from tacit.reports.page import to_json
    from tacit.reports.simulation import figures

    result = SimulationResult(simulation=run, record=run.to_record())
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(run.rows())
    contents = {
        "rounds.csv": table.getvalue().encode(),
        "summary.json": to_json(result.to_record()),
        "settings.toml": run.settings.to_toml().encode(),
    }
    for name, content in contents.items():
        write_whole(folder / name, content)
    drawn = [name for figure in figures(run) for name in write_figure(figure, folder)]
    report = result.write_report(folder)
    return [*contents, *drawn, *(path.name for path in (report.html, report.markdown, report.json))]
