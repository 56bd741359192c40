"""Feature maps from landmarks: rows drawn by leverage, exact kernel values, a triangular solve."""

from powersketch.nystroem.estimator import LeverageNystroem
from powersketch.nystroem.scores import LANDMARKS, draw_landmarks

__all__ = ["LANDMARKS", "LeverageNystroem", "draw_landmarks"]
