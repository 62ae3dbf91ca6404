"""Synthetic counts drawn from a posterior."""
