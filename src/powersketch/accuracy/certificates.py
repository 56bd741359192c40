"""Certificates: what is known of a feature map's error on given rows, and how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.accuracy.certificate_plot import plot_pairs
from powersketch.accuracy.data_rows import (
    DataRows,
    FittedMap,
    Float64,
    checked_map,
    kernel_diagonal,
)
from powersketch.accuracy.entrywise import EntrywiseError, entrywise_error
from powersketch.accuracy.independent_pairs import IndependentPairs
from powersketch.accuracy.intervals import Interval, checked_confidence
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample, row_sample, sample_rows
from powersketch.accuracy.spectral import SpectralError, check_alpha_is_felt, spectral_error
from powersketch.execution import thread_count
from powersketch.parameters import checked_integer, checked_positive, refuse_unless_default
from powersketch.random_streams import RandomStreams, seed_from

_FEWEST_PRODUCTS, _PRODUCTS = 2, 32
# Smaller errors of a diagonal are those of rounding, which differ from machine to machine.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was measured of a feature map's error, made by :func:`certify`.

    Parameters
    ----------
    frobenius : Interval
        ‖Z Zᵀ − K‖ / ‖K‖ in Frobenius norms over pairs of different rows.
    diagonal : Interval
        The same over the diagonals: ‖z(x)‖² against k(x, x). Zero but for rounding errors where a
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
    exact: Float64
    approximate: Float64

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
        figures = {
            "frobenius": self.frobenius.to_dict(),
            "diagonal": self.diagonal.to_dict(),
            "whole": self.whole.to_dict(),
            "entrywise": self.entrywise.to_dict(),
            "spectral": self.spectral.to_dict() if self.spectral else None,
            "confidence": self.confidence,
            "rows": self.rows,
            "measured_rows": self.measured_rows,
            "for_new_rows": self.for_new_rows,
            "covers": self.covers,
            "seed": self.seed,
        }
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
        return plot_pairs(self.exact, self.approximate, error, title, ax)

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


def certify(
    sketch: Any,
    X: Any,
    *,
    alpha: float | None = None,
    confidence: float = 0.99,
    products: int = _PRODUCTS,
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
    n_jobs : int or None, default=None
        Number of threads for the exact kernel, with scikit-learn's meaning.

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
        refuse_unless_default("products", products, _PRODUCTS, "without alpha")
    thread_count(n_jobs)
    rows = DataRows.of(X, fewest=2)
    seed = seed_from(random_state)
    streams = RandomStreams(seed, "certificate")
    diagonal = kernel_diagonal(fitted.kernel_, rows)
    if alpha is not None:
        check_alpha_is_felt(alpha, diagonal)
    components = rows.take(np.zeros(1, dtype=np.int64)).features(fitted).shape[1]
    sample = row_sample(fitted, rows, streams, sample_rows(components))
    spectral = None
    if alpha is not None:
        spectral = spectral_error(
            fitted,
            rows,
            alpha,
            streams.child("spectral"),
            confidence=confidence,
            products=products,
            n_jobs=n_jobs,
        )
    errors = PairErrors.measure(fitted, sample, n_jobs)
    return certificate_from(errors, fitted, rows, streams, confidence=confidence, spectral=spectral)


def certificate_from(
    errors: PairErrors,
    sketch: FittedMap,
    rows: DataRows,
    streams: RandomStreams,
    *,
    confidence: float,
    spectral: SpectralError | None = None,
    reason: str = "",
) -> Certificate:
    """Return the certificate for these rows from the errors of a sample of them.

    The reason is why further rows are not covered, where they were asked for.
    """
    sample = errors.sample
    if sample.rows.count == rows.count:
        pairs = IndependentPairs.among(errors, streams)
    else:
        pairs = IndependentPairs.measure(sketch, rows, streams)
    diagonal = kernel_diagonal(sketch.kernel_, rows)
    return Certificate(
        frobenius=errors.frobenius(confidence),
        diagonal=errors.of_diagonal(confidence),
        whole=errors.whole(confidence),
        entrywise=entrywise_error(errors, pairs, diagonal, confidence),
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
