"""Shows error and time of PolynomialSketch on the digits, next to scikit-learn's own map."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.metrics.pairwise import polynomial_kernel

from powersketch import PolynomialSketch

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table
except ModuleNotFoundError as error:
    sys.exit(f'The demo needs {error.name}: run  pip install "powersketch[demo]"')

DEGREES = (2, 4, 8, 16, 32, 64)
COMPONENTS = 1024
BATCH_ROWS = 256  # PolynomialCountSketch needs degree · n_components complex numbers for every row
PICTURE = Path("powersketch_demo.png")
SUBJECT = f"Kernel ⟨x, y⟩^degree on the digits (mean norm 1), {COMPONENTS} features"
LINES = {
    "powersketch": ("PolynomialSketch (powersketch)", {"color": "#0b6e99", "marker": "o"}),
    "scikit-learn": ("PolynomialCountSketch (scikit-learn)", {"color": "#d9730d", "marker": "s"}),
    "exact": ("exact kernel", {"color": "#777777", "linestyle": "--"}),
}


@dataclass(frozen=True)
class Comparison:
    """What was measured at one degree; errors are relative, times in seconds."""

    degree: int
    error: float
    peer_error: float
    seconds: float
    peer_seconds: float
    exact_seconds: float


def main() -> None:
    X = load_digits().data
    X /= np.linalg.norm(X, axis=1).mean()
    console = Console()
    degrees = track(DEGREES, f"Sketching {len(X)} digits", console=console, transient=True)
    comparisons = [compare(X, degree) for degree in degrees]
    console.print(result_table(comparisons))
    console.print(meaning(comparisons[0], comparisons[-1]), highlight=False)
    draw(comparisons, PICTURE)
    console.print(f"Picture: {PICTURE.resolve()}", soft_wrap=True, highlight=False)


def compare(X: np.ndarray, degree: int) -> Comparison:
    options = {"degree": degree, "n_components": COMPONENTS, "random_state": 0}
    ours, peer = PolynomialSketch(**options).fit(X), PolynomialCountSketch(**options).fit(X)
    exact_seconds, K = timed(lambda: polynomial_kernel(X, degree=degree, gamma=1, coef0=0), 3)
    seconds, Z = timed(lambda: in_batches(ours, X), 10)
    peer_seconds, peer_Z = timed(lambda: in_batches(peer, X), 1)
    return Comparison(
        degree,
        relative_error(Z, K),
        relative_error(peer_Z, K),
        seconds,
        peer_seconds,
        exact_seconds,
    )


def in_batches(sketch: Any, X: np.ndarray) -> np.ndarray:
    starts = range(0, len(X), BATCH_ROWS)
    return np.vstack([sketch.transform(X[start : start + BATCH_ROWS]) for start in starts])


def timed(call: Callable[[], np.ndarray], repetitions: int) -> tuple[float, np.ndarray]:
    """Return the shortest time and the result."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def relative_error(Z: np.ndarray, K: np.ndarray) -> float:
    """Return ‖Z Zᵀ − K‖ / ‖K‖ in the Frobenius norm."""
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def result_table(comparisons: list[Comparison]) -> Table:
    table = Table(title=SUBJECT, box=SIMPLE_HEAD, title_justify="left", caption_justify="left")
    table.caption = "error: ‖Z Zᵀ − K‖ / ‖K‖; ms: transform of all rows, or the exact kernel K"
    errors, times = ("powersketch", "scikit-learn"), ("powersketch", "scikit-learn", "exact")
    headings = [*(f"error\n{name}" for name in errors), *(f"ms\n{name}" for name in times)]
    for heading in ("degree", *headings):
        table.add_column(heading, justify="right")
    for at in comparisons:
        errors = (f"{at.error:.4f}", f"{at.peer_error:.4f}")
        times = (at.seconds, at.peer_seconds, at.exact_seconds)
        table.add_row(str(at.degree), *errors, *(f"{1e3 * seconds:,.0f}" for seconds in times))
    return table


def meaning(first: Comparison, last: Comparison) -> str:
    return (
        f"Degree {last.degree} takes PolynomialSketch {last.seconds / first.seconds:.1f} times as "
        f"long as degree {first.degree}, PolynomialCountSketch "
        f"{last.peer_seconds / first.peer_seconds:.0f} times. There PolynomialSketch is "
        f"{last.peer_seconds / last.seconds:.0f} times faster and its error "
        f"{last.peer_error / last.error:.0f} times smaller (an error of 1 is that of features "
        "that are all zero). The exact kernel takes time and memory for every pair of rows, "
        "features for every row."
    )


def draw(comparisons: list[Comparison], path: Path) -> None:
    """Save error against degree and time against degree."""
    figure, (errors, times) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
    add_line(errors, "powersketch", [at.error for at in comparisons])
    add_line(errors, "scikit-learn", [at.peer_error for at in comparisons])
    finish(errors, "Error of the features", "‖Z Zᵀ − K‖ / ‖K‖", "{:g}")
    add_line(times, "powersketch", [1e3 * at.seconds for at in comparisons])
    add_line(times, "scikit-learn", [1e3 * at.peer_seconds for at in comparisons])
    add_line(times, "exact", [1e3 * at.exact_seconds for at in comparisons])
    finish(times, "Time of the transform", "milliseconds", "{:,.0f}")
    figure.suptitle(SUBJECT, fontsize=11)
    figure.legend(
        *times.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def add_line(axes: Any, name: str, values: list[float]) -> None:
    label, style = LINES[name]
    axes.plot(DEGREES, values, **style, label=label, linewidth=2)


def finish(axes: Any, title: str, unit: str, tick: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set(xlabel="degree of the kernel", ylabel=unit)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(DEGREES, [str(degree) for degree in DEGREES])
    axes.yaxis.set_major_formatter(lambda value, _: tick.format(value))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
