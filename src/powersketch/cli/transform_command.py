"""The command ``powersketch transform``: features of a file's rows, block by block."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, print_lines, progress, shown_warnings
from powersketch.cli.map_options import MapOptions, stored_map
from powersketch.cli.option_groups import KernelOptions
from powersketch.cli.options import model_option, output_option
from powersketch.exceptions import InputError


def transform_command(
    file: given_as.DataFile,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Where features are written: .npy, .npz, .parquet or .zarr."
        ),
    ],
    kernel: KernelOptions = KernelOptions(),
    features: MapOptions = MapOptions(),
    model: Annotated[
        Path | None,
        model_option(help="A stored feature map to apply; without it, one is fitted."),
    ] = None,
    fit_rows: Annotated[
        int, model_option(help="On how many of the first rows a map is fitted.")
    ] = 20_000,
    target: Annotated[
        str | None,
        given_as.data_option(help="Name or number (from 0) of a column to leave out."),
    ] = None,
    header: given_as.Header = None,
    dtype: given_as.DType = None,
    save_model: Annotated[
        Path | None, output_option(help="Where the fitted map is stored, for --model.")
    ] = None,
    resume: Annotated[
        bool,
        output_option("--resume", help="Go on where an interrupted run of the same command ended."),
    ] = False,
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> None:
    """Write the features of all rows of a file, in memory for a few blocks of them.

    The file appears under its name when it is complete. The same seed gives the same bits.

    Example: powersketch transform rows.npy features.npy --degree 4 --n-components 256 --seed 1
    """
    from powersketch.files import check_matrix, check_outputs, open_rows, transform_file
    from powersketch.parameters import checked_integer
    from powersketch.storage import save

    path = Path(file)
    check_outputs([path, *([model] if model else [])], [_file(output), save_model])
    parameters = kernel.parameters()
    checked_integer("fit-rows", fit_rows, 2)
    if resume and features.seed is None and model is None:
        raise InputError(
            "--resume needs --seed, or the stored map of --model: without them, the "
            "features of another run are others."
        )
    stored = None if model is None else stored_map(model, parameters, features.settings)
    source = open_rows(path, target, header)
    with shown_warnings(), progress("fitting") as bar:
        if stored is None:
            X = source.first(fit_rows)
            check_matrix(path, X)
            X = X if dtype is None else X.astype(dtype)
            sketch = features.unfitted(kernel.exact(X)).fit(X)
        else:
            sketch = stored
        rows, count = transform_file(
            sketch,
            source,
            output,
            dtype=dtype,
            resume=resume,
            run=_name_of(sketch),
            progress=lambda done, total: bar(done, total, f"{done} rows"),
        )
    if save_model is not None:
        save(sketch, save_model)
    figures: dict[str, Any] = {"rows": rows, "features": count, "output": str(output)}
    if as_json:
        print_json(figures)
    else:
        print_lines([f"{output} holds the features of all rows, {rows} × {count}."])


def _file(output: Path) -> Path | None:
    """Return an output that is a file; a .zarr store is a folder, which may be there already."""
    return None if output.suffix.lower() == ".zarr" and output.is_dir() else output


def _name_of(sketch: Any) -> str:
    """Return what tells the map from others."""
    return f"{sketch!r} {getattr(sketch, 'seed_', None)} {getattr(sketch, 'kernel_', None)!r}"
