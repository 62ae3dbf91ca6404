"""Columns released beside the counts: which ones, and what they reveal about small counts."""
