"""Other protections of a table, beside synthesis."""
