"""The uncertainty of ridge regression on features, seen as a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError
from powersketch.kernel_ridge.spectrum import GramSpectrum
from powersketch.kernel_ridge.statistics import RidgeStatistics

_SMALLEST_FREEDOM = 1e-10  # per row


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of f under the prior covariance σ² / alpha · k and noise of variance σ² / w_i.

    Its mean is ridge regression. Its variance at x is σ² z(x)ᵀ(G + alpha I)⁻¹z(x), and, if there
    is an intercept, the same about the mean of the features plus σ² / Σ w_i.
    """

    spectrum: GramSpectrum
    alpha: float
    feature_mean: NDArray[np.float64]
    constant: float
    noise_variance: NDArray[np.float64]

    @classmethod
    def of(cls, statistics: RidgeStatistics, alpha: float, *, fit_intercept: bool) -> Self:
        """Estimate the noise by the residuals, and keep what the variance follows from."""
        gram, cross, squares = statistics.moments(fit_intercept=fit_intercept)
        spectrum = GramSpectrum.of(gram)
        inverses = spectrum.inverses(alpha)
        explained = 2.0 * inverses - spectrum.values * inverses**2
        residuals = squares - explained @ (spectrum.vectors.T @ cross) ** 2
        freedom = statistics.count - spectrum.effective_dimension(alpha) - float(fit_intercept)
        _check_freedom(freedom, statistics.count)
        noise = np.maximum(residuals, 0.0) / freedom
        mean = statistics.feature_mean if fit_intercept else np.zeros_like(spectrum.values)
        constant = 1.0 / statistics.weight if fit_intercept else 0.0
        return cls(spectrum, alpha, mean, constant, np.asarray(noise))

    def variances(
        self, Z: NDArray[np.float64], missing: NDArray[np.float64] | float
    ) -> NDArray[np.float64]:
        """Return the variance of f at rows of features Z, for every target.

        `missing` is the part of k(x, x) that the features lack: what they cannot express is as
        uncertain as it was before any data.
        """
        rotated = (Z - self.feature_mean) @ self.spectrum.vectors
        known = rotated**2 @ self.spectrum.inverses(self.alpha) + self.constant
        return np.multiply.outer(known + missing / self.alpha, self.noise_variance)


def _check_freedom(freedom: float, count: int) -> None:
    """Refuse to estimate noise where the residuals are nothing but rounding errors."""
    if freedom <= _SMALLEST_FREEDOM * count:
        raise InputError(
            f"predict_std estimates the noise by residuals, for which {count} rows leave "
            f"{max(freedom, 0.0):.3g} degrees of freedom; necessary is more than rounding errors: "
            "give more rows, or use a larger alpha."
        )
