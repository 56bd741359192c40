"""The command ``powersketch solve``: a kernel system of the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, print_lines, progress, shown_warnings
from powersketch.cli.option_groups import DataOptions, KernelOptions
from powersketch.cli.options import data_option, model_option, output_option
from powersketch.exceptions import InputError

_NOT_CONVERGED = 1


def solve_command(
    file: given_as.DataFile,
    target: Annotated[
        list[str],
        data_option(
            help="Name or number (from 0) of the column of right-hand sides; may be repeated."
        ),
    ],
    kernel: KernelOptions = KernelOptions("gaussian"),
    alpha: Annotated[float, model_option(help="Added to the diagonal of K.")] = 0.0,
    tol: Annotated[float, model_option(help="The relative residual to reach.")] = 1e-6,
    operator: Annotated[
        str, model_option(help="auto, exact or sketched: the system that is solved.")
    ] = "auto",
    preconditioner: Annotated[
        str,
        model_option(help="auto, cholesky, sketched-data, features, nystroem or none."),
    ] = "auto",
    method: Annotated[str, model_option(help="cg or gradient.")] = "cg",
    settings: given_as.Settings = None,
    data: DataOptions = DataOptions(),
    seed: given_as.Seed = None,
    jobs: given_as.Jobs = None,
    output: Annotated[
        Path | None,
        output_option(
            "--output",
            "-o",
            help="The .npy file of x; FILE's name with -solution.npy in the working directory if "
            "not given.",
        ),
    ] = None,
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> int:
    """Solve (K + alpha I) x = y for the kernel matrix K of the rows of a file.

    Prints what was reached: the residual is recomputed from x. The exit code is 1 if it is not
    within the tolerance; x is written all the same.

    Example: powersketch solve rows.npy --target 0 --kernel gaussian --alpha 0.1
    """
    from powersketch import solve_kernel_system
    from powersketch.files import check_outputs

    path = Path(file)
    solution = output or Path(f"{path.stem}-solution.npy")
    check_outputs([path], [solution])
    exact = kernel.exact()
    options = given_as.merged(
        {
            "alpha": alpha,
            "tol": tol,
            "operator": operator,
            "preconditioner": preconditioner,
            "method": method,
            "random_state": seed,
            "n_jobs": jobs,
        },
        given_as.settings_for(solve_kernel_system, settings),
    )
    rows = data.load(path, target).numbers()
    y = _checked_numbers(rows.y)
    with shown_warnings(), progress("kernel and preconditioner") as bar:
        result = solve_kernel_system(
            rows.X,
            y,
            exact,
            callback=lambda done, residual: bar(done, None, f"residual {residual:.2g}"),
            **options,
        )
    _write(result.x, solution)
    figures = {
        name: getattr(result, name)
        for name in ("converged", "iterations", "residual", "message", "operator", "preconditioner")
    }
    if as_json:
        print_json({**figures, "converged": bool(result.converged), "solution": str(solution)})
    else:
        print_lines([str(result.message), f"The solution is {solution}."])
    return 0 if result.converged else _NOT_CONVERGED


def _checked_numbers(y: Any) -> Any:
    if y.dtype.kind not in "iufb":
        raise InputError(
            "right-hand sides have to be numbers, and this --target holds texts: give another one."
        )
    return y


def _write(x: object, path: Path) -> None:
    import numpy as np

    from powersketch.files import atomic_write

    with atomic_write(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, np.asarray(x))
