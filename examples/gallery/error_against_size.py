"""
Error against size
==================

How the error falls with the number of features, for the maps that powersketch and scikit-learn
have. Maps that do not look at the data fall like 1/√m; landmarks (Nyström) use the data, and win
where the spectrum of the kernel decays quickly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler

from powersketch import GaussianSketch, LeverageNystroem, PolynomialSketch, kernels

X = load_digits().data[:800]
X /= np.linalg.norm(X, axis=1, keepdims=True)
sizes = [64, 128, 256, 512, 1024, 2048]


def errors(make, kernel):
    """Return the relative error for every size, the mean of two seeds."""
    K = kernel(X)
    found = []
    for size in sizes:
        features = [make(size, seed).fit_transform(X) for seed in (0, 1)]
        found.append(np.mean([np.linalg.norm(Z @ Z.T - K) for Z in features]) / np.linalg.norm(K))
    return found


# %%
# The polynomial kernel ⟨x, y⟩⁴. ``expansion="none"`` does not look at the data at all; the default
# expands the kernel around the mean of the rows where that is better.

polynomial, gaussian = kernels.Polynomial(degree=4), kernels.Gaussian(gamma=2.0)
by_degree = {
    "PolynomialSketch": lambda m, s: PolynomialSketch(4, n_components=m, random_state=s),
    '… expansion="none"': lambda m, s: PolynomialSketch(
        4, n_components=m, expansion="none", random_state=s
    ),
    "PolynomialCountSketch": lambda m, s: PolynomialCountSketch(
        degree=4, n_components=m, random_state=s
    ),
}
by_distance = {
    "GaussianSketch": lambda m, s: GaussianSketch(2.0, n_components=m, random_state=s),
    "RBFSampler": lambda m, s: RBFSampler(gamma=2.0, n_components=m, random_state=s),
}

figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for axes, kernel, maps in zip(
    panels, (polynomial, gaussian), (by_degree, by_distance), strict=True
):
    landmarks = lambda m, s, kernel=kernel: LeverageNystroem(  # noqa: E731
        kernel, n_components=min(m, 512), random_state=s
    )
    for name, make in maps.items():
        axes.plot(sizes, errors(make, kernel), "o-", label=name)
    few = errors(landmarks, kernel)[:4]
    axes.plot(sizes[:4], few, "^:", color="0.5", label="LeverageNystroem (landmarks)")
    axes.set(xscale="log", yscale="log", title=str(kernel), xlabel="features")
    axes.set_xticks(sizes, sizes)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
panels[0].set_ylabel("relative error of Z Zᵀ")
plt.show()
