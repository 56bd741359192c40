"""
Which method for my data?
=========================

``compare`` fits every method that can approximate a kernel on some of the rows and measures it on
others: error, time, memory. Here for the digits, a kernel of degree 4 and the main methods.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from powersketch import compare
from powersketch.kernels import Polynomial

X = load_digits().data / 60.0
methods = ["power", "tree", "tensorsketch", "ctr", "adaptive", "nystroem", "sklearn-countsketch"]
found = compare(
    X,
    Polynomial(degree=4, coef0=0.1),
    methods=methods,  # left out, all that can do this kernel take part
    components=[64, 256, 768],
    random_state=0,
)
print(found)

# %%
# The best for a size, or for a budget of seconds or bytes:

print(found.best(components=256).reason)

# %%
# Error against time: below and to the left is better. The same figures are on the page that
# ``found.save_html("comparison.html")`` writes, and in the data frame ``found.to_frame()``.

colours = dict(zip(methods, ("C0", "C2", "C4", "C5", "C6", "0.4", "C1"), strict=True))
frame = found.to_frame()
figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
for method, rows in frame.groupby("method"):
    seconds, errors = rows["transform_seconds"], rows["frobenius"]
    axes.plot(seconds, errors, "o-", label=method, color=colours[method])
axes.set(xscale="log", yscale="log", xlabel="seconds to transform", ylabel="relative error of Z Zᵀ")
axes.grid(alpha=0.3)
axes.legend(fontsize="small", ncols=2)
plt.show()
