"""Time that importing the package and calling it first add, measured in fresh interpreters."""

import json
import subprocess
import sys
from pathlib import Path

from report import Row, Table, at_most

PROBE = Path(__file__).with_name("import_probe.py")


def import_and_first_call(*, quick: bool) -> Table:
    runs = [_probe() for _ in range(2 if quick else 7)]
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    added = best["import powersketch, after scikit-learn"]
    return Table(
        "Import and first call",
        f"Best of {len(runs)} fresh interpreters.",
        [
            Row({"step": name, "ms": ms}, [at_most(ms, 50)] if ms == added else [])
            for name, ms in best.items()
        ],
    )


def _probe() -> dict[str, float]:
    command = [sys.executable, str(PROBE)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


MEASUREMENTS = (import_and_first_call,)
