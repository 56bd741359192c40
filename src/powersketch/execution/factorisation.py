"""LAPACK's Cholesky factorisation in place, during which other threads of Python run.

SciPy's own wrapper keeps Python's global lock to the end, so that not even Ctrl-C gets through, and
NumPy's copies the matrix twice. The routines themselves are called here, at the addresses that
SciPy publishes for Cython.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.execution.interrupts import interruptible

_ROUTINES = {np.dtype(np.float64): "dpotrf", np.dtype(np.float32): "spotrf"}
_INTEGER = ctypes.POINTER(ctypes.c_int)
# Of triangle, size, matrix, leading dimension and outcome; a call lets go of the lock.
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, _INTEGER, ctypes.c_void_p, _INTEGER, _INTEGER)


def cholesky_in_place(matrix: NDArray[Any]) -> bool:
    """Write the factor L, with L Lᵀ = matrix, to the lower triangle; the upper one stays as it is.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        float64 or float32, writeable, row by row in memory. After an interrupt, a thread writes to
        it for a while.

    Returns
    -------
    bool
        Whether the matrix is positive definite; if not, the lower triangle is spoilt.
    """
    routine = _routine(_ROUTINES[matrix.dtype])
    size, outcome = ctypes.c_int(matrix.shape[0]), ctypes.c_int(0)
    # LAPACK counts by columns: what it takes for the upper triangle is the lower one here.
    interruptible(lambda: routine(b"U", size, matrix.ctypes.data, size, outcome))
    return outcome.value == 0 and bool(np.isfinite(matrix.diagonal()).all())


@cache
def _routine(name: str) -> Callable[..., None]:
    """Return a routine of the LAPACK that SciPy is linked with."""
    capsule = importlib.import_module("scipy.linalg.cython_lapack").__pyx_capi__[name]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    routine: Callable[..., None] = _PROTOTYPE(address_of(capsule, name_of(capsule)))
    return routine
