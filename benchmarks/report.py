"""Tables of measured figures with their bars, on the terminal and as JSON."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as TerminalTable

Cell = str | int | float
RESULTS = Path(__file__).with_name("results.json")
PICTURES = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Bar:
    """A bound that a figure of the row must keep."""

    text: str
    holds: bool


def at_least(value: float, limit: float) -> Bar:
    return Bar(f"≥ {limit:g}", value >= limit)


def at_most(value: float, limit: float) -> Bar:
    return Bar(f"≤ {limit:g}", value <= limit)


@dataclass(frozen=True)
class Row:
    """Cells by column name, and the bars they are held to."""

    cells: dict[str, Cell]
    bars: Sequence[Bar] = ()

    @property
    def bar_cell(self) -> str:
        return "; ".join(bar.text for bar in self.bars) or "–"

    @property
    def verdict(self) -> str:
        failed = "; ".join(bar.text for bar in self.bars if not bar.holds)
        if failed:
            return f"NO ({failed})"
        return "yes" if self.bars else "–"


@dataclass(frozen=True)
class Table:
    """Rows with the same columns; the note says how they were measured.

    A figure is the name of a picture in the folder of results.
    """

    title: str
    note: str
    rows: list[Row] = field(default_factory=list)
    figure: str | None = None

    @property
    def header(self) -> list[str]:
        return [*self.rows[0].cells, "bar", "holds"]

    def lines(self) -> list[list[str]]:
        return [
            [*map(_formatted, row.cells.values()), row.bar_cell, row.verdict] for row in self.rows
        ]

    def as_json(self) -> dict[str, Any]:
        rows = [
            {**row.cells, "bars": [{"bar": bar.text, "holds": bar.holds} for bar in row.bars]}
            for row in self.rows
        ]
        return {"title": self.title, "note": self.note, "figure": self.figure, "rows": rows}


def _formatted(cell: Cell) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if 100 <= abs(cell) < 1e6 else f"{cell:.3g}"


def print_table(console: Console, table: Table) -> None:
    shown = TerminalTable()
    for name, value in table.rows[0].cells.items():
        shown.add_column(name, justify="left" if isinstance(value, str) else "right")
    shown.add_column("bar")
    shown.add_column("holds")
    for row, line in zip(table.rows, table.lines(), strict=True):
        shown.add_row(*line, style="bold red" if row.verdict.startswith("NO") else None)
    console.print(f"\n[bold]{table.title}[/bold]\n{table.note}", highlight=False)
    console.print(shown)


def closing_sentence(tables: Sequence[Table]) -> str:
    rows = [(table, row) for table in tables for row in table.rows]
    total = sum(len(row.bars) for _, row in rows)
    failed = [
        f"{table.title}, {next(iter(row.cells.values()))}: {bar.text}"
        for table, row in rows
        for bar in row.bars
        if not bar.holds
    ]
    sentence = f"{total - len(failed)} of {total} bars hold."
    return f"{sentence} Not held: {'; '.join(failed)}." if failed else sentence


def from_fresh_process(module: str, *arguments: object) -> dict[str, float]:
    """Run a module in a new interpreter and return the figures it prints."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    # Bytecode is kept between runs, as it is for users.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(command, check=True, capture_output=True, env=environment)
    return json.loads(run.stdout)


def print_figures(figures: dict[str, float]) -> None:
    """Print what :func:`from_fresh_process` reads."""
    print(json.dumps(figures))


def write_atomically(path: Path, text: str) -> None:
    """Write under a temporary name and rename, so that no reader meets half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
