"""Records of persons: key variables, combinations and the risk of each record."""
"""Microdata: records described by categorical key variables, and what they give away."""
