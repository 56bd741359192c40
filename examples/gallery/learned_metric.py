"""
A learned metric: which columns matter, and how they mix
========================================================

Distances between rows mean little where columns differ in importance, or matter only in
combination. ``SketchedKernelRidge`` learns a metric from the gradients of its own predictions.

The table imitates trips of taxis: where one starts and ends, the hour, and columns that say little.
How long a trip takes depends on the *difference* of two places, which no single column shows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from powersketch import SketchedKernelRidge

rng = np.random.default_rng(0)
n = 4000
names = ["from x", "from y", "to x", "to y", "hour", "passengers", "tip", "meter"]
places, hour = rng.normal(size=(n, 4)), rng.uniform(0, 24, size=n)
X = np.column_stack([places, hour, rng.integers(1, 6, size=n), rng.normal(size=(n, 2))])
distance = np.abs(places[:, 0] - places[:, 2]) + np.abs(places[:, 1] - places[:, 3])
rush = 1 + 0.8 * np.exp(-((hour - 8.5) ** 2) / 4) + 0.6 * np.exp(-((hour - 17.5) ** 2) / 6)
y = np.log(2 + distance * rush) + 0.05 * rng.normal(size=n)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
models = {
    "linear": RidgeCV(np.logspace(-3, 3, 13)),
    "gradient boosting": HistGradientBoostingRegressor(random_state=0),
    "kernel, metric=None": SketchedKernelRidge(
        metric=None, features="landmarks", n_components=600, random_state=0
    ),
    "kernel, learned metric": SketchedKernelRidge(
        metric="full", features="landmarks", n_components=600, random_state=0
    ),
}
scores = {}
for name, model in models.items():
    scores[name] = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"{name:24s} R² {scores[name]:.3f}")

# %%
# The metric on the left: the places enter by their differences (negative entries between "from" and
# "to"), the hour by itself, the rest hardly at all.

metric = models["kernel, learned metric"].metric_[: len(names), : len(names)]
figure, (matrix, bars) = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(1, 1.1)
)
limit = np.abs(metric).max()
picture = matrix.imshow(metric, cmap="RdBu_r", vmin=-limit, vmax=limit)
matrix.set_xticks(range(len(names)), names, rotation=45, ha="right")
matrix.set_yticks(range(len(names)), names)
matrix.set_title("the metric")
figure.colorbar(picture, ax=matrix, shrink=0.85)
bars.barh(
    list(scores), [max(score, 0) for score in scores.values()], color=["0.7", "0.7", "C0", "C0"]
)
bars.bar_label(bars.containers[0], [f"{score:.3f}" for score in scores.values()], padding=4)
bars.set(title="R² on rows held out", xlim=(0, 1.12))
bars.invert_yaxis()
bars.spines[["top", "right"]].set_visible(False)
plt.show()
