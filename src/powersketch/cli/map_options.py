"""A feature map from the options of a command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from powersketch.cli.options import given, merged, model_option, settings_for, size
from powersketch.exceptions import InputError

if TYPE_CHECKING:
    from powersketch.arrays import Rows

Size = Annotated[
    str, model_option("--n-components", help='Number of features, or "auto" together with --eps.')
]
Eps = Annotated[
    float | None,
    model_option(help="With --n-components auto: the relative error of the kernel to keep."),
]
MethodOfMap = Annotated[
    str | None,
    model_option(
        "--method",
        help="How the kernel is approximated: power, tree, tensorsketch, ctr, adaptive, fourier, "
        "and others by kernel; the library's choice if not given.",
    ),
]
Landmarks = Annotated[
    bool,
    model_option("--landmarks", help="Take kernel values at landmarks among the rows (Nyström)."),
]
DEFAULT_SIZE = "100"


def feature_map(
    kernel: str,
    parameters: dict[str, Any],
    X: Rows,
    *,
    n_components: str,
    eps: float | None,
    method: str | None,
    landmarks: bool,
    settings: Iterable[str] | None,
    seed: int | None,
    jobs: int | None,
) -> Any:
    """Return the unfitted map; a gamma such as "scale" is found in the rows."""
    from powersketch import LeverageNystroem
    from powersketch.feature_maps import map_for
    from powersketch.kernels import as_kernel

    exact = as_kernel(kernel, X, **parameters)
    chosen = given(n_components=size(n_components), eps=eps, random_state=seed, n_jobs=jobs)
    if landmarks:
        options = merged({"kernel": exact, **chosen}, settings_for(LeverageNystroem, settings))
        return LeverageNystroem(**merged(options, given(method=method)))
    sketch = map_for(exact, int(DEFAULT_SIZE))
    options = merged({**chosen, **given(method=method)}, settings_for(type(sketch), settings))
    return sketch.set_params(**options)


def stored_map(model: Path, parameters: dict[str, Any], settings: Iterable[str] | None) -> Any:
    """Return the map of a file; options that would make another one are refused."""
    from powersketch.storage import load

    if parameters or settings:
        raise InputError(
            "a stored map brings its own kernel and parameters: leave --model or these options out."
        )
    stored = load(model)
    if not hasattr(stored, "transform"):
        raise InputError(
            f"{model.name} holds a {type(stored).__name__}, which makes no features: use "
            "powersketch predict, or give a stored feature map."
        )
    return stored
