"""Records of persons: key variables, combinations and the risk of each record."""
