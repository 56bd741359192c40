"""The same sums with Ray and Spark, where they are installed: examples print what they reach."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("package", "file"), [("ray", "ray_sums"), ("pyspark", "spark_sums")])
def test_examples_run(package: str, file: str) -> None:
    pytest.importorskip(package)
    command = [sys.executable, str(EXAMPLES / f"{file}.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"R² on new rows: (\S+)", ended.stdout)
    assert found is not None
    assert float(found[1]) > 0.98
