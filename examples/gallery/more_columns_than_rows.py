"""
Many more columns than rows: genomics
=====================================

A few hundred samples, tens of thousands of genes. The exact kernel takes n² d multiplications;
a sketch reads the table once. The data are made: which of two classes a sample belongs to depends
on *pairs* of genes that are active together.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from powersketch import PolynomialSketch, SketchedKernelRidgeClassifier

rng = np.random.default_rng(0)
samples, genes, active = 400, 20_000, 600
y = rng.integers(0, 2, size=samples)
X = rng.normal(size=(samples, genes)).astype(np.float32)
left = rng.choice([-1.0, 1.0], size=(samples, 3))
right = left * np.where(y == 1, 1.0, -1.0)[:, None]  # together in one class, opposed in the other
for pathway in range(3):
    first = slice(2 * pathway * active, (2 * pathway + 1) * active)
    second = slice((2 * pathway + 1) * active, (2 * pathway + 2) * active)
    X[:, first] += 0.9 * left[:, [pathway]]
    X[:, second] += 0.9 * right[:, [pathway]]
X /= np.sqrt(genes)

# %%
# A linear model sees nothing. The kernel ⟨x, y⟩² sees pairs of genes.

folds = StratifiedKFold(5, shuffle=True, random_state=0)
models = {
    "linear": RidgeClassifierCV(np.logspace(-3, 3, 7)),
    "degree 2, exact": SketchedKernelRidgeClassifier(
        kernel="polynomial", kernel_params={"degree": 2}, features="exact", random_state=0
    ),
    "degree 2, 4096 features": make_pipeline(
        PolynomialSketch(degree=2, n_components=4096, random_state=0),
        RidgeClassifierCV(np.logspace(-4, 2, 7)),
    ),
}
scores = {name: cross_val_score(model, X, y, cv=folds) for name, model in models.items()}
for name, score in scores.items():
    print(f"{name:26s} accuracy {score.mean():.2f} ± {score.std():.2f}")

# %%
# Time for longer and longer rows: features of degree 4 against the exact kernel matrix.

lengths, exact, sketched = [2_000, 5_000, 10_000, 20_000], [], []
for length in lengths:
    part = np.ascontiguousarray(np.tile(X[:, :length], (4, 1)))
    sketch = PolynomialSketch(degree=4, n_components=512, expansion="none", random_state=0).fit(
        part
    )
    start = time.perf_counter()
    sketch.kernel_(part)
    middle = time.perf_counter()
    sketch.transform(part)
    exact.append(1e3 * (middle - start))
    sketched.append(1e3 * (time.perf_counter() - middle))

figure, (bars, times) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
bars.barh(list(scores), [score.mean() for score in scores.values()], color=["0.7", "C0", "C0"])
bars.bar_label(bars.containers[0], fmt="%.2f", padding=4)
bars.set(title="accuracy, five folds", xlim=(0, 1.1))
bars.invert_yaxis()
bars.spines[["top", "right"]].set_visible(False)
times.plot(lengths, exact, "s--", color="0.4", label="exact kernel matrix")
times.plot(lengths, sketched, "o-", label="512 features")
times.set(xlabel="columns", ylabel="ms", yscale="log", title=f"{len(part)} rows, degree 4")
times.grid(alpha=0.3)
times.legend()
plt.show()
