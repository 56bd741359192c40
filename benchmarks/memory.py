"""Peak memory of a transform above its input, each measured in a fresh process."""

import json
import subprocess
import sys
from pathlib import Path

from report import Row, Table, at_most

PROBE = Path(__file__).with_name("memory_probe.py")
MAPS = ("polynomial", "Gaussian")
LAYOUTS = ("C order", "Fortran order", "CSR, 5 % non-zero")


def transform_memory(*, quick: bool) -> Table:
    rows = 10_000 if quick else 50_000
    return Table(
        "Peak memory of transform above its input",
        f"{rows} rows, 1024 columns, 1024 components, float32; the polynomial's degree is 4, "
        "the Gaussian's gamma 'scale'. The limit is 1.3 × output + 64 MB.",
        [_measured_row(name, layout, rows) for name in MAPS for layout in LAYOUTS],
    )


def _measured_row(name: str, layout: str, rows: int) -> Row:
    command = [sys.executable, str(PROBE), name, layout, str(rows)]
    megabytes = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    limit = 1.3 * megabytes["output MB"] + 64
    peak = megabytes["peak above input MB"]
    return Row({"kernel": name, "input": layout, **megabytes}, [at_most(peak, round(limit, 1))])


MEASUREMENTS = (transform_memory,)
