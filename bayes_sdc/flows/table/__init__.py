"""Flow tables: reading, small cells as arrays, covariates, and an invented country."""
