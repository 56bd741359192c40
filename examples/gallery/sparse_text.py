"""
Text: sparse rows stay sparse
=============================

Bags of words have many columns and few entries in each row. A polynomial kernel of degree 2 sees
pairs of words, of which there are billions; its features take time in proportion to the entries
that are not zero. The documents here are made: what class one belongs to depends on which words
occur *together*, which a linear model hardly sees.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from powersketch import PolynomialSketch

rng = np.random.default_rng(0)
documents, words, length = 6000, 50_000, 60
topics = rng.integers(0, 4, size=(documents, 2))  # two topics for each document
y = (topics[:, 0] + topics[:, 1]) % 2  # the class: whether they are of one kind
columns = np.minimum(words - 1, rng.zipf(1.2, size=(documents, length)) + 4 * 30)
own = 30 * topics[:, :, None] + rng.integers(0, 30, size=(documents, 2, length // 3))
columns[:, : 2 * (length // 3)] = own.reshape(documents, -1)
rows = np.repeat(np.arange(documents), length)
X = sp.csr_array((np.ones(rows.size), (rows, columns.ravel())), shape=(documents, words))
X = normalize(X)
print(
    f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / documents:.0f} different words in each"
)

# %%
# The memory of a transform is that of its output: nothing is made dense.

train, test, y_train, y_test = train_test_split(X, y, random_state=0)
linear = RidgeClassifier(alpha=1e-2).fit(train, y_train).score(test, y_test)
sizes, scores, seconds = [128, 256, 512, 1024, 2048], [], []
for size in sizes:
    sketch = PolynomialSketch(degree=2, n_components=size, random_state=0).fit(train)
    start = time.perf_counter()
    Z = sketch.transform(train)
    seconds.append(time.perf_counter() - start)
    scores.append(RidgeClassifier(alpha=1e-2).fit(Z, y_train).score(sketch.transform(test), y_test))
for size, score in zip(sizes, scores, strict=True):
    print(f"{size:5d} features of degree 2: accuracy {score:.3f}   (linear: {linear:.3f})")

# %%
# scikit-learn's map visits every column, so that it gets a hundredth of them here, and its time is
# multiplied by a hundred.

few = train[:, : words // 100]
peer = PolynomialCountSketch(degree=2, n_components=1024, random_state=0).fit(few)
start = time.perf_counter()
peer.transform(few)
peer_seconds = 100 * (time.perf_counter() - start)
print(f"1024 features: PolynomialSketch {seconds[3]:.2f} s, the peer about {peer_seconds:.0f} s")

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(sizes, scores, "o-", label="features of degree 2, then a linear model")
axes.axhline(linear, color="C1", linestyle="--", label="linear model of the words")
axes.set(xscale="log", xlabel="features", ylabel="accuracy on unseen documents", ylim=(0.45, 1.0))
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.legend()
plt.show()
