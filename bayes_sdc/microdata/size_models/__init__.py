"""Population uniques from the size indices of a file alone."""
