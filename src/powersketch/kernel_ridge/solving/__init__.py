"""Solutions for given features or a given kernel: by sums over rows, by iterations, exactly."""
