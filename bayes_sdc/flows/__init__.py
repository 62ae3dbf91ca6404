"""Origin-destination tables, in the order the data go."""
