"""
Digits in five lines
====================

A table of numbers and no parameters: the model chooses the scaling, the kernel, its width, the
penalty and the features, and says what it chose and why.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifierCV

from powersketch import SketchedKernelRidgeClassifier

X, y = load_digits(return_X_y=True)
model = SketchedKernelRidgeClassifier(random_state=0).fit(X[:1200], y[:1200])
print(f"accuracy on digits of other writers: {model.score(X[1200:], y[1200:]):.3f}")

# %%
# Beside it, a linear model that chooses its penalty, too:

linear = RidgeClassifierCV(np.logspace(-3, 3, 13)).fit(X[:1200], y[:1200])
print(f"a linear model: {linear.score(X[1200:], y[1200:]):.3f}")

# %%
# What was chosen, in sentences:

print(model.choice_)

# %%
# Probabilities come from rows that were left out of the fit, without a second fit. These are the
# digits that the model is least sure of, with its two best guesses.

probabilities = model.predict_proba(X[1200:])
unsure = np.argsort(probabilities.max(axis=1))[:8]
figure, axes = plt.subplots(1, 8, figsize=(11, 2.4), layout="constrained")
for axis, row in zip(axes, unsure, strict=True):
    axis.imshow(X[1200 + row].reshape(8, 8), cmap="gray_r")
    second, first = np.argsort(probabilities[row])[-2:]
    guesses = (
        f"{first}: {probabilities[row, first]:.0%}\n{second}: {probabilities[row, second]:.0%}"
    )
    axis.set_title(f"a {y[1200 + row]}", fontweight="bold")
    axis.set_xlabel(guesses)
    axis.set(xticks=[], yticks=[])
plt.show()
