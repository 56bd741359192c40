"""Imports scikit-learn, then powersketch, and calls it twice; prints the times as JSON."""

import json
import time

clock = [time.perf_counter()]


def lap() -> float:
    """Return the milliseconds since the last lap."""
    clock.append(time.perf_counter())
    return 1e3 * (clock[-1] - clock[-2])


import numpy as np  # noqa: E402
import sklearn.kernel_approximation  # noqa: E402, F401

milliseconds = {"import sklearn.kernel_approximation": lap()}

from powersketch import PolynomialSketch  # noqa: E402

milliseconds["import powersketch, after scikit-learn"] = lap()

X = np.random.default_rng(0).random((64, 256), dtype=np.float32)
sketch = PolynomialSketch(4, gamma=1 / 256, n_components=256, random_state=0)
lap()
sketch.fit(X)
milliseconds["first fit, 64 rows"] = lap()
sketch.transform(X)
milliseconds["first transform, 64 rows"] = lap()
sketch.transform(X)
milliseconds["second transform, 64 rows"] = lap()

print(json.dumps(milliseconds))
