"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from powersketch.exceptions import InputError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

kernel_option = partial(typer.Option, rich_help_panel="Kernel")
model_option = partial(typer.Option, rich_help_panel="Model")
data_option = partial(typer.Option, rich_help_panel="Data")
output_option = partial(typer.Option, rich_help_panel="Output")

DataFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The data: a table (.csv, .tsv, .parquet, .feather) or rows of numbers (.npy, .npz, "
        ".svm, .libsvm, .svmlight, .mtx, .h5, .zarr).",
    ),
]
KernelName = Annotated[
    str,
    kernel_option(
        "--kernel",
        help="Which kernel: linear, polynomial (poly), gaussian (rbf), arc-cosine, neural-tangent "
        "(ntk) or dot-product.",
    ),
]
Degree = Annotated[
    int | None, kernel_option(help="Degree of the polynomial kernel, 2 if not given.")
]
Gamma = Annotated[
    str | None,
    kernel_option(
        help='Factor of inner products or squared distances, or "scale" for 1 / (columns · '
        'variance), or "median" for 1 / (median squared distance). 1 for the polynomial kernel '
        "if not given, scale for the Gaussian one.",
    ),
]
Coef0 = Annotated[
    float | None, kernel_option(help="Constant term of the polynomial kernel, 0 if not given.")
]
Order = Annotated[int | None, kernel_option(help="Order of the arc-cosine kernel, 1 if not given.")]
Depth = Annotated[
    int | None,
    kernel_option(help="Layers of the arc-cosine or neural tangent kernel, 1 if not given."),
]
Settings = Annotated[
    list[str] | None,
    model_option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other parameter of the estimator, by its name in Python; may be repeated.",
    ),
]
Columns = Annotated[
    str | None,
    data_option(help="Names or numbers of the columns to use, separated by commas; all others go."),
]
Drop = Annotated[
    str | None, data_option(help="Names or numbers of columns to leave out, separated by commas.")
]
DType = Annotated[
    str | None, data_option(help="float32 or float64; as the file has it if not given.")
]
Header = Annotated[
    bool | None,
    data_option(
        "--header/--no-header",
        help="Whether the first row of a .csv or .tsv file holds names; detected if not given.",
    ),
]
Encoding = Annotated[
    str | None,
    data_option(
        help="How a .csv or .tsv file is encoded, such as cp1252; UTF-8, or UTF-16 with a mark, if "
        "not given."
    ),
]
Prepare = Annotated[
    list[str] | None,
    data_option(
        "--prepare",
        metavar="NAME=VALUE",
        help="Any parameter of TablePreparation, such as max_categories=20 or dates=['day']; may "
        "be repeated.",
    ),
]
Seed = Annotated[
    int | None, model_option(help="Gives the same random numbers, and so the same result, again.")
]
Jobs = Annotated[int | None, model_option(help="Threads, -1 for all processors; one if not given.")]
AsJson = Annotated[
    bool, output_option("--json", help="Print the result as JSON, for other programs.")
]
DEBUG = "--debug"
# :func:`powersketch.cli.main.main` looks for it among all arguments, because errors may come before
# options are understood.
Debug = Annotated[bool, output_option(DEBUG, help="Show where errors arise.")]


def parts_of(text: str | None) -> list[str]:
    """Return what stands between commas; nothing for None."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def integer(name: str, text: str) -> int:
    """Return a whole number, or say what is wrong with the text."""
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{name} has {text!r}, which is no whole number; allowed are numbers of at least 1, "
            "separated by commas: give for instance 128,512."
        ) from None


def size(text: str) -> int | str:
    """Return a number of features, or "auto"."""
    return text if text == "auto" else integer("n-components", text)


def number_or_name(name: str, text: str | None, names: Sequence[str]) -> float | str | None:
    """Return a number, one of the names, or None where nothing was given."""
    if text is None or text in names:
        return text
    try:
        return float(text)
    except ValueError:
        allowed = " nor ".join(names)
        raise InputError(
            f"{name}={text} is neither a number nor {allowed}: give for instance 0.5."
        ) from None


def bytes_from(option: str, text: str) -> int:
    """Return a number of bytes from a number with a unit.

    Examples
    --------
    >>> from powersketch.cli.options import bytes_from
    >>> bytes_from("budget-memory", "1.5G")
    1610612736
    """
    stripped = text.strip().upper().removesuffix("B").removesuffix("I")
    number = stripped.rstrip("KMGT")
    unit = stripped[len(number) :]
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise InputError(
            f"{option}={text} is no amount of memory: give bytes, or a number with K, M, G or T, "
            "such as 500M."
        ) from None


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: all others are left to the library's own defaults."""
    return {name: value for name, value in options.items() if value is not None}


def settings_for(
    callable_: Callable[..., Any], texts: Iterable[str] | None, option: str = "--set"
) -> dict[str, Any]:
    """Return further parameters of a class or function from texts "name=value".

    Values are those of Python where they can be read as such (numbers, True, None, lists, dicts),
    and else texts. A name that the callable does not have is refused, with those that it has.

    Examples
    --------
    >>> from powersketch import SketchedKernelRidge
    >>> from powersketch.cli.options import settings_for
    >>> settings_for(SketchedKernelRidge, ["solver=gram", "tol=1e-8", "metric=None"])
    {'solver': 'gram', 'tol': 1e-08, 'metric': None}
    """
    known = [name for name in inspect.signature(callable_).parameters if name not in ("X", "y")]
    settings: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not sign:
            raise InputError(f"{option} {text} has no value: write {option} {name}=VALUE.")
        if name not in known:
            raise InputError(
                f"{option} {text}: {callable_.__name__} has no parameter {name!r}; it has "
                f"{', '.join(known)}."
            )
        if name in settings:
            raise InputError(f"{option} gives {name} twice: give it once.")
        settings[name] = _value(value.strip())
    return settings


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def merged(
    options: Mapping[str, Any], settings: Mapping[str, Any], option: str = "--set"
) -> dict[str, Any]:
    """Return options and settings in one, if none is in both."""
    for name in settings:
        if name in options:
            raise InputError(
                f"{name} is given by an option and by {option}: give it once, by the option."
            )
    return {**options, **settings}
