"""Feature maps with scikit-learn's interface, one file for each."""
