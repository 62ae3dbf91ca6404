"""Releases: synthesis, what they are good for, and other protections beside."""
