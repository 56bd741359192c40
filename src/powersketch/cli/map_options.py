"""A feature map from the options of a command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from powersketch.cli import options as given_as
from powersketch.cli.options import given, merged, model_option, settings_for, size
from powersketch.exceptions import InputError

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


@dataclass(frozen=True)
class MapOptions:
    """A feature map of a kernel."""

    n_components: Size = DEFAULT_SIZE
    eps: Eps = None
    method: MethodOfMap = None
    landmarks: Landmarks = False
    settings: given_as.Settings = None
    seed: given_as.Seed = None
    jobs: given_as.Jobs = None

    def unfitted(self, exact: Any) -> Any:
        """Return the map of a kernel, not yet fitted."""
        from powersketch import LeverageNystroem
        from powersketch.feature_maps import map_for

        chosen = given(
            n_components=size(self.n_components),
            eps=self.eps,
            random_state=self.seed,
            n_jobs=self.jobs,
        )
        by_method = given(method=self.method)
        if self.landmarks:
            settings = settings_for(LeverageNystroem, self.settings)
            options = merged({"kernel": exact, **chosen}, settings)
            return LeverageNystroem(**merged(options, by_method))
        sketch = map_for(exact, int(DEFAULT_SIZE))
        return sketch.set_params(
            **merged({**chosen, **by_method}, settings_for(type(sketch), self.settings))
        )


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
