"""Synthetic counts whose totals are the true ones."""
