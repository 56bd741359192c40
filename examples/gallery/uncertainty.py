"""
How sure is a prediction?
=========================

``predict(X, return_std=True)`` gives the standard deviation of a *new observation*, noise included.
It is stretched such that 95 % intervals cover that share of rows that were left out. New rows are
covered a little less, as the rows left out also served to choose the model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from powersketch import SketchedKernelRidge

rng = np.random.default_rng(1)
x = np.sort(np.concatenate([rng.uniform(-3, -0.6, 90), rng.uniform(0.7, 3, 90)]))
y = np.sin(2.2 * x) + 0.3 * x + 0.15 * rng.normal(size=x.size)

# %%
# Two stretches of observations and a gap between them. The kernel is given here, with a gamma that
# is searched for.

model = SketchedKernelRidge(
    kernel="gaussian", kernel_params={"gamma": "auto"}, features="exact", random_state=0
).fit(x[:, None], y)
grid = np.linspace(-4, 4, 400)
mean, std = model.predict(grid[:, None], return_std=True)

figure, curve = plt.subplots(figsize=(8, 4.2), layout="constrained")
curve.fill_between(grid, mean - 1.96 * std, mean + 1.96 * std, alpha=0.2, label="95 % interval")
curve.plot(grid, mean, label="prediction")
curve.plot(x, y, "k.", markersize=4, label="observations")
curve.set(xlabel="x", ylim=(-4, 4), title="unsure where there is nothing to learn from")
curve.legend(loc="lower right")
plt.show()

# %%
# Whether intervals keep their promise can be counted: on a table of ten columns, how many new
# observations lie within so many standard deviations?

X, z = make_friedman1(3000, noise=1.0, random_state=0)
X_train, X_test, z_train, z_test = train_test_split(X, z, random_state=0)
table_model = SketchedKernelRidge(random_state=0).fit(X_train, z_train)
mean, std = table_model.predict(X_test, return_std=True)
deviations = np.abs(z_test - mean) / std
widths = np.linspace(0, 3, 61)
normal = np.array([0.0, 0.383, 0.683, 0.866, 0.954, 0.988, 0.997])
figure, coverage = plt.subplots(figsize=(6, 4), layout="constrained")
coverage.plot(widths, [(deviations <= width).mean() for width in widths], label="counted")
coverage.plot(np.arange(7) / 2, normal, "k.", label="normal distribution")
coverage.set(
    xlabel="width in standard deviations", ylabel="share covered", title="Friedman's table"
)
coverage.grid(alpha=0.3)
coverage.legend()
plt.show()
print(f"95 % intervals cover {(deviations <= 1.96).mean():.1%} of {len(z_test)} new observations")
