"""Prints a hash of the features of every map: `python -m tests.feature_maps.feature_bits`.

Two processes keep the promise "same seed, same bits" if they print the same lines, and two
processors if they do so with the option --any-processor.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.feature_maps.cases import CASES, FLOATS, Case


def feature_bits(case: Case, dtype: Any, container: Any) -> str:
    """Return a hash of the features of the case's rows, fitted to these rows."""
    X = case.rows(dtype=dtype)
    features = case.sketch().fit_transform(container(X))
    # Rows that differ would be no fault of the features.
    return f"rows {_hash(X)} features {_hash(features)}"


def all_bits(*, any_processor: bool = False) -> dict[str, str]:
    """Return the hashes of all cases that promise their bits, by name, dtype and container."""
    bits = {}
    for name, case in CASES.items():
        if not case.portable or (any_processor and not case.own_arithmetic):
            continue
        for dtype, container in itertools.product(FLOATS, (np.asarray, sp.csr_array)):
            key = f"{name}, {np.dtype(dtype).name}, {container.__name__}"
            bits[key] = feature_bits(case, dtype, container)
    return bits


def _hash(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


if __name__ == "__main__":
    print(json.dumps(all_bits(any_processor="--any-processor" in sys.argv), indent=0))
