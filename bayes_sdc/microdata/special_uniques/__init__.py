"""Special uniques: SUDA, DIS and DIS-SUDA."""
