"""Error against seconds and memory: a table of methods by size, and its picture."""

from collections.abc import Callable, Mapping, Sequence

from benchmarks.figures import DOTS, OURS, curve_figure
from benchmarks.report import Bar, Row, Table, from_fresh_process

Sizes = Mapping[str, Sequence[int]]
Figures = Mapping[tuple[str, int], Mapping[str, float]]


def measured_sizes(module: str, sizes: Sizes, *arguments: object) -> dict:
    """Return what a fresh process prints for every method and size."""
    return {
        (method, size): from_fresh_process(module, method, size, *arguments)
        for method, each in sizes.items()
        for size in each
    }


def frontier_table(
    name: str,
    title: str,
    note: str,
    measured: Figures,
    *,
    error: str,
    bars: Callable[[str, int, Figures], Sequence[Bar]] = lambda *_: (),
) -> Table:
    """Return the table and draw its picture; the first method is ours."""
    methods = list(dict.fromkeys(method for method, _ in measured))
    panels = {
        axis: {
            method: [(row[axis], row["error"]) for (by, _), row in measured.items() if by == method]
            for method in methods
        }
        for axis in ("seconds", "GB")
    }
    styles = dict(zip(methods, (OURS, *DOTS), strict=False))
    picture = curve_figure(name, title, panels, styles=styles, x="seconds, gigabytes", y=error)
    rows = [
        Row({"method": method, "size": size, **figures}, bars(method, size, measured))
        for (method, size), figures in measured.items()
    ]
    whole = "the memory is that of the whole process, each fit in one of its own."
    return Table(title, f"{note} Two cores; {whole}", rows, figure=picture)
