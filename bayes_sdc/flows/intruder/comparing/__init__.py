"""Releases and protections side by side, and a choice among them."""
