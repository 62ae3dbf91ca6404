"""Measuring a file in one call."""
