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

_N_JOBS = """\
n_jobs : int or None, default=None
    Number of threads, with scikit-learn's meaning: None is one, -1 all processors."""
_VERBOSE = """\
verbose : int, default=0
    Whether to report progress on standard error."""

OPTIONS = {
    "random_state": """\
random_state : int, RandomState instance or None, default=None
    Seed of all random numbers, which are the same on x86-64 and ARM.""",
    "n_jobs": _N_JOBS,
    "verbose": _VERBOSE,
    # Feature maps.
    "n_components": """\
n_components : int or "auto", default=100
    Number of features; "auto" takes about as few as it needs for the error `eps`.""",
    "gamma": """\
gamma : float, "scale" or "median", default=1.0
    Positive factor of the inner product or squared distance. "scale" is
    1 / (n_features · variance of X), "median" one over the median squared distance of two rows.""",
    "power_method": """\
power_method : {"squaring", "tree", "tensorsketch", "ctr"}, default="squaring"
    How powers are sketched: "squaring" is repeated squaring, whose time hardly grows with the
    degree; the others are as in :class:`PolynomialSketch`.""",
    "base_sketch": """\
base_sketch : {"auto", "srht", "countsketch", "osnap", "gaussian", "rademacher"}, default="auto"
    T, where rows are longer than the internal length. "auto" is "srht" if `fit` sees dense rows
    and "osnap" if it sees sparse ones. For trees it names the leaves, for "ctr" the factors,
    for which "countsketch" and "osnap" first sum long rows; "tensorsketch" has no use for it.""",
    "expansion": """\
expansion : {"auto", "mean", "none"}, default="auto"
    "mean" expands the kernel around the mean of the rows given to `fit`; "none" does not look
    at the data; "auto" measures both on a sample of the rows and keeps the better (and is
    "none" if `norm_preserving` is False).""",
    "fitted_tail": """\
tail : {"fit", "truncate", "sample"}, default="fit"
    How the series is made finite: "fit" as described above; "truncate" and "sample" take the
    coefficients of the Taylor series, as in :class:`DotProductSketch`. "sample" is the scheme
    of Song et al. (ICML 2021, Corollary C.3).""",
    "tail_eps": """\
tail_eps : float, default=1e-3
    The accuracy asked of the series by "truncate" and "sample".""",
    "map_options": f"""\
norm_preserving : bool, default=True
    Whether every power is rescaled to its exact norm, which makes the diagonal of Z Zᵀ that of
    the kernel. False gives the paper's linear sketch.
internal_components : int or None, default=None
    Length of intermediate powers, rounded up to a power of two; None takes the first power of
    two not below `n_components`. Twice or four times as much lowers the error of high degrees a
    little.
compress_from : int or None, default=None
    If given, a sketch of this many features is drawn, and its `n_components` main directions on
    a sample of the rows given to `fit` are kept: of 512 or, if that is more, 2 · `n_components`
    of them, and there should be no fewer. With 4 · `n_components` the error on images falls to
    between a quarter and two thirds at degrees up to 7, and less beyond. What lies outside
    these directions is lost: the diagonal of Z Zᵀ is not exact but too small. Every row takes a
    product with a matrix of `compress_from` × `n_components`, much longer than the sketch
    itself, and directions rest on LAPACK: another machine may round them differently.
eps : float or None, default=None
    With n_components="auto", and only then: the relative error ‖Z Zᵀ − K‖ / ‖K‖ to keep, in
    Frobenius norms both over pairs of different rows and over all entries, between 0 and 1.
random_state : int, RandomState instance or None, default=None
    An int gives the same bits on x86-64 and ARM, for every number of threads and every split of
    the rows into batches.
{_N_JOBS}
{_VERBOSE}""",
    # Attributes of fitted feature maps.
    "map_attributes": """\
seed_ : int
    The seed that all random numbers come from.
n_components_ : int
    Number of features.
certificate_ : powersketch.accuracy.Certificate
    What was measured at this number of features; only where it was chosen for `eps`.
n_features_in_ : int
    Number of columns seen by `fit`.
feature_names_in_ : ndarray of str
    Names of the columns seen by `fit`, if they had string names.""",
    "series_attributes": """\
degrees_, coefficients_ : tuple of int, ndarray
    The finite series in use, in the cosine of two rows; None where there is no such series.
tail_mass_ : float
    What that series lacks at cosine 1; None where there is no series.
series_error_bound_ : float
    For rows of norm one, no value of the finite series is further than this from the exact one;
    None where there is no series.""",
    # The ridge estimators: the model, what its fit may take, what a fit leaves, its rows.
    "ridge_model": """\
kernel : str or kernel, default="auto"
    "auto" tries a linear model, Gaussian kernels of several gammas, polynomial ones of degrees 2
    to 4, arc-cosine and neural tangent kernels on a pilot of up to 3000 rows (8000 of 50,000 or
    more), and takes the least leave-one-out error. Or an object of powersketch.kernels, or a
    name: "linear", "polynomial" ("poly"), "gaussian" ("rbf"), "arc-cosine", "neural-tangent"
    ("ntk") or "dot-product". By its name, the Gaussian kernel has gamma "scale"; with
    gamma="auto", it is searched for. With a kernel that is given, all other "auto"s below do
    nothing: its parameters refer to the columns as they are.
kernel_params : dict or None, default=None
    Parameters of a kernel that is given by its name.
features : str, feature map or transformer, default="auto"
    What the regression is done on:

    - "auto": the exact kernel up to about 7000 rows (11,000 if they have more than 4096 columns;
      up to 15,000 or less with budgets); the columns themselves if the kernel is linear; else
      landmarks, or a sketch where that is clearly better on a pilot of a few thousand rows. See
      `choice_`.
    - "sketch": the feature map of the kernel, which takes no landmarks.
    - "landmarks": kernel values at rows drawn by leverage, as by LeverageNystroem.
    - "exact": no features; the system of the exact kernel is solved by factorisations if alpha is
      "loo", by preconditioned conjugate gradients if it is a number.
    - "row-sketch": as "exact", but the rows of the system are sketched, to a number in proportion
      to the statistical dimension (Theorem E.2 of [SWYZ21]), and the result is checked: see
      `row_sketch_`. It needs a number for alpha.
    - A feature map of powersketch or any transformer, which is cloned and brings its own kernel.

    A kernel of your own has no sketch, and works with "landmarks", "auto" and "exact".
n_components : int or None, default=None
    Number of features. None leaves a given map as it is, takes 256 for "sketch", "landmarks" and
    "row-sketch", and for "auto" what the budgets allow, or, without budgets, at most 4096 and as
    many as take about half a minute. Classifiers of 40,000 rows or more take up to 12,288
    landmarks then, which are solved for by conjugate gradients; a tenth of the rows chooses alpha.
metric : {"auto", "full", "diagonal"} or None, default="auto"
    A metric of the columns that is learned from the gradients of a fit, in up to five steps, as
    by :class:`LearnedMetric`. "full" mixes columns, "diagonal" weights them; "auto" does so where
    held-out rows of the pilot show a gain above noise.
linear : bool or "auto", default="auto"
    Whether the columns themselves are features, too: the kernel c⟨x, y⟩ + k(x, y) with a c that is
    chosen. "auto" adds them where that is better. Very many sparse columns are not made dense:
    conjugate gradients solve for them, and alpha is chosen by a tenth of the rows.
scaling : {"auto", "scaled", "as-is", "indicators", "ranks"} or None, default="auto"
    What the kernel sees: columns of equal spread about their medians; columns as they are but for
    one factor; as "scaled" with a column for every value of those that have up to 32 different
    whole numbers; or as "scaled" with normal scores of the ranks of skewed columns, such as incomes
    and counts. "auto" tries all; sparse rows stay as they are.
clip : float, "auto" or None, default="auto"
    What is done to implausible entries. "auto" learns where the values of a column end: entries a
    little beyond are clipped, and those twice as far from the median count as the median, as fill
    values and typing errors do; predictions stay within the range of the targets, widened by a
    quarter. A number clips at so many standard deviations; None changes nothing.
alpha : float, "loo" or "gcv", default="loo"
    The penalty, as in scikit-learn's ``KernelRidge`` and ``Ridge``; or how it is chosen from
    `alphas`: "loo" takes the least leave-one-out error (over up to 2048 rows, always with the
    model of all other rows; classifiers with the exact kernel take the most likely labels instead
    of the least squares); "gcv", on features only, takes the largest alpha whose generalised
    cross-validation score is within its standard error of the least.
alphas : array of float or None, default=None
    What to choose from; None is 50 values from 1e-10 to 1 times the trace of the Gram matrix, or
    of the kernel matrix, of which large ones are searched downhill.
solver : {"auto", "gram", "cg"}, default="auto"
    How the regression on features is solved: by one pass over the rows for their Gram matrix, whose
    products are computed in float32 where rows are float32 and alpha hides the errors; or by
    preconditioned conjugate gradients on features or kernel values, which are stored in float32
    for as many rows as fit, and computed anew in every step for the others. These take more
    features, and hold out some rows to choose alpha and to see when errors level off. "auto"
    decides by fixed rates from the sizes, the number of alphas, the dtype and `memory_budget`, and
    `choice_` says how, if there is one. What follows from sums (`statistics_`,
    `effective_dimension_`, standard deviations, `partial_fit`) is not there after "cg". After
    "auto" it is: where that iterates, it keeps the rows, and sums them when one of these is first
    asked for.
fit_intercept : bool, default=True
    Whether there is a constant term b without penalty. With a row sketch it is the mean of y.""",
    "ridge_options": """\
eps : float, default=0.1
    The row sketch aims at an objective within 1 + eps of the least one.
tol : float, default=1e-6
    The relative residual to reach with ``features="exact"`` and a number for alpha, and with
    ``solver="cg"``, whose stored values in float32 allow 1e-4.
time_budget : float or None, default=None
    Seconds that a fit with ``features="auto"`` may take beside its pilots. It limits the size, and
    is refused beside `n_components`, and for other features.
memory_budget : float or None, default=None
    Bytes that a fit may hold at a time beside the rows, once the model is chosen (the pilots of
    ``kernel="auto"`` take up to 400 MB): the Gram matrix, its factors, landmarks, and features of
    blocks of rows, which get shorter where memory is scarce. With ``features="auto"`` it limits the
    size; a size that was given and does not fit is refused, with one that would. None is what is
    available. With "exact", a number for alpha and too little memory for the kernel matrix, this
    is computed anew for every product, and its preconditioner gets as small as is needed, but has
    at least 100 columns. With "row-sketch" it bounds the kernel matrix alone, by which the
    certificate is measured.
random_state : int, RandomState instance or None, default=None
    Seed of the feature map, unless that has its own, and of all samples.
n_jobs : int or None, default=None
    Number of threads, with scikit-learn's meaning. Products of matrices use those of BLAS.""",
    "ridge_attributes": """\
feature_map_ : transformer
    The fitted feature map; not with "exact".
kernel_ : kernel
    The exact kernel, with its parameters as numbers, of the columns as it sees them; where a given
    map knows it. With a linear part it is a ``kernels.WithLinear``.
metric_ : ndarray of shape (d, d)
    The metric of these columns, of trace one, if one was learned.
feature_importances_ : ndarray of shape (n_features,)
    Its diagonal, by given columns and of sum one.
alpha_, alphas_, scores_ : float, ndarray, ndarray
    The penalty in use; the path it was chosen from, and the scores.
statistics_ : RidgeStatistics
    Sums over all rows, on features; they can be merged with those of other rows.
effective_dimension_ : float
    Degrees of freedom of the fit without the intercept, on features.
choice_ : Choice
    What was chosen, and why, where something was; ``print(model.choice_)`` says it in sentences.
X_fit_, dual_coef_ : array, ndarray of shape (n,) or (n, t)
    ``f(x) = kernel_(x, X_fit_) @ dual_coef_``, with the exact kernel and "row-sketch"; the rows in
    use, as the kernel sees them.
solver_result_ : SolverResult
    How iterations fared: residuals after every step, and errors at rows held out if there were
    any. With ``solver="cg"``, where "auto" iterates, and with "exact" and a number for alpha.
row_sketch_ : RowSketchReport
    Size and quality of the row sketch, with a bound of the objective relative to its minimum.
seed_ : int
    The seed that all random numbers come from.
n_features_in_ : int
    Number of columns seen by `fit`.
feature_names_in_ : ndarray of str
    Names of the columns seen by `fit`, if they had string names.""",
    "ridge_batches": """\
batches : iterable
    Pairs (X, y) or triples (X, y, sample_weight), one after the other, each as :meth:`fit` takes
    them. With `target`, tables of pandas or batches of Arrow are allowed as well, for example
    those of ``pyarrow.parquet.ParquetFile(path).iter_batches()`` or
    ``pandas.read_csv(path, chunksize=10_000)``. Every batch is read once.
target : str, default=None
    The column of y in tables.""",
    "ridge_rows": _ROWS,
    "ridge_weights": _WEIGHTS,
    "ridge_training": f"""\
{_ROWS}
y : array of shape (n_samples,) or (n_samples, n_targets)
    Targets.
{_WEIGHTS}""",
}
"""From the name of an option to its entry in a section "Parameters" of a docstring.

Entries of "Attributes" that several estimators share are here, too.
"""


def documented(described: _Documented) -> _Documented:
    """Fill the shared options into a docstring: a line ``%(name)s`` becomes the option's entry."""

    def entry(place: re.Match[str]) -> str:
        return "\n".join((place[1] + line).rstrip() for line in OPTIONS[place[2]].split("\n"))

    if described.__doc__ is not None:
        described.__doc__ = _PLACE.sub(entry, described.__doc__)
    return described
