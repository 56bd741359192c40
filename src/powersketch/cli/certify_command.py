"""The command ``powersketch certify``: how far a feature map is from its kernel on a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from powersketch.cli import map_options
from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, print_lines, progress, shown_warnings
from powersketch.cli.options import model_option


def certify_command(
    file: given_as.DataFile,
    model: Annotated[
        Path | None,
        model_option(help="A stored feature map; without it, one is fitted to the file."),
    ] = None,
    kernel: given_as.KernelName = "polynomial",
    degree: given_as.Degree = None,
    gamma: given_as.Gamma = None,
    coef0: given_as.Coef0 = None,
    order: given_as.Order = None,
    depth: given_as.Depth = None,
    n_components: map_options.Size = map_options.DEFAULT_SIZE,
    eps: map_options.Eps = None,
    method: map_options.MethodOfMap = None,
    landmarks: map_options.Landmarks = False,
    settings: given_as.Settings = None,
    alpha: Annotated[
        float | None,
        model_option(help="If given, Z Zᵀ + αI and K + αI are compared as quadratic forms, too."),
    ] = None,
    confidence: Annotated[
        float, model_option(help="Probability with which an interval holds the true value.")
    ] = 0.99,
    columns: given_as.Columns = None,
    drop: given_as.Drop = None,
    header: given_as.Header = None,
    dtype: given_as.DType = None,
    seed: given_as.Seed = None,
    jobs: given_as.Jobs = None,
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> None:
    """Measure how far features are from their kernel, and say how surely.

    Example: powersketch certify rows.npy --kernel gaussian --gamma 0.5 --n-components 512
    """
    from powersketch.accuracy import certify
    from powersketch.cli.data import load_data

    parameters = given_as.kernel_parameters(degree, gamma, coef0, order, depth)
    stored = None if model is None else map_options.stored_map(model, parameters, settings)
    X = load_data(Path(file), columns=columns, drop=drop, header=header, dtype=dtype).numbers().X
    with shown_warnings(), progress("features and kernel"):
        sketch = stored
        if sketch is None:
            sketch = map_options.feature_map(
                kernel,
                parameters,
                X,
                n_components=n_components,
                eps=eps,
                method=method,
                landmarks=landmarks,
                settings=settings,
                seed=seed,
                jobs=jobs,
            ).fit(X)
        certificate = certify(
            sketch, X, alpha=alpha, confidence=confidence, random_state=seed, n_jobs=jobs
        )
    if as_json:
        print_json(certificate.to_dict())
    else:
        print_lines([f"{sketch!r}", f"{certificate!r}"])
