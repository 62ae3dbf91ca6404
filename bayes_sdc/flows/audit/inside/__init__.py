"""Totals inside a file, found by arithmetic."""
