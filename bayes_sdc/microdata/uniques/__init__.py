"""Population uniques when no structure is assumed."""
