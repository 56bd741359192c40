"""Descriptions of options that several estimators share: written once, filled in where used."""

from __future__ import annotations

import re
from typing import TypeVar

_Documented = TypeVar("_Documented")
_PLACE = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)

_ROWS = """\
X : array or sparse matrix of shape (n_samples, n_features)
    Rows are samples."""
_WEIGHTS = """\
sample_weight : array of shape (n_samples,), default=None
    Weights, not negative. A weight of zero leaves a row out; if alpha is a number, whole weights
    repeat rows."""

OPTIONS = {
    "random_state": """\
random_state : int, RandomState instance or None, default=None
    Seed of all random numbers; the same seed gives the same bits on every machine.""",
    "n_jobs": """\
n_jobs : int or None, default=None
    Number of threads, with scikit-learn's meaning: None is one, -1 all processors.""",
    "verbose": """\
verbose : int, default=0
    Whether to report progress on standard error.""",
    # The ridge estimators: the model, what its fit may take, what a fit leaves, its rows.
    "ridge_model": """\
kernel : str or kernel, default="gaussian"
    An object of powersketch.kernels, or a name: "linear", "polynomial" ("poly"), "gaussian"
    ("rbf"), "arc-cosine", "neural-tangent" ("ntk") or "dot-product". By its name, the Gaussian
    kernel has gamma "scale".
kernel_params : dict or None, default=None
    Parameters of a kernel that is given by its name.
features : str, feature map or transformer, default="sketch"
    What the regression is done on:

    - "sketch": the feature map of the kernel, which takes no landmarks.
    - "landmarks": kernel values at rows drawn by leverage, as by LeverageNystroem.
    - "auto": the better of sketch and landmarks on a pilot of a few thousand rows, of a size
      that suits rows and budgets: see `choice_`.
    - "exact": no features; the system of the exact kernel is solved by preconditioned conjugate
      gradients.
    - "row-sketch": as "exact", but the rows of the system are sketched, to a number in proportion
      to the statistical dimension (Theorem E.2 of [SWYZ21]), and the result is checked: see
      `row_sketch_`.
    - A feature map of powersketch or any transformer, which is cloned and brings its own kernel.

    A kernel of your own has no sketch, and works with "landmarks", "auto" and "exact".
n_components : int or None, default=None
    Number of features. None leaves a given map as it is, takes 256 for "sketch", "landmarks" and
    "row-sketch", and what the budgets allow for "auto" (without budgets √n · log n).
alpha : float, "loo" or "gcv", default=1.0
    The penalty, as in scikit-learn's ``KernelRidge`` and ``Ridge``; or how it is chosen from
    `alphas`, where there are features: "loo" takes the least leave-one-out error (over up to 2048
    rows, always with the model of all other rows); "gcv" takes the largest alpha whose generalised
    cross-validation score is within its standard error of the least.
alphas : array of float or None, default=None
    What to choose from; None is 50 values from 1e-10 to 1 times the trace of the Gram matrix.
solver : {"gram"}, default="gram"
    How the regression on features is solved: by one pass over the rows for their Gram matrix.
fit_intercept : bool, default=True
    Whether there is a constant term b without penalty. With a row sketch it is the mean of y.""",
    "ridge_options": """\
eps : float, default=0.1
    The row sketch aims at an objective within 1 + eps of the least one.
tol : float, default=1e-6
    The relative residual to reach with ``features="exact"``.
time_budget : float or None, default=None
    Seconds that a fit with ``features="auto"`` may take beside its pilot, which itself takes one
    or two. Budgets limit the size: they are refused beside `n_components`, and for other features.
memory_budget : float or None, default=None
    Bytes that a fit with ``features="auto"`` may hold at a time beside the rows: the Gram matrix,
    its factors, landmarks, and features of blocks of rows, which get shorter where memory is
    scarce. With "exact" and "row-sketch", bytes of the kernel matrix, which is computed anew for
    every product where it takes more.
random_state : int, RandomState instance or None, default=None
    Seed of the feature map, unless that has its own, and of all samples.
n_jobs : int or None, default=None
    Number of threads, with scikit-learn's meaning. Products of matrices use those of BLAS.""",
    "ridge_attributes": """\
feature_map_ : transformer
    The fitted feature map; not with "exact".
kernel_ : kernel
    The exact kernel, with its parameters as numbers; where a given map knows it.
alpha_, alphas_, scores_ : float, ndarray, ndarray
    The penalty in use; the path it was chosen from, and the scores.
statistics_ : RidgeStatistics
    Sums over all rows, on features; they can be merged with those of other rows.
effective_dimension_ : float
    Degrees of freedom of the fit without the intercept, on features.
choice_ : Choice
    What ``features="auto"`` chose, and why.
X_fit_, dual_coef_ : array, ndarray of shape (n,) or (n, t)
    f(x) = kernel_(x, X_fit_) @ dual_coef_, with "exact" and "row-sketch"; of the rows in use.
solver_result_ : SolverResult
    How the solver fared, with "exact".
row_sketch_ : RowSketchReport
    Size and quality of the row sketch, with a bound of the objective relative to its minimum.
seed_ : int
    The seed that all random numbers come from.
n_features_in_ : int
    Number of columns seen by `fit`.
feature_names_in_ : ndarray of str
    Names of the columns seen by `fit`, if they had string names.""",
    "ridge_rows": _ROWS,
    "ridge_weights": _WEIGHTS,
    "ridge_training": f"""\
{_ROWS}
y : array of shape (n_samples,) or (n_samples, n_targets)
    Targets.
{_WEIGHTS}""",
}
"""From the name of an option to its entry in a section "Parameters" of a docstring."""


def documented(described: _Documented) -> _Documented:
    """Fill the shared options into a docstring: a line ``%(name)s`` becomes the option's entry."""

    def entry(place: re.Match[str]) -> str:
        return "\n".join((place[1] + line).rstrip() for line in OPTIONS[place[2]].split("\n"))

    if described.__doc__ is not None:
        described.__doc__ = _PLACE.sub(entry, described.__doc__)
    return described
