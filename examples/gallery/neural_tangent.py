"""
The neural tangent kernel without a network
===========================================

An infinitely wide ReLU network, trained by gradient descent, is kernel regression with its neural
tangent kernel. ``NeuralTangentSketch`` writes features of that kernel directly, for any depth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

from powersketch import NeuralTangentSketch, kernels

X, y = load_digits(return_X_y=True)
X /= np.linalg.norm(X, axis=1, keepdims=True)

# %%
# The kernel as a function of the cosine of two rows: the deeper the network, the sharper the peak
# at cosine 1. Its power series decays slowly, which is what makes high degrees worth having.

cosines = np.linspace(-1, 1, 401)
figure, profiles = plt.subplots(figsize=(7, 4), layout="constrained")
for depth in (1, 2, 3, 5, 8):
    values = kernels.NeuralTangent(depth=depth).profile(cosines)
    profiles.plot(cosines, values / values[-1], label=f"depth {depth}")
profiles.set(title="neural tangent kernel", xlabel="cosine of two rows", ylabel="k / k(1)")
profiles.legend()
plt.show()

# %%
# Features by a series that is fitted on the range of the data, beside sketched gradients of random
# networks (``method="random"``), the usual way.

figure, errors = plt.subplots(figsize=(7, 4), layout="constrained")
sizes = [256, 512, 1024, 2048]
for method, style in (("power", "o-"), ("random", "s--")):
    found = []
    for size in sizes:
        sketch = NeuralTangentSketch(depth=3, n_components=size, method=method, random_state=0)
        Z, K = sketch.fit_transform(X[:800]), sketch.kernel_(X[:800])
        found.append(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))
    errors.plot(sizes, found, style, label=f'method="{method}"')
errors.set(xscale="log", yscale="log", title="relative error of Z Zᵀ, depth 3", xlabel="features")
errors.set_xticks(sizes, sizes)
errors.minorticks_off()
errors.grid(alpha=0.3)
errors.legend()
plt.show()

# %%
# A linear model of these features classifies like the network:

sketch = NeuralTangentSketch(depth=3, n_components=2048, random_state=0).fit(X[:1200])
model = RidgeClassifier(alpha=1e-3).fit(sketch.transform(X[:1200]), y[:1200])
print(
    f"accuracy on digits of other writers: {model.score(sketch.transform(X[1200:]), y[1200:]):.3f}"
)
print(f"degrees of the series in use: {sketch.degrees_}")
