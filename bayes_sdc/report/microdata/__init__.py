"""Report of the record-level risk of a file."""
