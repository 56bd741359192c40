"""Feature maps: speed, error, memory."""
