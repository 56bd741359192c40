"""The command ``powersketch certify``: how far a feature map is from its kernel on a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, print_lines, progress, shown_warnings
from powersketch.cli.map_options import MapOptions, stored_map
from powersketch.cli.option_groups import DataOptions, KernelOptions
from powersketch.cli.options import model_option


def certify_command(
    file: given_as.DataFile,
    model: Annotated[
        Path | None,
        model_option(help="A stored feature map; without it, one is fitted to the file."),
    ] = None,
    kernel: KernelOptions = KernelOptions(),
    features: MapOptions = MapOptions(),
    alpha: Annotated[
        float | None,
        model_option(help="If given, Z Zᵀ + αI and K + αI are compared as quadratic forms, too."),
    ] = None,
    confidence: Annotated[
        float, model_option(help="Probability with which an interval holds the true value.")
    ] = 0.99,
    data: DataOptions = DataOptions(),
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> None:
    """Measure how far features are from their kernel, and say how surely.

    Example: powersketch certify rows.npy --kernel gaussian --gamma 0.5 --n-components 512
    """
    from powersketch.accuracy import certify

    stored = None
    if model is not None:
        stored = stored_map(model, kernel.parameters(), features.settings)
    X = data.load(Path(file)).numbers().X
    with shown_warnings(), progress("features and kernel"):
        sketch = stored or features.unfitted(kernel.exact(X)).fit(X)
        certificate = certify(
            sketch,
            X,
            alpha=alpha,
            confidence=confidence,
            random_state=features.seed,
            n_jobs=features.jobs,
        )
    if as_json:
        print_json(certificate.to_dict())
    else:
        print_lines([f"{sketch!r}", f"{certificate!r}"])
