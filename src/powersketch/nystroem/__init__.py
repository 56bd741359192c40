"""Feature maps from landmarks: rows drawn by leverage, exact kernel values, a triangular solve."""

from powersketch.nystroem.estimator import LeverageNystroem
from powersketch.nystroem.scores import landmark_rows

__all__ = ["LeverageNystroem", "landmark_rows"]
