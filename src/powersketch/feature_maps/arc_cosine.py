"""ArcCosineSketch: explicit features for the arc-cosine kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.arrays import Rows
from powersketch.feature_maps.neural_base import NeuralFeatureMap
from powersketch.feature_maps.neural_maps import arc_cosine_map, random_arc_cosine
from powersketch.feature_maps.row_maps import RowMap
from powersketch.feature_maps.scale_free import ScaleFreeMap
from powersketch.kernels import ArcCosine
from powersketch.random_streams import RandomStreams


class ArcCosineSketch(NeuralFeatureMap):
    """Features Z with Z Zᵀ ≈ K for the arc-cosine kernel of order 0, 1 or 2 and any depth.

    On rows of norm one the kernel is a power series of their inner product, and its values for
    other rows follow from their norms. A handful of degrees, fitted on [−1, 1] and exact at 1,
    stands for the series: the diagonal of Z Zᵀ is exact.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        Order of the kernel: step functions, rectified linear units, or their squares.
    depth : int, default=1
        Number of layers, at least 1.
    n_components : int or "auto", default=100
        Number of features; "auto" takes about as few as it needs for the error `eps`.
    method : {"power", "tree", "tensorsketch", "ctr", "random"}, default="power"
        "power" sketches the powers of the series by repeated squaring; "tree",
        "tensorsketch" and "ctr" sketch them as in :class:`PolynomialSketch`; "random" takes the
        activations of random neurons.
    tail : {"fit", "truncate", "sample"}, default="fit"
        How the series is made finite: "fit" as described above; "truncate" and "sample" take the
        coefficients of the Taylor series, as in :class:`DotProductSketch`.
    tail_eps : float, default=1e-3
        The accuracy asked of the series by "truncate" and "sample".
    base_sketch : {"auto", "srht", "countsketch", "osnap", "gaussian", "rademacher"}, default="auto"
        T, where rows are longer than the internal length. "auto" is "srht" if `fit` sees dense rows
        and "osnap" if it sees sparse ones.
    expansion : {"auto", "mean", "none"}, default="auto"
        "mean" expands the kernel around the mean direction of the rows given to `fit`, "none" does
        not, and "auto" measures both on a sample of the rows and keeps the better.
    norm_preserving : bool, default=True
        Whether every power is rescaled to its exact norm. False gives the paper's linear sketch.
    internal_components : int or None, default=None
        Length of intermediate powers, rounded up to a power of two; None takes the first power of
        two not below `n_components`.
    eps : float or None, default=None
        With n_components="auto", and only then: the relative error ‖Z Zᵀ − K‖ / ‖K‖ to keep, in
        Frobenius norms both over pairs of different rows and over all entries, between 0 and 1.
    random_state : int, RandomState instance or None, default=None
        An int gives the same bits on every machine, for every number of threads and every split of
        the rows into batches.
    n_jobs : int or None, default=None
        Number of threads, with scikit-learn's meaning: None is 1, -1 all processors.
    verbose : int, default=0
        Whether long transforms report their progress on standard error.

    Attributes
    ----------
    kernel_ : powersketch.kernels.ArcCosine
        The exact kernel that the features approximate.
    degrees_, coefficients_ : tuple of int, ndarray
        The finite series in use on rows of norm one; None for random features.
    tail_mass_ : float
        What that series lacks on the diagonal for a row of norm one; None for random features.
    series_error_bound_ : float
        For rows of norm one, no entry of the kernel of the finite series is further than this
        from the exact one; None for random features.
    expansion_ : {"mean", "none", "random"}
        What was chosen.
    seed_ : int
        The seed that all random numbers come from.
    n_components_ : int
        Number of features.
    certificate_ : powersketch.accuracy.Certificate
        What was measured at this number of features; only where it was chosen for `eps`.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns seen by `fit`, if they had string names.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import ArcCosineSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> sketch = ArcCosineSketch(order=1, depth=2, n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = sketch.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.02 * np.linalg.norm(K))
    True
    >>> np.allclose(np.sum(Z * Z, axis=1), sketch.kernel_.diagonal(X))
    True
    """

    def __init__(
        self,
        order: int = 1,
        depth: int = 1,
        *,
        n_components: int | str = 100,
        method: str = "power",
        tail: str = "fit",
        tail_eps: float = 1e-3,
        base_sketch: str = "auto",
        expansion: str = "auto",
        norm_preserving: bool = True,
        internal_components: int | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.depth = depth
        self.n_components = n_components
        self.method = method
        self.tail = tail
        self.tail_eps = tail_eps
        self.base_sketch = base_sketch
        self.expansion = expansion
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_kernel_parameters(self) -> None:
        ArcCosine(self.order, self.depth)
        self._check_series_parameters()

    def _unused_options(self) -> dict[str, str]:
        unused = super()._unused_options()
        if self.method == "random":
            unused["base_sketch"] = unused["tail"]
        return unused

    def _prepare(self, X: Rows, seed: int, size: int) -> tuple[ArcCosine, RowMap, dict[str, Any]]:
        exact, streams = ArcCosine(self.order, self.depth), RandomStreams(seed, "arc_cosine")
        finite, row_map = None, None
        if self.method == "random":
            row_map = random_arc_cosine(streams, X.shape[1], size, exact)
        else:
            row_map, finite = arc_cosine_map(streams, X, size, exact, self._series_options(X, size))
        if exact.order == 0:
            row_map = ScaleFreeMap(row_map)
        return exact, row_map, self._attributes(row_map, finite)
