"""Bayesian statistical disclosure control: the public names."""
