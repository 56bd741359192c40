"""Ridge regression: prediction error, time, memory."""
