"""
Ask for an error instead of a size
==================================

``n_components="auto"`` with ``eps=`` grows a map until a certificate says that its error is small
enough, on rows that were not used to choose it. And a warning: what a certificate promises is the
kernel, not predictions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

from powersketch import GaussianSketch
from powersketch.accuracy import certify

X, y = load_digits(return_X_y=True)
X = X / 16.0
sketch = GaussianSketch(gamma=0.05, n_components="auto", eps=0.05, random_state=0).fit(X)
print(f"{sketch.n_components_} features: error at most {sketch.certificate_.bound:.3f}")
print(sketch.certificate_.covers)

# %%
# ``certify`` does the same for any fitted map and any rows; with ``alpha`` also for forms:
# (1 − ε)(K + αI) ⪯ Z Zᵀ + αI ⪯ (1 + ε)(K + αI), which is what solutions of ridge regressions
# depend on. Each cloud is a sample of pairs of rows: exact kernel against features.

figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharex=True, sharey=True)
for axes, size in zip(panels, (64, 256, 1024), strict=True):
    fitted = GaussianSketch(gamma=0.05, n_components=size, random_state=0).fit(X)
    certificate = certify(fitted, X, alpha=1.0, random_state=0)
    certificate.plot(ax=axes)
    axes.set_title(
        f"{size} features: error {certificate.frobenius.value:.3f},\n"
        f"as a quadratic form {certificate.spectral.eps.value:.2f}"
    )
plt.show()

# %%
# A small Frobenius error is not accuracy. A nearly constant kernel is easily approximated, as
# its first eigenvalue is most of its norm; what tells classes apart are the small ones.

for gamma in (0.0005, 0.005, 0.05):
    fitted = GaussianSketch(gamma=gamma, n_components="auto", eps=0.05, random_state=0).fit(
        X[:1200]
    )
    model = RidgeClassifier(alpha=1e-3).fit(fitted.transform(X[:1200]), y[:1200])
    score = model.score(fitted.transform(X[1200:]), y[1200:])
    mean = float(np.mean(fitted.kernel_(X[:500])))
    print(
        f"gamma {gamma:6}: mean of K {mean:.3f}, {fitted.n_components_:4d} features certified "
        f"at 5 %, accuracy {score:.3f}"
    )
