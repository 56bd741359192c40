"""Models on disk: saved, loaded and described without running anything from the file."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from powersketch.exceptions import InputError, InputTypeError, warn_user
from powersketch.execution import memory_allowance
from powersketch.files import check_outputs
from powersketch.parameters import checked_truth
from powersketch.storage.classes import SCIKIT_LEARN_VERSION, is_estimator
from powersketch.storage.container import FORMAT, Content, read_content, write_content
from powersketch.storage.decoding import Decoder, refusal
from powersketch.storage.encoding import Encoder, drawn_while_loading


def save(model: Any, path: str | os.PathLike[str], *, compact: bool = True) -> None:
    """Write a fitted model to one file that is safe to load.

    The file holds a description in JSON and plain arrays, and no code. Sketches are stored as
    their seed and sizes, where their tables can be drawn anew, and the checksum of these.

    Parameters
    ----------
    model : estimator
        Every estimator of this package, and pipelines of them with scikit-learn's scalers,
        encoders and linear models.
    path : str or path
        The file, which appears under this name when it is complete.
    compact : bool, default=True
        Whether to leave out what predictions do not need: the sums of ridge models
        (`statistics_`), without which there are no standard deviations of predictions on features,
        and no `partial_fit`; and the factors of landmarks.

    Examples
    --------
    >>> import tempfile, numpy as np, powersketch
    >>> X = np.random.RandomState(0).rand(100, 5)
    >>> sketch = powersketch.PolynomialSketch(degree=3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     powersketch.save(sketch, f"{folder}/sketch.model")
    ...     again = powersketch.load(f"{folder}/sketch.model")
    >>> bool((again.transform(X) == sketch.transform(X)).all())
    True
    """
    checked_truth("compact", compact)
    if not is_estimator(type(model)):
        raise InputTypeError(
            f"model is a {type(model).__name__}; allowed is a fitted estimator or a pipeline."
        )
    check_is_fitted(model)
    check_outputs([], [Path(path)])
    encoder = Encoder(compact=compact)
    with memory_allowance(drawn_while_loading()):
        encoded = encoder.encode(model, type(model).__name__)
    description = {
        "powersketch": version("powersketch"),
        "scikit-learn": SCIKIT_LEARN_VERSION,
        "compact": bool(compact),
        "object": encoded,
    }
    write_content(Path(path), description, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model of a file that :func:`save` has written.

    Nothing from the file is run: it names classes of a fixed list, their parameters and arrays. It
    is refused if a single bit of it is changed, and takes no more memory than its size accounts
    for and a few MiB. Predictions are the same, bit by bit. Tables of sketches that take more than
    8 MiB are drawn by the first transform, if there is memory for them.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    InputError
        Where the file is no model, is damaged, or was written by a later version.
    """
    return _loaded(Path(path))[0]


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file holds, in words and numbers.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        The class, the parameters that differ from the defaults, the steps of a pipeline, sizes,
        seed, what was chosen and why, versions, the size of the file and its checksum.
    """
    model, content = _loaded(Path(path))
    stored = content.description
    return {
        **_facts(model),
        "compact": stored["compact"],
        "powersketch": stored["powersketch"],
        "scikit_learn": stored["scikit-learn"],
        "format": FORMAT,
        "arrays": len(content.arrays),
        "bytes": content.size,
        "sha256": content.checksum,
    }


def _loaded(path: Path) -> tuple[Any, Content]:
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of a model.")
    try:
        content = read_content(path)
        with memory_allowance(drawn_while_loading()):
            model = Decoder(path.name, content.arrays).decode(content.description["object"])
        if not is_estimator(type(model)):
            raise ValueError("it holds no estimator")
        written_with = str(content.description["scikit-learn"])
    except OSError:
        raise
    # What a damaged description brings about in constructors cannot be foreseen.
    except Exception as error:
        raise refusal(path.name, error) from error
    if written_with.split(".")[:2] != SCIKIT_LEARN_VERSION.split(".")[:2]:
        warn_user(
            f"{path.name} was saved with scikit-learn {written_with}, and this is "
            f"{SCIKIT_LEARN_VERSION}: parts of scikit-learn may work differently."
        )
    return model, content


def _facts(model: Any) -> dict[str, Any]:
    """Return what there is to say about an estimator, without arrays."""
    if isinstance(model, Pipeline):
        steps = {name: _facts(step) for name, step in model.steps if not isinstance(step, str)}
        return {"class": "Pipeline", "steps": steps}
    defaults = type(model)().get_params(deep=False) if _has_defaults(model) else {}
    parameters = {
        name: _shown(value)
        for name, value in model.get_params(deep=False).items()
        if name not in defaults or repr(value) != repr(defaults[name])
    }
    facts: dict[str, Any] = {"class": type(model).__name__, "parameters": parameters}
    for name in _TOLD:
        value = getattr(model, name, None)
        if value is not None:
            facts[name.rstrip("_")] = _shown(value)
    if hasattr(model, "feature_names_in_"):
        facts["columns"] = [str(name) for name in model.feature_names_in_]
    if hasattr(model, "classes_"):
        facts["classes"] = model.classes_.tolist()
    return facts


# Fitted attributes that are numbers, texts, or have a text.
_TOLD = (
    "n_features_in_",
    "n_components_",
    "seed_",
    "kernel_",
    "method_",
    "expansion_",
    "alpha_",
    "choice_",
    "recipe_",
)


def _has_defaults(model: Any) -> bool:
    try:
        type(model)()
    except TypeError:
        return False
    return True


def _shown(value: Any) -> Any:
    if isinstance(value, bool | int | float | str | None):
        return value
    return [_shown(part) for part in value] if isinstance(value, list) else str(value)
