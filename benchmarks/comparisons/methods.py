"""All methods side by side on MNIST: error at equal size, and error at equal time."""

from collections.abc import Callable, Sequence

from benchmarks.data import mnist, unit_rows
from benchmarks.figures import curve_figure
from benchmarks.report import Bar, Row, Table
from powersketch import compare
from powersketch.comparison import METHODS, Comparison, Measurement
from powersketch.kernels import Polynomial

OURS = "power"
DEGREES, QUICK_DEGREES = (2, 4, 8, 16, 32), (3, 16)
SIZES, QUICK_SIZES = (128, 256, 512, 1024, 2048), (128, 512)
# The fit of a compressed map takes minutes at large sizes; it has a table of its own.
COMPRESSED = "power-compressed"
LEFT_OUT = (COMPRESSED, "tree-literal", "ctr-literal", "nystroem-uniform")
WITHIN = 1.1
# That of features that are all zero.
ERROR_OF_NOTHING = 1.0
COLOURS = ("#0b6e99", "#d9730d", "#6a994e", "#8c2f39", "#7b6fb0", "#777777", "#c9a227", "#4aa3c7")
MARKERS = "os^vDPx*"


def equal_size(*, quick: bool) -> Table:
    found = _comparisons(quick=quick)
    rows = [_size_row(degree, comparison) for degree, comparison in found.items()]
    return Table(
        "MNIST: error of oblivious methods at equal size",
        "Relative Frobenius errors of (½ + ½⟨x, y⟩)^p, rows of norm one, by powersketch.compare: "
        f"that of method='{OURS}', the default, over that of the best other oblivious method "
        "(scikit-learn's count sketch included), by number of features. In brackets its error and "
        "the other method. Errors above 1, which features that are all zero have, are not held to "
        "anything: a sketch that vanishes for most rows comes close to 1.",
        rows,
    )


def _size_row(degree: int, comparison: Comparison) -> Row:
    cells: dict[str, int | str] = {"degree": degree}
    bars = []
    for size in comparison.components:
        rivals = [
            m for m in _working(comparison) if m.n_components == size and _is_oblivious(m.method)
        ]
        ours = next(m for m in rivals if m.method == OURS)
        best = min((m for m in rivals if m.method != OURS), key=lambda m: m.frobenius)
        ratio = ours.frobenius / best.frobenius
        cells[str(size)] = f"{ratio:.2f} ({ours.frobenius:.3g}; {best.method})"
        if best.frobenius < ERROR_OF_NOTHING:
            bars.append(Bar(f"≤ {WITHIN} at {size}", ratio <= WITHIN))
    return Row(cells, bars)


def equal_time(*, quick: bool) -> Table:
    found = _comparisons(quick=quick)
    rows = [_time_row(degree, comparison) for degree, comparison in found.items()]
    title = "MNIST: error against the time of a transform"
    panels = {f"degree {degree}": _curves(comparison) for degree, comparison in found.items()}
    return Table(
        title,
        "Every transform time that was measured is a budget. Counted are those within which "
        f"method='{OURS}' has at most {WITHIN} × the smallest error of all methods, Nyström's and "
        "scikit-learn's included; below them, the method that wins most of the others.",
        rows,
        figure=curve_figure(
            "comparison_mnist",
            title,
            panels,
            styles=_styles(panels),
            x="µs per row",
            y="relative error",
        ),
    )


def _time_row(degree: int, comparison: Comparison) -> Row:
    working = _working(comparison)
    ours = [m for m in working if m.method == OURS]
    budgets = sorted(m.transform_seconds for m in working)
    budgets = [b for b in budgets if b >= min(m.transform_seconds for m in ours)]
    lost: list[str] = []
    for budget in budgets:
        best = _best_within(working, budget)
        if _best_within(ours, budget).frobenius > WITHIN * best.frobenius:
            lost.append(best.method)
    won = len(budgets) - len(lost)
    cells = {
        "degree": degree,
        "budgets": len(budgets),
        "best or near it": won,
        "else mostly": max(set(lost), key=lost.count) if lost else "–",
    }
    return Row(cells, [Bar("≥ half", 2 * won >= len(budgets))])


def _best_within(measurements: Sequence[Measurement], seconds: float) -> Measurement:
    within = [m for m in measurements if m.transform_seconds <= seconds]
    return min(within, key=lambda m: m.frobenius)


def _curves(comparison: Comparison) -> dict[str, list[tuple[float, float]]]:
    shown = [name for name in comparison.methods if not name.endswith("-literal")]
    return {
        name: [
            (1e6 * m.seconds_per_row, m.frobenius) for m in _working(comparison) if m.method == name
        ]
        for name in shown
    }


def _styles(
    panels: dict[str, dict[str, list[tuple[float, float]]]],
) -> dict[str, dict[str, object]]:
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    return {
        name: {
            "color": COLOURS[i % len(COLOURS)],
            "marker": MARKERS[i % len(MARKERS)],
            "linewidth": 2.4 if name == OURS else 1.2,
            "linestyle": "-" if i < len(COLOURS) else "--",
        }
        for i, name in enumerate(names)
    }


def _working(comparison: Comparison) -> list[Measurement]:
    return [m for m in comparison.measurements if not m.failed]


def _is_oblivious(name: str) -> bool:
    return METHODS[name].kind == "oblivious" or name == "sklearn-countsketch"


def _once(measure: Callable[..., dict[int, Comparison]]) -> Callable[..., dict[int, Comparison]]:
    """Keep the comparisons, which both tables are made of."""
    kept: dict[bool, dict[int, Comparison]] = {}

    def remembered(*, quick: bool) -> dict[int, Comparison]:
        if quick not in kept:
            kept[quick] = measure(quick=quick)
        return kept[quick]

    return remembered


@_once
def _comparisons(*, quick: bool) -> dict[int, Comparison]:
    X = unit_rows(mnist().astype("float32"))
    return {
        degree: compare(
            X,
            Polynomial(degree, 0.5, 0.5),
            methods=[
                name
                for name, method in METHODS.items()
                if name not in LEFT_OUT and method.supports(Polynomial(degree)) is None
            ],
            components=QUICK_SIZES if quick else SIZES,
            seeds=1,
            pilot_rows=500 if quick else 2100,
            random_state=0,
        )
        for degree in (QUICK_DEGREES if quick else DEGREES)
    }


def two_stages(*, quick: bool) -> Table:
    X = unit_rows(mnist().astype("float32"))
    size = 64 if quick else 256
    rows = []
    for degree in QUICK_DEGREES if quick else (2, 3, 7, 16):
        comparison = compare(
            X,
            Polynomial(degree, 0.5, 0.5),
            methods=[OURS, COMPRESSED, "nystroem"],
            components=[size],
            seeds=1 if quick else 3,
            random_state=0,
        )
        found = {m.method: m for m in _working(comparison)}
        rows.append(
            Row(
                {"degree": degree}
                | {name: m.frobenius for name, m in found.items()}
                | {f"{name}, µs per row": 1e6 * m.seconds_per_row for name, m in found.items()}
            )
        )
    return Table(
        "MNIST: a sketch compressed to its main directions",
        f"(½ + ½⟨x, y⟩)^p, rows of norm one, {size} features; relative Frobenius error on rows "
        "that no map was fitted on. The compressed sketch has four times as many features first.",
        rows,
    )


MEASUREMENTS = (equal_size, equal_time, two_stages)
