"""
From degree 2 to degree 1000
============================

Repeated squaring takes log₂ p products for the power p, so that the time hardly grows with the
degree. Every power is set to its exact norm, which is known, so that the error does not explode
either. scikit-learn's ``PolynomialCountSketch`` multiplies one sketch for each degree.

The rows are made: thirty groups, in which the angles are so small that even ⟨x, y⟩¹⁰⁰⁰ tells their
members apart.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch

from powersketch import PolynomialSketch

rng = np.random.default_rng(0)
groups = np.repeat(rng.normal(size=(30, 100)), 20, axis=0)
X = groups + 0.04 * rng.normal(size=groups.shape)
X /= np.linalg.norm(X, axis=1, keepdims=True)


def measured(sketch, K):
    """Return the relative error of the features and the time of a transform, in milliseconds."""
    Z = sketch.fit(X).transform(X)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        sketch.transform(X)
        times.append(1e3 * (time.perf_counter() - start))
    return np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K), min(times)


degrees = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
ours, literal, peer = [], [], []
for degree in degrees:
    options = {"degree": degree, "n_components": 1024, "random_state": 0}
    sketch = PolynomialSketch(**options)
    K = sketch.fit(X).kernel_(X)
    ours.append(measured(sketch, K))
    paper = PolynomialSketch(**options, norm_preserving=False)
    literal.append(measured(paper, K))
    if degree <= 32:  # beyond, it takes long and its features are close to zero
        peer.append(measured(PolynomialCountSketch(**options), K))

# %%
# An error of 1 is that of features that are all zero. The dashed line is the paper's algorithm to
# the letter (``norm_preserving=False``): the error of the norm is raised to the power as well.

figure, (errors, times) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
lines = {
    "PolynomialSketch": (ours, "C0o-"),
    "the paper's literal sketch": (literal, "C0x--"),
    "PolynomialCountSketch": (peer, "C1s-"),
}
for name, (values, style) in lines.items():
    error, milliseconds = np.transpose(values)
    errors.plot(degrees[: len(values)], error, style, label=name)
    times.plot(degrees[: len(values)], milliseconds, style, label=name)
for axes, title in ((errors, "relative error of Z Zᵀ"), (times, "transform of 600 rows, ms")):
    axes.set(xscale="log", yscale="log", xlabel="degree", title=title)
    axes.grid(alpha=0.3)
errors.set_ylim(top=1e3)
errors.legend()
plt.show()
