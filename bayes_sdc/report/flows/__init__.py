"""Report of a protected origin-destination table."""
