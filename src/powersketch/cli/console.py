"""What commands show: results on standard output, progress and messages on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

# A file or a pipe has no width that a table has to fit.
WIDEST = 1000


def result_console() -> Console:
    """Return the console for results; what is no terminal has any width."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDEST)


def print_lines(lines: Iterable[str], console: Console | None = None) -> None:
    """Print lines as they are: nothing in them is markup."""
    shown = console or result_console()
    for line in lines:
        shown.print(line, markup=False, highlight=False, soft_wrap=True)


def print_json(figures: Any) -> None:
    """Print what other programs read, without NaN, which JSON does not know."""
    sys.stdout.write(f"{json.dumps(figures, indent=1, allow_nan=False, ensure_ascii=False)}\n")


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print a table, whose first row holds the headings; the first column holds names."""
    table = Table()
    for number, heading in enumerate(rows[0]):
        table.add_column(heading, justify="right" if number else "left")
    for row in rows[1:]:
        table.add_row(*row)
    result_console().print(table)


def tell(text: str) -> None:
    """Write a message for people to standard error, if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Write every different warning as one line to standard error, whoever reads it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(_text(each) for each in caught if _is_for_users(each)):
        sys.stderr.write(f"warning: {text}\n")


def _text(warning: warnings.WarningMessage) -> str:
    return " ".join(str(warning.message).split())


def _is_for_users(warning: warnings.WarningMessage) -> bool:
    """Tell notes to developers of libraries apart."""
    return not issubclass(warning.category, DeprecationWarning | FutureWarning)


# Called with how much is done, how much there is (None if unknown), and what comes next.
Report = Callable[[int, int | None, str], None]


@contextmanager
def progress(first: str) -> Iterator[Report]:
    """Show a bar on standard error while something runs, if that is a terminal."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(first, total=None)

        def report(done: int, total: int | None, text: str) -> None:
            # Of known steps every one is shown; of thousands, as many as the eye can follow.
            known = total is not None
            bar.update(task, completed=done, total=total, description=text, refresh=known)

        yield report
