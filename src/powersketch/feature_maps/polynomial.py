"""PolynomialSketch: explicit features for the polynomial kernel of any degree."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from powersketch.arrays import Rows
from powersketch.docstrings import documented
from powersketch.exceptions import InputError
from powersketch.feature_maps.base import FeatureMap
from powersketch.feature_maps.expansions.centred import MeanDirection, PolynomialExpansion
from powersketch.feature_maps.maps import RowMap
from powersketch.feature_maps.maps.stacked import StackedMap
from powersketch.feature_maps.maps.whole_power import AdaptiveMap, DirectMap, ExactMap
from powersketch.feature_maps.pilot import Pilot
from powersketch.feature_maps.rows import AugmentedRows
from powersketch.kernels import Kernel, Polynomial
from powersketch.powers import POWER_METHODS, monomials_fit
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

_SMALLEST_SPLIT = 3  # degree 0, and two features for all the rest


@storable
@documented
class PolynomialSketch(FeatureMap):
    """Features Z with Z Zᵀ ≈ K for the polynomial kernel (gamma ⟨x, y⟩ + coef0)^degree.

    The power x^⊗degree is sketched by repeated squaring with one base sketch T and one pair sketch
    S, so the time grows with the logarithm of the degree only (Algorithm 1 of [1]_). Beyond the
    paper, every intermediate power is rescaled to its known norm, and the kernel is expanded
    around the mean of the data where that lowers the error. In the project's benchmarks the two
    steps together lower the error of the literal algorithm by factors of 3 to 70.

    Parameters
    ----------
    degree : int, default=2
        Degree of the kernel, at least 1.
    %(gamma)s
    coef0 : float, default=0
        Non-negative constant term.
    %(n_components)s
    method : {"power", "tree", "tensorsketch", "ctr", "adaptive"}, default="power"
        How powers are sketched: "power" is repeated squaring. The time of the others grows with the
        degree, and their literal forms are unbiased: "tree" has independent sketches at every node
        (degrees up to 2048), "tensorsketch" multiplies CountSketches by Fourier transforms (in time
        proportional to the non-zero entries), "ctr" multiplies complex projections and takes real
        and imaginary parts. "adaptive" draws monomials by their ridge leverage on a sample of the
        rows given to `fit`.
    %(base_sketch)s
    expansion : {"auto", "mean", "none"}, default="auto"
        "mean" expands the kernel around the mean of the rows given to `fit`; "none" does not look
        at the data; "auto" measures both on a sample of the rows and keeps the better (and is
        "none" if `norm_preserving` is False). If all monomials fit into `n_components`, every
        setting takes them, and the features are exact.
    %(map_options)s

    Attributes
    ----------
    kernel_ : powersketch.kernels.Polynomial
        The exact kernel that the features approximate.
    gamma_ : float
        The factor in use.
    method_ : str
        What was used: `method`, or "exact" where all monomials are taken.
    expansion_ : {"mean", "none", "exact"}
        What was chosen.
    %(map_attributes)s

    Notes
    -----
    A row whose kernel value (gamma ‖x‖² + coef0)^degree exceeds the dtype's range is refused with a
    ValueError; one whose value is too small for it becomes zero. Columns that are not needed
    (exact features can be fewer than `n_components`) are zero.

    References
    ----------
    .. [1] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import PolynomialSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> sketch = PolynomialSketch(degree=8, coef0=1, n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = sketch.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.05 * np.linalg.norm(K))
    True
    """

    kernel_class: ClassVar[type[Kernel]] = Polynomial
    _stream_name: ClassVar[str] = "polynomial"
    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "method": (*POWER_METHODS, "adaptive"),
        "expansion": ("auto", "mean", "none"),
    }
    _powers_option: ClassVar[str] = "method"

    def __init__(
        self,
        degree: int = 2,
        *,
        gamma: float | str = 1.0,
        coef0: float = 0,
        n_components: int | str = 100,
        method: str = "power",
        base_sketch: str = "auto",
        expansion: str = "auto",
        norm_preserving: bool = True,
        internal_components: int | None = None,
        compress_from: int | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.n_components = n_components
        self.method = method
        self.base_sketch = base_sketch
        self.expansion = expansion
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.compress_from = compress_from
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _unused_options(self) -> dict[str, str]:
        if self.method != "adaptive":
            return super()._unused_options()
        why = "with method='adaptive', which takes monomials of the rows as they are"
        unused = "base_sketch", "internal_components", *["expansion"] * (self.expansion == "mean")
        return dict.fromkeys(unused, why)

    def _looks_at_rows(self, columns: int) -> bool:
        """Tell whether gamma, the size, an expansion or drawn monomials come from the rows."""
        if isinstance(self.gamma, str) or isinstance(self.n_components, str):
            return True
        if self._is_exact(columns, int(self.n_components)):
            return False
        expands = self.expansion == "mean" or (self.expansion == "auto" and self.norm_preserving)
        return bool(expands) or self.method == "adaptive" or self.compress_from is not None

    def _is_exact(self, columns: int, size: int) -> bool:
        """Tell whether all monomials fit."""
        variables = columns + int(self.coef0 > 0)
        return bool(self.norm_preserving) and monomials_fit(variables, int(self.degree), size)

    def _draw(
        self, kernel: Polynomial, X: Rows, seed: int, size: int
    ) -> tuple[RowMap, dict[str, Any]]:
        row_map: RowMap
        exact, rows = self._is_exact(X.shape[1], size), AugmentedRows(kernel.gamma, kernel.coef0)
        if exact:
            row_map = ExactMap.of(rows, kernel.degree, X.shape[1])
        else:
            row_map = self._sketch(X, kernel, rows, RandomStreams(seed, self._stream_name), size)
        method = "exact" if row_map.name == "exact" else self.method
        return row_map, {"gamma_": kernel.gamma, "method_": method, "expansion_": row_map.name}

    def _sketch(
        self,
        X: Rows,
        kernel: Polynomial,
        rows: AugmentedRows,
        streams: RandomStreams,
        size: int,
    ) -> RowMap:
        """Draw the map that was asked for, or the one that is better on the pilot."""
        degree, preserve_norms = kernel.degree, bool(self.norm_preserving)
        if self.method == "adaptive":
            pilot = Pilot.of(X, streams)
            return AdaptiveMap.draw(
                streams, rows, degree, pilot.rows, size, preserve_norms=preserve_norms
            )
        options = self._sketch_options(X, size)
        direct = DirectMap.draw(streams, rows, degree, X.shape[1], size, options)
        if self.expansion == "none" or (self.expansion == "auto" and not preserve_norms):
            return direct
        pilot = Pilot.of(X, streams)
        centre = MeanDirection.of_pilot(rows, degree, pilot)
        expansion = None if centre is None else PolynomialExpansion.of_pilot(centre, degree, pilot)
        if expansion is None and centre is not None and self.expansion == "mean":
            raise InputError(
                f"expansion='mean' is of no use for degree={degree}: the rows are too far from "
                "their mean direction for powers of what is left. Use expansion='auto' or 'none'."
            )
        if expansion is None or size < _SMALLEST_SPLIT:
            return direct
        split = StackedMap.draw(streams.child("split"), expansion, pilot, size, options)
        split = split.with_safe(direct if preserve_norms else None)
        maps: list[RowMap] = [split] if self.expansion == "mean" else [direct, split]
        return pilot.best_map(maps, size, kernel)
