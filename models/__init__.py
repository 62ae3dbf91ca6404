"""The PyMC models, one per file."""
