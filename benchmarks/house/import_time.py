"""Time that importing the package and calling it first add, measured in fresh interpreters."""

from benchmarks.report import Row, Table, at_most, from_fresh_process

LIMIT = 45  # ms


def import_and_first_call(*, quick: bool) -> Table:
    runs = [from_fresh_process("benchmarks.house.import_probe") for _ in range(2 if quick else 7)]
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    added = best["import powersketch, after scikit-learn"]
    return Table(
        "Import and first call",
        f"Best of {len(runs)} fresh interpreters.",
        [
            Row({"step": name, "ms": ms}, [at_most(ms, LIMIT)] if ms == added else [])
            for name, ms in best.items()
        ],
    )


MEASUREMENTS = (import_and_first_call,)
