"""The command ``powersketch demo``: what the library is for, within a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, print_lines, print_table, progress, shown_warnings
from powersketch.cli.options import output_option

if TYPE_CHECKING:
    from powersketch.arrays import Float64
    from powersketch.pages import Chart
    from powersketch.reports import ModelReport

_DEGREES = (2, 4, 8, 16, 32, 64)
_COMPONENTS = 1024
_BATCH_ROWS = 256  # PolynomialCountSketch needs degree · n_components complex numbers for every row
_SUBJECT = f"Kernel ⟨x, y⟩^degree on 1797 digits, {_COMPONENTS} features"
_STEPS = len(_DEGREES) + 5


@dataclass(frozen=True)
class _Figures:
    """What was measured at one degree; errors are relative, times in seconds."""

    degree: int
    error: float
    peer_error: float
    seconds: float
    peer_seconds: float


def demo_command(
    folder: Annotated[
        Path, output_option(help="Where the picture and the page are written.")
    ] = Path(),
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> None:
    """Show in a minute what the library is for, on data that comes with scikit-learn.

    Errors and times of features beside scikit-learn's, and the automatic model on a table beside a
    linear model and gradient boosting. Writes a picture and a page.

    Example: powersketch demo
    """
    from powersketch.files import atomic_write, check_outputs

    drawing, page = folder / "powersketch-demo.svg", folder / "powersketch-demo.html"
    check_outputs([], [drawing, page])
    with shown_warnings(), progress("sketching digits") as bar:
        figures = _measured(lambda done, text: bar(done, _STEPS, text))
        report = _model_report(lambda done, text: bar(done, _STEPS, text))
    with atomic_write(drawing) as temporary:
        temporary.write_text(_picture(figures), encoding="utf-8")
    report.save_html(page)
    if as_json:
        print_json({"features": [asdict(each) for each in figures], "model": report.to_dict()})
        return
    print_lines([_SUBJECT])
    print_table(_rows(figures))
    print_lines([_meaning(figures[0], figures[-1]), "", report.title])
    print_table(report.table())
    print_lines([report.summary, *report.choice, "", f"Picture: {drawing}", f"Page: {page}"])


def _measured(tell: Callable[[int, str], None]) -> list[_Figures]:
    import numpy as np
    from sklearn.datasets import load_digits

    X = load_digits().data
    X /= np.linalg.norm(X, axis=1).mean()
    figures = []
    for done, degree in enumerate(_DEGREES):
        tell(done, f"degree {degree}")
        figures.append(_at_degree(X, degree))
    return figures


def _at_degree(X: Float64, degree: int) -> _Figures:
    from sklearn.kernel_approximation import PolynomialCountSketch

    from powersketch import PolynomialSketch
    from powersketch.kernels import Polynomial

    options: dict[str, Any] = {
        "degree": degree,
        "n_components": _COMPONENTS,
        "random_state": 0,
    }
    K = Polynomial(degree)(X)
    ours, peer = PolynomialSketch(**options).fit(X), PolynomialCountSketch(**options).fit(X)
    seconds, Z = _timed(lambda: ours.transform(X), repetitions=10)
    peer_seconds, peer_Z = _timed(lambda: _in_batches(peer, X), repetitions=1)
    return _Figures(degree, _error(Z, K), _error(peer_Z, K), seconds, peer_seconds)


def _timed(call: Callable[[], Float64], repetitions: int) -> tuple[float, Float64]:
    """Return the shortest time and the result."""
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - begin)
    return min(times), result


def _in_batches(sketch: Any, X: Float64) -> Float64:
    import numpy as np

    starts = range(0, len(X), _BATCH_ROWS)
    return np.vstack([sketch.transform(X[start : start + _BATCH_ROWS]) for start in starts])


def _error(Z: Float64, K: Float64) -> float:
    """Return ‖Z Zᵀ − K‖ / ‖K‖ in the Frobenius norm."""
    import numpy as np

    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def _rows(figures: Sequence[_Figures]) -> list[tuple[str, ...]]:
    headings = (
        "degree",
        "error, powersketch",
        "error, scikit-learn",
        "ms, powersketch",
        "ms, scikit-learn",
    )
    rows = [
        (
            str(at.degree),
            f"{at.error:.4f}",
            f"{at.peer_error:.4f}",
            f"{1e3 * at.seconds:,.1f}",
            f"{1e3 * at.peer_seconds:,.0f}",
        )
        for at in figures
    ]
    return [headings, *rows]


def _meaning(first: _Figures, last: _Figures) -> str:
    return (
        "Errors are ‖Z Zᵀ − K‖ / ‖K‖; that of features that are all zero is 1. Degree "
        f"{last.degree} takes PolynomialSketch {last.seconds / first.seconds:.1f} times as long as "
        f"degree {first.degree}, PolynomialCountSketch "
        f"{last.peer_seconds / first.peer_seconds:.0f} times. There PolynomialSketch is "
        f"{last.peer_seconds / last.seconds:.0f} times faster, and its error "
        f"{last.peer_error / last.error:.0f} times smaller."
    )


def _model_report(tell: Callable[[int, str], None]) -> ModelReport:
    from sklearn.datasets import load_diabetes

    from powersketch.reports import assess, automatic_model

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    done = iter(range(len(_DEGREES), _STEPS))
    return assess(
        automatic_model("regression", random_state=0),
        X,
        y,
        random_state=0,
        targets=["disease progression"],
        data_name="442 patients with diabetes (scikit-learn)",
        callback=lambda text: tell(next(done), text),
    )


def _picture(figures: Sequence[_Figures]) -> str:
    from powersketch.pages import Look, picture

    legend = [("PolynomialSketch (powersketch)", Look(0, bold=True))]
    legend.append(("PolynomialCountSketch (scikit-learn)", Look(1)))
    charts = [
        _chart("error", "‖Z Zᵀ − K‖ / ‖K‖", figures, ("error", "peer_error"), legend),
        _chart("time", "seconds", figures, ("seconds", "peer_seconds"), legend),
    ]
    return picture(_SUBJECT, charts, legend)


def _chart(
    title: str,
    unit: str,
    figures: Sequence[_Figures],
    fields: Sequence[str],
    legend: Sequence[tuple[str, Any]],
) -> Chart:
    from powersketch.pages import Chart, Line, LogAxis, Point, across, tick_text, upwards

    lines = []
    for (name, look), field in zip(legend, fields, strict=True):
        path = [(float(at.degree), float(getattr(at, field))) for at in figures]
        points = [Point(x, y, f"{name}, degree {x:g}: {y:.3g}") for x, y in path]
        lines.append(Line(name, look, path, points))
    heights = [y for line in lines for _, y in line.path]
    return Chart(
        title,
        "",
        lines,
        across(LogAxis, _DEGREES, label="degree", text="{:.0f}".format, choices=_DEGREES),
        upwards(LogAxis, heights, label=unit, text=tick_text),
    )
