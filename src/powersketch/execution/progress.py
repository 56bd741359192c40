"""Progress on standard error."""

from __future__ import annotations

import sys
import time

_SECONDS = 0.5


class Progress:
    """Writes "done/total rows" to standard error now and then; silent unless asked for."""

    def __init__(self, what: str, total: int, verbose: int, *, unit: str = "rows") -> None:
        self._enabled = bool(verbose)
        self._what, self._total, self._unit = what, total, unit
        self._last = time.monotonic()

    def update(self, done: int, remark: str = "") -> None:
        """Report that `done` of them are finished."""
        if not self._enabled:
            return
        now = time.monotonic()
        if done == self._total or now - self._last >= _SECONDS:
            self._last = now
            end = "\n" if done == self._total else ""
            percent = 100 * done // self._total
            sys.stderr.write(
                f"\r[{self._what}] {done}/{self._total} {self._unit} ({percent}%){remark}{end}"
            )
            sys.stderr.flush()

    def finish(self, done: int, remark: str = "") -> None:
        """Report that there will be no more than `done`."""
        self._total = done
        self.update(done, remark)
