"""Intruders who know totals."""
