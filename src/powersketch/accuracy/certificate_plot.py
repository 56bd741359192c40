"""The picture of a certificate: approximate against exact values of the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.accuracy.data_rows import Float64


def plot_pairs(exact: Float64, approximate: Float64, error: float, title: str, ax: Any) -> Any:
    """Draw pairs, the diagonal and a band of twice the error; return the axes."""
    if ax is None:
        ax = _new_axes()
    ends = np.array([exact.min(), exact.max()])
    ax.fill_between(
        ends, ends - 2 * error, ends + 2 * error, alpha=0.25, label="± 2 root mean square errors"
    )
    ax.plot(ends, ends, linewidth=1.0, label="exact")
    ax.plot(exact, approximate, ".", markersize=2.0, alpha=0.5, label="pairs of rows")
    ax.set_xlabel("k(x, y)")
    ax.set_ylabel("⟨z(x), z(y)⟩")
    ax.set_title(title)
    ax.legend()
    return ax


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plot needs matplotlib, which is not installed: pip install powersketch[plot]."
        ) from error
    return Figure(figsize=(5.0, 4.0), layout="constrained").subplots()
