"""A table to work on, and ways to run the command: in this process, alone, and on a terminal."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

COMMAND = [sys.executable, "-m", "powersketch"]


def environment(**changes: str) -> dict[str, str]:
    """Return the variables of a process that finds the package as this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **changes}


def write_table(path: Path, rows: int = 60, *, gaps: bool = False) -> Path:
    """Write a table with numbers, categories and dates; price and sold are to be predicted."""
    random = np.random.default_rng(0)
    size = random.normal(size=rows)
    colour = random.choice(["red", "blue", "green"], size=rows)
    price = 3.0 * size + 2.0 * (colour == "red") + 0.5 * random.normal(size=rows)
    lines = ["size,colour,day,weight,price,sold"]
    for row in range(rows):
        shown = "" if gaps and row % 10 == 3 else f"{size[row]:.6f}"
        sold = "yes" if price[row] > 0.0 else "no"
        day = f"2024-03-{1 + row % 28:02d}"
        lines.append(f"{shown},{colour[row]},{day},{1 + row % 3},{price[row]:.6f},{sold}")
    path.write_text("\n".join(lines) + "\n")
    return path


@dataclass(frozen=True)
class Finished:
    """What a run on a terminal came to."""

    code: int
    out: str
    terminal: str


def on_terminal(arguments: list[str], folder: Path) -> Finished:
    """Run the command with a pseudo-terminal as its standard error."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(TERM="xterm", COLUMNS="100"),
        stdout=subprocess.PIPE,
        stderr=other,
        text=True,
    )
    os.close(other)
    shown = []
    while True:
        try:
            part = os.read(main, 65536)
        except OSError as error:
            # Linux reports the end of a terminal that nobody holds open any more like this.
            if error.errno != errno.EIO:
                raise
            break
        if not part:
            break
        shown.append(part)
    os.close(main)
    out, _ = process.communicate()
    return Finished(process.returncode, out, b"".join(shown).decode())
