"""Certificates: what is known of a feature map's error on given rows, and how surely."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from powersketch.accuracy.pairs import ExactPairs, IndependentPairs, Interval, PairErrors
from powersketch.accuracy.rows import (
    FEWEST_SAMPLE_ROWS,
    DataRows,
    FittedMap,
    RowSample,
    checked_confidence,
    checked_map,
    sample_rows,
)
from powersketch.accuracy.spectral import (
    PRODUCTS,
    SpectralError,
    check_alpha_above_rounding,
    spectral_error,
)
from powersketch.arrays import Vector
from powersketch.docstrings import documented
from powersketch.execution import thread_count
from powersketch.parameters import checked_integer, checked_positive, refuse_unless_default
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.storable import storable

_FEWEST_PRODUCTS = 2
# Smaller errors of a diagonal are those of rounding, which differ from machine to machine.
_ROUNDING = 1e-12


@storable
@dataclass(frozen=True, eq=False)
class Certificate:
    """What was measured of a feature map's error, returned by :func:`certify`.

    Parameters
    ----------
    frobenius : Interval
        ‖Z Zᵀ − K‖ / ‖K‖ in Frobenius norms over pairs of different rows.
    diagonal : Interval
        The same over the diagonals: ‖z(x)‖² against k(x, x). Zero up to rounding errors where a
        map keeps norms.
    whole : Interval
        The same over all entries.
    entrywise : EntrywiseError
        Errors of single pairs of different rows.
    spectral : SpectralError or None
        The error as a quadratic form relative to K + αI, if alpha was given.
    confidence : float
        Each interval contains the true value with at least this probability, over the random
        choice of rows and start vectors.
    rows : int
        How many rows the certificate is about.
    measured_rows : int
        On how many of them all pairs were measured.
    for_new_rows : bool
        Whether these errors hold for further rows of the same kind too, as many or more. They do
        not where a few rows decide them.
    covers : str
        In words: which entries of which matrices, and why not those of further rows, if they were
        asked for.
    seed : int
        The seed that the random choices came from.
    exact, approximate : ndarray
        k(x, y) and ⟨z(x), z(y)⟩ for a few thousand random pairs of different rows.
    """

    frobenius: Interval
    diagonal: Interval
    whole: Interval
    entrywise: EntrywiseError
    spectral: SpectralError | None
    confidence: float
    rows: int
    measured_rows: int
    for_new_rows: bool
    covers: str
    seed: int
    exact: Vector
    approximate: Vector

    @property
    def bound(self) -> float:
        """What both `frobenius` and `whole` are at most: `eps` of a feature map bounds this.

        A small error of all entries says little where the diagonal is most of the matrix, and a
        small one of the pairs says nothing about the diagonal.
        """
        return max(self.frobenius.high, self.whole.high)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, without the pairs, as what :func:`json.dumps` takes.

        Infinite bounds become None.
        """
        figures = asdict(self)
        del figures["exact"], figures["approximate"]
        finite: dict[str, Any] = _without_infinities(figures)
        return finite

    def plot(self, ax: Any = None) -> Any:
        """Draw approximate against exact values of random pairs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            With the pairs, the diagonal and a band of twice the root mean square error.
        """
        error = self.entrywise.root_mean_square.value * self.entrywise.unit
        title = f"relative error {self.frobenius}"
        if self.spectral is not None:
            title += f"\nspectral eps {self.spectral.eps}"
        return _draw_pairs(self.exact, self.approximate, error, title, ax)

    def __repr__(self) -> str:
        largest = f"{self.entrywise.largest:.3g}"
        if self.entrywise.exceeding_share > 0.0:
            largest += f", exceeded by at most {100 * self.entrywise.exceeding_share:.2g} % of them"
        diagonal = f"below {_ROUNDING:g}" if self.diagonal.high < _ROUNDING else self.diagonal
        about = "these and further rows" if self.for_new_rows else f"{self.rows} rows"
        lines = [
            f"Certificate for {about}, all pairs of {self.measured_rows} measured, "
            f"confidence {self.confidence:g}:",
            f"  relative Frobenius error   {self.frobenius}",
            f"    of the diagonal          {diagonal}",
            f"    of all entries           {self.whole}",
            f"  root mean square of pairs  {self.entrywise.root_mean_square}"
            f" of {self.entrywise.unit:.3g}",
            f"  largest error of pairs     {largest}",
        ]
        if self.spectral is not None:
            lines += [
                f"  spectral eps, alpha={self.spectral.alpha:<6.3g} {self.spectral.eps}",
                f"    ({self.spectral.message})",
            ]
        lines.append(f"  covers {self.covers}")
        return "\n".join(lines)


@storable
@dataclass(frozen=True)
class EntrywiseError:
    """Errors ``|⟨z(x), z(y)⟩ − k(x, y)|`` of pairs of different rows.

    Parameters
    ----------
    root_mean_square : Interval
        Of all pairs, relative to `unit`.
    largest : float
        The largest error of the pairs that were measured, relative to `unit`.
    exceeding_share : float
        At most this share of all pairs has a larger error; 0 where all pairs were measured. No
        sample can bound the largest error of all pairs.
    unit : float
        The root mean square of k(x, x).
    """

    root_mean_square: Interval
    largest: float
    exceeding_share: float
    unit: float


@documented
def certify(
    sketch: Any,
    X: Any,
    *,
    alpha: float | None = None,
    confidence: float = 0.99,
    products: int = PRODUCTS,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Certificate:
    """Measure the error of a fitted feature map on rows, and say how surely.

    Parameters
    ----------
    sketch : feature map
        Fitted, with the attribute `kernel_` and the method `transform`.
    X : {array, sparse matrix or data frame} of shape (n_samples, n_features)
        The rows, at least two. Up to 2000 of them are measured against each other; of more rows a
        random sample is, and the certificate has intervals.
    alpha : float or None, default=None
        If given, positive: Z Zᵀ + αI and K + αI are compared as quadratic forms too, by all
        eigenvalues of up to 1500 rows, else by Lanczos steps. The exact kernel matrix is then
        factored if it takes at most 1 GiB, and else recomputed for every step; where that would
        take too long, 1500 rows give a lower bound.
    confidence : float, default=0.99
        Probability with which each interval contains the true value.
    products : int, default=32
        Number of Lanczos steps, at least 2, for alpha only; more give narrower spectral intervals.
    random_state : int, RandomState instance or None, default=None
        An int chooses the same rows every time.
    %(n_jobs)s

    Returns
    -------
    Certificate
        With a readable `repr`, `to_dict` and `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import GaussianSketch
    >>> from powersketch.accuracy import certify
    >>> X = np.random.RandomState(0).rand(3000, 10)
    >>> sketch = GaussianSketch(gamma=0.5, n_components=256, random_state=0).fit(X)
    >>> certificate = certify(sketch, X, random_state=0)
    >>> print(certificate.frobenius)
    0.00889 [0.00863, 0.00915]
    >>> certify(sketch, X[:500], alpha=10.0)
    Certificate for 500 rows, all pairs of 500 measured, confidence 0.99:
      relative Frobenius error   0.00874 [exact]
        of the diagonal          below 1e-12
        of all entries           0.0087 [exact]
      root mean square of pairs  0.00414 [exact] of 1
      largest error of pairs     0.0426
      spectral eps, alpha=10     0.0389 [exact]
        (from all eigenvalues)
      covers all entries, the diagonal included, of the matrix of these 500 rows
    """
    fitted = checked_map(sketch)
    confidence = checked_confidence(confidence)
    products = checked_integer("products", products, _FEWEST_PRODUCTS, remedy="32 is the default")
    if alpha is not None:
        alpha = checked_positive("alpha", alpha, remedy="pass None to leave that part out")
    else:
        refuse_unless_default("products", products, PRODUCTS, "without alpha")
    thread_count(n_jobs)
    rows = DataRows.of(X, fewest=2)
    seed = seed_from(random_state)
    streams = RandomStreams(seed, "certificate")
    diagonal = rows.kernel_diagonal(fitted.kernel_)
    spectral = None
    if alpha is not None:
        check_alpha_above_rounding(alpha, diagonal)
        spectral = spectral_error(
            fitted,
            rows,
            alpha,
            streams.child("spectral"),
            confidence=confidence,
            products=products,
            n_jobs=n_jobs,
        )
    size = rows.count
    if size > FEWEST_SAMPLE_ROWS:
        size = sample_rows(rows.feature_count(fitted))
    sample = RowSample.draw(fitted, rows, diagonal, streams, size)
    errors = PairErrors.measure(fitted, ExactPairs.of(fitted.kernel_, sample, n_jobs))
    return certificate_from(
        errors, fitted, rows, diagonal, streams, confidence=confidence, spectral=spectral
    )


def certificate_from(
    errors: PairErrors,
    sketch: FittedMap,
    rows: DataRows,
    diagonal: Vector,
    streams: RandomStreams,
    *,
    confidence: float,
    spectral: SpectralError | None = None,
    reason: str = "",
) -> Certificate:
    """Return the certificate for these rows, with this diagonal, from the errors of a sample.

    The reason is why further rows are not covered, where they were asked for.
    """
    sample = errors.exact.sample
    if sample.rows.count == rows.count:
        pairs = IndependentPairs.among(errors, streams)
    else:
        pairs = IndependentPairs.measure(sketch, rows, streams)
    return Certificate(
        frobenius=errors.frobenius(confidence),
        diagonal=errors.of_diagonal(confidence),
        whole=errors.whole(confidence),
        entrywise=_entrywise_error(errors, pairs, diagonal, confidence),
        spectral=spectral,
        confidence=confidence,
        rows=rows.count,
        measured_rows=sample.rows.count,
        for_new_rows=sample.for_new_rows,
        covers=_covered(rows.count, sample, reason),
        seed=streams.seed,
        exact=pairs.exact,
        approximate=pairs.approximate,
    )


def _entrywise_error(
    errors: PairErrors, pairs: IndependentPairs, diagonal: Vector, confidence: float
) -> EntrywiseError:
    """Return the errors of single entries: of all pairs, or what a sample tells about them."""
    scale = float(diagonal.max()) or 1.0
    unit = scale * math.sqrt(float(np.mean((diagonal / scale) ** 2))) or 1.0
    error = errors.root_mean_square(confidence)
    relative = Interval(error.value / unit, error.low / unit, error.high / unit)
    if errors.exact.sample.complete:
        return EntrywiseError(relative, errors.largest() / unit, 0.0, unit)
    share = pairs.exceeding_share(confidence)
    return EntrywiseError(relative, pairs.largest_error() / unit, share, unit)


def _covered(count: int, sample: RowSample, reason: str) -> str:
    if sample.for_new_rows:
        return (
            f"all entries, the diagonal included, of matrices of {sample.rows.count} or more "
            "further rows of the same kind"
        )
    covered = f"all entries, the diagonal included, of the matrix of these {count} rows"
    return f"{covered} only: {reason}" if reason else covered


def _without_infinities(figure: Any) -> Any:
    if isinstance(figure, dict):
        return {name: _without_infinities(value) for name, value in figure.items()}
    return None if isinstance(figure, float) and not math.isfinite(figure) else figure


def _draw_pairs(exact: Vector, approximate: Vector, error: float, title: str, ax: Any) -> Any:
    """Draw pairs, the diagonal and a band of twice the error; return the axes."""
    if ax is None:
        ax = _new_axes()
    ends = np.array([exact.min(), exact.max()])
    ax.fill_between(
        ends, ends - 2 * error, ends + 2 * error, alpha=0.25, label="± 2 root mean square errors"
    )
    ax.plot(ends, ends, linewidth=1.0, label="exact")
    ax.plot(exact, approximate, ".", markersize=2.0, alpha=0.5, label="pairs of rows")
    ax.set_xlabel("k(x, y)")
    ax.set_ylabel("⟨z(x), z(y)⟩")
    ax.set_title(title)
    ax.legend()
    return ax


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plot needs matplotlib, which is not installed: pip install powersketch[plot]."
        ) from error
    return Figure(figsize=(5.0, 4.0), layout="constrained").subplots()
