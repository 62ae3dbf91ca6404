"""The PyMC models, one a file."""
