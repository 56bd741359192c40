"""NeuralTangentSketch: explicit features for the neural tangent kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.arrays import Rows
from powersketch.exceptions import InputError
from powersketch.feature_maps.neural_base import NeuralFeatureMap
from powersketch.feature_maps.neural_maps import TangentBuilder, whole_tangent_map
from powersketch.feature_maps.row_maps import RowMap
from powersketch.kernels import NeuralTangent
from powersketch.parameters import one_of
from powersketch.random_streams import RandomStreams

_COMPOSITIONS = ("auto", "whole", "layers")
_SMALLEST_LAYERS = 8


class NeuralTangentSketch(NeuralFeatureMap):
    """Features Z with Z Zᵀ ≈ K for the neural tangent kernel of rectified linear units.

    Without biases, the kernel of a network of any depth is a power series of the cosine of two
    rows, times their norms. A handful of degrees, fitted on [−1, 1] and exact at 1, stands for the
    series: the diagonal of Z Zᵀ is exact. Deep networks with biases are sketched layer by layer.

    Parameters
    ----------
    depth : int, default=1
        Number of hidden layers, at least 1.
    train_output : bool, default=True
        Whether the output layer is trained too. With False and depth 1 this is the kernel of the
        paper [1]_, ½ t κ₀(t) on rows of norm one.
    weight_variance : float, default=2.0
        Variance of the weights times the width of their layer; with 2, layers keep norms.
    bias_variance : float, default=0.0
        Variance of the biases.
    n_components : int or "auto", default=100
        Number of features; "auto" takes about as few as it needs for the error `eps`.
    method : {"power", "tree", "tensorsketch", "ctr", "random"}, default="power"
        "power" sketches the powers of the series by repeated squaring; "tree",
        "tensorsketch" and "ctr" sketch them as in :class:`PolynomialSketch`; "random" takes the
        gradients of a random network of finite width, sketched to the number of features.
    composition : {"auto", "whole", "layers"}, default="auto"
        "whole" sketches one series for the whole kernel; "layers" sketches every layer's kernel
        of the features before it. "auto" is "whole" wherever the kernel has such a series, where it
        was more accurate in all our measurements, and "layers" for deep networks with biases.
    tail : {"fit", "truncate", "sample"}, default="fit"
        How the series is made finite: "fit" as described above; "truncate" and "sample" take the
        coefficients of the Taylor series, as in :class:`DotProductSketch`. "sample" is the scheme
        that [1]_ proposes for this kernel (Corollary C.3).
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
    kernel_ : powersketch.kernels.NeuralTangent
        The exact kernel that the features approximate.
    degrees_, coefficients_ : tuple of int, ndarray
        The finite series in use, in the cosine of two rows; None where there is no such series.
    tail_mass_ : float
        What that series lacks at cosine 1; None where there is no series.
    series_error_bound_ : float
        No value of that series is further than this from the exact one; None without a series.
    expansion_ : {"mean", "none", "layers", "random"}
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

    References
    ----------
    .. [1] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import NeuralTangentSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> sketch = NeuralTangentSketch(depth=3, n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = sketch.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.03 * np.linalg.norm(K))
    True
    """

    def __init__(
        self,
        depth: int = 1,
        *,
        train_output: bool = True,
        weight_variance: float = 2.0,
        bias_variance: float = 0.0,
        n_components: int | str = 100,
        method: str = "power",
        composition: str = "auto",
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
        self.depth = depth
        self.train_output = train_output
        self.weight_variance = weight_variance
        self.bias_variance = bias_variance
        self.n_components = n_components
        self.method = method
        self.composition = composition
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
        exact = self._exact_kernel()
        self._check_series_parameters()
        one_of("composition", self.composition, _COMPOSITIONS)
        deep_with_bias = exact.depth > 1 and exact.bias_variance > 0
        if self.composition == "whole" and deep_with_bias:
            raise InputError(
                f"composition='whole' needs depth=1 or bias_variance=0, got depth={exact.depth} "
                f"and bias_variance={exact.bias_variance:g}: no power series of the cosine is this "
                "kernel for rows of all norms. Use composition='layers'."
            )
        smallest = self._smallest_size()
        if self.n_components != "auto" and int(self.n_components) < smallest:
            raise InputError(
                f"n_components={self.n_components} is too few for a network's layers side by side; "
                f"use at least {smallest}."
            )

    def _unused_options(self) -> dict[str, str]:
        unused = super()._unused_options()
        if self.method == "random":
            unused["composition"] = unused["tail"]
        elif self.depth == 1 and self.composition == "layers":
            unused["composition"] = "with depth=1, which is one layer"
        return unused

    def _smallest_size(self) -> int:
        return _SMALLEST_LAYERS if self._stacks_layers(self._exact_kernel()) else 1

    def _exact_kernel(self) -> NeuralTangent:
        return NeuralTangent(
            self.depth, self.train_output, self.weight_variance, self.bias_variance
        )

    def _by_layers(self, exact: NeuralTangent) -> bool:
        if self.method == "random" or self.composition == "layers":
            return exact.depth > 1
        return self.composition == "auto" and exact.depth > 1 and exact.bias_variance > 0

    def _stacks_layers(self, exact: NeuralTangent) -> bool:
        """Tell whether several blocks and a constant must find room."""
        random_with_bias = self.method == "random" and exact.bias_variance > 0
        return self._by_layers(exact) or random_with_bias

    def _prepare(
        self, X: Rows, seed: int, size: int
    ) -> tuple[NeuralTangent, RowMap, dict[str, Any]]:
        exact, streams = self._exact_kernel(), RandomStreams(seed, "neural_tangent")
        options = self._series_options(X, size)
        random = self.method == "random"
        finite = None
        if random or self._by_layers(exact):
            row_map = TangentBuilder(streams, exact, options, random=random).build(X, size)
        else:
            row_map, finite = whole_tangent_map(streams, X, size, exact, options)
        return exact, row_map, self._attributes(row_map, finite)
