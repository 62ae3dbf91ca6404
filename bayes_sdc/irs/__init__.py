"""County-to-county migration files of the IRS."""
